"""`jax.experimental.pallas.ops`: nothing of its own."""

__all__ = []
