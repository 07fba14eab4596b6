"""Cases for tests/test_shard_map.py, which runs this file in a process with eight CPU devices.

Oracles are NumPy on whole arrays, and the programs of all devices, run one after the other.
"""

import sys

import numpy as np
from eight_devices import error, names, report
from shard_map_programs import Program

import olympus
import olympus.numpy as onp
from olympus import export, lax
from olympus._src.core import staging
from olympus._src.interpreters import partial_eval
from olympus.ad_checkpoint import checkpoint_name
from olympus.experimental import checkify, io_callback, sparse
from olympus.experimental.pallas.ops.tpu import splash_attention as splash
from olympus.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

X = np.arange(32, dtype=np.float32).reshape(8, 4)


def mesh(sizes=(4, 2), names=("x", "y"), order=slice(None)):
    return Mesh(np.array(olympus.devices())[order].reshape(sizes), names)


def close(have, want):
    np.testing.assert_allclose(np.asarray(have), want, rtol=1e-5, atol=1e-5)


def both(f, *args):
    """The result of a function, eagerly and jitted, which must agree."""
    eager, jitted = f(*args), olympus.jit(f)(*args)
    olympus.tree.map(lambda a, b: close(a, np.asarray(b)), eager, jitted)
    return jitted


def case_parts_go_in_and_come_out_as_specifications_say():
    for spec, shape in [(P(), (8, 4)), (P("x"), (2, 4)), (P("y", "x"), (4, 1)),
                        (P(("y", "x")), (1, 4)), (P(None, "y"), (8, 2))]:
        seen = []
        f = olympus.shard_map(lambda x: seen.append(x.shape) or x * 2, mesh=mesh(), in_specs=spec,
                              out_specs=spec)
        out = both(f, X)
        close(out, X * 2)
        assert set(seen) == {shape}, seen
        assert out.sharding.is_equivalent_to(NamedSharding(mesh(), spec), 2), out.sharding


