"""example_libraries: optimisers against their published recurrences, layers against NumPy."""

import numpy as np
import pytest

import olympus
from olympus import lax, nn, numpy as onp, random
from olympus.example_libraries import optimizers, stax

KEY = random.key(0)
MASS, B1, B2, GAMMA = 0.9, 0.9, 0.999, 0.9


def momentum(g, s, i):
    s["v"] = MASS * s.get("v", 0) + g
    return 0.1 * s["v"]


def nesterov(g, s, i):
    momentum(g, s, i)
    return 0.1 * (MASS * s["v"] + g)


def adagrad(g, s, i):
    s["n"] = s.get("n", 0) + g**2
    s["m"] = 0.1 * g / np.sqrt(s["n"]) + 0.9 * s.get("m", 0)
    return 0.1 * s["m"]


def rmsprop(g, s, i):
    s["n"] = GAMMA * s.get("n", 0) + (1 - GAMMA) * g**2
    return 0.1 * g / np.sqrt(s["n"] + 1e-8)


def rmsprop_momentum(g, s, i):
    s["p"] = 0.9 * s.get("p", 0) + rmsprop(g, s, i)
    return s["p"]


def adam(g, s, i):
    s["m"] = B1 * s.get("m", 0) + (1 - B1) * g
    s["v"] = B2 * s.get("v", 0) + (1 - B2) * g**2
    return 0.1 * s["m"] / (1 - B1 ** (i + 1)) / (np.sqrt(s["v"] / (1 - B2 ** (i + 1))) + 1e-8)


def adamax(g, s, i):
    s["m"] = B1 * s.get("m", 0) + (1 - B1) * g
    s["u"] = np.maximum(B2 * s.get("u", 0), abs(g))
    return 0.1 / (1 - B1 ** (i + 1)) * s["m"] / (s["u"] + 1e-8)


def sm3(g, s, i):
    rows, columns = s.get("rows", np.zeros((2, 1))), s.get("columns", np.zeros((1, 2)))
    squares = np.minimum(rows, columns) + g**2
    s["rows"], s["columns"] = squares.max(1, keepdims=True), squares.max(0, keepdims=True)
    s["m"] = 0.1 * g / np.sqrt(squares) + 0.9 * s.get("m", 0)
    return 0.1 * s["m"]


STEPS = {"sgd": lambda g, s, i: 0.1 * g, "momentum": momentum, "nesterov": nesterov,
         "adagrad": adagrad, "rmsprop": rmsprop, "rmsprop_momentum": rmsprop_momentum,
         "adam": adam, "adamax": adamax, "sm3": sm3}


def made(name, step=0.1):
    return getattr(optimizers, name)(*((step, MASS) if name in ("momentum", "nesterov")
                                       else (step,)))


@pytest.mark.parametrize("name", STEPS)
def test_three_compiled_steps_are_the_recurrence(name):
    init, update, params = made(name, optimizers.constant(0.1))
    x, own = np.array([[1.0, 2.0], [3.0, -1.0]]), {}
    state, update = init({"w": onp.asarray(x)}), olympus.jit(update)
    for i in range(3):
        g = 2 * x - 1
        state = update(i, {"w": onp.asarray(g)}, state)
        x = x - STEPS[name](g, own, i)
    np.testing.assert_allclose(params(state)["w"], x, rtol=1e-5)
    again = optimizers.pack_optimizer_state(optimizers.unpack_optimizer_state(state))
    assert olympus.tree.structure(again) == olympus.tree.structure(state)
    np.testing.assert_array_equal(params(again)["w"], params(state)["w"])


@pytest.mark.parametrize("name", STEPS)
def test_optimizers_take_numbers_and_find_a_minimum(name):
    init, update, params = made(name, 0.05)

    def step(state, i):
        return update(i, olympus.grad(lambda p: (p[0] - 2) ** 2)(params(state)), state), None

    state, _ = lax.scan(step, init([1.0]), onp.arange(400))
    assert abs(params(state)[0] - 2) < 0.1


