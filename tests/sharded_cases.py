"""Cases for tests/test_sharding.py, which runs this file in a process with eight CPU devices.

Oracles are the same functions of unsharded arrays, NumPy, and the parts that each device holds.
"""

import contextlib
import copy
import io
import itertools
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from xml.etree import ElementTree

import numpy as np
from eight_devices import error, names, report

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus._src.lowering.spreading import named
from olympus._src.types.sharding import sharding_in_types
from olympus.experimental import io_callback
from olympus.extend.sharding import GSPMDSharding
from olympus.sharding import (
    AbstractDevice, AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec,
    SingleDeviceSharding,
)

P = PartitionSpec
X = np.arange(8, dtype=np.float32).reshape(4, 2)


def mesh(sizes=(4, 2), names=("x", "y"), order=slice(None)):
    return Mesh(np.array(olympus.devices())[order].reshape(sizes), names)


def on(*spec, **how):
    return NamedSharding(mesh(**how), P(*spec))


def spec_of(x):
    assert type(x.sharding) is NamedSharding, x.sharding
    return x.sharding.spec


def check_parts(x, value):
    """Each device's part is the one that the sharding's index map says; together they are all."""
    assert np.array_equal(np.asarray(x), value)
    assert x.aval.sharding == sharding_in_types(x.sharding, x.ndim)
    seen = np.zeros(value.shape, int)
    for part in x.addressable_shards:
        assert part.data.devices() == {part.device}
        assert np.array_equal(np.asarray(part.data), value[part.index])
        seen[part.index] += part.replica_id == 0
    assert (seen == 1).all()


SPECS = [P(), P("x"), P("y"), P(None, "y"), P("x", "y"), P("y", None), P(("x", "y")), P(("y", "x"))]


def case_device_put_holds_the_right_parts():
    value = np.arange(64, dtype=np.int32).reshape(8, 8)
    for spec in SPECS:
        sharding = NamedSharding(mesh(), spec)
        x = olympus.device_put(value, sharding)
        check_parts(x, value)
        assert x.sharding == sharding and x.committed
        assert x.addressable_data(0).shape == sharding.shard_shape((8, 8))
        assert x.is_fully_replicated == (spec == P())
        assert len(x.devices()) == 8 and x.device == sharding


def case_every_spec_survives_an_operation():
    value = np.arange(64, dtype=np.float32).reshape(8, 8)
    for spec in SPECS:
        y = onp.sin(olympus.device_put(value, NamedSharding(mesh(), spec)))
        assert y.sharding.is_equivalent_to(NamedSharding(mesh(), spec), 2), (spec, y.sharding)
        np.testing.assert_allclose(np.asarray(y), np.sin(value), rtol=1e-6)


def case_every_tiling_of_a_mesh_has_its_name():
    """The compiler's tilings, with or without a name, of a mesh of four axes."""
    devices, four = tuple(olympus.devices()), mesh((2, 2, 2, 1), tuple("abcd"))
    entries = [None, "a", "b", "c", "ab", "ba", "ac", "ca", "cb", "abc", "cab", "cba"]
    for first, second in itertools.product(entries, entries):
        if set(first or "") & set(second or ""):
            continue
        spec = P(*[None if e is None else tuple(e) for e in (first, second)])
        sharding = NamedSharding(four, spec)
        found = named([four], devices, sharding._to_xla_hlo_sharding(2), 2)
        assert found.is_equivalent_to(sharding, 2) and type(found) is NamedSharding, spec
        assert P(*found.spec, *[None] * (2 - len(found.spec))) == spec
    across = NamedSharding(mesh((4, 2)), P("x"))      # half an axis of the other mesh
    assert type(named([mesh((8,), ("a",))], devices, across._to_xla_hlo_sharding(1), 1)
                ) is GSPMDSharding


def case_types_name_the_abstract_mesh():
    """Those of arrays and of traced values, as in JAX 0.10.2; no entry where XLA decides."""
    x, one = olympus.device_put(X, on("x")), onp.asarray(X)
    here, nowhere = mesh().abstract_mesh, olympus.sharding.AbstractMesh((), ())
    inside = []

    def note(x):
        inside.append(olympus.typeof(x).sharding)
        return x

    def check(result, *meshes):
        assert olympus.typeof(result).sharding == NamedSharding(here, P(*[None] * result.ndim))
        assert [s.mesh for s in inside] == [*meshes]
        assert all(e is None for s in inside for e in s.spec)
        inside.clear()

    check(x)
    check(x + 1)
    check(x + one)
    check(X + x)
    check(olympus.jit(lambda a, b: note(note(a) + note(b)))(x, one), here, nowhere, here)
    check(olympus.grad(lambda a: (note(a) * a).sum())(x), here)
    check(olympus.vmap(lambda row: note(row) * 2)(x), here)
    check(lax.scan(lambda c, row: (note(c) + note(row), c), onp.zeros(2), x)[0], nowhere, here)
    check(lax.fori_loop(0, 3, lambda i, c: note(c) + x, one), nowhere)
    check(olympus.jit(note, in_shardings=on("y"))(one), here)
    check(olympus.jit(note, out_shardings=on("y"))(one), nowhere)
    assert olympus.typeof(olympus.device_put(x, olympus.devices()[1])).sharding.mesh == nowhere
    assert all(olympus.typeof(p.data).sharding.mesh == nowhere for p in x.addressable_shards)
    keys = olympus.device_put(olympus.random.split(olympus.random.key(0), 8), on("x"))
    check(keys)
    check(keys[0])


def case_programs_do_not_multiply_with_devices():
    """One trace per abstract mesh and specification-free type, wherever its devices are."""
    traced = []

    @olympus.jit
    def f(x):
        traced.append(olympus.typeof(x))
        return lax.scan(lambda c, row: (c + row, c), onp.zeros(2), x)[0]

    for spec in ("x", "y", None):
        for order in (slice(0, 4), slice(4, 8), slice(None, None, 2)):
            x = olympus.device_put(X, on(spec, sizes=(2, 2), order=order))
            assert np.array_equal(np.asarray(f(x)), X.sum(0))
    assert len(traced) == 1
    f(olympus.device_put(X, on("x")))
    f(X)
    assert len(traced) == 3 and len(set(traced)) == 3


