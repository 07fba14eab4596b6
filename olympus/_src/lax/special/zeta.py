"""The Hurwitz zeta function, polynomials, and the high word of integer products."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ...base.typing import Array, ArrayLike, IrValue, Params
from ...core import tags
from ...core.primitive import (
    Axis, Builder, Cotangent, Linear, Primitive, Tangent, Transposed, Zero, not_linear,
)
from ...core.trace import typeof
from ...types import dtypes
from ...types.avals import ShapedArray, make_aval
from ...types.shape import bound_or, definitely_equal, less, minimum as smaller, static_int
from ..arithmetic import abs, div, floor, min as minimum, mul, neg, reciprocal, sub
from ..bits import bitwise_and, bitwise_or, shift_right_arithmetic, shift_right_logical
from ..comparison import eq, ge, gt, le, lt, select
from ..convert import convert_element_type, convert_element_type_p
from ..creation import full, full_like, iota
from ..cumulative import cumprod
from ..families import (
    FLOATING, INTEGER, NUMERIC, Elementwise, add, binary, check_dtypes, elementwise, to_front,
)
from ..shape import broadcast_in_dim, check_element, move_axis, reduce_sum, rev
from ..slicing import concatenate, slice_in_dim
from ..transcendental import exp, log, log1p, pow
from .series import Computed, is_short, iterate

# Hurwitz zeta ------------------------------------------------------------------------------------

# Euler-Maclaurin summation (DLMF 25.11.7), which XLA expands: finite operands, s > 1.
zeta_sum_p = elementwise("zeta_sum", "chlo.zeta", FLOATING, arity=2,
                         hands_on_nan=False, pace=200.0)   # at s = 1 it is infinite
# `zeta` has the derivatives; lowering alone makes the sum.
zeta_sum_p.jvp = None  # pyright: ignore[reportAttributeAccessIssue]


def _zeta(tol: float, s: Array, q: Array) -> Array:
    """For q < 0 and whole s by arguments above 0: XLA's sum begins too late for q < -5."""
    if is_short(s):
        return _short_zeta(s, q)
    below, t, sign, over, near, far = _reflected(s, q)
    total = zeta_of_positive(s, select(below, over, q))
    total, = iterate(_reflection, below, (total,), (t, near, far, sign), 2)
    return total


def _reflected(s: Array, q: Array) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Where ζ(s, q) is ζ(s, over) + (-1)ˢ (ζ(s, near) - ζ(s, far)), with operands above 0.

    That is its definition for q < 0 and whole s: over = q + n and near = 1 - q - n are in (0, 1),
    far is 1 - q. The results are a mask of these points, s, (-1)ˢ, over, near and far.
    """
    n, one = neg(floor(q)), full_like(q, 1.0)
    over = add(q, n)
    near = select(eq(n, 1.0), neg(q), sub(1.0, over))       # exact, also next to 0
    below = bitwise_and(bitwise_and(gt(over, 0.0), gt(near, 0.0)), lt(q, 0.0))
    below = bitwise_and(below, bitwise_and(gt(s, 1.0), eq(s, floor(s))))
    t = select(below, s, full_like(s, 2.0))
    half = mul(t, 0.5)
    sign = select(eq(half, floor(half)), one, neg(one))
    return below, t, sign, over, select(below, near, one), select(below, sub(1.0, q), one)


def _reflection(i: Array, state: Sequence[Array], constants: Sequence[Array]
                ) -> tuple[Array, tuple[Array, ...]]:
    """Add ζ(s, near), then subtract ζ(s, far)."""
    s, near, far, sign = constants
    first = broadcast_in_dim(eq(i, 0.0), typeof(s).shape, ())
    term = mul(sign, zeta_sum_p.bind(s, select(first, near, far)))
    return first, (add(state[0], select(first, term, neg(term))),)


def zeta_of_positive(s: Array, q: Array) -> Array:
    """XLA's sum, and the limits where an operand is infinite."""
    inf, zero, one = (full_like(s, v) for v in (math.inf, 0.0, 1.0))
    value = zeta_sum_p.bind(s, q)
    far = select(gt(q, 1.0), zero, select(eq(q, 1.0), one, inf))
    value = select(bitwise_and(eq(s, math.inf), gt(q, 0.0)), far, value)
    # Its terms overflow, where the first one is all of the sum that a number holds.
    steep = bitwise_and(bitwise_and(ge(s, 1e3), lt(s, inf)), bitwise_and(gt(q, 0.0), lt(q, inf)))
    value = select(steep, pow(select(steep, q, one), neg(select(steep, s, one))), value)
    # The pole of the first term, and where it overflows, which leaves XLA's sum NaN.
    most = math.log(float(dtypes.finfo(typeof(s).dtype).max))
    endless = bitwise_and(ge(q, 0.0), gt(mul(neg(s), log(q)), most))
    value = select(bitwise_and(gt(s, 1.0), endless), inf, value)
    return select(bitwise_and(eq(q, math.inf), gt(s, 1.0)), zero, value)


