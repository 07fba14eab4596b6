"""`accuracy` of elementary functions: a mode or a tolerance, an attribute of the StableHLO op."""

from __future__ import annotations

import enum
from typing import TypeAlias

from ..base.typing import IrAttribute, T
from ..base.util import ByKey
from ..core.primitive import Builder


class AccuracyMode(enum.Enum):
    """The implementation of a function: the platform's default, or the most exact one.

    >>> from olympus import lax
    >>> lax.exp(1.0, accuracy=lax.AccuracyMode.HIGHEST)
    Array(2.7182817, dtype=float32, weak_type=True)
    """

    HIGHEST = 1
    DEFAULT = 2


class Tolerance(ByKey):
    """The largest error that a caller accepts: absolute, relative, or in units of the last place.

    Args:
      atol, rtol: absolute and relative bound.
      ulps: in units of the last place.

    Raises ValueError if a bound is negative or all are zero.

    >>> from olympus import lax
    >>> lax.exp(1.0, accuracy=lax.Tolerance(ulps=2))
    Array(2.7182817, dtype=float32, weak_type=True)
    """

    __slots__ = ("atol", "rtol", "ulps")
    is_value = True     # see `core.identity`

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0) -> None:
        if min(atol, rtol, ulps) < 0 or not (atol or rtol or ulps):
            raise ValueError(f"Tolerance: atol={atol}, rtol={rtol}, ulps={ulps} given; bounds of "
                             "at least 0, one of them above, are required; pass for example "
                             "ulps=1.")
        self.atol, self.rtol, self.ulps = atol, rtol, ulps

    def _key(self) -> tuple[float, float, int]:
        return self.atol, self.rtol, self.ulps

    def __repr__(self) -> str:
        return f"Tolerance(atol={self.atol}, rtol={self.rtol}, ulps={self.ulps})"


AccuracyLike: TypeAlias = AccuracyMode | Tolerance | None


def check_accuracy(accuracy: T) -> T:
    """`accuracy` itself; TypeError if it is neither a mode, a tolerance nor None."""
    if accuracy is not None and not isinstance(accuracy, (AccuracyMode, Tolerance)):
        raise TypeError(f"accuracy: {accuracy!r} given;\n  an AccuracyMode, a Tolerance or None "
                        "is required; pass for example AccuracyMode.HIGHEST.")
    return accuracy


def accuracy_attributes(b: Builder, accuracy: AccuracyLike) -> dict[str, IrAttribute] | None:
    """The attributes that tell the StableHLO op, or None."""
    if accuracy is None:
        return None
    if isinstance(accuracy, AccuracyMode):
        text = f"mode = #stablehlo.result_accuracy_mode<{accuracy.name}>"
    else:
        text = (f"atol = {accuracy.atol:.6e}, rtol = {accuracy.rtol:.6e}, ulps = {accuracy.ulps}, "
                "mode = #stablehlo.result_accuracy_mode<TOLERANCE>")
    return {"result_accuracy": b.attr(f"#stablehlo.result_accuracy<{text}>")}
