"""Cases for tests/test_holds.py, which runs this file in a process with eight CPU devices.

The oracle is the same program without holds: equal values, equal collectives, fewer instructions.
"""

import re

import numpy as np
from eight_devices import names, report

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus._src.runtime.compile import _program_key
from olympus.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

COLLECTIVE = re.compile(r" (all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)"
                        r"(?:-start)?[(]")


def mesh(kind=AxisType.Auto, **sizes):
    count = int(np.prod([*sizes.values()]))
    return Mesh(np.array(olympus.devices()[:count]).reshape(*sizes.values()), tuple(sizes),
                axis_types=(kind,) * len(sizes))


def put(x, on, *spec):
    return olympus.device_put(x, NamedSharding(on, P(*spec)))


def check(fun, *args):
    """Hold, and compare; returns the collectives."""
    found = []
    for mode in "off", "auto":
        lowered = olympus.jit(fun, hold=mode).lower(*args)
        assert ("inlineable" in lowered.as_text()) is (mode == "auto")
        compiled = lowered.compile()
        text = compiled.as_text()
        found.append((COLLECTIVE.findall(text), text.count(" = "), compiled(*args)))
    (kinds, size, outs), (held_kinds, held_size, held_outs) = found
    assert sorted(kinds) == sorted(held_kinds)
    assert held_size < size
    for a, b in zip(*map(olympus.tree.leaves, (outs, held_outs)), strict=True):
        assert a.sharding.is_equivalent_to(b.sharding, a.ndim)
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-5)
    return kinds


def field(y):
    return onp.stack([10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])


def step(y):
    """A step of Runge and Kutta's method, in fourth order."""
    a = field(y)
    b = field(y + 0.005 * a)
    c = field(y + 0.005 * b)
    d = field(y + 0.01 * c)
    return y + 0.01 / 6 * (a + 2 * b + 2 * c + d)


def integrated(y):
    return step(step(y))


def squared(fun):
    return lambda *args: (fun(*args) ** 2).sum()


def states(*shape):
    return np.linspace(0.1, 1.2, int(np.prod(shape)), dtype="f").reshape(shape)


def layer_norm(x):
    h = x - x.mean(-1, keepdims=True)
    return h * lax.rsqrt((h * h).mean(-1, keepdims=True) + 1e-5)


def layer(p, x):
    """A transformer's layer, with one head."""
    q, k, v = (layer_norm(x) @ p[n] for n in "qkv")
    x = x + olympus.nn.softmax(q @ k.swapaxes(1, 2)) @ v
    return x + olympus.nn.gelu(layer_norm(x) @ p["a"]) @ p["b"]


def transformer(layers, x):
    for p in layers:
        x = layer(p, x)
    return x


def drawn(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape).astype("f")


def weights(depth):
    return [dict(zip("qkvab", each, strict=True)) for each in drawn(depth, 5, 16, 16) / 4]


def case_transformer_gradients():
    """The batch is cut: one sum of gradients, held or not."""
    gradient = olympus.grad(squared(transformer))
    for count in 2, 4, 8:
        on = mesh(d=count)
        ws, x = weights(3), put(drawn(8, 4, 16), on, "d")
        assert check(gradient, ws, x) == ["all-reduce"]


def case_cut_parameters():
    on = mesh(d=2, t=4)
    ws = [{n: put(w, on, "t") if n == "b" else put(w, on, None, "t") for n, w in p.items()}
          for p in weights(3)]
    check(olympus.grad(squared(transformer)), ws, put(drawn(8, 4, 16), on, "d"))


def case_integrators():
    """States, some on each device."""
    for count in 2, 8:
        assert not check(olympus.grad(squared(integrated)),
                         put(states(3, 16), mesh(d=count), None, "d"))


def case_integrators_in_manual_computations():
    for count in 2, 4, 8:
        part = olympus.shard_map(integrated, mesh=mesh(d=count), in_specs=P(None, "d"),
                                 out_specs=P(None, "d"))
        assert not check(olympus.grad(squared(part)), states(3, 16))


def case_slices_along_a_cut_axis_of_a_manual_computation():
    """There they are no exchanges: each device has a part of its own."""
    part = olympus.shard_map(integrated, mesh=mesh(d=2), in_specs=P("d"), out_specs=P("d"))
    assert not check(olympus.grad(squared(part)), states(6, 4))


