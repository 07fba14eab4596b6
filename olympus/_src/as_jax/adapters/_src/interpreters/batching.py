"""`jax._src.interpreters.batching`: libraries of primitives name its public names from here."""

__all__ = []
HOMES = ("olympus.interpreters.batching",)
