"""A minute's tour through every layer; `.ci/run` repeats it on other Pythons and jaxlibs."""

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax, nn, random


def test_arrays_and_operators():
    x = onp.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal((x @ x.T + 1)[0], [6, 15])
    assert repr(x[1, :2]) == "Array([3., 4.], dtype=float32)"


def test_jit_compiles_once_and_agrees():
    traces = []

    @olympus.jit
    def f(x):
        traces.append(1)
        return onp.tanh(x).sum()

    x = np.linspace(-1, 1, 5, dtype=np.float32)
    np.testing.assert_allclose([f(x), f(x + 1)], [np.tanh(x).sum(), np.tanh(x + 1).sum()], 1e-5)
    assert len(traces) == 1


def test_grad_of_python_control_flow():
    f = olympus.grad(lambda x: x**3 if x > 0 else -x)
    assert (float(f(2.0)), float(f(-2.0))) == (12.0, -1.0)


def test_vmap_of_grad_under_jit():
    f = olympus.jit(olympus.vmap(olympus.grad(lambda w, x: nn.relu(w @ x)), in_axes=(None, 0)))
    x = np.array([[1.0, 2.0], [-1.0, -2.0]], np.float32)
    np.testing.assert_array_equal(f(onp.ones(2), x), [[1, 2], [0, 0]])


def test_control_flow():
    total, steps = lax.scan(lambda c, x: (c + x, c), 0.0, onp.arange(4.0))
    assert float(total) == 6.0 and steps.tolist() == [0.0, 0.0, 1.0, 3.0]
    assert int(lax.while_loop(lambda x: x < 100, lambda x: 2 * x, 3)) == 192
    assert int(lax.cond(total > 5, lambda: 1, lambda: 2)) == 1


def test_random_stream():
    data = random.key_data(random.split(random.key(0)))
    assert data.tolist() == [[0x6B200159, 0x99BA4EFE], [0x375F238F, 0xCDDB151D]]


def test_ahead_of_time():
    lowered = olympus.jit(lambda x, y: 2 * x + y).lower(3, 4)
    assert "module @jit__lambda" in lowered.as_text()
    assert int(lowered.compile()(3, 4)) == 10


def test_bad_shapes_raise():
    with pytest.raises(TypeError, match="float32"):
        onp.ones((2, 3)) @ onp.ones((2, 3))


def test_values_with_many_readers_are_computed_once():
    """A jaxlib that made held calls part of their callers would be seen here."""
    def run(y):
        for _ in range(8):
            y = onp.concatenate([y[1:] * y[:-1] + y[1:], y[:1]])
            y = onp.concatenate([y[1:] - y[:-1] * 0.5, y[:1]])
        return y

    y = onp.linspace(0, 1, 64)
    sizes = [olympus.jit(run, hold=hold).lower(y).compile().as_text().count(" = ")
             for hold in ("auto", "off")]
    assert sizes[0] < sizes[1] / 2
    np.testing.assert_allclose(olympus.jit(run)(y), run(y), rtol=1e-3, atol=1e-5)
