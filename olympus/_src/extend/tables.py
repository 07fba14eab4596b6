"""The rules of all primitives as tables, and short ways to fill them, for outsiders' primitives.

    primitive_jvps[p] = rule(primals, tangents, **params) -> out, tangent
    primitive_transposes[p] = rule(ct, *args, **params) -> cotangents, None where not linear
    primitive_batchers[p] = rule(args, dims, **params) -> out, dim

The tables are views: reading gives the primitive's own method, assigning replaces it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

from ..base.errors import RuleMissingError
from ..base.typing import Array, ArrayLike, PyTree
from ..core.ir import ClosedOlympuspr, Olympuspr, OlympusprEqn
from ..core.primitive import (
    Axis, Cotangent, Higher, Linear, Primitive, RuleView, Tangent, Transposed, Zero,
)
from ..core.trace import typeof
from ..interpreters.dce import dce_program
from ..lax.families import add
from ..lax.shape import broadcast_axis, instantiate, move_axis, zeros_of
from ..lax.sharding import constrain
from ..types.avals import ShapedArray
from ..types.sharding import PartitionSpec

TangentRule: TypeAlias = Callable[..., Array]     # (tangent, *operands, **params) -> tangent
TransposeRule: TypeAlias = Callable[..., Sequence[Cotangent]]
# A result and its mapped axis, or lists of these; and a rule that returns such.
Batched: TypeAlias = tuple[Any, Any]
BatchRule: TypeAlias = Callable[..., Batched]
DceRule: TypeAlias = Callable[..., tuple[Sequence[bool], OlympusprEqn | None]]

# Differentiation

primitive_jvps = RuleView("jvp")
primitive_transposes = RuleView("transpose")


def is_undefined_primal(x: object) -> bool:
    """Whether `x` stands, in a transpose rule, for an operand that the cotangent is wanted for.

    Args: x: an operand, as a transpose rule gets it.

    >>> ad.is_undefined_primal(1.0)
    False
    """
    return type(x) is Linear


def instantiate_zeros(tangent: Tangent) -> Array:
    """The tangent as an array: zeros are made if it is a symbolic `Zero`.

    Args: tangent: an array or a `Zero`.

    >>> print(ad.instantiate_zeros(ad.Zero(olympus.typeof(1.0))))
    0.0
    """
    return instantiate(tangent)


def zeros_like_aval(aval: ShapedArray) -> ArrayLike:
    """An array of zeros of the aval's shape and dtype.

    Args: aval: an array's aval.

    >>> print(ad.zeros_like_aval(olympus.core.ShapedArray((2,), "int32")))
    [0 0]
    """
    return zeros_of(aval)


def add_values(x: ArrayLike, y: ArrayLike) -> Array:
    """The sum of two arrays of one type.

    Args:
      x, y: arrays of the same shape and dtype.

    Returns:
      Their sum, of that shape and dtype.

    >>> from olympus.interpreters import ad
    >>> print(ad.add_olympusvals(1.0, 2.0))
    3.0
    """
    return add(x, y)


def add_tangents(x: Tangent, y: Tangent) -> Tangent:
    """The sum of two tangents; either may be a symbolic `Zero`.

    Args: x, y: arrays of the same shape and dtype, or `Zero`.
    Returns: The sum; a `Zero` if both are.

    >>> ad.add_tangents(ad.Zero(olympus.typeof(1.0)), 2.0)
    2.0
    """
    if type(x) is Zero:
        return y
    return x if type(y) is Zero else add(x, y)


def get_primitive_transpose(p: Primitive) -> Callable[..., Sequence[Cotangent]]:
    """The transpose rule of a primitive; RuleMissingError if it has none.

    Args: p: the primitive.

    Returns:
      A function of the result's cotangent and the operands that gives the operands' cotangents.

    >>> rule = ad.get_primitive_transpose(olympus.lax.neg_p)
    >>> print(rule(2.0, ad.UndefinedPrimal(olympus.typeof(1.0))))
    [Array(-2., dtype=float32, weak_type=True)]
    """
    rule = primitive_transposes.get(p)
    if rule is None:
        raise RuleMissingError(f"get_primitive_transpose: {p} given; it has no transpose rule; "
                               f"define one with primitive_transposes[{p}_p] = rule.")
    return rule


def _sum_tangents(terms: Sequence[Tangent], out: Array) -> Tangent:
    total: Tangent = Zero(typeof(out).to_tangent_aval())
    for term in terms:
        total = add_tangents(total, term)
    return total


def defjvp(primitive: Primitive, *jvprules: TangentRule | None) -> None:
    """Define the derivative of a one-result primitive by operand.

    Args:
      primitive: the primitive.
      *jvprules: per operand, `rule(tangent, *primals, **params)`, the operand's term of the
        result's tangent, or None where there is none.

    >>> from olympus.extend.core import Primitive
    >>> p = Primitive("square")
    >>> _ = p.def_impl(lambda x: x * x), p.def_abstract_eval(lambda x: x)
    >>> ad.defjvp(p, lambda tangent, x: 2 * x * tangent)
    >>> primal, tangent = olympus.jvp(p.bind, (3.0,), (1.0,))
    >>> print(primal, tangent)
    9.0 6.0
    """
    defjvp2(primitive, *[_without_result(rule) for rule in jvprules])


def _without_result(rule: TangentRule | None) -> TangentRule | None:
    if rule is None:
        return None
    return lambda tangent, out, *primals, **params: rule(tangent, *primals, **params)


def defjvp2(primitive: Primitive, *jvprules: TangentRule | None) -> None:
    """`defjvp` with rules that get the result too: `rule(tangent, result, *primals, **params)`.

    Args:
      primitive: the primitive.
      *jvprules: per operand, its rule, or None where there is none.

    >>> from olympus.extend.core import Primitive
    >>> p = Primitive("exponential")
    >>> _ = p.def_impl(olympus.lax.exp), p.def_abstract_eval(lambda x: x)
    >>> ad.defjvp2(p, lambda tangent, result, x: tangent * result)
    >>> primal, tangent = olympus.jvp(p.bind, (0.0,), (2.0,))
    >>> print(primal, tangent)
    1.0 2.0
    """
    def jvp(primals: Sequence[ArrayLike], tangents: Sequence[Tangent], **params: Hashable
            ) -> tuple[Array, Tangent]:
        out = primitive.bind(*primals, **params)
        if len(jvprules) != len(tangents):
            raise TypeError(f"{primitive}: defjvp was given {len(jvprules)} rules; one for each of "
                            f"{len(tangents)} operands is required, None where there is none.")
        terms = [rule(t, out, *primals, **params)
                 for rule, t in zip(jvprules, tangents, strict=True)
                 if rule is not None and type(t) is not Zero]
        return out, _sum_tangents(terms, out)

    primitive_jvps[primitive] = jvp


def deflinear(primitive: Primitive, transpose_rule: TransposeRule) -> None:
    """Declare a primitive linear in all operands; `transpose_rule(ct, **params)` -> cotangents.

    Args:
      primitive: the primitive.
      transpose_rule: takes the cotangent of the result; returns one per operand.

    >>> from olympus.extend.core import Primitive
    >>> p = Primitive("triple")
    >>> _ = p.def_impl(lambda x: 3 * x), p.def_abstract_eval(lambda x: x)
    >>> ad.deflinear(p, lambda ct: [3 * ct])
    >>> print(olympus.grad(p.bind)(5.0))
    3.0
    """
    deflinear2(primitive, lambda ct, *args, **params: transpose_rule(ct, **params))


def deflinear2(primitive: Primitive, transpose_rule: TransposeRule) -> None:
    """`deflinear` with a rule that gets the operands too: `transpose_rule(ct, *args, **params)`.

    Args:
      primitive: the primitive.
      transpose_rule: takes the cotangent of the result and the operands, those that a cotangent
        is wanted for as `UndefinedPrimal`; returns one cotangent per operand.

    >>> from olympus.extend.core import Primitive
    >>> p = Primitive("opposite")
    >>> _ = p.def_impl(lambda x: -x), p.def_abstract_eval(lambda x: x)
    >>> ad.deflinear2(p, lambda ct, x: [-ct])
    >>> print(olympus.grad(p.bind)(5.0))
    -1.0
    """
    def jvp(primals: Sequence[ArrayLike], tangents: Sequence[Tangent], **params: Hashable
            ) -> tuple[Array, Tangent]:
        return (primitive.bind(*primals, **params),
                primitive.bind(*map(instantiate, tangents), **params))

    primitive_jvps[primitive] = jvp
    primitive_transposes[primitive] = transpose_rule


def defbilinear(prim: Primitive, lhs_rule: Callable[..., Array],
                rhs_rule: Callable[..., Array]) -> None:
    """Declare a primitive of two operands linear in each.

    Args:
      prim: the primitive.
      lhs_rule, rhs_rule: `rule(ct, x, y, **params)`, the cotangent of the left or right operand,
        which is given as `UndefinedPrimal`.

    >>> from olympus.extend.core import Primitive
    >>> p = Primitive("product")
    >>> _ = p.def_impl(lambda x, y: x * y), p.def_abstract_eval(lambda x, y: x)
    >>> ad.defbilinear(p, lambda ct, x, y: ct * y, lambda ct, x, y: ct * x)
    >>> primal, tangent = olympus.jvp(lambda x: p.bind(x, 3.0), (2.0,), (1.0,))
    >>> print(primal, tangent)
    6.0 3.0
    """
    def transpose(ct: Array, x: Transposed, y: Transposed, **params: Hashable
                  ) -> tuple[Cotangent, Cotangent]:
        if is_undefined_primal(x):
            return lhs_rule(ct, x, y, **params), None
        return None, rhs_rule(ct, x, y, **params)

    defjvp(prim, lambda t, x, y, **params: prim.bind(t, y, **params),
           lambda t, x, y, **params: prim.bind(x, t, **params))
    primitive_transposes[prim] = transpose


# Partial evaluation

class _PartialEval:
    """A rule that tells operands apart itself, in the form that primitives have."""

    __slots__ = ("rule",)

    def __init__(self, rule: Callable[..., PyTree]) -> None:
        self.rule = rule

    def __call__(self, tape: object, args: Sequence[Array], unknown: Sequence[bool],
                 **params: Hashable) -> PyTree:
        return self.rule(tape, *args, **params)


def _show_partial_eval(prim: Primitive, rule: Callable[..., PyTree]) -> Callable[..., PyTree]:
    if type(rule) is _PartialEval:
        return rule.rule
    return lambda trace, *args, **params: rule(trace, args, [*map(trace.owns, args)], **params)


# rule(trace, *operands, **params) -> result, or a list: unknown operands are tracers of the trace,
# for which `trace.record(p, operands, params)` records an equation; the others are known.
custom_partial_eval_rules = RuleView("partial_eval", _show_partial_eval, _PartialEval)
# For what others enter there: `checkpoint` runs programs to cut them, by the rules above.
partial_eval_olympuspr_custom_rules: dict[Primitive, Callable[..., object]] = {}


# vmap


# A wrapper of a class of its own instead of a closure: the table knows it again, and reading gives
# the very rule that was assigned.
class _Batcher:
    """A batching rule without an argument for the axis, in the form of `Primitive.vmap`."""

    __slots__ = ("rule",)

    def __init__(self, rule: BatchRule) -> None:
        self.rule = rule

    def __call__(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None],
                 **params: Hashable) -> Batched:
        return self.rule(args, dims, **params)


def _show_batcher(prim: Primitive, rule: Any) -> BatchRule:
    if type(rule) is _Batcher:
        return rule.rule

    def batcher(args: Sequence[Array], dims: Sequence[int | None], **params: object) -> Batched:
        size = next(typeof(x).shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
        return rule(Axis(size), args, dims, **params)

    return batcher


primitive_batchers = RuleView("vmap", _show_batcher, _Batcher)
fancy_primitive_batchers = RuleView("vmap")     # rule(axis, args, dims, **params)


class _AxisBatcher(_Batcher):
    """A batching rule of the axis's size and name, in the form of `Primitive.vmap`."""

    __slots__ = ()

    def __call__(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None],
                 **params: Hashable) -> Batched:
        return self.rule(axis.size, axis.name, None, args, dims, **params)


