"""The price of an operation in Python frames, counted by the interpreter: no clock, no noise."""

import gc
import sys
import weakref

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus._src.core.context import ctx
from olympus.experimental import checkify


def frames(call):
    """How many Python functions `call()` enters, itself not counted, nor those of the collector,
    which may find what tests before left.
    """
    count = -1

    def profile(frame, event, arg):
        nonlocal count
        count += event == "call"

    gc.disable()
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


def traced_frames(fun, *args):
    """Frames entered by `fun` while it is traced, warm."""
    seen = []

    def measured(*xs):
        for _ in range(2):      # a template is recorded at the second equal call
            fun(*xs)
        seen.append(frames(lambda: fun(*xs)))
        return xs[0]

    olympus.make_olympuspr(measured)(*args)
    return seen[0] - 1      # the call of `fun` itself


X = np.ones(3, np.float32)
KEY = olympus.random.key(0)
PLACES = onp.array([0, 2])
W = onp.ones((3, 3))


def test_another_dict_of_the_same_axes_costs_once():
    """Regression: the context was looked up anew by each operation."""
    warm = traced_frames(lambda x: x.reshape(3, 1), X)
    outer = ctx.axes
    ctx.axes = dict(outer)
    try:
        assert traced_frames(lambda x: x.reshape(3, 1), X) == warm
    finally:
        ctx.axes = outer


@pytest.mark.parametrize(("name", "fun", "budget"), [
    ("add", lambda x, y: x + y, 7),
    ("add scalar", lambda x, y: x + 1.0, 9),
    ("sin", lambda x, y: onp.sin(x), 9),
    ("lax.add", lambda x, y: lax.add(x, y), 6),
    ("x[i]", lambda x, y: x[0], 15),
    ("x[i:j]", lambda x, y: x[1:3], 11),
    ("mean", lambda x, y: x.mean(keepdims=True), 7),
    ("reshape", lambda x, y: x.reshape(3, 1), 8),
    ("ones", lambda x, y: onp.ones((3, 3)), 13),
])
def test_an_operation_is_traced_in_few_frames(name, fun, budget):
    assert traced_frames(fun, X, X) <= budget


@pytest.mark.parametrize(("name", "fun", "budget"), [
    ("operator", lambda x: x + x, 1),
    ("operator, number", lambda x: x * 2.5, 2),
    ("operator, reflected", lambda x: 2.5 - x, 2),
    ("function", lambda x: onp.add(x, x), 1),
    ("unary", lambda x: onp.sin(x), 1),
    ("fused", lambda x: onp.var(x), 1),
    ("matmul", lambda x: x @ x, 2),
    ("norm", lambda x: onp.linalg.norm(x), 1),
    ("where", lambda x: onp.where(x, x, 2.0), 2),
    ("where, arrays", lambda x: onp.where(x, x, x), 1),
    ("covariance", lambda x: onp.cov(x), 1),
    ("keyword", lambda x: onp.sum(x, axis=0), 1),
    ("method", lambda x: x.sum(), 1),
    ("number for an array argument", lambda x: onp.clip(x, 0.0, 1.0), 3),
    ("three arrays", lambda x: onp.clip(x, x, x), 1),
    ("elementwise by name", lambda x: onp.fmax(x, x), 1),
    ("x[i]", lambda x: x[0], 1),
    ("x[i:j]", lambda x: x[1:3], 1),
    ("x[k]", lambda x: x[PLACES], 9),
    ("concatenate", lambda x: onp.concatenate([x, x], axis=0), 1),
    ("stack", lambda x: onp.stack((x, x)), 1),
    ("array", lambda x: onp.array([x, x, x]), 23),
    ("vstack", lambda x: onp.vstack([x, x]), 1),
    ("einsum", lambda x: onp.einsum("i,i->", x, x), 28),
    ("zeros", lambda x: onp.zeros((3,)), 10),
    ("full", lambda x: onp.full((3,), 2.0), 7),
    ("randint", lambda x: olympus.random.randint(KEY, (3,), 0, 10), 25),
    ("uniform, bounds", lambda x: olympus.random.uniform(KEY, (3,), minval=-1.0), 15),
])
def test_an_eager_operation_enters_few_frames(name, fun, budget):
    x = onp.asarray(X)
    fun(x)
    assert frames(lambda: fun(x)) - 1 <= budget


def tanh_of_product(x):
    return (onp.tanh(x @ W) ** 2).sum()


@pytest.mark.parametrize(("name", "transformed", "budget"), [
    ("jvp", lambda x: olympus.jvp(tanh_of_product, (x,), (x,)), 140),
    ("grad", olympus.grad(tanh_of_product), 308),
    ("linearize", lambda x: olympus.linearize(tanh_of_product, x), 240),
    ("vmap", lambda x: olympus.vmap(tanh_of_product)(x[None]), 142),
    ("jacfwd", olympus.jacfwd(lambda x: onp.tanh(x @ W)), 208),
])
def test_a_transformed_function_of_arrays_enters_few_frames(name, transformed, budget):
    x = onp.asarray(X)
    transformed(x)
    assert frames(lambda: transformed(x)) - 1 <= budget


CALLS = {
    "positional": (lambda f, x: f(x), {}),
    "keyword": (lambda f, x: f(x=x), {}),
    "static": (lambda f, x: f(x, "s"), {"static_argnums": 1}),
    "dict": (lambda f, x: f({"a": x, "b": (x, x)}), {}),
    "numpy": (lambda f, x: f(X), {}),
    "scalar": (lambda f, x: f(2.0), {}),
}


