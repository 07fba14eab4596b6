"""scatter_mul: windows multiplied into an array, where several may meet in one element.

The derivative in one factor is the product of the others. Division does not give it at zeros, nor
do masks give its derivatives there; so updates are sorted by the element that they meet in, and
those before and those after each are multiplied: two segmented scans, of linear work.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from ..base.typing import Array, ArrayLike, Params
from ..core.primitive import Cotangent, Linear, Tangent, Transposed, Zero, not_linear
from ..core.trace import literal, typeof
from ..types import dtypes
from ..types.shape import prod
from .arithmetic import mul
from .bits import bitwise_or
from .comparison import eq, ne, select_n
from .convert import convert_element_type
from .creation import iota
from .cumulative import scan_pairs
from .families import add
from .indexing import (
    GatherScatterMode, Scatter, ScatterDimensionNumbers, add_params, bind_scatter, read_back,
    scatter_add_p, take_along, where,
)
from .shape import broadcast_in_dim, reshape, rev, zeros_of
from .slicing import concatenate, slice_in_dim
from .sort import sort_p

UINT32 = dtypes.as_dtype("uint32")


class ScatterMul(Scatter):
    """Windows multiplied into the operand: linear in the operand, and in updates that never meet.
    """

    makes_nan = True

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], **params: Hashable
            ) -> tuple[Array, Tangent]:
        (x, indices, updates), (tx, _, tu) = primals, tangents
        out = self.bind(x, indices, updates, **params)
        tangent: Any = None if type(tx) is Zero else self.bind(tx, indices, updates, **params)
        if type(tu) is Zero:
            return out, tangent
        others = read_back(x, indices, typeof(updates), params)
        if not params["unique_indices"]:
            others = mul(others, _products_of_others(x, indices, updates, params))
        base = zeros_of(typeof(x)) if tangent is None else tangent
        return out, scatter_add_p.bind(base, indices, mul(tu, others), **add_params(x, params))

    def transpose(self, ct: Array, x: Linear, indices: ArrayLike, updates: Transposed,
                  **params: Hashable) -> list[Cotangent]:
        if type(updates) is not Linear:
            return [self.bind(ct, indices, updates, **params), None, None]
        if type(x) is Linear or not params["unique_indices"]:
            raise not_linear("scatter_mul", "its updates", "they are factors of each other, unless "
                             "unique_indices=True says that none meet, and of the operand; "
                             "differentiate with vjp")
        u_ct = mul(read_back(x, indices, updates.aval, params),
                   read_back(ct, indices, updates.aval, params))
        return [None, None, u_ct]


def _products_of_others(x: ArrayLike, indices: ArrayLike, updates: ArrayLike, params: Params
                        ) -> Array:
    """For each update the product of all others that meet it in its element of `x`."""
    aval, updates_aval = typeof(x), typeof(updates)
    n, one = prod(updates_aval.shape), literal(1, updates_aval.dtype)
    if n < 2:
        return broadcast_in_dim(one, updates_aval.shape, ())
    numbered = add(reshape(iota(UINT32, prod(aval.shape)), aval.shape), literal(1, UINT32))
    targets = read_back(numbered, indices, updates_aval, params)     # 0: dropped
    number = iota(UINT32, n)
    targets, order = _sorted(reshape(targets, (n,)), number)
    factors = take_along(reshape(updates, (n,)), order, 0)
    differs = convert_element_type(
        ne(slice_in_dim(targets, 1, n), slice_in_dim(targets, 0, n - 1)), UINT32)
    end = broadcast_in_dim(literal(1, UINT32), (1,), ())
    before = _segment_products(factors, concatenate([end, differs], 0))
    after = rev(_segment_products(rev(factors, (0,)), rev(concatenate([differs, end], 0), (0,))),
                (0,))
    products = where(eq(targets, literal(0, UINT32)), one, mul(before, after))
    _, back = _sorted(order, number)
    return reshape(take_along(products, back, 0), updates_aval.shape)


def _sorted(keys: Array, values: Array) -> list[Array]:
    return sort_p.bind(keys, values, dimension=0, is_stable=True, num_keys=1)


def _segment_products(factors: Array, starts: Array) -> Array:
    """The product of the earlier factors of the same segment, whose start is marked by a 1."""
    n, one = typeof(factors).shape[0], literal(1, typeof(factors).dtype)
    first = broadcast_in_dim(one, (1,), ())
    shifted = concatenate([first, slice_in_dim(factors, 0, n - 1)], 0)

    def combine(p: tuple[Array, ...], q: tuple[Array, ...]) -> tuple[Array, ...]:
        (begun, x), (begins, y) = p, q
        fresh = ne(begins, literal(0, UINT32))
        return bitwise_or(begun, begins), select_n(fresh, mul(x, y), y)

    start = ne(starts, literal(0, UINT32))
    return scan_pairs(combine, (starts, where(start, one, shifted)), 0)[1]


scatter_mul_p = ScatterMul("scatter-mul", mul)


def scatter_mul(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """The operand with windows multiplied into it at computed places; places may repeat.

    The derivative in the updates sorts them; with `unique_indices` it need not.

    Args:
      operand: numbers; the array is not changed.
      scatter_indices: integers, shape [batch..., k]: each vector along the last axis is a place.
      updates: the factors, of the operand's dtype.
      dimension_numbers, indices_are_sorted, unique_indices, mode: as for `scatter`.
    Returns: An array of the operand's shape and dtype.

    >>> points = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> print(lax.scatter_mul(onp.array([1, 5]), onp.array([[1], [1]]), onp.array([2, 3]), points))
    [ 1 30]
    """
    return bind_scatter(scatter_mul_p, operand, scatter_indices, updates, dimension_numbers,
                        indices_are_sorted, unique_indices, mode)
