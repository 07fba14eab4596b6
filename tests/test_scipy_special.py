"""scipy.special against mpmath, in units in the last place, and at its edges."""

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


WHOLE_LINE = (-6.0, 6.0)
ACCURACY = {  # largest error in ULP of float64, operands' ranges, the function in mpmath
    "erfc": (8, [(-6.0, 26.0)], mp.erfc),
    "erfcx": (12, [(-20.0, 30.0)], lambda x: mp.exp(x * x) * mp.erfc(x)),
    "erfi": (10, [(-26.0, 26.0)], mp.erfi),
    "dawsn": (6, [(-26.0, 26.0)],
              lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x)),
    "ndtr": (6, [(-37.0, 8.0)], mp.ncdf),
    "log_ndtr": (8, [(-37.0, 8.0)], lambda x: mp.log(mp.ncdf(x))),
    "gammaln": (12, [(0.0, 300.0)], mp.loggamma),
    "digamma": (4, [(0.0, 300.0)], mp.digamma),
    "beta": (80, [(0.0, 20.0), (0.0, 20.0)],
             lambda a, b: mp.gamma(a) * mp.gamma(b) / mp.gamma(a + b)),
}


@pytest.mark.parametrize("name", ACCURACY)
def test_errors_in_units_in_the_last_place(name):
    most, ranges, exact = ACCURACY[name]
    xs = [spread(*r, 60, i) for i, r in enumerate(ranges)]
    with mp.workdps(40):
        wanted = [exact(*map(mp.mpf, map(float, x))) for x in zip(*xs, strict=True)]
        with olympus.enable_x64(True):
            assert ulps(getattr(special, name)(*xs), wanted) <= most


@pytest.mark.parametrize("name", ["erf", "erfc", "erfcx", "dawsn", "erfi", "ndtr", "log_ndtr",
                                  "ndtri", "erfinv", "erfcinv", "entr", "logit", "digamma",
                                  "gammasgn", "exprel", "log_expit"])
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
