"""Loops that remember little and solvers: what their rules do with carries of several kinds."""

from functools import partial
from typing import Any

import numpy as np

from olympus import (
    checkpoint, custom_jvp, jit, jvp, lax, linear_transpose, linearize, numpy as onp, vjp,
)
from olympus.custom_derivatives import linear_call
from olympus.scipy.sparse.linalg import cg

from . import Op, reals
from .control import C, V, forward, linear, pulled

A = reals(4, 4) + 8 * np.eye(4)
LIMIT, FACTOR = np.array(9.0), np.array(1.7)


def kept(checkpoints: int, jitted: bool = False) -> Any:
    """A carry that decides, one that follows and one that only counts."""
    def fun(limit: Any, factor: Any, x: Any) -> Any:
        def body(state: Any) -> Any:
            i, c, total = state
            return i + 1, c * factor, total + lax.sin(c) * factor
        _, c, total = lax.while_loop(lambda s: s[1] < limit, body, (0, x, x),
                                     checkpoints=checkpoints)
        return c, total
    return jit(fun) if jitted else fun


def written_out(limit: Any, factor: Any, x: Any) -> Any:
    c, total = x, x
    while c < limit:
        c, total = c * factor, total + np.sin(c) * factor
    return c, total


def slopes(limit: Any, factor: Any, x: Any, tf: Any, tx: Any) -> Any:
    c, total, t, tt = x, x, tx, tx
    while c < limit:
        t, tt, c, total = (t * factor + c * tf, tt + np.cos(c) * t * factor + np.sin(c) * tf,
                           c * factor, total + np.sin(c) * factor)
    return (c, total), (t, tt)


def pulled_back(limit: Any, factor: Any, x: Any, a: Any, b: Any) -> Any:
    (_, one), (_, two) = (slopes(limit, factor, x, *t)[0:2] for t in ((1.0, 0.0), (0.0, 1.0)))
    return one[0] * a + one[1] * b, two[0] * a + two[1] * b


def pull(jitted: bool, limit: Any, factor: Any, x: Any, a: Any, b: Any) -> Any:
    fun = kept(2, jitted)
    return pulled(lambda f, x: fun(limit, f, x), factor, x, a, b)


def rounds(n: Any, factor: Any, x: Any) -> Any:
    return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * factor + s[2], s[2]),
                          (0, x, x), checkpoints=2)[1:]


def plain_rounds(n: Any, factor: Any, x: Any) -> Any:
    c = x
    for _ in range(n):
        c = c * factor + x
    return c, x


def curved(f: Any, x: Any) -> Any:
    """The derivative of the tangent map: forward, and in reverse where the row asks for it."""
    one = onp.ones_like(f)
    return jvp(lambda f: linearize(lambda f: rounds(3, f, x)[0], f)[1](one), (f,), (one,))


def solved(has_aux: bool, a: Any, b: Any, c: Any) -> Any:
    """Two right-hand sides, of which only the first meets a matrix."""
    def give(x: Any) -> Any:
        return (x, lax.exp(x[0])) if has_aux else x

    out = lax.custom_linear_solve(
        lambda v: (a @ v[0], v[1] * 2.0), (b, c),
        lambda _, v: give((onp.linalg.solve(a, v[0]), v[1] * 0.5)),
        lambda _, v: give((onp.linalg.solve(a.T, v[0]), v[1] * 0.5)), has_aux=has_aux)
    return (*out[0], out[1]) if has_aux else tuple(out)


def plain_solved(a: Any, b: Any, c: Any) -> Any:
    return np.linalg.solve(a, b), c / 2.0


def solved_back(a: Any, b: Any, c: Any, ct: Any) -> Any:
    d = np.linalg.solve(a.T, ct)
    return -np.outer(d, np.linalg.solve(a, b)), d, ct / 2.0


def pulled_solve(jitted: bool, a: Any, b: Any, c: Any, ct: Any) -> Any:
    def fun(a: Any, b: Any, c: Any) -> Any:
        return solved(True, a, b, c)[:2]
    return vjp(jit(fun) if jitted else fun, a, b, c)[1]((ct, ct))


def weighted(a: Any, x: Any, y: Any) -> Any:
    """Linear in x and y; its transpose is said, not derived."""
    return linear_call(lambda a, v: (a * v[0] - v[1], 2.0 * a * v[1]),
                       lambda a, ct: (a * ct[0], 2.0 * a * ct[1] - ct[0]), a, (x, y))


def root(a: Any) -> Any:
    """√a, by Newton's method in a loop of unknown length."""
    def newton(f: Any, x: Any) -> Any:
        return lax.fori_loop(0, 30, lambda _, x: x - f(x) / (2 * x), x)

    return lax.custom_root(lambda x: x * x - a, onp.ones_like(a), newton,
                           lambda g, y: y / g(onp.ones_like(y)))


def with_known(t: Any, x: Any) -> Any:
    return t, lax.sin(x)


ruled = custom_jvp(with_known)
ruled.defjvp(lambda primals, ts: (ruled(*primals), (ts[0], lax.cos(primals[1]) * ts[1])))

