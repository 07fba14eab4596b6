"""Bessel functions of whole order: J, Y and K; I belong to lax and numpy.

Orders 0 and 1 are Chebyshev series, computed with mpmath in 50 digits: up to 8 of the functions, or
of their rest without logarithm and pole, in x²; beyond of the amplitudes P and Q of sqrt(2/πx) (P
cos χ - Q sin χ) (DLMF 10.17.3), or of sqrt(x) eˣ K. Higher orders follow by the recurrence (DLMF
10.6.1), for J backwards where it is less than its order (Miller's algorithm, DLMF 3.6(iii)). Near
their zeros J and Y have the absolute error of their amplitude.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...base.docstrings import complete_docstrings, described_like
from ...base.typing import Array, ArrayLike
from ...core.primitive import Primitive
from ...core.trace import typeof
from ...jit.fused import fused
from ...lax.creation import full_like
from ...lax.special.classical import bessel_i0e_p, bessel_i1e_p
from ...lax.special.series import iterate
from ...numpy.arithmetic import absolute
from ...numpy.elementary import exp, floor, sqrt
from ...numpy.grids import arange
from ...numpy.selection import where
from ...numpy.trigonometry import bessel_i1, cos, i0 as numpy_i0, sin
from ...types import dtypes
from ...types.shape import static_int
from .family import (
    Special, apply, by_format, chebyshev, inside, log_half, nowhere, operands, outside,
)
from .gammas import gammaln_above

_J0 = (
    0.15772797147489012, -0.008723442352852221, 0.2651786132033368, -0.37009499387264977,
    0.15806710233209725, -0.034893769411408884, 0.004819180069467605, -0.00046062616620627504,
    3.246032882100508e-05, -1.7619469077621507e-06, 7.608163592418782e-08, -2.679253530557673e-09,
    7.848696314479465e-11, -1.9438346867370164e-12, 4.125320595634374e-14, -7.588508125447546e-16,
    1.2218515873961411e-17)
_J1 = (
    0.08104484632565812, -0.1489751450676521, 0.1609992623572097, -0.08268049176681791,
    0.022213639654966037, -0.003646940600769276, 0.0004050337728354822, -3.255554866857259e-05,
    1.9858774049915165e-06, -9.521984756750436e-08, 3.687133759097148e-09, -1.178026622695885e-10,
    3.160154580348003e-12, -7.221755239651773e-14, 1.4232144003513942e-15, -2.4441972916190464e-17,
    3.6912682997929334e-19)
_Y0 = (
    0.03645469809116044, -0.2783237094075825, 0.2960499990207148, 0.09825508408187864,
    -0.10755155280627783, 0.031799074084414514, -0.005161397105810715, 0.0005498525320039012,
    -4.1996983149420134e-05, 2.4290361107923793e-06, -1.1049969793472957e-07, 4.06651736597911e-09,
    -1.2374148898289854e-10, 3.1685725528945945e-12, -6.926956032431002e-14,
    1.3086308625876684e-15, -2.1586201986914482e-17)
_Y1 = (
    0.038300769852423776, -0.08182561412732826, -0.0248677076121964, 0.047967452752746984,
    -0.01852588451089802, 0.003680607687823511, -0.0004627254060293369, 4.06940026958087e-05,
    -2.6617695125295625e-06, 1.350602691325434e-07, -5.483524110336276e-09, 1.8245086841229007e-10,
    -5.070666636591129e-12, 1.1956162517587948e-13, -2.423162442712473e-15, 4.268126513072962e-17,
    -6.596060978723042e-19)
_P0 = (
    0.9994603493475187, -0.0005365220468132117, 3.0751847875194745e-06, -5.1705945376060975e-08,
    1.6306464635151382e-09, -7.86409137723707e-11, 5.168262387349193e-12, -4.3045788699253914e-13,
    4.3265957431549404e-14, -5.069034095935236e-15, 6.748072215733873e-16, -1.0011513723467786e-16,
    1.6305919233744186e-17, -2.880866169482871e-18)
_Q0 = (
    -0.12444683684269607, 0.0005470815954089319, -5.9315987288485175e-06, 1.4377965798375193e-07,
    -5.817532749493056e-09, 3.376097523734991e-10, -2.565397936797308e-11, 2.404916100281365e-12,
    -2.6690625482579414e-13, 3.4041800321963686e-14, -4.87994410531204e-15, 7.729703176242605e-16,
    -1.3348852171502517e-16, 2.4865952389390515e-17, -4.952892629886516e-18,
    1.0473158973776097e-18)
_P1 = (
    1.0009030408600137, 0.0008989898330859408, -3.987284300488908e-06, 6.177633960644299e-08,
    -1.8718907491063067e-09, 8.816898659582339e-11, -5.704863640395645e-12, 4.699195515230542e-13,
    -4.6842237839904895e-14, 5.452674896044717e-15, -7.221180842274018e-16, 1.0667689114335412e-16,
    -1.7312313216116335e-17, 3.0492991197665872e-18)
_Q1 = (
    0.3742222965562826, -0.0007702178839325664, 7.3108922063643636e-06, -1.676782510726674e-07,
    6.583354662120443e-09, -3.749090950541556e-10, 2.8121750359748866e-11, -2.61145253946232e-12,
    2.8774212663332235e-13, -3.649001916061838e-14, 5.206626366226707e-15, -8.215318025458595e-16,
    1.4141084390211833e-16, -2.626761589838529e-17, 5.2192649196714085e-18, -1.101261718787959e-18)
_K0 = (
    -0.2676636966169514, 0.3442898999246285, 0.0359799365153615, 0.001264615411446926,
    2.286212103119452e-05, 2.5347910790261494e-07, 1.904516377220209e-09, 1.0349695257633625e-11,
    4.2598161427910826e-14, 1.3744654358807508e-16)
_K1 = (
    0.7626501136694739, -0.3531559607765449, -0.12261118082265715, -0.006975723859639864,
    -0.0001730288957513052, -2.4334061415659684e-06, -2.213387630734726e-08,
    -1.4114883926335278e-10, -6.666901694199329e-13, -2.427449850519366e-15,
    -7.023863479386288e-18)
_K0_FAR = (
    1.2201515410329777, -0.0314481013119645, 0.0015698838857300533, -0.00012849549581627802,
    1.39498137188765e-05, -1.8317555227191195e-06, 2.766813639445015e-07, -4.660489897687948e-08,
    8.574034017414225e-09, -1.6975345093890614e-09, 3.5773972814003283e-10, -7.957489244477396e-11,
    1.8559491149549264e-11, -4.514597883374519e-12, 1.1403405882073441e-12,
    -2.9800969231481784e-13, 8.032890775068375e-14, -2.2275133267462965e-14, 6.340076476276646e-15,
    -1.848593377920907e-15, 5.5120559994043335e-16, -1.6782311257549006e-16,
    5.2103917776435543e-17, -1.6475805939842632e-17, 5.3004337711773354e-18)
_K1_FAR = (
    1.3603130952422213, 0.10392373657681724, -0.002857816859622779, 0.00019521551847135162,
    -1.936197974166083e-05, 2.406484947837217e-06, -3.5019606030878126e-07, 5.7410841254500495e-08,
    -1.0345762465678097e-08, 2.0150497551970347e-09, -4.1903547593419254e-10,
    9.218315187605315e-11, -2.129967838427791e-11, 5.139639673482343e-12, -1.2891739609498229e-12,
    3.348419666052243e-13, -8.976705182010146e-14, 2.4771544242195988e-14, -7.0198370892147685e-15,
    2.038703166239861e-15, -6.057047270643018e-16, 1.8380935752430455e-16, -5.689462849193648e-17,
    1.7940510478863572e-17, -5.7567444820733025e-18)


def _far(x: Any, p: Any, q: Any, order: int) -> tuple[Array, Array]:
    """(J, Y) for x > 8."""
    u = 128.0 / (x * x) - 1.0
    p, q = chebyshev(u, p), chebyshev(u, q) / x
    c, s = cos(x), sin(x)
    both, gap = c + s, s - c        # √2 cos(x - π/4), √2 sin(x - π/4)
    cosine, sine = (both, gap) if order == 0 else (gap, -both)
    size = 1.0 / sqrt(math.pi * x)
    return size * (p * cosine - q * sine), size * (p * sine + q * cosine)


def _pair(x: Array, order: int, second: bool) -> Array:
    """J or Y of order 0 or 1 for x > 0."""
    near = x <= 8.0
    small, large = inside(near, x, 1.0), outside(near | (x == math.inf), x, 9.0)
    u = small * small / 32.0 - 1.0
    value = chebyshev(u, _J1 if order else _J0)
    value = small * value if order else value
    if second:
        value = 2.0 / math.pi * (log_half(small) * value)
        value = value + chebyshev(u, _Y0) if order == 0 else \
            value + (small * chebyshev(u, _Y1) - 2.0 / math.pi / small)
    far = _far(large, *((_P1, _Q1) if order else (_P0, _Q0)), order)[second]
    return where(near, value, where(x == math.inf, 0.0, far))


def _j(order: int, x: Array) -> Array:
    size = absolute(x)
    value = _pair(where(size > 0.0, size, 1.0), order, False)
    value = where(size == 0.0, x if order else 1.0, where(size == size, value, x))
    return where(x < 0.0, -value, value) if order else value


def _y(order: int, x: Array) -> Array:
    value = _pair(inside(x > 0.0, x, 1.0), order, True)
    return where(x > 0.0, value, where(x == 0.0, -math.inf, math.nan))


def _k(order: int, x: Array, scaled: bool) -> Array:
    legal = x > 0.0
    near = legal & (x <= 2.0)
    small, large = inside(near, x, 1.0), inside(legal & ~near, x, 3.0)
    u = 0.5 * small * small - 1.0
    level = log_half(small)
    if order:
        value = chebyshev(u, _K1) / small + level * (exp(small) * bessel_i1e_p.bind(small))
    else:
        value = chebyshev(u, _K0) - level * (exp(small) * bessel_i0e_p.bind(small))
    far = chebyshev(4.0 / large - 1.0, _K1_FAR if order else _K0_FAR) / sqrt(large)
    value, far = (value * exp(small), far) if scaled else (value, far * exp(-large))
    return where(legal, where(near, value, far), where(x == 0.0, math.inf, math.nan))


def _upwards(step: Any, n: Array, x: Array, active: Array, first: Array, second: Array) -> Array:
    """The value at n of a recurrence whose values at 0 and 1 are given."""
    def body(i: Array, state: Sequence[Array], constants: Sequence[Array]) -> Any:
        (low, high), (order, z) = state, constants
        k = i + 1.0
        return k + 1.0 < order, (high, step(k, z, low, high))

    high = iterate(body, active & (n > 1.0), (first, second), (n, x), 100_000)[1]
    return where(n == 0.0, first, high)


def _miller(i: Array, state: Sequence[Array], constants: Sequence[Array]
            ) -> tuple[Array, tuple[Array, Array, Array, Array]]:
    (above, here, total, at_n), (n, x, top) = state, constants
    k = top - i
    below = 2.0 * k / x * here - above
    at_n = where(k == n, here, at_n)
    even = k - 2.0 * floor(0.5 * k) == 0.0
    total = total + where(even, 2.0 * here, 0.0)
    huge = by_format(x, 2.0 ** 300, 2.0 ** 60)
    scale = where(absolute(below) > huge, 1.0 / huge, 1.0)
    return k > 1.0, (here * scale, below * scale, total * scale, at_n * scale)


def _jn(tol: float, n: Array, x: Array) -> Array:
    order, size = absolute(n), absolute(x)
    legal = (order == floor(order)) & (size < math.inf) & (order < 1e5)
    m, z = inside(legal, order, 0.0), inside(legal & (size > 0.0), size, 1.0)
    first, second = _j(0, z), _j(1, z)
    up = (z > m) | (m <= 1.0)
    high = _upwards(lambda k, z, low, high: 2.0 * k / z * high - low, m, z, legal & up,
                    first, second)
    # Downwards from an order where J is nothing; 1 = J₀ + 2 J₂ + 2 J₄ + ...
    tiny = ~up & (z < by_format(x, 1e-20, 1e-4))
    down = legal & ~up & ~tiny
    top = 2.0 * floor(0.5 * (m + 20.0 + sqrt(160.0 * m)))
    zero, least = z * 0.0, by_format(x, 1e-290, 1e-30)
    _, last, total, at_n = iterate(
        _miller, down, (zero, zero + least, zero, zero), (m, inside(down, z, 1.0), top), 200_000)
    low = at_n / (total + last)
    first = exp(m * log_half(z) - gammaln_above(m + 1.0))
    value = where(up, high, where(tiny, first, low))
    value = where(size == 0.0, where(order == 0.0, 1.0, 0.0), value)
    odd = order - 2.0 * floor(0.5 * order) != 0.0
    value = where(odd & ((n < 0.0) ^ (x < 0.0)), -value, value)
    value = where((size == math.inf) & (order == floor(order)), 0.0, where(legal, value, math.nan))
    return where((n != n) | (x != x), math.nan, value)


def _yn(tol: float, n: Array, x: Array) -> Array:
    order = absolute(n)
    legal = (order == floor(order)) & (order < 1e5) & (x > 0.0) & (x < math.inf)
    m, z = inside(legal, order, 0.0), inside(legal, x, 1.0)
    value = _upwards(lambda k, z, low, high: 2.0 * k / z * high - low, m, z, legal,
                     _y(0, z), _y(1, z))
    # Once it is infinite the recurrence is inf - inf.
    value = where(value == value, value, -math.inf)
    odd = order - 2.0 * floor(0.5 * order) != 0.0
    edge = where((order == floor(order)) & (x == math.inf), 0.0,
                 where((order == floor(order)) & (x == 0.0), -math.inf, math.nan))
    value = where(legal, value, edge)
    return where(odd & (n < 0.0), -value, value)


def _kn(tol: float, n: Array, x: Array) -> Array:
    order = absolute(n)
    legal = (order == floor(order)) & (order < 1e5) & (x > 0.0) & (x < math.inf)
    m, z = inside(legal, order, 0.0), inside(legal, x, 1.0)
    value = _upwards(lambda k, z, low, high: low + 2.0 * k / z * high, m, z, legal,
                     _k(0, z, False), _k(1, z, False))
    edge = where((order == floor(order)) & (x == math.inf), 0.0,
                 where((order == floor(order)) & (x == 0.0), math.inf, math.nan))
    return where(legal, value, edge)


# Primitives --------------------------------------------------------------------------------------

def _between(prim: Primitive, sign: float) -> Any:
    """The tangent rule for the slope (f(n-1) + sign f(n+1)) / 2."""
    return lambda t, y, n, x: t * 0.5 * (prim.bind(n - 1.0, x) + sign * prim.bind(n + 1.0, x))


jn_p = Special("jn", _jn, nowhere, lambda *xs: _between(jn_p, -1.0)(*xs))
yn_p = Special("yn", _yn, nowhere, lambda *xs: _between(yn_p, -1.0)(*xs))
kn_p = Special("kn", _kn, nowhere, lambda *xs: -_between(kn_p, 1.0)(*xs))
j0_p = Special("j0", lambda tol, x: _j(0, x), lambda t, y, x: -t * j1_p.bind(x))
j1_p = Special("j1", lambda tol, x: _j(1, x),
               lambda t, y, x: t * 0.5 * (j0_p.bind(x) - jn_p.bind(full_like(x, 2.0), x)))
y0_p = Special("y0", lambda tol, x: _y(0, x), lambda t, y, x: -t * y1_p.bind(x))
y1_p = Special("y1", lambda tol, x: _y(1, x), lambda t, y, x: t * (y0_p.bind(x) - y / x))
k0_p = Special("k0", lambda tol, x: _k(0, x, False), lambda t, y, x: -t * k1_p.bind(x))
k1_p = Special("k1", lambda tol, x: _k(1, x, False),
               lambda t, y, x: -t * (k0_p.bind(x) + y / x))
k0e_p = Special("k0e", lambda tol, x: _k(0, x, True), lambda t, y, x: t * (y - k1e_p.bind(x)))
k1e_p = Special("k1e", lambda tol, x: _k(1, x, True),
                lambda t, y, x: t * (y - k0e_p.bind(x) - y / x))


# Public functions --------------------------------------------------------------------------------

@fused(inline=True)
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind of order 0.

    >>> print(f"{special.i0(1.0):.5f}")
    1.26607
    """
    return numpy_i0(x)


