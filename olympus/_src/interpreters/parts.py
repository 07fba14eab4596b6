"""Parts: a program with values of users' types as one of arrays, in which each is its parts.

    program     inputs  ────────────────────────────────────────────────►  results
    in parts    parts ── raise_val ─►  objects ── equations ─►  objects ── lower_val ─►  parts

The program runs under a `PartsTrace`: an operation of a user runs on the objects
(`Primitive.in_parts`), one with bodies is bound with bodies in parts, and every other one is
recorded as it is. What is recorded is the new program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..base.source import Source
from ..base.typing import Params, T, Value
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr, Literal, derived, numbers
from ..core.primitive import Primitive
from ..core.staging import ASK, StagingTrace, stage
from ..core.trace import Tracer, typeof
from ..lax.convert import convert_element_type_p
from ..types.avals import Aval, ShapedArray


def part_types(aval: Aval) -> list[ShapedArray]:
    """The types of the parts of a value: of an array its own."""
    types: list[Any] = aval.lo_ty() if aval.is_high else [aval]
    return types


def counts(avals: Sequence[Aval]) -> list[int]:
    """How many parts values of these types have."""
    return [len(aval.lo_ty()) if aval.is_high else 1 for aval in avals]


def repeated(xs: Sequence[T], avals: Sequence[Aval]) -> list[T]:
    """One thing for each value, as one for each part."""
    return [x for x, n in zip(xs, counts(avals), strict=True) for _ in range(n)]


def parts_of(values: Sequence[Value]) -> list[Value]:
    """The parts of values, in a row."""
    found: list[Value] = []
    for x in values:
        aval = typeof(x)
        if aval.is_high:
            found += _lowered(aval, x)
        else:
            found.append(x)
    return found


def _lowered(aval: Aval, x: object) -> list[Value]:
    """The parts of one value, checked."""
    if isinstance(x, Tracer):
        raise TypeError(f"parts: a traced value {aval} given where an object is required; a rule "
                        "of an operation returned it, or a rule was called outside of its trace.")
    parts, wanted = list(aval.lower_val(x)), part_types(aval)
    if len(parts) != len(wanted):
        raise TypeError(f"{type(aval).__name__}.lower_val: {len(parts)} parts returned for a "
                        f"{type(x).__name__}; {len(wanted)} are required, of the types that lo_ty "
                        f"returns: {', '.join(map(str, wanted))}.")
    for i, (part, to) in enumerate(zip(parts, wanted, strict=True)):
        found = typeof(part)
        if (found.shape, found.dtype) != (to.shape, to.dtype):
            raise TypeError(f"{type(aval).__name__}.lower_val: part {i} of a {type(x).__name__} is "
                            f"{found}; lo_ty says {to} for values of type {aval}; equal shapes "
                            "and dtypes are required; convert the part where the value is made.")
        if found.weak_type != to.weak_type or type(part) is Literal:
            parts[i] = convert_element_type_p.bind(
                part, new_dtype=to.dtype, weak_type=to.weak_type, sharding=None)
    return parts


def raised(avals: Sequence[Aval], parts: Sequence[Value]) -> list[Value]:
    """Values of these types, of the parts of all in a row."""
    given, found = iter(parts), []
    for aval in avals:
        mine = [next(given) for _ in part_types(aval)]
        found.append(aval.raise_val(*mine) if aval.is_high else mine[0])
    return found


def bodies_in_parts(prim: Primitive, params: Params) -> Params:
    """The params with each program in parts."""
    return {**params, **{name: in_parts(params[name]) for name in prim.programs or ()
                         if type(params[name]) is ClosedOlympuspr}}


def in_parts(closed: ClosedOlympuspr) -> ClosedOlympuspr:
    """The program on parts; itself if it has no other values than arrays."""
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

    # So do those that their rules bind: to a rule a value is an object, as where it is evaluated.
    __slots__ = ()

    def process(self, prim: Primitive, args: Sequence[Value], params: Params,
                line: Source | None = ASK) -> Value:
        if prim.programs != () and not any(body.is_high for body in prim.bodies(params)
                                           if type(body) is ClosedOlympuspr):
            return super().process(prim, args, params, line)
        if prim.in_parts is None:   # of arrays, with programs that combine elements, if any
            return super().process(prim, args, bodies_in_parts(prim, params), line)
        return prim.in_parts(numbers(args), params)

    def process_custom(self, prim: Primitive, fun: Callable[..., Sequence[Value]], rules: object,
                       args: tuple[Value, ...], params: Params) -> Sequence[Value]:
        return fun(*args)       # it has been differentiated
