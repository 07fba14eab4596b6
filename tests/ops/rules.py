"""Rows for rules that programs meet only in nests: collectives differentiated inside the vmap that
names their axis, derivatives under vmap, linear operations in a tangent's own rule.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.special
import scipy.stats as stats

from olympus import (
    custom_jvp,
    jit,
    jvp,
    lax,
    linear_transpose,
    make_olympuspr,
    random,
    typeof,
    vjp,
    vmap,
)
from olympus import numpy as onp
from olympus._src.core.context import MeshAxis, ctx
from olympus._src.core.evaluate import eval_closed
from olympus._src.lax.linalg.qr import geqp3_p
from olympus._src.lax.sharding import move
from olympus._src.lax.special.zeta import zeta_sum_p
from olympus.memory import Space

from . import Op, reals
from .control import forward, linear
from .lax_collectives import over
from .lax_staged import sunk

V = reals(5)
THREE, CUBE = reals(3, 2), reals(3, 3, 2)
KEY = np.array([1, 2, 3, 4], np.uint32)
# What JAX 0.10.2 gives for the key 1, 2, 3, 4 on a CPU.
PHILOX = np.array([512747620, 1298009047, 1267190206], np.uint32)
# What it gives for random.gamma with the key 3.
SHAPES = np.float32([0.2, 0.9, 3.0, 40.0])
SAMPLES = np.array([0.01851994, 0.50133365, 7.487772, 33.932117])
QUANTILES = stats.gamma(SHAPES.astype("f8")).cdf(SAMPLES)
UP, DOWN = (stats.gamma(SHAPES.astype("f8") + h).ppf(QUANTILES) for h in (1e-4, -1e-4))
QUANTILE_SLOPES = (UP - DOWN) / 2e-4


def adjoint(f: Callable[..., Any], x: Any, ct: Any) -> Any:
    """The transpose of the linear `f`, from its matrix."""
    columns = [f(e.reshape(x.shape)).ravel() for e in np.eye(x.size, dtype=x.dtype)]
    return (np.stack(columns) @ ct.ravel()).reshape(x.shape)


def moves(name: str, f: Callable[..., Any], oracle: Callable[..., Any], x: Any) -> Op:
    """A linear collective and its derivatives, each element on its own; and several at once."""
    def each(x: Any, t: Any) -> Any:
        out, tangent = jvp(f, (x,), (t,))
        return out, tangent, vjp(f, x)[1](tangent)[0], vmap(f)(onp.stack([x, t]))

    def plain(x: Any, t: Any) -> Any:
        return (oracle(x), oracle(t), adjoint(oracle, x, oracle(t)),
                np.stack([oracle(x), oracle(t)], 1))

    return Op(f"{name}-in-vmap", plain, over(each), (x, x[::-1]), grad=False)


def cast_on_devices(shared: Any, t: Any, own: Any) -> Any:
    """What all devices have, cast to vary along a mesh's axis, and its derivatives: staged as a
    program of one device, evaluated with an element for each.
    """
    def cast(x: Any) -> Any:
        return lax.pcast(x, "i", to="varying")

    def on_device(x: Any, t: Any, ct: Any) -> Any:
        return *jvp(cast, (x,), (t,)), vjp(cast, x)[1](ct)[0], vmap(cast)(onp.stack([x, t]))

    mine = typeof(own).update(shape=own.shape[1:], vma=frozenset("i"))
    outer = ctx.axes
    try:
        ctx.axes = {**outer, "i": MeshAxis(len(own))}
        program = make_olympuspr(on_device)(typeof(shared), typeof(t), mine)
    finally:
        ctx.axes = outer
    return tuple(over(lambda x: eval_closed(program, shared, t, x))(own))


def ragged(x: Any, out: Any, t: Any, u: Any) -> Any:
    def each(x, out, t, u, i):
        at, one = onp.arange(3), onp.ones(3, int)

        def f(x, out):
            return lax.ragged_all_to_all(x, out, at, one, i, one, axis_name="i")
        pair = (onp.stack([x, t]), onp.stack([out, u]))
        return (*jvp(f, (x, out), (t, u)), *vjp(f, x, out)[1](u), vmap(f)(*pair))
    return over(each)(x, out, t, u, onp.repeat(onp.arange(3)[:, None], 3, 1))


def plain_ragged(x: Any, out: Any, t: Any, u: Any) -> Any:
    """Rows 0 to 2 of what receives are replaced; row 3 stays."""
    def put(x: Any, out: Any) -> Any:
        return np.concatenate([x.swapaxes(0, 1), out[:, 3:]], 1)
    kept = np.concatenate([0 * u[:, :3], u[:, 3:]], 1)
    return (put(x, out), put(t, u), u[:, :3].swapaxes(0, 1), kept,
            np.stack([put(x, out), put(t, u)], 1))


tripled = lax.composite(lambda x, y: (3 * x - y, y), "test.tripled")


@custom_jvp
def ruled(x: Any, y: Any) -> Any:
    return lax.sin(x) * y


@ruled.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (x, y), (t, u) = primals, tangents
    one, two = tripled(t, u)
    return ruled(x, y), lax.cos(x) * y * (one + two) / 3 + lax.sin(x) * u


def stepped(x: Any) -> Any:
    return jit(lambda x: (lax.sin(x), lax.floor(x)))(x)


def plain_steps(x: Any, t: Any) -> Any:
    return (np.sin(x), np.floor(x)), (np.cos(x) * t, 0 * t)


def sinks(x: Any) -> Any:
    """`x` times the number of sinks that jvp and vmap leave."""
    program = make_olympuspr(vmap(lambda x: jvp(sunk, (x,), (x,))))(x)
    return x * str(program).count("dce_sink")


def factored(x: Any) -> Any:
    return geqp3_p.bind(x)


def plain_factored(x: Any) -> Any:
    (qr, tau), _, order = scipy.linalg.qr(x, pivoting=True, mode="raw")
    return qr, order, tau


ALL = (
    moves("all_gather", lambda x: lax.all_gather(x, "i"), lambda x: np.stack([x] * 3), THREE),
    moves("all_to_all", lambda x: lax.all_to_all(x, "i", 0, 0), lambda x: x.swapaxes(0, 1), CUBE),
    moves("psum_scatter", lambda x: lax.psum_scatter(x, "i"), lambda x: x.sum(0), CUBE),
    moves("ppermute", lambda x: lax.ppermute(x, "i", [(0, 2), (2, 0)]),
          lambda x: np.stack([x[2], 0 * x[0], x[0]]), THREE),
    moves("pbroadcast", lambda x: lax.pbroadcast(x, "i", 1), lambda x: np.stack([x[1]] * 3), THREE),
    Op("pcast-on-devices", lambda x, t, ct: tuple([np.stack([each] * 3) for each in (
        x, t, ct.sum(0), np.stack([x, t]))]), cast_on_devices, (V, V[::-1], reals(3, 5)),
       grad=False),
    Op("ragged_all_to_all-in-vmap", plain_ragged, ragged,
       (CUBE, reals(3, 4, 2), 2 * CUBE, reals(3, 4, 2, seed=1)), grad=False),
    Op("composite-in-rule", lambda x, y: np.sin(x) * y, ruled, (V, V[::-1])),
    Op("composite-transposed", lambda ct, cu: (3 * ct, cu - ct), lambda ct, cu: linear_transpose(
        lambda x, y: tripled(x, y), ct, cu)((ct, cu)), (V, V[::-1])),
    Op("composite-part", lambda x, y: (3 * x - y, y, np.sin(x)),
       lambda x, y: (*tripled(x, y), lax.sin(x)), (V, V[::-1])),
    *(Op(f"jit-steps-{f.__name__}", plain_steps, lambda x, t, f=f: f(stepped, x, t), (V, V[::-1]))
      for f in (forward, linear)),
    Op("dce_sink-kept", lambda x: x, sinks, (V,)),
    Op("rng_bit_generator-philox", lambda key: (key + np.uint32([0, 0, 1, 0]), PHILOX),
       lambda key: lax.rng_bit_generator(key, 3, algorithm="philox"), (KEY,), grad=False),
    Op("lax.scatter_min-lower", lambda x, u: np.minimum(x, [9, u[0], 9, u[1], 9]),
       lambda x, u: onp.asarray(x).at[onp.array([1, 3])].min(u), (reals(5), reals(2) - 1.5)),
    Op("lax.scatter_max-higher", lambda x, u: np.maximum(x, [-9, u[0], -9, u[1], -9]),
       lambda x, u: onp.asarray(x).at[onp.array([1, 3])].max(u), (reals(5), reals(2) + 1.5)),
    Op("geqp3", plain_factored, factored, (reals(4, 3),), grad=False, tol=1e-4),
    Op("random_gamma-slope", lambda a, t: (SAMPLES, QUANTILE_SLOPES * t), lambda a, t: jvp(
        lambda a: random.gamma(random.key(3), a), (a,), (t,)), (SHAPES, reals(4)), grad=False,
       tol=2e-3),
    Op("zeta_sum", scipy.special.zeta, zeta_sum_p.bind, (V + 4, V + 3.5), grad=False),
    Op("device_put-part", lambda x: (x, np.sin(x)), lambda x: (
        move(x, Space.Device, Space.Host), lax.sin(x)), (V,)),
)
