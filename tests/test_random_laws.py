"""Do samples follow their laws? Every distribution against SciPy's, with one correction for all.

A row names a sampler, columns of parameters and SciPy's law of one parameter set. All sets are
drawn in one call. Continuous laws are held against Kolmogorov and Smirnov's test, discrete ones
against Pearson's, each at the level LEVEL over the number of tests: with fixed seeds a failure is a
defect.
"""

import ml_dtypes
import numpy as np
import pytest
import scipy.stats as stats
from scipy.stats import distributions

import olympus
from olympus import random

N, LEVEL = 2000, 0.01
S = stats
# Their loops, run eagerly, are slow.
SLOW = frozenset(("beta", "f", "chisquare", "loggamma", "gamma", "noncentral_chisquare", "t",
                  "noncentral_f", "generalized_normal", "negative_binomial", "wald", "ball",
                  "dirichlet", "hypergeometric", "binomial", "multinomial",
                  "multivariate_hypergeometric"))


LAWS = {
    "uniform": ([], lambda: S.uniform()),
    "normal": ([], lambda: S.norm()),
    "exponential": ([], lambda: S.expon()),
    "gumbel": ([], lambda: S.gumbel_r()),
    "laplace": ([], lambda: S.laplace()),
    "logistic": ([], lambda: S.logistic()),
    "cauchy": ([], lambda: S.cauchy()),
    "maxwell": ([], lambda: S.maxwell()),
    "rademacher": ([], lambda: S.rv_discrete(values=([-1, 1], [0.5, 0.5]))),
    "truncated_normal": ([(-1, 2), (3, 5), (-0.1, 0.1), (-9, 9)], lambda a, b: S.truncnorm(a, b)),
    "pareto": ([0.5, 2.5, 40], lambda b: S.pareto(b)),
    "power": ([0.5, 2.5, 40], lambda a: S.powerlaw(a)),
    "rayleigh": ([1e-3, 1.5, 1e4], lambda scale: S.rayleigh(scale=scale)),
    "lognormal": ([0.1, 1.0, 5.0], lambda s: S.lognorm(s)),
    "wald": ([0.1, 1.3, 20], lambda mean: S.invgauss(mean)),
    "triangular": ([(-1, 0.5, 2), (0, 0, 1), (0, 1, 1)],
                   lambda a, c, b: S.triang((c - a) / (b - a), a, b - a)),
    "weibull_min": ([(2, 1.5), (0.1, 0.3), (9, 30)], lambda s, c: S.weibull_min(c, scale=s)),
    "double_sided_maxwell": ([(1, 2), (-3, 0.1)], lambda loc, scale: Mirrored(loc, scale)),
    "gamma": ([0.2, 0.9, 1, 7.5, 1e4], lambda a: S.gamma(a)),
    "loggamma": ([0.01, 0.5, 2.5, 1e3], lambda a: S.loggamma(a)),
    "beta": ([(0.5, 2), (3, 0.4), (1, 1), (200, 900)], lambda a, b: S.beta(a, b)),
    "chisquare": ([0.5, 3, 1e3], lambda df: S.chi2(df)),
    "f": ([(3, 5), (0.7, 40), (100, 1)], lambda n, d: S.f(n, d)),
    "t": ([0.7, 4, 1e3], lambda df: S.t(df)),
    "generalized_normal": ([0.6, 1, 2, 9], lambda p: S.gennorm(p)),
    "noncentral_chisquare": ([(3, 2), (0.6, 4), (1, 50), (30, 0), (7, 1e3)],
                             lambda df, nonc: S.ncx2(df, nonc) if nonc else S.chi2(df)),
    "noncentral_f": ([(3, 22, 3), (0.8, 9, 5)], lambda n, d, nonc: S.ncf(n, d, nonc)),
    "vonmises": ([(0, 0), (0, 0.3), (0, 4), (0, 700)],
                 lambda mu, kappa: S.vonmises(kappa) if kappa else S.uniform(-np.pi, 2 * np.pi)),
    "bernoulli": ([0.01, 0.4, 0.97], lambda p: S.bernoulli(p)),
    "geometric": ([0.02, 0.25, 0.9], lambda p: S.geom(p)),
    "poisson": ([0.1, 2.5, 9.9, 10, 300], lambda lam: S.poisson(lam)),
    "binomial": ([(1, 0.3), (20, 0.25), (40, 0.5), (90, 0.8), (3000, 0.999), (50000, 0.3)],
                 lambda n, p: S.binom(n, p)),
    "negative_binomial": ([(0.3, 0.2), (4, 0.5), (50, 0.9), (20, 0.05)],
                          lambda n, p: S.nbinom(n, p)),
    "hypergeometric": ([(6, 18, 8), (1, 1, 1), (900, 2000, 500), (100000, 30, 50),
                        (10, 100000, 99000), (40, 5, 42)],
                       lambda good, bad, n: S.hypergeom(good + bad, good, n)),
    "logseries": ([0.01, 0.6, 0.99], lambda p: S.logser(p)),
    "zipf": ([1.5, 3, 20], lambda a: S.zipf(a)),
}