def _short_zeta(s: Array, q: Array) -> Array:
    """`_zeta` in float32, where each term of XLA's sum may underflow that the whole does not."""
    above, inf, one, nan = sub(s, 1.0), *(full_like(s, v) for v in (math.inf, 1.0, math.nan))
    below, first, scaled, near, far = short_sums(s, q)
    # w / (s-1) may overflow in the sum, whose other terms are lost from 2^60 on.
    large = ge(first, 2.0 ** 60)
    share = select(large, reciprocal(above), div(scaled, select(large, one, first)))
    value = sub(add(mul(pow(first, neg(above)), share), near), far)
    # Where an operand is infinite, where q <= 0, and where s is 1, the pole.
    value = select(bitwise_and(eq(s, inf), eq(q, 1.0)), one, value)
    half = mul(s, 0.5)
    even = bitwise_and(eq(half, floor(half)), lt(abs(s), inf))
    pole = bitwise_or(bitwise_and(eq(q, floor(q)), even), bitwise_and(eq(q, 0.0), gt(s, 1.0)))
    real = bitwise_or(below, gt(q, 0.0))
    value = select(bitwise_and(real, gt(s, 1.0)), value, nan)
    value = select(bitwise_and(le(q, 0.0), pole), inf, value)
    return select(eq(s, 1.0), inf, value)


def short_sums(s: Array, q: Array) -> tuple[Array, Array, Array, Array, Array]:
    """below, p, pˢ ζ(s, p), near and far in float32: ζ(s, q) is ζ(s, p) + near - far for s > 1.

    For q > 0 p is q. Where `below` is true, for q < 0 and whole s, it is in (0, 1] and differs from
    q by a whole number. Elsewhere it is 1.
    """
    below, t, sign, over, near, far = _reflected(s, q)
    below = bitwise_and(below, lt(s, math.inf))
    sums = [mul(sign, short_zeta_of(t, v, scaled_zeta(t, v))) for v in (near, far)]
    near, far = [select(below, v, full_like(q, 0.0)) for v in sums]
    first = select(below, over, select(gt(q, 0.0), q, full_like(q, 1.0)))
    return below, first, scaled_zeta(s, first), near, far


def short_zeta_of(s: Array, q: Array, scaled: Array) -> Array:
    """ζ(s, q) for s >= 2 and q > 0, which may be a number where q⁻ˢ is none."""
    return mul(pow(q, sub(1.0, s)), div(scaled, q))


def _zeta_slope(tol: float, s: Array, q: Array, order: int) -> Array:
    """∂ᵐζ/∂sᵐ for m = order >= 1, by Euler-Maclaurin summation (DLMF 25.11.7), differentiated."""
    inf, zero, nan = (full_like(s, v) for v in (math.inf, 0.0, math.nan))
    two = full_like(s, 2.0)
    inner = bitwise_and(bitwise_and(gt(s, 1.0), lt(s, inf)), bitwise_and(gt(q, 0.0), lt(q, inf)))
    t, v = (select(inner, x, two) for x in (s, q))
    total = zero
    for n in range(_TERMS):
        w = add(v, float(n))
        total = add(total, mul(pow(w, neg(t)), _power(neg(log(w)), order)))
    total = add(total, _tail_slope(t, add(v, float(_TERMS)), order))
    # Where an operand is infinite, or s is 1, the pole.
    below = inf if order % 2 == 0 else neg(inf)
    edge = select(bitwise_and(eq(s, 1.0), gt(q, 0.0)), below, nan)
    far = select(ge(q, 1.0), zero, inf)
    edge = select(bitwise_and(eq(s, math.inf), gt(q, 0.0)), far, edge)
    edge = select(bitwise_and(eq(q, math.inf), gt(s, 1.0)), zero, edge)
    return select(inner, total, edge)