def case_constraint_under_jit():
    f = olympus.jit(lambda x: lax.with_sharding_constraint(x * 2, on(None, "y")) + 1)
    y = f(X)
    check_parts(y, X * 2 + 1)
    assert spec_of(y) == P(None, "y")
    text = f.lower(X).as_text()
    assert "mhlo.num_partitions = 8" in text and 'sdy.mesh @mesh = <["x"=4, "y"=2]>' in text
    assert 'sdy.sharding_constraint %1 <@mesh, [{}, {"y"}]>' in text


def case_constraint_outside_jit():
    for given in (X, onp.asarray(X), olympus.device_put(X, on("y"))):
        y = lax.with_sharding_constraint(given, on("x", "y"))
        check_parts(y, X)
        assert spec_of(y) == P("x", "y")


def case_trees_prefixes_and_none():
    tree = {"a": X, "b": [X, X.T]}
    out = lax.with_sharding_constraint(tree, {"a": on("x"), "b": on("y")})
    assert [spec_of(out["a"]), *map(spec_of, out["b"])] == [P("x"), P("y"), P("y")]
    out = lax.with_sharding_constraint(tree, {"a": on("x"), "b": None})
    assert out["b"][0] is X


def case_specs_of_the_mesh_around():
    with mesh():
        assert spec_of(lax.with_sharding_constraint(X, P("x"))) == P("x")
        assert spec_of(olympus.device_put(X, P("y"))) == P("y")
        f = olympus.jit(lambda x: lax.with_sharding_constraint(x, P("x", "y")))
        assert spec_of(f(X)) == P("x", "y")
        with mesh((2, 4), ("x", "y")):      # another mesh: another program
            assert f(X.T).sharding.mesh.axis_sizes == (2, 4)
        assert f(X).sharding.mesh.axis_sizes == (4, 2)
    error(ValueError, "without a mesh", lambda: lax.with_sharding_constraint(X, P("x")))


def case_unconstrained_axes_are_free():
    y = olympus.jit(lambda x: lax.with_sharding_constraint(x, on(P.UNCONSTRAINED, "y")))(
        olympus.device_put(X, on("x", "y")))
    check_parts(y, X)
    assert spec_of(y) == P("x", "y")


def case_derivatives_are_spread_alike():
    def f(x):
        return onp.sum(lax.with_sharding_constraint(onp.sin(x), on("x", "y")) ** 2)

    expected = np.sin(2 * X)
    np.testing.assert_allclose(np.asarray(olympus.grad(f)(X)), expected, rtol=1e-5, atol=1e-6)
    text = str(olympus.make_olympuspr(olympus.grad(f))(X))
    assert text.count("sharding_constraint[") == 2      # the value and the cotangent
    _, out = olympus.jvp(f, (X,), (onp.ones_like(X),))
    np.testing.assert_allclose(float(out), expected.sum(), rtol=1e-5)
    hessian = olympus.hessian(f)(X).reshape(8, 8)
    np.testing.assert_allclose(np.diag(hessian), 2 * np.cos(2 * X).ravel(), rtol=1e-4, atol=1e-5)


def case_vmap_leaves_the_mapped_axis_or_cuts_it():
    def f(row):
        return lax.with_sharding_constraint(row * 2, on("y"))

    def spec(mapped, x):
        (eqn,) = [e for e in olympus.make_olympuspr(mapped)(x).eqns if "shard" in str(e.primitive)]
        return eqn.params["sharding"].spec

    assert spec(olympus.vmap(f), X) == P(P.UNCONSTRAINED, "y")
    assert spec(olympus.vmap(f, in_axes=1, out_axes=1), X.T) == P("y", P.UNCONSTRAINED)
    y = olympus.vmap(f, spmd_axis_name="x")(X)
    check_parts(y, X * 2)
    assert spec_of(y) == P("x", "y")
    both = olympus.vmap(olympus.vmap(lambda v: lax.with_sharding_constraint(v, on()),
                                     spmd_axis_name="y"), spmd_axis_name="x")
    assert spec_of(both(np.zeros((4, 2, 3), np.float32))) == P("x", "y")
    error(ValueError, "spmd_axis_name='y' given",
          lambda: olympus.vmap(f, spmd_axis_name="y")(X))


def case_in_and_out_shardings():
    f = olympus.jit(lambda a, b: {"p": a @ b, "q": a}, in_shardings=(on("x", "y"), None),
                    out_shardings={"p": on(None, "x"), "q": None})
    b = np.ones((2, 4), np.float32)
    out = f(X, b)
    check_parts(out["p"], X @ b)
    assert (spec_of(out["p"]), spec_of(out["q"])) == (P(None, "x"), P("x", "y"))
    assert spec_of(f(olympus.device_put(X, on("x", "y")), b)["p"]) == P(None, "x")
    wrong = olympus.device_put(X, on("y"))
    error(ValueError, "argument a of <lambda> is committed to", lambda: f(wrong, b))
    error(ValueError, "jit does not support kwargs", lambda: f(X, b=b))
    error(ValueError, "in_shardings specification must be a tree prefix", lambda: f(X))
    inner = olympus.jit(lambda x: f(x, b)["p"] + 1)     # in a trace they are constraints
    check_parts(inner(X), X @ b + 1)


def case_ahead_of_time():
    f = olympus.jit(lambda a: a + 1, in_shardings=on("x", "y"))
    compiled = f.lower(X).compile()
    assert compiled.input_shardings == ((on("x", "y"),), {})
    assert compiled.output_shardings == on("x", "y")
    assert compiled.out_info.sharding == on("x", "y")
    check_parts(compiled(X), X + 1)
    error(ValueError, "the program takes it as", lambda: compiled(olympus.device_put(X, on("y"))))
    struct = olympus.ShapeDtypeStruct((4, 2), "float32", sharding=on("y"))
    assert olympus.jit(lambda a: a * 2).lower(struct).compile().input_shardings[0] == (on("y"),)


