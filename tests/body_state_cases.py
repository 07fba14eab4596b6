"""Every primitive that carries a program, on operands of every state of type, beside one device.

A *body* is a program of some rows `h` and three layers of weights `ws`, which meet in a primitive
with a body: `step(h, w)` is what happens within. A *state* says which types the operands have and
how they come to be so. Each pair gives a value, first and second derivatives, on several devices
and on one, where nothing has a mesh.
"""

import functools
import json
import sys

import numpy as np

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus.custom_batching import custom_vmap
from olympus.sharding import AxisType, Mesh, PartitionSpec as P

LAYERS, ROWS, WIDTH = 3, 8, 2


# Bodies: (step, h, ws) -> an array that the loss reads -------------------------------------

def scan(step, h, ws, **options):
    return lax.scan(lambda h, w: (step(h, w), None), h, ws, **options)[0]


def scan_ys(step, h, ws, **options):
    """Rows that the carry is after, and before, each layer."""
    return lax.scan(lambda h, w: (step(h, w), (h, step(h, w))), h, ws, **options)[1]


def scan_passes(step, h, ws):
    """A carry that never changes, and one that counts."""
    def body(c, w):
        n, h = c
        return (n + 1., h), (n * step(h, w), w)

    return lax.scan(body, (1., h), ws)[1][0]


def scan_consts(step, h, ws):
    w = ws.sum(0)
    return lax.scan(lambda h, _: (step(h, w), step(h, w)), h, None, length=LAYERS)


def scan_of_scans(step, h, ws):
    return lax.scan(lambda h, _: (scan(step, h, ws), None), h, None, length=2)[0]


def scan_of_conds(step, h, ws):
    return lax.scan(lambda h, w: (lax.cond(h.ndim > 1, step, lambda h, w: h, h, w), None),
                    h, ws)[0]


def scan_of_checkpoints(step, h, ws):
    return scan(olympus.checkpoint(step), h, ws)


def mapped(step, h, ws):
    return lax.map(lambda w: step(h, w), ws)


def fori(step, h, ws):
    w = ws.sum(0)
    return lax.fori_loop(0, LAYERS, lambda i, h: step(h, w), h)


def while_(step, h, ws, **options):
    w = ws.sum(0)
    return lax.while_loop(lambda c: c[0] < 2., lambda c: (c[0] + 1., step(c[1], w), c[2]),
                          (0., h, w), **options)[1]


def cond(step, h, ws):
    w = ws.sum(0)
    return lax.cond(onp.int32(1) > 0, lambda h: step(h, w), lambda h: h, h)


def switch(step, h, ws):
    w = ws.sum(0)
    return lax.switch(1, [lambda h, w: h, step, lambda h, w: step(step(h, w), w)], h, w)


def call(step, h, ws):
    w, once = ws.sum(0), olympus.jit(step)
    return once(once(h, w), w)


def checkpoint(step, h, ws):
    return olympus.checkpoint(step)(olympus.checkpoint(lambda h, w: h)(h, ws), ws.sum(0))


def custom_jvp(step, h, ws):
    f = olympus.custom_jvp(step)
    f.defjvp(lambda primals, tangents: olympus.jvp(step, primals, tangents))
    return f(h, ws.sum(0))


def custom_vjp(step, h, ws):
    f = olympus.custom_vjp(step)
    f.defvjp(lambda h, w: olympus.vjp(step, h, w), lambda pull, ct: pull(ct))
    return f(h, ws.sum(0))


def batched(step, h, ws):
    return olympus.vmap(step, (None, 0))(h, ws)


def batched_scan(step, h, ws):
    return olympus.vmap(lambda scale: scan(lambda h, w: step(h, scale * w), h, ws))(
        onp.array([1., 2.], "float32"))


def custom_batched(step, h, ws):
    f = custom_vmap(step)
    f.def_vmap(lambda size, mapped, h, w: (
        olympus.vmap(step, [0 if m else None for m in mapped])(h, w), True))
    return olympus.vmap(f, (None, 0))(h, ws)


def associative(step, h, ws):
    return lax.associative_scan(onp.add, olympus.vmap(step, (None, 0))(h, ws))


def reduced_by_a_body(step, h, ws):
    terms = olympus.vmap(step, (None, 0))(h, ws)
    return lax.reduce(terms, np.float32(0), lambda a, b: a + b, (0,))


BODIES = {
    "scan": scan, "scan-ys": scan_ys, "scan-passes": scan_passes, "scan-consts": scan_consts,
    "scan-reverse": functools.partial(scan_ys, reverse=True),
    "scan-unroll": functools.partial(scan_ys, unroll=2),
    "scan-of-scans": scan_of_scans, "scan-of-conds": scan_of_conds,
    "scan-of-checkpoints": scan_of_checkpoints, "map": mapped, "fori": fori,
    "while": functools.partial(while_, checkpoints=2), "while-forward": while_, "cond": cond,
    "switch": switch, "call": call, "checkpoint": checkpoint, "custom_jvp": custom_jvp,
    "custom_vjp": custom_vjp, "vmap": batched, "vmap-of-scan": batched_scan,
    "custom_vmap": custom_batched, "associative_scan": associative, "reduce": reduced_by_a_body,
}
FORWARD = {"while-forward"}     # has no reverse mode


