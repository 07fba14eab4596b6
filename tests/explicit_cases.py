"""Cases for tests/test_explicit.py: explicit axes, in a process with eight CPU devices.

Oracles are the same functions of unsharded arrays, NumPy, and what JAX 0.10.2 answered to the same
calls.
"""

import numpy as np
from eight_devices import error, names, report
from sharded_cases import X, check_parts, on, spec_of

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus.core import ShapedArray
from olympus.errors import ShardingTypeError
from olympus.extend.core import Primitive
from olympus.interpreters import ad, mlir
from olympus.sharding import (
    AxisType, Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding, auto_axes, explicit_axes,
)

P = PartitionSpec


def explicit(*spec, sizes=(4, 2), types=AxisType.Explicit):
    return NamedSharding(Mesh(np.array(olympus.devices()).reshape(sizes), ("x", "y"), types),
                         P(*spec))


def case_types_of_explicit_axes_are_where_arrays_are():
    """What a program's types say of its results is where they are; values are NumPy's."""
    value = np.arange(32, dtype=np.float32).reshape(8, 4)
    x, keys = olympus.device_put(value, explicit("x", "y")), olympus.random.split(
        olympus.random.key(0), 8)
    whole = NamedSharding(x.sharding.mesh, P(None, "y"))
    programs = {     # name: function, type, NumPy's
        "sin": (onp.sin, "8@x,4@y", np.sin), "sum": (lambda a: a.sum(0), "4@y", lambda a: a.sum(0)),
        "transpose": (lambda a: a.T + 1, "4@y,8@x", lambda a: a.T + 1),
        "broadcast": (lambda a: a + onp.ones(4), "8@x,4@y", lambda a: a + 1),
        "reshard": (lambda a: olympus.reshard(a, explicit("y")), "8@y,4", lambda a: a),
        "matmul": (lambda a: onp.matmul(a, a.T, out_sharding=explicit("x")), "8@x,8",
                   lambda a: a @ a.T),
        "einsum": (lambda a: onp.einsum("ij,kj->k", a, a, out_sharding=explicit("y")), "8@y",
                   lambda a: np.einsum("ij,kj->k", a, a)),
        "zeros_like": (lambda a: a + onp.zeros_like(a), "8@x,4@y", lambda a: a),
        "loop": (lambda a: lax.fori_loop(0, 3, lambda i, c: onp.sin(c), a), "8@x,4@y",
                 lambda a: np.sin(np.sin(np.sin(a)))),
        "scan": (lambda a: lax.scan(lambda c, r: (c, c + r), onp.ones(4), olympus.reshard(
            a, whole))[1], "8,4@y", lambda a: a + 1),
        "vmap": (olympus.vmap(lambda r: r * 2), "8@x,4@y", lambda a: a * 2),
        "cond": (lambda a: lax.cond(True, onp.sin, onp.cos, a), "8@x,4@y", np.sin),
        "jit": (olympus.jit(lambda a: a.max(1)), "8@x", lambda a: a.max(1)),
        "auto_axes": (auto_axes(lambda a: a @ a.T, out_sharding=explicit("x")), "8@x,8",
                      lambda a: a @ a.T),
        "auto_axes of one": (auto_axes(lambda a: a * 2, axes="y", out_sharding=explicit("x")),
                             "8@x,4", lambda a: a * 2),
        "itself": (lambda a: a, "8@x,4@y", lambda a: a),
    }
    for name, (f, dims, oracle) in programs.items():
        for run in (f, olympus.jit(f), olympus.jit(f)):
            y = run(x)
            assert str(olympus.typeof(y)) == f"float32[{dims}]", (name, y.aval)
            assert y.sharding == explicit(*y.aval.sharding.spec), (name, y.sharding)
            np.testing.assert_allclose(np.asarray(y), oracle(value), rtol=1e-5, atol=1e-6)
            check_parts(y, np.asarray(y))
    spread = olympus.device_put(keys, explicit("x"))
    assert str(olympus.typeof(olympus.vmap(olympus.random.bits)(spread))) == "uint32[8@x]"
    error(ShardingTypeError, "say how the result is cut: dot(…, out_sharding=…)",
          lambda: x @ x.T)
    error(ShardingTypeError, "one mesh is required",
          lambda: x + olympus.device_put(value, on("x")))
    text = olympus.jit(lambda a: onp.sin(a).T).lower(x).as_text()
    assert 'sdy.sharding_constraint %0 <@mesh, [{"x"}, {"y"}]>' in text
    half = olympus.device_put(value, explicit("x", "y", types=(AxisType.Explicit, AxisType.Auto)))
    for y in (half, half * 2, olympus.jit(onp.sin)(half)):
        assert str(olympus.typeof(y)) == "float32[8@x,4]" and y.sharding.mesh.auto_axes == ("y",)