def _show_axis_batcher(prim: Primitive, rule: Any) -> BatchRule:
    if type(rule) is _AxisBatcher:
        return rule.rule
    return lambda size, name, trace_type, args, dims, **params: rule(
        Axis(size, name), args, dims, **params)


# rule(axis_size, axis_name, trace_type, args, dims, **params)
axis_primitive_batchers = RuleView("vmap", _show_axis_batcher, _AxisBatcher)


def bdim_at_front(x: ArrayLike, bdim: int | None, size: int, mesh_axis: Hashable = None) -> Array:
    """`x` with its mapped axis first; repeated `size` times along a new one if it has none.

    Args:
      x: an array.
      bdim: its mapped axis, or None.
      size: the size of the mapped axis.
      mesh_axis: the mesh axis that a new axis is cut along, or None.
    Returns: An array whose axis 0 has that size.

    >>> batching.bdim_at_front(onp.ones((2, 3)), 1, 3).shape
    (3, 2)
    >>> batching.bdim_at_front(onp.ones(2), None, 3).shape
    (3, 2)
    """
    return broadcast(x, size, 0, mesh_axis) if bdim is None else move_axis(x, bdim, 0)


def broadcast(x: ArrayLike, sz: int, axis: int, mesh_axis: Hashable) -> Array:
    """`x` repeated `sz` times along a new axis, cut along an axis of the ambient mesh if given.

    Args:
      x: an array.
      sz: the size of the new axis.
      axis: its position in the result.
      mesh_axis: the mesh axis that it is cut along, or None.
    Returns: An array with one axis more.

    >>> print(batching.broadcast(onp.arange(2), 3, 1, None))
    [[0 0 0]
     [1 1 1]]
    """
    out = broadcast_axis(x, sz, axis)
    if mesh_axis is None:
        return out
    spec: list[Any] = [PartitionSpec.UNCONSTRAINED] * typeof(out).ndim
    spec[axis] = mesh_axis
    return constrain("broadcast", out, PartitionSpec(*spec))


