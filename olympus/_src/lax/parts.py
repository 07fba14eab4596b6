"""A value of a user's type as its parts, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.typing import Value
from ..core.ir import Literal
from ..core.trace import Tracer, typeof
from ..types.avals import Aval, ShapedArray
from .convert import convert_element_type_p


def part_types(aval: Aval) -> list[ShapedArray]:
    """The types of the parts of a value: of an array its own."""
    types: list[Any] = aval.lo_ty() if aval.is_high else [aval]
    return types


def parts_of(values: Sequence[Value]) -> list[Value]:
    """The parts of values, in a row."""
    parts: list[Value] = []
    for x in values:
        aval = typeof(x)
        if aval.is_high:
            parts += _lowered(aval, x)
        else:
            parts.append(x)
    return parts


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
        actual = typeof(part)
        if (actual.shape, actual.dtype) != (to.shape, to.dtype):
            raise TypeError(f"{type(aval).__name__}.lower_val: part {i} of a {type(x).__name__} is "
                            f"{actual}; lo_ty says {to} for values of type {aval}; equal shapes "
                            "and dtypes are required; convert the part where the value is made.")
        if actual.weak_type != to.weak_type or type(part) is Literal:
            parts[i] = convert_element_type_p.bind(
                part, new_dtype=to.dtype, weak_type=to.weak_type, sharding=None)
    return parts


def raised(avals: Sequence[Aval], parts: Sequence[Value]) -> list[Value]:
    """Values of these types, of the parts of all in a row."""
    remaining, values = iter(parts), []
    for aval in avals:
        mine = [next(remaining) for _ in part_types(aval)]
        values.append(aval.raise_val(*mine) if aval.is_high else mine[0])
    return values