def case_donated_arguments_are_reused():
    x = olympus.device_put(X, on("x"))
    y = olympus.jit(lambda a: a + 1, donate_argnums=0)(x)
    assert x.is_deleted() and spec_of(y) == P("x")


def case_a_cached_call_needs_no_python_of_ours():
    f = olympus.jit(lambda a: a * 2)
    x = olympus.device_put(X, on("x", "y"))
    f(x), f(x)
    called = []
    sys.setprofile(lambda frame, event, arg: called.append(frame.f_code.co_name)
                   if event == "call" else None)
    f(x)
    sys.setprofile(None)
    assert not set(called) - {"__hash__"}, called      # C++ asks the sharding for its hash


def case_loops_branches_solvers_and_keys():
    x = olympus.device_put(X, on("x", "y"))
    out = olympus.jit(lambda a: lax.scan(lambda c, r: (c + r, c), onp.zeros(2), a))(x)[0]
    np.testing.assert_allclose(np.asarray(out), X.sum(0))
    np.testing.assert_allclose(np.asarray(onp.linalg.svd(x)[1]), np.linalg.svd(X)[1], rtol=1e-5)
    branch = olympus.jit(lambda a: lax.cond(a.sum() > 0, onp.sin, onp.cos, a))(x)
    np.testing.assert_allclose(np.asarray(branch), np.sin(X), rtol=1e-6)
    keys = olympus.random.split(olympus.random.key(0), 8)
    spread = olympus.device_put(keys, on("x"))
    assert spread.sharding.spec == P("x")
    # The bits are equal; XLA's normal numbers differ in the last place with a device's number of
    # rows (jaxlib 0.12.0.1: erf_inv of 1 x 3 and of 8 x 3 elements).
    for draw, units in ((olympus.random.bits, 0), (olympus.random.normal, 4)):
        each = olympus.vmap(lambda k, draw=draw: draw(k, (3,)))
        np.testing.assert_array_max_ulp(
            np.asarray(olympus.jit(each)(spread)), np.asarray(each(keys)), units)
    empty = olympus.device_put(np.zeros((0, 2), np.float32), on("x"))
    assert (empty + 1).shape == (0, 2)


def case_callbacks_run_once_with_the_whole_value():
    seen = []

    def record(v):
        seen.append(np.asarray(v))
        return np.float32(len(seen))

    def f(a):
        scalar = olympus.ShapeDtypeStruct((), "float32")
        first = io_callback(record, scalar, a, ordered=True)
        return first, io_callback(record, scalar, a * 2, ordered=True)

    x = olympus.device_put(X, on("x", "y"))
    assert list(map(float, olympus.jit(f)(x))) == [1.0, 2.0]
    olympus.effects_barrier()
    assert len(seen) == 2 and np.array_equal(seen[0], X) and np.array_equal(seen[1], X * 2)
    y = olympus.jit(lambda a: olympus.pure_callback(np.sin, a, a) + 1)(x)
    np.testing.assert_allclose(np.asarray(y), np.sin(X) + 1, rtol=1e-6)


def case_results_of_callbacks_are_whole_on_every_device():
    """The program's results themselves, or what a loop, a branch or a call makes of them."""
    struct = olympus.ShapeDtypeStruct((4, 2), "float32")
    call = lambda x: olympus.pure_callback(np.sin, struct, x)
    programs = {
        "alone": call, "two": lambda x: (call(x), x + 1)[0], "moved": lambda x: call(x).T.T,
        "called": olympus.jit(call), "io": lambda x: io_callback(np.sin, struct, x),
        "ordered": lambda x: io_callback(np.sin, struct, x, ordered=True),
        "branch": lambda x: lax.cond(x[0, 1] > 0, call, lambda x: x, x),
        "loop": lambda x: lax.fori_loop(0, 1, lambda i, x: call(x), x),
        "vmap": olympus.vmap(lambda row: olympus.pure_callback(
            np.sin, row, row, vmap_method="sequential")),
    }
    for name, f in programs.items():
        y = olympus.jit(f)(olympus.device_put(X, on("x", "y")))
        assert not isinstance(y, tuple) and len(y.devices()) == 8, name
        for part in y.addressable_shards:
            np.testing.assert_allclose(np.asarray(part.data), np.sin(X)[part.index], rtol=1e-6)


def memory(x):
    return x.sharding.memory_kind


def case_memory_kinds_are_kept_or_refused():
    host, device = on("x", "y").with_memory_kind("pinned_host"), on("x", "y")
    x = olympus.device_put(X, host)
    check_parts(olympus.device_put(x, device), X)
    assert np.array_equal(np.asarray(x), X) and memory(x) == "pinned_host"
    assert {memory(p.data) for p in x.addressable_shards} == {"pinned_host"}
    assert x.sharding == host and memory(x + 1) == "pinned_host"
    there = olympus.device_put(olympus.device_put(X, device), olympus.memory.Space.Host)
    assert (memory(there), there.sharding.spec) == ("pinned_host", device.spec)
    second = SingleDeviceSharding(olympus.devices()[1], memory_kind="pinned_host")
    put = lambda x: olympus.device_put(onp.sin(x), host)
    for f in (olympus.jit(onp.sin, out_shardings=host), olympus.jit(put), put,
              olympus.jit(lambda x: olympus.jit(put)(x)),
              lambda x: lax.with_sharding_constraint(onp.sin(x), host),
              olympus.jit(onp.sin, out_shardings=second),
              olympus.jit(lambda x: olympus.device_put(onp.sin(x), second))):
        for _ in range(2):      # the second call is C++'s
            y = f(X)
            np.testing.assert_allclose(np.asarray(y), np.sin(X), rtol=1e-6)
            assert memory(y) == "pinned_host"
            assert y.sharding.device_set == (
                second if len(y.devices()) == 1 else host).device_set
    back = olympus.jit(lambda x: olympus.device_put(put(x), device) + 1)(X)
    assert memory(back) == "device"
    np.testing.assert_allclose(np.asarray(olympus.grad(lambda x: put(x).sum())(X)), np.cos(X),
                               rtol=1e-6)
    error(ValueError, "memory kinds: device", lambda: device.with_memory_kind("moon"))


