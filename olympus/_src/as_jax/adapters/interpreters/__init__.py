"""`jax.interpreters`: nothing of its own."""

__all__ = []
