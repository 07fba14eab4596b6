"""Gamma numbers and their kin: laws, derivatives, vmap, errors. Streams are in test_random.py."""

import numpy as np
import pytest
import scipy.stats as stats

import olympus
from olympus import random

N = 5000
LAWS = [
    ("gamma", (0.4,), stats.gamma(0.4)), ("gamma", (7.5,), stats.gamma(7.5)),
    ("loggamma", (2.5,), stats.loggamma(2.5)), ("beta", (0.5, 2.0), stats.beta(0.5, 2)),
    ("chisquare", (3.0,), stats.chi2(3)), ("f", (3.0, 5.0), stats.f(3, 5)),
    ("t", (4.0,), stats.t(4)), ("generalized_normal", (1.5,), stats.gennorm(1.5)),
]


@pytest.mark.parametrize("name, params, law", LAWS, ids=lambda x: str(x)[:20])
def test_laws(name, params, law):
    x = np.asarray(getattr(random, name)(random.key(5), *params, shape=(N,)))
    assert x.shape == (N,) and x.dtype == np.float32
    assert stats.kstest(x, law.cdf).pvalue > 0.003


def test_poisson_law():
    for rate in (2.5, 30.0):
        x = np.asarray(random.poisson(random.key(1), rate, (N,)))
        top = int(stats.poisson(rate).ppf(0.99))
        low = int(stats.poisson(rate).ppf(0.01))
        counts = np.array([(x <= low).sum(), *((x == k).sum() for k in range(low + 1, top)),
                           (x >= top).sum()])
        edges = stats.poisson(rate).cdf(np.arange(low, top))
        wanted = N * np.diff([0, *edges, 1])
        assert stats.chisquare(counts, wanted).pvalue > 0.003
    special = random.poisson(random.key(1), np.float32([0, np.nan]))
    assert np.asarray(special).tolist() == [0, -1]


def test_many_dimensions():
    x = np.asarray(random.dirichlet(random.key(0), np.float32([0.1, 1, 4]), (N,)))
    np.testing.assert_allclose(x.sum(-1), 1, rtol=1e-5)
    np.testing.assert_allclose(x.mean(0), np.array([0.1, 1, 4]) / 5.1, atol=0.02)
    x = np.asarray(random.ball(random.key(0), 3, shape=(N,)))
    radius = np.sqrt((x ** 2).sum(-1))
    assert stats.kstest(radius ** 3, stats.uniform().cdf).pvalue > 0.003
    assert random.ball(random.key(0), 0).shape == (0,)


def test_derivatives_move_the_sample_along_its_quantile():
    key, a = random.key(3), np.float32([0.2, 0.9, 3.0, 40.0])
    x, b = np.asarray(random.gamma(key, a), np.float64), a.astype("f8")
    u = stats.gamma(b).cdf(x)
    h = 1e-4
    wanted = (stats.gamma(b + h).ppf(u) - stats.gamma(b - h).ppf(u)) / (2 * h)
    slope = np.asarray(olympus.grad(lambda a: random.gamma(key, a).sum())(a))
    np.testing.assert_allclose(slope, wanted, rtol=2e-3)
    log_slope = np.asarray(olympus.grad(lambda a: random.loggamma(key, a).sum())(a))
    np.testing.assert_allclose(log_slope, wanted / x, rtol=2e-3)


def test_log_derivative_of_samples_that_underflow():
    key, a = random.key(3), np.float32(1e-3)
    log_x = float(random.loggamma(key, a))
    assert log_x < -110 and float(random.gamma(key, a)) == 0
    # Where x is tiny ln x = (ln u + ln Γ(a+1)) / a, and ψ(1.001) = -0.5756.
    slope = float(olympus.grad(lambda a: random.loggamma(key, a))(a))
    np.testing.assert_allclose(slope, (-0.57557 - log_x) / 1e-3, rtol=1e-4)


def test_vmap():
    keys, a = random.split(random.key(0), 3), np.float32([[0.5, 2, 3]] * 3) + np.arange(3)[:, None]
    a = a.astype("f4")
    draw = lambda k, a: random.gamma(k, a)
    wanted = np.stack([random.gamma(k, row) for k, row in zip(keys, a, strict=True)])
    np.testing.assert_array_equal(olympus.vmap(draw)(keys, a), wanted)
    np.testing.assert_array_equal(olympus.vmap(draw, (0, 1))(keys, a.T), wanted)
    wanted = np.stack([random.gamma(keys[0], row) for row in a])
    np.testing.assert_array_equal(olympus.vmap(draw, (None, 0))(keys[0], a), wanted)
    wanted = np.stack([random.gamma(k, a[0]) for k in keys])
    np.testing.assert_array_equal(olympus.vmap(draw, (0, None))(keys, a[0]), wanted)


ERRORS = [
    (lambda k: random.gamma(k, 1.0, dtype="int32"), ValueError, "a float dtype"),
    (lambda k: random.gamma(k, np.ones(3), (2,)), ValueError, "broadcast"),
    (lambda k: random.gamma(k, 1.0, method="fast"), ValueError, "'exact'"),
    (lambda k: random.loggamma(k, 1.0, method="fast"), ValueError, "loggamma: method"),
    (lambda k: random.gamma(k, 1.0, out_sharding=1), TypeError, "gamma: 1 of type int"),
    (lambda k: random.gamma(0, 1.0), TypeError, "random key"),
    (lambda k: random.random_gamma_p.bind(np.float32(1), np.float32(1), log_space=False),
     TypeError, "random_gamma: keys"),
    (lambda k: random.dirichlet(k, 1.0), ValueError, "an axis of parameters"),
    (lambda k: random.ball(k, -1), ValueError, "number of dimensions"),
    (lambda k: random.poisson(k, 1.0, dtype="float32"), ValueError, "an integer dtype"),
]


@pytest.mark.parametrize("case", range(len(ERRORS)))
def test_errors(case):
    call, kind, text = ERRORS[case]
    with pytest.raises(kind, match=text):
        call(random.key(0))