_TERMS = 14
# B₂ₖ / (2k)!, rounded.
_BERNOULLI = (
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000,
    1 / 74724249600, -3617 / 10670622842880000, 43867 / 5109094217170944000,
    -174611 / 802857662698291200000, 77683 / 14101100039391805440000,
    -236364091 / 1693824136731743669452800000)


def _power(x: Array, k: int) -> Array:
    return functools.reduce(mul, [x] * k) if k else full_like(x, 1.0)


def scaled_zeta(s: Array, q: Array) -> Array:
    """qˢ ζ(s, q) for s > 1 and q > 0, which neither over- nor underflows."""
    # In float32 the terms left out are below 9e-9 together, for all s and q.
    terms, corrections = (3, 5) if is_short(s) else (_TERMS, len(_BERNOULLI))
    w, below = add(q, float(terms)), neg(s)
    powers = [exp(mul(below, log1p(div(float(n), q)))) for n in range(1, terms + 1)]
    total, factor = add(full_like(s, 1.0), functools.reduce(add, powers[:-1])), powers[-1]
    tail = add(div(w, sub(s, 1.0)), 0.5)
    if is_short(s):
        # From s = 64 w on the tail is less than exp(-192): it must not overflow.
        inverse = reciprocal(w)
        shares = [minimum(mul(s, inverse), full_like(s, 64.0))]     # (s+k) / w
        for _ in range(2 * corrections - 2):
            shares.append(add(shares[-1], inverse))
        part = full_like(s, _BERNOULLI[corrections - 1])
        for k in range(corrections - 1, 0, -1):
            pair = mul(shares[2 * k - 1], shares[2 * k])
            part = add(mul(part, pair), _BERNOULLI[k - 1])
        return add(total, mul(add(tail, mul(part, shares[0])), factor))
    part = div(s, w)
    for k, coefficient in enumerate(_BERNOULLI[:corrections], 1):
        tail = add(tail, mul(coefficient, part))
        part = mul(part, mul(div(add(s, 2.0 * k - 1.0), w), div(add(s, 2.0 * k), w)))
    return add(total, mul(tail, factor))


def _tail_slope(s: Array, w: Array, order: int) -> Array:
    """∂ᵐ/∂sᵐ of w⁻ˢ R(s), the sum from w on: R = w/(s-1) + 1/2 + Σ B₂ₖ/(2k)! (s)₂ₖ₋₁ w¹⁻²ᵏ."""
    # From s = 300 on it is less than the last digit of the first term, or underflows.
    t = minimum(s, full_like(s, 300.0))
    away = reciprocal(sub(t, 1.0))
    sums = [mul(mul(w, (-1.0) ** i * math.factorial(i)), _power(away, i + 1))
            for i in range(order + 1)]
    sums[0] = add(sums[0], 0.5)
    inverse = reciprocal(w)
    # Derivatives of (s)₂ₖ₋₁ w¹⁻²ᵏ, from the derivatives with one factor less.
    parts = [mul(t, inverse), inverse, *[full_like(s, 0.0)] * order][:order + 1]
    for k, coefficient in enumerate(_BERNOULLI, 1):
        sums = [add(total, mul(part, coefficient)) for total, part in zip(sums, parts, strict=True)]
        for factor in (2 * k - 1, 2 * k):
            grown = [add(mul(part, add(t, float(factor))), mul(before, float(i)))
                     for i, (before, part) in enumerate(pairwise([full_like(s, 0.0), *parts]))]
            parts = [mul(part, inverse) for part in grown]
    size, log_w = pow(w, neg(s)), neg(log(w))
    terms = [mul(mul(_power(log_w, order - i), part), float(math.comb(order, i)))
             for i, part in enumerate(sums)]
    return mul(size, functools.reduce(add, terms))