def case_what_is_made_under_a_mesh_is_on_it():
    """Under set_mesh, in values and in types, as in JAX 0.10.2; not under `with mesh:`."""
    before, key = onp.arange(8.0), olympus.random.key(0)
    whole = onp.asarray(X)
    makers = {
        "zeros": lambda: onp.zeros((8, 2)), "arange": lambda: onp.arange(8),
        "asarray": lambda: onp.asarray(X), "array": lambda: onp.array([1, 2]),
        "draw": lambda: olympus.random.normal(key, (8,)), "outside": lambda: before + 1,
        "numpy": lambda: onp.sin(X), "scalar": lambda: onp.sin(1.0),
        "jit": lambda: olympus.jit(lambda x: x * 2)(X), "likeness": lambda: onp.zeros_like(before),
        "key": lambda: olympus.random.key(0), "scan": lambda: lax.scan(
            lambda c, x: (c + x, onp.zeros(3)), 0.0, before)[1],
        "cond": lambda: lax.cond(True, lambda x: x, lambda x: onp.ones(8), before),
        "grad": lambda: olympus.grad(lambda x: onp.sin(x).sum())(before),
        "branch": lambda: onp.where(before > 2, before, 0.0), "table": lambda: whole[1:3],
    }
    expected = {name: make() for name, make in makers.items()}
    for types in (AxisType.Explicit, AxisType.Auto):
        around = explicit(types=types).mesh
        with olympus.set_mesh(around):
            for name, make in makers.items():
                for x in (make(), make()):
                    assert x.sharding.mesh == around and x.committed, name
                    assert x.sharding.is_fully_replicated, name
                    assert x.aval.sharding == NamedSharding(
                        around.abstract_mesh, P(*[None] * x.ndim)), name
                    assert (x == expected[name]).all(), name
            x = olympus.device_put(before, P("x"))
            assert spec_of(x + before) == spec_of(onp.zeros_like(x)) == P("x")
            assert not olympus.device_put(X).committed      # as it was asked for
            inside = []
            olympus.jit(lambda x: inside.extend(map(olympus.typeof, (x, x + 1, onp.ones(2)))))(X)
            assert [a.sharded for a in inside] == [False, True, True]
            there = olympus.device_put(X, olympus.devices()[1])
            error(ValueError, "the mesh around", lambda: there * 2)
            lowered = olympus.jit(lambda: onp.arange(8)).lower()
        assert lowered.compile()().sharding.mesh == around      # where it was traced, though later
        with around:
            assert type(onp.zeros(8).sharding) is SingleDeviceSharding
    with olympus.sharding.no_collectives():
        x = olympus.device_put(X, explicit("x", "y"))
        assert str(olympus.typeof(onp.sin(x))) == "float32[4@x,2@y]"
        error(ValueError, "the compiled program has all-reduce", lambda: x.sum())
    flat = explicit("x", "y", sizes=(8, 1))
    with olympus.remove_size_one_mesh_axis_from_type():
        assert str(onp.sin(olympus.device_put(X.T.reshape(8, 1), flat)).aval) == "float32[8@x,1]"


