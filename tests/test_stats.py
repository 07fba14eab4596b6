"""Distributions: every function beside SciPy's over the support, its ends, beyond it and far out;
derivatives beside differences; samples beside distribution functions.
"""

import importlib
import re

import mpmath
import numpy as np
import pytest
import scipy.stats
from properties import compiled

import olympus
from olympus import jit, jvp, numpy as onp, random
from olympus._src.scipy.stats import sums
from olympus.scipy.stats import gennorm, skellam

# Distribution, shape parameters; those whose probabilities are incomplete functions stand in HARD.
EASY = {
    "bernoulli": (0.3,), "betabinom": (10.0, 2.0, 3.5), "cauchy": (), "expon": (),
    "geom": (0.3,), "gumbel_l": (), "gumbel_r": (), "halfcauchy": (), "halfnorm": (),
    "hypergeom": (20.0, 7.0, 12.0), "laplace": (), "levy": (), "logistic": (), "lognorm": (0.8,),
    "loguniform": (0.5, 5.0), "norm": (), "pareto": (2.5,), "randint": (2.0, 8.0), "rayleigh": (),
    "triang": (0.4,), "uniform": (), "vonmises": (2.0,), "weibull_max": (1.7,),
    "weibull_min": (1.7,), "wrapcauchy": (0.4,),
}
HARD = {
    "beta": (2.0, 3.5), "binom": (10.0, 0.3), "chi2": (3.0,), "f": (3.0, 9.0), "gamma": (2.2,),
    "gennorm": (1.3,), "invgamma": (4.5,), "maxwell": (), "nbinom": (3.5, 0.4), "poisson": (3.5,),
    "t": (3.5,), "truncnorm": (-1.0, 2.0),
    "skellam": (3.0, 2.0),
}
CASES = [*EASY.items(), *(pytest.param(*case, marks=pytest.mark.slow) for case in HARD.items())]
POINTS = np.concatenate([np.linspace(-6, 6, 25), np.arange(7.0, 20.0), [
    -40.0, 40.0, -300.0, 300.0, 0.25, 0.75, 1e-3, -np.inf, np.nan]])
CHANCES = np.concatenate([np.linspace(0.013, 0.987, 12), [
    0.0, 1.0, 1e-8, 1 - 1e-6, -1.0, 2.0, np.nan]])


def calls(name, params):
    """(kind, its function, SciPy's, first argument, all others) for every function but rvs."""
    ours, theirs = importlib.import_module(f"olympus.scipy.stats.{name}"), getattr(
        scipy.stats, name)
    moved = (2.0,) if hasattr(ours, "pmf") else (0.5, 1.75)
    for kind in sorted(set(ours.__all__) - {"rvs"}):
        first = (() if kind in ("mean", "var", "std", "entropy") else
                 (CHANCES,) if kind in ("ppf", "isf") else (POINTS,))
        yield kind, getattr(ours, kind), getattr(theirs, kind), first, (*params, *moved)


def skellam_at(kind, points, mu1, mu2, loc):
    """Functions of Skellam's distribution by sums in 40 digits: SciPy's lose them far out."""
    with mpmath.workdps(40):
        numbers = range(-400, 401)
        pmf = [mpmath.exp(-mu1 - mu2) * mpmath.mpf(mu1 / mu2) ** (mpmath.mpf(k) / 2)
               * mpmath.besseli(k, 2 * mpmath.sqrt(mu1 * mu2)) for k in numbers]
        below, above = np.cumsum(pmf), np.cumsum(pmf[::-1])[::-1]
        found = []
        for k in points - loc:
            if not abs(k) < 400:
                value = k if np.isnan(k) else {"cdf": int(k > 0), "sf": int(k < 0)}.get(
                    kind.removeprefix("log"), 0)
            elif kind.endswith("pmf"):
                value = pmf[int(k) + 400] if k == int(k) else 0
            else:
                i = int(np.floor(k)) + 400
                value = below[i] if kind.endswith("cdf") else above[i + 1]
            found.append(float(mpmath.log(value) if kind.startswith("log") else value))
    return np.array(found)


