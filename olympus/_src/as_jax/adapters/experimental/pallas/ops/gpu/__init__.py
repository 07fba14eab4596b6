"""`jax.experimental.pallas.ops.gpu`: nothing of its own."""

__all__ = []