def case_transformations_of_explicit_axes():
    """What JAX 0.10.2 answers to the same calls."""
    value = np.arange(32, dtype=np.float32).reshape(8, 4)
    with olympus.set_mesh(explicit().mesh):
        x = olympus.device_put(value, P("x"))
        types = {
            "8@x,4": [
                olympus.vmap(lambda r: onp.zeros(4))(x),        # as what is mapped
                olympus.vmap(lambda r: r * 2, spmd_axis_name="x")(x),
                olympus.jit(lambda x: x * 2, in_shardings=P("x"))(value),
                lax.with_sharding_constraint(x, P("x")),
                olympus.vjp(lambda x: x.T, x)[1](onp.ones((4, 8)))[0]],
            "8@x,4@y": [
                olympus.vmap(lambda r: olympus.reshard(r, P("y")))(x),
                olympus.vmap(olympus.vmap(lambda e: onp.ones(())))(
                    olympus.reshard(x, P("x", "y"))),
                olympus.eval_shape(lambda x: x * 2, olympus.ShapeDtypeStruct(
                    (8, 4), "float32", sharding=P("x", "y")))],
            "8,4": [olympus.vmap(lambda r: r * 2, spmd_axis_name="x")(olympus.reshard(x, P()))],
            "8@y,4": [olympus.jit(lambda x: x * 2, out_shardings=P("y"))(x)],
        }
        for dims, found in types.items():
            assert [str(olympus.typeof(a)) for a in found] == [f"float32[{dims}]"] * len(found)
        assert all(str(row.aval) == "float32[4]" for row in x) and len(list(x)) == 8
        error(ValueError, "Only one of spmd_axis_name or arrays sharded on `Explicit`",
              lambda: olympus.vmap(lambda r: r, spmd_axis_name="y")(x))
        error(AssertionError, "use olympus.reshard",
              lambda: lax.with_sharding_constraint(x, P("y")))
        error(TypeError, "use olympus.reshard", lambda: lax.scan(
            lambda c, _: (olympus.reshard(c, P()), None), x, None, length=2))
        error(ShardingTypeError, "x.at[…].get(out_sharding=…)", lambda: x[0])
        compiled = olympus.jit(lambda x: x * 2).lower(x).compile()
        assert compiled.input_shardings[0][0].spec == P("x")
        assert spec_of(compiled(x)) == P("x", None)
        error(ValueError, "the program takes it as", lambda: compiled(olympus.reshard(x, P("y"))))
    half = explicit("x", "y", types=(AxisType.Explicit, AxisType.Auto))
    y = olympus.device_put(value, half)
    assert y.sharding.spec == P("x", "y")
    with olympus.set_mesh(half.mesh):       # whole along explicit axes; XLA's along others
        for run in (lambda f: f, olympus.jit):
            z = run(lambda y: olympus.reshard(y, P()))(y)
            assert str(z.aval) == "float32[8,4]" and "x" not in str(z.sharding.spec)


def case_bodies_mapped_along_a_cut_axis_keep_it():
    """Programs within a mapped function know how the mapped axis is cut, eagerly and staged."""
    value = np.arange(32, dtype=np.float32).reshape(8, 4)
    x = olympus.device_put(value, explicit("x", "y"))
    bodies = {
        "fused": onp.mean, "jit": olympus.jit(lambda r: onp.where(r > 3, r, 0).sum()),
        "grad": olympus.grad(lambda r: (r ** 2).sum()), "checkpoint": olympus.checkpoint(onp.sin),
        "scan": lambda r: lax.scan(lambda c, _: (c + r.max(), None), r.min(), None, length=3)[0],
        "while": lambda r: lax.while_loop(lambda c: (c < 9).all(), lambda c: c * 2 + 1, r),
        "cond": lambda r: lax.cond(r.sum() > 9, onp.negative, onp.sin, r),
    }
    for name, body in bodies.items():
        for dim in (0, 1):
            fun = olympus.vmap(body, in_axes=dim)
            for run in (fun, olympus.jit(fun)):
                y = run(x)
                rest = [["x", "y"][1 - dim]] * (y.ndim - 1)
                assert list(spec_of(y)) == [["x", "y"][dim], *rest], (name, dim, y.sharding)
                np.testing.assert_allclose(y, fun(value), 1e-6, err_msg=name)


