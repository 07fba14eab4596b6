"""`jax._src.typing`: Haliax annotates with it."""

__all__ = []
HOMES = ("olympus.typing", "olympus")
