"""Cases for tests/test_pjit.py: compiled programs on several devices as callers see them.

Oracles are NumPy, and what JAX 0.10.2 answered to the same calls.
"""

import contextlib
import gc
import importlib
import warnings
import weakref
from unittest import mock

import numpy as np
from eight_devices import error, names, report
from sharded_cases import X, mesh, on

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus._src.base import lib
from olympus._src.jit import stages
from olympus.sharding import (
    AxisType, Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding, use_abstract_mesh,
)

P = PartitionSpec
EXPLICIT, AUTO = AxisType.Explicit, AxisType.Auto


def typed(*types, sizes=(4, 2), names=("x", "y")):
    return Mesh(np.array(olympus.devices()).reshape(sizes), names, types)


def where(x):
    return x.sharding.spec


def case_a_donated_buffer_is_reused_where_parts_are_as_large():
    """XLA ended with "Expected aliased input … to have the same size"."""
    whole = on()
    f = olympus.jit(lambda a: (lax.with_sharding_constraint(a, whole), a + 1), donate_argnums=0)
    x = olympus.device_put(X, on("x"))
    once, more = f(x)
    assert x.is_deleted() and np.array_equal(once, X) and np.array_equal(more, X + 1)
    assert "buffer_donor" in f.lower(olympus.device_put(X, on("x"))).as_text()
    y, z = olympus.device_put(X, on("x")), olympus.device_put(X, on("x"))
    for twice in (0, 1, (0, 1)):
        add = olympus.jit(lambda a, b: a + b, donate_argnums=twice)
        error(RuntimeError, "arguments a and b of <lambda> are the same array",
              lambda f=add: f(y, y))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            olympus.jit(lambda a, b: a + b, donate_argnums=(0, 1))(olympus.numpy.copy(y), z)
            olympus.jit(lambda a: a.sum(), donate_argnums=0)(z)
    assert not y.is_deleted() and not z.is_deleted()
    two = olympus.jit(lambda a, b: (a + b).sum(), donate_argnums=0)    # nothing is given up
    assert two(y, y) == two(y, y) == 2 * X.sum()
    # Where every device takes the whole of an array, its own shares the memory.
    spread = olympus.jit(lambda a: a * 2, in_shardings=on(), donate_argnums=0)
    for _ in range(2):
        a = onp.array(X)
        assert np.array_equal(spread(a), X * 2) and a.is_deleted()
    demanded = olympus.jit(lambda a: a + 1, donate_argnums=0, out_shardings=on("x"))
    assert "tf.aliasing_output" in demanded.lower(olympus.device_put(X, on("x"))).as_text()


def _shared_with(x):
    """Arguments of which a donated one shares memory with another one, by what they share."""
    other = NamedSharding(olympus.make_mesh((4, 2), ("a", "b"), (AxisType.Auto,) * 2), P("a"))
    parts = [s.data for s in x.addressable_shards]
    return {"the same array": (x, x), "put again": (x, olympus.device_put(x, x.sharding)),
            "a tree": ({"p": x, "q": x}, olympus.numpy.copy(x)),
            "on another mesh": (x, olympus.device_put(x, other)),
            "parts": (x, olympus.make_array_from_single_device_arrays(x.shape, x.sharding, parts))}


@contextlib.contextmanager
def taken_to_share():
    """Every call's arguments are taken to share memory."""
    jit = importlib.import_module("olympus._src.jit.jit")
    with mock.patch.object(jit, "may_share", lambda _: True), (
            mock.patch.object(stages, "may_share", lambda _: True)):
        yield