def _in_q(t: Array, y: Array, s: Array, q: Array, order: int) -> Array:
    above = add(s, 1.0)
    before = zeta(above, q) if order == 1 else zeta_slope_p.bind(above, q, order=order - 1)
    slope = add(mul(s, zeta_slope_p.bind(above, q, order=order)), mul(before, float(order)))
    return neg(mul(t, slope))


# ∂ᵐζ/∂sᵐ for m = order >= 1.
zeta_slope_p = Computed("zeta_slope", _zeta_slope, (
    lambda t, y, s, q, order: mul(t, zeta_slope_p.bind(s, q, order=order + 1)), _in_q))
zeta_p = Computed("zeta", _zeta, (
    lambda t, z, s, q: mul(t, zeta_slope_p.bind(s, q, order=1)),
    lambda t, z, s, q: mul(t, neg(mul(s, zeta(add(s, 1.0), q))))))


def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """The Hurwitz zeta function, the sum of (q + n) ** -x for n = 0, 1, ... (DLMF 25.11.1).

    Infinite at x = 1, NaN for x < 1; for q <= 0 infinite at whole q if x is an even number, and NaN
    where a term is not real. Differentiable in both; the derivative in x is NaN for q <= 0.

    Args:
      x: the exponents, floats.
      q: floats of the same dtype and shape; q = 1 is Riemann's zeta function.

    >>> print(f"{olympus.lax.zeta(2.0, 1.0):.5f}")
    1.64493
    """
    return binary(zeta_p, x, q)


# Integers ----------------------------------------------------------------------------------------

class HighProduct(Elementwise):
    """From products of a wider type, or of halves: XLA on CPU cannot fuse a `mulhi` of its own."""

    def lower(self, b: Builder, *xs: IrValue) -> IrValue:
        return b.by_rule(_high_product, b.expand(xs), [b.avals_out[0]] * 2)[0]


def _high_product(x: Array, y: Array) -> Array:
    dtype = typeof(x).dtype
    bits, signed = dtypes.iinfo(dtype).bits, dtypes.scalar_kind(dtype) == "i"

    def to(v: Array, target: np.dtype) -> Array:
        return convert_element_type_p.bind(v, new_dtype=target, weak_type=False, sharding=None)

    def number(v: Array, n: int) -> Array:
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


mulhi_p = HighProduct("mulhi", "mulhi", INTEGER, None, arity=2, pace=4.0)


