"""Rows for what carries a program: loops, branches, calls, custom rules, checkpoint, callbacks.

Oracles are Python loops and branches in NumPy. `-part` marks rows whose results need different
equations. Rows that differentiate inside themselves say what the derivative is.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import olympus
from olympus import (
    checkpoint, checkpoint_policies, custom_jvp, custom_vjp, jit, jvp, lax, linearize,
    pure_callback, vjp, vmap,
)
from olympus._src.lax.barriers import copy
from olympus.ad_checkpoint import checkpoint_name
from olympus.experimental import io_callback

from . import Op, reals

C, W, V = np.array(0.7), reals(3, seed=1), reals(4, low=-0.9, high=0.8)
M, N = reals(4, 3), reals(4, 3, seed=1)


def looped(step: Callable[..., Any], carry: Any, xs: Any, reverse: bool = False) -> Any:
    """scan, written out."""
    order = range(len(xs))[::-1 if reverse else 1]
    ys = []
    for i in order:
        carry, y = step(carry, xs[i])
        ys.append(y)
    ys = ys[::-1] if reverse else ys
    return carry, tuple(np.stack(column) for column in zip(*ys, strict=True))


def parts(m: Any) -> Callable[..., Any]:
    """A step with two carries and two results per round that depend on different things."""
    def step(w: Any, carry: Any, x: Any) -> Any:
        c, d = carry
        return (m.sin(c) + w * x, d * m.cos(x)), (d * d, x * m.exp(x))
    return step


def flat(out: Any) -> list[Any]:
    return [*out[0], *out[1]]


def scanned(c: Any, d: Any, w: Any, xs: Any) -> Any:
    return flat(lax.scan(partial(parts(lax), w), (c, d), xs, unroll=2))


def counted(carry: Any, x: Any) -> Any:
    i, c = carry
    return (i + 1, c * x), (c * i, i)


def bounded(limit: Any, factor: Any, x: Any) -> Any:
    return lax.while_loop(lambda v: v[0] < limit, lambda v: (v[0] * factor, v[1] + v[0] * factor),
                          (x, x))


def plain_bounded(limit: Any, factor: Any, x: Any) -> Any:
    total = x
    while x < limit:
        x = x * factor
        total = total + x
    return x, total


def bounded_slope(limit: Any, factor: Any, x: Any, tf: Any, tx: Any) -> Any:
    total, t, tt = x, tx, tx
    while x < limit:
        x, t = x * factor, t * factor + x * tf
        total, tt = total + x, tt + t
    return (x, total), (t, tt)


def forward(f: Any, *xs: Any) -> Any:
    half = len(xs) // 2
    return jvp(f, xs[:half], xs[half:])


def linear(f: Any, *xs: Any) -> Any:
    half = len(xs) // 2
    out, push = linearize(f, *xs[:half])
    return out, push(*xs[half:])


def chosen(p: Any, x: Any, y: Any) -> Any:
    return lax.cond(p, lambda x, y: (lax.sin(x) * y, y * y, lax.exp(x)),
                    lambda x, y: (x * lax.cos(y) * y, lax.sin(y) * x, x * x), x, y)


def plain_chosen(p: Any, x: Any, y: Any) -> Any:
    return ((np.sin(x) * y, y * y, np.exp(x)) if p else
            (x * np.cos(y) * y, np.sin(y) * x, x * x))


def switched(i: Any, x: Any) -> Any:
    return lax.switch(i, [lambda x: x, lax.sin, lambda x: lax.sin(x) * lax.cos(x)], x)


def pair(m: Any, x: Any, y: Any) -> Any:
    return m.sin(x) * y, m.cos(y) * y * y


@custom_jvp
def ruled(x: Any, y: Any) -> Any:
    return lax.sin(x) * y, lax.cos(y) * y * y


@ruled.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (x, y), (t, u) = primals, tangents
    return pair(lax, x, y), (lax.cos(x) * y * t + lax.sin(x) * u,
                             (2 * y * lax.cos(y) - y * y * lax.sin(y)) * u)


@custom_vjp
def reversed_rule(x: Any, y: Any) -> Any:
    return lax.sin(x) * y, lax.cos(y) * y * y


reversed_rule.defvjp(
    lambda x, y: (pair(lax, x, y), (x, y)),
    lambda res, cts: (lax.cos(res[0]) * res[1] * cts[0], lax.sin(res[0]) * cts[0] + (
        2 * res[1] * lax.cos(res[1]) - res[1] * res[1] * lax.sin(res[1])) * cts[1]))


def pulled(f: Any, x: Any, y: Any, a: Any, b: Any) -> Any:
    return vjp(f, x, y)[1]((a, b))


def plain_pulled(x: Any, y: Any, a: Any, b: Any) -> Any:
    return np.cos(x) * y * a, np.sin(x) * a + (2 * y * np.cos(y) - y * y * np.sin(y)) * b


tripled = custom_jvp(lambda x, y: 3 * x - 2 * y)
tripled.defjvp(lambda primals, ts: (tripled(*primals), tripled(*ts)))
doubled = custom_vjp(lambda x, y: 3 * x - 2 * y)
doubled.defvjp(lambda x, y: (doubled(x, y), None), lambda _, ct: (3 * ct, -2 * ct))


def transposed(f: Any, ct: Any) -> Any:
    return olympus.linear_transpose(jit(f), ct, ct)(ct)


def pulled_through_vmap(x: Any, y: Any, a: Any, b: Any) -> Any:
    """vmap of a tangent map that is transposed only afterwards."""
    def push(x: Any, y: Any, t: Any, u: Any) -> Any:
        return jvp(reversed_rule, (x, y), (t, u))[1]
    return olympus.linear_transpose(lambda t, u: vmap(push, in_axes=(0, None, 0, None))(x, y, t, u),
                                    x, y)((a, b))


def plain_through_vmap(x: Any, y: Any, a: Any, b: Any) -> Any:
    tx, ty = plain_pulled(x, y, a, b)
    return tx, ty.sum(0)


def remembered(policy: Any, x: Any, y: Any) -> Any:
    def body(x: Any, y: Any) -> Any:
        kept = checkpoint_name(lax.sin(x), "kept")
        return lax.sin(kept * y) * y, lax.exp(y) * y
    return checkpoint(body, policy=policy)(x, y)


def plain_remembered(x: Any, y: Any) -> Any:
    return np.sin(np.sin(x) * y) * y, np.exp(y) * y


def along(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of one element with the axis name "i", mapped."""
    return vmap(f, axis_name="i")


