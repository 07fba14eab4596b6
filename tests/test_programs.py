"""Random well-typed programs: every way to evaluate and to differentiate one agrees.

A program is a list of steps on a pool of arrays; it is well typed by construction, and the same
list runs on NumPy, where nested jit, vmap, scan and cond are Python loops and ifs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import olympus
from olympus import jit, jvp, lax, linearize, numpy as onp, vjp, vmap
from olympus._src.base.lib import mlir


class OnNumPy:
    """The operations on NumPy: transformations are loops."""

    xp: Any = np

    def jit(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        return fun

    def vmap(self, fun: Callable[..., Any], x: Any) -> Any:
        return np.stack([fun(row) for row in x])

    def scan(self, fun: Callable[..., Any], carry: Any, xs: Any) -> Any:
        out = []
        for x in xs:
            carry = fun(carry + 0.5 * x)
            out.append(carry * x)
        return carry, np.stack(out)

    def cond(self, which: Any, one: Callable[..., Any], other: Callable[..., Any], x: Any) -> Any:
        return one(x) if which else other(x)


class OnOlympus(OnNumPy):
    xp = onp

    def jit(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        return jit(fun)

    def vmap(self, fun: Callable[..., Any], x: Any) -> Any:
        return vmap(fun)(x)

    def scan(self, fun: Callable[..., Any], carry: Any, xs: Any) -> Any:
        def body(carry: Any, x: Any) -> Any:
            carry = fun(carry + 0.5 * x)
            return carry, carry * x
        return lax.scan(body, carry, xs)

    def cond(self, which: Any, one: Callable[..., Any], other: Callable[..., Any], x: Any) -> Any:
        return lax.cond(which, one, other, x)


def small(m: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Two arrays that broadcast: `y` itself, or its mean where the shapes do not fit."""
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return x, y.mean()
    return x, y


INNER = (
    lambda m, x: m.xp.sin(x),
    lambda m, x: m.xp.tanh(x) * 1.5,
    lambda m, x: x / (1 + x * x),
    lambda m, x: m.xp.log1p(x * x),
    lambda m, x: m.xp.sqrt(x * x + 0.5) - m.xp.exp(-x * x),
    lambda m, x: m.xp.where(x > 0.1234, x, 0.3 * x),
    lambda m, x: x - x.mean(),
)
ONE = (
    *INNER,
    lambda m, x: x.sum(-1) if x.ndim else x,
    lambda m, x: x.mean(0) if x.ndim else x,
    lambda m, x: x.max(-1) if x.ndim else x,
    lambda m, x: m.xp.reshape(x, (-1,)),
    lambda m, x: m.xp.transpose(x),
    lambda m, x: x[..., None] if x.ndim < 3 else x[0],
    lambda m, x: x[::-1] if x.ndim else x,
    lambda m, x: x[..., 1:] if x.ndim and x.shape[-1] > 1 else x,
    lambda m, x: m.xp.cumsum(x, -1) if x.ndim else x,
    lambda m, x: m.xp.sort(x, -1) if x.ndim else x,
)
TWO = (
    lambda m, x, y: x + y,
    lambda m, x, y: x - 0.7 * y,
    lambda m, x, y: x * m.xp.tanh(y),
    lambda m, x, y: m.xp.maximum(x, y),
    lambda m, x, y: m.xp.where(x > y + 0.0517, x, y * y),
)


def apply(m: OnNumPy, step: tuple[int, int, int, int], pool: list[Any]) -> Any:
    """One step: what to do, which inner functions it uses, on which arrays of the pool."""
    kind, which, i, j = step
    x, y = pool[-1 - i % len(pool)], pool[-1 - j % len(pool)]
    inner, other = (functools.partial(INNER[k % len(INNER)], m) for k in (which, which + 1))
    if kind < 6:
        return ONE[which % len(ONE)](m, x)
    if kind < 10:
        return TWO[which % len(TWO)](m, *small(m, x, y))
    if kind == 10:
        return m.jit(lambda v: other(inner(v)))(x)
    if kind == 11:
        return m.cond(x.sum() > 0.3717, inner, other, y)
    if not x.ndim:
        return inner(x)
    if kind == 12:
        return m.vmap(inner, x)
    if kind == 13:
        carry, ys = m.scan(inner, x[0] * 0, x)
        return ys + carry
    return m.vmap(lambda row: m.cond(row.sum() > 0.1717, inner, other, row), x)


