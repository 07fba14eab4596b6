"""What tools/special_sweep.py found: special functions where they were wrong, against mpmath."""

import mpmath as mp
import numpy as np
import pytest
import special_sweep as tool

import olympus
from olympus.scipy import special

CASES = {case.name: case for case in tool.CASES}
INF, NAN = np.inf, np.nan
# By function: points whose values mpmath computes.
FOUND = {
    "betainc": [(1.0, 2.4e-68, 0.996), (19173.2, 1e-18, 1 - 2.5e-11), (0.3, 2e-62, 1 - 1e-11),
                (11.0, 1.8e240, 3e-17), (36.5, 1e30, 4e-29)],
    "betaincc": [(1e-10, 0.5, 0.3), (1e-10, 1.0, 1e-5), (1e-100, 40.0, 1e-50), (0.2, 32.0, 5e-15),
                 (8.5, 1e20, 8e-20), (0.04, 0.1, 9e-11)],
    "betaincinv": [(1e-8, 40.0, 0.6), (25.0, 3e26, 0.88), (1e-15, 1.0, 0.8), (0.3, 6e17, 0.87)],
    "betainccinv": [(2.5e-5, 36.0, 0.05), (8.5, 9e15, 2e-32), (1.0, 1e30, 0.3)],
    "fdtr": [(1e19, 4e-4, 0.7), (38.0, 8e-11, 1.0), (4e16, 31.5, 0.9)],
    "fdtri": [(0.0258, 4134.0, 0.68), (18.0, 8.8e-2, 1.6e-8), (3.0, 5.0, 0.7)],
    "gamma": [(-1.9e-225,)], "rgamma": [(-8.8e-255,)], "gammaln": [(-2.1e-237,)],
    "ellipkm1": [(1e-40,), (1e-10,)], "elliprc": [(5.5e-307, -712.3), (1.5e-13, -6.9e296)],
    "eval_gegenbauer": [(9.0, 1e-12, -0.9), (31.0, 5.7e-238, -1.28), (4.0, 7e-10, 1.2e-6)],
    "eval_hermite": [(299.0, 8.7e-151), (7.0, 0.3)],
    "hyp2f1": [(-1.0, 2.0, -2.0, 0.3), (-499.598, 477.98, 16.28, 0.852),
               (-368.0, 404.016, 455.0, 0.807), (-521.0, 102.0, 1.57, 0.9999),
               (-205.7, -39.8, 30.36, -0.82),
               (-100.0, 600.0, 3.0, 0.8), (0.5, 1.0, -0.5, 0.95)],
    "hyp1f1": [(-169.2, 2.84, 13.6), (-54.0, 3.2, 430.0), (-100.5, 1.5, 1000.0), (0.3, 2.0, 5.0),
               (290.5, 2.0, -40.0), (40.5, 80.25, -1520.0), (60.3, 50.2, -2000.0)],
    "kve": [(33.0, 1e200), (0.3, 1e160)], "poch": [(-50.0, 30.0), (0.3, 30.5)],
    "polygamma": [(34.0, 32.5), (40.0, 420.7), (300.0, 400.0), (3.0, 0.7)],
    "pseudo_huber": [(1e-299, 34.5), (1e-193, -7e114), (1e200, 3.0)],
    "stdtr": [(0.175, -1.4e227)],
}


# Taylor's steps: what docs/accuracy.md says. Between kinds of processors their last digits differ.
BOUND = {"hyp2f1": 1e-11, "hyp1f1": 1e-11}


@pytest.mark.parametrize("name", FOUND)
def test_where_the_sweep_found_errors(name):
    case = CASES[name]
    with mp.workdps(tool.DIGITS), olympus.enable_x64(True):
        found = np.asarray(olympus.jit(case.fun)(*map(np.array, zip(*FOUND[name], strict=True))))
        for xs, y in zip(FOUND[name], found.tolist(), strict=True):
            operands = tuple(map(mp.mpf, xs))
            error = case.exact(mp.mpf(y), *operands) if case.inverse else \
                abs(mp.mpf(y) / case.exact(*operands) - 1)
            assert error < BOUND.get(name, 1e-12), (xs, y)