# Parameters over their whole range, where formulas that are right in the middle lose digits.
INF = np.inf
ENDS = {
    "uniform": ([(-3e38, 3e38), (-1, 1e-3), (1e-30, 2e-30)], lambda a, b: S.uniform(a, b - a)),
    "truncated_normal": ([(4, 5), (5, 6), (8, 9), (20, 21), (50, 51), (-6, -5), (-INF, -6),
                          (6, INF), (-INF, INF), (-INF, 0.5), (-9, 5), (3.5, 3.6), (3.8, 8),
                          (1.4, 3), (1.9, 3)], lambda a, b: S.truncnorm(a, b)),
    "pareto": ([0.05, 1e4], lambda b: S.pareto(b)),
    "power": ([0.02, 1e4], lambda a: S.powerlaw(a)),
    "rayleigh": ([1e-30, 1e30], lambda scale: S.rayleigh(scale=scale)),
    "lognormal": ([1e-3, 30], lambda s: S.lognorm(s)),
    "wald": ([1e-4, 60, 1e3, 1e5, 1e8], lambda mean: S.invgauss(mean)),
    "triangular": ([(100, 101, 102)], lambda a, c, b: S.triang((c - a) / (b - a), a, b - a)),
    "weibull_min": ([(1, 0.05), (1, 500)], lambda s, c: S.weibull_min(c, scale=s)),
    "beta": ([(0.01, 2), (1e-3, 5), (1e5, 2e5)], lambda a, b: S.beta(a, b)),
    "chisquare": ([0.02, 1e6], lambda df: S.chi2(df)),
    "f": ([(0.05, 3), (3, 0.05), (1e5, 1e5)], lambda n, d: S.f(n, d)),
    "t": ([0.05, 0.2, 1e8], lambda df: S.t(df)),
    "generalized_normal": ([0.05, 0.2, 50, 100], lambda p: S.gennorm(p)),
    "noncentral_chisquare": ([(0.05, 0.5), (5, 1e-3)], lambda df, nonc: S.ncx2(df, nonc)),
    "noncentral_f": ([(2, 3, 200)], lambda n, d, nonc: S.ncf(n, d, nonc)),
    "vonmises": ([(0, 1e-6), (0, 1e4), (0, 1e6)], lambda mu, kappa: S.vonmises(kappa)),
    "bernoulli": ([1e-3, 0.999], lambda p: S.bernoulli(p)),
    "geometric": ([1e-6, 1e-3, 0.02, 0.999], lambda p: S.geom(p)),
    "poisson": ([1e-3, 1e4, 1e6, 1e8], lambda lam: S.poisson(lam)),
    "negative_binomial": ([(0.01, 0.5), (1e4, 0.3), (5, 1e-5)], lambda n, p: S.nbinom(n, p)),
    "logseries": ([1e-5, 0.9999], lambda p: S.logser(p)),
}
WHOLE = frozenset(("bernoulli", "geometric", "poisson", "negative_binomial", "logseries"))
# wald and t stand for all samplers that draw in float32 then.
HALVES = frozenset(("uniform", "truncated_normal", "wald", "t", "bernoulli", "geometric"))
DTYPES = {name: np.dtype(getattr(ml_dtypes, name, name))
          for name in ("float32", "float64", "float16", "bfloat16")}


