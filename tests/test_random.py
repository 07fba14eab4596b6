"""Random numbers: bit for bit those of the frozen rows, laws of keys, moments of distributions."""

import copy
import inspect
import itertools
import pickle
import warnings

import numpy as np
import pytest
import random_frozen
import scipy.stats

import olympus
from olympus import random, vmap
from olympus._src.random import ciphers, keys

NAMES = {name: getattr(random, name) for name in random.__all__ if name != "key"}


def evaluate(expression, seed, x64, make):
    with olympus.enable_x64(x64):
        names = {**NAMES, "np": np}
        if "key(key" in expression or make is None:
            names["key"] = random.key
        if make is not None:
            names["key"] = make(seed)
        return np.asarray(eval(expression, names))


def frozen_value(dtype, shape, values):
    dtype = np.dtype(getattr(olympus._src.types.dtypes, dtype, dtype))
    return np.array(values, dtype=dtype).reshape(shape)


def check(row, make):
    expression, seed, x64, dtype, shape, values = row
    found = evaluate(expression, seed, x64, make)
    assert found.dtype.name == dtype and found.shape == shape
    expected = frozen_value(dtype, shape, values)
    if expression.startswith(("orthogonal", "multivariate_normal")):
        # LAPACK's kernels depend on the processor, and so do the last places.
        np.testing.assert_allclose(found, expected, rtol=0, atol=8 * np.finfo(dtype).eps)
    elif expression == "wald(key, 1.3, (), 'float64')":
        # XLA multiplies other factors of a scalar's square first in JAX; fences keep their order.
        np.testing.assert_allclose(found, expected, rtol=4 * np.finfo(dtype).eps)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("row", random_frozen.FROZEN, ids=lambda r: f"{r[0]}-{r[1]}")
def test_frozen(row):
    check(row, random.key)


@pytest.mark.parametrize("row", [
    pytest.param(row, marks=() if row[4] == (5,) and row[1] else pytest.mark.slow)
    for row in random_frozen.OTHERS], ids=lambda r: f"{r[0]}-{r[1]}")
def test_frozen_of_other_samplers(row):
    check(row, random.key)


@pytest.mark.parametrize("row", random_frozen.FROZEN[::7], ids=lambda r: f"{r[0]}-{r[1]}")
def test_frozen_raw_keys(row):
    check(row, random.PRNGKey)


@pytest.mark.parametrize("row", random_frozen.SEEDED, ids=lambda r: r[0])
def test_seeded(row):
    check(row, None)


@pytest.mark.parametrize("key, counter, out", random_frozen.KNOWN_ANSWERS)
def test_known_answers(key, counter, out):
    found = ciphers.threefry2x32_p.bind(*(np.array([w], np.uint32) for w in (*key, *counter)))
    assert tuple(int(np.asarray(w)[0]) for w in found) == out


@pytest.mark.parametrize("seed, x64, words", [
    (2**40 + 5, False, (0, 5)), (2**40 + 5, True, (256, 5)), (-1, True, (2**32 - 1, 2**32 - 1)),
    (-2**40 + 5, True, (2**32 - 256, 5)), (np.int8(-1), False, (0, 2**32 - 1)),
    (np.uint64(2**63 + 5), True, (2**31, 5)), (np.int32(-1), True, (0, 2**32 - 1)),
    (np.int64(2**40 + 5), False, (0, 5)), (True, False, (0, 1))])
def test_seeds(seed, x64, words):
    with olympus.enable_x64(x64):
        assert tuple(np.asarray(random.PRNGKey(seed)).tolist()) == words
        assert tuple(np.asarray(random.key_data(random.key(seed))).tolist()) == words


# With threefry_partitionable off; from JAX 0.10.2.
OLDER = [
    ('random.key_data(random.split(random.key(7), 3))',
     [[276534068, 861967409], [1905761346, 1641862660], [2900896126, 1402713516]]),
    ('random.bits(random.key(7), (3,))', [966301609, 1830345032, 1948237315]),
    ("random.bits(random.key(7), (5,), 'uint8')", [191, 40, 160, 11, 191]),
    ("random.bits(random.key(7), (3,), 'uint16')", [10431, 2976, 22207]),
]


@pytest.mark.parametrize("expression, values", OLDER)
def test_older_streams(expression, values):
    with olympus.threefry_partitionable(False):
        np.testing.assert_array_equal(eval(expression), values)