@pytest.mark.parametrize("name, params", CASES)
def test_functions_are_scipys(name, params):
    found = list(calls(name, params))
    scaled = "pmf" not in dict(kinds[:2] for kinds in found)

    def run():
        """With the parameters; with NaN for all of them; with a scale that is none."""
        outs = []
        for _, f, _, first, rest in found:
            columns = np.array([rest, np.full(len(rest), np.nan), rest])
            columns[2, -1] = -1.0 if scaled else np.nan
            outs.append(f(*first, *(c[:, None] for c in columns.T)))
        return outs

    with olympus.enable_x64(True), np.errstate(all="ignore"):
        for (kind, _, oracle, first, rest), out in zip(found, jit(run)(), strict=True):
            assert np.isnan(out[1:]).all(), kind
            out = np.array(out[0]).reshape(np.shape(first)[1:])
            if name == "skellam" and first and kind not in ("ppf", "isf"):
                expected = skellam_at(kind, *first, *rest)
            else:
                expected = np.array(oracle(*first, *rest), float)
            if kind in ("pdf", "logpdf", "pmf", "logpmf"):      # infinity is no outcome, as in
                lost = np.isnan(expected) & np.isinf(first[0])  # most of SciPy's distributions
                expected[lost] = 0.0 if kind in ("pdf", "pmf") else -np.inf
            if name == "hypergeom" and first and first[0] is POINTS:    # SciPy's are of integers
                whole = np.floor(POINTS) == POINTS
                out, expected = out[whole], expected[whole]
            tiny = (abs(expected) < 1e-300) & (abs(out) < 1e-300)
            tiny |= np.isneginf(expected) & (out < -700) & (kind in ("logcdf", "logsf"))
            np.testing.assert_allclose(out[~tiny], expected[~tiny], rtol=2e-9, atol=1e-12 * (
                kind.startswith("log")), err_msg=kind)


# One of each family of formulas: the others are the same functions.
SLOPES = {**EASY, **{n: HARD[n] for n in (
    "beta", "gamma", "gennorm", "poisson", "t", "truncnorm", "skellam")}}


@pytest.mark.slow
@pytest.mark.parametrize("name, params", SLOPES.items())
def test_derivatives_are_central_differences(name, params):
    rng = np.random.default_rng(len(name))
    with olympus.enable_x64(True):
        ours = importlib.import_module(f"olympus.scipy.stats.{name}")
        discrete = hasattr(ours, "pmf")
        inner = np.asarray(getattr(scipy.stats, name).ppf([0.2, 0.55, 0.9], *params))
        fixed = {"binom": 1, "betabinom": 1, "hypergeom": 3, "randint": 2}.get(name, 0)
        free = np.array([*params[fixed:], *(() if discrete else (0.0, 1.0))])
        slopes = rng.uniform(0.5, 1.5, free.size)
        kinds = [k for k in sorted(set(ours.__all__) - {"rvs"})
                 if not (discrete and k in ("ppf", "isf"))]

        def values(step):
            moving = free + step * slopes
            shape, move = ([*params[:fixed], *moving], ()) if discrete else (
                [*params[:fixed], *moving[:-2]], moving[-2:])
            out = []
            for kind in kinds:
                first = ([] if kind in ("mean", "var", "std", "entropy") else
                         [np.array([0.2, 0.55, 0.9]) + step / 3] if kind in ("ppf", "isf") else
                         [inner] if discrete else [inner + step])
                out.append(getattr(ours, kind)(*first, *shape, *move))
            return out

        h = 1e-5
        both = compiled(lambda s: jvp(values, (s,), (1.0,)))
        (high, _), (low, _), (_, slope) = both(h), both(-h), both(0.0)
        for kind, a, b, s in zip(kinds, high, low, slope, strict=True):
            known = np.isfinite(a)
            expected = (a[known] - b[known]) / (2 * h)
            np.testing.assert_allclose(s[known], expected, rtol=2e-6, atol=1e-8, err_msg=kind)


# Far out and at the ends --------------------------------------------------------------------------