def program(m: OnNumPy, steps: list[tuple[int, int, int, int]]) -> Callable[..., Any]:
    def run(x: Any, y: Any, z: Any) -> list[Any]:
        pool = [x, y, z]
        for step in steps:
            pool.append(apply(m, step, pool))
            if pool[-1].size > 96:
                pool[-1] = pool[-1].mean(0)
        return [*pool[-3:], x.sum() + y.sum() * z]
    return run


INPUTS = tuple(np.random.default_rng(5).normal(size=shape) for shape in ((3, 4), (4,), ()))
DIRECTIONS = tuple(np.random.default_rng(6).normal(size=x.shape) for x in INPUTS)
STEPS = st.lists(st.tuples(st.integers(0, 14), st.integers(0, 16), st.integers(0, 5),
                           st.integers(0, 5)), min_size=8, max_size=16)
random_programs = given(STEPS)
bounded = settings(max_examples=25, deadline=None, derandomize=True, database=None,
                   suppress_health_check=list(HealthCheck))


@pytest.fixture(autouse=True, scope="module")
def _x64() -> Iterator[None]:
    with olympus.enable_x64(True):
        yield


def close(actual: Any, expected: Any, tol: float) -> None:
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected, strict=True):
        assert np.shape(a) == np.shape(e)
        np.testing.assert_allclose(np.asarray(a), np.asarray(e), rtol=tol, atol=tol)


@bounded
@random_programs
def test_jit_and_op_by_op_are_numpy(steps: Any) -> None:
    expected = program(OnNumPy(), steps)(*INPUTS)
    fun = program(OnOlympus(), steps)
    close(jit(fun)(*INPUTS), expected, 1e-9)
    close(fun(*map(onp.asarray, INPUTS)), expected, 1e-9)


@bounded
@random_programs
def test_vmap_is_a_loop_on_numpy(steps: Any) -> None:
    stacks = [np.stack([x, 0.6 * x, -x]) for x in INPUTS]
    each = [program(OnNumPy(), steps)(*(s[i] for s in stacks)) for i in range(3)]
    out = jit(vmap(program(OnOlympus(), steps)))(*stacks)
    close(out, [np.stack(ys) for ys in zip(*each, strict=True)], 1e-9)


@bounded
@random_programs
def test_derivatives_agree(steps: Any) -> None:
    fun, reference, h = program(OnOlympus(), steps), program(OnNumPy(), steps), 1e-6

    def derivatives(xs: Any, ts: Any) -> Any:
        out, forward = jvp(fun, xs, ts)
        cts = [0.2 * y + 1.1 for y in out]
        back = vjp(fun, *xs)[1](cts)
        return forward, linearize(fun, *xs)[1](*ts), (
            sum((c * t).sum() for c, t in zip(cts, forward, strict=True)),
            sum((b * t).sum() for b, t in zip(back, ts, strict=True)))

    forward, linear, (ahead, back) = jit(derivatives)(INPUTS, DIRECTIONS)
    close(linear, forward, 1e-9)
    close([back], [ahead], 1e-8)
    up, down = (reference(*(x + s * t for x, t in zip(INPUTS, DIRECTIONS, strict=True)))
                for s in (h, -h))
    close(forward, [(a - b) / (2 * h) for a, b in zip(up, down, strict=True)], 3e-6)


@settings(bounded, max_examples=15)
@random_programs
def test_the_stablehlo_interpreter_agrees_with_xla(steps: Any) -> None:
    compiled = jit(program(OnOlympus(), steps))
    module = compiled.lower(*INPUTS).compiler_ir()
    mlir.legalize_chlo(module)
    results = mlir.eval_module(module, [np.asarray(x) for x in INPUTS])
    expected = compiled(*INPUTS)
    assert len(results) == len(expected)
    for r, e in zip(results, expected, strict=True):
        np.testing.assert_allclose(np.array(r), e, rtol=1e-9, atol=1e-9)
