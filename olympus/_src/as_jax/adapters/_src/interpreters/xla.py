"""`jax._src.interpreters.xla`: libraries of primitives name its public names from here."""

__all__ = []
HOMES = ("olympus.interpreters.xla",)
