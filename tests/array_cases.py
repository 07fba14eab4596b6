"""Cases for tests/test_sharded_arrays.py, which runs this file in a process with eight CPU devices.

Arrays on many devices: where they are put, how they lie in memory, in which memory.
"""

import itertools

import numpy as np
from eight_devices import error, names, report
from sharded_cases import P, X, check_parts, mesh, on

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus._src.arrays.device import moved_by_devices
from olympus.experimental.custom_partitioning import (
    ArrayMapping, SdyShardingRule, custom_partitioning,
)
from olympus.experimental.layout import Format, Layout, with_layout_constraint
from olympus.experimental.serialize_executable import deserialize_and_load, serialize
from olympus.experimental.shard_alike import shard_alike
from olympus.sharding import AxisType, Mesh, NamedSharding, SingleDeviceSharding

VALUE = np.arange(256, dtype=np.float32).reshape(16, 16)
DEVICES = olympus.devices()
# Tiles, with and without copies, of meshes of all devices in two orders and of some devices.
PLACES = [] if len(olympus.devices()) < 8 else [    # imported for the names of the cases
    on(*spec, sizes=sizes, order=order)
    for sizes, order in (((4, 2), slice(None)), ((2, 4), slice(None, None, -1)),
                         ((2, 2), slice(4, 8)), ((1, 1), slice(3, 4)))
    for spec in ((), ("x",), ("x", "y"), (None, ("y", "x")))
]


def case_arrays_move_between_any_shardings():
    for source, target in itertools.product([None, *PLACES[1::2]], PLACES[::2] + PLACES[1:8:4]):
        x = onp.asarray(VALUE) if source is None else olympus.device_put(VALUE, source)
        y = olympus.device_put(x, target)
        check_parts(y, VALUE)
        assert y.sharding == target and y.committed and not x.is_deleted()
    for target in PLACES:
        x = olympus.device_put(VALUE, target)
        assert olympus.device_put(x, target) is x
        one = olympus.device_put(x, DEVICES[6])
        assert one.devices() == {DEVICES[6]} and np.array_equal(one, VALUE)


def case_arrays_move_by_devices_alone():
    """What is done where the host is no part of the devices."""
    sources = [onp.asarray(VALUE), *[olympus.device_put(VALUE, s) for s in PLACES[1:8:2]]]
    for x, target in itertools.product(sources, PLACES[:8:2]):
        y = moved_by_devices(x, target)
        check_parts(y, VALUE)
        assert y.sharding == target and y.committed


def case_a_constraint_over_another_mesh_holds_for_results():
    """Shardy gave the whole array to each device, as JAX 0.10.2 does."""
    x, other = olympus.device_put(VALUE, on("x", "y")), on("y", "x", sizes=(2, 4))
    for f in (lambda x: lax.with_sharding_constraint(x, other),
              olympus.jit(lambda x: lax.with_sharding_constraint(x + 0, other))):
        check_parts(f(x), VALUE)
        assert f(x).sharding == other


def case_what_is_put_is_a_value_of_its_own():
    value = VALUE.copy()
    for target in PLACES:
        y = olympus.device_put(value, target)
        value += 1
        assert np.array_equal(np.asarray(y), value - 1), target
    x = olympus.device_put(VALUE, on("x"))
    y = olympus.device_put(x, on("x"), may_alias=False)
    x.delete()
    check_parts(y, VALUE)
    renamed = NamedSharding(Mesh(mesh().devices, ("a", "b")), P("a"))
    for target in (renamed, on("y"), on(), DEVICES[3], on("x", order=slice(None, None, -1))):
        x = olympus.device_put(VALUE, on("x"))
        y = olympus.device_put(x, target, donate=True)
        assert x.is_deleted() and np.array_equal(np.asarray(y + 0), VALUE), target


