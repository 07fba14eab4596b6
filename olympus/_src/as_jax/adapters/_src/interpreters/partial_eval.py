"""`jax._src.interpreters.partial_eval`: libraries of primitives name its public names from here."""

__all__ = []
HOMES = ("olympus.interpreters.partial_eval",)
