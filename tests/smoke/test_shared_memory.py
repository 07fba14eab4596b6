"""Values that share memory in XLA's compiled programs, and the order in which operations run.

A kernel writes its result over an operand, which is right if the operand has one name only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus.experimental.overlap import program_order

# Values that XLA computes in another shape or that are reshaped, and a reader behind a barrier.
BEHIND_BARRIERS = {
    "elements": (lambda x: x[onp.arange(8) * 7 % 8], lax.optimization_barrier, (8, 8)),
    "sums": (lambda x: x.sum(1, keepdims=True), olympus.jit(lax.optimization_barrier), (8, 1)),
    "a sort": (lambda x: onp.sort(x, 0), lambda y: lax.optimization_barrier((y, y))[0], (-1,)),
    "a fence": (lambda x: onp.exp(x / 64), lambda y: onp.sqrt(abs(y) * y) / y * y, (-1,)),
    "ldexp": (olympus.jit(lambda x: onp.cumsum(x, 0)), lambda y: onp.ldexp(y, 1) / 2, (1, 8, 8)),
}


@pytest.mark.parametrize("name", BEHIND_BARRIERS)
def test_no_element_is_overwritten_before_it_is_read_beside_a_barrier(name):
    made, read, shape = BEHIND_BARRIERS[name]
    x = np.arange(64, dtype="f4").reshape(8, 8) * 5 % 13 + 1
    y = np.asarray(made(x))
    out = olympus.jit(lambda x: read((y := made(x)).reshape(shape)) + y[::-1].reshape(shape))(x)
    np.testing.assert_allclose(out, (y + y[::-1]).reshape(shape), rtol=1e-5)

# Functions (x, y) -> (a, b) with the cotangent of b for y's.
RECOMPUTED: dict[str, Callable[..., Any]] = {
    "handed on": lambda x, y: (onp.sin(x), y),
    "times 1, which XLA drops": lambda x, y: (onp.sin(x), 1.0 * y),
    "reshaped": lambda x, y: (onp.sin(x), y.reshape(8, 8).reshape(64)),
    "two names": lambda x, y: (onp.sin(x) + onp.cos(x), onp.sin(x) * 0 + y),
}


@pytest.mark.parametrize("name", RECOMPUTED)
def test_no_element_of_what_a_checkpoint_hands_on_is_overwritten_before_it_is_read(name):
    """A call that XLA:CPU may not inline, and that returns an argument, is its second name."""
    def run(x, w):
        ct = onp.sort(w)
        _, back = olympus.vjp(olympus.checkpoint(RECOMPUTED[name]), x, ct)
        of_x, of_y = back((x, ct))
        return of_y + ct[::-1], of_x

    w = np.arange(64, dtype="f4") * 5 % 61 - 9
    found, ct = olympus.jit(run)(w, w)[0], np.sort(w)
    np.testing.assert_allclose(found, ct + ct[::-1], rtol=1e-5)


def _called(log, name):
    def call(x):
        log.append(name)
        return np.float32(x.ravel()[0])

    return lambda x: olympus.pure_callback(call, olympus.ShapeDtypeStruct((), "float32"), x)


@pytest.mark.parametrize("by", ["program_order", "a barrier", "in a loop"])
def test_operations_that_wait_run_in_the_order_of_the_program(by):
    """XLA:CPU begins with the quick ones, and runs kernels beside each other, without the order."""
    log, x = list[int](), np.ones((64, 64), "float32")

    def f(x):
        outs, y = list[Any](), x
        for i in range(4):
            outs.append(_called(log, i)([y, y * 2, y @ y, y][i]))
            if by != "program_order":
                outs[-1], y = lax.optimization_barrier((outs[-1], x))
        return sum(outs[::-1])

    run = program_order(f, enforce=True) if by == "program_order" else f
    looped = (lambda x: lax.map(run, onp.stack([x, x]))) if by == "in a loop" else run
    olympus.block_until_ready(olympus.jit(looped)(x))
    assert log == list(range(4)) * (2 if by == "in a loop" else 1)


def _loop(n, body, *start):
    return lax.fori_loop(0, n, lambda i, c: body(*c), start)


# Of y, values that are y to XLA.
RETURNED: dict[str, Callable[..., Any]] = {
    "exchanged": lambda y, n: _loop(n, lambda a, b: (b, a), y, y),
    "exchanged within jit": lambda y, n: _loop(n, olympus.jit(lambda a, b: (b, a)), y, y),
    "exchanged by a choice": lambda y, n: _loop(
        n, lambda a, b: (onp.where(True, b, a), onp.negative(-a)), y, y),
    "in turns": lambda y, n: lax.scan(
        lambda c, _: ((c[1], c[2], c[0]), None), (y, y, y), None, 3)[0],
    "a tail": lambda y, n: _loop(n, lambda a, b, c: (b, a, a), y, y, y),
    "times 1": lambda y, n: (*_loop(n, lambda a: (a * 1.0,), y), y),
    "by all branches": lambda y, n: (lax.cond(n > 2, lambda a: a, lambda a: a, y), y),
    "in two ways": lambda y, n: (lax.cond(
        n > 2, lambda a: onp.negative(-a), lambda a: a[::-1][::-1], y), y),
    "a write of all": lambda y, n: (lax.switch(n, [
        lambda a: lax.dynamic_update_slice(a * 2, a, (0,)), lambda a: a], y), y),
}


@pytest.mark.parametrize("name", RETURNED)
def test_no_element_of_what_a_loop_or_a_branch_returns_is_overwritten_before_it_is_read(name):
    """XLA takes the result for its operand, which has two names then."""
    def f(x, n):
        *_, first, second = RETURNED[name](onp.sort(x), n)
        return first + second[::-1]

    x = np.arange(64, dtype="f4") * 5 % 61 - 9
    np.testing.assert_array_equal(olympus.jit(f)(x, 3), np.sort(x) + np.sort(x)[::-1])


def test_no_element_of_a_write_that_waits_for_reads_is_overwritten_before_it_is_read():
    def f(x, v):
        new = onp.sort(onp.outer(v[:4], v), 1)
        turned, old = new[::-1], x[10]
        return lax.dynamic_update_slice(x, new, (3, 0)), new + turned, old

    x, v = np.arange(4096, dtype="f4").reshape(64, 64), np.arange(64, dtype="f4") * 5 % 61 - 9
    new = np.sort(np.outer(v[:4], v), 1)
    written, total, old = olympus.jit(f, donate_argnums=0)(onp.array(x), v)
    np.testing.assert_array_equal(total, new + new[::-1])
    np.testing.assert_array_equal(old, x[10])
    np.testing.assert_array_equal(written, np.concatenate([x[:3], new, x[7:]]))