def case_everything_that_is_an_array_can_be_put():
    for dtype in ("bool", "int4", "uint8", "float8_e4m3fn", "bfloat16", "complex64", "int32"):
        value = np.asarray(onp.arange(16).astype(dtype))
        for target in (on(), on("x"), on(("x", "y"))):
            y = olympus.device_put(value, target)
            assert y.dtype == dtype and np.array_equal(np.asarray(y), value), (dtype, target)
    assert olympus.device_put(np.arange(8.0), on("x")).dtype == "float32"       # no x64
    y = olympus.device_put(2.0, on())
    assert y.weak_type and y.dtype == "float32" and float(y) == 2 and y.sharding == on()
    for shape in ((0, 4), (8, 0), ()):
        for spec in ((), ("x",), (None, "y")):
            if len(spec) <= len(shape):
                y = olympus.device_put(np.ones(shape, "float32"), on(*spec))
                assert y.shape == shape and y.sharding == on(*spec)
    y = olympus.device_put(X[:, ::-1].T, on("y", "x"))
    check_parts(y, X[:, ::-1].T)
    chosen = olympus.jit(lambda x: x.reshape(2, 2, 2))(olympus.device_put(X, on("x", "y")))
    again = olympus.device_put(np.asarray(chosen), chosen.sharding)
    assert again.sharding == chosen.sharding and np.array_equal(again, chosen)
    error(ValueError, "device_put: ", lambda: olympus.device_put(np.ones(3), on("x")))
    error(ValueError, "device_put: ", lambda: olympus.device_put(onp.ones(3), on("x")))


def case_parts_say_where_they_are():
    x = olympus.device_put(VALUE, on("x"))
    indices = x.sharding.devices_indices_map((16, 16))
    assert [*indices] == DEVICES and indices[DEVICES[3]] == (slice(4, 8), slice(None))
    assert x.sharding.addressable_devices_indices_map((16, 16)) == indices
    for spec, copies in ((("x",), [0, 1] * 4), ((), range(8)),
                         ((None, "y"), [0, 0, 1, 1, 2, 2, 3, 3])):
        placed = olympus.device_put(VALUE, on(*spec))
        assert [s.replica_id for s in placed.addressable_shards] == [*copies]
    assert [s.index for s in x.global_shards] == [*indices.values()]
    assert x.addressable_data(2).shape == (4, 16) and x.is_fully_addressable
    assert not x.is_fully_replicated and x.sharding.num_devices == 8
    assert x.sharding.is_equivalent_to(on("x", None), 2)
    assert not x.sharding.is_equivalent_to(on("x", order=slice(None, None, -1)), 2)
    assert on().is_equivalent_to(on(None, sizes=(2, 4)), 2)
    error(ValueError, "should evenly divide", lambda: x.sharding.shard_shape((3, 2)))
    error(ValueError, "should evenly divide", lambda: x.sharding.devices_indices_map((3, 2)))


def order_of(x):
    return x.format.layout.major_to_minor