def case_a_cached_call_given_a_donated_array_twice_is_refused():
    """XLA would end the process. So what keeps such a call from it is looked at first, by calls
    that share nothing: arrays that share memory are recognised, calls with them go by Python, and
    Python refuses them before it runs anything.
    """
    def new():
        return olympus.device_put(X, on("x"))

    def add(a, b):
        return olympus.tree.map(lambda leaf: leaf + b, a)

    made = {"jit": lambda f: olympus.jit(f, donate_argnums=0),
            "compiled": lambda f: None,
            "scan": lambda f: olympus.jit(lambda a, b: lax.scan(
                lambda c, _: (f(c, b), None), a, None, length=1)[0], donate_argnums=0),
            "shard_map": lambda f: olympus.jit(olympus.shard_map(
                f, mesh=on("x").mesh, in_specs=P("x"), out_specs=P("x")), donate_argnums=0)}
    for how, make in made.items():
        for what, shared in _shared_with(new()).items():
            fresh = olympus.tree.map(lambda x: new(), shared)
            f = make(add) or olympus.jit(add, donate_argnums=0).lower(*fresh).compile()
            for _ in range(3):
                for x in olympus.tree.leaves(f(*olympus.tree.map(lambda x: new(), shared))):
                    assert np.array_equal(x, 2 * X), (how, what)
                assert stages.may_share(shared) and not stages.may_share(fresh), (how, what)
                with taken_to_share(), mock.patch.object(lib, "execute", wraps=lib.execute) as run:
                    f(*olympus.tree.map(lambda x: new(), shared))
                assert run.call_count == 1, (how, what)
                with mock.patch.object(lib, "execute", None):
                    error(RuntimeError, ", and donated", lambda f=f, s=shared: f(*s))
    # Others than the donated argument may be one array, and that leaves the guard where it is.
    three = olympus.jit(lambda a, b, c: a + b - c, donate_argnums=0)
    for _ in range(2):
        for _ in range(2):
            b = new()
            assert np.array_equal(three(new(), b, b), X)
        with taken_to_share(), mock.patch.object(lib, "execute", wraps=lib.execute) as run:
            three(new(), b, new())
        assert run.call_count == 1
        with mock.patch.object(lib, "execute", None):
            error(RuntimeError, "arguments a and b of <lambda> are the", lambda: three(b, b, new()))
    # What is moved to the devices is not the caller's.
    f = olympus.jit(add, donate_argnums=0, in_shardings=on("x"))
    a = onp.array(X)
    for _ in range(3):
        assert np.array_equal(f(a, a), 2 * X) and not a.is_deleted()
    # Options, static arguments and names are as without.
    g = olympus.jit(lambda a, b, k, *, c: a + b * k - c, donate_argnums=0, static_argnums=2)
    b = new()
    for k in (1, 2, 1, 2):
        assert np.array_equal(g(new(), b, k, c=b), X * k)
    error(RuntimeError, "arguments a and c of <lambda> are the same array",
          lambda: g(b, new(), 1, c=b))


def case_what_guards_a_donating_call_is_collected():
    def made():
        def f(a, b):
            return a + b
        f.jitted = olympus.jit(f, donate_argnums=0)
        for _ in range(3):
            f.jitted(olympus.device_put(X, on("x")), olympus.device_put(X, on("x")))
        return weakref.ref(f)

    gone = made()
    olympus.clear_caches()
    gc.collect()
    assert gone() is None


def case_what_is_cut_as_an_argument_is_called_what_that_is():
    one = NamedSharding(mesh((1, 8, 1), ("x", "y", "z")), P("x", "y", "z"))
    a = olympus.device_put(np.arange(32).reshape(1, 32, 1), one)
    assert (a + 1).sharding == one and olympus.jit(lambda a: a * 2)(a).sharding == one
    b = olympus.device_put(X, on("x", None))
    assert where(olympus.jit(lambda b: b * 2)(b)) == P("x", None)


def case_constraints_of_sizes_that_devices_do_not_divide():
    """Within a program XLA pads; arrays have equal parts."""
    cut = on("x")
    f = olympus.jit(lambda a: lax.with_sharding_constraint(a[:3], cut) * 2)
    assert np.array_equal(f(X), X[:3] * 2)
    error(ValueError, "should evenly divide", lambda: lax.with_sharding_constraint(X[:3], cut))
    error(ValueError, "values of rank at least 2",
          lambda: olympus.jit(lambda a: lax.with_sharding_constraint(a, on("x", "y")))(X[0]))


def case_meshes_of_explicit_and_auto_axes():
    """What explicit axes cut stays cut, and Auto axes cut it further."""
    both = typed(EXPLICIT, AUTO)
    with olympus.set_mesh(both):
        a = olympus.device_put(np.arange(16).reshape(8, 2), P(("x", "y")))
        assert where(olympus.jit(lambda a: a * 2)(a)) == P(("x", "y"))
        b = olympus.device_put(np.arange(16).reshape(8, 2), P("x"))
        c = olympus.jit(lambda b: lax.with_sharding_constraint(b, P("y")))(b)
        assert where(c) == P(("x", "y")) and np.array_equal(c, b)
        error(ValueError, "of Auto axes is required",
              lambda: lax.with_sharding_constraint(b, P("x")))