def case_programs_over_a_mesh_without_devices():
    rows = NamedSharding(explicit().mesh.abstract_mesh, P("x"))
    struct = olympus.ShapeDtypeStruct((8, 4), "float32", sharding=rows)
    traced = olympus.jit(lambda x: onp.sin(x).T).trace(struct)
    lowered = traced.lower(lowering_platforms=("tpu",))
    assert "mhlo.num_partitions = 8" in lowered.as_text()
    assert 'sdy.sharding_constraint %0 <@mesh, [{"x"}, {}]>' in lowered.as_text()
    assert '%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}' in (
        lowered.as_text())
    error(RuntimeError, "a mesh without devices", lowered.compile)
    error(ValueError, "nothing names its devices", traced.lower)
    with olympus.set_mesh(explicit().mesh):
        compiled = olympus.jit(lambda x: onp.sin(x).T).lower(struct).compile()
    assert spec_of(compiled(olympus.device_put(X.repeat(2, 1).repeat(2, 0), explicit("x")))) == (
        P(None, "x"))


def case_a_training_step_of_explicit_axes():
    """Batches along x, the layer's outputs along y: gradients are where their values are."""
    rng = np.random.default_rng(0)
    w, x = rng.normal(size=(3, 4)).astype("f"), rng.normal(size=(8, 3)).astype("f")

    def step(w, x):
        loss = lambda w: (onp.tanh(x @ w) ** 2).mean()
        value, gradient = olympus.value_and_grad(loss)(w)
        return w - 0.1 * gradient, value

    want = olympus.jit(step)(w, x)
    placed = olympus.device_put(w, explicit(None, "y")), olympus.device_put(x, explicit("x"))
    for run in (step, olympus.jit(step)):
        new, value = run(*placed)
        assert [str(olympus.typeof(v)) for v in (new, value)] == ["float32[3,4@y]", "float32[]"]
        np.testing.assert_allclose(np.asarray(new), want[0], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(float(value), want[1], rtol=1e-5)
    assert "all-reduce" in olympus.jit(step).lower(*placed).compile().as_text()


def case_sums_that_are_not_taken_yet():
    """unreduced and reduced, in types and values; gradients of shared weights."""
    a, b = (np.arange(32, dtype="f").reshape(s) / 8 for s in ((8, 4), (4, 8)))
    want, plain = a @ b, onp.asarray(a)
    with olympus.set_mesh(explicit().mesh):
        x, y = olympus.device_put(a, P(None, "x")), olympus.device_put(b, P("x", "y"))
        terms = P(None, "y", unreduced={"x"})
        product = lambda x, y: onp.dot(x, y, out_sharding=terms)
        for run in (product, olympus.jit(product)):
            z = run(x, y)
            assert str(z.aval) == "float32[8,8@y]{U:x}" and z.sharding.spec == terms
            assert repr(z).startswith("Array(shape=(8, 8), dtype=float32, sharding=Named")
            for spec in (P(), P("x", "y"), P("y")):
                np.testing.assert_allclose(np.asarray(olympus.reshard(z, spec)), want, rtol=1e-5)
        for spelled, cut in (("ij,jk->ik", terms), ("ij,jk->ki", P("y", None, unreduced={"x"})),
                             ("ji,kj->ki", P("y", unreduced={"x"}))):
            args = (x, y) if spelled[0] == "i" else (x.T, y.T)
            program = olympus.jit(lambda *args, spelled=spelled, cut=cut: onp.einsum(
                spelled, *args, out_sharding=cut)).lower(*args).compile()
            assert "all-reduce" not in program.as_text(), spelled
            z = program(*args)
            assert z.sharding.spec.unreduced == {"x"}
            np.testing.assert_allclose(np.asarray(olympus.reshard(z, P())),
                                       want if spelled.endswith("ik") else want.T, rtol=1e-5)
        z = product(x, y)
        moved = olympus.jit(lambda z: (-z.T / 2 + z.T)[:, :4].reshape(2, 4, 4) * 3)(z)
        assert str(moved.aval) == "float32[2@y,4,4]{U:x}"
        np.testing.assert_allclose(np.asarray(olympus.reshard(moved, P())),
                                   (want.T * 1.5)[:, :4].reshape(2, 4, 4), rtol=1e-5)
        for call in (lambda: onp.sin(z), lambda: z + 1, lambda: z * z, lambda: z > 0,
                     lambda: z @ onp.ones(8), lambda: z + olympus.reshard(z, P()),
                     lambda: onp.max(z), lambda: z.astype(int), lambda: z.at[0].set(1.0)):
            error(ShardingTypeError, "olympus.reshard first", call)
        put = olympus.device_put(a, P(unreduced={"x"}))
        assert np.array_equal(np.asarray(olympus.reshard(put, P())), a)
        for call in (lambda: float(z.sum()), lambda: np.asarray(z), lambda: z.tolist()):
            error(ValueError, "not added up yet along 'x'", call)
        error(ShardingTypeError, "cut along all of 'y' in both",
              lambda: onp.dot(x, y, out_sharding=P(unreduced={"y"})))
        for axes in ({"y"}, {"x", "y"}):        # einsum made terms of a product that is whole
            error(ShardingTypeError, "unreduced axes should be equal to the contracting specs",
                  lambda axes=axes: onp.einsum("ij,kj->ik", x, x, out_sharding=P(unreduced=axes)))
        for array in (onp.asarray(a), plain):       # the second is on no mesh
            back = olympus.reshard(olympus.reshard(array, P("y", unreduced={"x"})), P())
            assert np.array_equal(np.asarray(back), a)

        rows, w = olympus.device_put(a, P("x")), olympus.reshard(onp.asarray(b), P())
        loss = lambda w: (onp.sin(onp.dot(rows, onp.tanh(w) * 2 - 1)) ** 2).sum()
        gradient = np.asarray(olympus.grad(loss)(w))
        for run in (lambda f: f, olympus.jit):
            shared = olympus.reshard(w, P(reduced={"x"}))
            assert str(shared.aval) == "float32[4,8]{R:x}"
            g = run(olympus.grad(loss))(shared)         # each device's term
            assert str(g.aval) == "float32[4,8]{U:x}"
            np.testing.assert_allclose(np.asarray(olympus.reshard(g, P())), gradient, rtol=1e-4)
            g = run(olympus.grad(lambda w: loss(olympus.reshard(w, P(reduced={"x"})))))(w)
            assert str(g.aval) == "float32[4,8]"
            np.testing.assert_allclose(np.asarray(g), gradient, rtol=1e-4)
        error(ShardingTypeError, "one is reduced along 'x'", lambda: shared * w)


def case_terms_along_one_axis_become_terms_along_another():
    """XLA ends the process where one operation goes from one to the other."""
    value, mesh = np.arange(16, dtype=np.float32).reshape(4, 4), explicit().mesh
    with olympus.set_mesh(mesh):
        terms = olympus.reshard(value, P(None, None, unreduced={"y"}))
        other = P(None, None, unreduced={"x"})
        outs = {"reshard": olympus.reshard(terms, other),
                "cut": olympus.reshard(terms, P("y", None, unreduced={"x"})),
                "out_shardings": olympus.jit(
                    lambda v: v, out_shardings=NamedSharding(mesh, other))(terms)}
        for name, out in outs.items():
            assert out.aval.sums[0] == {"x"}, name
            assert np.array_equal(np.asarray(olympus.reshard(out, P())), value), name
        total = olympus.jit(lambda v: lax.reduce_sum(
            v, axes=(0, 1), out_sharding=P(unreduced={"x"})))(terms)
        assert str(total.aval) == "float32[]{U:x}"
        assert float(olympus.reshard(total, P())) == value.sum()


def case_layers_that_are_read_by_index_have_gradients_of_their_own():
    """Reduced weights, eagerly and under jit; rows are scaled, so that layers differ.
    """
    x = np.arange(1, 9, dtype=np.float32).reshape(4, 2)
    column = np.tile(x.sum(0)[:, None], (1, 2))
    with olympus.set_mesh(explicit().mesh):
        rows = olympus.device_put(x, P("x", None))
        w = olympus.device_put(np.ones((3, 2, 2), "float32"),
                               P(None, None, None, reduced={"x"}))
        losses = {
            "static": (lambda w: (rows @ w[1]).sum(), [0, 1, 0]),
            "slice": (lambda w: (rows @ w[1:2][0]).sum(), [0, 1, 0]),
            "loop": (lambda w: sum((i + 1) * (rows @ v).sum() for i, v in enumerate(w)), [1, 2, 3]),
            "dynamic": (lambda w: (rows @ lax.dynamic_index_in_dim(w, 2, keepdims=False)).sum(),
                        [0, 0, 1]),
            "gather": (lambda w: (rows @ w[np.array([0, 2, 0])]).sum(), [2, 0, 1])}
        for name, (loss, scales) in losses.items():
            wanted = np.stack([scale * column for scale in scales])
            for run in (lambda f: f, olympus.jit):
                g = run(olympus.grad(loss))(w)
                assert str(g.aval) == "float32[3,2,2]{U:x}", name
                assert np.array_equal(np.asarray(olympus.reshard(g, P())), wanted), name


def case_a_carry_that_becomes_reduced_starts_so():
    """A penalty on reduced weights that a loop adds up, from a plain zero; second derivatives, too.
    """
    x, values = np.arange(1, 9, dtype=np.float32).reshape(4, 2), np.arange(12.0).reshape(3, 2, 2)
    with olympus.set_mesh(explicit().mesh):
        rows = olympus.device_put(x, P("x", None))
        w = olympus.device_put(values.astype("float32"), P(None, None, None, reduced={"x"}))
        penalties = {
            "scan": lambda w: lax.scan(lambda c, v: (c + (v * v).sum(), None), 0.0, w)[0],
            "fori": lambda w: lax.fori_loop(0, 3, lambda i, c: c + (w[i] * w[i]).sum(), 0.0)}

        for name, loss in penalties.items():
            slope = olympus.grad(lambda w, loss=loss: loss(w) + (rows @ w[0]).sum())
            for run in (lambda f: f, olympus.jit):
                g = run(slope)(w)
                wanted = 2 * values
                wanted[0] += x.sum(0)[:, None]
                assert np.array_equal(np.asarray(olympus.reshard(g, P())), wanted), name
                second = run(olympus.grad(lambda w, slope=slope: olympus.reshard(
                    slope(w), P()).sum()))(w)
                assert np.array_equal(np.asarray(olympus.reshard(second, P())),
                                      np.full((3, 2, 2), 2)), name
        power = olympus.grad(lambda w: ((rows @ w) ** 2).sum())
        curvature = olympus.grad(lambda w: olympus.reshard(power(w), P()).sum())(w)
        assert np.array_equal(np.asarray(olympus.reshard(curvature, P())), np.broadcast_to(
            2 * (x.T @ x).sum(1)[:, None], (3, 2, 2)))


def case_loops_hand_on_terms_without_summing_them():
    """Values, and that no device waits for another in the loop."""
    value = np.arange(6, dtype=np.float32).reshape(3, 2)
    with olympus.set_mesh(explicit().mesh):
        terms = olympus.reshard(value, P(None, None, unreduced={"x"}))
        programs = {
            "rows": lambda t: lax.map(lambda v: v, t),
            "unrolled": lambda t: lax.scan(lambda c, v: (c, 2 * v), 0., t, unroll=2)[1] * 0.5,
            "carried": lambda t: lax.scan(lambda c, _: (c, c), t, None, length=3)[1][1],
            "closed-over": lambda t: lax.fori_loop(0, 3, lambda i, c: c + t, t) * 0.25}
        for name, f in programs.items():
            program = olympus.jit(f).lower(terms).compile()
            assert "all-reduce" not in program.as_text(), name
            assert np.array_equal(np.asarray(olympus.reshard(program(terms), P())), value), name


def case_gradients_of_batches_are_summed_over_devices_once():
    """Layers with reduced weights, in a loop over parts of a batch: one exchange, as of JAX."""
    rng = np.random.default_rng(0)
    ws, xs = rng.normal(size=(3, 4, 4)).astype("f"), rng.normal(size=(4, 8, 4)).astype("f")

    def loss(ws, x, dot=onp.matmul):
        y = lax.scan(lambda c, w: (onp.tanh(dot(c, w)), None), x, ws)[0]
        return (y ** 2).sum()

    def step(ws, xs, loss=loss):
        shared = olympus.reshard(ws, P(None, None, None, reduced={"x"}))
        zero = olympus.reshard(onp.zeros_like(ws), P(None, None, None, unreduced={"x"}))
        total = lax.scan(lambda g, x: (g + olympus.grad(loss)(shared, x), None), zero, xs)[0]
        return olympus.reshard(total, P())

    want = sum(olympus.grad(loss)(ws, x) for x in xs)
    with olympus.set_mesh(explicit().mesh):
        placed = olympus.device_put(ws, P()), olympus.device_put(xs, P(None, "x", None))
        for kept in (None, olympus.checkpoint_policies.dots_saveable):
            program = olympus.jit(lambda ws, xs, kept=kept: step(
                ws, xs, olympus.checkpoint(loss, policy=kept))).lower(*placed).compile()
            assert program.as_text().count(" all-reduce(") == 1
            np.testing.assert_allclose(np.asarray(program(*placed)), want, rtol=2e-5, atol=1e-5)
        # So does a rule of a user's, whose gradient of the weight has terms.
        ruled = olympus.custom_vjp(onp.matmul)
        ruled.defvjp(lambda x, w: (x @ w, (x, w)), lambda res, ct: (
            ct @ res[1].T, onp.einsum("bi,bj->ij", res[0], ct, out_sharding=P(unreduced={"x"}))))
        by_rule = lambda ws, x: loss(ws, x, ruled)
        for f in (by_rule, olympus.checkpoint(by_rule)):
            program = olympus.jit(lambda ws, xs, f=f: step(ws, xs, f)).lower(*placed).compile()
            assert program.as_text().count(" all-reduce(") == 1
            np.testing.assert_allclose(np.asarray(program(*placed)), want, rtol=2e-5, atol=1e-5)
        rows = olympus.device_put(xs, P(None, "x", "y"))        # features along another axis
        parallel = lambda c, w: onp.matmul(c, w, out_sharding=P("x", "y"))
        for run in (lambda f: f, olympus.jit):
            found = run(lambda ws, xs: step(ws, xs, lambda w, x: loss(w, x, parallel)))(
                placed[0], rows)
            np.testing.assert_allclose(np.asarray(found), want, rtol=2e-5, atol=1e-5)
        each = olympus.vmap(olympus.grad(loss), in_axes=(0, None))(
            olympus.device_put(np.stack([ws, -ws]), P(reduced={"x"})), placed[1][0])
        assert str(each.aval) == "float32[2,3,4,4]{U:x}"
        np.testing.assert_allclose(np.asarray(olympus.reshard(each, P())), np.stack(
            [olympus.grad(loss)(w, xs[0]) for w in (ws, -ws)]), rtol=2e-5, atol=1e-5)


def case_rows_of_groups_may_be_cut():
    rng = np.random.default_rng(0)
    x, w, sizes = rng.normal(size=(8, 4)), rng.normal(size=(3, 4, 2)), np.array([3, 0, 4])
    loss = lambda x, w: (lax.ragged_dot(x, w, sizes) ** 2).sum()
    want = [lax.ragged_dot(x, w, sizes), *olympus.grad(loss, (0, 1))(x, w)]
    x, w = olympus.device_put(x, explicit("x")), olympus.device_put(w, explicit(None, None, "y"))
    found = [lax.ragged_dot(x, w, sizes), *olympus.jit(olympus.grad(loss, (0, 1)))(x, w)]
    for one, other, dims in zip(found, want, ("8@x,2@y", "8@x,4", "3,4,2@y"), strict=True):
        np.testing.assert_allclose(one, other, 1e-5, 1e-6)
        assert str(olympus.typeof(one)) == f"float32[{dims}]", one.aval


def case_tangents_of_tangents_need_no_devices():
    """A tangent of no mesh, beside a result of `shard_map`, when nothing records the program."""
    double = olympus.shard_map(lambda x: x * 2, mesh=explicit().mesh, in_specs=P(), out_specs=P())
    inner = lambda y: olympus.jvp(lambda x: double(onp.float32(3)) + x * x, (y,), (1.0,))
    for f in (lambda y: inner(y)[0], lambda y: inner(y)[1]):
        out, tangent = olympus.jvp(f, (2.0,), (1.0,))
        assert (out, tangent) in ((10, 4), (4, 2)), (out, tangent)


def case_axes_change_their_types_for_a_function():
    x = olympus.device_put(X, on("x", "y"))
    with olympus.set_mesh(on().mesh):
        for wrap in (lambda f: f, olympus.jit):
            seen = []
            f = explicit_axes(lambda a: seen.append(str(olympus.typeof(a))) or a.T * 2,
                              in_sharding=P("x", "y"))
            y = wrap(f)(x)
            assert seen == ["float32[4@x,2@y]"] and str(olympus.typeof(y)) == "float32[2,4]"
            assert np.array_equal(np.asarray(y), X.T * 2)
            assert y.aval.sharding.mesh == on().mesh.abstract_mesh
    with olympus.set_mesh(explicit().mesh):
        x = olympus.device_put(X, P("x", "y"))
        seen = []
        f = auto_axes(lambda a: seen.append(olympus.typeof(a).sharding) or a @ a.T)
        y = f(x, out_sharding=P(None, "x"))
        assert str(olympus.typeof(y)) == "float32[4,4@x]" and seen[0].mesh.are_all_axes_auto
        assert np.array_equal(np.asarray(y), X @ X.T)
        total = lambda a: f(a, out_sharding=P("y")).sum()
        g = olympus.grad(total)(x)
        assert str(olympus.typeof(g)) == "float32[4@x,2@y]"
        assert np.array_equal(np.asarray(g), np.tile(2 * X.sum(0), (4, 1)))


def case_primitives_of_users_have_the_types_that_their_rules_give():
    """Regression: operands that are cut were refused, on the meshes that make_mesh makes."""
    twice, total = map(Primitive, ("twice", "total"))
    twice.def_abstract_eval(lambda x: x)
    total.def_abstract_eval(lambda x: ShapedArray((), x.dtype))
    for p, fun in (twice, lambda x: x * 2), (total, lambda x: x.sum()):
        mlir.register_lowering(p, mlir.lower_fun(fun, multiple_results=False))
        ad.primitive_jvps[p] = lambda xs, ts, fun=fun: olympus.jvp(fun, xs, ts)
    value = np.arange(32, dtype=np.float32).reshape(8, 4)
    x = olympus.device_put(value, explicit("x", "y"))
    with olympus.set_mesh(x.sharding.mesh):
        for run in (lambda f: f, olympus.jit):
            out = run(twice.bind)(x)
            assert str(olympus.typeof(out)) == "float32[8@x,4@y]" == str(olympus.typeof(
                run(olympus.grad(lambda x: total.bind(twice.bind(x))))(x)))
            check_parts(out, value * 2)
            assert run(lambda x: total.bind(twice.bind(x)) + 1)(x) == 2 * value.sum() + 1


def case_references_hold_what_is_cut():
    """Read, written, swapped, added to and made inside; the same on plain arrays."""
    def whole(ref):
        ref[...] *= 2
        olympus.ref.addupdate(ref, ..., onp.ones(2))
        return olympus.ref.swap(ref, ..., ref[...] + 1)

    def inside(ref):
        made = olympus.new_ref(ref[...] * 2)
        lax.fori_loop(0, 2, lambda i, c: (made.__setitem__(..., made[...] + 1), c)[1], 0)
        return olympus.ref.freeze(made)

    cases = [(whole, 2 * X + 2, 2 * X + 1, "x", "y"), (inside, X, X * 2 + 2, "x", "y"),
             (lambda ref: ref[:, None] + 1, X, X[:, None] + 1, "x", None, "y"),
             (lambda ref: olympus.ref.get(ref.at[...].T), X, X.T, "y", "x"),
             (olympus.vmap(lambda row: row[...] * 2), X, X * 2, "x", "y"),
             (lambda ref: olympus.grad(lambda x: onp.sum(olympus.new_ref(x)[...] ** 2))(ref[...]),
              X, 2 * X, "x", "y")]
    with olympus.set_mesh(explicit().mesh):
        for f, content, out, *spec in cases:
            for wrap in (olympus.jit, lambda f: f):
                ref = olympus.new_ref(olympus.device_put(X, P("x", "y")))
                found = wrap(f)(ref)
                assert np.array_equal(np.asarray(found), out)
                assert np.array_equal(np.asarray(ref[...]), content)
                assert olympus.typeof(found).sharding.spec == P(*spec)
                assert olympus.typeof(ref[...]).sharding.spec == P("x", "y")


CASES = names(globals())

if __name__ == "__main__":
    report(globals())
