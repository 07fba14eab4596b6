"""Families of elementwise primitives: several rules from one line of facts.

A line names the operation, its StableHLO op, the kinds of dtype it takes, and per operand the
tangent `(t, out, *operands, **params) -> tangent of out`, or None where that is zero. Operands have
one shape, or are rank-0 literals.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from operator import attrgetter
from typing import Any, Unpack

import numpy as np

from ..base.typing import Array, ArrayLike, DType, IrValue, StaticScalar
from ..base.util import memoize
from ..core import reuse, tags
from ..core.facts import GivenFacts
from ..core.primitive import Axis, Builder, Cotangent, Linear, Primitive, Tangent, Zero, not_linear
from ..core.trace import is_literal, literal, typeof
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from .accuracy import AccuracyLike, AccuracyMode, accuracy_attributes, check_accuracy
from .shape import (
    broadcast_axis, broadcast_in_dim, broadcast_in_dim_p, broadcast_scalar, move_axis, reduce_sum,
)

Partial = Callable[..., Any]     # (t, out, *operands, **params) -> a part of the tangent, or None
Combine = Callable[[Array, Array], Array]
Identity = Callable[[DType], StaticScalar]     # of a reduction, at a dtype
BOOL = dtypes.as_dtype(bool)

# Kinds of dtype, as `dtypes.scalar_kind` names them.
INTEGER, FLOATING, COMPLEX = "iu", "f", "c"
INEXACT, NUMERIC, REAL, BITS = "fc", "iufc", "iuf", "biu"
ANY = "biufc"
KIND_NAMES = {"b": "bool", "i": "signed integer", "u": "unsigned integer", "f": "floating",
               "c": "complex"}
# A Python scalar joins operands of these kinds, whose dtypes hold its fraction, too.
_JOINS = {bool: "b", int: "iufc", float: "fc", dtypes.Limit: "fc", complex: "c"}


def check_dtypes(name: str, avals: Sequence[ShapedArray], kinds: str) -> None:
    """TypeError unless all dtypes are the same and of an accepted kind."""
    dtype = avals[0].dtype
    for i, aval in enumerate(avals):
        if dtypes.scalar_kind(aval.dtype) not in kinds:
            accepted = ", ".join(KIND_NAMES[k] for k in dict.fromkeys(kinds))
            never = (": float0s do not support any operations by design"
                     if dtypes.is_float0(aval.dtype) else "")
            raise TypeError(f"{name}: operand {i} is {aval}{never}; dtypes accepted are "
                            f"{accepted}; {name} does not accept dtype {aval.dtype} at position "
                            f"{i}; convert it with astype.")
        if aval.dtype != dtype:
            raise TypeError(f"{name}: operands are {', '.join(map(str, avals))}; one dtype is "
                            f"required: {name} requires arguments to have the same dtypes, got "
                            f"{', '.join(str(a.dtype) for a in avals)}; convert with "
                            "lax.convert_element_type, or use olympus.numpy, which promotes.")


def full_shape(name: str, avals: Sequence[ShapedArray]) -> tuple[int, ...]:
    """The shape of all operands that are not rank 0; TypeError unless it is one."""
    shape: tuple[int, ...] = ()
    for aval in avals:
        if aval.shape != ():
            if shape not in ((), aval.shape):
                raise TypeError(f"{name}: operands are {', '.join(map(str, avals))}; equal shapes "
                                "are required; use lax.broadcast_in_dim, or olympus.numpy, which "
                                "broadcasts.")
            shape = aval.shape
    return shape


def check_operands(name: str, avals: Sequence[ShapedArray], kinds: str) -> tuple[int, ...]:
    """The result's shape; TypeError unless dtypes agree, are accepted, and shapes fit."""
    check_dtypes(name, avals, kinds)
    return full_shape(name, avals)


_rank = attrgetter("ndim")