def defvectorized(prim: Primitive) -> None:
    """Declare that a primitive works along any further axis, the same one in all operands.

    Args: prim: the primitive; all its operands have to be mapped, along the same axis.

    >>> from olympus.extend.core import Primitive
    >>> p = Primitive("successor")
    >>> _ = p.def_impl(lambda x: x + 1)
    >>> batching.defvectorized(p)
    >>> print(olympus.vmap(p.bind)(onp.arange(3)))
    [1 2 3]
    """
    def batcher(args: Sequence[Array], dims: Sequence[int | None], **params: Hashable) -> Batched:
        if any(d != dims[0] for d in dims):
            raise ValueError(f"vmap: {prim}, which is declared vectorized, given mapped axes "
                             f"{tuple(dims)}; the same axis of every operand is required; declare "
                             "it with defbroadcasting.")
        out = prim.bind(*args, **params)
        return (out, [dims[0]] * len(out)) if prim.multiple_results else (out, dims[0])

    primitive_batchers[prim] = batcher


def defbroadcasting(prim: Primitive) -> None:
    """Declare a primitive elementwise: operands that are not mapped are repeated.

    Args: prim: the primitive; its operands have one shape, or are mapped over to have it.

    >>> from olympus.extend.core import Primitive
    >>> p = Primitive("plus")
    >>> _ = p.def_impl(lambda x, y: x + y), p.def_abstract_eval(lambda x, y: x)
    >>> batching.defbroadcasting(p)
    >>> print(olympus.vmap(p.bind, in_axes=(0, None))(onp.arange(3), onp.int32(10)))
    [10 11 12]
    """
    def batcher(axis: Axis, args: Sequence[Array], dims: Sequence[int | None], **params: object
                ) -> Batched:
        args = [bdim_at_front(x, d, axis.size) for x, d in zip(args, dims, strict=True)]
        out = prim.bind(*args, **params)
        return (out, [0] * len(out)) if prim.multiple_results else (out, 0)

    fancy_primitive_batchers[prim] = batcher


