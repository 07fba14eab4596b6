"""`jax._src.compiler`: Chex imports it to restrict backends, which it then finds it cannot."""

__all__ = []
