"""Exported functions, which answer for their shardings under JAX's names."""

from ..export.exported import Exported
from .objects import alias

alias(Exported, "in_shardings_olympus", "out_shardings_olympus")
