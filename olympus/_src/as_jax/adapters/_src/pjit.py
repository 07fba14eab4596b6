"""`jax._src.pjit`: JAXNS takes `auto_axes` from it."""

__all__ = []
HOMES = ("olympus.sharding", "olympus.experimental.pjit", "olympus")