def test_the_older_scheme_within_a_compiled_function():
    def both(key):
        with olympus.threefry_partitionable(False):
            older = random.bits(key, (3,)), random.key_data(random.split(key, 3))
        return older, random.bits(key, (3,))

    key = random.key(7)
    (bits, words), newer = both(key)
    np.testing.assert_array_equal(bits, OLDER[1][1])
    np.testing.assert_array_equal(words, OLDER[0][1])
    for fun, given in ((olympus.jit(both), key), (olympus.jit(olympus.vmap(both)), key[None])):
        (got, halves), new = olympus.tree.map(np.ravel, fun(given))
        np.testing.assert_array_equal(got, bits)
        np.testing.assert_array_equal(halves, np.ravel(words))
        np.testing.assert_array_equal(new, newer)


def data(keys):
    return np.asarray(random.key_data(keys))


def test_key_arrays():
    key = random.key(0)
    many = random.split(key, (2, 3))
    words = data(many)
    assert key.shape == () and many.shape == (2, 3) and many.ndim == 2 and many.size == 6
    assert str(key.dtype) == "key<fry>" and key.dtype == random.key_dtype()
    assert olympus.dtypes.issubdtype(key.dtype, olympus.dtypes.prng_key)
    assert isinstance(key, olympus.Array) and key.itemsize == 8 and many.nbytes == 48
    assert repr(random.key(3)) == "Array((), dtype=key<fry>) overlaying:\n[0 3]"
    np.testing.assert_array_equal(data(many[1]), words[1])
    np.testing.assert_array_equal(data(many[1, ::2]), words[1, ::2])
    np.testing.assert_array_equal(data(many[np.array([1, 0])]), words[[1, 0]])
    np.testing.assert_array_equal(data(many.T), words.transpose(1, 0, 2))
    np.testing.assert_array_equal(data(many.reshape(3, -1)), words.reshape(3, 2, 2))
    np.testing.assert_array_equal(data(many.ravel()), words.reshape(6, 2))
    np.testing.assert_array_equal([data(k) for k in many[0]], words[0])
    np.testing.assert_array_equal(data(many[:1].squeeze(0)), words[0])
    np.testing.assert_array_equal(data(many.swapaxes(0, 1)), words.swapaxes(0, 1))
    assert len(many) == 2 and many.block_until_ready() is many
    assert np.asarray(many == many).all() and not np.asarray(many != many).any()
    assert np.asarray(many == many[0, 0]).sum() == 1
    for other in (pickle.loads(pickle.dumps(many)), copy.copy(many), many.copy()):
        np.testing.assert_array_equal(data(other), words)


def test_pickled_keys_are_read_without_a_program():
    """Regression: a child forked from a process that had computed ended where it read one."""
    keys = random.split(random.key(3))
    dumped = pickle.dumps(keys)
    with olympus.no_execution(True):
        back = pickle.loads(dumped)
    assert back.dtype == keys.dtype and (back == keys).all()


def test_keys_are_set_and_read_at_indices():
    keys, other = random.split(random.key(0), 4), random.key(9)
    expected = data(keys).copy()
    expected[2] = data(other)
    for put in (lambda k, x: k.at[2].set(x), olympus.jit(lambda k, x: k.at[2].set(x))):
        assert np.array_equal(data(put(keys, other)), expected)
    assert np.array_equal(data(keys.at[np.array([3, 0])].get()), data(keys)[[3, 0]])


def test_keys_through_transformations():
    key = random.key(1)
    many = random.split(key, 4)
    assert olympus.jit(lambda k: k)(key).dtype == key.dtype
    calls = []
    draw = olympus.jit(lambda k: calls.append(0) or random.normal(k, (2,)))
    for k in many:
        np.testing.assert_array_equal(draw(k), random.normal(k, (2,)))
    assert len(calls) == 1
    mapped = olympus.vmap(lambda k: random.normal(k, (2,)))(many)
    np.testing.assert_array_equal(mapped, np.stack([random.normal(k, (2,)) for k in many]))
    split = olympus.vmap(lambda k: random.split(k, 3), out_axes=1)(many)
    np.testing.assert_array_equal(data(split)[:, 2], data(random.split(many[2], 3)))
    folded = olympus.vmap(random.fold_in, in_axes=(None, 0))(key, np.arange(3, dtype=np.uint32))
    np.testing.assert_array_equal(data(folded)[2], data(random.fold_in(key, 2)))
    closed = olympus.jit(lambda i: random.key_data(olympus.lax.dynamic_index_in_dim(
        many, i, 0, False)))
    np.testing.assert_array_equal(closed(2), data(many)[2])
    grad = olympus.grad(lambda s: random.normal(key) * s)(2.0)
    np.testing.assert_allclose(grad, random.normal(key))
    low = olympus.grad(lambda a: random.uniform(key, (), minval=a, maxval=2.0))(1.0)
    np.testing.assert_allclose(low, 1 - random.uniform(key), rtol=1e-5)