def picked(where: Callable[..., Any]) -> Callable[..., Any]:
    """Along axis 0, the elements of `t` at which `x` is extreme."""
    return lambda x, t: np.take_along_axis(t, where(x, 0)[None], 0)[0]


def named_everywhere(x: Any, c: Any) -> Any:
    """A collective in each kind of body, of values that the axis maps and of one it does not."""
    def f(x: Any) -> Any:
        part = jit(lambda v: lax.psum(v, "i"))(x * c)
        part = part + lax.scan(lambda a, v: (a * lax.psum(v, "i"), None), x, c * W[:2])[0]
        part = part + lax.cond(True, lambda v: v * lax.psum(c, "i"), lambda v: v, x)
        return part + checkpoint(lambda v: lax.sin(v) * lax.psum(v, "i"))(x)
    return along(f)(x)


def plain_named(x: Any, c: Any) -> Any:
    n = len(x)
    part = (x * c).sum() + x * (n * c * W[0]) * (n * c * W[1])
    return part + x * n * c + np.sin(x) * x.sum()


def on_host(method: str, x: Any, y: Any) -> Any:
    shape = np.broadcast_shapes(np.shape(x), np.shape(y))
    return pure_callback(lambda x, y: np.asarray(np.sin(x) * y), olympus.ShapeDtypeStruct(
        shape, x.dtype), x, y, vmap_method=method)