def case_the_same_devices_by_other_names():
    m = typed(EXPLICIT, EXPLICIT)
    other = m.abstract_mesh.update(axis_sizes=(8, 1), axis_names=("a", "b"))

    @olympus.jit
    def f(a):
        with use_abstract_mesh(other):
            a = olympus.reshard(onp.sin(a), P("a")) * 2
        return olympus.reshard(a, P("y"))

    with olympus.set_mesh(m):
        a = olympus.device_put(np.arange(16.).reshape(8, 2), P("x", "y"))
        out, slope = f(a), olympus.grad(lambda a: f(a).sum())(a)
    assert where(out) == P("y", None) and slope.sharding == a.sharding
    np.testing.assert_allclose(slope, 2 * np.cos(np.asarray(a)), rtol=1e-6)
    renamed = m.update(axis_names=("a", "b"))
    assert renamed.axis_names == ("a", "b") and renamed.axis_types == m.axis_types


def case_programs_over_auto_axes_without_devices():
    """An argument's sharding over an AbstractMesh is in the program; compile gives the devices."""
    m = mesh((8,), ("x",))
    struct = olympus.ShapeDtypeStruct((8, 2), "float32", sharding=NamedSharding(
        m.abstract_mesh, P("x")))
    f = olympus.jit(lambda a: a * 2)
    lowered = f.trace(struct).lower(lowering_platforms=("cpu",))
    assert "num_partitions = 8" in lowered.as_text()
    compiled = lowered.compile(device_assignment=m.device_tuple)
    value = np.arange(16, dtype=np.float32).reshape(8, 2)
    out = compiled(olympus.device_put(value, NamedSharding(m, P("x"))))
    assert out.sharding == NamedSharding(m, P("x")) and np.array_equal(out, value * 2)
    error(RuntimeError, "device_assignment cannot be `None`", lowered.compile)
    error(ValueError, "size of abstract mesh 8 must match the length of device assignment: 1",
          lambda: lowered.compile(device_assignment=olympus.devices()[:1]))
    error(ValueError, "AbstractMesh size: 8 does not match the device assignment size: 2",
          lambda: olympus.jit(lambda a, b: (a, b)).lower(struct, olympus.device_put(
              X, NamedSharding(Mesh(np.array(olympus.devices()[:2]), "x"), P()))))
    error(ValueError, "lowering_platforms", lambda: f.lower(struct))
    spread = olympus.ShapeDtypeStruct((8, 2), "float32", sharding=NamedSharding(m, P("x")))
    error(ValueError, "must match the device_assignment",
          lambda: f.lower(spread).compile(device_assignment=olympus.devices()[:1]))
    assert f.lower(spread).out_info.sharding is None     # XLA's to choose
    assert where(onp.zeros_like(spread)) == P("x")


def case_constraints_over_a_mesh_without_devices():
    """The devices are those of the array."""
    m = mesh()
    a = olympus.device_put(X, NamedSharding(m, P("x", "y")))
    demand = NamedSharding(m.abstract_mesh, P("x"))
    for f in (lambda a: lax.with_sharding_constraint(a, demand),
              olympus.jit(lambda a: lax.with_sharding_constraint(a, demand))):
        assert f(a).sharding == NamedSharding(m, P("x"))
    error(ValueError, "should be a `olympus.Array`",
          lambda: lax.with_sharding_constraint(X, demand))
    error(TypeError, "must be a `NamedSharding`",
          lambda: lax.with_sharding_constraint(onp.ones(8), demand))
    error(ValueError, "does not match the mesh shape", lambda: lax.with_sharding_constraint(
        a, NamedSharding(mesh((8,), ("z",)).abstract_mesh, P("z"))))


def case_a_device_that_jit_names_has_the_program():
    f = olympus.jit(lambda a: a @ a.T, device=olympus.devices()[1])
    for a in (X, olympus.device_put(X, on("x")), olympus.device_put(X, olympus.devices()[2])):
        assert f(a).devices() == {olympus.devices()[1]} and np.array_equal(f(a), X @ X.T)
    with olympus.set_mesh(mesh()):
        error(ValueError, "should not be used with jit when backend or device", lambda: f(X))
    error(ValueError, "then in_shardings should not be specified", lambda: olympus.jit(
        f, device=olympus.devices()[0], in_shardings=SingleDeviceSharding(olympus.devices()[0])))
    second = olympus.devices()[1]       # which had no effect within another program
    for outer in (olympus.jit(lambda a: f(a) * 2), olympus.jit(lambda a: f(a) * 2, device=second),
                  lambda a: olympus.vmap(f)(a[None]),
                  lambda a: lax.scan(lambda c, _: (f(a), c), f(a), None, length=2)[0]):
        assert outer(X).devices() == {second}
    keys = olympus.jit(lambda: olympus.jit(lambda: olympus.random.key(0), device=second)())
    assert keys().devices() == {second}
    error(ValueError, "argument a of <lambda> with shape float32[4,2] and with device ids [2]",
          lambda: olympus.jit(lambda a: f(a) * 2)(olympus.device_put(X, olympus.devices()[2])))


