"""scipy.special against mpmath, in units in the last place, and at its edges."""

import inspect
import itertools

import mpmath as mp
import numpy as np
import pytest
import scipy.special as sp

import olympus
from olympus.scipy import special

INF, NAN = np.inf, np.nan
EDGES = np.array([0.0, -0.0, INF, -INF, NAN, 1.0, 2.0, -1.0, -2.5, 1e30, -1e30])


def spread(low, high, count, seed=0):
    """Half of the points uniform, half in logarithm, in [low, high]."""
    rng = np.random.default_rng(seed)
    flat = rng.uniform(low, high, count // 2)
    top = max(abs(low), abs(high))
    wide = np.exp(rng.uniform(np.log(top) - 12, np.log(top), count // 2))
    wide = np.where((rng.random(count // 2) < 0.5) & (low < 0), -wide, wide)
    return np.concatenate([flat, np.clip(wide, low, high)])


def ulps(found, wanted):
    """Distances in units in the last place of float64, where the exact value is a normal number."""
    errors = []
    for f, w in zip(np.asarray(found, "f8").tolist(), wanted, strict=True):
        if mp.isfinite(w) and mp.mpf(2) ** -1000 < abs(w) < mp.mpf(2) ** 1020:
            unit = mp.mpf(2) ** (mp.floor(mp.log(abs(w), 2)) - 52)
            errors.append(float(abs(f - w) / unit) if np.isfinite(f) else INF)
    return max(errors)


def at(exact, xs):
    """The exact value, NaN at a pole."""
    try:
        return exact(*map(mp.mpf, map(float, xs)))
    except ValueError:
        return mp.nan


ACCURACY = {  # largest error in ULP of float64, operands' ranges, the function in mpmath
    "erfc": (8, [(-6.0, 26.0)], mp.erfc),
    "erfcx": (12, [(-20.0, 30.0)], lambda x: mp.exp(x * x) * mp.erfc(x)),
    "erfi": (10, [(-26.0, 26.0)], mp.erfi),
    "dawsn": (6, [(-26.0, 26.0)],
              lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x)),
    "ndtr": (6, [(-37.0, 8.0)], mp.ncdf),
    "log_ndtr": (4, [(-37.0, 8.0)], lambda x: mp.log(mp.ncdf(x))),
    "ndtri": (4, [(0.0, 1.0)], lambda p: -mp.sqrt(2) * mp.erfinv(1 - 2 * p)),
    "ndtri_exp": (6, [(-30.0, 0.0)], lambda y: mp.sqrt(2) * mp.erfinv(2 * mp.exp(y) - 1)),
    "log_expit": (4, [(-300.0, 300.0)], lambda x: -mp.log1p(mp.exp(-x))),
    "exprel": (4, [(-300.0, 300.0)], lambda x: mp.expm1(x) / x),
    "entr": (4, [(0.0, 300.0)], lambda x: -x * mp.log(x)),
    "gammaln": (12, [(0.0, 300.0)], mp.loggamma),
    "digamma": (4, [(0.0, 300.0)], mp.digamma),
    "beta": (80, [(0.0, 20.0), (0.0, 20.0)],
             lambda a, b: mp.gamma(a) * mp.gamma(b) / mp.gamma(a + b)),
    "gamma": (6, [(-20.0, 170.0)], mp.gamma), "rgamma": (8, [(-20.0, 170.0)], mp.rgamma),
    "poch": (800, [(0.1, 50.0), (0.1, 50.0)], mp.rf),
    "binom": (900, [(1.0, 1e8), (0.0, 20.0)], mp.binomial),
    "exp1": (4, [(0.0, 300.0)], mp.e1), "expi": (8, [(-300.0, 300.0)], mp.ei),
    "spence": (4, [(0.0, 300.0)], lambda x: mp.re(mp.polylog(2, 1 - x))),
    "zeta": (100, [(-20.0, 30.0)], mp.zeta), "zetac": (4, [(1.0, 60.0)], lambda x: mp.zeta(x) - 1),
    "j0": (100, [(0.0, 50.0)], lambda x: mp.besselj(0, x)),
    "y1": (100, [(0.0, 50.0)], lambda x: mp.bessely(1, x)),
    "k0": (8, [(0.0, 300.0)], lambda x: mp.besselk(0, x)),
    "k1": (8, [(0.0, 300.0)], lambda x: mp.besselk(1, x)),
    "i1": (8, [(0.0, 300.0)], lambda x: mp.besseli(1, x)),
    "kv": (120, [(-60.0, 60.0), (0.0, 300.0)], mp.besselk),
    "kve": (120, [(0.0, 6.0), (0.0, 300.0)], lambda v, x: mp.exp(x) * mp.besselk(v, x)),
    "iv": (400, [(-20.0, 60.0), (0.0, 300.0)], mp.besseli),
    "ive": (400, [(0.0, 6.0), (0.0, 2000.0)], lambda v, x: mp.exp(-x) * mp.besseli(v, x)),
    "ellipkinc": (8, [(-30.0, 30.0), (-9.0, 1.0)], mp.ellipf),
    "ellipeinc": (12, [(-30.0, 30.0), (-9.0, 1.0)], mp.ellipe),
    "elliprf": (4, [(0.0, 1e9), (0.0, 1e9), (0.0, 1e9)], mp.elliprf),
    "elliprd": (6, [(0.0, 1e9), (0.0, 1e9), (0.0, 1e9)], mp.elliprd),
    "elliprc": (6, [(0.0, 1e9), (-1e9, 1e9)], mp.elliprc),
    "ellipk": (6, [(-30.0, 1.0)], mp.ellipk), "ellipe": (20, [(-30.0, 1.0)], mp.ellipe),
    "hyp1f1": (600, [(0.1, 8.0), (0.1, 8.0), (-60.0, 60.0)], mp.hyp1f1),
    "hyp2f1": (60, [(0.1, 8.0), (0.1, 8.0), (0.1, 8.0), (-9.0, 0.9)], mp.hyp2f1),
}


@pytest.mark.parametrize("name", ACCURACY)
def test_errors_in_units_in_the_last_place(name):
    most, ranges, exact = ACCURACY[name]
    xs = [spread(*r, 60, i) for i, r in enumerate(ranges)]
    with mp.workdps(40):
        wanted = [at(exact, x) for x in zip(*xs, strict=True)]
        with olympus.enable_x64(True):
            assert ulps(getattr(special, name)(*xs), wanted) <= most


# Numbers of both signs, from tiny to huge, whole and not: large terms cancel, and Γ has its poles.
ANYWHERE = [-1e8 - 0.5, -1e3 - 0.25, -20.3, -7.0, -2.5, -0.3, -1e-10, 1e-10, 0.3, 1.0, 1.5, 2.5,
            20.3, 24.0, 150.2, 1e3 + 0.5, 1e6, 1e8, 1e15]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "exact"), [("beta", mp.beta), ("binom", mp.binomial)])
def test_beta_and_binom_over_their_whole_domain(name, exact, dtype):
    """Differences of logarithms of Γ were off by 4.5e-7 in float64, and with a rounded sine."""
    pairs = np.array([*itertools.product(ANYWHERE, repeat=2)]).astype(dtype)
    info = np.finfo(dtype)
    with mp.workdps(60), olympus.enable_x64(dtype == "float64"):
        found = np.asarray(getattr(special, name)(*pairs.T), np.float64)
        for pair, y in zip(pairs.astype(float), found, strict=True):
            try:
                wanted = exact(*map(mp.mpf, pair))
            except (ValueError, ZeroDivisionError):
                continue        # a pole
            if name == "binom" and pair[0] < 0 and pair[0] % 1 == 0:
                continue        # a pole of the numerator alone
            if wanted == 0 or not info.tiny * 10 < abs(wanted) < info.max / 10:
                continue
            allowed = 40 * float(info.eps) * float(1 + abs(mp.log(abs(wanted))))
            assert abs(y - wanted) <= allowed * abs(wanted), (pair, y, wanted)


def test_hyp2f1_beyond_one_where_it_is_a_real_power():
    points = [(2, .5, .5, 1.5), (1, 2, 2, 3), (3, .2, .2, 1.1), (2, 3, 3, 2), (.4, 2, .4, 5)]
    found = [float(special.hyp2f1(*map(float, p))) for p in points]
    np.testing.assert_allclose(found, [4, -0.5, -1000, 1, 1 / 16], rtol=5e-5)
    for point in ((0.3, 0.6, 0.3, 1.2), (0.45, 0.7, 0.45, 1.5), (1.0, 0.5, 2.0, np.inf)):
        assert special.hyp2f1(*point) == sp.hyp2f1(*point) == np.inf    # complex: (-0.2)**-0.6


@pytest.mark.slow
def test_ends_of_parameters():
    """A negative whole number beside a whole one, and infinite ones: NaN or a wrong sign before."""
    assert float(special.beta(-10.0, 3.0)) == pytest.approx(-1 / 360)
    with olympus.enable_x64(True):
        assert float(special.beta(1e-300, 1e-300)) == pytest.approx(2e300)
        assert float(special.gammaincinv(1e100, 0.5)) == 1e100
    assert [float(special.betaincinv(*p)) for p in (
        (1.0, np.inf, 0.3), (np.inf, 1.0, 0.3), (np.inf, np.inf, 0.3))][:2] == [0, 1]
    for fun in (special.ellipeinc, special.ellipkinc):
        assert float(fun(np.inf, 0.3)) == np.inf and float(fun(-np.inf, 0.3)) == -np.inf
        assert np.isnan(fun(np.inf, 2.0))


@pytest.mark.slow
def test_hyp2f1_near_one_and_far_out():
    a, b, c = spread(0.1, 5, 60, 0), spread(0.1, 5, 60, 1), spread(0.1, 8, 60, 2)
    near = 1 - 10 ** spread(-9, -0.5, 60, 3)
    whole = np.round(spread(-3, 3, 60, 4))
    nearly = whole + 10 ** spread(-12, -2, 60, 5)
    points = [np.stack(np.broadcast_arrays(*p)) for p in (
        (a, b, c, near), (a, b, abs(a + b + whole) + 0.01, near), (a, b, a + b + 2 + nearly, near),
        (a, a + whole, c, -1 / (1 - near)), (a, a + nearly, c, -1 / (1 - near)),
        (-np.round(a), b, c, 30 * a - 80), (a - 3, b - 3, c, 1.0))]
    xs = np.concatenate(points, 1)
    with mp.workdps(60):
        wanted = [at(mp.hyp2f1, x) for x in xs.T]
        with olympus.enable_x64(True):
            assert ulps(special.hyp2f1(*xs), wanted) <= 2000


@pytest.mark.slow
def test_derivatives_of_hyp2f1_in_every_operand():
    a, b, c = spread(-2, 5, 40, 0), spread(0.1, 5, 40, 1), spread(0.1, 8, 40, 2)
    x = spread(-9, 0.98, 40, 3)
    points = np.concatenate([(a, b, c, x), (-np.round(a + 3), b, c, x), (a, b, a + b + 1, x)], 1)
    with olympus.enable_x64(True):
        found = olympus.jit(olympus.vmap(olympus.grad(special.hyp2f1, (0, 1, 2, 3))))(*points)
        mixed = olympus.grad(olympus.grad(special.hyp2f1, 1), 3)(1.5, 0.7, 2.2, 0.6)
    with mp.workdps(50):
        wanted = np.array([[at(lambda *v, n=n: mp.diff(mp.hyp2f1, v, [i == n for i in range(4)]), p)
                            for p in points.T] for n in range(4)], float)
        np.testing.assert_allclose(found, wanted, 1e-10)
        both = mp.diff(mp.hyp2f1, (1.5, 0.7, 2.2, 0.6), (0, 1, 0, 1))
    np.testing.assert_allclose(mixed, float(both), 1e-10)


@pytest.mark.slow
def test_hyp2f1_at_one_has_derivatives_in_the_parameters():
    points = np.array([(0.3, 0.7, 2.2), (-1.6, 2.3, 1.4), (-2.0, 0.5, 3.25), (0.0, 1.25, 2.0),
                       (5.5, -0.3, 5.4)]).T
    with olympus.enable_x64(True):
        found = olympus.jit(olympus.vmap(olympus.grad(special.hyp2f1, (0, 1, 2)),
                                         (0, 0, 0, None)))(*points, 1.0)
        none = olympus.grad(special.hyp2f1, (0, 2))(1.5, 2.5, 3.0, 1.0)
    assert np.isnan(none).all()     # it is infinite there
    with mp.workdps(50):
        for i, of_one in enumerate(found):
            wanted = [mp.diff(lambda v, p=p, i=i: mp.hyp2f1(*p[:i], v, *p[i + 1:], 1), p[i])
                      for p in points.T.tolist()]
            np.testing.assert_allclose(of_one, np.array(wanted, float), 1e-12, 1e-13)


@pytest.mark.parametrize("name", ["erf", "erfc", "erfcx", "dawsn", "erfi", "ndtr", "log_ndtr",
                                  "ndtri", "erfinv", "erfcinv", "entr", "logit", "digamma",
                                  "gammasgn", "exprel", "log_expit", "gamma", "loggamma",
                                  "rgamma", "exp1", "expi", "factorial", "zeta", "zetac",
                                  "k0", "k1e", "ellipk", "ellipe"])
def test_values_at_edges_are_those_of_scipy(name):
    found = np.asarray(getattr(special, name)(EDGES.astype("f4")))
    with np.errstate(all="ignore"):
        wanted = getattr(sp, name)(EDGES).astype("f4")
    np.testing.assert_allclose(found, wanted, 1e-6)


@pytest.mark.parametrize("name", ["xlogy", "xlog1py", "rel_entr", "kl_div", "boxcox", "boxcox1p",
                                  "huber"])
def test_values_at_edges_of_two_operands_are_those_of_scipy(name):
    x, y = (g.ravel() for g in np.meshgrid(EDGES[:8], EDGES[:8]))
    found = np.asarray(getattr(special, name)(x.astype("f4"), y.astype("f4")))
    with np.errstate(all="ignore"):
        wanted = getattr(sp, name)(x, y).astype("f4")
    np.testing.assert_allclose(found, wanted, 1e-6, err_msg=f"{list(zip(x, y, strict=True))}")


def test_derivatives_at_edges():
    grad = olympus.grad
    assert grad(special.xlogy, 1)(0.0, 0.0) == 0 and grad(special.xlog1py, 1)(0.0, -1.0) == 0
    assert grad(special.entr)(0.0) == INF and grad(special.entr)(1.0) == -1
    assert grad(special.boxcox, 1)(1.0, 0.0) == 0
    np.testing.assert_allclose(grad(special.boxcox, 1)(3.0, 0.0), np.log(3.0) ** 2 / 2, 1e-6)
    np.testing.assert_allclose(grad(special.log_ndtr)(-1e4), 1e4, 1e-6)
    assert grad(grad(special.log_ndtr))(40.0) == 0


def test_pairs_are_those_of_scipy():
    x = np.array([0.0, 0.3, 1.7, 3.9, 4.2, 30.0, 1e4, -2.5, INF, -INF, NAN])
    for name in ("sici", "shichi", "fresnel"):
        with olympus.enable_x64(True):
            found = np.asarray(getattr(special, name)(x))
        np.testing.assert_allclose(found, getattr(sp, name)(x), 1e-13, err_msg=name)


def test_bessel_functions_of_whole_order_are_those_of_scipy():
    n, x = (g.ravel() for g in np.meshgrid([0, 1, 2, 7, 30, -3], [0.0, 0.1, 2.5, 8.5, 40.0]))
    with olympus.enable_x64(True):
        for name in ("jn", "yn", "kn"):
            np.testing.assert_allclose(getattr(special, name)(n, x), getattr(sp, name)(n, x),
                                       1e-11, err_msg=name)
        z = np.array([0.5, 30.0])
        np.testing.assert_allclose(special.bessel_jn(z, v=6), sp.jv(np.arange(7)[:, None], z),
                                   1e-12)
        assert olympus.grad(special.j1)(0.0) == 0.5


@pytest.mark.slow
def test_bessel_functions_of_real_order_oscillate_as_scipys():
    v, x = (g.ravel() for g in np.meshgrid([-2.5, -0.3, 0.0, 0.5, 1.7, 4.0, 31.4],
                                           [0.01, 1.9, 2.1, 8.5, 24.0, 40.0, 300.0, 5000.0]))
    with olympus.enable_x64(True):
        for name in ("jv", "yv"):
            np.testing.assert_allclose(getattr(special, name)(v, x), getattr(sp, name)(v, x),
                                       2e-12, 3e-14, err_msg=name)


@pytest.mark.slow
def test_airy_functions_have_their_digits_at_large_arguments():
    z = np.array([-40.0, -4.0, -3.0, -1.0, -0.4, 0.0, 0.9, 1.1, 2.0, 5.0, 8.0, 30.0])
    with olympus.enable_x64(True):
        np.testing.assert_allclose(special.airy(z), sp.airy(z), 3e-14, 1e-14)
        far = [f(-1000000, derivative=d) for f in (mp.airyai, mp.airybi) for d in (0, 1)]
        np.testing.assert_allclose(special.airy(-1e6), np.array(far, float), 4e-15)


@pytest.mark.slow
@pytest.mark.parametrize("name, at_zero, at_infinity", [
    ("jv", [1, 0, INF, 0, 0, -INF], 0), ("yv", [-INF, -INF, 0, -INF, INF, 0], 0),
    ("iv", [1, 0, INF, 0, 0, -INF], INF), ("kv", [INF] * 6, 0)])
def test_bessel_functions_at_the_ends(name, at_zero, at_infinity):
    fun, v = getattr(special, name), np.float32([0, 0.5, -0.5, 1, -1, -1.5])
    np.testing.assert_array_equal(fun(v, 0.0), at_zero)
    np.testing.assert_array_equal(fun(v, INF), np.full(6, at_infinity))
    assert np.isnan(fun(np.float32([np.nan, 0.5]), np.float32([INF, -1.0]))).all()
    slope = olympus.grad(fun, 1)(1.3, 2.2)
    wanted = {"jv": sp.jvp, "yv": sp.yvp, "iv": sp.ivp, "kv": sp.kvp}[name](1.3, 2.2)
    np.testing.assert_allclose(slope, wanted, 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["jv", "kv"])
def test_derivatives_of_bessel_functions_in_the_order(name):
    """Regression: they were NaN."""
    wanted = {"jv": mp.besselj, "kv": mp.besselk}[name]
    fun, h = getattr(special, name), mp.mpf(10) ** -12
    v, x = np.transpose([(0.0, 0.5), (0.3, 1e-3), (2.0, 6.0), (7.3, 2.5), (-1.5, 30.0), (33.0, 1)])
    with olympus.enable_x64(True), mp.workdps(50):
        slope = olympus.grad(lambda v: fun(v, x).sum())
        below, here, above = (np.array([wanted(v + n * h, mp.mpf(x)) for v, x in zip(v, x)])
                              for n in (-1, 0, 1))
        size = abs(here).astype(float)
        first = ((above - below) / (2 * h)).astype(float)
        second = ((above - 2 * here + below) / h ** 2).astype(float)
        assert np.all(abs(slope(v) - first) <= 1e-12 * (size + abs(first)))
        if name == "kv":
            found = olympus.jvp(slope, (v,), (np.ones_like(v),))[1]
            assert np.all(abs(found - second) <= 1e-10 * (size + abs(second)))
            in_x = [np.array([wanted(v + n * h, x + h) - wanted(v + n * h, x - h)
                              for v, x in zip(v, x)]) for n in (-1, 1)]
            mixed = ((in_x[1] - in_x[0]) / (4 * h ** 2)).astype(float)
            found = olympus.jvp(lambda x: olympus.grad(lambda v: fun(v, x).sum())(v), (x,),
                                (np.ones_like(x),))[1]
            assert np.all(abs(found - mixed) <= 1e-10 * (size + abs(mixed)))
    ends = olympus.vmap(olympus.grad(fun))(np.float32([1, 0, 1, 1]),
                                           np.float32([0, 0, INF, NAN]))
    np.testing.assert_array_equal(ends, [0.0 if name == "jv" else NAN, NAN, 0.0, NAN])


def test_jacobis_functions_are_scipys_and_invert_the_integral():
    u, m = (g.ravel() for g in np.meshgrid([-5.0, -0.3, 0.0, 1e-9, 1.1, 7.0],
                                           [0.0, 1e-12, 0.4, 0.999, 1.0, 1.5, -0.1]))
    with olympus.enable_x64(True):
        found = special.ellipj(u, m)
        np.testing.assert_allclose(found, sp.ellipj(u, m), 1e-11, 1e-15)
        known = (m >= 0) & (m < 1)
        np.testing.assert_allclose(special.ellipkinc(found[3], m)[known], u[known], 1e-12)
        slopes = olympus.grad(lambda u, m: special.ellipj(u, m)[0], (0, 1))(0.7, 0.4)
        np.testing.assert_allclose(slopes, [0.713887844476617, -0.0398239716494096], 1e-14)


def test_symmetric_integrals_at_the_ends_are_scipys():
    x, y = (g.ravel() for g in np.meshgrid([0.0, 1.0, INF, -1.0, NAN], [0.0, -2.0, 2.0, INF, NAN]))
    for name in ("elliprf", "elliprd"):
        found = getattr(special, name)(x.astype("f4"), y.astype("f4"), 1.0)
        np.testing.assert_allclose(found, getattr(sp, name)(x, y, 1.0), 1e-6, err_msg=name)
    x, y = x[x < INF], y[x < INF]       # SciPy's principal values at infinity are not the limits
    np.testing.assert_allclose(special.elliprc(x, y), sp.elliprc(x, y), 1e-6)


def test_harmonics_are_those_of_scipy():
    rng = np.random.default_rng(0)
    n, m = rng.integers(0, 12, 20), rng.integers(-9, 10, 20)
    theta, phi = rng.uniform(0, 3, 20), rng.uniform(0, 6, 20)
    found = special.sph_harm_y(n, m, theta, phi)
    np.testing.assert_allclose(found, sp.sph_harm_y(n, m, theta, phi), atol=2e-6)
    clipped = special.sph_harm_y(n, 0, theta, phi, n_max=3)
    np.testing.assert_allclose(clipped, sp.sph_harm_y(np.minimum(n, 3), 0, theta, phi), atol=1e-6)
    x = np.float32([-0.7, 0.3])
    values, slopes = special.lpmn(3, 3, x)
    plain = sp.assoc_legendre_p_all(3, 3, x.astype("f8"), diff_n=1)[:, :, :4].swapaxes(1, 2)
    np.testing.assert_allclose(values, plain[0], atol=1e-5)
    np.testing.assert_allclose(slopes, plain[1], atol=2e-5)


def test_counting():
    n, k = (g.ravel() for g in np.meshgrid(np.arange(-2, 30.0), np.arange(-2, 30.0)))
    for name in ("comb", "perm"):
        np.testing.assert_allclose(getattr(special, name)(n, k), getattr(sp, name)(n, k), 3e-6)
    assert special.comb(29, 14) == np.float32(77558760) and special.binom(5.0, 2.0) == 10
    np.testing.assert_allclose(special.comb(7, k[k >= 0], repetition=True),
                               sp.comb(7, k[k >= 0], repetition=True), 1e-6)
    with olympus.enable_x64(True):
        x, y = (g.ravel() for g in np.meshgrid([-2.5, -2, 0.3, 4, 50.5], [-2.0, 0, 1.7, 3, 31]))
        np.testing.assert_allclose(special.poch(x, y), sp.poch(x, y), 1e-12)
        np.testing.assert_allclose(special.bernoulli(20), sp.bernoulli(20), 1e-11)
        np.testing.assert_allclose(special.multigammaln(4.5, 3), sp.multigammaln(4.5, 3), 1e-14)
        z = np.array([1 + 2j, -3.5 + 0.1j, -3.5 - 0.1j, 0.2 - 5j, 10 + 100j, -2.5 + 0j])
        np.testing.assert_allclose(special.loggamma(z), sp.loggamma(z), 1e-13)
        np.testing.assert_allclose(special.gamma(z), sp.gamma(z), 1e-12)
        np.testing.assert_allclose(special.wofz(z), sp.wofz(z), 1e-13)
        np.testing.assert_allclose(special.erfcx(z[:2]), sp.erfcx(z[:2]), 1e-13)


def test_derivatives_of_digamma_below_zero():
    with olympus.enable_x64(True):
        slope = olympus.grad(special.digamma)
        for x in (-0.5, -7.8, -40.3, 2.0):
            np.testing.assert_allclose(slope(x), float(mp.psi(1, x)), 1e-13)
            np.testing.assert_allclose(olympus.grad(slope)(x), float(mp.psi(2, x)), 1e-12)
            np.testing.assert_allclose(special.polygamma(2, x), float(mp.psi(2, x)), 1e-12)
        n, x = np.array([0, 1, 2, 5]), np.array([0.3, 2.0, 7.0, 40.0])
        np.testing.assert_allclose(special.polygamma(n, x), sp.polygamma(n, x), 1e-12)


@pytest.mark.parametrize("call, text", [
    (lambda: special.factorial(3, exact=True), "exact"),
    (lambda: special.multigammaln(3.0, 0), "positive int"),
    (lambda: special.bernoulli(-1), "int >= 0"),
    (lambda: special.bessel_jn(1.0, v=-1), "int >= 0"),
    (lambda: special.bessel_jn(1, v=1), "real floats"),
    (lambda: special.lpmn(1, 2, np.ones(1, "f4")), "equal ints"),
    (lambda: special.sph_harm_y(1, 1, 1.0, 1.0, diff_n=1), "jacfwd"),
    (lambda: special.log_ndtr(1.0, -1), "int >= 0")], ids=range(8))
def test_refusals(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def wide(low, high, count=60, seed=0):
    return np.exp(np.random.default_rng(seed).uniform(np.log(low), np.log(high), count))


TAILS = np.concatenate([wide(1e-200, 0.5, 30), 1 - wide(1e-9, 0.5, 30)])
PROBABILITIES = {
    "chdtr": (wide(0.1, 100), wide(0.1, 100, seed=1)),
    "chdtrc": (wide(0.1, 100), wide(0.1, 100, seed=1)), "chdtri": (wide(0.3, 100), TAILS),
    "gdtr": (wide(0.1, 9), wide(0.1, 9, seed=1), wide(0.1, 9, seed=2)),
    "fdtr": (wide(0.5, 50), wide(0.5, 50, seed=1), wide(0.01, 50, seed=2)),
    "fdtrc": (wide(0.5, 50), wide(0.5, 50, seed=1), wide(0.01, 50, seed=2)),
    "fdtri": (wide(0.5, 50), wide(0.5, 50, seed=1), TAILS % 1e-3 + 0.3),
    "pdtr": (wide(1, 50), wide(0.1, 50, seed=1)), "pdtrc": (wide(1, 50), wide(0.1, 50, seed=1)),
    "stdtr": (wide(0.3, 1e6), -wide(1e-3, 30, seed=1)),
    "stdtrit": (wide(0.5, 1e5), TAILS % 1e-2 + 0.4), "kolmogorov": (wide(0.05, 5),)}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBABILITIES)
def test_distribution_functions_are_those_of_scipy(name):
    xs = PROBABILITIES[name]
    with olympus.enable_x64(True):
        np.testing.assert_allclose(getattr(special, name)(*xs), getattr(sp, name)(*xs), 1e-11)


@pytest.mark.slow
def test_counts_have_the_probabilities_of_scipy():
    n, k = np.meshgrid(np.arange(1, 9), np.arange(9))
    with olympus.enable_x64(True), np.errstate(all="ignore"):
        for name in ("bdtr", "bdtrc", "nbdtr", "nbdtrc"):
            found = getattr(special, name)(k, n, 0.3)
            np.testing.assert_allclose(found, getattr(sp, name)(k * 1.0, n, 0.3), 1e-12)


def test_zeta_below_zero_is_scipys_far_out():
    """Regression: from -8 on XLA's sum has no terms, and the value was 0, or of another size."""
    s, q = np.meshgrid([2.0, 3, 4, 8], [-0.3, -1.5, -5.3, -7.7, -8.6, -10.7, -100.3, -12345.25, 2])
    with olympus.enable_x64(True):
        for zeta in special.zeta, olympus.lax.zeta:
            np.testing.assert_allclose(zeta(s, q), sp.zeta(s, q), rtol=2e-12)
        np.testing.assert_allclose(special.polygamma(s, q), sp.polygamma(s.astype(int), q), 1e-9)
        slope = olympus.vmap(olympus.grad(olympus.lax.digamma))(q[:, 0])
        np.testing.assert_allclose(slope, sp.zeta(2, q[:, 0]), 1e-12)
        assert np.isnan(special.zeta(2.5, -8.5)) and special.zeta(2.0, -9.0) == np.inf
        # Regression: the value of -10.5 was 2.9e12.
        np.testing.assert_allclose(olympus.lax.polygamma(s - 1, q), special.polygamma(s - 1, q),
                                   1e-9)
        ends = olympus.lax.polygamma(np.array([0.0, 1, 1, 2]), np.array([-9.5, np.inf, -9, np.nan]))
        np.testing.assert_allclose(ends, [sp.psi(-9.5), 0.0, np.inf, np.nan])


def test_polygamma_of_nan_is_nan():
    """Regression: of a fixed order it was the value at 1."""
    x = np.array([np.nan, 1.0], np.float32)
    for m in range(4):
        assert np.isnan(special.polygamma(m, x)).tolist() == [True, False]
    assert np.isnan(olympus.grad(special.digamma)(np.float32(np.nan)))


@pytest.mark.parametrize(("args", "which", "expected"), [
    ((2.0, 0.0), (1, 1), 1.0), ((1.0, 0.0), (1, 1), -1.0), ((1.5, 0.0), (1, 1), np.inf),
    ((2.0, 0.0), (0, 1), 0.0), ((2.0, 0.0), (1, 0), 0.0), ((3.0, 0.0), (1, 1, 1), 1.0),
    ((2.0, 3.0, 0.0), (2, 2), 12.0), ((2.0, 3.0, 1.0), (2, 2), 0.0),
    ((3.0, 1.0, 1.0), (2, 2), 6.0), ((1.5, 2.0, 1.0), (2, 2), -3.75),
    ((2.0, 3.0, 0.0), (0, 2), 0.0), ((2.0, 3.0, 0.0), (2, 0), 0.0),
    ((2.0, 3.0, 1.0), (1, 2), 0.0), ((3.0, 2.0, 1.0), (2, 2, 2), -48.0),
    ((3.0, 1.0, 1.0), (2, 0), 1.0)])
def test_later_derivatives_at_the_ends_of_incomplete_functions_are_limits(args, which, expected):
    """Regression: NaN, the product of a density of 0 and an infinite logarithm (JAX, too)."""
    f = special.gammainc if len(args) == 2 else special.betainc
    for i in which:
        f = olympus.grad(f, i)
    np.testing.assert_allclose(f(*args), expected, rtol=2e-6)
    np.testing.assert_allclose(olympus.jit(olympus.vmap(f))(*np.float32(args)[:, None]),
                               [expected], rtol=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gammainc", "gammaincc", "betainc"])
def test_inverses_of_incomplete_functions(name):
    """The function of its inverse is the probability, also far out."""
    rest = [wide(0.05, 1e3)] + [wide(0.05, 1e3, seed=1)] * (name == "betainc")
    with olympus.enable_x64(True):
        x = np.asarray(getattr(special, f"{name}inv")(*rest, TAILS))
        assert not np.isnan(x).any()
        known = (x > 1e-290) & (x < 1 - 1e-4 if name == "betainc" else x < 1e300)
        back = getattr(sp, name)(*rest, x)
    np.testing.assert_allclose(back[known], TAILS[known], 1e-11)
    assert known.sum() > 30


def test_derivatives_of_inverses_are_implicit():
    with olympus.enable_x64(True):
        for name, args in (("gammaincinv", (2.5, 0.3)), ("betaincinv", (2.0, 1.5, 0.4)),
                           ("stdtrit", (3.0, 0.7))):
            fun = getattr(sp, name)
            slopes = olympus.grad(getattr(special, name), tuple(range(len(args))))(*args)
            for i, slope in enumerate(slopes):
                h = 1e-5 * np.eye(len(args))[i]
                wanted = (fun(*(args + h)) - fun(*(args - h))) / 2e-5
                np.testing.assert_allclose(slope, wanted, 1e-6)


def test_lambertw_is_that_of_scipy():
    rng = np.random.default_rng(0)
    z = np.exp(rng.uniform(-8, 8, 60)) * np.exp(1j * rng.uniform(-3.1, 3.1, 60))
    z = np.concatenate([z, [-0.2, -0.8, 3.0, -1 / np.e + 1e-3, 0.0, INF]])
    with olympus.enable_x64(True):
        for k in (-2, -1, 0, 1):
            np.testing.assert_allclose(special.lambertw(z, k), sp.lambertw(z, k), 1e-13)
        slope = olympus.grad(lambda x: special.lambertw(x).real)(1.0)
    np.testing.assert_allclose(slope, 1 / (1 + 1 / sp.lambertw(1).real), 1e-12)


def test_elliptic_integrals_near_their_edges_and_their_derivatives():
    p = np.array([1e-300, 1e-9, 1e-7, 0.5, 1.0, 30.0, 1e9])
    with olympus.enable_x64(True):
        np.testing.assert_allclose(special.ellipkm1(p), sp.ellipkm1(p), 1e-14)
        for m in (-0.5, 0.0, 0.6):
            np.testing.assert_allclose(olympus.grad(special.ellipk)(m),
                                       float(mp.diff(mp.ellipk, m)), 1e-13)
            np.testing.assert_allclose(olympus.grad(special.ellipe)(m),
                                       float(mp.diff(mp.ellipe, m)), 1e-13)


@pytest.mark.parametrize("name", ["legendre", "chebyt", "chebyu", "hermite", "hermitenorm",
                                  "laguerre", "genlaguerre", "gegenbauer"])
def test_orthogonal_polynomials_are_those_of_scipy(name):
    rest = [1.5] if name.startswith("ge") else []
    n, x = np.arange(9), np.linspace(0.05, 0.95, 9)
    fun, oracle = getattr(special, f"eval_{name}"), getattr(sp, f"eval_{name}")
    with olympus.enable_x64(True):
        np.testing.assert_allclose(fun(n, *rest, x), oracle(n, *rest, x), 1e-12, 1e-12)
        slopes = olympus.jvp(lambda x: fun(n, *rest, x), (x,), (np.ones(9),))[1]
    wanted = (oracle(n, *rest, x + 1e-6) - oracle(n, *rest, x - 1e-6)) / 2e-6
    np.testing.assert_allclose(slopes, wanted, 1e-6, 1e-6)


REAL_DEGREES = {
    "legendre": mp.legendre, "gegenbauer": mp.gegenbauer, "genlaguerre": mp.laguerre,
    "laguerre": lambda n, x: mp.laguerre(n, 0, x),
    "chebyt": mp.chebyt, "chebyu": lambda n, x: mp.chebyu(n, x) if x != 1 else n + 1}


@pytest.mark.parametrize("name", REAL_DEGREES)
def test_orthogonal_functions_of_real_degree(name):
    """They were NaN."""
    rest = [0.8] if name.startswith("ge") else []
    points = [(0.5, 0.3), (2.5, 1.0), (-0.3, 0.9), (-2.5, 0.1), (7.2, 3.5), (40.25, -0.7),
              (150.5, 0.4), (3.0, 0.6), (0.0, 0.6)]
    n, x = np.array(points).T
    fun, exact = getattr(special, f"eval_{name}"), REAL_DEGREES[name]
    with mp.workdps(30):
        wanted = np.array([[float(exact(n, *rest, x)), float(mp.diff(
            lambda x, n=n: exact(n, *rest, x), x, direction=-1 if x == 1 else 0))]
            for n, x in points]).T
    with olympus.enable_x64(True):
        found = olympus.jit(lambda n, x: olympus.jvp(
            lambda x: fun(n, *rest, x), (x,), (x * 0 + 1,)))(n, x)
    np.testing.assert_allclose(found, wanted, 1e-9, 1e-11)


def test_orthogonal_polynomials_of_negative_degree_are_those_of_scipy():
    n, x = np.array([-1, -2, -5]), np.array([0.3, -0.6, 1.5])
    with olympus.enable_x64(True):
        for name in ("legendre", "chebyt", "chebyu", "laguerre"):
            oracle = getattr(sp, f"eval_{name}")(n, x)
            np.testing.assert_allclose(getattr(special, f"eval_{name}")(n, x), oracle, 1e-13)


OTHERS = {"bernoulli", "lpmn", "lpmn_values", "bessel_jn", "multigammaln", "softmax",
          "log_softmax", "logsumexp"}


@pytest.mark.parametrize("name", [n for n in special.__all__ if n not in OTHERS])
def test_numbers_and_arrays_are_operands_together_while_tracing(name):
    fun = getattr(special, name)
    names = inspect.signature(fun).parameters.values()
    count = sum(p.default is p.empty for p in names)
    x = np.ones(3, "f4")
    assert olympus.tree.leaves(olympus.eval_shape(lambda: fun(*[0.5] * count)))[0].shape == ()
    for i in range(count):
        out = olympus.eval_shape(lambda x: fun(*[x if j == i else 0.5 for j in range(count)]), x)
        assert olympus.tree.leaves(out)[0].shape == (3,)


@pytest.mark.slow
def test_inverses_of_incomplete_functions_at_the_smallest_probabilities():
    p, a = np.array([1e-300, 1e-250, 1e-200, 1e-8]), np.array([[0.5], [1.0], [2.2], [50.0]])
    with olympus.enable_x64(True):
        np.testing.assert_allclose(special.gammainccinv(a, p), sp.gammainccinv(a, p), rtol=1e-10)
        np.testing.assert_allclose(special.gammaincinv(a, p), sp.gammaincinv(a, p), rtol=1e-10)
        p, a = np.array([1e-250, 1e-100, 1e-15, 0.1]), np.array([[1.0], [2.2], [50.0], [1e3]])
        x = special.betaincinv(a, 2.0, p)
        np.testing.assert_allclose(sp.betainc(a, 2.0, np.asarray(x)), p + 0.0 * a, rtol=1e-10)


@pytest.mark.parametrize("name", ["erfinv", "erfcinv", "ndtri", "gammaln"])
def test_float32_results_by_their_own_formulas_are_rounded_once(name):
    near = np.float32(10.0) ** -np.linspace(0.5, 7, 60, dtype="f4")
    tails = np.float32(10.0) ** -np.linspace(1, 37, 60, dtype="f4")
    x = {"erfinv": [near, 1 - near, near - 1, np.linspace(-0.9, 0.9, 64)],
         "erfcinv": [tails, 1 - near, 1 + near, np.linspace(0.1, 1.9, 64)],
         "ndtri": [tails, near, 1 - near, np.linspace(0.05, 0.95, 64)],
         "gammaln": [1 + near, 1 - near, 2 + near, 2 - near, -near, 1 / tails, [7.9999, 8.0, 1.25],
                     np.linspace(-9.9, 30, 64)]}[name]
    x = np.concatenate(x).astype("f4")
    exact = getattr(sp, name)(x.astype("f8"))
    fair = np.isfinite(exact) & (exact != 0) & (np.abs(exact) < 3e38)
    found = np.asarray(getattr(special, name)(x), "f8")[fair]
    exact = exact[fair]
    assert np.max(np.abs(found - exact) / np.spacing(np.abs(exact).astype("f4"))) < 0.51
    edges = np.array([0.0, 1.0, 2.0, -1.0, 3.0, np.inf, np.nan], "f4")
    np.testing.assert_allclose(getattr(special, name)(edges), getattr(sp, name)(edges), rtol=1e-6)
