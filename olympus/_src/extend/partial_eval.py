"""Programs recorded, cut and differentiated as interpreters of others call it: by flags."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any

from ..base.typing import ArrayLike
from ..core.ir import ClosedOlympuspr, DebugInfo, Olympuspr
from ..core.staging import stage
from ..core.trace import typeof
from ..interpreters.dce import dce_closed
from ..interpreters.jvp import jvp_program
from ..interpreters.partial_eval import partial_eval_program, record_unknown
from ..types.avals import Aval, ShapedArray
from .linear_util import WrappedFun

__all__ = ["PartialVal", "abstract_eval_fun", "jvp_olympuspr", "move_binders_to_back",
           "partial_eval_olympuspr_nounits", "prune_closed_olympuspr_outputs",
           "trace_to_olympuspr_dynamic", "trace_to_olympuspr_nounits"]


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


def abstract_eval_fun(fun: Callable[..., Sequence[ArrayLike]], *avals: Aval,
                      debug_info: DebugInfo, **params: Any) -> list[ShapedArray]:
    """The types of what a function returns.

    Args:
      fun: a function of flat values that returns a flat list.
      avals: the types of its arguments.
      debug_info: its name and those of its arguments, for messages.
      params: passed to it by keyword.

    Returns:
      A list of types.

    >>> names = olympus.extend.core.DebugInfo("tiled", "tiled")
    >>> aval = olympus.typeof(onp.ones(2))
    >>> abstract_eval_fun(lambda x, n: [onp.tile(x, n)], aval, n=3, debug_info=names)
    [ShapedArray(float32[6])]
    """
    return stage(lambda *xs: fun(*xs, **params), avals, debug_info).out_avals


# Programs

def partial_eval_olympuspr_nounits(
        olympuspr: ClosedOlympuspr, unknowns: Sequence[bool],
        instantiate: bool | Sequence[bool]
) -> tuple[ClosedOlympuspr, ClosedOlympuspr, list[bool], list[Aval]]:
    """A program cut in two by which of its inputs are known.

    Args:
      olympuspr: a closed program.
      unknowns: per input, whether it is unknown.
      instantiate: per output, whether it counts as unknown even if it is known.

    Returns:
      The known half, from known inputs to known outputs and then residuals; the unknown half, from
      residuals and then unknown inputs to unknown outputs; which outputs are unknown; the types of
      the residuals.

    >>> program = olympus.make_olympuspr(lambda x, y: (onp.cos(x), -onp.sin(x) * y))(1.0, 2.0)
    >>> known, later, unknown_out, _ = partial_eval_olympuspr_nounits(program, [False, True], False)
    >>> print(known)
    { lambda ; a:f32[]. let
        b:f32[] = cos a
        c:f32[] = sin a
        d:f32[] = neg c
      in (b, d) }
    >>> print(later, unknown_out)
    { lambda ; a:f32[] b:f32[]. let c:f32[] = mul a b in (c,) } [False, True]
    """
    split = partial_eval_program(olympuspr, unknowns, instantiate)
    known = split.known.olympuspr
    # A residual that is a known input is one more output here: the halves are met by place alone.
    first = len(known.outvars) - split.num_computed
    residuals = split.residual_values(known.invars, known.outvars[first:])
    known = known.replace(outvars=[*known.outvars[:first], *residuals])
    return (split.known.replace(olympuspr=known), split.unknown, list(split.unknown_out),
            [v.aval for v in residuals])


def jvp_olympuspr(olympuspr: ClosedOlympuspr, nonzeros: Sequence[bool],
                  instantiate: bool | Sequence[bool]) -> tuple[ClosedOlympuspr, list[bool]]:
    """The program of values with tangents.

    Args:
      olympuspr: a closed program.
      nonzeros: per input, whether it has a tangent.
      instantiate: per output, whether its tangent is made even if it is zero.

    Returns:
      A program from inputs and then tangents to outputs and then tangents; per output, whether it
      has a tangent.

    >>> program = olympus.make_olympuspr(lambda x, y: x * y)(1.0, 2.0)
    >>> print(*jvp_olympuspr(program, [True, False], False))
    { lambda ; a:f32[] b:f32[] c:f32[]. let
        d:f32[] = mul a b
        e:f32[] = mul c b
      in (d, e) } [True]
    """
    closed, nonzero_out = jvp_program(olympuspr, nonzeros, instantiate)
    return closed, list(nonzero_out)


def prune_closed_olympuspr_outputs(olympuspr: ClosedOlympuspr, used_outputs: Sequence[bool]
                                   ) -> ClosedOlympuspr:
    """The program with some of its outputs only, and with all of its equations.

    Args:
      olympuspr: a closed program.
      used_outputs: per output, whether it stays.

    Returns:
      A program of the same inputs.

    >>> program = olympus.make_olympuspr(lambda x: (x, x + 1))(1)
    >>> print(prune_closed_olympuspr_outputs(program, [True, False]))
    { lambda ; a:i32[]. let _:i32[] = add a 1:i32[] in (a,) }
    """
    return olympuspr.rearranged(outputs=[i for i, used in enumerate(used_outputs) if used])


def move_binders_to_back(closed_olympuspr: ClosedOlympuspr, to_move: Sequence[bool]
                         ) -> ClosedOlympuspr:
    """The program with some of its inputs last.

    Args:
      closed_olympuspr: a closed program.
      to_move: per input, whether it goes to the back; those that it says nothing of stay in front.

    Returns:
      A program of the same outputs.

    >>> program = olympus.make_olympuspr(lambda x, y: x - y)(1, 2)
    >>> print(move_binders_to_back(program, [True, False]))
    { lambda ; a:i32[] b:i32[]. let c:i32[] = sub b a in (c,) }
    """
    moved = [i for i, move in enumerate(to_move) if move]
    rest = [i for i in range(len(closed_olympuspr.invars)) if i not in moved]
    return closed_olympuspr.rearranged(inputs=[*rest, *moved])