def test_keys_in_loops():
    from olympus.lax import cond, scan
    key = random.key(2)

    def step(k, x):
        k, sub = random.split(k)
        return k, random.uniform(sub)

    def pair(k):
        new = random.split(k)
        return [olympus.lax.index_in_dim(new, i, 0, False) for i in (0, 1)]

    def traced(k, x):
        k, sub = pair(k)
        return k, random.uniform(sub)

    last, out = scan(traced, key, None, length=3)
    expected = []
    for _ in range(3):
        key, x = step(key, None)
        expected.append(float(x))
    np.testing.assert_array_equal(out, np.array(expected, np.float32))
    np.testing.assert_array_equal(data(last), data(key))
    out = scan(lambda c, k: (c, random.bits(k)), 0, random.split(key, 3))[1]
    np.testing.assert_array_equal(out, [random.bits(k) for k in random.split(key, 3)])
    chosen = olympus.jit(lambda p, a, b: cond(p, lambda a, b: a, lambda a, b: b, a, b))(
        True, key, random.key(9))
    np.testing.assert_array_equal(data(chosen), data(key))


def test_printing():
    program = olympus.jit(lambda k: random.bits(random.fold_in(k, 2), (2,))).trace(
        random.key(0)).olympuspr
    text = str(program)
    for part in ("key<fry>[]", "random_fold_in", "random_bits[bit_width=32 shape=(2,)]"):
        assert part in text, text
    text = str(olympus.jit(lambda s: random.key_data(random.key(s))).trace(1).olympuspr)
    assert "random_seed[impl=fry]" in text and "random_unwrap" in text, text


N = 20000
S = scipy.stats
CONTINUOUS = [
    ("uniform", (), {"minval": -2.0, "maxval": 3.0}, S.uniform(-2, 5)),
    ("normal", (), {}, S.norm()), ("truncated_normal", (-1.0, 2.0), {}, S.truncnorm(-1, 2)),
    ("exponential", (), {}, S.expon()), ("gumbel", (), {}, S.gumbel_r()),
    ("gumbel", (), {"mode": "high"}, S.gumbel_r()),
    ("gumbel", (), {"mode": "highest"}, S.gumbel_r()), ("laplace", (), {}, S.laplace()),
    ("logistic", (), {}, S.logistic()), ("cauchy", (), {}, S.cauchy()),
    ("maxwell", (), {}, S.maxwell()), ("pareto", (2.5,), {}, S.pareto(2.5)),
    ("rayleigh", (1.5,), {}, S.rayleigh(scale=1.5)),
    ("lognormal", (0.7,), {}, S.lognorm(0.7)), ("wald", (1.3,), {}, S.invgauss(1.3)),
    ("triangular", (-1.0, 0.5, 2.0), {}, S.triang(0.5, -1, 3)),
    ("weibull_min", (2.0, 1.5), {}, S.weibull_min(1.5, scale=2)),
    ("double_sided_maxwell", (1.0, 2.0), {}, S.dweibull(1)),
]


@pytest.mark.parametrize("name, params, kwargs, law", CONTINUOUS, ids=lambda x: str(x)[:20])
def test_continuous(name, params, kwargs, law):
    fun = getattr(random, name)
    x = np.asarray(fun(random.key(5), *params, shape=(N,), **kwargs))
    assert x.shape == (N,) and x.dtype == np.float32
    if name == "double_sided_maxwell":
        x, law = np.abs(x - 1) / 2, S.maxwell()
    assert S.kstest(x, law.cdf).pvalue > 0.003
    jitted = olympus.jit(lambda k: fun(k, *params, shape=(N,), **kwargs))(random.key(5))
    np.testing.assert_allclose(jitted, np.asarray(fun(random.key(5), *params, shape=(N,),
                                                      **kwargs)), rtol=1e-4)
    half = fun(random.key(5), *params, shape=(3,), dtype="float16", **kwargs)
    assert half.dtype == np.float16 and half.shape == (3,)