def defreducer(prim: Primitive) -> None:
    """Declare that a primitive of one operand removes the axes of its parameter `axes`.

    Args: prim: the primitive; `axes` holds positions, none negative.

    >>> from olympus.extend.core import Primitive
    >>> p = Primitive("total")
    >>> _ = p.def_impl(lambda x, axes: onp.sum(x, axes))
    >>> batching.defreducer(p)
    >>> print(olympus.vmap(lambda x: p.bind(x, axes=(0,)))(onp.arange(6).reshape(2, 3)))
    [ 3 12]
    """
    def batcher(args: Sequence[Array], dims: Sequence[int], *, axes: Sequence[int],
                **params: object) -> Batched:
        (x,), (dim,) = args, dims
        moved = tuple(a + (a >= dim) for a in axes)
        return prim.bind(x, axes=moved, **params), dim - sum(a < dim for a in moved)

    primitive_batchers[prim] = batcher


# Programs


def _show_dce(prim: Primitive, rule: Callable[..., OlympusprEqn]) -> DceRule:
    if type(rule) is _Dce:
        return rule.rule

    def dce_rule(used: Sequence[bool], eqn: OlympusprEqn, *older: OlympusprEqn
                 ) -> tuple[list[bool], OlympusprEqn | None]:
        return _dce_by(rule, used, older[0] if older else eqn)

    return dce_rule