def test_schedules():
    def at(schedule):
        return [float(schedule(i)) for i in (0, 3, 4, 9, 25)]

    decay, steps = optimizers, np.array([0, 3, 4, 9, 25])
    np.testing.assert_allclose(at(decay.exponential_decay(2.0, 10, 0.5)), 2 * 0.5 ** (steps / 10))
    np.testing.assert_allclose(at(decay.inverse_time_decay(2.0, 10, 3.0)), 2 / (1 + 0.3 * steps))
    np.testing.assert_allclose(at(decay.inverse_time_decay(2.0, 10, 3.0, True)),
                               2 / (1 + 3.0 * (steps // 10)))
    np.testing.assert_allclose(at(decay.polynomial_decay(2.0, 10, 0.5, 2.0)),
                               0.5 + 1.5 * (1 - np.minimum(steps, 10) / 10) ** 2, rtol=1e-6)
    assert at(decay.piecewise_constant([3, 6], [1.0, 0.5, 0.25])) == [1, 1, 0.5, 0.25, 0.25]
    with pytest.raises(ValueError, match="one value more"):
        decay.piecewise_constant([1, 2], [1.0, 0.5])
    with pytest.raises(TypeError, match="make_schedule"):
        decay.sgd(onp.ones(2))


def test_gradients_are_clipped_to_a_norm_and_trees_must_fit():
    grads = {"a": onp.array([3.0]), "b": onp.array([[4.0]])}
    assert float(optimizers.l2_norm(grads)) == 5
    clipped = optimizers.clip_grads(grads, 1.0)
    np.testing.assert_allclose([clipped["a"][0], clipped["b"][0, 0]], [0.6, 0.8], rtol=1e-6)
    assert optimizers.clip_grads(grads, 9.0)["a"][0] == 3
    init, update, _ = optimizers.adam(0.1)
    with pytest.raises(TypeError, match="update_fn: gradients of structure"):
        update(0, {"c": 1.0}, init(grads))
    with pytest.raises(TypeError, match="JoinPoint"):
        optimizers.pack_optimizer_state({"a": 1.0})


# Layers ------------------------------------------------------------------------------------------

X = np.random.default_rng(0).normal(size=(2, 7, 6, 3)).astype("f4")


def blocks(x, combine):
    """Windows of 2 by 3 at steps of 2 by 3, the last row of them half outside."""
    return np.stack([[combine(x[:, i:i + 2, j:j + 3], (1, 2)) for j in (0, 3)]
                     for i in (0, 2, 4, 6)]).transpose(2, 0, 1, 3)


@pytest.mark.parametrize("layer, oracle", [
    (stax.MaxPool, np.max), (stax.SumPool, np.sum), (stax.AvgPool, np.mean)],
    ids=["max", "sum", "mean"])
def test_pools_are_reductions_of_blocks(layer, oracle):
    # SAME pads the missing row at the end.
    init, apply = layer((2, 3), (2, 3), "SAME")
    shape, params = init(KEY, (-1, 7, 6, 3))
    assert shape == (-1, 4, 2, 3) and params == ()
    np.testing.assert_allclose(apply(params, X), blocks(X, oracle), rtol=1e-5, atol=1e-6)
    turned = layer((2, 3), (2, 3), "SAME", "NCHW")[1]((), X.transpose(0, 3, 1, 2))
    np.testing.assert_allclose(turned.transpose(0, 2, 3, 1), blocks(X, oracle), rtol=1e-5,
                               atol=1e-6)


@pytest.mark.parametrize("layer, shape", [
    (stax.Dense(4), (2, 7, 6, 4)), (stax.Conv(4, (2, 3)), (2, 6, 4, 4)),
    (stax.GeneralConv(("NCHW", "OIHW", "NCHW"), 4, (3, 1), (2, 2), "SAME"), (2, 4, 3, 2)),
    (stax.ConvTranspose(4, (2, 2), (2, 2)), (2, 14, 12, 4)), (stax.BatchNorm(), X.shape),
    (stax.BatchNorm((0, 1), center=False), X.shape), (stax.Flatten, (2, 126)),
    (stax.LogSoftmax, X.shape), (stax.Dropout(0.5, "test"), X.shape)],
    ids=["dense", "conv", "general", "transpose", "norm", "norms", "flatten", "softmax", "dropout"])
def test_layers_know_the_shape_of_what_they_give(layer, shape):
    init, apply = layer
    found, params = init(KEY, (-1, *X.shape[1:]))
    assert found == (-1, *shape[1:])
    out = apply(params, X)
    assert out.shape == shape and onp.isfinite(out).all()


def test_a_convolution_is_a_product_where_its_kernel_is_one():
    init, apply = stax.Conv(4, (1, 1), b_init=nn.initializers.ones)
    _, (W, b) = init(KEY, X.shape)
    np.testing.assert_allclose(apply((W, b), X), X @ np.asarray(W[0, 0]) + 1, rtol=1e-5, atol=1e-5)


def test_batches_are_standardised():
    init, apply = stax.BatchNorm(beta_init=nn.initializers.ones)
    out = np.asarray(apply(init(KEY, X.shape)[1], X))
    np.testing.assert_allclose(out.mean((0, 1, 2)), 1, atol=1e-5)
    np.testing.assert_allclose(out.std((0, 1, 2)), 1, atol=1e-3)


@pytest.mark.parametrize("join, joined", [
    (stax.FanInSum, sum), (stax.FanInConcat(), lambda parts: np.concatenate(parts, -1))],
    ids=["sum", "concat"])
def test_parallel_layers_are_joined(join, joined):
    init, apply = stax.serial(
        stax.FanOut(3), stax.parallel(stax.Dense(3), stax.Identity, stax.Tanh), join)
    x = X[0, 0]
    shape, params = init(KEY, (-1, 3))
    W, b = map(np.asarray, params[1][0])
    expected = joined([x @ W + b, x, np.tanh(x)])
    assert shape == (-1, expected.shape[1])
    np.testing.assert_allclose(apply(params, x), expected, rtol=1e-5, atol=1e-6)


def test_dropout_needs_a_key_and_each_layer_has_its_own():
    init, apply = stax.serial(stax.Dropout(0.5), stax.Dropout(0.5))
    params = init(KEY, (1000,))[1]
    out = np.asarray(apply(params, onp.ones(1000), rng=KEY))
    assert set(np.unique(out)) == {0, 4} and 150 < (out > 0).sum() < 350
    with pytest.raises(ValueError, match="key"):
        apply(params, onp.ones(3))


@pytest.mark.slow
def test_a_small_network_learns_exclusive_or():
    x = onp.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    y = onp.array([0, 1, 1, 0])
    init, apply = stax.serial(stax.Dense(8), stax.Tanh, stax.shape_dependent(
        lambda shape: stax.Dense(2)), stax.LogSoftmax)
    opt = optimizers.adam(0.1)

    def loss(params):
        return -(nn.one_hot(y, 2) * apply(params, x)).sum() / 4

    def step(state, i):
        value, grads = olympus.value_and_grad(loss)(opt.params_fn(state))
        return opt.update_fn(i, grads, state), value

    state = opt.init_fn(init(KEY, (-1, 2))[1])
    state, losses = olympus.jit(lambda s: lax.scan(step, s, onp.arange(100)))(state)
    assert losses[0] > 0.5 and losses[-1] < 0.05
    assert (apply(opt.params_fn(state), x).argmax(1) == y).all()