def case_donated_arguments_change_their_memory():
    """A result cannot take over a buffer in another kind of memory; XLA ended the process."""
    for device in (on("x"), SingleDeviceSharding(olympus.devices()[0])):
        host = device.with_memory_kind("pinned_host")
        for source, target in itertools.product((device, host), repeat=2):
            f = olympus.jit(lambda x: x + 1, donate_argnums=0, out_shardings=target)
            for _ in range(3):
                x = olympus.device_put(X, source)
                y = f(x)
                assert np.array_equal(np.asarray(y), X + 1)
                assert x.is_deleted() == (source is target)
                assert memory(y) == target.memory_kind


def case_traced_values_are_put_on_the_device():
    second = olympus.devices()[1]
    put = lambda x: olympus.device_put(x, second) * 2
    assert olympus.jit(put)(X).devices() == {second}
    assert olympus.grad(lambda x: put(x).sum())(X).devices() == {second}


def case_likenesses_and_copies_stay_where_the_array_is():
    for where in (on("x", "y"), on("y").with_memory_kind("pinned_host"),
                  SingleDeviceSharding(olympus.devices()[3])):
        x = olympus.device_put(X, where)
        for f in (onp.zeros_like, onp.ones_like, onp.empty_like, onp.array, onp.copy, copy.deepcopy,
                  lambda x: x.copy(), lambda x: onp.full_like(x, 3), lambda x: lax.full_like(x, 3),
                  lambda x: x.astype(x.dtype, copy=True), lambda x: x.astype(x.dtype)):
            y = f(x)
            assert y.sharding == where and y.committed and y.dtype == x.dtype
        copied = onp.array(x)
        x.delete()
        assert np.array_equal(np.asarray(copied), X)
    assert onp.zeros_like(copied, shape=(3,)).devices() == {olympus.devices()[0]}
    assert not onp.zeros_like(onp.asarray(X)).committed


def case_two_meshes_of_the_same_devices():
    reverse = on("b", sizes=(2, 4), names=("a", "b"), order=slice(None, None, -1))
    x = olympus.device_put(X, on("x", "y"))
    error(ValueError, "in one order",      # no mesh would name where the result is
          lambda: olympus.jit(lambda a: lax.with_sharding_constraint(a + 1, reverse))(x))
    z = olympus.device_put(X, reverse) + x      # moved to the first argument's order
    assert np.array_equal(np.asarray(z), X * 2)
    half = on("x", sizes=(2, 2), order=slice(4))
    error(ValueError, "one set of devices",
          lambda: olympus.jit(lambda a: lax.with_sharding_constraint(a, half))(x))
    error(ValueError, "incompatible devices", lambda: olympus.jit(
        lambda a: lax.with_sharding_constraint(lax.with_sharding_constraint(a, half), on("x")))(X))


def case_single_device_shardings_choose_the_device():
    device = olympus.devices()[3]
    sharding = SingleDeviceSharding(device)
    for f in (lambda x: lax.with_sharding_constraint(x, sharding) + 1,
              olympus.jit(lambda x: x + 1, in_shardings=sharding)):
        assert olympus.jit(f)(X).devices() == {device}
    error(ValueError, "one set of devices", lambda: olympus.jit(
        lambda x: lax.with_sharding_constraint(x, sharding))(
            olympus.device_put(X, olympus.devices()[2])))


def case_creation_on_a_device_or_a_mesh():
    cut, second = on("x"), olympus.devices()[1]
    makers = {
        "array": lambda d: onp.array(X, device=d),
        "asarray": lambda d: onp.asarray([1] * 8, device=d),
        "zeros": lambda d: onp.zeros((4, 2), device=d), "ones": lambda d: onp.ones(4, device=d),
        "full": lambda d: onp.full((4, 2), 3, device=d), "empty": lambda d: onp.empty(4, device=d),
        "zeros_like": lambda d: onp.zeros_like(X, device=d),
        "arange": lambda d: onp.arange(0, 16, 2, device=d),
        "iota": lambda d: onp.arange(8, device=d), "eye": lambda d: onp.eye(4, device=d),
        "linspace": lambda d: onp.linspace(0, 1, 8, device=d),
        "astype": lambda d: onp.asarray(X).astype(int, device=d),
        "to_device": lambda d: onp.asarray(X).to_device(d),
        "keys": lambda d: olympus.random.split(olympus.random.key(0), 4).to_device(d),
    }
    for name, make in makers.items():
        expected = make(None) if name not in ("to_device", "keys") else make(olympus.devices()[0])
        assert make(second).devices() == {second} and make(second).committed, name
        assert make(SingleDeviceSharding(second)).devices() == {second}, name
        x = make(cut)
        if name != "keys":
            assert spec_of(x) == P("x"), name
            check_parts(x, np.asarray(expected))
            assert (olympus.jit(lambda make=make: make(cut))() == expected).all(), name
        else:
            words = [np.asarray(olympus.random.key_data(k)) for k in (x, expected)]
            assert np.array_equal(*words)
    struct = olympus.ShapeDtypeStruct.like(makers["zeros"](cut))
    assert struct == olympus.ShapeDtypeStruct((4, 2), "float32", sharding=cut)


def case_moving_back_and_reading():
    x = olympus.device_put(X, on("x", "y"))
    assert olympus.device_put(x, olympus.devices()[2]).devices() == {olympus.devices()[2]}
    assert olympus.device_put(x).sharding == x.sharding
    assert spec_of(olympus.device_put(x, on("y"))) == P("y")
    assert np.array_equal(pickle.loads(pickle.dumps(x)), X)
    assert np.array_equal(olympus.device_get({"a": x})["a"], X)
    assert str(x) == str(X) and x.is_ready() and list(map(float, x[:, 0])) == [0, 2, 4, 6]
    assert np.array_equal(np.asarray(x.at[0].set(9.0))[0], [9, 9])
    olympus.copy_to_host_async(x)
    y = olympus.device_put(x, on("y"), donate=True)
    assert x.is_deleted() and np.array_equal(np.asarray(y), X)