def case_layouts_are_obeyed():
    """Read back from arrays and executables; the oracle is NumPy's value."""
    value = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    places = [SingleDeviceSharding(DEVICES[2]), on("x"), on(None, "y"),
              NamedSharding(Mesh(mesh().devices, ("x", "y"), AxisType.Explicit), P("x"))]
    for sharding, order in zip(places, [(1, 0, 2), (2, 1, 0), (0, 2, 1), (2, 0, 1)], strict=True):
        columns = Format(Layout(order), sharding)
        x = olympus.device_put(value, columns)
        assert order_of(x) == order and x.sharding == sharding
        check_parts(x, value) if sharding is not places[0] else None
        assert {order_of(part.data) for part in x.addressable_shards} == {order}
        assert np.array_equal(x + 1, value + 1) and order_of(x + 1) == (0, 1, 2)
        double = olympus.jit(lambda a: a * 2, in_shardings=columns, out_shardings=columns)
        for given in (value, x, x):
            y = double(given)
            assert order_of(y) == order and np.array_equal(y, value * 2)
            assert y.sharding.is_equivalent_to(sharding, 3)
        compiled = double.lower(olympus.ShapeDtypeStruct((4, 2, 3), "float32")).compile()
        assert compiled.input_formats[0][0].layout == compiled.output_formats.layout == (
            x.format.layout)
        assert np.array_equal(compiled(x), value * 2)
        rows = olympus.device_put(value, sharding)
        error(ValueError, "does not match the layout on the", lambda: double(rows))
        error(ValueError, "input layouts that disagree", lambda: compiled(rows))
        turned = olympus.jit(lambda a: with_layout_constraint(a + 1, Layout(order)))(rows)
        assert order_of(turned) == order and np.array_equal(turned, value + 1)
        for keep in (columns, None):
            given = olympus.device_put(value, columns)
            z = olympus.jit(lambda a: a - 1, donate_argnums=0, out_shardings=keep)(given)
            assert given.is_deleted() and np.array_equal(z, value - 1)
        for target in (on("x", "y"), DEVICES[5], on(order=slice(None, None, -1))):
            assert np.array_equal(olympus.device_put(x, target), value)
    parts = olympus.make_array_from_callback((4, 2, 3), Format(Layout((2, 1, 0)), on("x")),
                                             lambda index: value[index])
    assert order_of(parts) == (2, 1, 0) and np.array_equal(parts, value)


def case_the_sharding_of_a_value_is_told_when_the_compiler_chose_it():
    x, seen = olympus.device_put(VALUE, on("x", "y")), []

    def f(x):
        turned = onp.sin(x).T
        olympus.debug.inspect_array_sharding({"a": turned}, callback=seen.append)
        return turned.sum()

    def told(call):
        seen.clear()
        call()
        return list(seen)

    compiled, turned = olympus.jit(f), on("y", "x")
    assert told(lambda: f(x)) == told(lambda: compiled.lower(x).compile()) == [turned]
    assert told(lambda: compiled(x)) == [turned] and told(lambda: compiled(x)) == []
    assert told(lambda: olympus.grad(f)(x)) == [turned]
    assert told(lambda: olympus.jit(olympus.grad(f))(x)) == [turned]
    whole = olympus.vmap(lambda r: f(r[None]))
    assert {s.num_devices for s in told(lambda: whole(x))} == {8}
    assert told(lambda: olympus.jit(lambda x: lax.cond(x[0, 0] > 0, f, f, x))(x)) == [turned] * 2
    assert [s.num_devices for s in told(lambda: olympus.jit(f)(VALUE))] == [1]

    for raised in (KeyError("the user's"), KeyboardInterrupt("the user's")):
        def fail(sharding, raised=raised):
            raise raised

        error(type(raised), "the user's", lambda: olympus.jit(
            lambda x: olympus.debug.inspect_array_sharding(x + 1, callback=fail))(x))
    error(TypeError, "a function of a sharding", lambda: (
        olympus.debug.inspect_array_sharding(x, callback=None)))


def case_compiled_functions_are_loaded_for_other_devices():
    half = on("x", sizes=(4, 1), order=slice(0, 4))
    f = olympus.jit(lambda x: (x @ x.T, x.sum()), in_shardings=half)
    data = serialize(f.lower(VALUE).compile())
    for where in (None, DEVICES[4:], DEVICES[3::-1]):
        g = deserialize_and_load(*data, execution_devices=where)
        product, total = g(VALUE)
        assert np.array_equal(product, VALUE @ VALUE.T) and total == VALUE.sum()
        assert product.sharding.device_set == set(where or DEVICES[:4])
        assert product.sharding.spec == P("x")


