"""Derivatives of samples in their laws' parameters.

A sample x of a law F(x; a) that moves with a at fixed u = F(x; a) is a quantile: its derivative is
the finite difference of SciPy's. Samples that move otherwise have a derivative whose mean is that
of the law's mean.
"""

import numpy as np
import pytest
import scipy.stats as S

import olympus
from olympus import random

N = 12
# Sampler, parameters, which of them moves, SciPy's law of all.
QUANTILES = [
    ("gamma", (0.3,), 0, S.gamma), ("gamma", (12.0,), 0, S.gamma),
    ("loggamma", (0.8,), 0, S.loggamma), ("chisquare", (2.5,), 0, S.chi2),
    ("pareto", (2.5,), 0, S.pareto), ("power", (0.7,), 0, S.powerlaw),
    ("rayleigh", (1.5,), 0, lambda s: S.rayleigh(scale=s)),
    ("lognormal", (0.7,), 0, S.lognorm),
    ("weibull_min", (2.0, 1.5), 0, lambda s, c: S.weibull_min(c, scale=s)),
    ("weibull_min", (2.0, 1.5), 1, lambda s, c: S.weibull_min(c, scale=s)),
    ("truncated_normal", (-1.0, 2.0), 0, S.truncnorm),
    ("truncated_normal", (-1.0, 2.0), 1, S.truncnorm),
    *(("triangular", (-1.0, 0.5, 2.0), i, lambda a, c, b: S.triang((c - a) / (b - a), a, b - a))
      for i in range(3)),
    ("vonmises", (0.4, 3.0), 0, lambda m, k: S.vonmises(k, m)),
    *(("vonmises", (0.0, k), 1, lambda m, k: S.vonmises(k)) for k in (0.05, 3.0, 2000.0)),
    *(("noncentral_chisquare", (df, nonc), 1, S.ncx2)
      for df, nonc in ((3.0, 2.0), (0.6, 4.0), (5.0, 600.0), (40.0, 0.1))),
]


SLOW = ("gamma", "loggamma", "chisquare", "noncentral_chisquare")     # slow


@pytest.mark.parametrize("row", [
    pytest.param(row, marks=pytest.mark.slow if row[0] in SLOW else ()) for row in QUANTILES],
    ids=lambda r: f"{r[0]}-{r[2]}-{r[1]}")
def test_samples_move_along_their_quantile(row):
    name, params, which, law = row
    with olympus.enable_x64(True):
        at = [np.full(N, p) for p in params]
        tangents = [np.full(N, float(i == which)) for i in range(len(at))]
        run = lambda *at: getattr(random, name)(random.key(2), *at, shape=(N,), dtype="float64")
        x, slope = map(np.asarray, olympus.jvp(run, at, tangents))
    h = 1e-5 * max(1, params[which])
    moved = [[p + s * h * (i == which) for i, p in enumerate(params)] for s in (-1, 1)]
    u = law(*params).cdf(x)
    wanted = (law(*moved[1]).ppf(u) - law(*moved[0]).ppf(u)) / (2 * h)
    np.testing.assert_allclose(slope, wanted, rtol=2e-4, atol=1e-6 * np.abs(wanted).max())


M = 4000
# Sampler, parameters, which of them moves, a function of the sample, the derivative of its mean.
MEANS = [
    ("beta", (2.0, 3.0), 0, lambda x: x, 3 / 25), ("beta", (2.0, 3.0), 1, lambda x: x, -2 / 25),
    ("t", (9.0,), 0, lambda x: x * x, -2 / 49),
    ("f", (3.0, 12.0), 1, lambda x: x, -2 / 100),
    ("generalized_normal", (2.0,), 0, abs, None),
    ("noncentral_chisquare", (3.0, 2.0), 0, lambda x: x, 1.0),
    ("noncentral_chisquare", (0.6, 2.0), 0, lambda x: x, 1.0),
    ("noncentral_f", (3.0, 12.0, 2.0), 0, lambda x: x, -12 * 2 / (9 * 10)),
    ("noncentral_f", (3.0, 12.0, 2.0), 2, lambda x: x, 12 / (3 * 10)),
]


@pytest.mark.slow
@pytest.mark.parametrize("row", MEANS, ids=lambda r: f"{r[0]}-{r[2]}-{r[1]}")
def test_mean_of_the_derivative_is_that_of_the_mean(row):
    name, params, which, fun, wanted = row
    if wanted is None:
        h, law = 1e-4, lambda p: S.gennorm(p).expect(abs)
        wanted = (law(params[0] + h) - law(params[0] - h)) / (2 * h)
    tangents = [np.full(M, i == which, np.float32) for i in range(len(params))]
    at = [np.full(M, p, np.float32) for p in params]
    run = lambda *at: fun(getattr(random, name)(random.key(3), *at, shape=(M,)))
    slope = np.asarray(olympus.jvp(run, at, tangents)[1], np.float64)
    assert abs(slope.mean() - wanted) < 4 * slope.std() / M ** 0.5, (slope.mean(), wanted)


@pytest.mark.slow
def test_mean_of_the_derivative_of_dirichlet():
    alpha = np.float32([0.5, 2, 3])
    run = lambda a: random.dirichlet(random.key(3), a, (2000,))
    slope = np.asarray(olympus.jvp(run, [alpha], [np.float32([1, 0, 0])])[1], np.float64)
    wanted = (np.array([1, 0, 0]) * 5.5 - alpha) / 5.5 ** 2
    np.testing.assert_allclose(slope.sum(-1), 0, atol=1e-4)
    assert (abs(slope.mean(0) - wanted) < 4 * slope.std(0) / 2000 ** 0.5).all()


@pytest.mark.slow
def test_normal_vectors_move_with_their_covariance():
    cov, change = np.array([[2, 0.5], [0.5, 1]]), np.array([[0.3, -0.2], [-0.2, 0.7]])
    for method in ("cholesky", "eigh", "svd"):
        with olympus.enable_x64(True):
            run = lambda c: random.multivariate_normal(random.key(0), np.zeros(2), c, (3,),
                                                       method=method)
            slope = np.asarray(olympus.jvp(run, [cov], [change])[1])
            wanted = (np.asarray(run(cov + 1e-6 * change))
                      - np.asarray(run(cov - 1e-6 * change))) / 2e-6
        np.testing.assert_allclose(slope, wanted, rtol=1e-6, atol=1e-7)