def case_out_sharding_of_operations():
    a, s = onp.asarray(X), on("x")
    calls: dict[str, Any] = {
        "dot_general": lambda: lax.dot_general(a, a, (((1,), (1,)), ((), ())), out_sharding=s),
        "reduce_sum": lambda: lax.reduce_sum(a, (1,), out_sharding=s),
        "reduce_max": lambda: lax.reduce_max(a, (1,), out_sharding=s),
        "reduce": lambda: lax.reduce(a, np.float32(0), lax.add, (1,), out_sharding=s),
        "reshape": lambda: lax.reshape(a, (8,), out_sharding=s),
        "broadcast": lambda: lax.broadcast(a, (4,), out_sharding=s),
        "broadcasted_iota": lambda: lax.broadcasted_iota("int32", (8,), 0, out_sharding=s),
        "full": lambda: lax.full((4,), 1.0, sharding=s),
        "full_like": lambda: lax.full_like(a, 1.0, sharding=s),
        "empty": lambda: lax.empty((4,), "float32", out_sharding=s),
        "conv": lambda: lax.conv_general_dilated(
            onp.ones((4, 1, 3)), onp.ones((1, 1, 2)), (1,), "SAME", out_sharding=s),
        "ragged_dot": lambda: lax.ragged_dot(a, onp.ones((1, 2, 3)), onp.array([4]),
                                             out_sharding=s),
        "rng_bit_generator": lambda: lax.rng_bit_generator(
            onp.arange(4, dtype="uint32"), (8,), out_sharding=s)[1],
        "numpy.zeros": lambda: onp.zeros((4, 3), out_sharding=s),
        "numpy.array": lambda: onp.array(X, out_sharding=s),
        "numpy.arange": lambda: onp.arange(8, out_sharding=s),
        "numpy.matmul": lambda: onp.matmul(a, a.T, out_sharding=s),
        "numpy.einsum": lambda: onp.einsum("ij,kj->ik", a, a, out_sharding=s),
        "numpy.reshape": lambda: onp.reshape(a, (8,), out_sharding=s),
        "numpy.broadcast_to": lambda: onp.broadcast_to(a, (4, 4, 2), out_sharding=s),
        "numpy.repeat": lambda: onp.repeat(a, 2, 0, out_sharding=s),
        "numpy.bincount": lambda: onp.bincount(onp.arange(4), length=4, out_sharding=s),
        "at.get": lambda: a.at[:4].get(out_sharding=s),
        "at.set": lambda: a.at[0].set(1.0, out_sharding=s),
        "one_hot": lambda: olympus.nn.one_hot(onp.arange(4), 3, out_sharding=s),
        "random.normal": lambda: olympus.random.normal(olympus.random.key(0), (8,),
                                                       out_sharding=s),
        "initializer": lambda: olympus.nn.initializers.he_normal()(
            olympus.random.key(0), (4, 2), out_sharding=s),
    }
    for name, call in calls.items():
        for x in (call(), olympus.jit(call)()):
            assert x.sharding.is_equivalent_to(s, x.ndim), (name, x.sharding)
    with mesh():
        assert np.array_equal(np.asarray(onp.matmul(a, a.T, out_sharding=P("y"))), X @ X.T)
        mapped = olympus.interpreters.batching.broadcast(a, 4, 0, "x")
        assert mapped.sharding.is_equivalent_to(on("x"), 3)


def case_training_step_equals_the_one_on_one_device():
    """Data-parallel SGD with replicated weights: the field's first use of meshes."""
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(16, n)).astype(np.float32) for n in (3, 2))
    w = {"w": rng.normal(size=(3, 2)).astype(np.float32), "b": np.zeros(2, np.float32)}

    def step(w, x, y):
        loss = lambda w: onp.mean((onp.tanh(x @ w["w"] + w["b"]) - y) ** 2)
        return olympus.tree.map(lambda p, g: p - 0.1 * g, w, olympus.grad(loss)(w))

    expected = olympus.jit(step)(w, x, y)
    many = olympus.jit(step, in_shardings=(on(), on(("x", "y")), on(("x", "y"))),
                       out_shardings=on())
    got = many(w, x, y)
    got_again = many(got, x, y)
    for name in w:
        np.testing.assert_allclose(np.asarray(got[name]), np.asarray(expected[name]), rtol=1e-5,
                                   atol=1e-6)
        assert got_again[name].is_fully_replicated
    assert "all-reduce" in many.lower(w, x, y).compile().as_text()


def case_the_default_device_holds_inside_its_block_only():
    first, second, third = olympus.devices()[:3]

    def made():
        yield onp.ones(3) + 7.25
        yield 1 - onp.ones(3)
        yield onp.where(onp.ones(3) > 0, 0.5, 0.25)
        yield onp.clip(onp.arange(3), 1, 2)
        yield onp.asarray(2.0)
        yield olympus.random.normal(olympus.random.key(0), (2,))
        yield olympus.jit(lambda: onp.zeros(2))()
        yield olympus.grad(lambda x: x * 3.5)(2.0)

    def check(device):
        for x in made():
            assert x.device == device and not x.committed, (x.device, x.committed, device)

    for _ in range(2):
        check(first)
        with olympus.default_device(second):
            check(second)
            ones = onp.ones(3)
            with ThreadPoolExecutor(1) as other:
                other.submit(check, first).result()
    assert (ones + 1.5).device == first
    assert (olympus.device_put(onp.ones(3), third) + ones).device == third
    with olympus.default_device("cpu:3"):
        error(ValueError, "default_device must be passed either a Device object",
              lambda: onp.ones(4))


