"""The rules of all primitives as tables, and short ways to fill them, for outsiders' primitives.

    primitive_jvps[p] = rule(primals, tangents, **params) -> out, tangent
    primitive_transposes[p] = rule(ct, *args, **params) -> cotangents, None where not linear
    primitive_batchers[p] = rule(args, dims, **params) -> out, dim

The tables are views: reading gives the primitive's own method, assigning replaces it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..base.errors import RuleMissingError
from ..core.ir import ClosedOlympuspr, Olympuspr
from ..core.primitive import Axis, Linear, Primitive, RuleView, Zero
from ..core.trace import typeof
from ..lax.families import add
from ..lax.shape import broadcast_axis, instantiate, move_axis, zeros_of
from ..lax.sharding import constrain
from ..types.sharding import PartitionSpec
from .dce import dce_program

__all__ = ["add_tangents", "add_values", "axis_primitive_batchers", "bdim_at_front", "broadcast",
           "close_olympuspr", "convert_constvars_olympuspr", "dce_olympuspr",
           "dce_olympuspr_consts", "defbilinear", "defbroadcasting", "defjvp", "defjvp2",
           "deflinear", "deflinear2", "defreducer", "defvectorized", "fancy_primitive_batchers",
           "get_primitive_transpose", "instantiate_zeros", "is_undefined_primal",
           "primitive_batchers", "primitive_jvps", "primitive_transposes", "zeros_like_aval"]

# Differentiation

primitive_jvps = RuleView("jvp")
primitive_transposes = RuleView("transpose")


def is_undefined_primal(x: Any) -> bool:
    """Whether `x` stands, in a transpose rule, for an operand that the cotangent is wanted for."""
    return type(x) is Linear


def instantiate_zeros(tangent: Any) -> Any:
    """The tangent as an array: zeros are made if it is a symbolic `Zero`."""
    return instantiate(tangent)


def zeros_like_aval(aval: Any) -> Any:
    """An array of zeros of the aval's shape and dtype."""
    return zeros_of(aval)


def add_values(x: Any, y: Any) -> Any:
    """The sum of two arrays of one type."""
    return add(x, y)


def add_tangents(x: Any, y: Any) -> Any:
    """The sum of two tangents, either of which may be a symbolic `Zero`."""
    if type(x) is Zero:
        return y
    return x if type(y) is Zero else add(x, y)


def get_primitive_transpose(p: Primitive) -> Callable[..., Any]:
    """The transpose rule of a primitive; RuleMissingError if it has none."""
    rule = primitive_transposes.get(p)
    if rule is None:
        raise RuleMissingError(f"get_primitive_transpose: {p} given; it has no transpose rule; "
                               f"define one with primitive_transposes[{p}_p] = rule.")
    return rule


def _sum_tangents(terms: Sequence[Any], out: Any) -> Any:
    total: Any = Zero(typeof(out).to_tangent_aval())
    for term in terms:
        total = add_tangents(total, term)
    return total


def defjvp(primitive: Primitive, *jvprules: Callable[..., Any] | None) -> None:
    """Define the derivative of a one-result primitive by operand.

    Args:
      primitive: the primitive.
      *jvprules: per operand, `rule(tangent, *primals, **params)`, the operand's term of the
        result's tangent, or None where there is none.
    """
    defjvp2(primitive, *[_without_result(rule) for rule in jvprules])


def _without_result(rule: Callable[..., Any] | None) -> Callable[..., Any] | None:
    if rule is None:
        return None
    return lambda tangent, out, *primals, **params: rule(tangent, *primals, **params)


def defjvp2(primitive: Primitive, *jvprules: Callable[..., Any] | None) -> None:
    """`defjvp` with rules that get the result too: `rule(tangent, result, *primals, **params)`."""
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        if len(jvprules) != len(tangents):
            raise TypeError(f"{primitive}: defjvp was given {len(jvprules)} rules; one for each of "
                            f"{len(tangents)} operands is required, None where there is none.")
        terms = [rule(t, out, *primals, **params)
                 for rule, t in zip(jvprules, tangents, strict=True)
                 if rule is not None and type(t) is not Zero]
        return out, _sum_tangents(terms, out)

    primitive_jvps[primitive] = jvp