def test_discrete_laws():
    key = random.key(6)
    rate = np.asarray(random.bernoulli(key, 0.3, (N,))).mean()
    assert abs(rate - 0.3) < 0.015
    rate = np.asarray(random.bernoulli(key, np.float32(0.3), (N,), mode="high")).mean()
    assert abs(rate - 0.3) < 0.015
    signs = np.asarray(random.rademacher(key, (N,)))
    assert set(signs) == {-1, 1} and abs(signs.mean()) < 0.03
    counts = np.bincount(np.asarray(random.randint(key, (N,), 0, 7)), minlength=7)
    assert S.chisquare(counts).pvalue > 0.003
    for replace in (True, False):
        p = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
        drawn = olympus.vmap(lambda k: random.choice(k, 4, (2,), replace, p))(
            random.split(key, 4000))
        first = np.bincount(np.asarray(drawn)[:, 0], minlength=4)
        assert S.chisquare(first, 4000 * p / p.sum()).pvalue > 0.003
    geometric = np.asarray(random.geometric(key, 0.25, (N,)))
    assert geometric.min() == 1 and abs(geometric.mean() - 4) < 0.1


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_randint_ranges(dtype):
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    key = random.key(3)
    for a, b in ((low, high + 1), (low, low + 2), (high, high + 1), (5, 2), (5, 100)):
        x = np.asarray(random.randint(key, (300,), a, b, dtype)).astype(object)
        assert x.min() >= a and (x.max() < max(b, a + 1))
    if dtype in ("int8", "uint8"):
        x = np.asarray(random.randint(key, (9000,), low, high + 1, dtype))
        assert len(set(x.tolist())) == 256
        wide = np.asarray(random.randint(key, (9000,), np.array(low), np.array(high + 1), dtype))
        np.testing.assert_array_equal(x, wide)


def test_orders():
    key = random.key(4)
    x = np.arange(24).reshape(4, 6)
    for axis in (0, 1, -1):
        y = np.asarray(random.permutation(key, x, axis))
        np.testing.assert_array_equal(np.sort(y, axis), np.sort(x, axis))
        z = np.asarray(random.permutation(key, x, axis, independent=True))
        np.testing.assert_array_equal(np.sort(z, axis), np.sort(x, axis))
    assert sorted(np.asarray(random.permutation(key, 50)).tolist()) == list(range(50))
    y = np.asarray(random.choice(key, x, (2, 2), axis=1))
    assert y.shape == (4, 2, 2) and np.isin(y, x).all()
    y = np.asarray(random.choice(key, x, (3,), replace=False))
    assert y.shape == (3, 6) and len(set(y[:, 0].tolist())) == 3
    assert random.choice(key, 0, (0,)).shape == (0,)
    y = np.asarray(random.categorical(key, np.zeros((3, 5)), shape=(4, 3), replace=False))
    assert all(len(set(column)) == 4 for column in y.T.tolist())


def test_shuffles_sort_by_random_words_as_often_as_jax_does():
    """⌈3 ln n / ln(2³² - 1)⌉ times, so that equal words do not matter: once up to 1625 elements."""
    key, x = random.key(0), np.arange(1626)
    found = random.permutation(key, 1626)
    for _ in range(2):
        key, sub = random.split(key)
        x = x[np.argsort(random.bits(sub, (1626,)), stable=True)]
    np.testing.assert_array_equal(found, x)


def test_columns_are_chosen_once():
    x = np.arange(12).reshape(3, 4)
    some = np.asarray(random.choice(random.key(0), x, (3,), replace=False, axis=1))
    assert len(set(some[0])) == 3 and (some - some[0] == [[0], [4], [8]]).all()


def test_integers_from_the_last_one_on_do_not_wrap():
    last = np.full(20, 127)
    drawn = random.randint(random.key(0), (20,), last, 1000 + last, "int8")
    np.testing.assert_array_equal(drawn, last)


