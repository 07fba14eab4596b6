"""Activations, softmax and its kin, initializers: NumPy and SciPy are the oracles."""

import numpy as np
import pytest
import scipy.special as sp
import scipy.stats as stats

import olympus
from olympus import lax, nn, numpy as onp, random

X = np.concatenate([np.linspace(-8, 8, 17), [1e-3, 30.0, -30.0]]).reshape(4, 5)
MASK = np.arange(20).reshape(4, 5) % 3 != 0
SOFTPLUS = np.logaddexp(X, 0)

ACTIVATIONS = [
    ("celu", (2.0,), np.where(X > 0, X, 2 * np.expm1(X / 2))),
    ("elu", (0.7,), np.where(X > 0, X, 0.7 * np.expm1(X))),
    ("gelu", (False,), X * sp.ndtr(X)),
    ("gelu", (), X / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (X + 0.044715 * X**3)))),
    ("hard_sigmoid", (), np.clip(X + 3, 0, 6) / 6), ("hard_silu", (), X * np.clip(X + 3, 0, 6) / 6),
    ("hard_swish", (), X * np.clip(X + 3, 0, 6) / 6), ("hard_tanh", (), np.clip(X, -1, 1)),
    ("identity", (), X), ("leaky_relu", (0.3,), np.where(X >= 0, X, 0.3 * X)),
    ("log_sigmoid", (), sp.log_expit(X)), ("mish", (), X * np.tanh(SOFTPLUS)),
    ("relu", (), np.maximum(X, 0)), ("relu6", (), np.clip(X, 0, 6)),
    ("selu", (), 1.0507009873554805 * np.where(X > 0, X, 1.6732632423543772 * np.expm1(X))),
    ("sigmoid", (), sp.expit(X)), ("silu", (), X * sp.expit(X)), ("swish", (), X * sp.expit(X)),
    ("soft_sign", (), X / (1 + abs(X))), ("softplus", (), SOFTPLUS),
    ("sparse_plus", (), np.where(X <= -1, 0, np.where(X >= 1, X, (X + 1) ** 2 / 4))),
    ("sparse_sigmoid", (), np.clip((X + 1) / 2, 0, 1)),
    ("squareplus", (1,), (X + np.sqrt(X * X + 1)) / 2), ("tanh", (), np.tanh(X)),
]