def case_arrays_are_made_from_parts_that_a_function_gives():
    made = []
    many = [(spec, shape) for shape in ((4, 8), (8, 4, 2), (0, 4)) for spec in (
        (), ("x",), ("y", "x"), (None, ("x", "y")), ("x", "y"))
        if not (shape[0] == 4 and shape[1] % 8 and len(spec) == 2)]
    for spec, shape in many:
        if spec == (None, ("x", "y")) and shape[1] % 8:
            continue
        whole = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
        for order in (slice(None), slice(None, None, -1)):
            sharding = on(*spec, order=order)
            made.clear()
            x = olympus.make_array_from_callback(
                shape, sharding, lambda i, whole=whole: made.append(i) or whole[i])
            y = olympus.device_put(whole, sharding)
            assert x.sharding == sharding and x.committed and not x.weak_type
            assert len(made) == len({str(s.index) for s in y.addressable_shards})
            np.testing.assert_array_equal(np.asarray(x), whole)
            for one, other in zip(x.addressable_shards, y.addressable_shards, strict=True):
                assert one.device == other.device
                np.testing.assert_array_equal(np.asarray(one.data), np.asarray(other.data))
            z = olympus.make_array_from_single_device_arrays(
                shape, sharding, [s.data for s in y.addressable_shards][::-1], dtype="int32")
            np.testing.assert_array_equal(np.asarray(z + x), whole * 2)
            w = olympus.make_array_from_process_local_data(sharding, whole)
            assert w.sharding == sharding
            np.testing.assert_array_equal(np.asarray(w), whole)


def case_arrays_made_from_parts_keep_keys_memories_types_and_dtypes():
    keys = olympus.random.split(olympus.random.key(3), 8)
    parts = [olympus.device_put(keys[i:i + 2], d)
             for i, d in zip((0, 0, 2, 2, 4, 4, 6, 6), olympus.devices(), strict=True)]
    made = olympus.make_array_from_single_device_arrays((8,), on("x"), parts)
    assert onp.array_equal(olympus.random.key_data(made), olympus.random.key_data(keys))
    again = olympus.make_array_from_callback((8,), on("x"), lambda i: keys[i])
    assert again.dtype == keys.dtype and again.shape == (8,)
    host = on("x").with_memory_kind("pinned_host")
    x = olympus.make_array_from_callback((4, 2), host, lambda i: X[i])
    assert x.sharding.memory_kind == "pinned_host"
    error(ValueError, "the memory 'pinned_host'", lambda:
          olympus.make_array_from_single_device_arrays(
              (4, 2), on("x"), [s.data for s in x.addressable_shards]))
    typed = NamedSharding(Mesh(np.array(olympus.devices()), "x", AxisType.Explicit), P("x"))
    x = olympus.make_array_from_callback((8,), typed, lambda i: np.arange(8.0)[i])
    assert str(olympus.typeof(x)) == "float32[8@x]" and str(olympus.typeof(x * 2)) == (
        "float32[8@x]")
    for dtype in ("bool", "bfloat16", "float8_e4m3fn", "int4", "complex64"):
        whole = onp.asarray(X).astype(dtype)
        x = olympus.make_array_from_callback((4, 2), on("x", "y"), lambda i, w=whole: w[i], dtype)
        assert x.dtype == whole.dtype
        np.testing.assert_array_equal(np.asarray(x), np.asarray(whole))
    scalar = olympus.make_array_from_callback((), on(), lambda i: 2.5)
    assert scalar.shape == () and scalar * 2 == 5 and len(scalar.addressable_shards) == 8
    one = olympus.make_array_from_callback(
        (4, 2), SingleDeviceSharding(olympus.devices()[3]), lambda i: X[i])
    assert one.device == olympus.devices()[3]


def case_parts_that_do_not_fit_are_refused_in_words():
    made, of = olympus.make_array_from_callback, olympus.make_array_from_single_device_arrays
    parts = [s.data for s in olympus.device_put(X, on("x", "y")).addressable_shards]
    error(ValueError, "Expected shard shape (1, 1) doesn't match the single device array shape "
          "(1, 3)", lambda: made((4, 2), on("x", "y"), lambda i: np.ones((1, 3), np.float32)))
    error(ValueError, "make_array_from_callback: Sharding NamedSharding", lambda: made(
        (6, 2), on("x"), lambda i: X[i]))
    error(ValueError, "must have matching dtypes. Got float32, expected int32", lambda: made(
        (4, 2), on("x", "y"), lambda i: X[i], "int32"))
    error(ValueError, "without a mesh", lambda: made((4, 2), P("x"), lambda i: X[i]))
    error(olympus.errors.UnexpectedTracerError, "within a traced context", lambda: olympus.jit(
        lambda x: made((4, 2), on("x"), lambda i: x[i]))(X))
    for bad in (None, ["a"], np.zeros(2, olympus.float0)):
        error(TypeError, "data_callback returned", lambda bad=bad: made(
            (8,), on("x"), lambda i: bad))
    gone = olympus.device_put(X, on("x")).addressable_shards[0].data
    gone.delete()
    error(RuntimeError, "has been deleted", lambda: of((4, 2), on("x"), [gone]))
    error(ValueError, "Expected 8 per-device arrays (this is how many devices are addressable by "
          "the sharding), but got 5", lambda: of((4, 2), on("x", "y"), parts[:5]))
    error(ValueError, "must be from distinct devices", lambda: of(
        (4, 2), on("x", "y"), parts[:1] * 8))
    error(ValueError, "a list of concrete arrays", lambda: olympus.jit(
        lambda x: of((4, 2), on("x", "y"), [x] * 8))(X))
    error(TypeError, "must be a list or tuple", lambda: of((4, 2), on("x", "y"), onp.asarray(X)))
    error(ValueError, "Expected shard shape (2, 1)", lambda: of(
        (8, 2), on("x", "y"), parts))
    error(TypeError, "arrays[0] is", lambda: of((4, 2), on("x", "y"), [X] * 8))
    error(ValueError, "must have one shard each", lambda: of(
        (4, 2), on("x"), [olympus.device_put(X, on("x"))] * 8))
    half = NamedSharding(Mesh(np.array(olympus.devices()[:4]), "x"), P("x"))
    error(ValueError, "no device of", lambda: of((4, 2), half, parts))
    local = olympus.make_array_from_process_local_data
    error(ValueError, "give another global_shape, or the data", lambda: local(on("x"), X, (8, 2)))
    error(ValueError, "axis 0 is partitioned 4 times, but the dimension size is 6", lambda: local(
        on("x"), np.ones((6, 2))))
    error(ValueError, "rank at least 2, but was applied to a value of rank 1", lambda: local(
        on("x", "y"), np.ones(4)))


