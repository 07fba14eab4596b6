"""Collectives: operations along a named axis of vmap.

A collective has no rule of its own for plain evaluation: the trace that binds the axis (vmap's)
sees it and replaces it by array operations along the mapped axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.primitive import Axis, Primitive
from ..core.trace import ctx, typeof
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from ..types.shape import prod
from ..types.tree import tree_map
from .convert import convert_element_type
from .creation import iota
from .elementwise import add, div, eq, mul
from .reduce import reduce_max, reduce_min
from .shape import reduce_sum

__all__ = ["axis_index", "axis_size", "pmax", "pmean", "pmin", "psum"]


def _axes(what: str, axis_name: Any) -> tuple[Any, ...]:
    """The names as a tuple; NameError unless each is bound."""
    names = tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)
    for name in names:
        if name not in ctx.axes:
            bound = ", ".join(map(repr, ctx.axes)) or "none"
            raise NameError(f"{what}: axis name {name!r} given; bound axis names are: {bound}; "
                            f"bind it with vmap(..., axis_name={name!r}).")
    return names


def _ungrouped(what: str, groups: Any) -> None:
    if groups is not None:
        raise NotImplementedError(f"{what}: axis_index_groups given; vmap's axes have no groups; "
                                  "reshape the mapped axis instead.")


class Reduction(Primitive):
    """psum, pmax, pmin: reduce over named axes; every element gets the result."""

    def __init__(self, name: str, reduce: Callable[..., Any]) -> None:
        super().__init__(name)
        self.reduce = reduce

    def infer(self, x: ShapedArray, **params: Any) -> ShapedArray:
        return x

    def lower(self, b: Any, x: Any, *, axes: tuple[Any, ...], **params: Any) -> Any:
        if axes:
            raise NameError(f"{self.name}: axis {axes} is not bound in this program; bind it with "
                            "vmap(..., axis_name=...).")
        return x

    def uses_axis(self, name: Any, params: dict[str, Any]) -> bool:
        return name in params["axes"]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        out = self.bind(*primals, **params)
        if self is psum_p:
            return out, self.bind(*tangents, **params)
        # The tangent of the extreme element; ties share equally.
        (x,), (t,) = primals, tangents
        winner = equal_to(x, out)
        count = psum_p.bind(winner, **params)
        return out, psum_p.bind(mul(div(winner, count), t), **params)

    def transpose(self, ct: Any, x: Any, **params: Any) -> list[Any]:
        if self is not psum_p:
            raise NotImplementedError(f"{self.name}: transposed; it is not linear.")
        return [self.bind(ct, **params)]

    def vmap_named(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], *,
                   axes: tuple[Any, ...], axis_index_groups: None) -> Any:
        (x,), (d,) = args, dims
        if d is not None:
            x = self.reduce(x, (d,))
        elif self is psum_p:
            x = mul(x, axis.size)
        rest = tuple(a for a in axes if a != axis.name)
        return (self.bind(x, axes=rest, axis_index_groups=None) if rest else x), None

    def vmap(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], **params: Any
             ) -> Any:
        return self.bind(args[0], **params), dims[0]


def equal_to(x: Any, y: Any) -> Any:
    """1 where equal, 0 elsewhere, in x's dtype."""
    return convert_element_type(eq(x, y), typeof(x).dtype)


class AxisIndex(Primitive):
    """The position along a named axis, int32."""

    def infer(self, *, axis_name: Any) -> ShapedArray:
        return make_aval((), dtypes.as_dtype("int32"))

    def lower(self, b: Any, *, axis_name: Any) -> Any:
        raise NameError(f"axis_index: axis {axis_name!r} is not bound in this program; bind it "
                        f"with vmap(..., axis_name={axis_name!r}).")

    def uses_axis(self, name: Any, params: dict[str, Any]) -> bool:
        return name == params["axis_name"]

    def vmap_named(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], *,
                   axis_name: Any) -> Any:
        return iota(np.int32, axis.size), 0

    jvp = None
    transpose = None
    vmap = None


psum_p = Reduction("psum", reduce_sum)
pmax_p = Reduction("pmax", reduce_max)
pmin_p = Reduction("pmin", reduce_min)
axis_index_p = AxisIndex("axis_index")


def _reduction(prim: Reduction, x: Any, axis_name: Any, groups: Any) -> Any:
    axes = _axes(prim.name, axis_name)
    _ungrouped(prim.name, groups)
    return tree_map(lambda leaf: prim.bind(leaf, axes=axes, axis_index_groups=None), x)


def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Sum over a named axis (or several); every element gets the sum. `x` may be a pytree.

    A Python number is multiplied by the axis size, so `psum(1, name)` is that size, an int.

    >>> import olympus, olympus.numpy as onp
    >>> olympus.vmap(lambda x: x / olympus.lax.psum(x, "i"), axis_name="i")(onp.array([1., 3.]))
    Array([0.25, 0.75], dtype=float32)
    """
    if isinstance(x, (int, float, complex)):
        _ungrouped("psum", axis_index_groups)
        return x * axis_size(axis_name)
    return _reduction(psum_p, x, axis_name, axis_index_groups)


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Mean over a named axis (or several); every element gets it. `x` may be a pytree."""
    total, count = psum(x, axis_name, axis_index_groups=axis_index_groups), axis_size(axis_name)
    return tree_map(lambda leaf: div(to_inexact(leaf), count), total)


def pmax(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Maximum over a named axis (or several); every element gets it. `x` may be a pytree."""
    return _reduction(pmax_p, x, axis_name, axis_index_groups)


def pmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Minimum over a named axis (or several); every element gets it. `x` may be a pytree."""
    return _reduction(pmin_p, x, axis_name, axis_index_groups)


def axis_size(axis_name: Any) -> int:
    """The size of a named axis, or the product of the sizes of several: a Python int."""
    return prod(tuple(ctx.axes[name] for name in _axes("axis_size", axis_name)))


def axis_index(axis_name: Any) -> Any:
    """This element's position along a named axis: int32[], row-major over several names."""
    index: Any = None
    for name in _axes("axis_index", axis_name):
        here = axis_index_p.bind(axis_name=name)
        index = here if index is None else add(mul(index, ctx.axes[name]), here)
    return index


def to_inexact(x: Any) -> Any:
    """`x` in a floating or complex dtype."""
    dtype = dtypes.to_inexact_dtype(typeof(x).dtype)
    return x if dtype == typeof(x).dtype else convert_element_type(x, dtype)
