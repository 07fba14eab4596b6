"""`jax._src.state`: Flax's nnx imports `types` from it."""

__all__ = []