@pytest.mark.parametrize(("name", "xs", "wanted"), [
    ("ellipkm1", (1e-310,), INF), ("expn", (28.0, 1e-310), 1 / 27), ("kv", (3.0, 1e-310), INF),
    ("elliprc", (25.5, 1e-310), NAN), ("betaincc", (0.0, 1.0, 1e-165), 0.0),
    ("betaincc", (2.0, 1.0, -1e-165), NAN), ("gammaincinv", (-8.5, 0.0), NAN),
    ("kolmogorov", (INF,), 0.0), ("polygamma", (2.0, INF), 0.0), ("stdtrit", (3.5, 0.0), -INF),
    ("stdtrit", (3.5, 1.0), INF), ("zeta", (1e21, 0.5), INF), ("zeta", (1.5, 0.0), INF),
    ("hyp2f1", (-0.06, 15.0, 0.44, 1.0), -INF),
    ("hyp2f1", (-155.0, 29.65, -401.0, -2.5), np.nan),      # no digit of it could be right
    ("hyp2f1", (-36.0, 0.0, 0.0, 1e-32), 1.0),
    ("eval_chebyt", (21.0, -2e286), -INF), ("eval_laguerre", (5.0, -4.7e173), INF),
    ("voigt_profile", (0.0, 0.0, 1e-200), 1e200 / np.pi), ("wofz", (0.0,), 1.0),
    ("voigt_profile", (1e11, 3e-30, 6e29), 1 / (6e29 * np.pi)),
    ("gammaincinv", (1e24, 0.3), 1e24 - 0.5244e12), ("ellipkm1", (1e-300,), 346.77405831022674)])
def test_limits_and_subnormal_operands(name, xs, wanted):
    with olympus.enable_x64(True):
        np.testing.assert_allclose(getattr(special, name)(*xs), wanted, 1e-14)


def test_float32_operands_are_not_rounded_between():
    """1 - x, n x / d and n! were computed in float32: lax.polygamma was 0, infinite or NaN."""
    points = {"betaincc": (1.9e-5, 1.0, 2e-29), "fdtr": (16103.3, 0.904, 0.345),
              "fdtri": (62330.0, 31.08, 1.6e-21), "polygamma": (34.0, 32.5),
              "nbdtrc": (3.0, 5.0, 1e-12), "lax.polygamma": (40.0, 7.0)}
    for name, xs in points.items():
        xs = np.float32(xs)
        wanted = CASES[name].near(*xs.astype(float))
        np.testing.assert_allclose(CASES[name].fun(*xs), wanted, 3e-7, err_msg=name)


def test_the_sweep_notices_what_is_wrong():
    case = CASES["gammaln"]._replace(fun=lambda x: special.gammaln(x) + (x > 3.0) * 1e-3)
    found = [f.xs[0] for _, f in tool.sweep(case, np.float32, 40, 0) if f.suspect]
    assert min(x for x in found if np.isfinite(x)) > 3.0


PAGE = tool.accuracy.PAGE.read_text()


def test_the_page_has_a_line_per_function():
    assert list(tool.table(PAGE)) == list(CASES)
    assert tool.HEADER in PAGE


@pytest.mark.parametrize("name", ["entr", "erfcx", "xlogy"])
def test_lines_of_the_page_hold(name, monkeypatch):
    monkeypatch.setattr(tool, "PATIENCE", 0)        # no alarm
    with mp.workdps(tool.DIGITS):
        assert not tool.worse(CASES[name], tool.table(PAGE)[name])


def test_lines_of_the_page_notice_what_is_worse(monkeypatch):
    monkeypatch.setattr(tool, "PATIENCE", 0)
    case = CASES["xlogy"]._replace(fun=lambda x, y: special.xlogy(x, y) * (1 + 1e-6))
    with mp.workdps(tool.DIGITS):
        assert tool.worse(case, tool.table(PAGE)["xlogy"])


def test_every_function_is_swept():
    """But for those of whole arrays, which tests have by hand."""
    swept = {name.partition("[")[0] for name in CASES} | {"zeta"}
    apart = {"bernoulli", "bessel_jn", "erf", "log_softmax", "logsumexp", "lpmn", "lpmn_values",
             "multigammaln", "softmax", "sph_harm_y"}
    assert set(special.__all__) - swept - apart == set()


def test_bernoulli_numbers_beyond_the_largest_float_are_infinite():
    """They raised OverflowError, and a huge index took all memory."""
    want = [mp.bernoulli(k) for k in range(301)]
    finite = np.array([abs(b) < mp.mpf(2) ** 1024 for b in want])
    want = np.array([float(b) if k else float(mp.sign(b)) * np.inf
                     for b, k in zip(want, finite, strict=True)])
    want[1] = -0.5
    with olympus.enable_x64(True):
        np.testing.assert_allclose(special.bernoulli(300), want, rtol=4e-16)
    for n in (-1, 2 ** 31, 10 ** 30):
        with pytest.raises(ValueError, match="an int >= 0 and below"):
            special.bernoulli(n)
