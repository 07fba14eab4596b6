"""`jax.extend`: nothing of its own."""

__all__ = []