def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The high half of the product of integers, whose low half is `mul`'s.

    Args: x, y: integers of one dtype and shape; rank 0 and axes of size 1 are broadcast.
    Returns: An array of that dtype and shape: floor(x y / 2ⁿ) for integers of n bits.

    >>> olympus.lax.mulhi(olympus.numpy.uint32(2**31), olympus.numpy.uint32(6))
    Array(3, dtype=uint32)
    """
    return binary(mulhi_p, x, y)


# Polynomials -------------------------------------------------------------------------------------

class Polynomial(Primitive):
    """x [*b, *s] and coefficients [*b, n], of the highest power first -> values [*b, *s].

    Horner's rule, in a loop of `unroll` steps at a time; None: all at once up to 64 terms.
    """

    @staticmethod
    def spread(operands: Sequence[tags.Operand], outs: Sequence[object], params: Params
               ) -> list[tags.Entries]:
        """The sharding of x; axes that both have agree, and the coefficients' axis is whole."""
        x, coeffs = operands
        batch = len(coeffs.shape) - 1
        tags.whole(coeffs, [batch])
        return [(*tags.merged([each._replace(entries=each.entries[:batch]) for each in operands]),
                 *x.entries[batch:])]

    def infer(self, x: ShapedArray, coeffs: ShapedArray, *, unroll: int | None) -> ShapedArray:
        check_dtypes("polynomial", (x, coeffs), NUMERIC)
        batch = coeffs.shape[:-1]
        if not coeffs.ndim or x.shape[:len(batch)] != batch:
            raise TypeError(f"polynomial: x {x} and coeffs {coeffs} given; a vector of "
                            "coefficients is required; stack them.")
        return make_aval(x.shape, x.dtype, x.weak_type and coeffs.weak_type)

    def lower(self, b: Builder, x: IrValue, coeffs: IrValue, *, unroll: int | None) -> IrValue:
        out, own = b.avals_out[0], b.avals_in[1]
        batch, n = own.shape[:-1], own.shape[-1]
        if definitely_equal(n, 0):
            return b.full(out, 0)
        order = (len(batch), *range(len(batch)))
        terms = b.op("stablehlo.transpose", [coeffs], {"permutation": b.i64s(order)},
                     make_aval((n, *batch), own.dtype))
        dims = tuple(range(len(batch)))

        def term(index: IrValue) -> IrValue:
            return b.broadcast(b.slice_at(terms, index), out, dims)

        def step(index: IrValue, values: Sequence[IrValue]) -> list[IrValue]:
            k = b.op("stablehlo.add", [index, b.scalar(1, I32)], None, make_aval((), I32))
            scaled = b.op("stablehlo.multiply", [values[0], x], None, out)
            return [b.op("stablehlo.add", [scaled, term(k)], None, out)]

        steps = unroll or (8 if bound_or(n, _UNROLLED + 1) > _UNROLLED else n)
        return b.counted_loop(n - 1, [term(b.scalar(0, I32))], step, steps)[0]

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], *, unroll: int | None
            ) -> tuple[Array, Tangent]:
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

    def transpose(self, ct: Array, x: Transposed, coeffs: Linear, *, unroll: int | None
                  ) -> list[Cotangent]:
        if type(x) is Linear:
            raise not_linear("polynomial", "x")
        aval = coeffs.aval
        batch, n = aval.ndim - 1, aval.shape[-1]
        shape = typeof(x).shape
        whole = (n, *shape)
        ones = full((smaller(n, 1), *shape), 1, aval.dtype)
        rest = broadcast_in_dim(x, (max(n - 1, 0), *shape), range(1, len(whole)))
        powers = rev(concatenate([ones, cumprod(rest, 0)], 0), (0,))
        weighted = mul(powers, broadcast_in_dim(ct, whole, range(1, len(whole))))
        total = reduce_sum(weighted, tuple(range(1 + batch, len(whole))))
        return [None, move_axis(total, 0, batch)]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], *,
             unroll: int | None) -> tuple[Array, int | None]:
        check_element(self, axis, args, dims, {"unroll": unroll})
        (x, coeffs), (dx, dc) = args, dims
        if dc is not None:
            x, coeffs = to_front(axis, x, dx), move_axis(coeffs, dc, 0)
            return self.bind(x, coeffs, unroll=unroll), 0
        batch = typeof(coeffs).ndim - 1
        return self.bind(move_axis(x, dx, batch), coeffs, unroll=unroll), batch


I32 = np.dtype("int32")
_UNROLLED = 64
polynomial_p = Polynomial("polynomial")


def _derivative(coeffs: Array) -> Array:
    """The coefficients of the derivative."""
    aval = typeof(coeffs)
    n, last = aval.shape[-1], aval.ndim - 1
    if less(n, 2):
        return slice_in_dim(coeffs, 0, 0, 1, last)
    higher = slice_in_dim(coeffs, 0, n - 1, 1, last)
    powers = convert_element_type(add(neg(iota("int32", n - 1)), n - 1), aval.dtype)
    return mul(higher, broadcast_in_dim(powers, typeof(higher).shape, (last,)))


def polynomial(x: ArrayLike, coeffs: ArrayLike | Sequence[ArrayLike], *,
               unroll: int | None = None) -> Array:
    """The polynomial coeffs[0] x**(n-1) + ... + coeffs[n-1] at each x, by Horner's rule.

    Args:
      x: array of numbers, of any shape.
      coeffs: [n] numbers of its dtype, of the highest power first; a tuple or list is converted.
      unroll: how many terms a turn of the loop takes; None: all, or 8 of more than 64.
    Returns: An array of the shape and dtype of x.

    >>> olympus.lax.polynomial(2.0, (1.0, 0.0, -3.0))
    Array(1., dtype=float32)
    """
    if isinstance(coeffs, (tuple, list)):
        coeffs = np.asarray(coeffs, typeof(x).dtype)
    if unroll is not None and static_int(unroll, "polynomial", "unroll") < 1:
        raise ValueError(f"polynomial: unroll {unroll} given; a positive int is required.")
    return polynomial_p.bind(x, coeffs, unroll=unroll)
