"""Cases for tests/test_mesh_types.py: what types and shardings say, and where they are refused.

They run in a process with eight CPU devices. Oracles are NumPy, and what JAX 0.10.2 answered to
the same calls.
"""

import contextlib
import pickle
import random
import warnings

import numpy as np
from eight_devices import error, names, report
from explicit_sweep import points
from type_sweep import compare

import olympus
import olympus.numpy as onp
from olympus import core, export, lax
from olympus.experimental.layout import Format, Layout
from olympus.experimental.pjit import pjit
from olympus.extend.core import Var
from olympus.sharding import (
    AxisType, Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding, auto_axes,
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
        whole = olympus.make_olympuspr(onp.sin)(onp.ones(4)).olympuspr
    core.check_olympuspr(made)
    with olympus.set_mesh(mesh(4, types=EXPLICIT)):
        core.check_olympuspr(made)
    (eqn,) = whole.eqns     # types that print alike are told apart by their meshes
    other = Var(eqn.outvars[0].aval.update(sharding=NamedSharding(mesh(2).abstract_mesh, P())))
    wrong = whole.replace(eqns=[eqn.replace(outvars=[other])], outvars=[other])
    error(TypeError, "gives float32[4] over AbstractMesh('x': 2, axis_types=(Explicit,)",
          lambda: core.check_olympuspr(wrong))


def case_gradients_within_partly_manual_shard_map_are_those_of_jit():
    """Eagerly the cotangent to begin with was asked for its devices: AttributeError."""
    for kind in (EXPLICIT, AUTO):
        around = mesh(2, 2, types=kind)
        with olympus.set_mesh(around):
            x = olympus.device_put(np.arange(16, dtype=np.float32).reshape(4, 4), P("x", None))
            for f, slope in (
                    (lambda v: olympus.grad(lambda u: (u * u).sum())(v), 2),
                    (lambda v: olympus.value_and_grad(lambda u: (u * u).sum())(v)[1], 2),
                    (lambda v: olympus.grad(olympus.checkpoint(lambda u: (u * u).sum()))(v), 2),
                    (lambda v: olympus.vmap(olympus.grad(lambda u: (u * u).sum()))(v), 2),
                    (lambda v: olympus.grad(lambda u: lax.psum((u * u).sum(), "x"))(v), 2)):
                for axes in ({"x"}, {"x", "y"}):
                    mapped = olympus.shard_map(f, in_specs=P("x", None), out_specs=P("x", None),
                                               axis_names=axes)
                    for g in (mapped, olympus.jit(mapped)):
                        assert np.allclose(g(x), slope * np.asarray(x))


def case_an_array_cut_along_its_first_axis_is_iterated():
    """It asked for the mesh around; backwards it was refused."""
    value = np.arange(8, dtype=np.float32).reshape(4, 2)
    for around in (mesh(2, types=EXPLICIT), Mesh(mesh(2, 2).devices, ("x", "y"),
                                                 (EXPLICIT, AUTO))):
        x = olympus.device_put(value, NamedSharding(around, P("x", None)))
        assert np.array_equal(np.stack(list(x)), value)
        assert np.array_equal(np.stack(list(reversed(x))), value[::-1])
        assert np.array_equal(olympus.grad(lambda a: sum((r * r).sum() for r in a))(x), 2 * value)


def case_shardings_without_devices_answer():
    """Raw errors of C++ came back, kinds of memory did not print, and were lost in a pickle."""
    abstract = mesh(2, types=EXPLICIT).abstract_mesh
    s, host = (NamedSharding(abstract, P("x"), memory_kind=k) for k in (None, "pinned_host"))
    assert s.memory_kind is None and s.num_devices == 2 and not s.is_fully_replicated
    assert host.memory_kind == "pinned_host" and "pinned_host" in repr(host) and host != s
    assert pickle.loads(pickle.dumps(host)) == host and s.shard_shape((4,)) == (2,)
    assert s.with_memory_kind("pinned_host") == host
    for ask in (lambda: s.device_set, lambda: s.addressable_devices, lambda: s.is_fully_addressable,
                lambda: s.devices_indices_map((4,)), lambda: s.default_memory_kind,
                lambda: s.addressable_devices_indices_map((4,))):
        error(ValueError, "not implemented for `olympus.sharding.AbstractMesh`", ask)


def case_programs_over_meshes_without_devices_are_lowered():
    """shard_map was an AttributeError; along Auto axes a platform was asked for."""
    double = lambda v: olympus.shard_map(lambda a: a * 2, in_specs=P("x"), out_specs=P("x"))(v)
    for kind, how in ((AUTO, {}), (AUTO, {"lowering_platforms": ("cpu",)}),
                      (EXPLICIT, {"lowering_platforms": ("cpu",)})):
        with use_abstract_mesh(mesh(2, types=kind).abstract_mesh):
            lowered = olympus.jit(double).trace(struct(4)).lower(**how)
        assert "sdy.manual_computation" in lowered.as_text()
        error(RuntimeError, "device_assignment", lowered.compile)
        run = lowered.compile(device_assignment=olympus.devices()[2:4])
        assert np.array_equal(run(onp.arange(4.0)), 2 * np.arange(4))
    constrained = lambda v: lax.with_sharding_constraint(v + 1, P("x"))
    with use_abstract_mesh(mesh(2).abstract_mesh):
        assert "sharding_constraint" in olympus.jit(constrained).lower(struct(4)).as_text()
    with use_abstract_mesh(mesh(2, types=EXPLICIT).abstract_mesh):
        error(ValueError, "lowering_platforms", lambda: olympus.jit(double).lower(struct(4)))


def case_types_may_leave_out_axes_of_one_device():
    """With that option shard_map and vmap compared specifications with types that lack them, and
    programs that were traced before were judged by it."""
    spec = P("x", "y")
    mapped = olympus.shard_map(lambda v: lax.psum(v, ("x", "y")), in_specs=spec, out_specs=P())
    programs = (lambda v: v * 2, lambda v: olympus.reshard(v, P("y", "x")), mapped,
                olympus.vmap(lambda v: v * 2, spmd_axis_name=("x", "y")))
    with olympus.set_mesh(mesh(2, 1, types=EXPLICIT)):
        cut = {name: olympus.device_put(np.ones((4, 4), np.float32), s)
               for name, s in (("both", spec), ("first", P("x", None)))}
        for first in (True, False):
            for f in programs[:3]:
                with _without_single(first):
                    made = olympus.make_olympuspr(f)(cut["both"])
                    want = f(cut["both"])
                with _without_single(not first):
                    core.check_olympuspr(made)
                    (again,) = core.eval_olympuspr(made.olympuspr, made.consts, cut["both"])
                assert np.array_equal(want, again)
        with _without_single(True):
            assert str(olympus.typeof(cut["both"] * 2)) == "float32[4@x,4]"
            assert programs[3](cut["first"]).sharding.spec == P("x", None)
            placed = olympus.device_put(np.ones((4, 4), np.float32), spec)
            assert str(olympus.typeof(placed)) == "float32[4@x,4]"
            assert placed.sharding.spec == spec
            seen: list[str] = []
            note = lambda *values: seen.extend([str(olympus.typeof(v)) for v in values])

            def device(v):
                note(v, lax.psum(v, "y"), lax.psum(v, "x"), lax.axis_index("y"), v + 1)
                return v * lax.psum(v, "y")

            for out in (spec, P("x")):      # as much as if the axis were not there
                f = olympus.shard_map(device, in_specs=spec, out_specs=out)
                for run in (f, olympus.jit(f)):
                    seen.clear()
                    assert np.array_equal(run(placed * 3), np.full((4, 4), 9))
                    assert seen[:5] == ["float32[2,4]{V:x}", "float32[2,4]{V:x}", "float32[2,4]",
                                        "int32[]", "float32[2,4]{V:x}"]
                g = olympus.grad(lambda v, f=f: f(v).sum())(placed * 3)
                assert np.array_equal(g, np.full((4, 4), 6))
        assert str(olympus.typeof(cut["both"] * 2)) == "float32[4@x,4@y]"


def case_exports_of_symbolic_sizes_may_say_where_values_are():
    """The constraint was refused when the sizes were known: dynamic shapes."""
    (w,) = export.symbolic_shape("w")
    for kind in (AUTO, EXPLICIT):
        spread = NamedSharding(mesh(2, types=kind), P("x"))
        put = olympus.reshard if kind is EXPLICIT else lax.with_sharding_constraint
        made = export.export(olympus.jit(lambda v: put(v * 2, spread)))(struct(2 * w))
        read = export.deserialize(made.serialize())
        x = olympus.device_put(np.arange(4.0, dtype=np.float32), spread)
        for call in (made.call, read.call, olympus.jit(read.call)):
            y = call(x)
            assert np.array_equal(y, 2 * np.arange(4)) and y.sharding.spec == P("x"), kind


def case_exports_of_shard_map_for_several_platforms():
    """Their regions used values from outside: MLIR's verifier said so."""
    double = lambda a: lax.platform_dependent(a, cpu=lambda a: 2 * a, default=lambda a: 3 * a)
    for f in (double, olympus.jit(double), lambda a: lax.scan(
            lambda c, _: (double(c), None), a / 2, None, length=1)[0] * 2):
        mapped = olympus.shard_map(f, mesh=mesh(2), in_specs=P("x"), out_specs=P("x"))
        x = olympus.device_put(np.arange(4.0), NamedSharding(mesh(2), P("x")))
        made = export.export(olympus.jit(mapped), platforms=("cpu", "cuda"))(x)
        assert np.array_equal(export.deserialize(made.serialize()).call(x), 2 * np.arange(4))
    (w,) = export.symbolic_shape("w")
    mapped = olympus.shard_map(lambda a: 2 * a, mesh=mesh(2), in_specs=P("x"), out_specs=P("x"))
    error(NotImplementedError, "the size 'w' is not known",
          lambda: export.export(olympus.jit(mapped))(struct(2 * w)))


def case_gradients_of_settled_updates_beside_auto_axes():
    """The zeros of the rule were on the mesh around, the rest was left to XLA: two meshes."""
    mixed = Mesh(mesh(2, 2).devices, ("x", "y"), (EXPLICIT, AUTO))
    with olympus.set_mesh(mixed):
        a = olympus.device_put(np.zeros((4, 2), np.float32), P())
        b = olympus.device_put(np.ones((2, 2), np.float32), P(None, "x"))
        put = lambda b: a.at[onp.array([0, 2])].set(b, out_sharding=P("x")).sum()
        for g in (olympus.grad(put), olympus.jit(olympus.grad(put))):
            assert np.array_equal(g(b), np.ones((2, 2)))
            assert str(olympus.typeof(g(b))) == "float32[2,2@x]"


def case_gradients_of_kernels_sum_over_a_batch_that_is_cut():
    """They were refused. What XLA computes wrongly stays so: cut spatial axes, groups."""
    a = np.random.default_rng(0).normal(size=(8, 8, 4)).astype(np.float32)

    def loss(a, b, **options):
        return onp.sin(lax.conv_general_dilated(a, b, (1,), "SAME", dimension_numbers=(
            "NWC", "WIO", "NWC"), **options)).sum()

    def cut(*spec, **options):
        return olympus.grad(lambda b: loss(olympus.device_put(a, P(*spec)), b, **options))

    b = np.random.default_rng(1).normal(size=(3, 4, 4)).astype(np.float32)
    want = olympus.grad(lambda b: loss(a, b))(b)
    with olympus.set_mesh(mesh(2, 2, types=EXPLICIT)):
        for spec in ("x", ("x", "y")):
            for g in (cut(spec), olympus.jit(cut(spec))):
                assert np.allclose(g(onp.asarray(b)), want, atol=1e-4)
        error(TypeError, "axis 1 is cut", lambda: cut(None, "x")(onp.asarray(b)))
        error(TypeError, "axis 0 is cut",
              lambda: cut("x", feature_group_count=2)(onp.asarray(b[:, :2])))


def case_calls_have_one_type_whichever_way():
    """A sample; all calls are a slow test. Calls of exports without operands lost theirs."""
    calls = points(1, 24)
    found = compare([*random.Random(24).sample(calls, 6),
                     ("np.zeros((8, 2), out_sharding=S('x', 'y'))", [])])
    assert not found, "\n".join(found)


def case_pjit_runs_on_the_mesh_of_the_block_around():
    """It was jit: one device, or what XLA chose of None."""
    around, x = mesh(2), np.arange(4.0, dtype=np.float32)
    with warnings.catch_warnings(action="ignore"):
        made = {options: pjit(lambda v: v * 2, **dict(options)) for options in (
            (), (("in_shardings", None),), (("in_shardings", P("x")), ("out_shardings", None)),
            (("in_shardings", P("x")),))}
    for options, f in made.items():
        with around:
            y = f(x)
            assert f.lower(x).compile()(x).sharding == y.sharding
        spec = P("x") if options == (("in_shardings", P("x")),) else P()
        assert y.sharding == NamedSharding(around, spec) and np.array_equal(y, 2 * x), options
    for options in ((), (("in_shardings", None),)):
        assert made[options](x).devices() == {olympus.devices()[0]}
    with around:
        assert olympus.jit(lambda v: v * 2)(x).devices() == {olympus.devices()[0]}
        elsewhere = olympus.device_put(x, olympus.devices()[3])
        error(ValueError, "incompatible devices", lambda: made[()](elsewhere))


def case_data_of_a_process_may_be_for_one_device():
    device = olympus.devices()[1]
    x = olympus.make_array_from_process_local_data(device, {"a": np.ones(3)})["a"]
    assert x.devices() == {device} and np.array_equal(x, np.ones(3))


def case_specifications_with_sums_are_joined_with_others_only():
    """`spec + tuple` kept the sums, `tuple + spec` was refused."""
    spec = P("x", unreduced={"z"})
    assert spec + P("y") == P("x", "y", unreduced={"z"}) and P("x") + ("y",) == P("x", "y")
    for join in (lambda: spec + ("y",), lambda: ("y",) + spec):
        error(TypeError, "use update(partitions=", join)


@contextlib.contextmanager
def _without_single(on):
    name = "olympus_remove_size_one_mesh_axis_from_type"
    outer = getattr(olympus.config, name)
    olympus.config.update(name, on)
    try:
        yield
    finally:
        olympus.config.update(name, outer)


CASES = names(globals())
if __name__ == "__main__":
    report(globals())
