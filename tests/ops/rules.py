"""Rows for rules that programs meet only in nests: collectives differentiated inside the vmap that
names their axis, derivatives under vmap, linear operations in a tangent's own rule.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import mpmath
import numpy as np
import scipy.linalg
import scipy.special
import scipy.stats as stats

from olympus import (
    ShapeDtypeStruct, checkpoint, custom_jvp, export, jit, jvp, lax, linear_transpose,
    make_olympuspr, numpy as onp, random, typeof, vjp, vmap,
)
from olympus._src.core.context import MeshAxis, ctx
from olympus._src.core.evaluate import eval_closed
from olympus._src.lax.linalg.qr import geqp3_p
from olympus._src.lax.sharding import move
from olympus._src.lax.special.classical import polygamma_product_p
from olympus._src.lax.special.zeta import zeta_sum_p
from olympus._src.random.ciphers import philox2x32_p, philox4x32_p, threefry4x32_p
from olympus.experimental.compute_on import compute_on2
from olympus.experimental.control_deps import control_dep
from olympus.experimental.layout import Layout, with_layout_constraint
from olympus.experimental.scheduling_groups import xla_metadata_call
from olympus.experimental.shard_alike import shard_alike
from olympus.experimental.xla_metadata import set_xla_metadata
from olympus.memory import Space
from olympus.scipy import special

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
# Random123, kat_vectors: key, counter, output (Salmon et al. 2011). Threefry-2x32 is in
# test_random.
PI = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344,
      0xA4093822, 0x299F31D0, 0x082EFA98, 0xEC4E6C89)
ONES = (0xFFFFFFFF,) * 8
KNOWN_ANSWERS = [
    ("philox2x32", (0,), (0, 0), (0xFF1DAE59, 0x6CD10DF2)),
    ("philox2x32", ONES[:1], ONES[:2], (0x2C3F628B, 0xAB4FD7AD)),
    ("philox2x32", PI[2:3], PI[:2], (0xDD7CE038, 0xF62A4C12)),
    ("philox4x32", (0, 0), (0,) * 4, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ("philox4x32", ONES[:2], ONES[:4], (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ("philox4x32", PI[4:6], PI[:4], (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
    ("threefry4x32", (0,) * 4, (0,) * 4, (0x9C6CA96A, 0xE17EAE66, 0xFC10ECD4, 0x5256A7D8)),
    ("threefry4x32", ONES[:4], ONES[:4], (0x2A881696, 0x57012287, 0xF6C7446E, 0xA16A6732)),
    ("threefry4x32", PI[4:], PI[:4], (0x59CD1DBB, 0xB8879579, 0x86B5D00C, 0xAC8B6D84)),
]


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


def ordered(x: Any) -> Any:
    """`x` times the number of demands of order that jvp and vmap leave."""
    def f(x: Any) -> Any:
        control_dep(x, 2 * x)
        return x
    return x * str(make_olympuspr(vmap(lambda x: jvp(f, (x,), (x,))))(x)).count("control_dep")


def factored(x: Any) -> Any:
    return geqp3_p.bind(x)


def plain_factored(x: Any) -> Any:
    (qr, tau), _, order = scipy.linalg.qr(x, pivoting=True, mode="raw")
    return qr, order, tau


def slope(name: str, fun: Callable[..., Any], oracle: Callable[..., Any], x: Any, order: int = 1,
          **settings: Any) -> Op:
    """The derivative of a special function, which has rules of its own."""
    f = fun
    for _ in range(order):
        f = partial(lambda f, x: jvp(f, (x,), (onp.ones_like(x),))[1], f)
    return Op(f"{name}-slope{order}", lambda x: oracle(x.astype("f8")).astype(x.dtype), f, (x,),
              **settings)


def parameter_slope(name: str, place: int, x: Any) -> Op:
    """Of a hypergeometric function in one of its parameters."""
    @np.vectorize
    def oracle(*args: float) -> float:
        def along(moving: Any) -> Any:
            return getattr(mpmath, name)(*[moving if i == place else a
                                           for i, a in enumerate(args)])
        with mpmath.workdps(30):
            return float(mpmath.diff(along, args[place]))

    def operands(x: Any) -> list[Any]:
        parameters = ABOVE, ABOVE[::-1], ABOVE + 1
        return [*(p.astype(x.dtype) for p in parameters[:2 + (name == "hyp2f1")]), x]

    def along(x: Any) -> Any:
        values = operands(x)
        return jvp(lambda a: getattr(special, name)(*values[:place], a, *values[place + 1:]),
                   (values[place],), (onp.ones_like(x),))[1]

    return Op(f"{name}-slope-in-{place}", lambda x: oracle(*operands(x)).astype(x.dtype), along,
              (x,))


def cipher(prim: Any) -> Op:
    """Of the words of keys and counters."""
    keys, counters, wanted = (np.array(column, np.uint32).T for column in zip(
        *(row[1:] for row in KNOWN_ANSWERS if row[0] == prim.name), strict=True))
    return Op(prim.name, lambda *words: [*wanted], lambda keys, counters: prim.bind(
        *keys, *counters), (keys, counters), grad=False)


def sines(x: Any, y: Any) -> Any:
    return lax.sin(x) * y, lax.cos(y)


def plain_sines(x: Any, y: Any) -> Any:
    return np.sin(x) * y, np.cos(y)


def told(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: set_xla_metadata(f(x), k="v")


CALLS = (
    ("compute_on", compute_on2(compute_type="device_host", out_memory_spaces=Space.Device)),
    ("xla_metadata_call", xla_metadata_call(inlineable="false")))
exported = export.export(jit(sines))(*[ShapeDtypeStruct(V.shape, np.float32)] * 2)
ABOVE = np.abs(V) + 0.4

ALL = (
    *(Op(f"{name}-{kind}", plain_sines, f, (V, V[::-1]))
      for name, call in CALLS for kind, f in (
          ("part", call(sines)), ("jit", jit(call(sines))),
          ("checkpoint", checkpoint(call(sines))))),
    *(Op(f"{name}-transposed", lambda ct: 3 * ct, lambda ct, call=call: linear_transpose(
        lambda x: call(lambda x: 3 * x)(x), ct)(ct)[0], (V,))
      for name, call in (*CALLS, ("set_xla_metadata", told))),
    Op("shard_alike", lambda x, y: (np.sin(x), y), lambda x, y: shard_alike(onp.sin(x), y),
       (V, V[::-1])),
    Op("with_layout_constraint", lambda x: np.sin(x) ** 2, lambda x: with_layout_constraint(
        onp.sin(x), Layout((1, 0))) ** 2, (THREE,)),
    Op("call_exported", plain_sines, exported.call, (V, V[::-1]), grad=False),
    *map(cipher, (threefry4x32_p, philox2x32_p, philox4x32_p)),
    slope("erfcx", special.erfcx, lambda x: 2 * x * scipy.special.erfcx(x) - 2 / np.sqrt(np.pi), V,
          tol=1e-4),
    slope("dawsn", special.dawsn, lambda x: 1 - 2 * x * scipy.special.dawsn(x), V),
    slope("spence", special.spence, lambda x: np.log(x) / (1 - x), ABOVE),
    slope("polygamma", lambda x: special.polygamma(1, x), lambda x: scipy.special.polygamma(2, x),
          ABOVE, tol=1e-4),
    slope("ndtr", special.ndtr, scipy.stats.norm.pdf, V),
    slope("log_ndtr", special.log_ndtr, lambda x: np.exp(
        scipy.stats.norm.logpdf(x) - scipy.special.log_ndtr(x)), V),
    slope("shi", lambda x: special.sici(x)[0], lambda x: np.sin(x) / x, V),
    slope("shi", lambda x: special.sici(x)[0], lambda x: (np.cos(x) - np.sin(x) / x) / x, V, 2),
    *(slope(f"fresnel-{i}", lambda x, i=i: special.fresnel(x)[i],
            lambda x, f=f: f(0.5 * np.pi * x * x), V) for i, f in enumerate((np.sin, np.cos))),
    *(parameter_slope("hyp1f1", i, V) for i in range(2)),
    *(parameter_slope("hyp2f1", i, V / 4) for i in range(3)),
    Op("set_xla_metadata", lambda x: np.sin(x) ** 2, lambda x: told(onp.sin)(x) ** 2, (V,)),
    Op("control_dep-kept", lambda x: x, ordered, (V,)),
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
    Op("polygamma_product", lambda m, x: scipy.special.polygamma(m, x).astype(x.dtype),
       polygamma_product_p.bind, (np.round(V + 4), V + 3.5), grad=False),
    Op("zeta_sum", scipy.special.zeta, zeta_sum_p.bind, (V + 4, V + 3.5), grad=False),
    Op("device_put-part", lambda x: (x, np.sin(x)), lambda x: (
        move(x, Space.Host), lax.sin(x)), (V,)),
)
