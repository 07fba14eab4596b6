"""Partial evaluation as interpreters of others call it: of wrapped functions, by flagged values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any

from ..base.typing import ArrayLike
from ..core.ir import Olympuspr
from ..core.staging import stage
from ..core.trace import typeof
from ..interpreters.dce import dce_closed
from ..interpreters.partial_eval import record_unknown
from ..types.avals import Aval, ShapedArray
from .linear_util import WrappedFun

__all__ = ["PartialVal", "trace_to_olympuspr_dynamic", "trace_to_olympuspr_nounits"]


class PartialVal(tuple[Any, Any]):
    """(None, value) of what is known, or (aval, None).

    Args:
      xs: the pair.

    >>> import olympus
    >>> PartialVal.unknown(olympus.typeof(1.0)).is_known(), PartialVal.known(2).get_known()
    (False, 2)
    """

    __slots__ = ()

    def __new__(cls, xs: tuple[Aval | None, ArrayLike | None]) -> PartialVal:
        return super().__new__(cls, xs)

    @classmethod
    def known(cls, const: ArrayLike) -> PartialVal:
        return cls((None, const))

    @classmethod
    def unknown(cls, aval: Aval) -> PartialVal:
        return cls((aval, None))

    def is_known(self) -> bool:
        return self[0] is None

    def get_known(self) -> ArrayLike | None:
        """The value; None if it is not known."""
        return self[1]

    def get_aval(self) -> Aval:
        return typeof(self[1]) if self.is_known() else self[0]


def trace_to_olympuspr_nounits(fun: WrappedFun, pvals: Sequence[PartialVal],
                               instantiate: bool | Sequence[bool] = False
                               ) -> tuple[Olympuspr, list[PartialVal], list[ArrayLike]]:
    """Run what a function does to known values, and record the rest.

    Args:
      fun: a wrapped function of flat values that returns a flat list.
      pvals: its arguments, known or not.
      instantiate: per result, whether the program gives it even if it is known.

    Returns:
      The program of the unknown arguments, which gives the unknown results; all results, with the
      values of those that are known; the values of the program's constvars.

    >>> from olympus.extend.linear_util import wrap_init
    >>> args = PartialVal.known(2.0), PartialVal.unknown(olympus.typeof(1.0))
    >>> pr, outs, _ = trace_to_olympuspr_nounits(wrap_init(lambda x, y: [x * x, x * y]), args)
    >>> print(pr, [out.get_known() for out in outs])
    { lambda ; a:f32[]. let b:f32[] = mul 2.0:f32[] a in (b,) } [4.0, None]
    """
    unknown = [not p.is_known() for p in pvals]
    closed, outs, found = record_unknown(fun.call_wrapped, [
        p[0] if u else p[1] for p, u in zip(pvals, unknown, strict=True)], unknown, instantiate)
    return closed.olympuspr, [PartialVal.unknown(typeof(x)) if u else PartialVal.known(x)
                              for x, u in zip(outs, found, strict=True)], closed.consts


def trace_to_olympuspr_dynamic(fun: WrappedFun, in_avals: Sequence[Aval], *,
                               keep_inputs: Sequence[bool] | None = None, lower: bool = False,
                               auto_dce: bool = False
                               ) -> tuple[Olympuspr, list[ShapedArray], list[ArrayLike]]:
    """Record all that a function does.

    Args:
      fun: a wrapped function of flat values that returns a flat list.
      in_avals: the avals of the program's inputs.
      keep_inputs: per input, whether it is an argument; all are by default.
      lower: nothing: programs have one level only.
      auto_dce: whether equations that nothing reads are left out.

    Returns:
      The program; the avals of its results; the values of its constvars.

    >>> from olympus.extend.linear_util import wrap_init
    >>> print(trace_to_olympuspr_dynamic(wrap_init(lambda x: [x * x]), [olympus.typeof(1.0)])[0])
    { lambda ; a:f32[]. let b:f32[] = mul a a in (b,) }
    """
    keep = [True] * len(in_avals) if keep_inputs is None else keep_inputs
    closed = stage(lambda *xs: fun.call_wrapped(*compress(xs, keep)), in_avals)
    if auto_dce:
        closed = dce_closed(closed, [True] * len(closed.outvars))[0]
    return closed.olympuspr, closed.out_avals, closed.consts
