"""`jax.stages`: programs of traced functions, which many print."""

from ..._src.transforms.stages import Traced
from ..objects import alias

__all__ = []
alias(Traced, "olympuspr", "loolympus")