FAR = [     # distribution, function, arguments; the value by mpmath in 50 digits
    ("gamma", "logpdf", (1e6 + 300.0, 1e6), -7.8719848525536552),
    ("gamma", "logsf", (2000.0, 2.0), -1992.3985976654163),
    ("gamma", "logcdf", (300.0, 1000.0), -507.98963933001367),
    ("chi2", "logsf", (4000.0, 3.0), -1996.0785166262761),
    ("skellam", "logpmf", (-400.0, 0.25, 2.5), -1636.7328466331095),
    ("skellam", "logpmf", (700.0, 9e3, 8e3), -8.4368805969444714),
    ("skellam", "logsf", (90.0, 3.0, 2.0), -227.59146987573136),
    ("skellam", "logsf", (19.0, 3.0, 2.0), -24.928603575524414),      # SciPy: -24.92860439890642
    ("skellam", "logcdf", (-60.0, 0.125, 40.0), -6.3218602602054457),
    ("vonmises", "isf", (2.0 ** -53, 50.0), 1.24311078275675965),
]


@pytest.mark.slow
@pytest.mark.parametrize("name, kind, args, expected", FAR)
def test_logarithms_where_probabilities_underflow(name, kind, args, expected):
    fun = getattr(importlib.import_module(f"olympus.scipy.stats.{name}"), kind)
    with olympus.enable_x64(True):
        np.testing.assert_allclose(fun(*args), expected, rtol=1e-12)
        if kind == "isf":       # symmetric: next to 1, where the function has few digits, too
            np.testing.assert_allclose(importlib.import_module(fun.__module__).ppf(
                1.0 - args[0], *args[1:]), expected, rtol=1e-12)
    np.testing.assert_allclose(fun(*map(np.float32, args)), expected, rtol=3e-6)


def test_parameters_of_no_distribution_and_no_number_give_nan():
    from olympus.scipy.stats import expon, norm, pareto
    assert np.isnan([norm.pdf(0.0, 0.0, -1.0), norm.cdf(np.nan), pareto.mean(-1.0),
                     expon.ppf(1.5)]).all()
    assert float(norm.logpdf(np.inf)) == -np.inf and float(pareto.logpdf(0.5, 2.0)) == -np.inf


def test_quantiles_and_probabilities_of_floats_near_the_ends():
    from olympus.scipy.stats import cauchy, geom, halfcauchy, triang, wrapcauchy
    q = np.float32(0.999999)
    for ours, theirs in ((cauchy, scipy.stats.cauchy), (halfcauchy, scipy.stats.halfcauchy)):
        np.testing.assert_allclose(ours.ppf(q), theirs.ppf(float(q)), rtol=1e-5)
        np.testing.assert_allclose(ours.isf(q), theirs.isf(float(q)), rtol=1e-5)
    assert float(triang.cdf(np.float32(1e-6), 0.0)) == pytest.approx(1.999999e-6)
    assert float(triang.sf(np.float32(1 - 1e-6), 1.0)) == pytest.approx(2.0265569e-6)
    assert float(triang.ppf(np.float32(1e-6), 0.0)) == pytest.approx(5.0000012e-7)
    p = np.float32(1e-3)
    for q in np.float32([0.999, 0.999999, 1 - 6e-8]):
        assert abs(float(geom.ppf(q, p)) - scipy.stats.geom.ppf(float(q), float(p))) <= 1
    assert float(geom.isf(np.float32(1e-30), p)) == pytest.approx(
        np.ceil(np.log(1e-30) / np.log1p(-float(p))), 1e-4)
    assert float(wrapcauchy.sf(0.0, 0.4)) == 1.0 and float(wrapcauchy.cdf(2 * np.pi, 0.4)) == 1.0
    assert 6.28 < float(wrapcauchy.ppf(np.float32(1 - 6e-8), 0.4)) <= np.float32(2 * np.pi)


