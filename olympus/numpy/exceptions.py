"""NumPy's own exceptions and warnings, for code that catches them."""

from numpy.exceptions import (
    AxisError, ComplexWarning, DTypePromotionError, ModuleDeprecationWarning, RankWarning,
    TooHardError, VisibleDeprecationWarning
)

__all__ = ["AxisError", "ComplexWarning", "DTypePromotionError", "ModuleDeprecationWarning",
           "RankWarning", "TooHardError", "VisibleDeprecationWarning"]