def map_elementwise(axis: Axis, args: Sequence[Array], dims: Sequence[int | None],
                    scalars: bool = False) -> tuple[list[Array], int]:
    """Operands aligned on one mapped axis; literals, or all `scalars`, stay if not mapped."""
    dim = dims[0]
    if dim is not None and dims.count(dim) == len(dims) and len({*map(_rank, args)}) < 2:
        return list(args), dim      # as nearly always
    args = tags.vary_first(args)
    stay, ranks, dim = [], set(), None
    for x, d in zip(args, dims, strict=True):
        rank = typeof(x).ndim - (d is not None)
        stays = d is None and (is_literal(x) or (scalars and not rank))
        stay.append(stays)
        if not stays:
            ranks.add(rank)
        if dim is None:
            dim = d
    assert dim is not None, "some operand is mapped"
    if len(ranks) > 1:
        return _map_ranks(axis, args, dims, stay, max(ranks))
    return [x if d == dim or s else
            broadcast_axis(x, axis.size, dim) if d is None else move_axis(x, d, dim)
            for x, d, s in zip(args, dims, stay, strict=True)], dim


def _map_ranks(axis: Axis, args: Sequence[Array], dims: Sequence[int | None],
               stay: Sequence[bool], rank: int) -> tuple[list[Array], int]:
    """`map_elementwise` where rank-0 operands that do not stay meet operands of `rank`."""
    whole = next((x, d) for x, d in zip(args, dims, strict=True)
                 if typeof(x).ndim - (d is not None) == rank)
    sizes = [n for i, n in enumerate(typeof(whole[0]).shape) if i != whole[1]]
    shape = (axis.size, *sizes)
    out = []
    for x, d, s in zip(args, dims, stay, strict=True):
        if s:
            out.append(x)
        elif typeof(x).ndim - (d is not None) == rank:
            out.append(to_front(axis, x, d))
        else:
            out.append(broadcast_in_dim(x, shape, () if d is None else (0,)))
    return out, 0


def to_front(axis: Axis, x: ArrayLike, dim: int | None) -> Array:
    """`x` with its mapped axis first; repeated along one if it is not mapped."""
    return broadcast_axis(x, axis.size, 0) if dim is None else move_axis(x, dim, 0)


class Elementwise(Primitive):
    """Same-shape operands; one StableHLO op; the tangent is the sum of the partials."""

    spread = staticmethod(tags.elementwise)
    elementwise = scalars = single = hands_on_nan = by_parts = True
    fusion = "fused"
    pace = 0.3

    def __init_subclass__(cls, abstract: bool = False) -> None:
        super().__init_subclass__(abstract)
        # A lowering of its own may be written for operands of one shape, and of several operations.
        if "lower" in cls.__dict__:
            cls.scalars = cls.__dict__.get("scalars", False)
            cls.single = cls.__dict__.get("single", False)

    def __init__(self, name: str, op: str, kinds: str, partials: Sequence[Partial] | None,
                 linear: tuple[int, ...] = (), result: Callable[[DType], DType] | None = None,
                 transposes: Sequence[Partial] | None = None, arity: int = 1,
                 **facts: Unpack[GivenFacts]) -> None:
        super().__init__(name, **facts)
        self.op, self.kinds, self.partials = op, kinds, partials
        self.arity = len(partials) if partials else arity
        self.linear, self.result, self.transposes = linear, result, transposes or partials
        if not linear:
            self.transpose = None  # pyright: ignore[reportAttributeAccessIssue]
        if not {FLOATING, COMPLEX} & set(kinds):    # no derivative reaches integers
            self.jvp = None  # pyright: ignore[reportAttributeAccessIssue]

    def infer(self, *avals: ShapedArray, **params: Hashable) -> ShapedArray:
        shape = check_operands(self.name, avals, self.kinds)
        dtype = avals[0].dtype if self.result is None else self.result(avals[0].dtype)
        return make_aval(shape, dtype, all(a.weak_type for a in avals))

    def lower(self, b: Builder, *xs: IrValue, accuracy: AccuracyMode | None = None) -> IrValue:
        # A single operand has the shape of the result.
        return b.op(self.op, b.expand(xs) if len(xs) > 1 else xs,
                    None if accuracy is None else accuracy_attributes(b, accuracy))

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], **params: Hashable
            ) -> tuple[Array, Tangent]:
        out = self.bind(*primals, **params)
        total = None
        if self.partials is not None:
            for partial, t in zip(self.partials, tangents, strict=True):
                if type(t) is not Zero:
                    if len(primals) > 1:
                        t = _as_wide(t, out)
                    term = partial(t, out, *primals, **params)
                    total = (term if total is None else total if term is None else
                             add_p.bind(total, term))
        return out, Zero(typeof(out).to_tangent_aval()) if total is None else total

    def transpose(self, ct: Array, *args: Array | Linear, **params: Hashable) -> list[Cotangent]:
        cts: list[Any] = [None] * len(args)
        linear = [i for i, x in enumerate(args) if type(x) is Linear]
        assert self.transposes is not None, "a linear operation has partials"
        for i in linear:
            if i not in self.linear or (len(linear) > 1 and not self.additive):
                raise not_linear(self.name, f"operand {i}")
            term = self.transposes[i](ct, None, *args, **params)
            ndim = typeof(term).ndim
            if ndim and not args[i].aval.ndim:      # it was used by all elements
                term = reduce_sum(term, range(ndim))
            cts[i] = term
        return cts

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], **params: Hashable
             ) -> tuple[Array, int]:
        args, dim = map_elementwise(axis, args, dims, self.scalars)
        return self.bind(*args, **params), dim