# Functions of (t, x): t and sin x; only t is linear in t.
PARTLY_KNOWN = {
    "call": jit(with_known), "checkpoint": checkpoint(with_known), "rule": ruled,
    "scan": lambda t, x: lax.scan(lambda c, _: ((c[0], c[1] + lax.sin(x)), None), (t, 0 * x),
                                  length=1)[0],
    "while": lambda t, x: lax.while_loop(lambda s: s[0] < 1, lambda s: (
        s[0] + 1, s[1], s[2] + lax.sin(x)), (0, t, 0 * x), checkpoints=2)[1:],
    "cond": lambda t, x: lax.cond(x[0] < 9, with_known, lambda t, x: (2 * t, x), t, x),
}


def pulled_apart(f: Any, x: Any, ct: Any) -> Any:
    return linear_transpose(jit(lambda t: lax.mul(*f(t, x))), ct)(ct)[0]


ALL = (
    Op("lax.custom_root", np.sqrt, root, (np.array([0.5, 2.0, 7.0]),), "fd", tol=1e-5),
    Op("lax.custom_linear_solve-whole", plain_solved, partial(solved, False), (A, V, V[::-1]),
       tol=1e-4),
    Op("lax.custom_linear_solve-aux", lambda a, b, c: (
        *plain_solved(a, b, c), np.exp(np.linalg.solve(a, b))), partial(solved, True),
       (A, V, V[::-1]), grad=False, tol=1e-4),
    *(Op(f"lax.custom_linear_solve-pulled-{'jit' if j else 'plain'}", solved_back,
         partial(pulled_solve, j), (A, V, V[::-1], V), grad=False, tol=1e-4)
      for j in (False, True)),
    Op("lax.custom_linear_solve-slope", lambda b, t: (
        (np.linalg.solve(A, b), b / 2.0), (np.linalg.solve(A, t), t / 2.0)), lambda b, t: jvp(
            lambda b: solved(True, A.astype(b.dtype), b, b)[:2], (b,), (t,)), (V, V[::-1]),
       grad=False, tol=1e-4),
    Op("linear_call-whole", lambda a, x, y: (a * x - y, 2.0 * a * y), weighted,
       (V, V[::-1], reals(4, seed=2)), grad=False),
    Op("linear_call-pulled", lambda a, x, ct: (a * ct, 2.0 * a * x - ct), lambda a, x, ct:
       vjp(lambda x, y: weighted(a, x, y), x, x)[1]((ct, x)), (V, V, V), grad=False),
    *(Op(f"lax.while_loop-checkpoints={k}", written_out, kept(k), (LIMIT, FACTOR, C), grad=False)
      for k in (1, 3)),
    Op("lax.while_loop-checkpoints-part", lambda a, f, x: written_out(a, f, x)[::-1],
       lambda *xs: kept(2)(*xs)[::-1], (LIMIT, FACTOR, C), grad=False),
    Op("lax.while_loop-checkpoints-forward", lambda a, f, x, ta, tf, tx: slopes(a, f, x, tf, tx),
       lambda *xs: forward(kept(2), *xs), (LIMIT, FACTOR, C, C, -C, 2 * C), grad=False),
    Op("lax.while_loop-checkpoints-linear", lambda a, f, x, ta, tf, tx: slopes(a, f, x, tf, tx),
       lambda *xs: linear(kept(2), *xs), (LIMIT, FACTOR, C, C, -C, 2 * C), grad=False),
    *(Op(f"lax.while_loop-checkpoints-pulled-{'jit' if j else 'plain'}", pulled_back,
         lambda *xs, j=j: pull(j, *xs), (LIMIT, FACTOR, C, C, -C), grad=False)
      for j in (False, True)),
    Op("lax.while_loop-checkpoints-transposed", lambda ct: 8 * ct, lambda ct: linear_transpose(
        lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, 2 * s[1]), (0, x),
                                 checkpoints=2)[1], ct)(ct)[0], (V,), grad=False),
    *(Op(f"linear_transpose-partly-{name}", lambda x, ct: np.sin(x) * ct, partial(pulled_apart, f),
         (V, V[::-1]), grad=False) for name, f in PARTLY_KNOWN.items()),
    Op("lax.custom_linear_solve-loop", lambda x, b: b / x ** 3, lambda x, b:
       cg(lambda v: lax.fori_loop(0, 3, lambda i, c: c * x, v), b)[0], (V * V + 1, V), tol=1e-4),
    Op("lax.while_loop-checkpoints-rounds", plain_rounds, rounds, (np.int32(3), V, V[::-1]),
       tol=5e-5),
    Op("lax.while_loop-checkpoints-curved", lambda f, x: (x * (3 * f * f + 2 * f + 1),
                                                          x * (6 * f + 2)), curved,
       (V, V[::-1]), tol=5e-5),
    Op("lax.scan-checkpoint", lambda c, xs: c * np.prod(np.sin(xs), 0), lambda c, xs: lax.scan(
        lambda c, x: (c * lax.sin(x), None), c, xs, checkpoint=2)[0], (C, reals(5, low=0.3))),
    Op("lax.map-batch_size", np.sin, lambda x: lax.map(lax.sin, x, batch_size=3), (reals(4, 2),)),
)
