"""Olympus under JAX's name."""