def _as_wide(t: Array, out: Array) -> Array:
    """The tangent of an operand of rank 0 as one for each element of the result."""
    shape = typeof(out).shape
    return t if typeof(t).shape == shape else broadcast_in_dim(
        tags.vary_first((t, out))[0], shape, ())


_COMPARE_TYPES = {"f": "FLOAT", "c": "FLOAT", "i": "SIGNED"}


class Comparison(Elementwise):
    """Elementwise comparison; the result is bool. `total` orders floats by sign and bits."""

    scalars = single = True
    algebra = "comparison"
    cells = staticmethod(reuse.read)
    is_value = True     # see `core.identity`

    def __init__(self, name: str, direction: str, kinds: str, total: bool = False,
                 **facts: Unpack[GivenFacts]) -> None:
        super().__init__(name, direction, kinds, None, arity=2, **facts)
        self.total = total

    def infer(self, *avals: ShapedArray, **params: Hashable) -> ShapedArray:
        return make_aval(check_operands(self.name, avals, self.kinds), BOOL,
                         all(a.weak_type for a in avals))

    def lower(self, b: Builder, *xs: IrValue, **params: Hashable) -> IrValue:
        kind = dtypes.scalar_kind(b.avals_in[0].dtype)
        compare = "TOTALORDER" if self.total and kind == "f" else \
            _COMPARE_TYPES.get(kind, "UNSIGNED")
        shape = b.avals_out[0].shape
        x, y = (x if a.shape == shape else b.broadcast(x, a.update(shape=shape), ())
                for x, a in zip(xs, b.avals_in, strict=True))
        return b.compare(self.op, x, y, compare, b.avals_out[0])


def elementwise(name: str, op: str, kinds: str, *partials: Partial, linear: tuple[int, ...] = (),
                result: Callable[[DType], DType] | None = None,
                transposes: Sequence[Partial] | None = None, arity: int = 1,
                **facts: Unpack[GivenFacts]) -> Elementwise:
    """Declare an elementwise primitive; without partials its derivative is zero.

    Args:
      name: as printed.
      op: of StableHLO or CHLO, with its dialect.
      kinds: of dtype that it takes, as letters of `dtypes.scalar_kind`.
      partials: per operand, its part of the tangent.
      linear: operands in which it is linear.
      result: the result's dtype of the operands', if another.
      transposes: per operand, the cotangent of the result's; default: the partials.
      arity: how many operands it takes, if there are no partials.
      facts: in which it differs from the family, by their names in `core.facts.Facts`.
    """
    return Elementwise(name, op, kinds, partials or None, linear, result, transposes, arity,
                       **facts)


def comparison(name: str, direction: str, kinds: str, total: bool = False,
               **facts: Unpack[GivenFacts]) -> Comparison:
    """Declare a comparison."""
    return Comparison(name, direction, kinds, total, **facts)


@memoize(256)
def _range(dtype: np.dtype) -> tuple[int, int]:
    """The smallest and the largest integer of a dtype."""
    limits = dtypes.iinfo(dtype)
    return int(limits.min), int(limits.max)


