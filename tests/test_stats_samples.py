"""Statistics of samples beside SciPy's: axes, missing values, empty and degenerate samples."""

import numpy as np
import pytest
import scipy.stats

import olympus
from olympus import grad, jit, numpy as onp, random
from olympus.scipy import stats

X = np.random.default_rng(0).normal(size=(5, 7)) + 0.3
Y = X[::-1] * 0.4 + np.random.default_rng(1).normal(size=(5, 7))
TIES = np.round(X * 2)
HOLES = np.where(np.random.default_rng(2).random((5, 7)) < 0.2, np.nan, X)
POSITIVE = abs(X) + 0.1

CALLS = [       # name, arguments, parameters
    *(("mode", (TIES,), {"axis": axis, "keepdims": keep})
      for axis in (0, 1, -1, None) for keep in (False, True)),
    *(("rankdata", (TIES,), {"axis": axis, "method": method}) for axis in (0, 1, None)
      for method in ("average", "min", "max", "dense", "ordinal")),
    ("rankdata", (HOLES,), {"axis": 1}), ("rankdata", (HOLES,), {"axis": 1, "nan_policy": "omit"}),
    *((name, (x,), {"axis": axis, "nan_policy": policy})
      for name in ("sem", "skew", "kurtosis", "zscore", "variation", "median_abs_deviation", "iqr")
      for x, policy in ((X, "propagate"), (HOLES, "omit")) for axis in (0, 1, None)),
    ("sem", (HOLES,), {"axis": 1, "ddof": 0}), ("sem", (X,), {"axis": None, "keepdims": True}),
    ("skew", (X,), {"bias": False}), ("kurtosis", (X,), {"bias": False, "fisher": False}),
    ("skew", (np.ones(5),), {}), ("kurtosis", (np.ones(5),), {}), ("zscore", (np.ones(5),), {}),
    ("moment", (X,), {"order": 3}), ("moment", (X,), {"order": 2, "center": 0.5, "axis": 1}),
    ("iqr", (X,), {"rng": (10, 80), "axis": 0}), ("variation", (X,), {"ddof": 1}),
    ("gmean", (POSITIVE,), {}), ("gmean", (POSITIVE,), {"axis": 1, "weights": POSITIVE}),
    ("hmean", (POSITIVE,), {}), ("hmean", (POSITIVE,), {"axis": None}),
    ("hmean", (np.array([0.0, 1.0]),), {}), ("gmean", (np.array([0.0, 1.0]),), {}),
    ("entropy", (POSITIVE,), {"axis": 1}), ("entropy", (POSITIVE, POSITIVE[::-1]), {"base": 2.0}),
    *(("pearsonr", (X[0], Y[0]), {"alternative": a}) for a in ("two-sided", "less", "greater")),
    ("pearsonr", (X[0], 2 * X[0] + 1), {}), ("pearsonr", (X[0], -X[0]), {}),
    ("spearmanr", (TIES[0], Y[0]), {}), ("spearmanr", (X[0], Y[0]), {"alternative": "less"}),
    ("linregress", (X[0], Y[0]), {}),
    ("ttest_1samp", (X, 0.1), {"axis": 1}), ("ttest_1samp", (X, 0.1), {"alternative": "less"}),
    ("ttest_ind", (X, Y), {"alternative": "greater"}),
    ("ttest_ind", (X, Y[:3]), {"equal_var": False}), ("ttest_rel", (X, Y), {"axis": None}),
]


# Calls that are compiled in no time: missing values, and corrections of a bias.
FEW = [("sem", (HOLES,), {"axis": 1, "nan_policy": "omit"}),
       ("zscore", (HOLES,), {"nan_policy": "omit"}),
       ("kurtosis", (X,), {"bias": False, "fisher": False})]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("calls", [FEW, pytest.param(CALLS, marks=pytest.mark.slow)],
                         ids=["few", "all"])
def test_values_are_scipys(calls):
    with olympus.enable_x64(True):
        outs = jit(lambda: [getattr(stats, name)(*args, **params)
                            for name, args, params in calls])()
        for (name, args, params), out in zip(calls, outs, strict=True):
            expected = getattr(scipy.stats, name)(*args, **params)
            expected = tuple(expected) if isinstance(out, tuple) else (expected,)
            out = tuple(out) if isinstance(out, tuple) else (out,)
            for a, e in zip(out, expected, strict=True):
                np.testing.assert_allclose(a, e, rtol=1e-10, atol=1e-12,
                                           err_msg=f"{name} {params}")


def test_describe_is_scipys():
    found, expected = stats.describe(X.astype("f4")), scipy.stats.describe(X)
    for a, e in zip(olympus.tree.leaves(found), olympus.tree.leaves(tuple(expected)), strict=True):
        np.testing.assert_allclose(a, e, rtol=2e-5)


def test_what_is_left_out_is_no_extremum():
    x = np.where(np.isnan(HOLES), np.nan, POSITIVE).astype("f4")
    found = stats.describe(x, nan_policy="omit")
    np.testing.assert_array_equal(found.minmax, [np.nanmin(x, 0), np.nanmax(x, 0)])


def test_modes_of_nothing_and_of_nan():
    assert np.isnan(stats.mode(np.zeros((0, 2))).mode).all()
    assert stats.mode(np.zeros((2, 0))).count.shape == (0,)
    value, count = stats.mode(np.array([1.0, np.nan, np.nan]))
    assert np.isnan(value) and int(count) == 2
    assert int(stats.mode(np.array([1.0, np.nan, np.nan]), nan_policy="omit").count) == 1
    assert stats.mode(np.array([True, True, False])).mode.dtype == bool