def case_demands_that_are_none_are_refused():
    i = olympus.jit
    error(TypeError, "leaf specifications are expected to be PartitionSpec instances or None, but "
          "got x", lambda: i(lambda a: a, in_shardings="x"))
    error(ValueError, "Unconstrained dims are not allowed when passed to out_shardings",
          lambda: i(lambda a: a, out_shardings=on(P.UNCONSTRAINED)))
    error(ValueError, "Sharding passed to jit does not match the sharding on the respective arg",
          lambda: i(lambda a: a, in_shardings=on("x"))(olympus.device_put(X, on())))
    error(ValueError, "Computation was compiled for input shardings that disagree",
          lambda: i(lambda a: a, in_shardings=on("x")).lower(X).compile()(
              olympus.device_put(X, on())))
    error(ValueError, "cannot contain `P.UNCONSTRAINED`",
          lambda: NamedSharding(typed(EXPLICIT, EXPLICIT), P(P.UNCONSTRAINED)))
    for kind in (RuntimeError, ValueError):
        error(kind, "requires a non-empty mesh in context",
              lambda: lax.with_sharding_constraint(X, P("x")))
    error(TypeError, "the context mesh cannot be empty",
          lambda: olympus.ShapeDtypeStruct((8,), "float32", sharding=P("x")).sharding)


def case_a_constraint_to_one_device_leaves_the_mesh():
    """The type had the mesh on, and of explicit axes it was an error."""
    device = olympus.sharding.SingleDeviceSharding(olympus.devices()[0])
    for kind in (AxisType.Auto, EXPLICIT):
        m = olympus.make_mesh((1,), ("x",), (kind,), devices=olympus.devices()[:1])
        x = olympus.device_put(X, NamedSharding(m, P("x")))

        def f(x):
            y = lax.with_sharding_constraint(x * x, device)
            assert olympus.typeof(y).sharding.mesh.empty, olympus.typeof(y)
            return y.sum()

        assert np.array_equal(olympus.jit(f)(x), (X * X).sum())
        assert np.array_equal(olympus.jit(olympus.grad(f))(x), 2 * X)


def case_arguments_on_other_devices_are_named():
    one, two = [olympus.device_put(X, d) for d in olympus.devices()[:2]]
    said = "Received incompatible devices for jitted computation. Got argument"
    error(ValueError, f"{said} a['k'] of <lambda> with shape float32[4,2] and with device ids [0] "
          "on platform CPU and argument b of <lambda> with shape float32[4,2] and with device ids "
          "[1]", lambda: olympus.jit(lambda a, b: (a, b))({"k": one}, two))
    error(ValueError, "of concatenate with shape float32[4,2]",
          lambda: onp.concatenate([one, two]))
    demand = olympus.jit(lambda b, a: lax.with_sharding_constraint(a + b, on("x")))
    error(ValueError, f"{said} a of <lambda> with shape float32[4,2] and with device ids [0] on "
          "platform CPU and sharding_constraint inside jit with device ids [0, 1, 2, 3",
          lambda: demand(1.0, one))
    with olympus.set_mesh(mesh()):
        error(ValueError, f"{said} a of <lambda>", lambda: olympus.jit(lambda a: a * 2)(two))


def case_explicit_axes_through_windows_repeats_and_auto_axes():
    m = typed(EXPLICIT, EXPLICIT)
    with olympus.set_mesh(m):
        value = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
        a = olympus.device_put(value, P("x", "y"))
        highest = lambda a: lax.reduce_window(a, -np.inf, lax.max, (1, 2), (1, 2), "SAME")
        slope = olympus.jit(olympus.grad(lambda a: highest(a).sum()))(a)
        windows = value.reshape(8, 4, 2)
        assert slope.sharding == a.sharding
        assert np.array_equal(slope, (windows == windows.max(-1, keepdims=True)).reshape(8, 8))
        b = olympus.device_put(value, P("x"))
        again = onp.repeat(b, np.array([0, 2] * 4), axis=0, out_sharding=P("x"))
        assert where(again) == P("x", None) and np.array_equal(again, np.repeat(
            value, [0, 2] * 4, axis=0))
    with olympus.set_mesh(typed(AUTO, AUTO)):
        f = olympus.sharding.auto_axes(lambda a: a * 2, out_sharding=P("x"))
        assert np.array_equal(olympus.jit(f)(value), value * 2)      # nothing is to be done
        assert "reshard" not in str(olympus.make_olympuspr(f)(value))
        error(ValueError, "cannot contain axis names that are of type Auto",
              lambda: onp.matmul(value, value, out_sharding=P("x")))


