"""Special functions: limits, errors, accuracy over wide ranges, derivatives of derivatives."""

import mpmath as mp
import numpy as np
import pytest
import scipy.special as sp

import olympus
from olympus import lax
from olympus._src.lax.special.incomplete_beta import beta_density_p, betainc_slope_p
from olympus._src.lax.special.incomplete_gamma import gamma_density_p, igamma_slope_p
from olympus._src.lax.special.zeta import zeta_slope_p

INF, NAN = np.inf, np.nan
GAMMA_EDGES = [  # a, x, P, Q, dP/da, d sample / da
    (0.0, 1.0, 1, 0, NAN, NAN), (0.0, 0.0, NAN, NAN, NAN, NAN), (2.0, 0.0, 0, 1, 0, 0),
    (2.0, -0.0, 0, 1, 0, 0), (2.0, INF, 1, 0, 0, INF), (INF, 2.0, 0, 1, 0, NAN),
    (INF, INF, NAN, NAN, NAN, NAN), (0.0, INF, 1, 0, NAN, NAN), (INF, 0.0, 0, 1, 0, NAN),
    (-1.0, 2.0, NAN, NAN, NAN, NAN), (2.0, -1.0, NAN, NAN, NAN, NAN),
    (-INF, 1.0, NAN, NAN, NAN, NAN), (NAN, 1.0, NAN, NAN, NAN, NAN), (1.0, NAN, NAN, NAN, NAN, NAN)]
BETA_EDGES = [
    (0.0, 1.0, 0.5, 1), (1.0, 0.0, 0.5, 0), (1.0, 0.0, 1.0, 1), (0.0, 0.0, 0.5, NAN),
    (INF, 1.0, 0.5, 0), (INF, 1.0, 1.0, 1), (1.0, INF, 0.5, 1), (1.0, INF, 0.0, 0),
    (INF, INF, 0.5, NAN), (-1.0, 1.0, 0.5, NAN), (1.0, -1.0, 0.5, NAN), (2.0, 3.0, 0.0, 0),
    (2.0, 3.0, 1.0, 1), (2.0, 3.0, 1.5, NAN), (2.0, 3.0, -0.5, NAN), (NAN, 1.0, 0.5, NAN),
    (2.0, 3.0, NAN, NAN)]
