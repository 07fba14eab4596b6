"""The Hurwitz zeta function, polynomials, and the high word of integer products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.primitive import Axis, Linear, Primitive, Zero, not_linear
from ..core.trace import typeof
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from .arithmetic import mul, neg, sub
from .bits import bitwise_and, shift_right_arithmetic, shift_right_logical
from .choice import eq, gt, lt, select
from .convert import convert_element_type, convert_element_type_p
from .creation import full, full_like, iota
from .cumulative import cumprod
from .families import (
    FLOATING,
    INTEGER,
    NUMERIC,
    Elementwise,
    add,
    binary,
    check_dtypes,
    elementwise,
    to_front,
)
from .shape import broadcast_in_dim, move_axis, reduce_sum, rev
from .slicing import concatenate, slice_in_dim
from .special_loop import Computed, refuse_derivative

__all__ = ["mulhi", "mulhi_p", "polynomial", "polynomial_p", "zeta", "zeta_p"]

# Hurwitz zeta ------------------------------------------------------------------------------------

# Euler-Maclaurin summation (DLMF 25.11.7), which XLA expands: finite operands, s > 1.
_summed_p = elementwise("zeta_sum", "chlo.zeta", FLOATING)


def _zeta(tol: float, s: Any, q: Any) -> Any:
    """XLA's sum, and the limits where an operand is infinite."""
    inf, zero, one = (full_like(s, v) for v in (math.inf, 0.0, 1.0))
    value = _summed_p.bind(s, q)
    far = select(gt(q, 1.0), zero, select(eq(q, 1.0), one, inf))
    value = select(bitwise_and(eq(s, math.inf), gt(q, 0.0)), far, value)
    return select(bitwise_and(eq(q, math.inf), gt(s, 1.0)), zero, value)


zeta_p = Computed("zeta", _zeta, (
    refuse_derivative("zeta", "x", "differentiate numerically, or in q only"),
    lambda t, z, s, q: mul(t, neg(mul(s, zeta(add(s, 1.0), q))))))


def zeta(x: Any, q: Any) -> Any:
    """The Hurwitz zeta function, the sum of (q + n) ** -x for n = 0, 1, ... (DLMF 25.11.1).

    Infinite at x = 1, NaN for x < 1; for q <= 0 infinite at whole q if x is an even number, and NaN
    where a term is not real. Differentiable in q; NotImplementedError for the derivative in x.

    >>> import olympus
    >>> print(f"{olympus.lax.zeta(2.0, 1.0):.5f}")
    1.64493
    """
    return binary(zeta_p, x, q)


# Integers ----------------------------------------------------------------------------------------

class HighProduct(Elementwise):
    """From products of a wider type, or of halves: XLA on CPU cannot fuse a `mulhi` of its own."""

    def lower(self, b: Any, *xs: Any) -> Any:
        values = b.expand(xs)
        b.avals_in = [b.avals_out[0]] * 2
        return b.inline(_high_product, *values)


def _high_product(x: Any, y: Any) -> Any:
    dtype = typeof(x).dtype
    bits, signed = dtypes.iinfo(dtype).bits, dtypes.scalar_kind(dtype) == "i"

    def to(v: Any, target: np.dtype) -> Any:
        return convert_element_type_p.bind(v, new_dtype=target, weak_type=False, sharding=None)

    def number(v: Any, n: int) -> Any:
        return full_like(v, n)

    wide = np.dtype(np.int64 if signed else np.uint64)
    if bits < 64:
        product = mul(to(x, wide), to(y, wide))
        shift = shift_right_arithmetic if signed else shift_right_logical
        return to(shift(product, number(product, bits)), dtype)
    # Schoolbook, in 32-bit halves of what stands for the same bits without a sign.
    word = np.dtype(np.uint64)
    u, v = to(x, word), to(y, word)
    half, low = number(u, 32), number(u, 0xFFFFFFFF)
    (u1, u0), (v1, v0) = [(shift_right_logical(w, half), bitwise_and(w, low)) for w in (u, v)]
    carry = add(mul(u1, v0), shift_right_logical(mul(u0, v0), half))
    middle = add(mul(u0, v1), bitwise_and(carry, low))
    high = add(add(mul(u1, v1), shift_right_logical(carry, half)),
               shift_right_logical(middle, half))
    if not signed:
        return high
    none = number(x, 0)
    borrowed = add(select(lt(x, none), y, none), select(lt(y, none), x, none))
    return sub(to(high, dtype), borrowed)


mulhi_p = HighProduct("mulhi", "mulhi", INTEGER, None)


def mulhi(x: Any, y: Any, /) -> Any:
    """The high half of the product of integers, whose low half is `mul`'s.

    >>> import olympus
    >>> olympus.lax.mulhi(olympus.numpy.uint32(2**31), olympus.numpy.uint32(6))
    Array(3, dtype=uint32)
    """
    return binary(mulhi_p, x, y)


# Polynomials -------------------------------------------------------------------------------------

