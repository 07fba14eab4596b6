"""Rows of `shard_map` and of collectives along axes of a mesh, for a process with eight devices.

tests/rows/test_rows_mesh.py runs them there; `tools/mutate_rules.py`, where there are devices,
makes the rules that they reach wrong in turn.
"""

import numpy as np
from ops import Op, reals

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

X, Y = reals(4, 2), reals(4, 2, seed=1)
CUBE = reals(4, 2, 3)       # of each device along x one [1, 2, 3]
W = reals(2, seed=2)


def mesh(kind=AxisType.Auto):
    return Mesh(np.array(olympus.devices()[:4]).reshape(2, 2), ("x", "y"), (kind,) * 2)


def on(fun, ins, outs, **options):
    """`fun` of each device's parts."""
    return olympus.shard_map(fun, mesh=mesh(), in_specs=ins, out_specs=outs, **options)


def typed(fun, ins, outs):
    """Along explicit axes: terms of sums are not for others."""
    m = mesh(AxisType.Explicit)
    mapped = olympus.shard_map(fun, mesh=m, in_specs=ins, out_specs=outs)
    return lambda *xs: mapped(*[olympus.reshard(onp.asarray(x), NamedSharding(m, s))
                                for x, s in zip(xs, ins, strict=True)])


def halves(x):
    """What the devices along x have, along a first axis."""
    return x.reshape(2, 2, *x.shape[1:])


def unchecked(name, oracle, fun, args, ins, outs, *rest):
    """Two rows: types say what varies, and they do not."""
    return (Op(f"lax.{name}", oracle, on(fun, ins, outs), args, *rest),
            Op(f"lax.unchecked-{name}", oracle, on(fun, ins, outs, check_vma=False), args, *rest))


def body(x, w):
    """Scalars and shared weights, a sum, and two results."""
    scale = onp.sin(w.sum())
    return onp.tanh(x * w) * scale, lax.psum((x * w * scale).sum(), ("x", "y"))


def body_oracle(x, w):
    scale = np.sin(w.sum())
    return np.tanh(x * w) * scale, (x * w * scale).sum() * 2


ALL = (
    *unchecked("shard_map-part", body_oracle, body, (X, W), (P("x"), P()), (P("x"), P())),
    *unchecked("shard_map-loops", lambda x, w: (np.sin(np.sin(x * w) * w), w),
               lambda x, w: (lax.scan(lambda c, _: (onp.sin(c * w), None), x, None, length=2)[0],
                             w * 1), (X, W), (P("x"), P()), (P("x"), P())),
    Op("shard_map-nested", lambda x: np.cos(x.sum(1, keepdims=True)) * x, on(
        lambda x: olympus.shard_map(
            lambda x: onp.cos(lax.psum(x.sum(1, keepdims=True), "y")) * x,
            in_specs=P(None, "y"), out_specs=P(None, "y"))(x), P("x"), P("x"), axis_names={"x"}),
       (X,)),
    Op("shard_map-in-checkpoint", lambda x: np.sin(np.sin(x)), olympus.checkpoint(
        on(lambda x: onp.sin(onp.sin(x)), P("x", "y"), P("x", "y"))), (X,)),
    Op("shard_map-of-integers", lambda x, i: (x * i, i + 1), on(
        lambda x, i: (x * i, i + 1), (P("x"), P("x")), (P("x"), P("x"))),
       (X, np.arange(8).reshape(4, 2))),
    *unchecked("psum", lambda x: halves(x).sum(0), lambda x: lax.psum(x, "x"), (X,), P("x"), P()),
    *unchecked("pmax", lambda x: halves(x).max(0), lambda x: lax.pmax(x, "x"), (X,), P("x"), P()),
    *unchecked("pmin", lambda x: halves(x).min(0), lambda x: lax.pmin(x, "x"), (X,), P("x"), P()),
    *unchecked("psum-of-groups", lambda x: x, lambda x: lax.psum(
        x, "x", axis_index_groups=[[0], [1]]), (X,), P("x"), P("x")),
    *unchecked("all_gather", lambda x: np.concatenate([halves(x)] * 2), lambda x: lax.all_gather(
        x, "x"), (X,), P("x"), P("x")),
    *unchecked("psum_scatter", lambda x: halves(x).sum(0), lambda x: lax.psum_scatter(
        x, "x", tiled=True), (X,), P("x"), P("x")),
    *unchecked("all_to_all", lambda x: halves(x).swapaxes(0, 1).reshape(x.shape),
               lambda x: lax.all_to_all(x, "x", 0, 0), (CUBE,), P("x"), P("x")),
    *unchecked("ppermute", lambda x: np.concatenate([0 * x[:2], x[:2]]), lambda x: lax.ppermute(
        x, "x", [(0, 1)]), (X,), P("x"), P("x")),
    *unchecked("pbroadcast", lambda x: np.concatenate([x[2:]] * 2), lambda x: lax.pbroadcast(
        x, "x", 1), (X,), P("x"), P("x")),
    Op("all_gather-invarying", lambda x: x, on(lambda x: lax.all_gather(
        x, "x", tiled=True, to="invarying"), P("x"), P()), (X,)),
    Op("pcast", lambda x: np.concatenate([x, x]), on(
        lambda x: lax.pcast(x, "x", to="varying") * 1, P(), P("x")), (X,)),
    Op("axis_index", lambda x: x * np.array([0, 0, 1, 1])[:, None], on(
        lambda x: x * lax.axis_index("x"), P("x"), P("x")), (X,)),
    Op("sums-of-shared-weights", lambda x, w: (np.tanh(x * w), 3 * w), typed(
        lambda x, w: (onp.tanh(x * (shared := lax.pcast(w, "x", to="reduced"))), lax.psum(
            lax.pcast(3 * lax.pcast(shared, "x", to="varying"), "x", to="unreduced") / 2, "x")),
        (P("x"), P()), (P("x"), P())), (X, W)),
    Op("sums-gathered-and-scattered", lambda x: np.sin(x) * 4, typed(
        lambda x: lax.psum_scatter(lax.pcast(onp.sin(lax.pcast(lax.all_gather(
            x, "x", tiled=True, to="reduced"), "x", to="varying")) * 2, "x", to="unreduced"),
            "x", tiled=True), (P("x"),), P("x")), (X,)),
)
