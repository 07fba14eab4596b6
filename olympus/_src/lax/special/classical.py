"""Special functions: error functions, gamma functions, Bessel functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...base.docstrings import complete_docstrings
from ...base.typing import Array, ArrayLike, IrValue
from ...base.util import lazy_module
from ...core.primitive import Builder
from ...core.trace import typeof
from ...types import dtypes
from ..accuracy import AccuracyMode, Tolerance, check_accuracy
from ..arithmetic import abs, div, floor, mul, neg, reciprocal, sign, square, sub
from ..bits import bitwise_and, bitwise_not
from ..comparison import eq, gt, le, lt, select
from ..convert import convert_element_type
from ..creation import full_like
from ..families import FLOATING, Elementwise, Partial, add, binary, elementwise
from ..shape import broadcast_in_dim
from ..transcendental import exp, rsqrt, sin
from .series import Computed, enough, iterate

# Error functions ---------------------------------------------------------------------------------

_KERNELS = lazy_module("olympus._src.lax.kernels.elementwise")
_TWO_OVER_SQRT_PI = 2.0 / math.sqrt(math.pi)

erf_p = elementwise("erf", "chlo.erf", FLOATING,
                    lambda t, y, x: mul(t, mul(_TWO_OVER_SQRT_PI, exp(neg(square(x))))),
                    fusion="costly", pace=4.0)


class Erfc(Elementwise):
    """CHLO has no erfc of floats below 16 bits: those go through float32."""

    fusion = "long"

    def lower(self, b: Builder, x: IrValue, **params: Any) -> IrValue:
        aval = b.avals_out[0]
        if dtypes.itemsize_bits(aval.dtype) >= 16:
            return super().lower(b, x, **params)
        wide = aval.update(dtype=dtypes.as_dtype("float32"))
        return b.convert(b.op(self.op, [b.convert(b.expand([x])[0], wide)], None, wide), aval)


erfc_p = Erfc("erfc", "chlo.erfc", FLOATING,
              (lambda t, y, x: mul(t, mul(-_TWO_OVER_SQRT_PI, exp(neg(square(x))))),), pace=4.0)
erf_inv_p = elementwise("erf_inv", "chlo.erf_inv", FLOATING,
                        lambda t, y, x: mul(t, mul(1.0 / _TWO_OVER_SQRT_PI, exp(square(y)))),
                        domain=(-1.0, 1.0), fusion="long", pace=20.0, kernels=_KERNELS,
                        kernels_from=16384)


def erf(x: ArrayLike) -> Array:
    """The error function, 2/sqrt(π) times the integral of exp(-t²) from 0 to x.

    Returns: An array of the shape and dtype of x, in [-1, 1]; the derivative is 2/sqrt(π) exp(-x²).

    >>> olympus.lax.erf(0.5)
    Array(0.5204999, dtype=float32, weak_type=True)
    """
    return erf_p.bind(x)


def erfc(x: ArrayLike, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """1 - erf(x), which keeps its digits where erf(x) rounds to 1.

    Args: accuracy: taken for uniformity; every platform has one implementation.
    Returns: An array of the shape and dtype of x, in [0, 2].

    >>> print(olympus.lax.erfc(5.0), 1 - olympus.lax.erf(5.0))
    1.5374597e-12 0.0
    """
    check_accuracy(accuracy)
    return erfc_p.bind(x)


def erf_inv(x: ArrayLike) -> Array:
    """The number whose error function is x: ±inf at ±1, NaN of |x| > 1.

    Returns: An array of the shape and dtype of x; sqrt(2) erf_inv(2p - 1) is the p-quantile of the
      normal distribution.

    >>> olympus.lax.erf_inv(olympus.lax.erf(0.5))
    Array(0.5, dtype=float32, weak_type=True)
    """
    return erf_inv_p.bind(x)


# Gamma functions ---------------------------------------------------------------------------------

def _trigamma(x: Array) -> Array:
    """ψ'(x), for x < 0 by π²/sin²(πx) - ψ'(1 - x)."""
    below = lt(x, 0.0)
    above = polygamma_above(1.0, select(below, sub(1.0, x), x))
    wave = sin(mul(sub(x, floor(add(x, 0.5))), math.pi))
    return select(below, sub(square(div(math.pi, wave)), above), above)


lgamma_p = elementwise("lgamma", "chlo.lgamma", FLOATING, lambda t, y, x: mul(t, digamma(x)),
                       fusion="long", pace=20.0, kernels=_KERNELS, kernels_from=16384)
digamma_p = elementwise("digamma", "chlo.digamma", FLOATING,
                        lambda t, y, x: mul(t, _trigamma(x)), fusion="long", pace=20.0)
# (-1)ᵐ⁺¹ m! ζ(m+1, x) (DLMF 25.11.12), whose factors float32 holds up to m = 23: by way of float64.
polygamma_product_p = elementwise("polygamma_product", "chlo.polygamma", FLOATING, arity=2,
                                  pace=200.0)
# Lowering alone makes the product.
polygamma_product_p.jvp = None  # pyright: ignore[reportAttributeAccessIssue]


def _above(tol: float, m: Array, x: Array) -> Array:
    """XLA's product, and the limit at infinity."""
    end = bitwise_and(eq(x, math.inf), gt(m, 0.0))
    return select(end, full_like(x, 0.0), polygamma_product_p.bind(m, x))


