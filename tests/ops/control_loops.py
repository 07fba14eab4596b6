"""Loops that remember little and solvers: what their rules do with carries of several kinds."""

from typing import Any

import numpy as np

from olympus import jit, lax

from . import Op, reals
from .control import C, V, forward, linear, pulled

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


ALL = (
    *(Op(f"lax.while_loop-checkpoints={k}", written_out, kept(k), (LIMIT, FACTOR, C), grad=False)
      for k in (1, 3)),
    Op("lax.while_loop-checkpoints-forward", lambda a, f, x, ta, tf, tx: slopes(a, f, x, tf, tx),
       lambda *xs: forward(kept(2), *xs), (LIMIT, FACTOR, C, C, -C, 2 * C), grad=False),
    Op("lax.while_loop-checkpoints-linear", lambda a, f, x, ta, tf, tx: slopes(a, f, x, tf, tx),
       lambda *xs: linear(kept(2), *xs), (LIMIT, FACTOR, C, C, -C, 2 * C), grad=False),
    *(Op(f"lax.while_loop-checkpoints-pulled-{'jit' if j else 'plain'}", pulled_back,
         lambda *xs, j=j: pull(j, *xs), (LIMIT, FACTOR, C, C, -C), grad=False)
      for j in (False, True)),
    Op("lax.while_loop-checkpoints-rounds", plain_rounds, rounds, (np.int32(3), V, V[::-1]),
       tol=5e-5),
    Op("lax.scan-checkpoint", lambda c, xs: c * np.prod(np.sin(xs), 0), lambda c, xs: lax.scan(
        lambda c, x: (c * lax.sin(x), None), c, xs, checkpoint=2)[0], (C, reals(5, low=0.3))),
    Op("lax.map-batch_size", np.sin, lambda x: lax.map(lax.sin, x, batch_size=3), (reals(4, 2),)),
)
