"""Rows for functions with rules under vmap, and for derivatives that custom rules do not know."""

from functools import partial
from typing import Any

import numpy as np

from olympus import (
    checkpoint, custom_jvp, custom_vjp, grad, jit, jvp, lax, linear_transpose, vjp, vmap,
)
from olympus.custom_batching import custom_vmap

from . import Op, Refusal, reals

V = reals(3, low=0.3, high=1.7, seed=2)
M = reals(4, 3, low=0.3, high=1.7, seed=5)


def pair(m: Any, x: Any, y: Any) -> Any:
    return m.sin(x) * y, m.cos(y) * y * y


@custom_vmap
def ruled(x: Any, y: Any) -> Any:
    return pair(lax, x, y)


@ruled.def_vmap
def _(size: int, batched: Any, x: Any, y: Any) -> Any:
    """The function, by other operations: y * y * cos(y) of what is not mapped is not, either."""
    second = y * (y * lax.cos(y))
    if batched[0] and not batched[1]:
        y = lax.broadcast(y, (size,))
    elif batched[1] and not batched[0]:
        x = lax.broadcast(x, (size,))
    return (y * lax.sin(x), second), (True, batched[1])


def pulled(f: Any, x: Any, y: Any, a: Any, b: Any) -> Any:
    return vjp(f, x, y)[1]((a, b))


def plain_pulled(x: Any, y: Any, a: Any, b: Any) -> Any:
    return np.cos(x) * y * a, np.sin(x) * a + (2 * y * np.cos(y) - y * y * np.sin(y)) * b


def pushed(f: Any, x: Any, y: Any, t: Any, u: Any) -> Any:
    return jvp(f, (x, y), (t, u))[1]


def plain_pushed(x: Any, y: Any, t: Any, u: Any) -> Any:
    return (np.cos(x) * y * t + np.sin(x) * u,
            (2 * y * np.cos(y) - y * y * np.sin(y)) * u)


straight = custom_vmap(lambda x, y: 3 * x - 2 * y)
straight.def_vmap(lambda size, batched, x, y: (3 * x - 2 * y, True))


def again(x: Any, a: Any) -> Any:
    """The tangent map of a gradient of one argument, transposed: the second derivative."""
    def slope(x: Any) -> Any:
        return vjp(lambda x: ruled(x, V.astype(x.dtype))[0], x)[1](a)[0]

    return vjp(slope, x)[1](a)[0]


def half(x: Any, y: Any) -> Any:
    """Of one output, through one argument."""
    return vjp(lambda x: jit(ruled)(x, y)[0], x)[1](y)[0]


@custom_vjp
def optimized(x: Any, y: Any) -> Any:
    return pair(lax, x, y)


optimized.defvjp(
    lambda x, y: (pair(lax, x, y), (x, y, lax.sin(x))),
    lambda res, cts: (lax.cos(res[0]) * res[1] * cts[0], res[2] * cts[0] + (
        2 * res[1] * lax.cos(res[1]) - res[1] * res[1] * lax.sin(res[1])) * cts[1]),
    optimize_remat=True)
halved = custom_vjp(lambda x: x / 2)
halved.defvjp(lambda x: (x / 2, x), lambda res, ct: (ct / 2,), optimize_remat=True)


def both(x: Any, y: Any, a: Any, b: Any) -> Any:
    out, pull = vjp(checkpoint(optimized), x, y)
    return (*out, *pull((a, b)))


def ahead(x: Any) -> Any:
    """Outputs and residuals, nothing pulled back."""
    return vjp(halved, x)[0]


halving = custom_jvp(lambda x: x / 2)
halving.defjvp(lambda primals, tangents: (halving(*primals), jit(ahead)(*tangents)))