LOOPS = (
    Op("lax.scan-part", lambda c, d, w, xs: flat(looped(partial(parts(np), w), (c, d), xs)),
       scanned, (W, W, W, M)),
    Op("lax.scan-reverse-jit-part", lambda c, d, w, xs: flat(looped(
        partial(parts(np), w), (c, d), xs, True)), jit(lambda c, d, w, xs: flat(lax.scan(
            partial(parts(lax), w), (c, d), xs, reverse=True))), (W, W, W, M)),
    Op("lax.scan-counter", lambda c, xs: (c * np.prod(xs), looped(
        counted, (np.int32(0), c), xs)[1]), lambda c, xs: (lambda out: (out[0][1], out[1]))(
            lax.scan(counted, (np.int32(0), c), xs)), (C, V)),
    Op("lax.scan-jit", lambda c, xs: looped(lambda c, x: (np.sin(c) * x + c, (c,)), c, xs)[0],
       lambda c, xs: lax.scan(lambda c, x: (jit(lambda c, x: lax.sin(c) * x)(c, x) + c, None),
                              c, xs)[0], (C, V)),
    Op("lax.map", np.sin, lambda x: lax.map(lax.sin, x), (M,)),
    Op("lax.associative_scan", lambda x: np.cumprod(x, 0),
       lambda x: lax.associative_scan(lax.mul, x), (reals(5, 2),)),
    Op("lax.fori_loop", lambda x, f: x * f ** 6, lambda x, f: lax.fori_loop(
        0, 4, lambda i, c: c * f * lax.select(i > 1, f, f / f), x), (V, V[::-1])),
    Op("lax.while_loop", plain_bounded, bounded, (np.array(9.0), np.array(1.7), C), grad=False),
    Op("lax.while_loop-forward", lambda a, f, x, ta, tf, tx: bounded_slope(a, f, x, tf, tx),
       partial(forward, bounded), (np.array(9.0), np.array(1.7), C, C, -C, 2 * C), grad=False),
    Op("lax.while_loop-linear", lambda a, f, x, ta, tf, tx: bounded_slope(a, f, x, tf, tx),
       jit(partial(linear, jit(bounded))), (np.array(9.0), np.array(1.7), C, C, -C, 2 * C),
       grad=False),
)

BRANCHES = (
    *(Op(f"lax.cond-{p}-part", plain_chosen, chosen, (np.bool_(p), V, V[::-1]))
      for p in (True, False)),
    *(Op(f"lax.switch-{i}", lambda i, x: (x, np.sin(x), np.sin(x) * np.cos(x))[i], switched,
         (np.int32(i), V)) for i in (0, 2)),
    Op("jit-cond", lambda p, x, y: sum(plain_chosen(p, x, y)),
       jit(lambda p, x, y: sum(chosen(p, x, y))), (np.bool_(True), V, V[::-1])),
)

