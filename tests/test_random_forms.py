"""Every sampler mapped, compiled, and of every shape and dtype: each key's own numbers.

A law holds for samples, see test_random_laws.py; here the oracle is the sampler itself, called once
for each key and parameter.
"""

import numpy as np
import pytest

import olympus
from olympus import numpy as onp, random

FLOATS, INTS = ("float32", "float16", "bfloat16", "float64"), ("int32", "int8", "uint16", "int64")
# Parameters by name, of samplers whose arguments are key, parameters, shape and dtype.
FLOAT = {
    "beta": (0.7, 2.0), "cauchy": (), "chisquare": (3.0,), "double_sided_maxwell": (1.0, 2.0),
    "exponential": (), "f": (3.0, 5.0), "gamma": (0.7,), "generalized_normal": (1.5,), "gumbel": (),
    "laplace": (), "loggamma": (0.7,), "logistic": (), "lognormal": (0.7,), "maxwell": (),
    "noncentral_chisquare": (3.0, 2.0), "noncentral_f": (3.0, 9.0, 2.0), "normal": (),
    "pareto": (2.5,), "power": (2.5,), "rayleigh": (1.5,), "t": (4.0,),
    "triangular": (-1.0, 0.5, 2.0), "truncated_normal": (-1.0, 2.0), "uniform": (),
    "vonmises": (0.5, 2.0), "wald": (1.3,), "weibull_min": (2.0, 1.5), "binomial": (20.0, 0.4),
}
INTEGER = {
    "geometric": (0.25,), "hypergeometric": (6.0, 18.0, 8.0), "logseries": (0.6,),
    "negative_binomial": (4.0, 0.5), "poisson": (12.0,), "rademacher": (), "zipf": (2.5,),
}
P = np.array([0.2, 0.3, 0.5], np.float32)
# Others: (dtypes, axes of one sample, the call, parameters).
OTHERS = {
    "ball": (FLOATS, (2,), lambda k, s, d, p: random.ball(k, 2, p, s, d), (1.5,)),
    "bernoulli": (("bool",), (), lambda k, s, d, p: random.bernoulli(k, p, s), (0.4,)),
    "bits": (("uint32", "uint8", "uint16", "uint64"), (),
             lambda k, s, d: random.bits(k, s, d), ()),
    "categorical": (("int32",), (), lambda k, s, d, p: random.categorical(
        k, onp.log(P) * p, shape=s), (1.5,)),
    "choice": (("int32",), (), lambda k, s, d, p: random.choice(k, 3, s, p=P + p), (0.5,)),
    "dirichlet": (FLOATS, (3,), lambda k, s, d, a: random.dirichlet(
        k, a * onp.ones(3, onp.float32), s, d), (0.7,)),
    "multinomial": (FLOATS, (3,), lambda k, s, d, n: random.multinomial(
        k, n, P, shape=(*s, 3), dtype=d), (9.0,)),
    "multivariate_hypergeometric": (INTS, (3,), lambda k, s, d, n:
                                    random.multivariate_hypergeometric(
                                        k, np.array([9, 6, 25]), n, s, d), (7.0,)),
    "multivariate_normal": (FLOATS, (2,), lambda k, s, d, m: random.multivariate_normal(
        k, onp.stack([m, -m]), np.eye(2, dtype=np.float32), s, d), (1.5,)),
    "orthogonal": (FLOATS, (2, 2), lambda k, s, d: random.orthogonal(k, 2, s, d), ()),
    "permutation": (("float32",), (), lambda k, s, d, x: random.permutation(
        k, x * onp.arange(np.prod(s, dtype=int), dtype=d), independent=True).reshape(s), (1.5,)),
    "randint": (INTS, (), lambda k, s, d, b: random.randint(k, s, 3, onp.asarray(b, int), d),
                (90.0,)),
}


def plain(name):
    return lambda k, s, d, *params: getattr(random, name)(k, *params, shape=s, dtype=d)


FORMS = OTHERS | {name: (kinds, (), plain(name), params) for table, kinds in (
    (FLOAT, FLOATS), (INTEGER, INTS)) for name, params in table.items()}
QUICK = ("bits", "exponential", "normal", "power", "rayleigh", "uniform")    # to compile


def marked():
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
            for name in sorted(FORMS)]


@pytest.mark.parametrize("name", marked())
def test_mapped_and_compiled_samples_are_those_of_each_key(name):
    dtypes, inner, call, params = FORMS[name]
    keys = random.split(random.key(8), 3)
    first, rest = np.float32(params[:1]) * np.array([[1.0], [1.25], [1.0]], np.float32), params[1:]
    draw = olympus.jit(lambda key, first, *rest: call(
        key, (2, 3), dtypes[0], *([first[0]] if params else []), *rest))
    found = olympus.jit(olympus.vmap(draw, in_axes=(0, 0, *[None] * len(rest))))(keys, first, *rest)
    assert found.shape == (3, 2, 3, *inner) and found.dtype == dtypes[0]
    wanted = [draw(key, p, *rest) for key, p in zip(keys, first, strict=True)]
    np.testing.assert_allclose(found, wanted, rtol=3e-5, atol=1e-6)


@pytest.mark.parametrize("name", sorted(FORMS))
def test_samples_have_the_shape_and_dtype_asked_for(name):
    dtypes, inner, call, params = FORMS[name]
    for dtype in dtypes:
        with olympus.enable_x64("64" in dtype):
            for shape in ((), (0,), (4, 1, 2)):
                found = olympus.eval_shape(lambda key, s=shape, d=dtype: call(
                    key, s, d, *map(np.float32, params)), random.key(0))
                assert found.shape == (*shape, *inner) and found.dtype == dtype


def test_every_sampler_has_its_forms():
    others = {"Key", "PRNGKey", "clone", "fold_in", "key", "key_data", "key_dtype", "key_impl",
              "split", "wrap_key_data", "random_gamma_p"}
    assert set(random.__all__) - others == set(FORMS)
