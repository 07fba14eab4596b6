"""`jax._src.interpreters.mlir`: libraries of primitives name its public names from here."""

__all__ = []
HOMES = ("olympus.interpreters.mlir",)