@pytest.mark.parametrize("case", CALLS)
def test_a_second_call_of_a_jitted_function_enters_no_python(case):
    call, options = CALLS[case]
    jitted = olympus.jit(lambda x, s="d": x, **options)
    x = onp.asarray(X)
    call(jitted, x)
    call(jitted, x)
    # The lambda in CALLS, and the copy of a NumPy array.
    assert frames(lambda: call(jitted, x)) == 1 + (case == "numpy")


@pytest.mark.parametrize(("value", "budget"), [
    ((2, 3), 2), ((2, 3, "a", None), 2), (("a", ("b", None)), 0), ((2.5,), 2),
    ((tuple(range(100)), "a"), 2)], ids=str)
def test_a_second_call_with_a_static_tuple_only_compares_its_numbers(value, budget):
    """Regression: it went through Python, at eight times the cost of a static string."""
    jitted = olympus.jit(lambda x, s: x, static_argnums=1)
    x = onp.asarray(X)
    jitted(x, value)
    assert frames(lambda: jitted(x, value)) - 1 <= budget


@pytest.mark.parametrize("raised", [ValueError, KeyboardInterrupt])
def test_a_function_whose_first_call_raised_enters_no_python_later(raised):
    errors = [raised]

    @olympus.jit
    def f(x):
        if errors:
            raise errors.pop()
        return x + 1

    x = onp.asarray(X)
    with pytest.raises(raised):
        f(x)
    f(x)
    assert frames(lambda: f(x)) == 0


def test_a_function_that_is_jitted_again_is_called_without_python():
    def double(x):
        return x * 2

    x = onp.asarray(X)
    olympus.jit(double)(x)
    again = olympus.jit(double)
    assert frames(lambda: again(x)) == 0
    static = olympus.jit(double, static_argnums=0)      # other options, other programs
    assert static(3) == 6
    donating = olympus.jit(double, donate_argnums=0)
    donating(x)
    assert x.is_deleted()
    again(onp.asarray(X))


def test_a_second_call_with_a_donated_argument_enters_no_python():
    jitted = olympus.jit(lambda x: x + 1, donate_argnums=0)
    arrays = [onp.asarray(X) + i for i in range(3)]
    jitted(arrays[0])
    jitted(arrays[1])
    assert frames(lambda: jitted(arrays[2])) == 0
    assert arrays[2].is_deleted()


def test_a_check_for_debugging_alone_costs_a_compiled_call_no_frame():
    """Regression: Python ran around each call of a kernel that waits for a semaphore."""
    def checked(x):
        checkify.debug_check(x[0] == 0, "x[0] is {}", x[0])
        return x + 1

    x, jitted = onp.asarray(X), olympus.jit(checked)
    for _ in range(2):
        jitted(x)
    assert frames(lambda: jitted(x)) == 0
    with pytest.raises(checkify.OlympusRuntimeError, match=r"x\[0\] is 1\.0"):
        olympus.jit(checked, checks={"user"})(x)


def test_arguments_of_equal_shardings_are_looked_at_in_two_frames_each():
    mesh = olympus.make_mesh((1,), ("x",))
    xs = [olympus.device_put(X, olympus.NamedSharding(mesh, olympus.P("x"))) for _ in range(10)]
    total = olympus.jit(lambda xs: xs[0] + xs[1])
    total(xs)
    total(xs)
    assert frames(lambda: total(xs)) <= 2 * len(xs)     # the hash, and whether they are equal


def test_a_second_call_of_a_compiled_function_enters_one_frame():
    x = onp.asarray(X)
    compiled = olympus.jit(lambda x: x + 1).lower(x).compile()
    compiled(x)
    assert frames(lambda: compiled(x)) == 1     # Compiled.__call__


def test_the_body_of_a_loop_is_traced_once():
    """Like a jitted function: by identity, until its arguments have other types."""
    x, calls = onp.asarray(X), []

    def step(carry, y):
        calls.append(1)
        return carry + y, y

    lax.scan(step, 0.0, x)
    traced = len(calls)
    lax.scan(step, 0.0, x)
    olympus.jit(lambda x: lax.scan(step, 0.0, x))(x)
    assert len(calls) == traced
    lax.scan(step, 0, onp.arange(3))
    assert len(calls) > traced


def test_a_body_that_closes_over_a_traced_value_is_traced_again():
    x = onp.asarray(X)

    @olympus.jit
    def total(scale):
        return lax.fori_loop(0, 3, lambda i, v: v * scale, x)

    assert total(2.0)[0] == 8.0
    assert total(3.0)[0] == 27.0
    values = []

    def double(i, v):
        return v * values[-1]

    @olympus.jit
    def through_a_list(scale):
        values.append(scale)
        return lax.fori_loop(0, 3, double, x)

    assert through_a_list(2.0)[0] == 8.0
    assert through_a_list(onp.float32(3.0))[0] == 27.0


def test_the_memo_of_bodies_keeps_no_function():
    def body(i, v):
        return v * 2

    lax.fori_loop(0, 3, body, onp.asarray(X))
    known = weakref.ref(body)
    del body
    gc.collect()
    assert known() is None


@pytest.mark.parametrize("transform", [
    lambda f, x: olympus.jvp(f, (x,), (x,)), lambda f, x: olympus.grad(f)(x),
    lambda f, x: olympus.vmap(f)(x[None]), lambda f, x: olympus.linearize(f, x)])
def test_no_traced_value_is_printed_on_the_way(monkeypatch, transform):
    """A probe for a protocol's method printed the whole array into an error nobody reads."""
    monkeypatch.setattr(np, "array2string", None)
    monkeypatch.setattr("olympus._src.core.trace.printed_name", None)
    transform(lambda x: (onp.tanh(x) * x + onp.where(x > 0, x, 0)[0]).sum(), onp.asarray(X))