def _dce_by(rule: Callable[..., OlympusprEqn], used: Sequence[bool], eqn: OlympusprEqn
            ) -> tuple[list[bool], OlympusprEqn | None]:
    """Which operands an equation still reads, by a rule that gives the equation; None if it goes.
    """
    if not any(used) and not any(e.keeps for e in eqn.effects):
        return [False] * len(eqn.invars), None
    new = rule([*used], eqn)
    rest = list(new.invars)     # some of the operands, in their order
    return [bool(rest) and rest[0] is v and rest.pop(0) is v for v in eqn.invars], new


class _Dce:
    """A rule of dead code in the form that primitives have."""

    __slots__ = ("rule",)

    def __init__(self, rule: DceRule) -> None:
        self.rule = rule

    def __call__(self, used: Sequence[bool], eqn: OlympusprEqn) -> OlympusprEqn:
        # The newer form of the rule has the flags of operands besides.
        two = len(inspect.signature(self.rule).parameters) > 2
        new = self.rule([*used], *([[True] * len(eqn.invars)] if two else []), eqn)[1]
        return eqn if new is None else new


# rule(used_outputs, eqn), or rule(used_outputs, live_ins, eqn) -> used_ins, equation or None. It is
# asked where some results are used, and some are not.
dce_rules = RuleView("dce", _show_dce, _Dce)


def dce_olympuspr_call_rule(used_outputs: Sequence[bool], eqn: OlympusprEqn
                            ) -> tuple[list[bool], OlympusprEqn | None]:
    """The rule of dead code of an equation that calls a program.

    Args:
      used_outputs: per result, whether it is wanted.
      eqn: an equation of a call.
    Returns: A bool per operand, whether it is still read, and the equation without the rest; None
      for an equation that nothing reads.

    >>> from olympus.interpreters import partial_eval as pe
    >>> f = olympus.jit(lambda x, y: (x + 1, y * 2))
    >>> eqn, = olympus.make_olympuspr(lambda x, y: f(x, y))(1.0, 1.0).eqns
    >>> used, eqn = pe.dce_olympuspr_call_rule([True, False], eqn)
    >>> used, len(eqn.outvars)
    ([True, False], 1)
    """
    if not isinstance(eqn.primitive, Higher):
        raise TypeError(f"dce_olympuspr_call_rule: an equation of {eqn.primitive} given; one that "
                        "calls a program is required.")
    return _dce_by(eqn.primitive.dce, used_outputs, eqn)