# States: types of h and of ws --------------------------------------------------------------------

def curved(h, w):
    return onp.tanh(h * w) + h * 0.5


def straight(h, w):
    """What sums that are not taken yet go through."""
    return h * 0.5 + w


X = "x"
STATES = {      # of h, of a layer; the step; whether a layer has all rows
    "replicated": (P(), P(), curved, False),
    "cut": (P(X), P(X), curved, True),
    "cut-h": (P(X), P(), curved, False),
    "reduced": (P(X), P(reduced={X}), curved, False),
    "unreduced": (P(unreduced={X}), P(unreduced={X}), straight, True),
    "varying": (P(X), P(), curved, False),
    "varying-cut": (P(X), P(X), curved, True),
}


def operands(state, seed=0):
    """h and ws, and a direction for each."""
    rng = np.random.default_rng(seed)
    layer = (ROWS, WIDTH) if STATES[state][3] else (WIDTH,)
    shapes = [(ROWS, WIDTH), (LAYERS, *layer)] * 2
    return [rng.uniform(-1, 1, s).astype("float32") for s in shapes]


def stacked(spec):
    return spec.update(partitions=(None, *spec))


def results(body, state, mesh, args):
    """The value of a body, its gradients, and the gradients of these along a direction."""
    specs, step = STATES[state][:2], STATES[state][2]

    def value(h, ws):
        def parts(h, ws):
            return olympus.tree.leaves(BODIES[body](step, h, ws))

        if mesh is not None and state.startswith("varying"):
            return sum(olympus.shard_map(
                lambda h, ws: [lax.psum(onp.sin(x).sum(), X) for x in parts(h, ws)],
                in_specs=(specs[0], stacked(specs[1])), out_specs=P())(h, ws))
        return sum(onp.sin(x).sum() for x in whole(parts(h, ws)))

    def whole(xs):
        return xs if mesh is None else [olympus.reshard(x, P()) for x in xs]

    h, ws, dh, dws = args
    if mesh is not None:
        h, dh = (olympus.reshard(x, specs[0]) for x in (h, dh))
        ws, dws = (olympus.reshard(x, stacked(specs[1])) for x in (ws, dws))
    if body in FORWARD:
        first, second = olympus.jvp(lambda h, ws: olympus.jvp(value, (h, ws), (dh, dws)),
                                    (h, ws), (dh, dws))
        return [*first, second[1]]

    def along(h, ws):
        out, found = olympus.value_and_grad(value, (0, 1))(h, ws)
        found = whole(found)
        return sum((x * y).sum() for x, y in zip(found, args[2:], strict=True)), (out, found)

    second, (out, first) = olympus.grad(along, (0, 1), has_aux=True)(h, ws)
    return [out, *first, *whole(second)]


def every(state, mesh, args, bodies):
    """The results of bodies, and why others are refused."""
    found, refused = {}, {}
    for body in bodies:
        try:
            found[body] = results(body, state, mesh, args)
        except (TypeError, ValueError, NotImplementedError) as error:
            refused[body] = f"{type(error).__name__}: {error}"
    return found, refused


def compare(state, count, mode="jit", bodies=tuple(BODIES), seed=0):
    """Which bodies agree with one device, in what others differ, and why others are refused.

    All bodies are one program, unless the mode is "eager".
    """
    args, notes = operands(state, seed), []

    def run(mesh, *args):
        found, refused = every(state, mesh, args, bodies)
        notes.append(refused)
        return found

    alone = olympus.jit(functools.partial(run, None))(*args)
    mesh = Mesh(np.array(olympus.devices()[:count]), (X,), (AxisType.Explicit,))
    with olympus.set_mesh(mesh):
        f = functools.partial(run, mesh)
        found = (olympus.jit(f) if mode == "jit" else f)(*args)
    assert not notes[0], notes[0]
    differ = {}
    for body, outs in found.items():
        for i, (x, y) in enumerate(zip(outs, alone[body], strict=True)):
            if not np.allclose(x, y, rtol=2e-4, atol=2e-5):
                differ[body] = f"result {i}: {np.ravel(x)[:4]}, on one device {np.ravel(y)[:4]}"
                break
    return {"equal": [body for body in found if body not in differ], "differ": differ,
            "refused": notes[1]}


if __name__ == "__main__":      # state count mode [body,body…]
    for plan in sys.argv[1:]:
        state, count, mode, *some = plan.split(":")
        bodies = tuple(some[0].split(",")) if some else tuple(BODIES)
        print(json.dumps([plan, compare(state, int(count), mode, bodies)]), flush=True)