@pytest.mark.parametrize("name, args, expected", ACTIVATIONS, ids=lambda a: str(a)[:12])
def test_activation(name, args, expected):
    fun = getattr(nn, name)
    x = X.astype(np.float32)
    out = fun(x, *args)
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=2e-6)
    np.testing.assert_allclose(olympus.jit(lambda x: fun(x, *args))(x), expected, rtol=1e-5,
                               atol=2e-6)
    np.testing.assert_allclose(olympus.vmap(lambda x: fun(x, *args))(x), expected, rtol=1e-5,
                               atol=2e-6)
    assert fun(x.astype("float16"), *args).dtype == np.float16
    with olympus.enable_x64(True):
        at, step = X + 0.1234, 1e-6
        slope = (np.asarray(fun(at + step, *args)) - np.asarray(fun(at - step, *args))) / step / 2
        grad = olympus.grad(lambda x: onp.sum(fun(x, *args)))(at)
        np.testing.assert_allclose(grad, slope, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("fun, at, slope", [
    (nn.relu, 0.0, 0.0), (nn.relu6, 0.0, 0.0), (nn.relu6, 6.0, 0.0), (nn.elu, 300.0, 1.0),
    (nn.elu, -300.0, 0.0), (nn.softplus, -200.0, 0.0), (nn.log_sigmoid, 200.0, 0.0)])
def test_slopes(fun, at, slope):
    assert float(olympus.grad(fun)(at)) == slope


def test_relu_under_transformations():
    x = np.array([-1.0, 0.0, 2.0], np.float32)
    slope = olympus.vmap(olympus.grad(nn.relu))(x)
    np.testing.assert_array_equal(slope, [0, 0, 1])
    np.testing.assert_array_equal(olympus.jit(olympus.vmap(olympus.grad(nn.relu)))(x), slope)
    text = str(olympus.jit(nn.relu).trace(x).olympuspr)
    assert "custom_jvp_call" in text


def test_glu():
    x = X[:, :4].astype(np.float32)
    np.testing.assert_allclose(nn.glu(x), x[:, :2] * sp.expit(x[:, 2:]), rtol=1e-5)
    np.testing.assert_allclose(nn.glu(x, 0), x[:2] * sp.expit(x[2:]), rtol=1e-5)
    with pytest.raises(ValueError, match="even"):
        nn.glu(X)


@pytest.mark.parametrize("where", [None, MASK], ids=["all", "some"])
@pytest.mark.parametrize("axis", [0, -1, None, (0, 1)])
def test_along_axes(axis, where):
    x, w = X.astype(np.float32), np.ones_like(MASK) if where is None else where
    inside = np.where(w, X, -np.inf)
    total = sp.logsumexp(inside, axis=axis, keepdims=True)
    np.testing.assert_allclose(nn.logsumexp(x, axis, keepdims=True, where=where), total, rtol=1e-5)
    np.testing.assert_allclose(nn.log_softmax(x, axis, where), inside - total, rtol=1e-5,
                               atol=2e-6)
    np.testing.assert_allclose(nn.softmax(x, axis, where), np.exp(inside - total), rtol=2e-5)
    count = w.sum(axis=axis, keepdims=True)
    np.testing.assert_allclose(nn.logmeanexp(x, axis, where, keepdims=True),
                               total - np.log(count), rtol=1e-5)
    mean = X.mean(axis, keepdims=True, where=w)
    var = X.var(axis, keepdims=True, where=w)
    for algorithm in ("fast", "stable"):
        out = nn.standardize(x, axis, where=where, algorithm=algorithm)
        np.testing.assert_allclose(out, (X - mean) / np.sqrt(var + 1e-5), rtol=1e-4, atol=1e-5)


def test_softmax_rule():
    def loss(x):
        return onp.sum(nn.softmax(x) * np.arange(5.0, dtype=np.float32))

    x = X.astype(np.float32)
    plain = olympus.grad(loss)(x)
    with olympus.softmax_custom_jvp(True):
        np.testing.assert_allclose(olympus.grad(loss)(x), plain, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(olympus.grad(olympus.jit(loss))(x), plain, rtol=1e-4, atol=1e-6)
    p = sp.softmax(X, -1)
    expected = p * (np.arange(5) - (p * np.arange(5)).sum(-1, keepdims=True))
    np.testing.assert_allclose(plain, expected, rtol=1e-4, atol=1e-6)


def test_logsumexp_weights():
    x, b = X.astype(np.float32), np.array([1, -2, 3, 0, 1], np.float32)
    for out, expected in zip(nn.logsumexp(x, 1, b, return_sign=True),
                             sp.logsumexp(X, 1, b, return_sign=True), strict=True):
        np.testing.assert_allclose(out, expected, rtol=1e-5)
    assert np.isnan(np.asarray(nn.logsumexp(np.zeros(2, np.float32), b=np.float32([1, -2]))))
    assert float(nn.logsumexp(np.array([np.inf, 1.0]))) == np.inf
    assert float(nn.logsumexp(np.full(2, -np.inf))) == -np.inf
    z = np.array([1 + 2j, 3 - 1j])
    np.testing.assert_allclose(nn.logsumexp(z), sp.logsumexp(z), rtol=1e-5)
    assert np.isnan(nn.logsumexp(np.full(2, -np.inf), b=np.float32([1, np.nan])))


def test_states_that_cannot_be_reached_make_no_gradient_nan():
    """Regression: logsumexp of all -inf had the slope NaN, which every earlier step then had."""
    steps = np.log(np.float32([[0.5, 0.5, 0], [0, 0.9, 0.1], [0, 0, 1]]) + 0.0, where=[
        [1, 1, 0], [0, 1, 1], [0, 0, 1]], out=np.full((3, 3), -np.inf, np.float32))

    def reached(start, logs, total):       # the logarithm of the chance to be in the last state
        return lax.fori_loop(0, 3, lambda _, a: total(a[:, None] + logs, 0), start)[2]

    start = np.float32([0, -np.inf, -np.inf])
    chances = lambda m: onp.log(onp.linalg.matrix_power(m, 3)[0, 2])
    want = olympus.grad(chances)(np.exp(steps)) * np.exp(steps)
    for total in (nn.logsumexp, lambda x, axis: nn.logsumexp(x, axis, b=onp.ones(3)[:, None]),
                  lambda x, axis: nn.logsumexp(x, axis, where=x > -1e30),
                  lambda x, axis: nn.logsumexp(x, axis, return_sign=True)[0]):
        got = olympus.grad(reached, 1)(start, steps, total)
        np.testing.assert_allclose(got, want, rtol=1e-5)
        np.testing.assert_allclose(olympus.jacfwd(reached, 1)(start, steps, total), want, rtol=1e-5)
    for hole in (np.nan, np.inf):
        x = np.float32([1, hole, 2])
        got = olympus.grad(lambda x: nn.logsumexp(x, where=x < 3))(x)
        np.testing.assert_allclose(got, [sp.expit(-1), 0, sp.expit(1)], rtol=1e-6)
    assert not olympus.hessian(nn.logsumexp)(np.full(2, -np.inf, np.float32)).any()


def test_log1mexp():
    x = np.array([1e-6, 0.1, 0.69, 0.7, 5.0, 40.0])
    with olympus.enable_x64(True):
        np.testing.assert_allclose(nn.log1mexp(x), np.log(-np.expm1(-x)), rtol=1e-12, atol=1e-16)


def test_one_hot():
    x = np.array([0, 2, -1, 5])
    np.testing.assert_array_equal(nn.one_hot(x, 3), (x[:, None] == np.arange(3)))
    out = nn.one_hot(x[None], 3, axis=0, dtype="int8")
    assert out.dtype == np.int8 and out.shape == (3, 1, 4)
    np.testing.assert_array_equal(out, (x[None, None] == np.arange(3)[:, None, None]))
    assert nn.one_hot(1, 3).shape == (3,)
    with pytest.warns(DeprecationWarning, match="one_hot input should be integer-typed"):
        np.testing.assert_array_equal(nn.one_hot(np.array([1.0]), 3), [[0, 1, 0]])
    with pytest.raises(TypeError, match="in olympus.nn.one_hot argument `num_classes`"):
        olympus.jit(nn.one_hot)(3, 5)


def test_scale_of_one_axis():
    init = nn.initializers.variance_scaling(1.0, "fan_in", "normal", in_axis=0, out_axis=0)
    assert init(olympus.random.key(0), (5,)).shape == (5,)
    with pytest.raises(ValueError, match="output sizes of a 1-dimensional weights tensor"):
        nn.initializers.he_normal()(olympus.random.key(0), (5,))


SCALED = [("glorot_normal", 1.0, "avg"), ("glorot_uniform", 1.0, "avg"), ("he_normal", 2.0, "in"),
          ("he_uniform", 2.0, "in"), ("lecun_normal", 1.0, "in"), ("lecun_uniform", 1.0, "in"),
          ("kaiming_normal", 2.0, "in"), ("kaiming_uniform", 2.0, "in"),
          ("xavier_normal", 1.0, "avg"), ("xavier_uniform", 1.0, "avg")]


def of_variance_one(law, key, shape, dtype):
    """Numbers of the key, uniform or normal and cut off at 2: complex ones in a disc."""
    if dtype == "float32":
        return (np.sqrt(3) * random.uniform(key, shape, minval=-1) if law == "uniform" else
                random.truncated_normal(key, -2, 2, shape) / stats.truncnorm(-2, 2).std())
    u, turn = (np.asarray(random.uniform(k, shape)) for k in random.split(key))
    cut = stats.truncexpon(4)       # the law of the squared radius
    square = 2 * u if law == "uniform" else cut.ppf(u) / cut.mean()
    return np.sqrt(square) * np.exp(2j * np.pi * turn)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("name, scale, fan", SCALED, ids=lambda a: str(a))
def test_scaled_initializers(name, scale, fan, dtype):
    """The variance of complex normal weights was 1.9 % too large."""
    key, shape = random.key(0), (3, 50, 80)
    w = getattr(nn.initializers, name)()(key, shape, dtype)
    variance = scale / {"in": 150, "avg": (150 + 240) / 2}[fan]
    assert w.dtype == dtype
    np.testing.assert_allclose(w, np.sqrt(variance) * of_variance_one(
        name.split("_")[1], key, shape, dtype), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose((abs(np.asarray(w)) ** 2).mean(), variance, rtol=0.03)


def test_plain_initializers():
    init, key = nn.initializers, random.key(0)
    assert (np.asarray(init.zeros(key, (2,))) == 0).all()
    assert init.ones(key, (2,), "int8").dtype == np.int8
    assert (np.asarray(init.constant(3)(key, (2, 2), "int32")) == 3).all()
    np.testing.assert_allclose(init.normal(0.5)(key, (9,)), 0.5 * random.normal(key, (9,)))
    np.testing.assert_allclose(init.uniform(2.0)(key, (9,)), 2 * random.uniform(key, (9,)))
    np.testing.assert_allclose(init.truncated_normal(2.0, lower=-1.0, upper=0.5)(key, (9,)),
                               2 * random.truncated_normal(key, -1.0, 0.5, (9,)))
    shape = (2, 3, 4, 5, 7)     # with a receptive field of 7
    geo = init.variance_scaling(1.0, "fan_geo_avg", "normal", (0, 1), 2, 3)
    np.testing.assert_allclose(geo(key, shape), random.normal(key, shape) / 7 ** 0.5 / 24 ** 0.25,
                               rtol=1e-6)


@pytest.mark.parametrize("call", [
    lambda i: i.variance_scaling(1.0, "no", "normal"),
    lambda i: i.variance_scaling(1.0, "fan_in", "no"),
    lambda i: i.he_normal()(random.key(0), (3,)),
    lambda i: i.variance_scaling(1.0, "fan_in", "normal", 5)(random.key(0), (3, 4))])
def test_initializer_errors(call):
    with pytest.raises(ValueError, match="variance_scaling"):
        call(nn.initializers)
    with pytest.raises(ValueError, match="standardize"):
        nn.standardize(X, algorithm="no")


@pytest.mark.parametrize("shape, axis", [((6, 3), -1), ((3, 6), -1), ((2, 3, 5), 0), ((4, 4), 0)])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_orthogonal_weights_have_orthonormal_rows_or_columns(shape, axis, dtype):
    w = nn.initializers.orthogonal(2.0, axis, dtype)(random.key(0), shape)
    assert w.shape == shape and w.dtype == dtype
    flat = np.moveaxis(np.asarray(w), axis, -1).reshape(-1, shape[axis])
    short = flat if flat.shape[0] >= flat.shape[1] else flat.T
    np.testing.assert_allclose(short.conj().T @ short, 4 * np.eye(short.shape[1]), atol=1e-5)


@pytest.mark.parametrize("shape", [(3, 2, 4), (4, 3, 3, 3), (1, 2, 3, 2, 3)], ids=len)
def test_delta_orthogonal_kernels_are_orthogonal_in_the_middle_alone(shape):
    w = np.asarray(nn.initializers.delta_orthogonal()(random.key(1), shape))
    middle = w[tuple((n - 1) // 2 for n in shape[:-2])]
    np.testing.assert_allclose(middle @ middle.T, np.eye(shape[-2]), atol=1e-5)
    np.testing.assert_allclose((w**2).sum(), shape[-2], rtol=1e-5)


@pytest.mark.parametrize("name, shape", [
    ("orthogonal", (3,)), ("delta_orthogonal", (3, 3)), ("delta_orthogonal", (3, 3, 4, 2))])
def test_orthogonal_weights_refuse_shapes_in_words(name, shape):
    with pytest.raises(ValueError, match=f"{name}: shape"):
        getattr(nn.initializers, name)()(random.key(0), shape)