class Mirrored:
    """The law of Maxwell numbers of random sign."""

    def __init__(self, loc, scale):
        self.loc, self.law = loc, S.maxwell(scale=scale)

    def cdf(self, x):
        x = np.asarray(x) - self.loc
        return 0.5 + 0.5 * np.sign(x) * self.law.cdf(np.abs(x))


def pvalue(x, law):
    """The p-value of a sample's test against its law."""
    if x.dtype.kind == "f" and not isinstance(getattr(law, "dist", law), distributions.rv_discrete):
        return S.kstest(x.astype(np.float64), law.cdf).pvalue
    inner = np.unique(np.append(law.ppf(np.linspace(0.02, 0.98, 25)), 1 + law.ppf(0.02)))
    expected = N * np.diff([0, *law.cdf(inner), 1])
    found = np.diff([0, *np.searchsorted(np.sort(x), inner, side="right"), N])
    assert (found[expected < 1e-9] == 0).all()
    keep = expected >= 1e-9
    if keep.sum() == 1:
        return 1.0
    return S.chisquare(found[keep], expected[keep] * N / expected[keep].sum()).pvalue


def spread(x, law, rng):
    """Uniform numbers, if the numbers rounded to `x` follow the law.

    They are the law's values of random places among all that round to each element.
    """
    info, wide = ml_dtypes.finfo(x.dtype), x.astype(np.float64)
    down, up = [np.nextafter(x, np.array(end, x.dtype)).astype(np.float64) for end in (-INF, INF)]
    least = np.abs(wide) < float(info.tiny)     # smaller numbers may be 0
    low = np.where(least, -float(info.tiny), np.where(down == -INF, wide, (down + wide) / 2))
    high = np.where(least, float(info.tiny), np.where(up == INF, wide, (up + wide) / 2))
    low = np.where(wide == INF, float(info.max), np.where(wide == -INF, -INF, low))
    high = np.where(wide == -INF, -float(info.max), np.where(wide == INF, INF, high))
    low, high = law.cdf(low), law.cdf(high)
    return low + rng.random(x.shape) * (high - low)


def covariance(method):
    """Draws of correlated vectors, made independent: two standard normal numbers each."""
    root = np.array([[2, 0, 0], [1, 0.5, 0], [-3, 1, 0.1]], np.float32)
    x = random.multivariate_normal(random.key(1), np.ones(3, np.float32), root @ root.T, (N,),
                                   method=method)
    return np.linalg.solve(root, (np.asarray(x) - 1).T)


# Vectors and matrices: rows of numbers of one law each.
P = np.array([0.2, 0.3, 0.5], np.float32)
ROWS = {
    "dirichlet": lambda: (np.asarray(random.dirichlet(random.key(1), 9 * P, (N,))).T,
                          [S.beta(9 * p, 9 - 9 * p) for p in P]),
    "multinomial": lambda: (np.asarray(random.multinomial(
        random.key(1), 40, P, shape=(N, 3), dtype="int32")).T, [S.binom(40, p) for p in P]),
    "multivariate_hypergeometric": lambda: (np.asarray(random.multivariate_hypergeometric(
        random.key(1), np.array([9, 6, 25]), 12, (N,))).T,
        [S.hypergeom(40, c, 12) for c in (9, 6, 25)]),
    "multivariate_normal-cholesky": lambda: (covariance("cholesky"), [S.norm()] * 3),
    "multivariate_normal-eigh": lambda: (covariance("eigh"), [S.norm()] * 3),
    "multivariate_normal-svd": lambda: (covariance("svd"), [S.norm()] * 3),
    "orthogonal": lambda: (np.asarray(random.orthogonal(random.key(1), 3, (N,))).reshape(N, 9).T,
                           [S.uniform(-1, 2)] * 9),
    "orthogonal-complex": lambda: (np.abs(np.asarray(random.orthogonal(
        random.key(1), 3, (N,), "complex64", 2)).reshape(N, 6).T) ** 2, [S.beta(1, 2)] * 6),
    "ball": lambda: (np.linalg.norm(np.asarray(random.ball(random.key(1), 3, shape=(N,))), axis=-1
                                    )[None] ** 3, [S.uniform()]),
    "categorical": lambda: (np.asarray(random.categorical(random.key(1), np.log(P), shape=(N,))
                                       )[None], [S.rv_discrete(values=([0, 1, 2], P / P.sum()))]),
    "choice": lambda: (np.asarray(random.choice(random.key(1), 3, (N,), p=P))[None],
                       [S.rv_discrete(values=([0, 1, 2], P / P.sum()))]),
    "randint": lambda: (np.asarray(random.randint(random.key(1), (N,), -3, 9))[None],
                        [S.randint(-3, 9)]),
    "bits": lambda: (np.asarray(random.bits(random.key(1), (N,), "uint8"))[None],
                     [S.randint(0, 256)]),
    "permutation": lambda: (np.asarray(random.permutation(
        random.key(1), np.tile(np.arange(5), (N, 1)), 1, True)).T, [S.randint(0, 5)] * 5),
}
TESTS = sum(max(1, len(sets)) for sets, _ in [*LAWS.values(), *4 * [*ENDS.values()]]) + 60