def case_functions_run_on_parts_as_they_say():
    """The oracle is the function of the whole; the communication is read from the executable."""
    def rows_of(sharding):
        return NamedSharding(sharding.mesh, P(sharding.spec[0], None))

    def part(mesh, args, result):
        (x,) = args
        assert x.shape == result.shape == (16, 16) and x.dtype == "float32"
        return mesh, lambda x: onp.cumsum(x, 1), rows_of(x.sharding), (rows_of(x.sharding),)

    summed = custom_partitioning(lambda x: onp.cumsum(x, 1))
    summed.def_partition(part, sharding_rule="... i -> ... i")
    for sharding in (on("x"), on("x", "y"), on(None, "y"), on()):
        x = olympus.device_put(VALUE, sharding)
        y = olympus.jit(lambda x: summed(x + 0))(x)
        np.testing.assert_allclose(y, np.cumsum(VALUE, 1))
    text = olympus.jit(summed).lower(olympus.device_put(VALUE, on("x"))).compile().as_text()
    assert "all-gather" not in text and "all-reduce" not in text
    lowered = olympus.jit(summed).lower(olympus.device_put(VALUE, on("x"))).as_text()
    assert "([i, j])->([i, j]) {i=16, j=16}, custom" in lowered
    np.testing.assert_allclose(olympus.jit(summed)(VALUE), np.cumsum(VALUE, 1))
    np.testing.assert_allclose(summed(olympus.device_put(VALUE, on("x"))), np.cumsum(VALUE, 1))

    # A collective along an axis of the mesh, static arguments, trees, several results.
    def total(scale, tree, name):
        return {"sum": (tree["a"] @ tree["b"]) * scale, "n": tree["a"].sum(1)}

    def parts(scale, name, mesh, args, result):
        assert (scale, name) == (2.0, "it") and set(result) == {"sum", "n"}
        tree = args[0]
        a = tree["a"].sharding
        axis = a.spec[1]

        def one(tree):
            inner = tree["a"] @ tree["b"], tree["a"].sum(1)
            product, sums = lax.psum(inner, axis) if axis else inner
            return {"sum": product * scale, "n": sums}

        rows = NamedSharding(mesh, P(a.spec[0]))
        return mesh, one, {"sum": rows, "n": rows}, ({"a": a, "b": NamedSharding(
            mesh, P(axis, None))},)

    product = custom_partitioning(total, static_argnums=(0, 2))
    product.def_partition(parts, sharding_rule=SdyShardingRule(
        (ArrayMapping("i", "k"), ArrayMapping("k", "j")),
        (ArrayMapping("i"), ArrayMapping("i", "j")), reduction_factors=("k",)))
    for a in (on("x", "y"), on(None, "x")):
        tree = olympus.device_put({"a": VALUE, "b": VALUE}, a)
        found = olympus.jit(lambda tree: product(2.0, tree, "it"))(tree)
        np.testing.assert_allclose(found["sum"], VALUE @ VALUE * 2, rtol=1e-5)
        np.testing.assert_allclose(found["n"], VALUE.sum(1))


def case_functions_for_parts_refuse_what_does_not_fit():
    x = olympus.device_put(VALUE, on("x"))

    def defined(part, rule="i j -> i j"):
        f = custom_partitioning(lambda x: x * 2)
        f.def_partition(part, sharding_rule=rule)
        return olympus.jit(f)

    def same(fun, out=None):
        return lambda mesh, args, result: (mesh, fun, out or result.sharding, (args[0].sharding,))

    error(ValueError, "Mismatch in result shapes", lambda: defined(same(lambda x: x[:1]))(x))
    error(ValueError, "must return Sharding", lambda: defined(same(lambda x: x, P("x")))(x))
    error(ValueError, "has rank 1, but", lambda: defined(same(lambda x: x), "i -> i")(x))
    error(ValueError, "either an SdyShardingRule", lambda: defined(
        same(lambda x: x), lambda mesh, ins, outs: 3)(x))
    made = defined(same(lambda x: x * 2), lambda mesh, ins, outs: ("... k -> ... k", {}))
    assert np.array_equal(made(x), VALUE * 2)
    error(ZeroDivisionError, "", lambda: defined(lambda *a: 1 / 0)(x))


