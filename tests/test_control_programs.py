"""Random nested control flow: cond, switch, scan, while, fori and map in one another, to depth 4.

A program is a tree; each node reads the value it is given, a constant of its own, and values that
outer nodes made, which it closes over: tracers of every level. The same tree runs on NumPy, where
control flow is Python's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from properties import compiled

import olympus
from olympus import checkpoint, grad, jit, lax, numpy as onp, vmap

Node = Any      # ("leaf", k) or (kind, k, [children])
WAYS = {"cond": 2, "switch": 3, "scan": 1, "scan-reverse": 1, "while": 1, "while-kept": 1,
        "fori": 1, "fori-dynamic": 1, "map": 1, "remat": 1, "jit": 1}
NO_REVERSE = {"while", "fori-dynamic"}


class OnNumPy:
    """Control flow in Python. `env` holds what outer nodes made."""

    xp: Any = np

    def branch(self, index: Any, funs: list[Callable[[Any], Any]], x: Any) -> Any:
        return funs[min(max(int(index), 0), len(funs) - 1)](x)

    def scan(self, f: Callable[..., Any], c: Any, xs: Any, reverse: bool) -> Any:
        ys = np.zeros_like(xs)
        for i in range(len(xs))[::-1 if reverse else 1]:
            c, ys[i] = f(c, xs[i])
        return c, ys

    def repeat(self, way: str, n: Any, f: Callable[[Any, Any], Any], x: Any) -> Any:
        for i in range(int(n)):
            x = f(i, x)
        return x

    def map(self, f: Callable[[Any], Any], xs: Any, batch: int | None) -> Any:
        return np.stack([f(x) for x in xs])

    def wrap(self, way: str, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return f


class OnOlympus(OnNumPy):
    xp = onp

    def branch(self, index: Any, funs: list[Callable[[Any], Any]], x: Any) -> Any:
        if len(funs) == 2:
            return lax.cond(index > 0, funs[1], funs[0], x)
        return lax.switch(index, funs, x)

    def scan(self, f: Callable[..., Any], c: Any, xs: Any, reverse: bool) -> Any:
        return lax.scan(f, c, xs, reverse=reverse)

    def repeat(self, way: str, n: Any, f: Callable[[Any, Any], Any], x: Any) -> Any:
        if way.startswith("fori"):
            return lax.fori_loop(0, n, f, x)
        return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, f(s[0], s[1])), (0, x),
                              checkpoints=2 if way == "while-kept" else None)[1]

    def map(self, f: Callable[[Any], Any], xs: Any, batch: int | None) -> Any:
        return lax.map(f, xs, batch_size=batch)

    def wrap(self, way: str, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return checkpoint(f) if way == "remat" else jit(f)


CONSTANTS = np.random.default_rng(3).uniform(0.3, 1.1, (16, 2))


def leaf(m: OnNumPy, k: int, x: Any, env: list[Any]) -> Any:
    """A bounded smooth function of the value, a constant and a value from outside."""
    outer, w = env[k % len(env)], CONSTANTS[k]
    return (m.xp.sin(x * w + outer), m.xp.tanh(x + outer * w), x * 0.5 + m.xp.cos(outer) * w,
            w * x / (1 + x * x) + 0.3 * outer)[k % 4]


def run(m: OnNumPy, node: Node, x: Any, env: list[Any]) -> Any:
    """The node's value at `x`, an array of two numbers, in the environment of its outer nodes."""
    kind, k, children = node
    if kind == "leaf":
        return leaf(m, k, x, env)
    inner = [*env, leaf(m, k, x, env)]

    def child(v: Any, i: int = 0, extra: Any = None) -> Any:
        return run(m, children[i], v, inner if extra is None else [*inner, extra])

    if kind in ("cond", "switch"):
        index = m.xp.floor(x.sum() * 7.77 + env[-1].sum() * 3.33) % len(children)
        funs = [lambda v, i=i: child(v, i) for i in range(len(children))]
        return m.branch(index.astype(np.int32), funs, x)
    if kind.startswith("scan"):
        def body(c: Any, y: Any) -> Any:
            c = child(c + 0.5 * y, extra=y)
            return c, c * y
        c, ys = m.scan(body, x, m.xp.stack([x, inner[-1], CONSTANTS[k] + 0 * x]), "rev" in kind)
        return c + 0.3 * ys.sum(0)
    if kind == "map":
        return m.map(lambda y: child(y * x), m.xp.stack([x, inner[-1], 0.5 * x]),
                     2 if k % 2 else None).mean(0)
    if kind in ("remat", "jit"):
        return m.wrap(kind, lambda v: child(v))(x)
    n: Any = k % 4      # no iteration at all, too
    if kind in ("while", "while-kept", "fori-dynamic"):
        n = (m.xp.floor(x.sum() * 5.55) % 3).astype(np.int32)
    return m.repeat(kind, n, lambda i, v: child(v + 0.1 * i), x)