def deflinear(primitive: Primitive, transpose_rule: Callable[..., Any]) -> None:
    """Declare a primitive linear in all operands; `transpose_rule(ct, **params)` -> cotangents."""
    deflinear2(primitive, lambda ct, *args, **params: transpose_rule(ct, **params))


def deflinear2(primitive: Primitive, transpose_rule: Callable[..., Any]) -> None:
    """`deflinear` with a rule that gets the operands too: `transpose_rule(ct, *args, **params)`."""
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        return (primitive.bind(*primals, **params),
                primitive.bind(*map(instantiate, tangents), **params))

    primitive_jvps[primitive] = jvp
    primitive_transposes[primitive] = transpose_rule


def defbilinear(prim: Primitive, lhs_rule: Callable[..., Any],
                rhs_rule: Callable[..., Any]) -> None:
    """Declare a primitive of two operands linear in each.

    Args:
      prim: the primitive.
      lhs_rule, rhs_rule: `rule(ct, x, y, **params)`, the cotangent of the left or right operand,
        which is given as `UndefinedPrimal`.
    """
    def transpose(ct: Any, x: Any, y: Any, **params: Any) -> tuple[Any, Any]:
        if is_undefined_primal(x):
            return lhs_rule(ct, x, y, **params), None
        return None, rhs_rule(ct, x, y, **params)

    defjvp(prim, lambda t, x, y, **params: prim.bind(t, y, **params),
           lambda t, x, y, **params: prim.bind(x, t, **params))
    primitive_transposes[prim] = transpose


# vmap


# A wrapper of a class of its own instead of a closure: the table knows it again, and reading gives
# the very rule that was assigned.
class _Batcher:
    """A rule that does not ask for the axis, in the form that primitives have."""

    __slots__ = ("rule",)

    def __init__(self, rule: Callable[..., Any]) -> None:
        self.rule = rule

    def __call__(self, axis: Axis, args: Sequence[Any], dims: Sequence[Any],
                 **params: Any) -> Any:
        return self.rule(args, dims, **params)