# Arguments of samplers that take others than numbers, or have several ways.
ARGUMENTS = {
    "permutation": [(5,), (np.ones(3),), (np.ones((2, 3)),)], "randint": [((2,), 0, 3)],
    "categorical": [(np.zeros(3),), (np.zeros(3), -1, (2,), False)], "dirichlet": [(np.ones(3),)],
    "multivariate_normal": [(np.zeros(2), np.eye(2))], "orthogonal": [(2,)], "ball": [(2,)],
    "choice": [(3,), (np.ones(3), (2,), False), (3, (2,), True, np.ones(3)), (3, (0,))],
    "multinomial": [(3, np.ones(2))], "multivariate_hypergeometric": [(np.ones(2), 1)],
}
OF_KEYS = {"PRNGKey", "clone", "fold_in", "key", "key_data", "key_dtype", "key_impl", "split",
           "wrap_key_data"}


def test_every_sampler_obeys_out_sharding():
    for name in random.__all__:
        sampler = getattr(random, name)
        if not inspect.isfunction(sampler) or name in OF_KEYS:
            continue
        _, *given = inspect.signature(sampler).parameters.values()
        needed = [(2,) if p.name == "shape" else 0.5 for p in given if p.default is p.empty]
        for args in ARGUMENTS.get(name, [needed]):
            with pytest.raises(TypeError, match="1 of type int"):
                olympus.eval_shape(lambda k, sampler=sampler, args=args: sampler(
                    k, *args, out_sharding=1), random.key(0))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_uniform_bounds(dtype):
    x = np.asarray(random.uniform(random.key(0), (4000,), dtype)).astype(np.float64)
    assert x.min() >= 0 and x.max() < 1
    low = np.array([0.0, 10.0])[:, None]
    x = np.asarray(random.uniform(random.key(0), (2, 50), minval=low, maxval=low + 1))
    assert (x >= low).all() and (x < low + 1).all()


def test_complex_normal():
    z = np.asarray(random.normal(random.key(0), (N,), "complex64"))
    assert z.dtype == np.complex64 and abs((abs(z) ** 2).mean() - 1) < 0.03


ERRORS = [
    (lambda k: random.key(1.5), TypeError, "integer"),
    (lambda k: random.key([1, 2]), TypeError, "scalar"),
    (lambda k: random.key(np.arange(3)), TypeError, "scalar"),
    (lambda k: random.key(k), TypeError, "key"),
    (lambda k: random.key(2**64), OverflowError, "64 bits"),
    (lambda k: random.key(0, impl="no"), ValueError, "threefry2x32"),
    (lambda k: random.split(random.split(k)), ValueError, "single key"),
    (lambda k: random.uniform(random.split(k)), ValueError, "single key"),
    (lambda k: random.fold_in(k, -1), OverflowError, "uint32|2\\*\\*32"),
    (lambda k: random.fold_in(k, np.arange(2)), TypeError, "scalar"),
    (lambda k: random.uniform(0), TypeError, "random key"),
    (lambda k: random.uniform(np.zeros(2, np.float32)), TypeError, "random key"),
    (lambda k: random.uniform(np.zeros(3, np.uint32)), TypeError, "random key"),
    (lambda k: random.uniform(k, dtype=int), ValueError, "float"),
    (lambda k: random.uniform(k, (2,), minval=np.zeros(3)), ValueError, "broadcast"),
    (lambda k: random.bits(k, dtype="int32"), ValueError, "unsigned"),
    (lambda k: random.randint(k, (), 0, 5, "float32"), TypeError, "integer"),
    (lambda k: random.randint(k, (2,), np.arange(3), 5), ValueError, "broadcast"),
    (lambda k: random.bernoulli(k, 1), TypeError, "float"),
    (lambda k: random.bernoulli(k, 0.5, mode="x"), ValueError, "'low' or 'high'"),
    (lambda k: random.gumbel(k, mode="x"), ValueError, "'highest'"),
    (lambda k: random.choice(k, 5, 2), TypeError, "sequence"),
    (lambda k: random.categorical(k, np.zeros(3), shape=(4,), replace=False), ValueError,
     "Number of samples without replacement"),
    (lambda k: random.key(0, impl=3), TypeError, "unrecognized type"),
    (lambda k: random.normal(k, dtype=int), ValueError, "dtype argument to"),
    (lambda k: k + 47, TypeError, "add does not accept dtypes key<fry>, int32"),
    (lambda k: olympus.grad(lambda k: 1.0)(k), TypeError, "real"),
    (lambda k: random.choice(k, 0), ValueError, "at least one"),
    (lambda k: random.choice(k, 5, (6,), replace=False), ValueError, "without replacement"),
    (lambda k: random.choice(k, 5, p=np.zeros(3)), ValueError, "weights"),
    (lambda k: random.permutation(k, 1.5), TypeError, "integer"),
    (lambda k: random.categorical(k, np.zeros((2, 3)), shape=(3,)), ValueError, "last axes"),
    (lambda k: random.wrap_key_data(np.zeros((3, 2), np.int32)), TypeError, "uint32"),
    (lambda k: np.asarray(k), TypeError, "key_data"),
    (lambda k: bool(k), TypeError, "truth"),
    (lambda k: hash(k), TypeError, "unhashable"),
    (lambda k: random.normal(k, out_sharding=1), TypeError, "normal: 1 of type int"),
]