ZETA_EDGES = [(1.0, 2.0, INF), (0.5, 2.0, NAN), (INF, 0.5, INF), (INF, 1.0, 1), (INF, 2.0, 0),
              (2.0, INF, 0), (2.0, 0.0, INF), (2.0, -1.0, INF), (2.5, -1.5, NAN), (NAN, 1.0, NAN)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_edges(dtype):
    with olympus.enable_x64(True):
        a, x, *wanted = np.array(GAMMA_EDGES, dtype).T
        for fun, w in zip((lax.igamma, lax.igammac, lax.igamma_grad_a, lax.random_gamma_grad),
                          wanted, strict=True):
            np.testing.assert_array_equal(fun(a, x), w, fun.__name__)
        a, b, x, w = np.array(BETA_EDGES, dtype).T
        np.testing.assert_array_equal(lax.betainc(a, b, x), w)
        s, q, w = np.array(ZETA_EDGES, dtype).T
        np.testing.assert_array_equal(lax.zeta(s, q), w)


def test_shapes_and_dtypes():
    one = np.float32([[1.0, 2.0]])
    for fun in (lax.igamma, lax.igammac, lax.igamma_grad_a, lax.random_gamma_grad, lax.zeta):
        assert fun(np.zeros((0, 2), "f4"), np.zeros((0, 2), "f4")).shape == (0, 2)
        assert fun(2.0, 3.0).weak_type and fun(2.0, 3.0).dtype == np.float32
        assert fun(2.0, one).shape == (1, 2) and not fun(2.0, one).weak_type
        assert fun(np.float16(2), np.float16(3)).dtype == np.float16
    assert lax.betainc(2.0, 3.0, one / 3).shape == (1, 2)


ERRORS = [
    (lambda: lax.igamma(1, 2), TypeError, "igamma: operand 0 is int32"),
    (lambda: lax.igamma(np.float32(1), np.float16(1)), TypeError, "one dtype"),
    (lambda: lax.zeta(1j, 2j), TypeError, "floating"),
    (lambda: lax.igammac(np.ones(2, "f4"), np.ones(3, "f4")), TypeError, "equal shapes"),
    (lambda: lax.mulhi(1.0, 2.0), TypeError, "mulhi: operand 0 is float32"),
    (lambda: lax.polynomial(1.0, np.float32(2)), TypeError, "a vector of coefficients"),
    (lambda: lax.polynomial(1.0, np.ones(2, "i4")), TypeError, "one dtype"),
    (lambda: lax.polynomial(1.0, (1.0,), unroll=0), ValueError, "positive int"),
]


@pytest.mark.parametrize("case", range(len(ERRORS)))
def test_errors(case):
    call, kind, text = ERRORS[case]
    with pytest.raises(kind, match=text):
        call()


def wide(count):
    """a in 1e-6 … 1e6, x near a or anywhere."""
    rng = np.random.default_rng(1)
    a = 10 ** rng.uniform(-6, 6, count)
    near = a * (1 + rng.normal(size=count) * np.minimum(0.5, 3 / np.sqrt(a)))
    return a, np.where(rng.random(count) < 0.6, np.abs(near), 10 ** rng.uniform(-6, 6, count))


def mp_lower(a, x):
    a, x = mp.mpf(float(a)), mp.mpf(float(x))
    term = total = mp.mpf(1)
    n = 0
    while term > total * mp.mpf(10) ** -40:
        n += 1
        term *= x / (a + n)
        total += term
    return total * mp.exp(a * mp.log(x) - x - mp.loggamma(a + 1))


def test_incomplete_gamma_is_accurate():
    a, x = (v[:150] for v in wide(150))
    keep = (a < 1e4) & (x < a + 40 * np.sqrt(a) + 100)
    a, x = a[keep], x[keep]
    with olympus.enable_x64(True), mp.workdps(60):
        p, q = np.asarray(lax.igamma(a, x)), np.asarray(lax.igammac(a, x))
        single = np.asarray(lax.igamma(a.astype("f4"), x.astype("f4")))
        for i in range(len(a)):
            exact = mp_lower(a[i], x[i])
            for found, wanted in ((p[i], exact), (q[i], 1 - exact)):
                if wanted > mp.mpf(10) ** -20:
                    assert abs(found / wanted - 1) < 2e-14, (a[i], x[i])
            if exact > mp.mpf(10) ** -30:
                exact = mp_lower(np.float32(a[i]), np.float32(x[i]))
                assert abs(single[i] / exact - 1) < 6.1e-8, (a[i], x[i])


def test_large_arguments_stay_accurate():
    with olympus.enable_x64(True):
        a = np.array([1e6, 1e8, 1e12])
        np.testing.assert_allclose(lax.igamma(a, a), 0.5 + 1 / (3 * np.sqrt(2 * np.pi * a)),
                                   rtol=1e-9)
        np.testing.assert_allclose(lax.random_gamma_grad(a, a), 1 + 1 / (6 * a), rtol=1e-9)
        a = np.array([1e15, 1e17, 1e20])        # a - 1 is a from 2 ** 53 on
        np.testing.assert_allclose(gamma_density_p.bind(a, a), 1 / np.sqrt(2 * np.pi * a),
                                   rtol=1e-13)
        big = lax.betainc(np.array([1e6]), np.array([1e6]), np.array([0.5]))
        np.testing.assert_allclose(big, 0.5, rtol=1e-12)


def test_second_derivatives():
    with olympus.enable_x64(True):
        a, b, x, h = 2.3, 1.7, 0.4, 1e-5
        for prim, point in ((gamma_density_p, (a, x)), (beta_density_p, (a, b, x))):
            point = [np.float64(v) for v in point]
            for i in range(len(point)):
                moved = [[*point[:i], point[i] + s * h, *point[i + 1:]] for s in (1, -1)]
                numeric = (prim.bind(*moved[0]) - prim.bind(*moved[1])) / (2 * h)
                np.testing.assert_allclose(olympus.grad(prim.bind, i)(*point), numeric, rtol=1e-8)
        density = np.exp((a - 1) * np.log(x) - x) / sp.gamma(a)
        np.testing.assert_allclose(gamma_density_p.bind(a, x), density, rtol=1e-13)
        mixed = olympus.grad(lambda a, x: olympus.grad(lax.igamma, 1)(a, x))(a, x)
        np.testing.assert_allclose(mixed, density * (np.log(x) - sp.psi(a)), rtol=1e-12)
        slope = olympus.grad(lax.random_gamma_grad, 1)(a, x)
        numeric = (lax.random_gamma_grad(a, x + h) - lax.random_gamma_grad(a, x - h)) / (2 * h)
        np.testing.assert_allclose(slope, numeric, rtol=1e-7)


# Parameters of every formula: small and large ones, both sides of the peak, far tails.
GAMMA_POINTS = np.array([
    (2.3, 0.4), (2.3, 3.5), (0.3, 0.2), (0.01, 1.2), (1e-3, 1e-3), (1e-3, 5.0), (5.0, 5.3),
    (20.0, 18.0), (20.0, 22.0), (20.0, 60.0), (100.0, 95.0), (100.0, 130.0), (0.5, 8.0), (1.0, 1.0),
    (1000.0, 1050.0)]).T
BETA_POINTS = np.array([
    (2.0, 3.0, 0.2), (2.0, 3.0, 0.7), (0.3, 0.2, 0.2), (0.3, 0.2, 0.9), (5.0, 0.5, 0.95),
    (20.0, 30.0, 0.35), (20.0, 30.0, 0.5), (0.01, 3.0, 0.3), (0.5, 0.01, 0.8), (30.0, 2.0, 0.97),
    (100.0, 150.0, 0.43), (0.9, 40.0, 0.03)]).T
ZETA_POINTS = np.array([
    (1.001, 1.0), (1.5, 0.3), (2.0, 1.0), (3.0, 2.5), (5.0, 0.01), (10.0, 3.0), (30.0, 5.0),
    (1.1, 1e3), (2.0, 1e6), (2.0, 1e-3), (2.0, 14.5), (100.0, 0.9), (250.0, 0.9)]).T


def lower_gamma(a, x):
    return mp.gammainc(a, 0, x, regularized=True)


def lower_beta(a, b, x):
    return mp.betainc(a, b, 0, x, regularized=True)


PARAMETERS = [(lax.igamma, lower_gamma, GAMMA_POINTS, orders) for orders in ((2, 0), (3, 0), (2, 1))
              ] + [
    (lax.betainc, lower_beta, BETA_POINTS, orders)
    for orders in ((1, 0, 0), (0, 1, 0), (2, 0, 0), (1, 1, 0), (0, 2, 0), (1, 0, 1), (0, 2, 1))] + [
    (lax.zeta, mp.zeta, ZETA_POINTS, orders) for orders in ((1, 0), (2, 0), (1, 1), (2, 1))]


def derivative(fun, orders):
    """The partial derivative of so many orders in each argument, elementwise."""
    for i, order in enumerate(orders):
        for _ in range(order):
            fun = olympus.grad(fun, i)
    return olympus.vmap(fun)


@pytest.mark.parametrize("case", range(len(PARAMETERS)))
def test_derivatives_in_parameters(case):
    fun, exact, points, orders = PARAMETERS[case]
    with olympus.enable_x64(True), mp.workdps(40):
        found = np.asarray(derivative(fun, orders)(*points))
        for i, point in enumerate(points.T):
            wanted = mp.diff(exact, tuple(mp.mpf(float(v)) for v in point), orders)
            assert abs(float(found[i]) / wanted - 1) < 4e-11, (point, found[i], wanted)


def test_derivatives_of_samples_in_the_parameter():
    def exact(a, x):
        return -mp.diff(lambda t: lower_gamma(t, x), a) * mp.gamma(a) * mp.exp(x) / x ** (a - 1)

    with olympus.enable_x64(True), mp.workdps(30):
        for a, x in ((2.0, 3.0), (0.2, 0.1), (40.0, 38.0)):
            for orders in ((1, 0), (2, 0), (1, 1)):
                point = mp.mpf(a), mp.mpf(x)
                found = derivative(lax.random_gamma_grad, orders)(np.array([a]), np.array([x]))[0]
                wanted = mp.diff(exact, point, orders)
                assert abs(float(found) / wanted - 1) < 1e-8, (a, x, orders, found)
        # For large parameters: x = a + z √a + (z² - 1) / 3 + (z³ - 7 z) / (36 √a) ... at z = 0.
        a = np.array([1e8])
        slope = derivative(lax.random_gamma_grad, (1, 0))(a, a)
        np.testing.assert_allclose(slope, -0.5 / a, rtol=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_edges_of_derivatives_in_parameters(dtype):
    with olympus.enable_x64(True):
        a, x, _, _, first, _ = np.array(GAMMA_EDGES, dtype).T
        np.testing.assert_array_equal(igamma_slope_p.bind(a, x, order=2), first)
        a, b, x, value = np.array(BETA_EDGES, dtype).T
        wanted = np.where((a == 0) | (b == 0) | np.isnan(value), NAN, 0)
        for m, n in ((1, 0), (0, 2)):
            np.testing.assert_array_equal(betainc_slope_p.bind(a, b, x, m=m, n=n), wanted)
        s = np.array([1, 1, 0.5, INF, INF, INF, 2, 2, NAN, 2, 1e5], dtype)
        q = np.array([2, 0.5, 2, 0.5, 1, 2, INF, -1, 1, NAN, 7], dtype)
        wanted = np.array([-INF, -INF, NAN, INF, 0, 0, 0, NAN, NAN, NAN, 0])
        np.testing.assert_array_equal(zeta_slope_p.bind(s, q, order=1), wanted)
        np.testing.assert_array_equal(zeta_slope_p.bind(s, q, order=2), np.abs(wanted))


def test_densities_at_the_ends():
    a = np.float32([0.5, 1, 2, 20, -1, INF])
    np.testing.assert_array_equal(gamma_density_p.bind(a, np.zeros(6, "f4")),
                                  [INF, 1, 0, 0, NAN, NAN])
    b = np.full(3, 3, "f4")
    ends = beta_density_p.bind(a[:3], b, np.zeros(3, "f4"))
    np.testing.assert_array_equal(ends, [INF, 3, 0])
    np.testing.assert_array_equal(beta_density_p.bind(b, a[:3], np.ones(3, "f4")), ends)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
                                   "uint64"])
