"""Passes are linear in the size of the program: work is counted in Python calls, not in seconds."""

import sys

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax


def calls(action):
    """How many Python functions `action()` enters."""
    count = 0

    def profile(frame, event, arg):
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


def chain(n):
    def fun(x):
        for _ in range(n):
            x = onp.sin(x) * 2.0 + x
        return x
    return fun


def fan_out(n):
    return lambda x: sum((x * float(i) for i in range(n)), x)


def constants(n):
    arrays = [np.full(2, i, np.float32) for i in range(n)]

    def fun(x):
        for a in arrays:
            x = x + a
        return x
    return fun


def nested(n):
    def fun(x):
        return x + 1.0
    for _ in range(n // 8):
        fun = (lambda g: olympus.jit(lambda x: g(x) * 2.0))(fun)
    return fun


def exponent(work, small, large):
    """The fitted power of growth between two sizes, after a warm-up."""
    work(small)
    a, b = calls(lambda: work(small)), calls(lambda: work(large))
    return np.log(b / a) / np.log(large / small)


SHAPES = {"length": chain, "fan-out": fan_out, "constants": constants, "nested jit": nested}
X = np.ones(2, np.float32)
PASSES = {
    "trace": lambda f: olympus.make_olympuspr(f)(X),
    "print": lambda f: str(olympus.make_olympuspr(f)(X)),
    "jvp": lambda f: olympus.make_olympuspr(lambda x: olympus.jvp(f, (x,), (x,)))(X),
    "grad": lambda f: olympus.make_olympuspr(olympus.grad(lambda x: onp.sum(f(x))))(X),
    "vmap": lambda f: olympus.make_olympuspr(olympus.vmap(f))(np.ones((3, 2), np.float32)),
    "lower": lambda f: olympus.jit(f).lower(X),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", PASSES)
def test_work_grows_linearly(name, shape):
    make, run = SHAPES[shape], PASSES[name]
    assert exponent(lambda n: run(make(n)), 40, 160) < 1.15


def test_a_scan_in_a_scan_is_traced_once_per_level():
    def loop(depth):
        if depth == 0:
            return lambda c: c * 1.5
        inner = loop(depth - 1)
        return lambda c: lax.scan(lambda c, _: (inner(c), None), c, None, length=2)[0]

    def work(depth):
        olympus.make_olympuspr(olympus.grad(lambda x: onp.sum(loop(depth)(x))))(X)

    work(2)
    a, b = calls(lambda: work(3)), calls(lambda: work(6))
    assert b < 2.6 * a