def case_loops_in_manual_computations():
    def run(y):
        return lax.fori_loop(0, 2, lambda _, y: integrated(y), y)

    part = olympus.shard_map(run, mesh=mesh(d=4), in_specs=P(None, "d"), out_specs=P(None, "d"))
    assert not check(olympus.grad(squared(part)), states(3, 16))


def case_partly_manual_computations():
    """Along the other axis XLA divides the layer's inside."""
    on = mesh(d=2, t=4)
    gradient = olympus.grad(squared(transformer))
    part = olympus.shard_map(
        lambda ws, x: olympus.tree.map(lambda g: lax.psum(g, "d"), gradient(ws, x)), mesh=on,
        in_specs=(P(), P("d")), out_specs=P(), axis_names={"d"}, check_vma=False)
    check(part, olympus.tree.map(lambda w: put(w, on, None, "t"), weights(3)), drawn(8, 4, 16))


def case_inside_and_outside_of_manual_computations():
    """One identity function is called in both."""
    on = mesh(d=2, t=4)
    part = olympus.shard_map(integrated, mesh=on, in_specs=P(), out_specs=P())
    check(olympus.grad(squared(lambda y: part(integrated(y)))), put(states(3, 16), on, None, "t"))


def case_explicit_axes():
    """What is held is cut as its type says, on both sides of the call."""
    for count in 2, 4:
        on = mesh(AxisType.Explicit, d=count)
        with olympus.set_mesh(on):
            y = put(states(3, 16), on, None, "d")
            assert not check(olympus.grad(squared(integrated)), y)
            text = olympus.jit(integrated, hold="auto").lower(y).as_text()
            held = re.search(r"(%\S+) = func.call @held\S*\((%\S+)\)|(%\S+) = call @held", text)
            name = held[1] or held[3]
            assert re.search(rf"sdy.sharding_constraint {name} ", text)


def case_constraints_within():
    """Arguments are on one device; the program says where its values are."""
    where = NamedSharding(mesh(d=4), P(None, "d"))

    def run(y):
        for _ in range(2):
            y = lax.with_sharding_constraint(step(y), where)
        return y

    assert not check(olympus.grad(squared(run)), onp.asarray(states(3, 16)))


def case_called_functions():
    called = olympus.jit(step)
    check(olympus.grad(squared(lambda y: called(called(called(y))))),
          put(states(3, 16), mesh(d=4), None, "d"))


def case_exchanges_between_devices_are_left_alone():
    """A slice along a cut axis is an exchange, which ends kernels; more holds would add exchanges.
    """
    def run(u):
        for _ in range(3):
            middle = u[1:-1] - 0.1 * u[1:-1] * (u[2:] - u[:-2]) + 0.05 * (
                u[2:] - 2 * u[1:-1] + u[:-2])
            u = onp.concatenate([u[:1], middle, u[-1:]])
        return u

    gradient = olympus.jit(olympus.grad(squared(run)), hold="auto")
    whole = olympus.debug.holds(gradient, states(1000))
    cut = olympus.debug.holds(gradient, put(states(1000), mesh(d=4), "d"))
    assert whole.lines and not whole.reason
    assert not cut.lines and "devices share axes of 1,000 elements" in cut.reason


def case_what_a_slice_leaves_of_a_cut_axis_is_held_in_equal_parts_only():
    """A hold has it in parts that are equal: of 998 elements they are not, which adds exchanges."""
    def run(u, edge):
        for _ in range(3):
            middle = growth = u[edge:-edge]
            for n in range(20):
                growth = growth * middle * 0.1 + 0.1 * n
            u = onp.concatenate([u[:edge], middle + growth, u[-edge:]])
        return u

    for edge, even in (1, False), (2, True):
        gradient = olympus.jit(olympus.grad(squared(lambda u, e=edge: run(u, e))), hold="auto")
        assert olympus.debug.holds(gradient, states(1000)).lines
        assert bool(olympus.debug.holds(gradient, put(states(1000), mesh(d=4), "d")).lines) is even

    def constrained(u):
        return run(lax.with_sharding_constraint(u, NamedSharding(mesh(d=4), P("d"))), 2)

    gradient = olympus.jit(olympus.grad(squared(constrained)), hold="auto")
    assert not olympus.debug.holds(gradient, states(1000)).lines    # nobody knows yet by how many