def operand(x: Any, like: ArrayLike) -> ArrayLike:
    """A Python scalar as a literal of the dtype of the array next to it; anything else as it is.

    Only where nothing is lost: 2 becomes 2.0 next to floats, 2.5 next to integers stays, and so
    does a scalar next to another scalar. OverflowError for an int outside the range of an integer
    dtype.
    """
    joins = _JOINS.get(type(x))
    if joins is not None and type(like) not in _JOINS:
        aval = typeof(like)
        kind = dtypes.scalar_kind(aval.dtype)
        if kind in joins:
            if kind in "iu" and not _range(aval.dtype)[0] <= x <= _range(aval.dtype)[1]:
                raise OverflowError(f"lax: the Python int {x} given next to {aval}; one that the "
                                    "dtype holds is required; convert the array first.")
            return literal(x, aval.dtype, aval.weak_type)
    return x


def match_shapes(xs: Sequence[ArrayLike]) -> list[ArrayLike]:
    """Operands with rank-0 arrays and axes of size 1 broadcast to the others; literals stay.

    Operands that do not fit are left for the primitive to refuse.
    """
    arrays = [a for a in map(typeof, xs) if a.shape]
    shapes = [a.shape for a in arrays]
    if not shapes or any(len(s) != len(shapes[0]) for s in shapes):
        return list(xs)
    sizes = [set(axis) - {1} or {1} for axis in zip(*shapes, strict=True)]
    if any(len(alike) > 1 for alike in sizes):
        return list(xs)
    shape = tuple([alike.pop() for alike in sizes])
    if any(a.shape != shape for a in map(typeof, xs)):
        xs = tags.vary_first(xs)
    return [x if typeof(x).shape == shape or is_literal(x) else broadcast_in_dim_p.bind(
        x, shape=shape, broadcast_dimensions=tuple(range(len(shape))), sharding=None)
        if typeof(x).shape else broadcast_scalar(x, shape, arrays[0].memory_space) for x in xs]


def binary(prim: Primitive, x: Any, y: Any) -> Array:
    """Bind a two-operand primitive; a Python scalar takes the other operand's dtype.

    Axes of size 1 are broadcast, and rank-0 arrays if the primitive takes none beside others, which
    refuses other mixes of shapes.
    """
    try:
        if x.aval is y.aval:    # interned: the common case needs no promotion
            return prim.bind(x, y)
    except AttributeError:
        pass
    x = operand(x, y)
    y = operand(y, x)
    s, t = typeof(x).shape, typeof(y).shape
    if s != t and (not prim.scalars or (s and t)):
        x, y = match_shapes((x, y))
    return prim.bind(x, y)


def unary(prim: Primitive, x: ArrayLike, accuracy: AccuracyLike = None) -> Array:
    """Bind a one-operand primitive; `accuracy` is a param only where it is asked for."""
    if accuracy is None:
        return prim.bind(x)
    return prim.bind(x, accuracy=check_accuracy(accuracy))


# The one operation that the family itself needs: it sums partials.
add_p = elementwise("add", "stablehlo.add", NUMERIC, lambda t, z, x, y: t, lambda t, z, x, y: t,
                    linear=(0, 1), additive=True, algebra="sum")


def add(x: ArrayLike, y: ArrayLike) -> Array:
    """x + y elementwise, without promotion: dtypes and shapes have to agree.

    Args: x, y: numeric arrays (not bool) of one dtype and shape; rank 0 and axes of size 1 are
        broadcast, a Python number takes the other's dtype.

    Returns:
      An array of that dtype and shape; integers wrap around. `olympus.numpy.add` promotes dtypes.

    Raises TypeError for dtypes or shapes that differ.

    >>> print(lax.add(onp.array([250, 1], "uint8"), 10))
    [ 4 11]
    """
    return binary(add_p, x, y)


def product_rule(prim: Primitive, primals: Sequence[Array], tangents: Sequence[Tangent],
                 **params: Hashable) -> tuple[Array, Tangent]:
    """The rule `jvp` of a primitive that is linear in each of two operands."""
    (x, y), (tx, ty) = primals, tangents
    out = prim.bind(x, y, **params)
    total: Any = None
    for t, pair in ((tx, (tx, y)), (ty, (x, ty))):
        if type(t) is not Zero:
            term = prim.bind(*pair, **params)
            total = term if total is None else add(total, term)
    return out, total
