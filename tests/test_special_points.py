"""Derivatives where functions are special: zeros, ties, integers, infinities and NaN.

Wanted are one-sided limits, symmetric shares of ties, and NaN wherever the value is NaN because an
argument is; first and second order, forward and reverse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import olympus
from olympus import jacfwd, jacrev, lax, nn, numpy as onp
from olympus.example_libraries import optimizers
from olympus.scipy import special

NAN, INF = np.nan, np.inf
HOLES = [NAN, 1.0, 2.0]
SOME = np.array([False, True, True])


def fraction(x: Any) -> Any:
    return onp.modf(x)[0]


def mantissa(x: Any) -> Any:
    return onp.frexp(x)[0]


# (function, arguments, the derivative in each)
FIRST: list[tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]] = [
    (onp.abs, (NAN,), (NAN,)), (onp.abs, (-0.0,), (1.0,)), (onp.fabs, (-2.0,), (-1.0,)),
    *[(f, xs, (NAN, NAN)) for f in (onp.maximum, lax.min, onp.hypot, onp.logaddexp, onp.logaddexp2)
      for xs in ((NAN, 1.0), (1.0, NAN), (NAN, NAN), (NAN, INF), (-INF, NAN)) if f is not onp.hypot
      or INF not in np.abs(xs)],
    (lax.max, (1.0, 1.0), (0.5, 0.5)), (lax.max, (INF, 1.0), (1.0, 0.0)),
    (onp.hypot, (0.0, 0.0), (0.5, 0.5)), (onp.hypot, (-3.0, 0.0), (-1.0, 0.0)),
    (onp.hypot, (0.0, -INF), (0.0, -1.0)), (onp.hypot, (3e200, 4e200), (0.6, 0.8)),
    (onp.hypot, (-INF, 1.0), (-1.0, 0.0)),
    (onp.logaddexp, (INF, INF), (1.0, 1.0)), (onp.logaddexp, (-INF, 2.0), (0.0, 1.0)),
    (nn.softplus, (NAN,), (NAN,)), (nn.log_sigmoid, (NAN,), (NAN,)),
    (lax.bessel_i1e, (NAN,), (NAN,)), (lax.bessel_i1e, (0.0,), (0.5,)),
    *[(fraction, (x,), (1.0,)) for x in (-3.0, -2.5, -0.0, 0.0, 1.0, 1.5)],
    (fraction, (-INF,), (0.0,)),
    (mantissa, (3.0,), (0.25,)), (mantissa, (-0.3,), (2.0,)), (mantissa, (0.5,), (1.0,)),
    (mantissa, (1e-300,), (2.0 ** 996,)),
    (onp.heaviside, (NAN, 1.0), (0.0, 0.0)),
    *[(f, (HOLES,), ([NAN] * 3,)) for f in (onp.max, onp.min, lambda x: lax.reduce_max(x, (0,)),
                                           lambda x: onp.linalg.norm(x, INF))],
    (onp.max, ([3.0, 1.0, 3.0],), ([0.5, 0.0, 0.5],)),
    (onp.ptp, ([NAN, 1.0],), ([NAN, NAN],)),
    (onp.nanvar, (HOLES,), ([0.0, -0.5, 0.5],)), (onp.nanstd, (HOLES,), ([0.0, -0.5, 0.5],)),
    (onp.nanmean, (HOLES,), ([0.0, 0.5, 0.5],)),
    (lambda x: onp.var(x, where=SOME), ([INF, 1.0, 2.0],), ([0.0, -0.5, 0.5],)),
    (lambda x: onp.nanvar(x, where=SOME), ([INF, 1.0, 2.0],), ([0.0, -0.5, 0.5],)),
    (onp.i0, (0.0,), (0.0,)), (onp.i0, (-0.0,), (0.0,)), (onp.i0, (1.0,), (0.565159103992485,)),
    # Compiled, (x / y) / y would become x / y², which under- and overflows.
    (olympus.jit(lax.div), (0.0, 1e-200), (1e200, 0.0)),
    (olympus.jit(lax.div), (1e300, 1e200), (1e-200, -1e-100)),
    (lambda x, a: onp.interp(x, onp.stack([a, 3 * a]), np.full(2, 2.0)), (2e-200, 1e-200),
     (0.0, 0.0)),
    *[(lambda x: onp.power(x, onp.zeros(())), (x,), (0.0,)) for x in (INF, 0.0, -2.0)],
    (lambda x: onp.power(x, np.arange(3, dtype=np.uint8)).sum(), (0.0,), (1.0,)),
    (lambda x: special.rel_entr(x, 1e-200), (1e200,), (1 + 400 * np.log(10),)),
    (lambda x: special.kl_div(x, -0.0), (2.0,), (INF,)),
    (nn.logsumexp, ([-INF, -INF],), ([0.0, 0.0],)), (nn.squareplus, (-0.0,), (0.5,)),
    (nn.squareplus, (-1e200, 4.0), (0.0, 5e-201)),
    (onp.arctan2, (3e200, 4e200), (1.6e-201, -1.2e-201)),
]
# Functions whose rules square: compared with the same functions in a wider format.
SQUARING: dict[str, Callable[..., Any]] = {
    "gelu": nn.gelu, "squareplus": nn.squareplus, "sparse_plus": nn.sparse_plus,
    "arcsinh": onp.arcsinh, "hypot": lambda x: onp.hypot(x, x / 3),
    "arctan2": lambda x: onp.arctan2(x, 2 * lax.stop_gradient(x)),
    "arctan2 in x": lambda x: onp.arctan2(lax.stop_gradient(x), x),
    "arctan2 beside 1": lambda x: onp.arctan2(x, onp.ones_like(x)),
    "angle": lambda x: onp.angle(lax.complex(x, 3 * lax.stop_gradient(x))),
    "norm": lambda x: onp.linalg.norm(onp.stack([x, x / 3])),
    "l2_norm": lambda x: optimizers.l2_norm([x, x / 3]).astype(x.dtype)}
SECOND: list[tuple[Callable[..., Any], float, float]] = [
    (onp.i0, 0.0, 0.5), (onp.i0, 1.0, 0.7009067737595234), (onp.sinc, 0.0, -np.pi ** 2 / 3),
    (lambda x: onp.hypot(x, 4.0), 3.0, 0.128), (lambda x: onp.hypot(x, 2.0), 0.0, 0.5),
    (lambda x: onp.logaddexp(x, x), 0.3, 0.0), (fraction, -2.0, 0.0), (mantissa, 3.0, 0.0),
    (lambda x: onp.nanvar(onp.stack([x, NAN, 0.0])), 0.7, 0.5), (onp.abs, -2.0, 0.0),
    (onp.arcsinh, 2.0, -2 / 5 ** 1.5), (onp.arcsinh, 0.0, 0.0),
    (lambda x: onp.arctan2(x, 2.0), 1.0, -0.16), (lambda x: onp.arctan2(3.0, x), 3.0, 1 / 18),
    (lambda x: onp.power(3.0, x), 0.0, np.log(3.0) ** 2), (lambda x: onp.power(x, 0.0), 0.0, 0.0),
    (nn.squareplus, 0.5, 2 / 4.25 ** 1.5), (nn.squareplus, -0.5, 2 / 4.25 ** 1.5),
]


@pytest.fixture(autouse=True)
def _x64() -> Any:
    with olympus.enable_x64(True):
        yield


@pytest.mark.parametrize(("fun", "args", "wanted"), FIRST)
def test_first_derivatives(fun: Any, args: tuple[Any, ...], wanted: tuple[Any, ...]) -> None:
    args = tuple([np.asarray(x, float) for x in args])
    for jac in (jacfwd, jacrev):
        for got, want in zip(jac(fun, tuple(range(len(args))))(*args), wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("fun", "x", "wanted"), SECOND)
def test_second_derivatives(fun: Any, x: float, wanted: float) -> None:
    for inner in (jacfwd, jacrev):
        for outer in (jacfwd, jacrev):
            np.testing.assert_allclose(outer(inner(fun))(x), wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("y", [0.0, -0.0, 1.0, 2.0, -1.0, 2.5])
def test_mixed_derivatives_of_powers(y: float) -> None:
    """Regression: at y = 0 the slope in x was that of another power, whose slope in y was x."""
    for x in (0.3, 1.0, 2.0):
        for first, second in ((0, 1), (1, 0)):
            got = jacrev(jacfwd(onp.power, first), second)(x, y)
            np.testing.assert_allclose(got, x ** (y - 1) * (1 + y * np.log(x)), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("name", SQUARING)
def test_slopes_where_squares_overflow_are_those_of_a_wider_format(name: str, dtype: str) -> None:
    """Regression: NaN, 0 or 0.5, as in JAX; of gelu in float16 from 256 on."""
    if name == "angle" and dtype != "float32":
        pytest.skip("no complex numbers of 16 bits")
    limits = onp.finfo(dtype)
    # A norm itself overflows, and is 0, where its squares do not fit float32.
    most = 19 if "norm" in name and dtype != "float16" else int(np.log10(float(limits.max) / 4))
    least = -18 if "norm" in name and dtype != "float16" else int(np.log10(float(limits.tiny))) + 1
    sizes = 10.0 ** np.arange(least, most + 1)
    xs = np.concatenate([-sizes, sizes]).astype(limits.dtype)
    slope = olympus.jit(olympus.vmap(jacrev(SQUARING[name])))
    got, want = [np.asarray(slope(x), float) for x in (xs, xs.astype(float))]
    fits = np.abs(want) < float(limits.max) / 4
    np.testing.assert_allclose(got[fits], want[fits], 8 * float(limits.eps), 4 * float(limits.eps)
                               if name in ("gelu", "squareplus") else float(limits.tiny))


def test_what_is_no_maximum_is_not_multiplied_by_0() -> None:
    assert olympus.jvp(lambda x: lax.max(x, 1.0), (0.0,), (INF,))[1] == 0


def test_medians_of_nan_have_no_derivative() -> None:
    for fun in (onp.median, lambda x: onp.quantile(x, 0.3)):
        assert np.isnan(jacrev(fun)(np.array(HOLES))).any()
        assert np.isnan(jacfwd(fun)(np.array(HOLES))).any()


EDGE = [0.0, -0.0, 1.0, -1.0, 2.5, INF, -INF]
AXES = np.array([complex(a, b) for a in EDGE for b in EDGE])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", ["log", "log2", "log10", "exp2", "sqrt", "sin", "cos"])
def test_complex_zeros_and_infinities(name: str, dtype: str) -> None:
    z = AXES.astype(dtype)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(z)
    defined = ~np.isnan(want)       # the C standard leaves the others open
    if name == "exp2":
        defined &= np.isfinite(z.real) | np.isfinite(z.imag)
    got = np.asarray(getattr(onp, name)(z))[defined]
    for part in ("real", "imag"):
        g, w = getattr(got, part), getattr(want[defined], part)
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-7)


def test_complex_powers_of_0_are_0_where_the_exponent_is_positive() -> None:
    exponents = np.array([1 + 1j, 0, 2, -1, 0.5 - 2j], np.complex64)
    zeros = np.zeros(5, np.complex64)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(onp.power(zeros, exponents), np.power(zeros, exponents))
    assert olympus.grad(lambda x: onp.power(x, 2 + 1j).real)(onp.complex64(0)) == 0


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_frexp_of_subnormals(dtype: str) -> None:
    """XLA's arithmetic on CPU takes float32's subnormals for 0."""
    info = np.finfo(dtype)
    x = np.array([info.smallest_subnormal, -5 * info.smallest_subnormal, info.tiny, info.max,
                  -0.0, INF, NAN], dtype)
    for got, want in zip(onp.frexp(x), np.frexp(x), strict=True):
        np.testing.assert_array_equal(got[:5], want[:5])


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_logarithms_of_exact_powers_are_exact(dtype: str) -> None:
    with olympus.enable_x64(True):
        limits = onp.finfo(dtype)
        for base, fun in ((10, onp.log10), (2, onp.log2)):
            low, high = [int(np.log(float(x)) / np.log(base)) for x in (limits.tiny, limits.max)]
            powers = np.arange(low, high if base == 2 else high + 1)
            texts = [f"1e{e}" if base == 10 else 2.0 ** int(e) for e in powers]
            x = onp.asarray(np.array(texts).astype(float)).astype(dtype)
            wanted = np.asarray(onp.asarray(powers.astype(float)).astype(dtype), np.float64)
            for run in (fun, olympus.jit(fun)):
                np.testing.assert_array_equal(np.asarray(run(x), np.float64), wanted)
    places = onp.log10(onp.array([10, 100, 1e3, 1e5])).astype(int)
    assert places.tolist() == [1, 2, 3, 5]


@pytest.mark.parametrize("exponent", [-4.5, -1.5, -0.5, 0.5, 1.5, 2.5, 7.5])
def test_half_integer_powers_are_rounded_once(exponent: float) -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([10.0 ** rng.uniform(-37, 38, 2000), rng.uniform(0, 3, 2000)]).astype("f4")
    exact = np.asarray(x, np.float64) ** exponent
    exact = np.where((exact < 1.2e-38) | (exact > 3.4e38), np.nan, exact)
    found = np.asarray(olympus.jit(lambda x: x ** exponent)(x), np.float64)
    assert np.nanmax(np.abs(found - exact) / np.spacing(exact.astype("f4"))) <= 0.5001
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 1.0], np.float32)
    expected = [np.float64(v) if v != v else float(abs(v)) if v in (0, -np.inf) else float(v)
                for v in edges]     # C23, F.10.4.5
    with np.errstate(all="ignore"):
        expected = np.array(expected) ** exponent
    found = olympus.jit(lambda x: x ** exponent)(edges)
    np.testing.assert_array_equal(found, expected)
    assert not np.signbit(found)[:4].any()
    slope = olympus.jit(olympus.grad(lambda x: x ** exponent))(np.float32(2))
    np.testing.assert_allclose(slope, exponent * 2.0 ** (exponent - 1), rtol=2e-7)