def _polygamma(tol: float, m: Array, x: Array) -> Array:
    """For x < 0 by arguments above 0, since XLA's sum begins too late for x < -5.

    With g the distance from the nearest whole number, and the sign (-1)ᵐ⁺¹ where that is above x,
    it is ±(ψ(g) + (-1)ᵐ⁺¹ ψ(1-g)) - (-1)ᵐ⁺¹ ψ(1-x), where ψ is the m-th derivative (DLMF 5.15.6).
    """
    one = full_like(x, 1.0)
    rest = sub(x, floor(add(x, 0.5)))       # exact
    near = abs(rest)
    below = bitwise_and(lt(x, 0.0), gt(near, 0.0))
    half = mul(m, 0.5)
    parity = select(eq(half, floor(half)), neg(one), one)
    sign = select(bitwise_and(below, lt(rest, 0.0)), parity, one)
    return iterate(_reflected_term, eq(one, 1.0), (full_like(x, 0.0),), (
        m, below, select(below, near, x), sub(1.0, near), select(below, sub(1.0, x), one), sign,
        mul(sign, parity), neg(parity)), 3)[0]


def _reflected_term(i: Array, state: Sequence[Array], constants: Sequence[Array]
                    ) -> tuple[Array, tuple[Array, ...]]:
    """Add the next of three products of a sign and ψ: one program of XLA's for all."""
    m, below, *terms = constants
    first, second = (broadcast_in_dim(le(i, n), typeof(m).shape, ()) for n in (0.0, 1.0))
    x, sign = (select(first, terms[n], select(second, terms[n + 1], terms[n + 2])) for n in (0, 3))
    return below, (add(state[0], mul(sign, _above(0.0, m, x))),)


polygamma_above_p = Computed("polygamma_above", _above, (
    lambda t, z, m, x: mul(t, math.nan),
    lambda t, z, m, x: mul(t, polygamma_above(add(m, 1.0), x))))
polygamma_p = Computed("polygamma", _polygamma, (
    lambda t, z, m, x: mul(t, math.nan), lambda t, z, m, x: mul(t, polygamma(add(m, 1.0), x))))


def lgamma(x: ArrayLike) -> Array:
    """The logarithm of |Γ(x)|; infinite at 0 and the negative integers.

    Returns: An array of the shape and dtype of x; the derivative is `digamma(x)`. lgamma(n + 1) is
      the logarithm of n!.

    >>> print(f"{olympus.lax.exp(olympus.lax.lgamma(5.0)):.4f}")
    24.0000
    """
    return lgamma_p.bind(x)


def digamma(x: ArrayLike) -> Array:
    """The derivative of `lgamma`, Γ'(x) / Γ(x); NaN at 0 and the negative integers.

    Returns: An array of the shape and dtype of x; its own derivative is `polygamma(1, x)`.

    >>> olympus.lax.digamma(1.0)        # minus Euler's constant
    Array(-0.5772154, dtype=float32, weak_type=True)
    """
    return digamma_p.bind(x)


