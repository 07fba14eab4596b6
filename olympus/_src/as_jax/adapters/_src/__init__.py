"""`jax._src`: the modules below are what libraries import of it."""

__all__ = []