def case_pictures_show_which_device_holds_which_part():
    def picture(shape, sharding, **how):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            olympus.debug.visualize_sharding(shape, sharding, **how)
        return out.getvalue().splitlines()

    small = {"scale": 0.1}
    assert picture((4, 2), on("x", "y"), **small) == [
        "┌───────┬───────┐", "│ CPU 0 │ CPU 1 │", "├───────┼───────┤", "│ CPU 2 │ CPU 3 │",
        "├───────┼───────┤", "│ CPU 4 │ CPU 5 │", "├───────┼───────┤", "│ CPU 6 │ CPU 7 │",
        "└───────┴───────┘"]
    assert picture((4,), on("y", order=slice(None, None, -1)), **small) == [
        "┌───────────┬───────────┐", "│CPU 1,3,5,7│CPU 0,2,4,6│", "└───────────┴───────────┘"]
    assert picture((2, 4), on("y"), **small)[1::2] == ["│CPU 0,2,4,6│", "│CPU 1,3,5,7│"]
    assert picture((2, 4), on(), **small)[1] == "│CPU 0,1,2,3,4,5,6,7│"
    # A square is 9 lines of 23, half of it in the tenth of a line less; the label in the middle.
    square = picture((8, 8), on("x"))
    assert {len(line) for line in square} == {25} and len(square) == 9
    assert square[1] == "│" + "CPU 0,1".center(23) + "│"
    halves = picture((8, 8), on(None, "y"))
    assert [len(line) for line in halves] == [25] * 11
    assert halves[5] == "│CPU 0,2,4,6│CPU 1,3,5,7│" and not halves[4].strip("│ ")
    assert picture((5,), on(), scale=8.0)[1] == f"│{' ' * 9}CPU 0,1,2,3,4,5,6,7{' ' * 10}│"
    x = olympus.jit(lambda x: x.T)(olympus.device_put(X, on("x")))
    with contextlib.redirect_stdout(io.StringIO()) as out:
        olympus.debug.visualize_array_sharding(x, **small)
    assert out.getvalue().splitlines() == picture((2, 4), x.sharding, **small)
    wide = picture((8, 800), on(None, ("x", "y")), max_width=80)
    assert {len(line) for line in wide} == {73} and len(wide) == 11
    error(ValueError, "one or two axes", lambda: picture((2, 2, 2), on("x")))
    error(ValueError, "should evenly divide", lambda: picture((3, 2), on("x")))
    error(TypeError, "color_map 'hot' given", lambda: picture((4, 2), on(), color_map="hot"))
    with contextlib.redirect_stdout(io.StringIO()) as out:
        olympus.jit(lambda x: olympus.debug.visualize_array_sharding(x.T, **small))(
            olympus.device_put(X, on("x")))
    assert out.getvalue().splitlines() == picture((2, 4), on(None, "x"), **small)


def case_notebooks_show_which_device_holds_which_part():
    def boxes(shown):
        return [[cell.text for cell in row]
                for row in ElementTree.fromstring(shown._repr_html_()).iter("tr")]

    grid = [[f"CPU {2 * i + j}" for j in range(2)] for i in range(4)]
    assert boxes(mesh()) == boxes(on("x", "y")) == grid
    assert boxes(on("y", "x")) == [list(row) for row in zip(*grid, strict=True)]
    assert boxes(on(None, "y")) == boxes(on("y")) == [["CPU 0,2,4,6", "CPU 1,3,5,7"]]
    assert boxes(on()) == [["CPU 0,1,2,3,4,5,6,7"]]
    assert boxes(on(("x", "y"))) == [sum(grid, [])]
    assert boxes(on("x", None, "y")) == grid        # the axes but the last one go down
    assert boxes(on(None, "x", "y", None)) == [[text] for row in grid for text in row]
    explicit = mesh().of_types((AxisType.Explicit,) * 2)
    assert NamedSharding(explicit, P("x", unreduced={"y"}))._repr_html_() is None
    x = olympus.device_put(X, on("x", "y"))
    assert boxes(x) == grid and "Array([[0., 1.]," in x._repr_html_()
    assert boxes(x[0]) == [["CPU 0,2,4,6", "CPU 1,3,5,7"]]
    compiled = olympus.jit(lambda x: x + 1).lower(x).compile()
    assert repr(compiled).startswith("Compiled(<lambda>: f32[4,2] -> f32[4,2], cpu × 8, ")


def case_prints_of_the_part_that_each_device_has():
    """`partitioned=True` had no effect: one device printed the whole array."""
    x = np.arange(24).reshape(2, 3, 4)

    def seen(transform, spec=("y",), sizes=(1, 2), **how):
        found = []
        fun = transform(lambda x: olympus.debug.callback(
            lambda v: found.append(np.asarray(v).tolist()), x, **how))
        olympus.jit(fun)(olympus.device_put(x, NamedSharding(
            mesh(sizes, order=slice(sizes[0] * sizes[1])), P(None, None, *spec))))
        olympus.effects_barrier()
        return sorted(found)

    each = {"partitioned": True}
    plain = lambda f: f
    assert seen(plain) == [x.tolist()] == seen(plain, ordered=True, **each)
    halves = [x[..., :2].tolist(), x[..., 2:].tolist()]
    assert seen(plain, **each) == halves
    assert seen(plain, sizes=(2, 2), **each) == sorted(2 * halves)
    assert seen(olympus.vmap, **each) == sorted(row for half in halves for row in half)
    assert seen(plain, spec=(), **each) == 2 * [x.tolist()]
    assert seen(lambda f: lambda x: f(x.sum()), **each) == [276, 276]
    assert seen(plain, sizes=(1, 1), **each) == [x.tolist()]


