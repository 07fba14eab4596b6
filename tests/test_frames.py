"""The price of an operation in Python frames, counted by the interpreter: no clock, no noise."""

import sys

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax


def frames(call):
    """How many Python functions `call()` enters, itself not counted."""
    count = -1

    def profile(frame, event, arg):
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


def traced_frames(fun, *args):
    """Frames entered by `fun` while it is traced, warm."""
    seen = []

    def measured(*xs):
        fun(*xs)
        seen.append(frames(lambda: fun(*xs)))
        return xs[0]

    olympus.make_olympuspr(measured)(*args)
    return seen[0] - 1      # the call of `fun` itself


X = np.ones(3, np.float32)


@pytest.mark.parametrize(("name", "fun", "budget"), [
    ("add", lambda x, y: x + y, 10),
    ("add scalar", lambda x, y: x + 1.0, 14),
    ("sin", lambda x, y: onp.sin(x), 12),
    ("lax.add", lambda x, y: lax.add(x, y), 10),
])
def test_an_operation_is_traced_in_few_frames(name, fun, budget):
    assert traced_frames(fun, X, X) <= budget


@pytest.mark.parametrize(("name", "fun", "budget"), [
    ("add", lambda x: x + x, 6),
    ("sin", lambda x: onp.sin(x), 8),
    ("fused", lambda x: onp.var(x), 3),
])
def test_an_eager_operation_enters_few_frames(name, fun, budget):
    x = onp.asarray(X)
    fun(x)
    assert frames(lambda: fun(x)) - 1 <= budget


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
    assert frames(lambda: call(jitted, x)) == 1     # the lambda in CALLS


def test_a_second_call_with_a_donated_argument_enters_no_python():
    jitted = olympus.jit(lambda x: x + 1, donate_argnums=0)
    arrays = [onp.asarray(X) + i for i in range(3)]
    jitted(arrays[0])
    jitted(arrays[1])
    assert frames(lambda: jitted(arrays[2])) == 0
    assert arrays[2].is_deleted()


def test_a_second_call_of_a_compiled_function_enters_one_frame():
    x = onp.asarray(X)
    compiled = olympus.jit(lambda x: x + 1).lower(x).compile()
    compiled(x)
    assert frames(lambda: compiled(x)) == 1     # Compiled.__call__