class Polynomial(Primitive):
    """x [*b, *s] and coefficients [*b, n], of the highest power first -> values [*b, *s].

    Horner's rule, in a loop of `unroll` steps at a time; None: all at once up to 64 terms.
    """

    def infer(self, x: ShapedArray, coeffs: ShapedArray, *, unroll: int | None) -> ShapedArray:
        check_dtypes("polynomial", (x, coeffs), NUMERIC)
        batch = coeffs.shape[:-1]
        if not coeffs.ndim or x.shape[:len(batch)] != batch:
            raise TypeError(f"polynomial: x {x} and coeffs {coeffs} given; a vector of "
                            "coefficients is required; stack them.")
        return make_aval(x.shape, x.dtype, x.weak_type and coeffs.weak_type)

    def lower(self, b: Any, x: Any, coeffs: Any, *, unroll: int | None) -> Any:
        out, own = b.avals_out[0], b.avals_in[1]
        batch, n = own.shape[:-1], own.shape[-1]
        if n == 0:
            return b.full(out, 0)
        order = (len(batch), *range(len(batch)))
        terms = b.op("stablehlo.transpose", [coeffs], {"permutation": b.i64s(order)},
                     make_aval((n, *batch), own.dtype))
        dims = tuple(range(len(batch)))

        def term(index: Any) -> Any:
            return b.broadcast(b.slice_at(terms, index), out, dims)

        def step(index: Any, values: Sequence[Any]) -> list[Any]:
            k = b.op("stablehlo.add", [index, b.scalar(1, I32)], None, make_aval((), I32))
            scaled = b.op("stablehlo.multiply", [values[0], x], None, out)
            return [b.op("stablehlo.add", [scaled, term(k)], None, out)]

        steps = unroll or (n if n <= _UNROLLED else 8)
        return b.counted_loop(n - 1, [term(b.scalar(0, I32))], step, steps)[0]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, unroll: int | None) -> Any:
        (x, coeffs), (tx, tc) = primals, tangents
        out = self.bind(x, coeffs, unroll=unroll)
        if not dtypes.is_inexact(typeof(out).dtype):
            return out, Zero(typeof(out).to_tangent_aval())
        parts = []
        if type(tx) is not Zero:
            parts.append(mul(tx, self.bind(x, _derivative(coeffs), unroll=unroll)))
        if type(tc) is not Zero:
            parts.append(self.bind(x, tc, unroll=unroll))
        return out, parts[0] if len(parts) == 1 else add(*parts)

    def transpose(self, ct: Any, x: Any, coeffs: Any, *, unroll: int | None) -> list[Any]:
        if type(x) is Linear:
            raise not_linear("polynomial", "x")
        aval = coeffs.aval
        batch, n = aval.ndim - 1, aval.shape[-1]
        shape = typeof(x).shape
        whole = (n, *shape)
        ones = full((min(n, 1), *shape), 1, aval.dtype)
        rest = broadcast_in_dim(x, (max(n - 1, 0), *shape), range(1, len(whole)))
        powers = rev(concatenate([ones, cumprod(rest, 0)], 0), (0,))
        weighted = mul(powers, broadcast_in_dim(ct, whole, range(1, len(whole))))
        total = reduce_sum(weighted, tuple(range(1 + batch, len(whole))))
        return [None, move_axis(total, 0, batch)]

    def vmap(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], *,
             unroll: int | None) -> Any:
        (x, coeffs), (dx, dc) = args, dims
        if dc is not None:
            x, coeffs = to_front(axis, x, dx), move_axis(coeffs, dc, 0)
            return self.bind(x, coeffs, unroll=unroll), 0
        batch = typeof(coeffs).ndim - 1
        return self.bind(move_axis(x, dx, batch), coeffs, unroll=unroll), batch


I32 = np.dtype("int32")
_UNROLLED = 64
polynomial_p = Polynomial("polynomial")


def _derivative(coeffs: Any) -> Any:
    """The coefficients of the derivative."""
    aval = typeof(coeffs)
    n, last = aval.shape[-1], aval.ndim - 1
    if n < 2:
        return slice_in_dim(coeffs, 0, 0, 1, last)
    kept = slice_in_dim(coeffs, 0, n - 1, 1, last)
    powers = convert_element_type(add(neg(iota("int32", n - 1)), n - 1), aval.dtype)
    return mul(kept, broadcast_in_dim(powers, typeof(kept).shape, (last,)))


def polynomial(x: Any, coeffs: Any, *, unroll: int | None = None) -> Any:
    """The polynomial coeffs[0] x**(n-1) + ... + coeffs[n-1] at each x, by Horner's rule.

    Args:
      x: array of numbers, of any shape.
      coeffs: [n] numbers of its dtype, of the highest power first; a tuple or list is converted.
      unroll: how many terms a turn of the loop takes; None: all, or 8 of more than 64.

    >>> import olympus
    >>> olympus.lax.polynomial(2.0, (1.0, 0.0, -3.0))
    Array(1., dtype=float32)
    """
    if isinstance(coeffs, (tuple, list)):
        coeffs = np.asarray(coeffs, typeof(x).dtype)
    if unroll is not None and unroll < 1:
        raise ValueError(f"polynomial: unroll {unroll} given; a positive int is required.")
    return polynomial_p.bind(x, coeffs, unroll=unroll)