def case_one_device_of_a_mesh():
    """Nothing is cut there."""
    gradient = olympus.jit(olympus.grad(squared(integrated)), hold="auto")
    for on in mesh(d=1), mesh(AxisType.Explicit, d=1):
        with olympus.set_mesh(on):
            assert "inlineable" in gradient.lower(put(states(3, 16), on, "d")).as_text()


def case_exports_over_several_devices_have_no_holds():
    on = mesh(d=4)
    fun = olympus.jit(olympus.grad(squared(integrated)), hold="auto")
    y = put(states(3, 16), on, None, "d")
    assert "inlineable" in fun.lower(y).as_text()
    assert "inlineable" not in olympus.export.export(fun)(y).mlir_module()
    held = olympus.export.export(fun)(np.asarray(y))
    assert "inlineable" in held.mlir_module()
    np.testing.assert_allclose(olympus.jit(held.call)(y), fun(y), rtol=1e-4)


def case_keys_say_what_is_held():
    """Programs with other held values are compiled apart."""
    fun = olympus.grad(squared(integrated))
    keys = set()
    for spec in (None, "d"), ():
        y = put(states(3, 16), mesh(d=4), *spec)
        for hold in "auto", "off":
            traced = olympus.jit(fun, hold=hold).trace(y)
            program, _ = traced._program.to_lower("cpu", traced._placement)
            keys.add(_program_key(program, traced._placement, None))
    assert None not in keys and len(keys) == 4


def case_kernels_are_for_one_cpu():
    x = np.ones(20_000, np.float32)
    assert len(olympus.debug.kernels(onp.cumsum, x).lines) == 1
    found = olympus.debug.kernels(olympus.jit(onp.cumsum), put(x, mesh(d=4), "d"))
    assert found.lines == () and found.reason == "the program is not for one CPU alone"


def case_kernels_are_for_the_parts_of_shard_map():
    x = np.random.default_rng(0).standard_normal(80_000).astype(np.float32)
    both = mesh(d=2, e=2)
    for fun in (onp.cumsum, onp.sort, onp.tan, lambda x: onp.median(x)[None],
                olympus.grad(lambda x: (onp.cumsum(onp.sin(x)) * x).sum())):
        for manual, used in ({"d", "e"}, True), ({"d"}, False):
            parts = olympus.shard_map(fun, mesh=both, in_specs=P(tuple(sorted(manual))),
                                      out_specs=P(tuple(sorted(manual))), axis_names=manual)
            assert bool(olympus.debug.kernels(parts, x).lines) == used
            found, plain = olympus.jit(parts)(x), olympus.jit(parts, kernels="off")(x)
            np.testing.assert_allclose(found, plain, rtol=1e-3, atol=1e-3)


def case_kernels_are_for_the_parts_of_explicit_types():
    x = np.random.default_rng(0).standard_normal((4, 18_000)).astype(np.float32)
    both = mesh(AxisType.Explicit, d=2, e=2)
    cut, other = put(x, both, ("d", "e"), None), put(x, both, None, None)
    along = put(x, both, None, "e")
    for fun, args, count in (
            (lambda x: onp.argsort(x, 1), (cut,), 1), (lambda x: onp.median(x, 1), (cut,), 1),
            (onp.arctan2, (cut, other), 1), (lambda x: abs(onp.cumsum(x, 0)) ** 2.5, (along,), 1),
            (lambda x: onp.argmax(x, 1), (cut,), 1),
            (lambda x: (x > 0).any(1), (along,), 0), (lambda x: x.sum(1), (along,), 0),
            (olympus.vmap(onp.sort), (cut,), 1), (lambda x, y: x / y, (cut, other), 0),
            (olympus.grad(lambda x: (onp.sort(x, 1) * onp.tan(x)).sum()), (cut,), 2),
            (lambda x: olympus.lax.scan(lambda c, _: (onp.arctan(c), None), x, None, 2)[0], (cut,),
             1)):
        runs = [olympus.jit(fun, kernels=mode) for mode in ("auto", "off")]
        assert len(olympus.debug.kernels(runs[0], *args).lines) == count, args
        found, plain = [run(*args) for run in runs]
        assert found.aval is plain.aval and found.sharding == plain.sharding
        np.testing.assert_allclose(found, plain, rtol=1e-4, atol=1e-4)


CASES = names(globals())
if __name__ == "__main__":
    report(globals())
