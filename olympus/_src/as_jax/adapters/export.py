"""`jax.export`: the shardings of exported functions."""

from ...export.exported import Exported
from ..objects import alias

__all__ = []
alias(Exported, "in_shardings_olympus", "out_shardings_olympus")