def case_values_that_devices_hold_terms_of():
    """`device_put` wrote device 0's term for the sum."""
    mesh = Mesh(np.array(olympus.devices()).reshape(2, 4), ("x", "y"), AxisType.Explicit)
    whole = np.arange(16.0, dtype=np.float32).reshape(4, 4)
    for spec in (P(None, None), P("y")):
        there = NamedSharding(mesh, spec.update(unreduced={"x"}))
        for given in (whole, onp.asarray(whole), olympus.device_put(whole, on("x"))):
            terms = olympus.device_put(given, there)
            assert terms.sharding == there and olympus.device_put(terms, there) is terms
            firsts = [np.asarray(s.data) for s in terms.addressable_shards]
            assert all(part.any() for part in firsts[1:4])
            assert not any(part.any() for part in firsts[4:])
            assert "unreduced" in str(terms)
        # Terms that differ from device to device; none is 0.
        terms = olympus.make_array_from_single_device_arrays(
            (4, 4), there, [s.data + 1 for s in terms.addressable_shards])
        for where in (NamedSharding(mesh, P()), NamedSharding(mesh, P("y")),
                      NamedSharding(mesh, P("x", "y")), on("x"), olympus.devices()[3]):
            np.testing.assert_array_equal(olympus.device_put(terms, where), whole + 2)
    traced = olympus.jit(lambda x: olympus.reshard(olympus.device_put(x, there),
                                                   NamedSharding(mesh, P("y"))))
    np.testing.assert_array_equal(traced(olympus.device_put(whole, NamedSharding(mesh, P()))),
                                  whole)


def case_abstract_meshes_name_the_kind_of_devices():
    device = olympus.devices()[0]
    mesh = Mesh(np.array(olympus.devices()).reshape(4, 2), ("x", "y"), AxisType.Explicit)
    kind = mesh.abstract_mesh.abstract_device
    assert repr(kind) == "AbstractDevice(device_kind=cpu, num_cores=None, platform=cpu)"
    assert kind == AbstractDevice(device.device_kind, None, device.platform)
    assert repr(mesh.abstract_mesh) == str(mesh.abstract_mesh) == (
        "AbstractMesh('x': 4, 'y': 2, axis_types=(Explicit, Explicit), device_kind=cpu, "
        "num_cores=None, platform=cpu)")
    of = lambda *kind: AbstractMesh((4, 2), ("x", "y"), AxisType.Explicit,
                                    abstract_device=AbstractDevice(*kind) if kind else None)
    assert str(of()) == "AbstractMesh('x': 4, 'y': 2, axis_types=(Explicit, Explicit))"
    assert of() == of("cpu", None, "cpu") == mesh.abstract_mesh
    assert len({of(), of("a", 1, "a")}) == 1
    assert of("cpu", None, "cpu") != of("H100", None, "gpu")
    x = olympus.device_put(X, NamedSharding(mesh, P("x")))
    assert olympus.typeof(x).sharding.mesh.update(axis_names=("a", "b")).abstract_device == kind
    assert str(AbstractMesh((), ())) == "AbstractMesh((), axis_types=())"


def case_deleted_arrays_have_no_parts():
    for x in (onp.arange(3), olympus.device_put(X, on("x"))):
        x.delete()
        for use in (lambda x: x.addressable_shards, lambda x: x.global_shards,
                    lambda x: x.addressable_data(0), lambda x: x.copy_to_host_async(),
                    lambda x: np.asarray(x), lambda x: x + 1, olympus.jit(lambda x: x + 1)):
            error(RuntimeError, f"Array has been deleted with shape={olympus.typeof(x)}.",
                  lambda use=use, x=x: use(x))


def case_a_number_beside_an_array_on_many_devices_is_put_there_once():
    x = olympus.device_put(X, on("x", "y"))
    for guard in ("allow", "allow", "disallow"):    # the first call compiles, C++ runs the others
        with olympus.transfer_guard(guard):
            product = x * 3.5
        check_parts(product, X * 3.5)


def case_a_write_into_a_reshaped_array_reads_no_element_that_it_has_written():
    @olympus.jit
    def later(x):
        return lax.dynamic_update_slice((x + 1)[None], (x + 1)[:-1][None], (0, 1))

    for spec in (P(), P("x")):
        x = olympus.device_put(np.arange(64), on(*spec))
        assert np.array_equal(later(x)[0], [1, *range(1, 64)])


def case_each_device_factorises_its_part_of_a_batch():
    # All devices gathered the batch, and each computed all of it.
    a = np.random.default_rng(0).normal(size=(4, 2, 3, 3)).astype(np.float32)
    positive = a @ a.swapaxes(-1, -2) + np.eye(3, dtype=np.float32)
    functions = {"cholesky": (onp.linalg.cholesky, positive), "eigh": (onp.linalg.eigh, positive),
                 "svd": (onp.linalg.svd, a), "qr": (onp.linalg.qr, a),
                 "solve": (lambda a: onp.linalg.solve(a, a + 1), a)}
    for name, (f, batch) in functions.items():
        cut = olympus.device_put(batch, on("x", "y"))
        compiled = olympus.jit(f).lower(cut).compile()
        assert "all-gather" not in compiled.as_text(), name
        olympus.tree.map(lambda have, want: np.testing.assert_allclose(have, want, 1e-3, 1e-4),
                         compiled(cut), f(batch))


def case_loops_of_elements_on_several_devices_exchange_one_element():
    # In place of those that have stopped, bodies see one that goes on: every device got all.
    def root(x):
        return lax.while_loop(lambda y: (onp.abs(y * y - x) > 1e-4).any(),
                              lambda y: 0.5 * (y + x / y), x)

    x = np.arange(1, 129, dtype=np.float32).reshape(16, 8)
    cut = olympus.device_put(x, on("x"))
    compiled = olympus.jit(olympus.vmap(root)).lower(cut).compile()
    assert "f32[16,8]{1,0} all-gather" not in compiled.as_text()
    np.testing.assert_allclose(compiled(cut), np.sqrt(x), 1e-5)


CASES = names(globals())

if __name__ == "__main__":
    report(globals())