def dce_olympuspr(olympuspr: Olympuspr, used_outputs: Sequence[bool],
                  instantiate: bool | Sequence[bool] = False
                  ) -> tuple[Olympuspr, list[bool]]:
    """The program without what `used_outputs` do not need, and which inputs it still takes.

    Args:
      olympuspr: a program; it keeps its constvars.
      used_outputs: per output, whether it is wanted; the others are dropped.
      instantiate: whether inputs (all, or per input) are kept even if nothing reads them.
    Returns: The smaller program, and a bool per input: whether it is still one.

    >>> from olympus.interpreters import partial_eval as pe
    >>> closed = olympus.make_olympuspr(lambda x, y: (x + 1, y * 2))(1.0, 1.0)
    >>> program, used = pe.dce_olympuspr(closed.olympuspr, [True, False])
    >>> len(program.eqns), used
    (1, [True, False])
    """
    pr, _, used = dce_olympuspr_consts(olympuspr, used_outputs, instantiate)
    return pr.replace(constvars=olympuspr.constvars), used


def dce_olympuspr_consts(olympuspr: Olympuspr, used_outputs: Sequence[bool],
                         instantiate: bool | Sequence[bool] = False
                         ) -> tuple[Olympuspr, list[bool], list[bool]]:
    """`dce_olympuspr` of a program with constvars: (program, used constvars, used inputs).

    Args:
      olympuspr: a program.
      used_outputs: per output, whether it is wanted; the others are dropped.
      instantiate: whether inputs (all, or per input) are kept even if nothing reads them.

    Returns:
      The smaller program, and lists of bools: which constvars and which inputs it still takes.

    >>> from olympus.interpreters import partial_eval as pe
    >>> closed = olympus.make_olympuspr(lambda x, y: (x + 1, y * 2))(1.0, 1.0)
    >>> program, used_consts, used = pe.dce_olympuspr_consts(closed.olympuspr, [True, False], True)
    >>> len(program.eqns), used_consts, used
    (1, [], [True, True])
    """
    keep = [instantiate] * len(olympuspr.invars) if isinstance(instantiate, bool) else instantiate
    pr, used_consts, used_in = dce_program(olympuspr, used_outputs)
    used = [u or k for u, k in zip(used_in, keep, strict=True)]
    invars = [v for v, u in zip(pr.invars, used, strict=True) if u]
    return pr.replace(invars=invars), used_consts, used


def convert_constvars_olympuspr(olympuspr: Olympuspr) -> Olympuspr:
    """The program with its constvars as leading inputs.

    Args: olympuspr: an open program.
    Returns: A program without constvars.

    >>> from olympus.interpreters import partial_eval as pe
    >>> table = onp.arange(3)
    >>> program = olympus.make_olympuspr(lambda x: x + table)(1).olympuspr
    >>> len(program.invars), len(pe.convert_constvars_olympuspr(program).invars)
    (1, 2)
    """
    if not olympuspr.constvars:
        return olympuspr
    return olympuspr.replace(constvars=[], invars=[*olympuspr.constvars, *olympuspr.invars])


def close_olympuspr(olympuspr: Olympuspr) -> ClosedOlympuspr:
    """A program without constvars as a closed one.

    Args: olympuspr: an open program that needs no constants.

    >>> from olympus.interpreters import partial_eval as pe
    >>> program = olympus.make_olympuspr(lambda x: x + 1)(1).olympuspr
    >>> pe.close_olympuspr(program).consts
    []
    """
    return ClosedOlympuspr(olympuspr)