@pytest.mark.slow
def test_small_tails_and_quantiles_next_to_1_keep_their_digits():
    """Regression: t.cdf(-10, 200) was 0, gamma.ppf(1 - 2**-53, 2) 1e-10, beta.isf in a tail .027.

    SciPy 1.17 has the same numbers, but for f.isf, which is 2.5 (1e8 - 1).
    """
    from olympus.scipy.stats import beta, f, gamma, t
    q = 1 - 2.0 ** -53
    with olympus.enable_x64(True):
        for found, wanted in (
                (t.cdf(-10.0, 200.0), 1.188741572210397e-19), (gamma.ppf(q, 2.0), 40.4615674830875),
                (beta.sf(0.1, 1e-3, 1e3), 1.741445608458516e-51),
                (beta.isf(1e-20, 1e-3, 1e3), 0.03494275600020877),
                (f.sf(1e3, 2.0, 200.0), 7.256571590148e-105), (f.ppf(q, 2.0, 5.0), 6022485.1314468),
                (f.isf(1e-20, 2.0, 5.0), 249999997.5)):
            assert float(found) == pytest.approx(wanted, rel=1e-12, abs=0)


def test_arguments_broadcast_and_integers_become_floats():
    from olympus.scipy.stats import expon, norm, pareto
    out = pareto.logpdf(np.ones((3, 1), np.int32), np.arange(1, 5), scale=np.ones((2, 1, 1)))
    assert out.shape == (2, 3, 4) and out.dtype == np.float32
    assert norm.cdf(np.zeros((0, 3))).shape == (0, 3)
    assert expon.ppf(onp.zeros(2, onp.bfloat16)).dtype == onp.bfloat16
    assert norm.mean(loc=np.arange(3.0)).shape == (3,)


def test_wrong_arguments_name_the_function_and_its_signature():
    from olympus.scipy.stats import norm, pareto
    with pytest.raises(TypeError, match=r"pareto.pdf: missing .* 'b'; pareto.pdf\(x, b, loc=0"):
        pareto.pdf(1.0)
    with pytest.raises(TypeError, match="norm.pdf: complex numbers given"):
        norm.pdf(1j)
    with pytest.raises(TypeError, match="norm.rvs: missing .* 'key'"):
        norm.rvs()
    with pytest.raises(ValueError, match="pareto.rvs: shape"):
        pareto.rvs(np.ones(3), size=2, key=random.key(0))


@pytest.mark.parametrize("name, params", [pytest.param(*case, marks=pytest.mark.slow) for case in (
    *EASY.items(), *HARD.items())])
def test_samples_are_of_the_distribution(name, params):
    ours, theirs = importlib.import_module(f"olympus.scipy.stats.{name}"), getattr(
        scipy.stats, name)
    if not hasattr(ours, "rvs"):
        return
    with olympus.enable_x64(True):
        x = np.asarray(ours.rvs(*params, 2.0, size=20000, key=random.key(3)))
    if hasattr(ours, "pmf"):
        values, counts = np.unique(x, return_counts=True)
        expected = 20000 * theirs.pmf(values, *params, 2.0)
        kept = expected > 5
        rest = 20000 - expected[kept].sum()
        observed = [*counts[kept], 20000 - counts[kept].sum()]
        chance = scipy.stats.chi2.sf(sum((o - e) ** 2 / max(e, 1.0) for o, e in zip(
            observed, [*expected[kept], rest], strict=True)), kept.sum())
    else:
        chance = scipy.stats.kstest(x, lambda v: theirs.cdf(v, *params, 2.0)).pvalue
    assert chance > 1e-4


def test_sums_that_would_not_end_are_nan(monkeypatch):
    assert np.isnan(skellam.cdf(np.zeros(3), np.array([np.nan, 2.0, np.inf]), 2.0))[::2].all()
    monkeypatch.setattr(sums, "_LONGEST", 100)
    out = jit(skellam.cdf)(np.zeros(2), np.array([2.0, 1e6]), np.array([2.0, 1e6]))
    assert np.isnan(out).tolist() == [False, True]


def test_quantiles_do_not_compute_of_a_number_for_each_probability():
    """Regression: XLA's simplifier took over 50 turns of the same numbers, and logged that."""
    text = jit(lambda q: gennorm.ppf(q, 1.5)).lower(onp.ones(5)).as_text()
    assert re.search(r"call @gammaln\(%\w+\) : \(tensor<f\d\d>\)", text)