@fused(inline=True)
def i0e(x: ArrayLike) -> Array:
    """exp(-|x|) times `i0(x)`, which does not overflow.

    >>> print(f"{special.i0e(1.0):.5f}")
    0.46576
    """
    return apply(bessel_i0e_p, x)


@fused(inline=True)
def i1(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind of order 1.

    >>> print(f"{special.i1(1.0):.5f}")
    0.56516
    """
    x, = operands("i1", x)
    return bessel_i1(x)


@fused(inline=True)
def i1e(x: ArrayLike) -> Array:
    """exp(-|x|) times `i1(x)`, which does not overflow.

    >>> print(f"{special.i1e(1.0):.5f}")
    0.20791
    """
    return apply(bessel_i1e_p, x)


@fused(static=("v", "n_iter"))
def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """The Bessel functions of the first kind of orders 0, 1, ..., v.

    Args:
      z: real floats, any shape.
      v: the largest order, an int >= 0.
      n_iter: an int, for JAX's sake: as many steps as needed are made.
    Returns: An array [v+1, *z.shape] of the dtype of z.

    >>> print(special.bessel_jn(onp.array([0.]), v=2))
    [[1.]
     [0.]
     [0.]]
    """
    v = static_int(v, "bessel_jn", "v")
    static_int(n_iter, "bessel_jn", "n_iter")
    if v < 0:
        raise ValueError(f"bessel_jn: v {v} given; an int >= 0 is required.")
    z, = operands("bessel_jn", z, inexact=False)
    aval = typeof(z)
    if not dtypes.is_floating(aval.dtype):
        raise ValueError(f"bessel_jn: z {aval} given; real floats are required; convert it with "
                         "astype.")
    orders = arange(v + 1, dtype=aval.dtype).reshape(v + 1, *[1] * aval.ndim)
    return apply(jn_p, orders, z)


@fused(inline=True)
def j0(x: ArrayLike) -> Array:
    """The Bessel function of the first kind of order 0.

    >>> print(f"{special.j0(1.0):.5f}")
    0.76520
    """
    return apply(j0_p, x)


@fused(inline=True)
def j1(x: ArrayLike) -> Array:
    """The Bessel function of the first kind of order 1.

    >>> print(f"{special.j1(1.0):.5f}")
    0.44005
    """
    return apply(j1_p, x)


@fused(inline=True)
def y0(x: ArrayLike) -> Array:
    """The Bessel function of the second kind of order 0.

    Returns: An array of the shape of x: -inf at 0, NaN below.

    >>> print(f"{special.y0(1.0):.5f}")
    0.08826
    """
    return apply(y0_p, x)


@fused(inline=True)
@described_like(y0)
def y1(x: ArrayLike) -> Array:
    """The Bessel function of the second kind of order 1.

    >>> print(f"{special.y1(1.0):.5f}")
    -0.78121
    """
    return apply(y1_p, x)


@fused(inline=True)
def k0(x: ArrayLike) -> Array:
    """The modified Bessel function of the second kind of order 0.

    Returns: An array of the shape of x: inf at 0, NaN below.

    >>> print(f"{special.k0(1.0):.5f}")
    0.42102
    """
    return apply(k0_p, x)


@fused(inline=True)
@described_like(k0)
def k1(x: ArrayLike) -> Array:
    """The modified Bessel function of the second kind of order 1.

    >>> print(f"{special.k1(1.0):.5f}")
    0.60191
    """
    return apply(k1_p, x)


@fused(inline=True)
@described_like(k0)
def k0e(x: ArrayLike) -> Array:
    """exp(x) times `k0(x)`, which does not underflow.

    >>> print(f"{special.k0e(1.0):.5f}")
    1.14446
    """
    return apply(k0e_p, x)


@fused(inline=True)
@described_like(k0)
def k1e(x: ArrayLike) -> Array:
    """exp(x) times `k1(x)`, which does not underflow.

    >>> print(f"{special.k1e(1.0):.5f}")
    1.63615
    """
    return apply(k1e_p, x)


@fused(inline=True)
def jn(n: ArrayLike, x: ArrayLike) -> Array:
    """The Bessel function of the first kind of whole order.

    Args: x: real numbers of a shape that broadcasts; integers become floats.
    Returns: An array of the broadcast shape; NaN for orders that are not whole (SciPy's `jn` takes
      real ones, as its `jv`).

    >>> print(f"{special.jn(3, 2.0):.5f}")
    0.12894
    """
    return apply(jn_p, n, x)


@fused(inline=True)
def yn(n: ArrayLike, x: ArrayLike) -> Array:
    """The Bessel function of the second kind of whole order.

    Args: x: real numbers of a shape that broadcasts; integers become floats.
    Returns: An array of the broadcast shape: -inf at 0, NaN below.

    >>> print(f"{special.yn(3, 2.0):.5f}")
    -1.12778
    """
    return apply(yn_p, n, x)


@fused(inline=True)
def kn(n: ArrayLike, x: ArrayLike) -> Array:
    """The modified Bessel function of the second kind of whole order.

    Args: x: real numbers of a shape that broadcasts; integers become floats.
    Returns: An array of the broadcast shape: inf at 0, NaN below.

    >>> print(f"{special.kn(3, 2.0):.5f}")
    0.64739
    """
    return apply(kn_p, n, x)


complete_docstrings(globals(), {
    "x": "real numbers; integers become floats.",
    "n": "whole numbers, of size below 100000.",
}, returns="An array of the shape of x.")
