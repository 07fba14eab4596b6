"""Cases for tests/test_mesh_types.py: what types and shardings say, and where they are refused.

They run in a process with eight CPU devices. Oracles are NumPy, and what JAX 0.10.2 answered to
the same calls.
"""

import numpy as np
from eight_devices import error, names, report

import olympus
import olympus.numpy as onp
from olympus import core, export, lax
from olympus._src.core.ir import Var
from olympus.experimental.layout import Format, Layout
from olympus.sharding import (
    AxisType,
    Mesh,
    NamedSharding,
    PartitionSpec,
    SingleDeviceSharding,
    auto_axes,
    use_abstract_mesh,
)

P = PartitionSpec
EXPLICIT, AUTO = AxisType.Explicit, AxisType.Auto


def mesh(*sizes, types=AUTO, order=1):
    """A mesh of the first devices, or of these backwards."""
    devices = np.array(olympus.devices()[:np.prod(sizes)])[::order].reshape(sizes)
    return Mesh(devices, ("x", "y")[:len(sizes)], (types,) * len(sizes))


def struct(*shape, sharding=None, dtype="float32"):
    return olympus.ShapeDtypeStruct(shape, dtype, sharding=sharding)


def case_results_that_the_devices_do_not_divide_are_refused():
    """They came back whole, or cut along some of the axes, without a word."""
    for sizes, spec, n in (((2,), P("x"), 5), ((2, 2), P(("x", "y")), 6)):
        sharding = NamedSharding(mesh(*sizes), spec)
        for options in ({"out_shardings": sharding}, {"in_shardings": sharding}):
            error(ValueError, "should evenly divide",
                  lambda o=options, n=n: olympus.jit(lambda v: v * 2, **o)(onp.ones(n)))
        error(ValueError, "should evenly divide", lambda s=sharding, n=n: olympus.jit(
            lambda: olympus.random.uniform(olympus.random.key(0), (n,), out_sharding=s))())
        padded = olympus.jit(lambda v, s=sharding: lax.with_sharding_constraint(v, s) * 2)
        assert np.array_equal(padded(onp.ones(n)), 2 * np.ones(n))


def case_constraints_over_devices_in_another_order_are_refused():
    """Their results had a sharding without a mesh."""
    here, there = (NamedSharding(mesh(2, order=order), P("x")) for order in (1, -1))
    x = olympus.device_put(np.arange(4.0), here)
    for call in (lambda: lax.with_sharding_constraint(x, there),
                 lambda: olympus.jit(lambda v: lax.with_sharding_constraint(v, there) + 1)(x),
                 lambda: olympus.jit(lambda v: v + 1, out_shardings=there)(x),
                 lambda: olympus.jit(lambda v: olympus.device_put(v, there) + 1)(x),
                 lambda: olympus.jit(lambda v: lax.with_sharding_constraint(
                     lax.with_sharding_constraint(v, there), here))(np.arange(4.0))):
        error(ValueError, "in one order", call)
    moved = olympus.device_put(x, there)
    assert moved.sharding == there and np.array_equal(x + moved, 2 * np.arange(4.0))


def case_stages_know_the_demanded_shardings_and_layouts():
    """`eval_shape` and `out_info` said nothing of them, nor `in_avals` of what is lowered."""
    spread, one = NamedSharding(mesh(2), P("x")), SingleDeviceSharding(olympus.devices()[1])
    typed = NamedSharding(mesh(2, types=EXPLICIT), P("x"))
    lying = Format(Layout((1, 0)), spread)
    for demanded, shape in ((spread, (4,)), (one, (4,)), (typed, (4,)), (lying, (4, 2))):
        f = olympus.jit(lambda v: v * 2, out_shardings=demanded)
        wanted = struct(*shape, sharding=demanded)
        for found in (olympus.eval_shape(f, struct(*shape)), f.eval_shape(struct(*shape)),
                      f.trace(struct(*shape)).out_info, f.lower(struct(*shape)).out_info,
                      f.lower(struct(*shape)).compile().out_info):
            assert found == wanted and found.format == wanted.format, found
    # XLA chose where they are, or nobody has yet.
    assert olympus.eval_shape(lambda v: f(v), struct(4, 2)).sharding is None
    lowered = olympus.jit(lambda v: v, in_shardings=typed).lower(np.arange(4))
    for stage in (lowered, lowered.compile()):
        assert str(stage.in_avals[0][0]) == "int32[4@x]", stage.in_avals
    lowered = olympus.jit(lambda v: v, in_shardings=spread).lower(np.arange(4))
    assert str(lowered.in_avals[0][0]) == "int32[4]"


