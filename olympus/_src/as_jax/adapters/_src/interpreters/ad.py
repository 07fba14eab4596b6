"""`jax._src.interpreters.ad`: libraries of primitives name its public names from here."""

__all__ = []
HOMES = ("olympus.interpreters.ad",)
