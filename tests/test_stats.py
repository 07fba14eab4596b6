"""Distributions: every function beside SciPy's over the support, its ends, beyond it and far out;
derivatives beside differences; samples beside distribution functions.
"""

import importlib

import numpy as np
import pytest
import scipy.stats

import olympus
from olympus import jit, jvp

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


@pytest.mark.parametrize("name, params", CASES)
def test_functions_are_scipys(name, params):
    found = list(calls(name, params))
    with olympus.enable_x64(True), np.errstate(all="ignore"):
        outs = jit(lambda: [f(*first, *rest) for _, f, _, first, rest in found])()
        for (kind, _, oracle, first, rest), out in zip(found, outs, strict=True):
            expected = np.array(oracle(*first, *rest), float)
            out = np.array(out)
            if kind in ("pdf", "logpdf", "pmf", "logpmf"):      # infinity is no outcome, as in
                lost = np.isnan(expected) & np.isinf(first[0])  # most of SciPy's distributions
                expected[lost] = 0.0 if kind in ("pdf", "pmf") else -np.inf
            tiny = (abs(expected) < 1e-300) & (abs(out) < 1e-300)
            tiny |= np.isneginf(expected) & (out < -700) & (kind in ("logcdf", "logsf"))
            np.testing.assert_allclose(out[~tiny], expected[~tiny], rtol=1e-9, atol=1e-12 * (
                kind.startswith("log")), err_msg=kind)


@pytest.mark.slow
@pytest.mark.parametrize("name, params", CASES)
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
        both = jit(lambda s: (values(s), jvp(values, (0.0,), (1.0,))[1]))
        (high, slope), (low, _) = both(h), both(-h)
        for kind, a, b, s in zip(kinds, high, low, slope, strict=True):
            known = np.isfinite(a)
            expected = (a[known] - b[known]) / (2 * h)
            np.testing.assert_allclose(s[known], expected, rtol=2e-6, atol=1e-8, err_msg=kind)