def test_options_that_are_refused_say_what_is_required():
    with pytest.raises(ValueError, match="rankdata: method='middle' given; one of average"):
        stats.rankdata(X, "middle")
    with pytest.raises(ValueError, match="mode: nan_policy='raise' given"):
        stats.mode(X, nan_policy="raise")
    with pytest.raises(ValueError, match="pearsonr: x of shape"):
        stats.pearsonr(X, X)
    with pytest.raises(ValueError, match="alternative='more' given"):
        stats.ttest_1samp(X, 0.0, alternative="more")


# Density estimates -------------------------------------------------------------------------------

@pytest.mark.parametrize("params", [{}, {"bw_method": "silverman"}, {"bw_method": 0.3}, {
    "weights": np.arange(1.0, 8.0)}], ids=["scott", "silverman", "number", "weights"])
def test_density_estimate_is_scipys(params):
    data, points = X[:2], X[2:4]
    expected = scipy.stats.gaussian_kde(data, **params)
    with olympus.enable_x64(True):
        ours = jit(lambda data: stats.gaussian_kde(data, **params))(data)
        pairs = jit(lambda k: [
            k(points), k.logpdf(50 * points), k.covariance, k.inv_cov, k.neff,
            k.integrate_gaussian(np.ones(2), np.eye(2)), k.integrate_kde(k)])(ours)
    for a, e in zip(pairs, [
            expected(points), expected.logpdf(50 * points), expected.covariance, expected.inv_cov,
            expected.neff, expected.integrate_gaussian(np.ones(2), np.eye(2)),
            expected.integrate_kde(expected)], strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-9)


def test_density_estimate_of_numbers_integrates_and_changes_its_width():
    ours, expected = stats.gaussian_kde(X[0].astype("f4")), scipy.stats.gaussian_kde(X[0])
    np.testing.assert_array_equal(ours.pdf(x=X[0]), ours.evaluate(points=X[0]))
    np.testing.assert_allclose(ours.integrate_box_1d(-0.5, 1.0), expected.integrate_box_1d(
        -0.5, 1.0), rtol=1e-5)
    ours.set_bandwidth(0.7)
    expected.set_bandwidth(0.7)
    np.testing.assert_allclose(ours(0.2), expected(0.2), rtol=1e-5)
    slope = grad(lambda x: stats.gaussian_kde(x).logpdf(0.2)[0])(onp.array(X[0], "float32"))
    assert np.isfinite(slope).all()


def test_samples_of_a_density_estimate_have_its_covariance():
    k = stats.gaussian_kde(X[:2].astype("f4"), weights=np.arange(1.0, 8.0))
    drawn = k.resample(random.key(0), (20000,))
    assert drawn.shape == (2, 20000) and k.resample(random.key(0)).shape == (2,)
    whole = np.cov(X[:2], aweights=np.arange(1.0, 8.0), ddof=0) + np.asarray(k.covariance)
    np.testing.assert_allclose(np.cov(drawn), whole, atol=0.05)


# Distributions of vectors ------------------------------------------------------------------------

def test_multivariate_normal_is_scipys():
    from olympus.scipy.stats import multivariate_normal as ours
    theirs = scipy.stats.multivariate_normal
    cov = np.cov(X.T[:4].T[:, :3].T)
    flat = np.outer([1.0, 2.0, 1.0], [1.0, 2.0, 1.0])
    x = X[:, :3]
    with olympus.enable_x64(True):
        np.testing.assert_allclose(ours.logpdf(x, x[0], cov), theirs.logpdf(x, x[0], cov),
                                   rtol=1e-9)
        np.testing.assert_allclose(ours.pdf(x, np.zeros(3), 2.0), theirs.pdf(x, np.zeros(3), 2.0))
        on = np.array([[1.0, 2.0, 1.0], [1.0, 2.0, 1.5]])
        np.testing.assert_allclose(
            ours.logpdf(on, np.zeros(3), flat, allow_singular=True),
            theirs.logpdf(on, np.zeros(3), flat, allow_singular=True))
        assert ours.logpdf(x, np.zeros(3), np.stack([cov] * 5)).shape == (5,)
        assert ours.logpdf(x, 0.0, 1.0).shape == x.shape
    assert np.isnan(ours.logpdf(np.ones(3), np.zeros(3), flat - np.eye(3)))
    with pytest.raises(ValueError, match="cov must be a number or"):
        ours.logpdf(x, np.zeros(3), np.ones(3))


def test_dirichlet_and_multinomial_are_scipys():
    from olympus.scipy.stats import dirichlet, multinomial
    alpha, p = np.array([1.0, 2.5, 3.0]), np.array([0.2, 0.5, 0.3])
    x = scipy.stats.dirichlet.rvs(alpha, 4, random_state=0).T
    np.testing.assert_allclose(dirichlet.logpdf(x.astype("f4"), alpha.astype("f4")),
                               scipy.stats.dirichlet.logpdf(x, alpha), rtol=2e-5)
    np.testing.assert_allclose(dirichlet.pdf(x[:2].astype("f4"), alpha.astype("f4")),
                               scipy.stats.dirichlet.pdf(x, alpha), rtol=2e-5)
    assert float(dirichlet.logpdf(np.array([0.5, 0.2, 0.2]), alpha)) == -np.inf
    counts = np.array([[1, 2, 1], [0, 4, 0], [1, 1, 1], [-1, 4, 1]])
    np.testing.assert_allclose(multinomial.pmf(counts, 4, p.astype("f4")),
                               scipy.stats.multinomial.pmf(counts, 4, p), rtol=1e-5)
    with pytest.raises(ValueError, match="dirichlet.logpdf: x of shape"):
        dirichlet.logpdf(x, np.ones(5))