def case_sparse_arrays_are_cut_along_batch_axes():
    # With one batch on each device the shape stayed the whole one.
    whole = np.zeros((8, 3, 4), np.float32)
    whole[:, 1, 2] = whole[:, 0, 1] = np.arange(1, 9)
    line = Mesh(np.array(olympus.devices()), "x")
    for made in (sparse.BCOO, sparse.BCSR):
        for batches in (8, 16):
            seen = []
            f = lambda m: (seen.append(m.shape) or m, m @ onp.ones(4))
            want = np.concatenate([whole] * (batches // 8))
            mat, product = olympus.shard_map(f, mesh=line, in_specs=P("x"), out_specs=P("x"))(
                made.fromdense(want, n_batch=1))
            close(product, want.sum(-1))
            assert mat.shape == (batches, 3, 4) and set(seen) == {(batches // 8, 3, 4)}, seen


def case_results_are_named_as_their_specifications():
    """Of explicit axes the eager result was P(None, None), which does not equal P()."""
    for kind in (AxisType.Auto, AxisType.Explicit):
        m = olympus.make_mesh((4, 2), ("x", "y"), (kind,) * 2)
        x = olympus.device_put(X, NamedSharding(m, P()))
        for spec in (P(), P("x"), P(None, "y"), P("x", None)):
            f = olympus.shard_map(lambda a: a, mesh=m, in_specs=P(), out_specs=spec,
                                  check_vma=False)
            assert f(x).sharding == NamedSharding(m, spec), (kind, spec, f(x).sharding)
            placed = olympus.jit(lambda a: a + 1, out_shardings=NamedSharding(m, spec))
            assert placed(x).sharding == NamedSharding(m, spec), (kind, spec)


def case_sums_are_over_the_devices_of_an_axis():
    def f(a):
        along = lax.psum(a, "y"), lax.pmean(a, ("y", "x")), lax.psum(1, ("x", "y"))
        here = lax.axis_index("x") * 2 + lax.axis_index("y")
        return *along, here[None], lax.psum(a, "x", axis_index_groups=[[0, 3], [1, 2]])

    for order in (slice(None), slice(None, None, -1), [3, 1, 4, 0, 5, 2, 7, 6]):
        g = olympus.shard_map(f, mesh=mesh(order=order), in_specs=P("x", "y"), out_specs=(
            P("x"), P(), P(), P(("x", "y")), P("x", "y")))
        rows, mean, count, here, groups = both(g, X)
        blocks = X.reshape(4, 2, 2, 2)      # [x, row, y, column]
        close(rows, (X[:, :2] + X[:, 2:]))
        close(mean, blocks.mean((0, 2)))
        assert count == 8 and here.tolist() == list(range(8))
        partner = blocks + blocks[[3, 2, 1, 0]]
        close(groups, partner.reshape(8, 4))


def case_sums_of_16_bits_are_rounded_once():
    """Ones next to the first number from which the format has no odd ones: each alone is lost."""
    def f(x):
        parts = onp.broadcast_to(x, (8,))
        return lax.psum(x, "i"), lax.psum_scatter(parts, "i", tiled=True), lax.pmean(x, "i")

    for name, first in ("float16", 2048), ("bfloat16", 256):
        x = onp.asarray([first] + [1] * 7, name)
        out = both(olympus.shard_map(f, mesh=mesh((8,), ("i",)), in_specs=P("i"),
                                     out_specs=(P(), P("i"), P())), x)
        right = np.asarray(first + 7).astype(x.dtype)
        assert [each.dtype for each in out] == [x.dtype] * 3
        close(out[0], [right]), close(out[1], [right] * 8), close(out[2], [right / 8])


def sm(f, in_specs, out_specs, mesh_=None, **options):
    return olympus.shard_map(f, mesh=mesh_ or mesh(), in_specs=in_specs, out_specs=out_specs,
                             **options)


def grid(x):
    """The rows that each position along x has: [4, 2, 4]."""
    return np.asarray(x).reshape(4, 2, 4)


def case_generated_programs_are_those_of_numpy():
    with olympus.enable_x64(True):
        for seed in (7, 11, 20):
            program = Program(seed)
            try:
                program.run(eager=seed == 11)
            except Exception as error:
                raise AssertionError(f"seed {seed}: {program}") from error


def loss(w, x):
    return lax.psum((onp.tanh(x @ w) ** 2).sum(), ("x", "y"))


def case_derivatives_are_those_of_the_whole():
    rng = np.random.default_rng(0)
    w, x = rng.normal(size=(4, 3)).astype("f4"), rng.normal(size=(16, 4)).astype("f4")
    whole = lambda w, x: (onp.tanh(x @ w) ** 2).sum()
    want = olympus.grad(whole, (0, 1))(w, x)
    second = olympus.jvp(lambda w: olympus.grad(whole)(w, x), (w,), (w,))[1]
    for check in (True, False):
        f = sm(loss, (P(), P(("x", "y"))), P(), check_vma=check)
        inside = sm(olympus.checkpoint(loss), (P(), P(("x", "y"))), P(), check_vma=check)
        close(f(w, x), whole(w, x))
        for g in (f, olympus.checkpoint(f), inside, olympus.jit(f)):
            olympus.tree.map(close, olympus.jit(olympus.grad(g, (0, 1)))(w, x), want)
        close(olympus.jvp(f, (w, x), (w, x))[1], olympus.jvp(whole, (w, x), (w, x))[1])
        close(olympus.jvp(lambda w, f=f: olympus.grad(f)(w, x), (w,), (w,))[1], second)
        both = olympus.vmap(olympus.grad(f), (0, None))(np.stack([w, 2 * w]), x)
        close(both[0], want[0])
        closed = lambda w, check=check: sm(lambda x: loss(w, x), P(("x", "y")), P(),
                                           check_vma=check)(x)
        close(olympus.grad(closed)(w), want[0])


def case_a_result_is_no_second_residual():
    f = sm(onp.exp, P("x"), P("x"))
    program = olympus.make_olympuspr(olympus.grad(lambda x: f(x).sum()))(X)
    first, *_, last = program.eqns
    assert len(first.outvars) == 1 and last.invars[0] is first.outvars[0], program


def case_checkpoint_keeps_what_a_policy_names():
    f = sm(lambda x: onp.sin(checkpoint_name(onp.sin(onp.sin(x)), "a")), P("x"), P("x"))
    keep = olympus.checkpoint_policies.save_only_these_names("a")
    g = olympus.grad(lambda x: olympus.checkpoint(f, policy=keep)(x).sum())
    first = olympus.make_olympuspr(g)(X).eqns[0]
    assert [str(v.aval) for v in first.outvars] == ["float32[8,4]"] * 2     # the result and "a"
    close(olympus.jit(g)(X), olympus.grad(lambda x: f(x).sum())(X))


def case_exports_are_called():
    f = sm(lambda x: x * lax.psum(x, "x"), P("x", "y"), P("x", "y"))
    made = export.export(olympus.jit(f))(olympus.ShapeDtypeStruct((8, 4), "float32"))
    assert made.nr_devices == 8
    x = olympus.device_put(X, NamedSharding(mesh(), P("x", "y")))
    close(export.deserialize(made.serialize()).call(x), f(X))


def case_some_axes_only():
    f = sm(lambda x: lax.psum(x, "x") * (1 + lax.axis_index("x")), P("x"), P("x"),
           axis_names={"x"})
    want = lambda x: np.concatenate([grid(x).sum(0) * (i + 1) for i in range(4)])
    close(both(f, X), want(X))
    close(olympus.jit(olympus.grad(lambda x: f(x).sum()))(X), np.full((8, 4), 10.0))
    seen = []

    def inner(x):
        around = olympus.sharding.get_abstract_mesh()
        seen.append((around.manual_axes, x.shape, sorted(olympus.typeof(x).vma)))
        return lax.psum(x.sum(), ("x", "y"))

    def outer(x):
        assert x.aval.sharding.mesh.axis_types == (AxisType.Manual, AxisType.Auto)
        x = lax.with_sharding_constraint(x, P(None, "y"))
        return olympus.shard_map(inner, in_specs=P(None, "y"), out_specs=P())(x)

    nested = olympus.jit(sm(outer, P("x"), P(), axis_names={"x"}))
    assert nested(X) == X.sum() and seen == [(("x", "y"), (2, 2), ["x", "y"])]
    close(olympus.grad(nested)(X), np.ones((8, 4)))
    demand = NamedSharding(mesh(), P("y"))
    for own in ("y", "xy"):
        error(ValueError, "contains a manual axes ('y') of mesh", lambda own=own: (
            olympus.jit(sm(lambda x: lax.with_sharding_constraint(x, demand), P(), P(),
                           axis_names=set(own)))(X)))


def case_vmap_around_and_within():
    xs = np.stack([X, 2 * X])
    sums = lambda x: grid(x).sum(0)
    f = sm(lambda x: lax.psum(x, "x"), P("x"), P())
    close(olympus.vmap(f)(xs), np.stack([sums(x) for x in xs]))
    close(olympus.vmap(f, axis_name="x")(xs), np.stack([sums(x) for x in xs]))
    named = sm(lambda x: lax.psum(lax.psum(x, "x"), "i"), P("x"), P())
    close(olympus.vmap(named, axis_name="i")(xs), np.stack([3 * sums(X)] * 2))
    program = olympus.make_olympuspr(olympus.vmap(f, 1, spmd_axis_name="y"))(xs.swapaxes(0, 1))
    assert program.eqns[0].params["in_specs"] == (P("x", "y"),)
    for check in (True, False):
        g = sm(lambda x: lax.psum(onp.sin(x), "x"), P("x"), P(), check_vma=check)
        close(olympus.vmap(olympus.grad(lambda x, g=g: g(x).sum()), spmd_axis_name="y")(xs),
              np.cos(xs))
    error(ValueError, "spmd_axis_name cannot appear in shard_map in_specs", lambda: olympus.vmap(
        f, spmd_axis_name="x")(np.stack([X] * 4)))


def _staged(call):
    """How many programs a call stages."""
    codes, found = {staging.stage.__code__, partial_eval.split_program.__code__}, []
    sys.setprofile(lambda frame, event, _: found.append(frame.f_code)
                   if event == "call" and frame.f_code in codes else None)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len(found)


def case_an_eager_call_that_was_made_before_stages_nothing():
    """Each operation's program was made again, and all that grad and the compiler derive of it."""
    x, w = olympus.device_put(X, NamedSharding(mesh(), P("x"))), np.ones((4, 4), np.float32)
    for name, fun in {
            "operations": lambda p: onp.tanh(onp.sin(p) @ w) * 2,
            "collectives": lambda p: p * lax.psum(p.sum(), ("x", "y")) + lax.axis_index("x"),
            "jit": olympus.jit(lambda p: onp.cos(p) * p), "library": olympus.nn.softmax,
            "custom": olympus.nn.relu,
            "cond": lambda p: lax.cond(lax.pmax(p.sum(), "x") > 0, onp.sin, onp.cos, p)}.items():
        f = olympus.shard_map(fun, mesh=mesh(), in_specs=P("x"), out_specs=P("x"),
                              check_vma=name != "collectives")

        def loss(x, f=f):
            return f(x).sum()

        for how, given in ((f, x), (olympus.grad(loss), x),
                           (olympus.vmap(olympus.grad(loss)), onp.stack([x, x]))):
            first = [how(given) for _ in range(3)][0]
            assert _staged(lambda how=how, given=given: how(given)) == 0, (name, given.shape)
            close(how(given), first)
            close(olympus.jit(how)(given), first)
    # What differs is told apart: values of parameters, meshes, and types.
    for power in (2, 3, 2):
        f = olympus.shard_map(lambda p, n=power: p ** n, mesh=mesh(), in_specs=P("x"),
                              out_specs=P("x"))
        close(f(x), X ** power)
    for sizes in ((4, 2), (2, 4), (4, 2)):
        f = olympus.shard_map(lambda p: p * lax.axis_size("x") + lax.axis_index("y"),
                              mesh=mesh(sizes), in_specs=P("x", None), out_specs=P(("x", "y")))
        assert f(X)[0, 1] == sizes[0], sizes


def case_eagerly_python_runs_and_sees_parts():
    seen = []

    def f(x):
        seen.append((str(x), str(lax.psum(x.sum(), "x"))))
        if lax.psum(x.sum(), ("x", "y")) > 0:       # the same on all devices
            x = x + onp.ones(4) * np.float32(2)
        x = olympus.jit(lambda x: x * 2)(x)
        gradient = olympus.grad(lambda w: (x * w).sum())(onp.ones(4))
        assert str(olympus.typeof(gradient)) == "float32[4]"
        return lax.scan(lambda c, r: (c + r, r), x[0], x)[1] + 0 * gradient

    close(sm(f, P("x"), P("x"))(X), (X + 2) * 2)
    (parts, total), = seen
    assert "On cpu:5 at mesh coordinates (x, y,) = (2, 1):\n[[16. 17. 18. 19.]" in parts, parts
    assert total.startswith("On cpu:0 at mesh coordinates (x, y,) = (0, 0):\n496.0"), total
    error(olympus.errors.TracerBoolConversionError, "one part of a value, on each device",
          lambda: sm(lambda x: x if x.sum() > 0 else -x, P("x"), P("x"))(X))
    error(olympus.errors.TracerBoolConversionError, "bool()", lambda: olympus.jit(
        sm(lambda x: x if lax.psum(x.sum(), "x") > 0 else -x, P("x"), P("x")))(X))
    traced = []
    sm(lambda x: traced.append(x) or x, P("x"), P("x"))(X)
    error(olympus.errors.UnexpectedTracerError, "after its transformation ended",
          lambda: traced[0] + 1)


def case_python_sees_values_within_grad_and_vmap():
    """The function was staged there, and `if` raised."""
    def f(x, flag):
        if flag > 0 and lax.psum(x.sum(), ("x", "y")) > 0:
            return onp.sin(x)
        return -x

    for check in (True, False):
        g = sm(f, (P("x"), P()), P("x"), check_vma=check) if check else (
            lambda x, flag: sm(lambda x: onp.sin(x) if flag > 0 else -x, P("x"), P("x"),
                               check_vma=False)(x))
        total = lambda x, flag, g=g: (g(x, flag) * X).sum()
        close(olympus.grad(total)(X, 1), np.cos(X) * X)
        close(olympus.grad(total)(X, -1), -X)
        close(olympus.vjp(lambda x, g=g: g(x, 1), X)[1](X)[0], np.cos(X) * X)
        close(olympus.vmap(g, (0, None))(np.stack([X, -X]), -1), np.stack([-X, X]))
    sign = olympus.custom_vjp(lambda x: onp.sign(x))
    sign.defvjp(lambda x: (onp.sign(x), x), lambda x, ct: (ct * x,))
    close(olympus.grad(lambda x: sm(sign, P("x"), P("x"))(x).sum())(X), X)
    error(olympus.errors.ConcretizationTypeError, "not being differentiated", lambda: olympus.grad(
        lambda x: sm(lambda x: x * float(lax.psum(x.sum(), ("x", "y"))), P("x"), P("x"))(x).sum()
    )(X))


def case_callbacks_and_keys_of_each_device():
    seen = []

    def f(x):
        olympus.debug.callback(lambda i, x: seen.append((int(i), float(x))), lax.axis_index("x"),
                               x.sum())
        return olympus.pure_callback(lambda x: np.asarray(x) * 2, x, x)

    for own, calls in (({"x", "y"}, 2), ({"x"}, 1)):
        close(olympus.jit(sm(f, P("x"), P("x"), axis_names=own))(X), 2 * X)
        olympus.effects_barrier()
        assert sorted(seen) == sorted([(i, float(grid(X)[i].sum())) for i in range(4)] * calls)
        seen.clear()
    for own, ordered in (({"x", "y"}, True), ({"x"}, False)):
        added = olympus.jit(sm(lambda x, ordered=ordered: io_callback(
            lambda x: np.asarray(x) + 1, x, x, ordered=ordered), P("x"), P("x"), axis_names=own))
        close(added(X), X + 1)
    ordered = lambda x: io_callback(lambda x: x, x, x, ordered=True)
    for f in (ordered, lambda x: olympus.shard_map(ordered, in_specs=P(None, "y"), out_specs=P(
            None, "y"))(x), lambda x: olympus.debug.print("{}", x, ordered=True) or x):
        # Lowered only: XLA would not survive it.
        error(NotImplementedError, "effects that keep their order", lambda f=f: olympus.jit(
            sm(f, P("x"), P("x"), axis_names={"x"})).lower(X))
    key = olympus.random.key(0)
    draws = sm(lambda k: olympus.random.normal(
        olympus.random.fold_in(k, lax.axis_index("x")), (2,)), P(), P("x"))
    want = np.concatenate([olympus.random.normal(olympus.random.fold_in(key, i), (2,))
                           for i in range(4)])
    close(both(draws, key), want)
    keys = olympus.random.split(key, 4)
    close(olympus.jit(sm(lambda k: olympus.random.normal(k[0], (1,)), P("x"), P("x")))(keys),
          np.stack([olympus.random.normal(k) for k in keys]))


def case_what_a_device_has_is_whole():
    seen = []
    f = sm(lambda x: olympus.debug.inspect_array_sharding(x, callback=seen.append) or x, P("x"),
           P("x"))
    close(olympus.jit(f)(X), X)
    assert seen == [NamedSharding(mesh(), P())], seen


def case_keys_that_devices_use_are_used():
    draw = olympus.jit(sm(lambda k: olympus.random.normal(k[0], (2,)), P("x"), P("x")))
    same = olympus.jit(sm(lambda k: olympus.random.normal(k, (2,)), P(), P()))
    with olympus.debug_key_reuse(True):
        keys = olympus.random.split(olympus.random.key(0), 8)
        draw(keys)
        olympus.random.normal(keys[1])      # each device draws with the first of its two
        error(olympus.errors.KeyReuseError, "after it was used", lambda: olympus.random.normal(
            keys[2]))
        key = olympus.random.key(0)
        same(key)
        error(olympus.errors.KeyReuseError, "after it was used", lambda: same(key))


def case_explicit_axes():
    m = olympus.make_mesh((4, 2), ("x", "y"))
    v = olympus.device_put(X, NamedSharding(m, P("x", "y")))

    def f(x):
        assert x.aval.sharding.mesh.axis_types == (AxisType.Manual, AxisType.Explicit)
        return x * x

    def some(x):
        return olympus.shard_map(f, mesh=m, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})(x)

    for g in (some, olympus.jit(some)):
        assert str(olympus.typeof(g(v))) == "float32[8@x,4@y]" and (np.asarray(g(v)) == X * X).all()
    with olympus.set_mesh(m):
        rows = olympus.shard_map(lambda x: lax.psum(x.sum(1), "y"), out_specs=P("x"))
        for g in (rows, olympus.jit(rows)):
            assert str(olympus.typeof(g(v))) == "float32[8@x]"
            close(g(v), X.sum(1))
        gradient = olympus.jit(olympus.grad(lambda v: (rows(v) ** 2).sum()))(v)
        assert str(olympus.typeof(gradient)) == "float32[8@x,4@y]"
        close(gradient, np.broadcast_to(2 * X.sum(1, keepdims=True), X.shape))
        ring = olympus.smap(lambda x: lax.ppermute(x, "x", [(i, (i + 1) % 4) for i in range(4)]),
                            in_axes=0, out_axes=0, axis_name="x")
        close(olympus.jit(ring)(v), np.roll(X, 2, 0))
        error(ValueError, "does not match the specs of the input", lambda: olympus.shard_map(
            f, in_specs=P("y"), out_specs=P())(v))
        for g in (lambda f: f, olympus.jit):
            error(NotImplementedError, "Closing over inputs", lambda g=g: g(olympus.shard_map(
                lambda x: x + v.sum(), in_specs=P("x", "y"), out_specs=P("x", "y")))(v))
    mapped = olympus.jit(olympus.vmap(olympus.shard_map(
        lambda x: x * 2, mesh=m, in_specs=P("y"), out_specs=P("y"))))
    assert str(olympus.typeof(mapped(v))) == "float32[8@x,4@y]"
    error(ValueError, "requires axis_names", lambda: olympus.jit(olympus.vmap(olympus.shard_map(
        f, mesh=m, in_specs=P("y"), out_specs=P("y"), axis_names={"x", "y"})))(v))


def case_sums_go_in_and_out():
    m = olympus.make_mesh((4, 2), ("x", "y"))
    rng = np.random.default_rng(1)
    w, x = rng.normal(size=(4, 3)).astype("f4"), rng.normal(size=(8, 4)).astype("f4")
    summed = lambda x: np.asarray(x.addressable_shards[0].data) * 0 + sum(
        np.asarray(s.data) for s in x.addressable_shards if s.device.id % 2 == 0)
    with olympus.set_mesh(m):
        shared, rows = olympus.device_put(w, P(reduced={"x"})), olympus.device_put(x, P("x"))
        terms = olympus.shard_map(lambda x: lax.pcast(x.sum(0), "x", to="unreduced"),
                                  out_specs=P(unreduced={"x"}))
        total = olympus.shard_map(lambda t: lax.psum(t, "x"), out_specs=P())
        layer = olympus.shard_map(lambda w, x: onp.tanh(x @ w), out_specs=P("x"))
        copy = olympus.shard_map(lambda w: onp.tanh(w), out_specs=P(reduced={"x"}))
        for run in (lambda f: f, olympus.jit):
            out = run(terms)(rows)
            assert str(olympus.typeof(out)) == "float32[4]{U:x}"
            close(summed(out), x.sum(0))
            close(run(total)(out), x.sum(0))
            gradient = run(olympus.grad(lambda x: (total(terms(x)) ** 2).sum()))(rows)
            close(gradient, np.broadcast_to(2 * x.sum(0), x.shape))
            gradient = run(olympus.grad(lambda t: (total(t) ** 2).sum()))(out)
            assert str(olympus.typeof(gradient)) == "float32[4]{R:x}"
            close(gradient, 2 * x.sum(0))
            for f, want in ((layer, x.T @ (1 - np.tanh(x @ w) ** 2)), (
                    lambda w, x: copy(w), 1 - np.tanh(w) ** 2)):
                gradient = run(olympus.grad(lambda w, f=f: f(w, rows).sum()))(shared)
                assert str(olympus.typeof(gradient)) == "float32[4,3]{U:x}"
                close(summed(gradient), want)
                close(olympus.reshard(gradient, P()), want)
        # Without check_vma types say nothing: scattered values and terms have these derivatives.
        scatter = olympus.shard_map(lambda t: lax.psum_scatter(t, "x", tiled=True), out_specs=P(
            "x"), in_specs=P(unreduced={"x"}), check_vma=False)
        weights = onp.arange(4.0)
        close(olympus.grad(lambda t: (scatter(t) * weights).sum())(out), np.arange(4.0))
        claimed = olympus.shard_map(lambda x: x, in_specs=P("x"), out_specs=P(unreduced={"x"}),
                                    check_vma=False)
        close(olympus.grad(lambda x: olympus.reshard(claimed(x), P()).sum())(rows), np.ones((8, 4)))
        stacked = olympus.reshard(onp.stack([x[0], x[1]]), P(unreduced={"x"}))
        close(olympus.jit(olympus.vmap(total))(stacked), x[:2])
        f = lambda t: t
        for text, call in [
                ("should be equal to the unreduced present on the result, none",
                 lambda: olympus.shard_map(f, out_specs=P(unreduced={"x"}))(x)),
                ("should be equal to the reduced present on the result, 'x'",
                 lambda: olympus.shard_map(f, out_specs=P())(shared)),
                ("does not match the specs of the input", lambda: olympus.shard_map(
                    f, in_specs=P(unreduced={"x"}), out_specs=P())(x)),
                ("does not match the specs of the input", lambda: olympus.shard_map(
                    f, in_specs=P(), out_specs=P())(shared))]:
            error(ValueError, text, call)
        error(NotImplementedError, "Closing over", lambda: olympus.shard_map(
            lambda x: x @ shared, out_specs=P("x"))(rows))
        error(NotImplementedError, "an unreduced rule for sin", lambda: olympus.shard_map(
            onp.sin, out_specs=P(unreduced={"x"}))(out))


def case_meshes_without_devices():
    m = mesh()
    f = olympus.shard_map(lambda x: lax.psum(x, "x"), mesh=m.abstract_mesh, in_specs=P("x"),
                          out_specs=P())
    x = olympus.device_put(X, NamedSharding(m, P("x")))
    close(both(f, x), grid(X).sum(0))
    error(ValueError, "Please pass `olympus.Array`s with a `NamedSharding`", lambda: f(X))
    other = olympus.device_put(X, NamedSharding(mesh((8,), ("z",)), P("z")))
    error(ValueError, "does not match the mesh shape passed to shard_map", lambda: f(other))
    with m:
        close(olympus.shard_map(lambda x: x * 2, in_specs=P("x"), out_specs=P("x"))(X), X * 2)


def case_a_nan_is_found_on_its_device():
    """Eagerly and jitted: the operation inside, the device, the element of its part."""
    def inside(x):
        return lax.psum(onp.sqrt(x), "y")

    def rows(x):
        return lax.scan(lambda c, a: (c, onp.log(a)), 0, x)[1]

    x = np.ones((8, 4), np.float32)
    x[5, 2] = -1.0      # of the third part along x, the second along y
    cases = [(inside, P("x"), "sqrt", "[1, 0]", ""),
             (rows, P("x", "y"), "log", "[0]", "in iteration 1 of scan")]
    with olympus.debug_nans(True):
        for f, out, operation, element, loop in cases:
            g = olympus.shard_map(f, mesh=mesh(), in_specs=P("x", "y"), out_specs=out)
            for call in (olympus.jit(g), g) if not loop else (olympus.jit(g),):
                found = error(FloatingPointError, f"encountered in {operation}", lambda: call(x))
                assert loop in found, found
                assert f"Element {element}, on device cpu:5; the operands there are -1.0" in found
        cut = olympus.device_put(x, NamedSharding(mesh(), P("x", "y")))
        for call in (olympus.jit(lambda x: onp.sqrt(x) + 1), onp.sqrt):
            found = error(FloatingPointError, "encountered in sqrt", lambda: call(cut))
            assert "Element [5, 2], on device cpu:5; the operands there are -1.0" in found


def case_bad_calls():
    f = lambda x: x
    for kind, text, call in [
            (ValueError, "value: pytree structure error: tree structures differ at [0]",
             lambda: sm(f, ([P("x")],), P())([X, X])),
            (ValueError, "which has rank 0, and the entry of out_specs for it is P('x',), which "
             "has length 1", lambda: sm(lambda: {"hi": [3.0]}, (), {"hi": P("x")})()),
            (ValueError, "argument x['hi'][0] is float32[], which has rank 0",
             lambda: sm(f, ({"hi": P("x")},), P())({"hi": [1.0]})),
            (ValueError, "consider using an in_specs entry of `P()`",
             lambda: sm(f, P(None), P())(3.0)),
            (ValueError, "cuts axis 0 of size 3 along 'x' into 4 parts; sizes that are evenly "
             "divisible", lambda: sm(f, P("x"), P("x"))(np.ones(3))),
            (ValueError, "varying across mesh axes {x} and not {y}, but it was inferred to be "
             "possibly varying over {x,y}", lambda: sm(f, P("x", "y"), P("x"))(X)),
            (ValueError, "can't be statically inferred: for its result, float32[2,2]{V:(x,y)}",
             lambda: olympus.jit(sm(f, P("x", "y"), P("x")))(X)),
            (ValueError, "in_specs refers to 'z'", lambda: sm(f, P("z"), P())(X)),
            (ValueError, "out_specs refers to 'y'", lambda: sm(f, P("x"), P("y"), axis_names={"x"})(
                X)),
            (TypeError, "it must be a tuple or a str", lambda: sm(
                lambda x: lax.pcast(x, {"x"}, to="varying"), P(), P("x"))(X)),
            (ValueError, "contains axis names all of type `Explicit`",
             lambda: sm(f, P(unreduced={"x"}), P())(X)),
            (NotImplementedError, "can only be passed to in_specs when", lambda: sm(
                f, (P(unreduced={"x"}),), P(), axis_names={"x"})(X)),
            (ValueError, "at most once", lambda: sm(f, P("x", "x"), P())(X)),
            (ValueError, "olympus.shard_map requires axis_names='w' to be a subset",
             lambda: sm(f, P("x"), P(), axis_names={"w"})(X)),
            (TypeError, "write {'x'}", lambda: sm(f, P("x"), P(), axis_names=("x",))(X)),
            (TypeError, "in_specs is 'x' of type str", lambda: sm(f, "x", P())(X)),
            (TypeError, "out_specs[0] is 1 of type int", lambda: sm(f, P("x"), (1,))(X)),
            (TypeError, "it has None for result of", lambda: sm(f, P("x"), None)(X)),
            (TypeError, "in_specs was not specified", lambda: olympus.shard_map(
                f, mesh=mesh(), out_specs=P())(X)),
            (TypeError, "an array is required", lambda: sm(f, P("x"), P("x"))("a")),
            (ValueError, "the context mesh AbstractMesh('x': 4, 'y': 2, axis_types=(Manual, Auto), "
             "device_kind=cpu, num_cores=None, platform=cpu) should match", lambda: olympus.jit(
                 sm(lambda x: sm(f, P("y"), P("y"))(x), P("x"), P("x"), axis_names={"x"}))(X)),
            (ValueError, "not taken yet, 'y'", lambda: olympus.jit(sm(lambda x: olympus.shard_map(
                f, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})(x), P("x"), P("x"),
                axis_names={"x"}))(X)),
            (TypeError, "This might be fixed by applying `olympus.lax.pcast(..., ('x',), "
             "to='varying')` to the initial carry[1]", lambda: sm(lambda x, y: lax.scan(
                 lambda c, _: ((c[1], c[0]), ()), (x, y), (), length=2)[0], (P("x"), P()),
                 P("x"))(X, X[:2])),
            (TypeError, "This might be fixed by:\n  * applying `olympus.lax.pcast(..., ('y',), to="
             "'varying')` to the output of true_fun, result;\n  * applying `olympus.lax.pcast("
             "..., ('x',), to='varying')` to the output of false_fun", lambda: sm(
                 lambda x, y: lax.cond(True, lambda: x, lambda: y), (P("x"), P("y")), P(
                     ("x", "y")))(X, X[:4])),
            (NameError, "unbound axis name: z", lambda: sm(lambda x: lax.psum(x, "z"), P("x"), P())(
                X)),
            (ValueError, "incompatible devices", lambda: sm(f, P("x"), P("x"), mesh(
                (2, 2), order=slice(4)))(olympus.device_put(X, olympus.devices()[7])))]:
        error(kind, text, call)


def case_checks_say_which_device():
    def f(x):
        def body(i, y):
            olympus.check(i < 2, "row {i}", i=i)
            return y + onp.log(lax.psum(y, "y"))
        rows = lax.axis_index("x") + 1      # the devices run it once, twice, …
        return x + lax.fori_loop(0, rows, body, x * 0 + 1).sum()

    for check_vma in (True, False):
        g = checkify.checkify(olympus.shard_map(
            f, mesh=mesh(), in_specs=P("x", "y"), out_specs=P("x", "y"), check_vma=check_vma),
            checkify.all_checks)
        error, out = olympus.jit(g)(X)
        assert "row 2" in error.get() and out.shape == X.shape
        assert "in iteration 2 of a while, of device 4 of the mesh" in error.get(), error.get()
        wrong = X.copy()
        wrong[6, 3] = -1        # of device (3, 1)
        error, _ = olympus.jit(checkify.checkify(olympus.shard_map(
            onp.log, mesh=mesh(), in_specs=P("x", "y"), out_specs=P("x", "y"),
            check_vma=check_vma), checkify.nan_checks))(wrong)
        assert "at [0, 1] of the shape (2, 2), of the operand -1.0" in error.get()
        assert "in device 7 of the mesh" in error.get()
    error, _ = checkify.checkify(olympus.pmap(lambda x: 1 / x), checkify.div_checks)(X + (X > 9))
    assert "at [0] of the shape (4,)" in error.get() and "device 0" in error.get()


def case_rules_get_each_device_cotangents_as_a_loop_over_the_devices_does():
    """Of outputs that do not depend on what varies: the rule saw the sum over devices, and each
    device multiplied it."""
    def vjp_of(fun, fwd, bwd):
        made = olympus.custom_vjp(fun)
        made.defvjp(fwd, bwd)
        return made

    def jvp_of(fun, rule):
        made = olympus.custom_jvp(fun)
        made.defjvp(rule)
        return made

    xs, y, weights = onp.array([0.5, -1.5, 2.0, 0.25]), 1.5, onp.array([3.0, -0.5, 1.0, 2.0])
    functions = {
        "hook": vjp_of(lambda x, y: 0.0, lambda x, y: (0.0, x), lambda x, ct: (x * ct, None)),
        "shared": vjp_of(lambda x, y: y, lambda x, y: (y, x),
                         lambda x, ct: (ct * 2, onp.clip(ct, -1, 1) * x)),
        "several": vjp_of(lambda x, y: (x * y, y), lambda x, y: ((x * y, y), x),
                          lambda x, cts: (cts[0] * cts[1], onp.tanh(cts[1]))),
        "constant tangent": jvp_of(lambda x, y: 0.0, lambda p, t: (0.0, t[0] * p[0])),
        "shared tangent": jvp_of(lambda x, y: y, lambda p, t: (
            p[1], p[0] * t[1] + t[0] * p[1])),
        "custom_gradient": olympus.custom_gradient(
            lambda x, y: (y, lambda ct: (ct, onp.tanh(ct))))}
    for name, f in functions.items():
        def total(outs):
            return sum((weights * out).sum() for out in olympus.tree.leaves(outs))

        def loop(xs, y, f=f):
            outs = [olympus.tree.leaves(f(x, y)) for x in xs]
            return total([onp.stack([onp.asarray(o) for o in out]) for out in zip(*outs)])

        each = olympus.vmap(f, (0, None))
        for inner in (each, olympus.jit(each), lambda xs, y, f=f: lax.map(
                lambda x: f(x, y), xs)):
            g = olympus.shard_map(inner, mesh=mesh((4, 2)), in_specs=(P("x"), P()),
                                  out_specs=P("x"))
            wanted = olympus.grad(loop, (0, 1))(xs, y)
            for have, want in zip(both(olympus.grad(lambda *a, g=g: total(g(*a)), (0, 1)), xs, y),
                                  wanted):
                np.testing.assert_allclose(have, want, rtol=1e-5, err_msg=name)

    # All devices have one value of a sum over them, with one cotangent.
    total_of = vjp_of(lambda x: lax.psum(x, "x"), lambda x: (lax.psum(x, "x"), None),
                      lambda _, ct: (ct,))
    for f in (total_of, olympus.jit(total_of)):
        summed = olympus.shard_map(f, mesh=mesh((4, 2)), in_specs=P("x"), out_specs=P())
        close(both(olympus.grad(lambda x: (summed(x) ** 2).sum()), xs), np.full(4, 2.5))


def case_a_sharding_of_a_value_of_a_users_type_is_one_of_each_part():
    from quantised import dequantise, quantise

    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    q = quantise(onp.asarray(x))
    for kind in AxisType.Auto, AxisType.Explicit:
        rows = NamedSharding(olympus.make_mesh((8,), ("x",), axis_types=(kind,)), P("x"))
        spread = lambda q: lax.with_sharding_constraint(q, rows)
        same = lambda **options: olympus.jit(lambda q: q, **options)
        for f in (same(in_shardings=rows), same(out_shardings=rows), spread, olympus.jit(spread),
                  same(in_shardings=rows).lower(q).compile()):
            out = f(q)
            assert out.values.sharding.spec[0] == out.scale.sharding.spec[0] == "x"
            close(dequantise(out), dequantise(q))
        loss = lambda x: dequantise(spread(quantise(x))).sum()
        for g in olympus.grad(loss), olympus.jit(olympus.grad(loss)):
            close(g(x), np.ones_like(x))
        error(ValueError, "only valid for values of rank at least 2", lambda: olympus.jit(
            dequantise, in_shardings=NamedSharding(rows.mesh, P(None, "x")))(q))


def case_values_of_users_types():
    from quantised import CutRows, dequantise, quantise
    from test_hi_types import Plain, TupCut, item, make_tup
    x = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
    q, w, devices = quantise(onp.asarray(x)), onp.arange(1., 5.), mesh((8,), ("x",))
    cut, options = CutRows("x"), {"mesh": devices, "check_vma": False}
    back = olympus.shard_map(dequantise, in_specs=cut, out_specs=P("x"), **options)
    for f in (back, olympus.jit(back)):
        close(f(q), dequantise(q))
    there = olympus.shard_map(quantise, in_specs=P("x"), out_specs=cut, **options)
    for f in (there, olympus.jit(there)):
        close(dequantise(f(x)), dequantise(q))
    inside = olympus.shard_map(lambda x: dequantise(quantise(x)), mesh=devices, in_specs=P("x"),
                               out_specs=P("x"))
    close(both(inside, x), dequantise(q))
    total = olympus.shard_map(lambda q: lax.psum(dequantise(q).sum(), "x"), in_specs=cut,
                              out_specs=P(), **options)
    close(both(total, q), dequantise(q).sum())
    closed_over = olympus.shard_map(lambda x: x * dequantise(q).sum(), in_specs=P("x"),
                                    out_specs=P("x"), **options)
    close(both(closed_over, x), x * dequantise(q).sum())
    # w is whole on each device: its cotangent is the sum of theirs.
    scaled = olympus.shard_map(lambda q, w: quantise(onp.sin(dequantise(q) * w)),
                               in_specs=(cut, P()), out_specs=cut, **options)
    have = both(olympus.grad(lambda q, w: (dequantise(scaled(q, w)) ** 2).sum(), (0, 1)), q, w)
    want = olympus.grad(lambda d, w: (Plain.quantise(onp.sin(d * w)) ** 2).sum(), (0, 1))(
        dequantise(q), w)
    for a, b in zip(have, want, strict=True):
        close(a, b)
    _, tangent = olympus.jvp(lambda w: dequantise(scaled(q, w)), (w,), (w,))
    close(tangent, olympus.jvp(lambda w: Plain.quantise(onp.sin(dequantise(q) * w)), (w,), (w,))[1])
    # Types that ask arrays' types know what varies: their cotangents are summed where they must.
    swap = olympus.shard_map(
        lambda t: make_tup(item(t, 1) * lax.pcast(w, "x", to="varying"), item(t, 0)), mesh=devices,
        in_specs=TupCut((P(), P("x"))), out_specs=TupCut((P("x"), P())))
    weights = olympus.shard_map(
        lambda t: (item(t, 0) * item(t, 1)).sum(1), mesh=devices,
        in_specs=TupCut((P(), P("x"))), out_specs=P("x"))
    for run in (swap, olympus.jit(swap)):
        first, second = run(make_tup(w, onp.asarray(x))).items
        close(first, x * np.asarray(w))
        close(second, w)
    for run in (olympus.grad, lambda f: olympus.jit(olympus.grad(f))):
        found = run(lambda t: (weights(t) ** 2).sum())(make_tup(w, onp.asarray(x)))
        want = olympus.grad(lambda w, x: ((w * x).sum(1) ** 2).sum(), (0, 1))(w, onp.asarray(x))
        for a, b in zip(found.items, want, strict=True):
            close(a, b)
    error(ValueError, "it varies along 'x', too", lambda: olympus.shard_map(
        lambda t: t, mesh=devices, in_specs=TupCut((P(), P("x"))),
        out_specs=TupCut((P(), P())))(make_tup(w, onp.asarray(x))))
    error(NotImplementedError, "does not say along which axes", lambda: olympus.shard_map(
        dequantise, mesh=devices, in_specs=cut, out_specs=P("x"))(q))
    error(TypeError, "a HiPspec is required", lambda: olympus.shard_map(
        dequantise, in_specs=P("x"), out_specs=P("x"), **options)(q))
    error(TypeError, "a PartitionSpec is required", lambda: olympus.shard_map(
        onp.sin, in_specs=cut, out_specs=P("x"), **options)(x))


def case_references_from_outside_are_cut_and_closed_over():
    """Arguments are cut as in_specs say, those closed over are whole; the oracle is NumPy."""
    m = mesh((8,), ("x",))
    for wrap in (lambda f: f, olympus.jit):
        table, total = olympus.new_ref(X), olympus.new_ref(np.float32(1))

        def part(ref, x, total=total):
            ref[...] = ref[...] * 2 + x
            total[...] += lax.psum(x.sum(), "x")
            return ref[...].sum(1) * total[...]

        run = wrap(olympus.shard_map(part, mesh=m, in_specs=(P("x"), P("x")), out_specs=P("x")))
        close(run(table, X), (X * 3).sum(1) * (1 + X.sum()))
        close(table[...], X * 3)
        close(total[...], 1 + X.sum())

        # In a function that is differentiated a reference is a constant.
        scale = olympus.new_ref(X + 1)
        inner = olympus.shard_map(lambda ref, x: x * x * ref[...], mesh=m,
                                  in_specs=(P("x"), P("x")), out_specs=P("x"))
        close(wrap(olympus.grad(lambda x, ref=scale: inner(ref, x).sum()))(X), 2 * X * (X + 1))
        close(scale[...], X + 1)
        closing = olympus.shard_map(lambda x, total=total: x * x * total[...], mesh=m,
                                    in_specs=P("x"), out_specs=P("x"))
        close(wrap(olympus.grad(lambda x, f=closing: f(x).sum()))(X), 2 * X * (1 + X.sum()))


def case_a_kernel_with_a_static_mask_is_cut_by_heads_and_queries():
    """Its tables are, too: each device visits the blocks of its own heads and queries."""
    m, rng = mesh((2, 4), ("h", "s")), np.random.RandomState(0)
    for one in (splash.LocalMask((32, 32), (4, 3), 1), splash.NumpyMask(rng.rand(32, 32) > .5)):
        mask = splash.MultiHeadMask([one] * 4)
        kernel = splash.make_splash_mha(
            mask, block_sizes=splash.BlockSizes(8, 8, 8, 8, 8, 8, 8, 8), head_shards=2,
            q_seq_shards=4, interpret=True)
        spec = kernel.manual_sharding_spec(NamedSharding(m, P("h", "s")))
        run = olympus.shard_map(lambda f, *x: f(*x), mesh=m, in_specs=(
            spec, P("h", "s"), P("h"), P("h")), out_specs=P("h", "s"))
        plain = splash.make_masked_mha_reference(mask)
        xs = [rng.randn(4, 32, 8).astype("f") for _ in range(3)]
        have, want = [olympus.jit(olympus.value_and_grad(
            lambda *x, f=f: (f(*x) ** 2).sum(), (0, 1, 2)))(*xs)
            for f in (lambda *x, run=run, kernel=kernel: run(kernel, *x), plain)]
        for a, b in zip(olympus.tree.leaves(have), olympus.tree.leaves(want), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
        error(ValueError, "The sharding must divide the mask blocks",
              lambda kernel=kernel: kernel.manual_sharding_spec(NamedSharding(m, P("s", "h"))))


def _sum_of_x(v):
    return lax.all_gather(v, "x").sum(0)


def _apart(decide, *, meet=_sum_of_x, m=None, check_vma=True):
    """A program whose devices meet in a branch that a function of the part decides."""
    return olympus.shard_map(lambda v: lax.cond(decide(v), meet, lambda v: v, v), mesh=m or mesh(),
                             in_specs=P("x", "y"), out_specs=P("x", "y"), check_vma=check_vma)


def _until(decide, *, check_vma=True, checkpoints=None):
    return olympus.shard_map(
        lambda v: lax.while_loop(decide, lambda v: v + 1 + 0 * _sum_of_x(v), v,
                                 checkpoints=checkpoints), mesh=mesh(),
        in_specs=P("x", "y"), out_specs=P("x", "y"), check_vma=check_vma)


def _exchange(v):
    return lax.ppermute(v, "x", [(i, (i + 1) % 4) for i in range(4)])


def case_the_gradient_of_a_linear_map_over_a_mesh_that_only_shard_map_names():
    mesh = olympus.make_mesh((8,), ("i",))

    def f(x):
        return olympus.shard_map(lambda x: 2 * x, mesh=mesh, in_specs=P(), out_specs=P())(x)

    assert olympus.jit(olympus.grad(f))(2.0) == 2.0
    assert olympus.jit(olympus.grad(lambda x: f(x) ** 2))(2.0) == 16.0


def case_branches_that_devices_take_apart_have_no_collectives_among_them():
    """They would wait for the others without an end: nothing of it runs."""
    def turns(v):       # from its second turn on, the loop's carry tells the devices apart
        return lax.fori_loop(0, 3, lambda i, c: (lax.axis_index("x"), lax.cond(
            c[0] < 3, _sum_of_x, lambda v: v, c[1])), (onp.int32(0), v))[1]

    places = (_sum_of_x, lambda v: lax.psum(v, ("y", "x")), lambda v: lax.pmax(v, "x"), _exchange,
              lambda v: lax.all_to_all(onp.stack([v] * 4), "x", 0, 0)[0],
              lambda v: lax.psum_scatter(onp.stack([v] * 4), "x"),
              olympus.jit(lambda v: lax.switch(0, [_sum_of_x, lambda v: v], v)),
              lambda v: olympus.checkpoint(_sum_of_x)(v))
    own = lambda v: lax.axis_index("x") == 0
    programs = [
        *[_apart(own, meet=f, check_vma=False) for f in places],
        *[_apart(decide) for decide in (
            own, lambda v: v[0, 0] > 4, lambda v: olympus.jit(lambda i: i % 2 == 1)(
                lax.axis_index("x")), lambda v: lax.psum(v[0, 0], "y") > 4,
            lambda v: _exchange(lax.axis_index("x")) == 1)],
        *[_until(decide) for decide in (
            lambda v: v.sum() < 40, lambda v: lax.psum(v.sum(), "x") * 0 + v[0, 0] < 40)],
        _until(lambda v: v.sum() < 40, checkpoints=3),
        # Devices of XLA:CPU exchange parts among all of the mesh.
        _apart(lambda v: lax.axis_index("y") == 0, meet=_exchange)]
    for f in programs:
        for run in (f, olympus.jit(f)):
            text = error(ValueError, "depends on the device", lambda run=run: run(X))
            assert text.count("shard_map_cases.py:") >= 2 and "lax.pmax" in text, text
    f = olympus.shard_map(turns, mesh=mesh(), in_specs=P("x"), out_specs=P("x"), check_vma=False)
    error(ValueError, "the predicate of cond depends on the device", lambda: olympus.jit(f)(X))
    mapped = olympus.pmap(lambda v: lax.cond(lax.axis_index("i") == 1, lambda v: lax.psum(v, "i"),
                                             lambda v: v, v), "i")
    error(ValueError, "psum in the branch waits for all devices along 'i'", lambda: mapped(X))


def case_loops_with_checkpoints_run_as_often_back_as_each_device_ran_them():
    """Regression: the count of one device stood for all, and summing in the loop never ended."""
    w, parts = np.float32(1.5), X.reshape(4, 2, 2, 2).sum((1, 3))       # each device's sum
    n = np.ceil(np.maximum(np.log(40 / parts) / np.log(w), 0))
    assert len(set(n.flat)) > 2
    for check_vma in True, False:
        f = olympus.shard_map(
            lambda w, v: lax.while_loop(lambda v: v.sum() < 40, lambda v: v * w, v, checkpoints=3),
            mesh=mesh(), in_specs=(P(), P("x", "y")), out_specs=P("x", "y"), check_vma=check_vma)
        total = lambda w, v, f=f: f(w, v).sum()
        close(both(f, w, X), X * np.repeat(np.repeat(w ** n, 2, 0), 2, 1))
        first, d_parts = both(olympus.grad(total, (0, 1)), w, X)
        close(first / (parts * n * w ** (n - 1)).sum(), 1.0)
        close(d_parts, np.repeat(np.repeat(w ** n, 2, 0), 2, 1))
        close(both(olympus.grad(olympus.grad(total)), w, X)
              / (parts * n * (n - 1) * w ** (n - 2)).sum(), 1.0)


def case_branches_that_devices_take_together_may_have_collectives():
    parts = X.reshape(4, 2, 2, 2)       # [x, rows, y, columns]
    summed = np.broadcast_to(parts.sum(0), parts.shape)
    everyone, whole = ("x", "y"), summed.reshape(8, 4)
    first = np.where(np.arange(2)[:, None] == 0, summed, parts).reshape(8, 4)
    for check_vma in True, False:
        for decide, want in (
                (lambda v: lax.axis_index("y") == 0, first),     # another axis than theirs
                (lambda v: lax.psum(v[0, 0], everyone) > 4, whole),
                (lambda v: lax.pmin(lax.axis_index("x"), "x") == 0, whole),
                (lambda v: lax.all_gather(v, everyone).sum() > 4, whole),
                (lambda v: lax.fori_loop(0, 3, lambda i, c: c + i, 0) == 3, whole),
                (lambda v: (v.shape[0] == 2) & (lax.axis_size("x") == 4), whole)):
            close(both(_apart(decide, check_vma=check_vma), X), want)
        close(both(_until(lambda v: lax.pmax(v.max(), everyone) < 40, check_vma=check_vma), X),
              X + 9)
        # Groups may agree.
        half = olympus.shard_map(
            lambda v: lax.cond(lax.axis_index("x") < 2, lambda v: lax.psum(
                v, "x", axis_index_groups=[[0, 1], [2, 3]]), lambda v: v, v),
            mesh=mesh((4,), ("x",), slice(4)), in_specs=P("x"), out_specs=P("x"), check_vma=False)
        pair = X[:2] + X[2:4]
        close(both(half, X), np.concatenate([pair, pair, X[4:]]))
    # Nobody waits where an axis has one device, nor in a selection that vmap makes of branches.
    own = lambda v: lax.axis_index("x") == 0
    close(both(_apart(own, m=mesh((1, 2), order=slice(2))), X), X)
    each = olympus.vmap(olympus.shard_map(
        lambda k, v: lax.cond(k > v[0] * 0, _sum_of_x, lambda v: v, v), out_specs=P("x"),
        mesh=mesh((4,), ("x",), slice(4)), in_specs=(P(), P("x"))))
    lines = X.reshape(4, 8)
    want = np.where(np.arange(4)[:, None] > 0, np.tile(lines.reshape(4, 4, 2).sum(1), 4), lines)
    close(both(each, np.arange(4), lines), want)
    # pmap's arguments have an axis of copies: a count that all examples have alike decides.
    step = olympus.pmap(lambda k, v: lax.cond(k % 2 == 0, lambda v: lax.psum(v, "i"), lambda v: v,
                                              v), "i")
    close(step(np.full(8, 2), X), np.broadcast_to(X.sum(0), X.shape))
    grad = olympus.grad(lambda x: (_apart(lambda v: lax.axis_index("y") == 0)(x) ** 2).sum())
    close(both(grad, X), np.where(np.arange(4) < 2, 8 * first, 2 * X))


CASES = names(globals())

if __name__ == "__main__":
    report(globals())