def case_what_is_made_like_another_is_cut_as_it():
    """`broadcast_like`, the likes of a struct and the struct of a traced value lost it."""
    around, seen = mesh(2, types=EXPLICIT), []
    like = struct(4, sharding=NamedSharding(around.abstract_mesh, P("x")))
    for f in (onp.zeros_like, onp.ones_like, onp.empty_like, lambda a: onp.full_like(a, 2.0)):
        made = olympus.eval_shape(olympus.jit(lambda f=f: f(like)))
        assert made.sharding == like.sharding, made
    with olympus.set_mesh(around):
        x = olympus.device_put(np.ones((4, 3), np.float32), P("x"))
        for f in (lax.broadcast_like, olympus.jit(lax.broadcast_like)):
            y = f(onp.arange(3.0), x)
            assert str(olympus.typeof(y)) == "float32[4@x,3]"
            assert np.array_equal(y, np.broadcast_to(np.arange(3), (4, 3)))
        olympus.jit(lambda a: seen.append(olympus.ShapeDtypeStruct.like(a)))(x)
    assert seen == [struct(4, 3, sharding=NamedSharding(around.abstract_mesh, P("x", None)))]


def case_jacobians_are_cut_as_results_and_arguments_are():
    """The unit tangents were not cut as the argument is, nor the zeros of constant derivatives."""
    wanted = {      # by function: jacfwd, jacrev, hessian
        lambda v: v: ("4@x,4", "4,4@x", "4,4@x,4"),
        lambda v: lax.broadcast(v, (2,)): ("2,4@x,4", "2,4,4@x", "2,4,4@x,4"),
        lambda v: (v * v).sum(): ("4", "4@x", "4@x,4")}
    with olympus.set_mesh(mesh(2, types=EXPLICIT)):
        x = olympus.device_put(np.arange(4, dtype=np.float32), P("x"))
        for f, types in wanted.items():
            for verb, dims in zip((olympus.jacfwd, olympus.jacrev, olympus.hessian), types,
                                  strict=True):
                for g in (verb(f), olympus.jit(verb(f))):
                    assert str(olympus.typeof(g(x))) == f"float32[{dims}]", (verb, dims)
                    assert np.allclose(g(x), verb(f)(onp.arange(4.0)))


def case_axes_of_one_device_stay_in_types():
    """What XLA chose along Auto axes beside them did not name them, nor sums along others."""
    for sizes in ((1, 2), (2, 2)):
        mixed = Mesh(mesh(*sizes).devices, ("x", "y"), (EXPLICIT, AUTO))
        with olympus.set_mesh(mixed):
            made = onp.zeros((2, 2), out_sharding=P("x", None))
            both = olympus.device_put(made, P("x", "y")) * 2
            a, b = (olympus.device_put(np.ones((2, 2), np.float32), s)
                    for s in (P(None, "x"), P("x", None)))
            total = onp.einsum("ij,jk->ik", a, b, out_sharding=P(None, None, unreduced={"x"}))
        assert olympus.typeof(made).sharding.spec == P("x", None)
        assert both.sharding.spec == P("x", "y"), both.sharding
        assert olympus.typeof(total).sharding.spec.unreduced == {"x"}, olympus.typeof(total)


def case_shard_map_names_results_as_out_specs_say():
    """Eagerly, over Auto axes, axes of one device were lost; in jit, unless an argument had them.
    """
    for sizes in ((1, 2), (2, 1), (1, 1)):
        for outs in (P("x", "y"), P("y", "x"), P(("x", "y")), P(None, "x")):
            f = olympus.shard_map(lambda v: v * 2, mesh=mesh(*sizes), in_specs=outs,
                                  out_specs=outs)
            for g in (f, olympus.jit(f)):
                y = g(onp.ones((2, 2)))
                assert y.sharding.spec == outs, (sizes, outs, y.sharding)
                assert np.array_equal(y, 2 * np.ones((2, 2)))