def marked(names):
    return [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in names]


@pytest.mark.parametrize("name", marked(LAWS))
def test_samples_follow_their_law(name):
    sets, law = LAWS[name]
    columns = np.array(sets, np.float32).reshape(len(sets), -1).T if sets else []
    key = random.key(list(LAWS).index(name))
    shape = (N, max(1, len(sets)))
    lead = (N,) if name == "double_sided_maxwell" else shape
    drawn = np.asarray(getattr(random, name)(key, *columns, shape=lead))
    assert drawn.shape == shape
    for i, params in enumerate(sets or [()]):
        params = params if isinstance(params, tuple) else (params,)
        assert pvalue(drawn[:, i], law(*params)) > LEVEL / TESTS, params


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")       # SciPy's, at such parameters
@pytest.mark.parametrize(("name", "dtype"), [
    (name, dtype) for name in ENDS for dtype in DTYPES if dtype in ("float32", "float64")
    or name in HALVES])
def test_samples_follow_their_law_at_the_ends_of_parameters(name, dtype):
    sets, law = ENDS[name]
    columns = np.array(sets, np.float64).reshape(len(sets), -1).T.astype(DTYPES[dtype])
    sampler, real = getattr(random, name), name not in WHOLE
    if name == "uniform":
        sampler = lambda key, a, b, **more: random.uniform(key, minval=a, maxval=b, **more)
    with olympus.enable_x64(dtype == "float64"):
        drawn = np.asarray(sampler(random.key(list(ENDS).index(name)), *columns,
                                   shape=(N, len(sets)), **({"dtype": dtype} if real else {})))
    for x, params in zip(drawn.T, columns.T.astype(np.float64), strict=True):
        if name != "truncated_normal" and not np.isfinite(params).all():
            continue        # beyond the dtype
        if name == "truncated_normal" and DTYPES[dtype].itemsize == 2 and abs(params).max() > 3:
            continue        # the limits themselves, which are excluded, have much of the weight
        assert not np.isnan(x.astype(np.float64)).any(), params
        found = S.kstest(spread(x, law(*params), np.random.default_rng(0)), "uniform").pvalue if (
            real) else pvalue(x, law(*params))
        assert found > LEVEL / TESTS or (np.isnan(found) and (x == x[0]).all()), params


@pytest.mark.parametrize("name", marked(ROWS))
def test_parts_follow_their_law(name):
    rows, laws = ROWS[name]()
    for row, law in zip(rows, laws, strict=True):
        assert pvalue(row, law) > LEVEL / TESTS


def test_every_sampler_has_a_law():
    others = {"Key", "PRNGKey", "clone", "fold_in", "key", "key_data", "key_dtype", "key_impl",
              "split", "wrap_key_data", "random_gamma_p"}
    assert set(random.__all__) - others == set(LAWS) | {name.split("-")[0] for name in ROWS}