@pytest.mark.parametrize("case", range(len(ERRORS)))
def test_errors(case):
    call, kind, text = ERRORS[case]
    with pytest.raises(kind, match=text):
        call(random.key(0))


def test_every_element_has_its_own_counter():
    key = random.key(0)
    whole = np.asarray(random.bits(key, (3, 4)))
    np.testing.assert_array_equal(whole.ravel(), random.bits(key, (12,)))
    assert len(set(itertools.chain(whole.ravel().tolist()))) == 12
    assert keys.random_bits_p.bind(random.split(key, 2), bit_width=16, shape=(5,)).shape == (2, 5)


RAW_CALLS = {
    "uniform": lambda key: random.uniform(key), "split": lambda key: random.split(key),
    "fold_in": lambda key: random.fold_in(key, 1), "permutation": lambda key: random.permutation(
        key, 5), "gamma": lambda key: random.gamma(key, 2.0), "key_data": random.key_data,
    "in jit": lambda key: olympus.jit(random.bits)(key),
}


@pytest.mark.parametrize("name", RAW_CALLS)
def test_raw_keys_are_told_of_or_refused_where_the_option_says_so(name):
    call, raw, typed = RAW_CALLS[name], random.PRNGKey(3), random.key(3)
    call(raw)       # compiled before
    with olympus.legacy_prng_key("error"):
        with pytest.raises(ValueError, match=r"raw key words uint32\[2\].*random.key\(seed\)"):
            call(raw)
        call(typed)
    with olympus.legacy_prng_key("warn"):
        with pytest.warns(UserWarning, match="legacy_prng_key is 'warn'"):
            call(raw)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            call(typed)


def test_prngkey_makes_typed_keys_where_the_option_says_so():
    with olympus.enable_custom_prng():
        made = random.PRNGKey(7)
    assert made.dtype == random.key(7).dtype and made.shape == ()
    assert (random.key_data(made) == random.PRNGKey(7)).all()


def test_a_sampler_binds_arguments_as_its_signature_says():
    key = random.key(0)
    by_name = random.weibull_min(concentration=2.0, scale=3.0, key=key, dtype="float16", shape=(3,))
    np.testing.assert_array_equal(by_name, random.weibull_min(key, 3.0, 2.0, (3,), "float16"))
    for wrong, message in [(lambda: random.pareto(key), "pareto.. missing 1 required"),
                           (lambda: random.zipf(key, 3.0, rate=1), "zipf.. got an unexpected"),
                           (lambda: random.t(key, 3.0, df=1), "t.. got multiple values"),
                           (lambda: random.cauchy(key, (), "float32", 1), "cauchy.. takes from")]:
        with pytest.raises(TypeError, match=message):
            wrong()


def test_choice_draws_nothing_of_probability_0():
    """XLA's running sum in float32 falls, and moves where 0 is added: each key drew one."""
    rng = np.random.default_rng(0)
    w = rng.random(100_000).astype(np.float32)
    w[rng.random(w.size) < 0.5] = 0
    for seed in (4, 5, 6):
        drawn = random.choice(random.key(seed), w.size, (20_000,), p=w)
        assert np.all(w[drawn] > 0)
    drawn = vmap(lambda k: random.choice(k, 5, (50,), p=np.float32([0, 1, 0, 1, 0])))(
        random.split(random.key(0), 3))
    assert {*np.ravel(drawn).tolist()} == {1, 3}