def _show_batcher(prim: Primitive, rule: Any) -> Callable[..., Any]:
    if type(rule) is _Batcher:
        return rule.rule

    def batcher(args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
        size = next(typeof(x).shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
        return rule(Axis(size), args, dims, **params)

    return batcher


primitive_batchers = RuleView("vmap", _show_batcher, _Batcher)
fancy_primitive_batchers = RuleView("vmap")     # rule(axis, args, dims, **params)


class _AxisBatcher:
    """A rule that gets the axis in parts, in the form that primitives have."""

    __slots__ = ("rule",)

    def __init__(self, rule: Callable[..., Any]) -> None:
        self.rule = rule

    def __call__(self, axis: Axis, args: Sequence[Any], dims: Sequence[Any],
                 **params: Any) -> Any:
        return self.rule(axis.size, axis.name, None, args, dims, **params)


def _show_axis_batcher(prim: Primitive, rule: Any) -> Callable[..., Any]:
    if type(rule) is _AxisBatcher:
        return rule.rule
    return lambda size, name, trace_type, args, dims, **params: rule(
        Axis(size, name), args, dims, **params)


# rule(axis_size, axis_name, trace_type, args, dims, **params)
axis_primitive_batchers = RuleView("vmap", _show_axis_batcher, _AxisBatcher)


def bdim_at_front(x: Any, bdim: int | None, size: int, mesh_axis: Any = None) -> Any:
    """`x` with its mapped axis first; repeated `size` times along a new one if it has none."""
    return broadcast(x, size, 0, mesh_axis) if bdim is None else move_axis(x, bdim, 0)


def broadcast(x: Any, sz: int, axis: int, mesh_axis: Any) -> Any:
    """`x` repeated `sz` times along a new axis, cut along an axis of the mesh around if given."""
    out = broadcast_axis(x, sz, axis)
    if mesh_axis is None:
        return out
    spec: list[Any] = [PartitionSpec.UNCONSTRAINED] * typeof(out).ndim
    spec[axis] = mesh_axis
    return constrain("broadcast", out, PartitionSpec(*spec))


def defvectorized(prim: Primitive) -> None:
    """Declare that a primitive works along any further axis, the same one in all operands."""
    def batcher(args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
        if any(d != dims[0] for d in dims):
            raise ValueError(f"vmap: {prim}, which is declared vectorized, given mapped axes "
                             f"{tuple(dims)}; the same axis of every operand is required; declare "
                             "it with defbroadcasting.")
        out = prim.bind(*args, **params)
        return (out, [dims[0]] * len(out)) if prim.multiple_results else (out, dims[0])

    primitive_batchers[prim] = batcher


def defbroadcasting(prim: Primitive) -> None:
    """Declare a primitive elementwise: operands that are not mapped are repeated."""
    def batcher(axis: Axis, args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
        args = [bdim_at_front(x, d, axis.size) for x, d in zip(args, dims, strict=True)]
        out = prim.bind(*args, **params)
        return (out, [0] * len(out)) if prim.multiple_results else (out, 0)

    fancy_primitive_batchers[prim] = batcher


def defreducer(prim: Primitive) -> None:
    """Declare that a primitive of one operand removes the axes of its parameter `axes`."""
    def batcher(args: Sequence[Any], dims: Sequence[Any], *, axes: Sequence[int],
                **params: Any) -> Any:
        (x,), (dim,) = args, dims
        moved = tuple(a + (a >= dim) for a in axes)
        return prim.bind(x, axes=moved, **params), dim - sum(a < dim for a in moved)

    primitive_batchers[prim] = batcher


# Programs


def dce_olympuspr(olympuspr: Olympuspr, used_outputs: Sequence[bool],
                  instantiate: bool | Sequence[bool] = False
                  ) -> tuple[Olympuspr, list[bool]]:
    """The program without what `used_outputs` do not need, and which inputs it still takes.

    Args:
      olympuspr: a program without constvars.
      used_outputs: per output, whether it is wanted; the others are dropped.
      instantiate: whether inputs (all, or per input) are kept even if nothing reads them.
    """
    pr, _, used = dce_olympuspr_consts(convert_constvars_olympuspr(olympuspr), used_outputs,
                                       instantiate)
    return pr, used


def dce_olympuspr_consts(olympuspr: Olympuspr, used_outputs: Sequence[bool],
                         instantiate: bool | Sequence[bool] = False
                         ) -> tuple[Olympuspr, list[bool], list[bool]]:
    """`dce_olympuspr` of a program with constvars: (program, used constvars, used inputs)."""
    keep = [instantiate] * len(olympuspr.invars) if isinstance(instantiate, bool) else instantiate
    pr, used_consts, used_in = dce_program(olympuspr, used_outputs)
    used = [u or k for u, k in zip(used_in, keep, strict=True)]
    invars = [v for v, u in zip(pr.invars, used, strict=True) if u]
    return pr.replace(invars=invars), used_consts, used


def convert_constvars_olympuspr(olympuspr: Olympuspr) -> Olympuspr:
    """The program with its constvars as leading inputs."""
    if not olympuspr.constvars:
        return olympuspr
    return olympuspr.replace(constvars=[], invars=[*olympuspr.constvars, *olympuspr.invars])


def close_olympuspr(olympuspr: Olympuspr) -> ClosedOlympuspr:
    """A program without constvars as a closed one."""
    return ClosedOlympuspr(olympuspr)
