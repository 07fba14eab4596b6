"""Parts: a program with values of users' types becomes one on the arrays that they consist of.

    program     inputs  ────────────────────────────────────────────────►  results
    in parts    parts ── raise_val ─►  objects ── equations ─►  objects ── lower_val ─►  parts

The program runs under a `PartsTrace`: users' operations run on the objects (`Primitive.in_parts`),
operations with bodies are bound with bodies in parts, and all others are recorded unchanged. The
recording is the new program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..base.source import Source
from ..base.typing import Params, T, Value
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr, derived, numbers
from ..core.primitive import Primitive
from ..core.staging import ASK, StagingTrace, stage
from ..lax.parts import part_types, parts_of, raised
from ..types.avals import Aval


def counts(avals: Sequence[Aval]) -> list[int]:
    """The number of parts of values of these types."""
    return [len(aval.lo_ty()) if aval.is_high else 1 for aval in avals]


def repeated(xs: Sequence[T], avals: Sequence[Aval]) -> list[T]:
    """The item of each value, repeated for each of its parts."""
    return [x for x, n in zip(xs, counts(avals), strict=True) for _ in range(n)]


def bodies_in_parts(prim: Primitive, params: Params) -> Params:
    """The params, with each program in parts."""
    return {**params, **{name: in_parts(params[name]) for name in prim.programs or ()
                         if type(params[name]) is ClosedOlympuspr}}


def in_parts(closed: ClosedOlympuspr) -> ClosedOlympuspr:
    """The program on parts; `closed` itself if all its values are arrays."""
    if not closed.is_high:
        return closed
    return _in_parts(closed)


@derived
def _in_parts(closed: ClosedOlympuspr) -> ClosedOlympuspr:
    def program(*parts: Value) -> list[Value]:
        args = raised(closed.in_avals, parts)
        return parts_of(eval_closed(closed, *args))

    info, ins, outs = closed.debug_info, closed.in_avals, closed.out_avals
    if len(info.arg_names) == len(ins):
        info = info._replace(arg_names=tuple(repeated(info.arg_names, ins)))
    if len(info.result_paths) == len(outs):
        info = info._replace(result_paths=tuple(repeated(info.result_paths, outs)))
    return stage(program, [t for aval in ins for t in part_types(aval)], info, PartsTrace)


class PartsTrace(StagingTrace):
    """Records operations on arrays; users' operations run at once, on objects."""

    # Users' rules see objects, as in an evaluation, so operations that they bind run at once, too.
    __slots__ = ()

    def process(self, prim: Primitive, args: Sequence[Value], params: Params,
                line: Source | None = ASK) -> Value:
        if prim.programs != () and not any(body.is_high for body in prim.bodies(params)
                                           if type(body) is ClosedOlympuspr):
            return super().process(prim, args, params, line)
        if prim.in_parts is None:   # an operation on arrays; its programs, if any, go in parts
            return super().process(prim, args, bodies_in_parts(prim, params), line)
        return prim.in_parts(numbers(args), params)

    def process_custom(self, prim: Primitive, fun: Callable[..., Sequence[Value]], rules: object,
                       args: tuple[Value, ...], params: Params) -> Sequence[Value]:
        return fun(*args)       # derivatives were taken before, so no rule is needed
