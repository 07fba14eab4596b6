"""`jax.experimental.pallas.ops.tpu`: nothing of its own."""

__all__ = []