def test_mulhi(dtype):
    with olympus.enable_x64(True):
        info = np.iinfo(dtype)
        x = np.array([info.min, info.max, info.max, 7, 100], dtype)
        y = np.array([info.min, info.max, 3, info.max, 100], dtype)
        bits = 8 * x.dtype.itemsize
        wanted = [(int(p) * int(q)) >> bits for p, q in zip(x, y, strict=True)]
        assert np.asarray(lax.mulhi(x, y)).tolist() == wanted


def test_polynomials():
    x = np.linspace(-1, 1, 6, dtype="f4").reshape(2, 3)
    for n in (0, 1, 2, 5, 100):
        c = np.random.default_rng(n).normal(size=n).astype("f4")
        wanted = np.polyval(c, x) if n else 0 * x
        np.testing.assert_allclose(lax.polynomial(x, c), wanted, rtol=2e-4, atol=1e-5)
        np.testing.assert_allclose(olympus.grad(lambda c: lax.polynomial(x, c).sum())(c),
                                   np.vander(x.ravel(), n).sum(0), rtol=1e-4, atol=1e-5)
    many = np.ones((3, 4), "f4") * np.float32([[1], [2], [3]])
    out = olympus.vmap(lax.polynomial, (1, 0))(x, many)
    np.testing.assert_allclose(out, [np.polyval(c, v) for c, v in zip(many, x.T, strict=True)],
                               rtol=1e-6)
    out = olympus.vmap(olympus.vmap(lax.polynomial, (0, None)), (None, 0))(x[0], many)
    np.testing.assert_allclose(out, [np.polyval(c, x[0]) for c in many], rtol=1e-6)
    assert lax.polynomial(np.int32(3), (1, 2, 3)).dtype == np.int32
    assert not np.isnan(lax.polynomial(np.float32(np.inf), (1.0, 2.0)))


def test_samples_are_quantiles_to_second_order():
    key, h = olympus.random.key(0), 1e-3
    with olympus.enable_x64(True):
        for a in (0.3, 2.0, 50.0):
            def sample(a):
                return olympus.random.gamma(key, a)

            part = sp.gammainc(a, float(sample(a)))
            low, mid, high = (sp.gammaincinv(a + k * h, part) for k in (-1, 0, 1))
            second = olympus.grad(olympus.grad(sample))(a)
            np.testing.assert_allclose(second, (low - 2 * mid + high) / h**2, rtol=1e-3)