def case_values_are_spread_alike():
    x, y = olympus.device_put(VALUE, on("x", "y")), onp.asarray(VALUE)

    def f(x):
        made = onp.cumsum(onp.ones((16, 16)), 0)
        a, b = shard_alike({"m": made}, {"m": x})
        return a["m"] * 2, b["m"]

    text = olympus.jit(f).lower(x).as_text()
    assert text.count("sdy.sharding_group") == text.count("group_id=0") == 2
    found, same = olympus.jit(f)(x)
    assert np.array_equal(found, 2 * np.cumsum(np.ones((16, 16)), 0)) and np.array_equal(same, x)
    twice = lambda x: shard_alike(*shard_alike(x, x + 1))
    assert olympus.jit(twice).lower(x).as_text().count("group_id=1") == 2
    for run in (shard_alike, olympus.jit(shard_alike), olympus.vmap(shard_alike, (0, 1), 0)):
        a, b = run(x, y)
        want = VALUE.T if run(x, y)[1][0, 1] != VALUE[0, 1] else VALUE
        assert np.array_equal(a, VALUE) and np.array_equal(b, want)
    loss = lambda x: (shard_alike(x, x * 3)[1] ** 2).sum() + (shard_alike(x, y)[0] ** 2).sum()
    np.testing.assert_allclose(olympus.jit(olympus.grad(loss))(x), 20 * VALUE)
    error(ValueError, "Trees should be equal", lambda: shard_alike(x, [x]))
    error(ValueError, "leaves shapes", lambda: shard_alike(x, x[0]))


def case_results_have_the_sharding_that_was_demanded():
    """By its own name: P("x", None) is not P("x"), though it says the same."""
    for demanded in (on("x", None), on(), on(None, ("y", "x")),
                     on("x", sizes=(1, 1), order=slice(2, 3)).with_memory_kind("pinned_host")):
        f = olympus.jit(lambda x: x * 2, out_shardings=demanded)
        for _ in range(2):
            assert f(VALUE).sharding == demanded


def case_calls_with_numpy_arrays_need_no_tracing_again():
    """C++ asks for each argument that is not where the program takes it; Python did all calls."""
    f = olympus.jit(lambda a, b: a * 2 + b, in_shardings=(on("x", "y"), None))
    misses, info = [], f._jit_info
    info._miss = lambda args, kwargs, own=info._miss: misses.append(1) or own(args, kwargs)
    for given in (VALUE, VALUE.astype(np.float64), onp.asarray(VALUE),
                  olympus.device_put(VALUE, on("x", "y"))):
        for other in (VALUE, onp.asarray(VALUE), np.float32(3), 2):
            misses.clear()
            for _ in range(3):
                y = f(given, other)
                assert np.array_equal(y, VALUE * 2 + np.asarray(other))
                assert y.sharding == on("x", "y")
            assert len(misses) <= 1
    with olympus.transfer_guard("disallow"):
        error(RuntimeError, "Disallowed host-to-device transfer", lambda: f(VALUE, VALUE))