def case_derivatives_of_extrema_over_windows_stay_on_each_device():
    """Each device got the whole array, by an all-gather or a sum over all."""
    rows = NamedSharding(mesh(), P(("x", "y")))
    rng = np.random.default_rng(0)
    value = rng.integers(-3, 4, (8, 9, 2)).astype(np.float32)       # with ties
    value[1, 4, 1], value[2, 0, 0], value[3, 8, 0] = np.nan, np.inf, -np.inf
    tangent = rng.standard_normal(value.shape).astype(np.float32)
    for fold, sign in ((lax.max, 1), (lax.min, -1)):
        def extrema(x, fold=fold, sign=sign):
            return lax.reduce_window(x, -sign * np.inf, fold, (1, 3, 1), (1, 2, 1), "SAME")

        want, there = np.zeros_like(value), np.zeros((8, 5, 2), np.float32)
        for i, k, j in np.ndindex(8, 5, 2):
            begin = max(2 * k - 1, 0)
            place = begin + np.argmax(sign * value[i, begin:2 * k + 2, j])      # NaN is the largest
            want[i, place, j] += k + 1
            there[i, k, j] = tangent[i, place, j]
        weights = np.arange(1, 6, dtype=np.float32)[:, None]
        for dtype in (np.float32, onp.bfloat16):
            x, t = (olympus.device_put(a.astype(dtype), rows) for a in (value, tangent))
            slope = olympus.jit(lambda x: olympus.vjp(extrema, x)[1](
                onp.broadcast_to(weights.astype(x.dtype), (8, 5, 2)))[0])
            push = olympus.jit(lambda x, t: olympus.jvp(extrema, (x,), (t,))[1])
            assert np.array_equal(slope(x), want.astype(dtype))
            assert np.array_equal(push(x, t), there.astype(dtype))
            for fun, args in ((slope, (x,)), (push, (x, t))):
                text = fun.lower(*args).compile().as_text()
                assert "all-" not in text and "reduce-scatter" not in text


def case_arrays_are_dealt_out_anew_among_their_devices():
    """Which is no transfer, though arrays of each may be given up."""
    back = mesh(order=slice(None, None, -1))
    a, b = olympus.device_put(X, on("x", "y")), olympus.device_put(X, on())
    with olympus.transfer_guard("disallow_explicit"):
        c, d = olympus.device_put((a, b), NamedSharding(back, P("y")), donate=(True, False))
    assert where(c) == where(d) == P("y") and np.array_equal(c, X) and np.array_equal(d, X)
    assert a.is_deleted() and not b.is_deleted()
    error(ValueError, "cannot be True at the same time",
          lambda: olympus.device_put((c, d), on(), donate=(True, False), may_alias=True))
    error(ValueError, "should be a sequence of ints", lambda: olympus.make_mesh(((4,), 2), "xy"))
    error(TypeError, "Argument 'a['k']' of shape float32[8] of type",
          lambda: olympus.jit(lambda a: a)({"k": olympus.ShapeDtypeStruct((8,), "float32")}))


def case_many_programs_wait_for_one():
    """More than a device may have under way; XLA waited for itself, and ended the process."""
    lined = mesh((8,), "d")
    over = lambda f, *specs: olympus.jit(olympus.shard_map(
        f, mesh=lined, in_specs=specs[0], out_specs=P(), check_vma=False))
    long = over(lambda a: lax.psum(lax.fori_loop(
        0, 100, lambda _, b: onp.sin(b) @ onp.ones((200, 200)) * 1e-3, a), "d"), P("d"))
    total = over(lambda a: lax.psum(a.sum(), "d"), P())
    value = np.ones((8, 200), np.float32)
    olympus.block_until_ready(total(long(value)))
    first = long(value)
    sums = [total(first) for _ in range(60)]
    np.testing.assert_allclose(sums, 8 * np.asarray(first).sum(), 1e-5)


CASES = names(globals())

if __name__ == "__main__":
    report(globals())