ROWS = (
    Op("custom_vjp-optimized-part", partial(pair, np), lambda x, y: vjp(optimized, x, y)[0],
       (V, V[::-1])),
    Op("custom_vjp-optimized-rule", lambda x: x / 2, halving, (V,)),
    Op("custom_vjp-optimized", lambda x, y, a, b: (*pair(np, x, y), *plain_pulled(x, y, a, b)),
       both, (V, V[::-1], V, 2 * V)),
    Op("custom_vjp-optimized-jit", lambda x, y, a, b: (
        *pair(np, x, y), *plain_pulled(x, y, a, b)), jit(both), (V, V[::-1], V, 2 * V)),
    Op("custom_vjp-optimized-ahead", lambda x, ct: (x / 2, ct / 2), lambda x, ct: (
        jit(ahead)(x), *linear_transpose(jit(ahead), x)(ct)), (V, V[::-1])),
    Op("custom_vmap", partial(pair, np), ruled, (V, V[::-1])),
    Op("custom_vmap-jit", partial(pair, np), jit(ruled), (V, V[::-1])),
    Op("custom_vmap-part", lambda x, y: (*pair(np, x, y), np.exp(x)),
       lambda x, y: (*jit(ruled)(x, y), lax.exp(x)), (V, V[::-1])),
    Op("custom_vmap-one-output", lambda x, y: np.sin(x) * y,
       lambda x, y: jit(lambda x, y: jit(ruled)(x, y)[0])(x, y), (V, V[::-1])),
    *(Op(f"custom_vmap-mapped-{'jit' if j else 'plain'}", partial(pair, np),
         vmap(jit(ruled) if j else ruled), (M, M[::-1])) for j in (False, True)),
    Op("custom_vmap-mapped-first", partial(pair, np), lambda x, y: (
        vmap(ruled, (0, None))(x, y)[0], ruled(y, y)[1]), (M, V)),
    Op("custom_vmap-mapped-second", partial(pair, np), vmap(ruled, (None, 0)), (V, M)),
    *(Op(f"custom_vmap-pulled-{name}", plain_pulled, partial(pulled, f), (V, V[::-1], V, 2 * V),
         grad=False) for name, f in [("plain", ruled), ("jit", jit(ruled)), ("vmap", vmap(ruled))]),
    Op("custom_vmap-pulled-mapped", plain_pulled, vmap(partial(pulled, ruled)),
       (M, M[::-1], M, 2 * M)),
    Op("custom_vmap-pulled-cotangents", lambda x, y, a, b: plain_pulled(x, y, a, b),
       lambda x, y, a, b: vmap(vjp(ruled, x, y)[1])((a, b)), (V, V[::-1], M, 2 * M), grad=False),
    Op("custom_vmap-pushed", plain_pushed, partial(pushed, ruled), (V, V[::-1], V, 2 * V)),
    Op("custom_vmap-pushed-mapped", plain_pushed, vmap(partial(pushed, jit(ruled))),
       (M, M[::-1], M, 2 * M)),
    Op("custom_vmap-transposed", lambda ct: (3 * ct, -2 * ct),
       lambda ct: linear_transpose(jit(straight), ct, ct)(ct), (V,), grad=False),
    Op("custom_vmap-again", lambda x, a: -np.sin(x) * V * a * a, vmap(again), (M, M[::-1])),
    Op("custom_vmap-half", lambda x, y: np.cos(x) * y * y, half, (V, V[::-1]), grad=False),
)


def closing(w: Any) -> Any:
    h = custom_jvp(lambda x: x * w)
    h.defjvp(lambda primals, tangents: (h(*primals), 3 * tangents[0] * w))
    return jit(h)


def outer(x: Any) -> Any:
    return closing(x)(2 * x)


REFUSALS = tuple(
    Refusal(f"custom_jvp-closing-{name}", call, TypeError, "custom_jvp .*: differentiated with "
            "respect to a value that the function or its rule closes over", (np.float32(0.5),))
    for name, call in [
        ("jvp", lambda x: jvp(outer, (x,), (x,))), ("grad", grad(outer)),
        ("twice", lambda x: jvp(lambda x: jvp(outer, (x,), (x,))[1], (x,), (x,))),
        ("linear", lambda x: jvp(lambda t: jvp(outer, (x,), (t,))[1], (x,), (x,))),
        ("mapped", lambda x: vmap(grad(outer))(x[None])),
        ("mapped-jvp", lambda x: vmap(lambda x: jvp(outer, (x,), (x,))[1])(x[None]))])

ALL = (*ROWS, *REFUSALS)