def case_operations_keep_shardings():
    """As JAX 0.10.2 does, run on the same mesh: what XLA's propagation says, and committed."""
    x, rows = olympus.device_put(VALUE, on("x", "y")), olympus.device_put(VALUE, on("x"))
    expected = {
        "sin": (onp.sin, P("x", "y")), "number": (lambda x: 2 - x, P("x", "y")),
        "NumPy": (lambda x: x + VALUE, P("x", "y")), "compare": (lambda x: x > 3, P("x", "y")),
        "transpose": (lambda x: x.T, P("y", "x")), "sum": (lambda x: x.sum(0), P("y")),
        "total": (lambda x: x.sum(), P()), "reshape": (lambda x: x.reshape(16, 8, 2), P("x", "y")),
        "axis": (lambda x: x[None], P(None, "x", "y")), "copy": (lambda x: x.copy(), P("x", "y")),
        "array": (onp.array, P("x", "y")), "cast": (lambda x: x.astype("int8"), P("x", "y")),
        "like": (onp.ones_like, P("x", "y")), "vmap": (olympus.vmap(onp.sin), P("x", "y")),
        "grad": (olympus.grad(lambda x: (x * x).sum()), P("x", "y")),
        "cond": (lambda x: lax.cond(True, onp.sin, onp.cos, x), P("x", "y")),
        "loop": (lambda x: lax.fori_loop(0, 2, lambda i, c: c * 2, x), P("x", "y")),
        "update": (lambda x: x.at[0, 0].set(1), P("x", "y")), "put": (olympus.device_put, P(
            "x", "y")), "where": (lambda x: onp.where(x > 2, x, 0), P("x", "y")),
    }
    for name, (f, spec) in expected.items():
        y = f(x)
        assert y.committed and y.sharding.is_equivalent_to(on(*spec), y.ndim), (name, y.sharding)
    product = rows @ rows.T
    assert product.sharding.is_equivalent_to(on("x"), 2)


def case_uneven_updates_of_sharded_arrays():
    """Updates that devices do not share equally: XLA adds what is behind them to element 0."""
    x, places = np.arange(16.) + 1, np.array([1, 9, 3])
    new, f = x[3:6], {"add": np.add, "multiply": np.multiply, "max": np.maximum, "min": np.minimum}
    for name, ufunc in f.items():
        wanted = x.copy()
        wanted[places] = ufunc(x[places], new)
        for places_of in (lambda i: places, lambda i: i):
            run = olympus.jit(lambda x, i, name=name, of=places_of: getattr(
                x.at[of(i)], name)(x[3:6]))
            assert np.array_equal(run(olympus.device_put(x, on("y")), places), wanted), name
    rows = olympus.device_put(np.arange(32.).reshape(16, 2), on("y"))
    found = olympus.jit(olympus.grad(lambda x, y: (x[places] * y[3:6]).sum()))(rows, rows)
    wanted = np.zeros((16, 2))
    wanted[places] = np.arange(6, 12).reshape(3, 2)
    assert np.array_equal(found, wanted)


def case_updates_beyond_sharded_axes():
    x = olympus.device_put(np.zeros((16, 3)), on("y"))
    for start in (16, 12, 13):
        found = olympus.jit(lambda x, i=start: lax.dynamic_update_slice(
            x, np.ones((4, 3)), (i, 2)))(x)
        assert np.array_equal(found.sum(1), [0] * 12 + [3] * 4), start


def case_updates_of_a_padded_array():
    """Parts of an array that XLA's partitioner pads are not merged with those that it replaces."""
    x = np.array([3., 4., 5., 6.])
    padded = np.pad(x, (3, 2))
    run = olympus.jit(lambda x, i: lax.pad(x, 0., ((3, 2, 0),)).at[i].add(7))
    for i in (0, 4, 5, 8):
        wanted = padded.copy()
        wanted[i] += 7
        assert np.array_equal(run(olympus.device_put(x, on("y")), i), wanted), i


def case_padding_in_place_of_all_elements():
    """Lowered alone: what is handed to XLA has no padding."""
    x = olympus.device_put(np.ones((2, 8)), on("y"))
    lowered = olympus.jit(lambda x: lax.pad(x, 7., ((-2, 1, 0), (-2, 0, 1)))).lower(x)
    assert "stablehlo.pad" not in lowered.as_text()
    found = olympus.jit(lambda x: lax.pad(x, 7., ((-2, 1, 0), (-2, 0, 1))))(np.ones((2, 8)))
    assert np.array_equal(found, np.full((1, 13), 7.))


CASES = names(globals())

if __name__ == "__main__":
    report(globals())