def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """The m-th derivative of `digamma` at x: polygamma(0, x) is digamma(x) itself.

    Args:
      m: whole numbers >= 0, in the dtype of x, up to 170.
      x: floats, of the shape of m or one of them of rank 0.
    Returns: An array of that shape and dtype. The derivative in m is NaN.

    >>> print(f"{olympus.lax.polygamma(1.0, 1.0):.5f}")       # π²/6
    1.64493
    """
    return binary(polygamma_p, m, x)


def polygamma_above(m: ArrayLike, x: ArrayLike) -> Array:
    """`polygamma` for x > 0: less to compile."""
    return binary(polygamma_above_p, m, x)


# Bessel functions --------------------------------------------------------------------------------
#
# Chebyshev series, computed with mpmath in 40 digits: for |x| <= 8 of e⁻ˣ I₀(x), e⁻ˣ I₁(x) / x in
# x/4 - 1, beyond of sqrt(x) e⁻ˣ Iₙ(x) in 16/x - 1.

_I0_NEAR = (
    0.33839763720473803, -0.3046826723431984, 0.17162090152220877, -0.09490109704804764,
    0.04930528423967071, -0.02373741480589947, 0.010546460394594998, -0.004324309995050576,
    0.0016394756169413357, -0.0005763755745385824, 0.00018850288509584165, -5.754195010082104e-05,
    1.6448448070728896e-05, -4.4167383584587505e-06, 1.1173875391201037e-06,
    -2.670793853940612e-07, 6.046995022541919e-08, -1.300025009986248e-08, 2.6598237246823866e-09,
    -5.189795601635263e-10, 9.675809035373237e-11, -1.726826291441556e-11, 2.95505266312964e-12,
    -4.856446783111929e-13, 7.676185498604936e-14, -1.1685332877993451e-14, 1.715391285555133e-15,
    -2.431279846547955e-16, 3.3307945188222384e-17)
_I0_FAR = (
    0.4022452055070544, 0.0033691164782556943, 6.889758346916825e-05, 2.8913705208347567e-06,
    2.0489185894690638e-07, 2.266668990498178e-08, 3.3962320257083865e-09, 4.94060238822497e-10,
    1.1889147107846439e-11, -3.1499165279632416e-11, -1.3215811840447713e-11,
    -1.7941785315068062e-12, 7.180124451383666e-13, 3.8527783827421426e-13, 1.54008621752141e-14,
    -4.150569347287222e-14, -9.554846698828307e-15, 3.8116806693526224e-15,
    1.7725601330565263e-15, -3.425485619677219e-16, -2.8276239805165836e-16,
    3.461222867697461e-17, 4.46562142029676e-17)
_I1_NEAR = (
    0.12629359322181682, -0.17641651835783406, 0.1026436586898471, -0.05294598120809499,
    0.024726449030626516, -0.010564084894626197, 0.004156422944312888, -0.0015135724506312532,
    0.0005122859561685758, -0.00016176081582589674, 4.781565107550054e-05,
    -1.3273163656039436e-05, 3.4702513081376785e-06, -8.568720264695455e-07,
    2.0032947535521353e-07, -4.445059128796328e-08, 9.381537386495773e-09,
    -1.8872497517228294e-09, 3.625590281552117e-10, -6.663489723502027e-11,
    1.1736186298890901e-11, -1.9839743977649436e-12, 3.223793365945575e-13,
    -5.042185504727912e-14, 7.600684294735408e-15, -1.1055969477353862e-15,
    1.5536319577362005e-16, -2.111421214358166e-17)
_I1_FAR = (
    0.38928811750914005, -0.009761097491361469, -0.00011058893876262371, -3.882564808877691e-06,
    -2.512236237870209e-07, -2.6314688468895196e-08, -3.835380385964237e-09,
    -5.589743462196584e-10, -1.8974958123505413e-11, 3.2526035830154884e-11,
    1.4125807436613782e-11, 2.0356285441470896e-12, -7.198551776245908e-13,
    -4.0835511110921974e-13, -2.1015418427726643e-14, 4.272440016711951e-14,
    1.0420276984128802e-14, -3.8144030724370075e-15, -1.8803547755107825e-15,
    3.3082023109209285e-16, 2.96262899764595e-16, -3.209525921993424e-17, -4.6503053684893586e-17)