CALLS = (
    Op("jit-part", partial(pair, np), jit(partial(pair, lax)), (V, V[::-1])),
    Op("jit-nested", lambda x, y: pair(np, *pair(np, x, y)), jit(lambda x, y: jit(
        partial(pair, lax))(*jit(partial(pair, lax))(x, y))), (V, V[::-1])),
    Op("custom_jvp", partial(pair, np), ruled, (V, V[::-1])),
    Op("custom_jvp-jit-part", partial(pair, np), jit(ruled), (V, V[::-1])),
    Op("custom_vjp-jit-part", partial(pair, np), jit(reversed_rule), (V, V[::-1]), grad=False),
    Op("custom_jvp-transposed", lambda ct: (3 * ct, -2 * ct), partial(transposed, tripled), (V,),
       grad=False),
    Op("custom_jvp-part", lambda x, y: (*pair(np, x, y), np.exp(x)),
       lambda x, y: (*ruled(x, y), lax.exp(x)), (V, V[::-1])),
    Op("custom_vjp-part", lambda x, y: (*pair(np, x, y), np.exp(x)),
       lambda x, y: (*reversed_rule(x, y), lax.exp(x)), (V, V[::-1]), grad=False),
    Op("custom_vjp", partial(pair, np), reversed_rule, (V, V[::-1]), grad=False),
    Op("custom_vjp-pulled", plain_pulled, partial(pulled, reversed_rule), (V, V[::-1], V, V),
       grad=False),
    Op("custom_vjp-pulled-jit", plain_pulled, partial(pulled, jit(reversed_rule)),
       (V, V[::-1], V, V), grad=False),
    Op("custom_vjp-pulled-vmap", plain_pulled, partial(pulled, vmap(reversed_rule)),
       (V, V[::-1], V, V), grad=False),
    Op("custom_vjp-transposed", lambda ct: (3 * ct, -2 * ct), partial(transposed, doubled), (V,),
       grad=False),
    Op("custom_vjp-vmapped-tangent", plain_through_vmap, pulled_through_vmap,
       (V, C, V, V[::-1]), grad=False),
    Op("checkpoint-part", plain_remembered, partial(remembered, None), (V, V[::-1])),
    Op("checkpoint-names", plain_remembered, partial(
        remembered, checkpoint_policies.save_only_these_names("kept")), (V, V[::-1])),
    Op("checkpoint-scan", lambda c, xs: looped(lambda c, x: (np.sin(c) * x, (c,)), c, xs)[0],
       lambda c, xs: lax.scan(checkpoint(lambda c, x: (lax.sin(c) * x, None)), c, xs)[0], (C, V)),
    Op("checkpoint_name-transposed", lambda ct: 3 * ct, lambda ct: olympus.linear_transpose(
        lambda x: 3 * checkpoint_name(x, "kept"), ct)(ct)[0], (V,), grad=False),
    Op("copy", np.copy, copy, (V,)),
)

SIDES = (
    *(Op(f"pure_callback-{method}", lambda x, y: np.sin(x) * y, partial(on_host, method),
         (V, V[::-1]), grad=False)
      for method in ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all")),
    Op("io_callback", np.sin, lambda x: io_callback(np.sin, x, x), (V,), grad=False),
)

NAMED = (
    Op("lax.psum", lambda x: x / x.sum(0), along(lambda x: x / lax.psum(x, "i")), (M,)),
    Op("lax.psum-two", lambda x: x * x.sum() + x.sum(0), vmap(vmap(lambda x: x * lax.psum(
        x, ("i", "j")) + lax.psum(x, "i"), axis_name="j"), axis_name="i"), (M,)),
    Op("lax.pmean", lambda x: np.tile(x.mean(0), (4, 1)), along(lambda x: lax.pmean(x, "i")), (M,)),
    Op("lax.pmax", lambda x: np.exp(x - x.max(0)), along(
        lambda x: lax.exp(x - lax.pmax(x, "i"))), (M,)),
    Op("lax.pmin", lambda x: x * x.min(0), along(lambda x: x * lax.pmin(x, "i")), (M,)),
    Op("lax.axis_index", lambda x: x * np.arange(4, dtype=x.dtype)[:, None], along(
        lambda x: x * lax.convert_element_type(lax.axis_index("i"), x.dtype)), (M,)),
    Op("lax.pmax-inner", lambda x: x.max(0) * x - x.min(0), along(vmap(
        lambda x: lax.pmax(x, "i") * x - lax.pmin(x, "i"))), (M,)),
    *(Op(f"lax.{f.__name__}-slope", lambda x, t, pick=pick: (
        np.tile(pick(x, x), (4, 1)), np.tile(pick(x, t), (4, 1))),
         along(partial(forward, partial(f, axis_name="i"))), (M, N), grad=False)
      for f, pick in ((lax.psum, lambda x, t: t.sum(0)), (lax.pmax, picked(np.argmax)),
                      (lax.pmin, picked(np.argmin)))),
    Op("lax.psum-transposed", lambda x, ct: 2 * x * ct.sum(0), along(lambda x, ct: vjp(
        lambda x: lax.psum(x * x, "i"), x)[1](ct)[0]), (M, N), grad=False),
    Op("psum-in-bodies", plain_named, named_everywhere, (V, C), tol=1e-4),
)

ALL = (*LOOPS, *BRANCHES, *CALLS, *SIDES, *NAMED)