def nodes(depth: int) -> st.SearchStrategy[Node]:
    k = st.integers(0, 15)
    if not depth:
        return st.tuples(st.just("leaf"), k, st.just(()))
    below = nodes(depth - 1)
    inner = [st.tuples(st.just(kind), k, st.tuples(below, *[nodes(min(depth - 1, 1))] * (n - 1)))
             for kind, n in WAYS.items()]
    return st.one_of(inner)


def kinds(node: Node) -> set[str]:
    return {node[0]}.union(*map(kinds, node[2]))


X = np.array([0.61, -0.37])
XS = np.stack([X, [0.13, 0.89], [-0.71, 0.29]])
programs = given(nodes(4))
bounded = settings(max_examples=20, deadline=None, derandomize=True, database=None,
                   suppress_health_check=list(HealthCheck))


@pytest.fixture(autouse=True, scope="module")
def _x64() -> Iterator[None]:
    with olympus.enable_x64(True):
        yield


def on_numpy(node: Node, x: Any) -> Any:
    return run(OnNumPy(), node, x, [np.array([0.2, 0.7])])


def fun_of(node: Node) -> Callable[[Any], Any]:
    return lambda x: run(OnOlympus(), node, x, [np.array([0.2, 0.7])])


@bounded
@programs
def test_values_alone_and_mapped(node: Node) -> None:
    fun = fun_of(node)
    one, many = compiled(lambda xs: (fun(xs[0]), vmap(fun)(xs)))(XS)
    expected = [on_numpy(node, x) for x in XS]
    np.testing.assert_allclose(one, expected[0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(many, expected, rtol=1e-9, atol=1e-9)


@settings(bounded, max_examples=14)
@programs
def test_derivatives(node: Node) -> None:
    """Forward mode is the slope of NumPy's values; reverse mode agrees with it."""
    fun, t, h = fun_of(node), np.array([0.7, -1.1]), 1e-6
    both = not kinds(node) & NO_REVERSE

    def derivatives(x: Any) -> Any:
        y, slope = olympus.jvp(fun, (x,), (t,))
        back = [(grad(lambda x: fun(x) @ t)(x) * t).sum(),
                (vmap(grad(lambda x: fun(x) @ t))(onp.stack([x, x]))[1] * t).sum()] if both else []
        return y, slope, back

    y, slope, back = compiled(derivatives)(X)
    np.testing.assert_allclose(y, on_numpy(node, X), rtol=1e-9, atol=1e-9)
    up, down = (on_numpy(node, X + s * t) for s in (h, -h))
    np.testing.assert_allclose(slope, (up - down) / (2 * h), rtol=1e-5, atol=1e-6)
    for value in back:
        np.testing.assert_allclose(value, slope @ t, rtol=1e-8, atol=1e-9)


@settings(bounded, max_examples=6)
@programs
def test_grad_outside_of_jit(node: Node) -> None:
    """Lengths and predicates that are known: loops are static, and reverse mode works."""
    if kinds(node) & NO_REVERSE:
        return
    fun, t = fun_of(node), np.array([0.7, -1.1])
    slope = compiled(lambda x: olympus.jvp(fun, (x,), (t,))[1])(X)
    value = grad(lambda x: fun(x) @ t)(onp.asarray(X)) @ t
    np.testing.assert_allclose(value, slope @ t, rtol=1e-8, atol=1e-9)


@settings(bounded, max_examples=5)
@programs
def test_reverse_mode_through_a_mapped_program(node: Node) -> None:
    """Elements take other branches and rounds than their neighbours: none hears of another's."""
    if kinds(node) & NO_REVERSE:
        return
    fun, t = fun_of(node), np.array([0.7, -1.1])

    def both(xs: Any) -> Any:
        one = grad(lambda x: fun(x) @ t)
        return grad(lambda xs: (vmap(fun)(xs) @ t).sum())(xs), onp.stack([one(x) for x in xs])

    mapped, alone = compiled(both)(XS)
    np.testing.assert_allclose(mapped, alone, rtol=1e-8, atol=1e-9)