def _chebyshev(coefficients: Sequence[float], y: Array) -> Array:
    """Sum of coefficients[k] T_k(y), by Clenshaw's recurrence."""
    twice, first, second = mul(2.0, y), mul(0.0, y), mul(0.0, y)
    for c in coefficients[:0:-1]:
        first, second = add(sub(mul(twice, first), second), c), first
    return add(sub(mul(y, first), second), coefficients[0])


def _two_ranges(near: Sequence[float], far: Sequence[float], x: Array,
                factor: Callable[[Array], Array] | None) -> Array:
    size, far = abs(x), enough(x, far, 1.0)     # without any of `near`, I₀(0) is not 1
    inner, beyond = select(gt(size, 8.0), mul(0.0, size), size), select(gt(size, 8.0), size, 8.0)
    below = _chebyshev(near, sub(mul(0.25, inner), 1.0))
    above = mul(_chebyshev(far, sub(div(16.0, beyond), 1.0)), rsqrt(beyond))
    return select(gt(size, 8.0), above, below if factor is None else mul(below, factor(inner)))


class Bessel(Elementwise):
    """e to the -|x| times a modified Bessel function; half-precision floats by way of float32."""

    fusion = "long"
    pace = 20.0

    def __init__(self, name: str, series: Callable[[Array], Array], slope: Partial) -> None:
        super().__init__(name, name, FLOATING, [slope])
        self.series = series

    def lower(self, b: Builder, x: IrValue) -> IrValue:
        return b.inline(self.value, x)

    def value(self, x: Array) -> Array:
        """The value in terms of arithmetic."""
        dtype = typeof(x).dtype
        if dtypes.itemsize_bits(dtype) < 32:
            return convert_element_type(self.series(convert_element_type(x, "float32")), dtype)
        return self.series(x)


def _i0e(x: Array) -> Array:
    return _two_ranges(_I0_NEAR, _I0_FAR, x, None)


def _i1e(x: Array) -> Array:
    return mul(sign(x), _two_ranges(_I1_NEAR, _I1_FAR, x, lambda size: size))


def _i1e_slope(t: Array, y: Array, x: Array) -> Array:
    """t (I₀ₑ - y (sign x + 1/x)), whose limit at 0 is t / 2."""
    away = bitwise_not(le(abs(x), float(dtypes.finfo(typeof(x).dtype).eps)))      # NaN is, too
    safe = select(away, x, 1.0)
    slope = sub(bessel_i0e(safe), mul(y, add(sign(safe), reciprocal(safe))))
    return mul(t, select(away, slope, 0.5))


bessel_i0e_p = Bessel("bessel_i0e", _i0e,
                      lambda t, y, x: mul(t, sub(bessel_i1e(x), mul(sign(x), y))))
bessel_i1e_p = Bessel("bessel_i1e", _i1e, _i1e_slope)


def bessel_i0e(x: ArrayLike) -> Array:
    """exp(-|x|) I₀(x), the scaled modified Bessel function of order 0.

    Even in x, and between 0 and 1: the factor keeps it from overflowing where I₀ does.

    Returns: An array of the shape and dtype of x; half-precision is computed in float32.

    >>> olympus.lax.bessel_i0e(1.0)
    Array(0.4657596, dtype=float32, weak_type=True)
    """
    return bessel_i0e_p.bind(x)


def bessel_i1e(x: ArrayLike) -> Array:
    """exp(-|x|) I₁(x), the scaled modified Bessel function of order 1.

    Odd in x: bessel_i1e(-x) = -bessel_i1e(x). The derivative at 0 is 1/2.

    Returns: An array of the shape and dtype of x; half-precision is computed in float32.

    >>> olympus.lax.bessel_i1e(1.0)
    Array(0.2079104, dtype=float32, weak_type=True)
    """
    return bessel_i1e_p.bind(x)


complete_docstrings(globals(), {
    "x": "floats, any shape.",
})