def case_calls_of_exports_have_the_exported_types():
    """A result that was not added up yet was added up at the door, and operands were refused."""
    with olympus.set_mesh(mesh(2, types=EXPLICIT)):
        a, b = (olympus.device_put(np.full(shape, 2.0, np.float32), spec) for shape, spec in (
            ((4, 8), P(None, "x")), ((8, 4), P("x", None))))
        partial = lambda a, b: onp.einsum("ij,jk->ik", a, b, out_sharding=P(
            None, None, unreduced={"x"}))
        made = export.export(olympus.jit(partial))(a, b)
        twice = export.export(olympus.jit(lambda z: z + z))(partial(a, b))
        for f, args, value in ((made.call, (a, b), 32), (olympus.jit(made.call), (a, b), 32),
                               (export.deserialize(made.serialize()).call, (a, b), 32),
                               (twice.call, (partial(a, b),), 64),
                               (twice.call, (onp.ones((4, 4)),), 2),
                               (lambda a, b: twice.call(made.call(a, b)), (a, b), 64)):
            out = f(*args)
            assert str(olympus.typeof(out)) == "float32[4,4]{U:x}", olympus.typeof(out)
            assert (np.asarray(olympus.reshard(out, P())) == value).all()
        whole = export.export(olympus.jit(lambda z: z + z))(onp.ones((4, 4)))
        assert (np.asarray(whole.call(partial(a, b))) == 64).all()
        found = olympus.grad(lambda a: olympus.reshard(made.call(a, b), P()).sum())(a)
        assert str(olympus.typeof(found)) == "float32[4,8@x]" and (np.asarray(found) == 8).all()


def case_types_of_another_number_of_devices_are_refused():
    """A program over a mesh of two devices was traced under one of four; 5 elements were cut in 2.
    """
    spread = NamedSharding(mesh(2, types=EXPLICIT).abstract_mesh, P("x"))
    with use_abstract_mesh(mesh(4, types=EXPLICIT).abstract_mesh):
        error(ValueError, "should match the aval mesh",
              lambda: olympus.jit(lambda v: v * 2).trace(struct(4, sharding=spread)))
    error(ValueError, "should evenly divide", lambda: olympus.core.ShapedArray(
        (5,), np.dtype("float32"), sharding=spread))
    for sharding in (spread, NamedSharding(mesh(2), P("x"))):
        error(ValueError, "should evenly divide", lambda s=sharding: olympus.jit(
            lambda v: v * 2).lower(struct(5, sharding=s)))


def case_checks_judge_by_the_mesh_that_was_around():
    """Bodies of scatters and of shard_map, and auto_axes in a loop, were refused by checks."""
    around = mesh(2, types=EXPLICIT)
    with olympus.set_mesh(around), olympus.enable_checks(True):
        x = olympus.device_put(np.ones((4, 4), np.float32), P("x"))
        loop = lambda w: lax.scan(lambda c, u: (auto_axes(lambda c: c * u, out_sharding=P("x"))(
            c), None), w, onp.arange(3.0))[0].sum()
        spread = P("x", None)
        for f in (lambda v: v.at[0].add(1.0), lambda v: v.at[0].max(1.0),
                  olympus.grad(lambda v: lax.top_k(v, 2)[0].sum()),
                  olympus.grad(lambda v: v[onp.array([0, 1])].sum())):
            olympus.jit(f)(onp.ones(3))
        for f, value in ((lambda v: v * 3.0, 3 * np.ones((4, 4))),
                         (lambda v: v @ v.T, 4 * np.ones((4, 2)))):
            mapped = olympus.shard_map(f, in_specs=spread, out_specs=spread)
            assert np.array_equal(olympus.jit(mapped)(x), value)
        olympus.jit(olympus.grad(loop))(x)
        made = olympus.make_olympuspr(lambda v: v[:, 0] + onp.arange(4.0))(x)
    core.check_olympuspr(made)
    with olympus.set_mesh(mesh(4, types=EXPLICIT)):
        core.check_olympuspr(made)
    eqn = made.eqns[-1]
    other = eqn.outvars[0].aval.update(sharding=NamedSharding(mesh(4).abstract_mesh, P()))
    wrong = made.olympuspr.replace(eqns=[*made.eqns[:-1], eqn.replace(outvars=[Var(other)])])
    error(TypeError, "over AbstractMesh('x': 4", lambda: core.check_olympuspr(wrong))


CASES = names(globals())
if __name__ == "__main__":
    report(globals())
