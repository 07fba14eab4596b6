"""`jax._src.interpreters`: Flax imports `pxla` from it."""

__all__ = []
