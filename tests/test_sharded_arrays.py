"""Arrays on many devices, their layouts and memories.

What needs several devices is in array_cases.py, which runs in a process with eight of them.
"""

import sys

import array_cases
import eight_devices
import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus._src.base import lib
from olympus._src.custom.sharding_rules import parse_rule, rule_attribute
from olympus._src.lowering import spreading
from olympus._src.lowering.attributes import module_context
from olympus.experimental import topologies
from olympus.experimental.compute_on import compute_on, compute_on2
from olympus.experimental.custom_partitioning import (
    BATCHING, ArrayMapping, CompoundFactor, custom_partitioning,
)
from olympus.experimental.layout import Format, Layout, with_layout_constraint
from olympus.experimental.serialize_executable import deserialize_and_load, serialize
from olympus.sharding import AbstractMesh, NamedSharding, PartitionSpec, SingleDeviceSharding

HERE = SingleDeviceSharding(olympus.devices()[0])
X = np.arange(12, dtype=np.float32).reshape(3, 4)
COLUMNS = Format(Layout((1, 0)), HERE)


@pytest.fixture(scope="module")
def results(request):
    return eight_devices.outcomes(array_cases, request)


@pytest.mark.parametrize("case", array_cases.CASES)
def test_on_eight_devices(results, case):
    assert not results[case], results[case]


def order_of(x):
    return x.format.layout.major_to_minor


def test_the_compiler_chooses_layouts():
    turn = olympus.jit(lambda x: x.T, in_shardings=Format(Layout.AUTO),
                       out_shardings=Format(Layout.AUTO))
    compiled = turn.lower(olympus.ShapeDtypeStruct((3, 4), "float32")).compile()
    (taken,), _ = compiled.input_formats
    assert taken.layout.major_to_minor == compiled.output_formats.layout.major_to_minor[::-1]
    for f in (turn, compiled):
        assert np.array_equal(f(X), X.T) and order_of(f(X)) == (1, 0)
    with pytest.raises(ValueError, match="AUTO.*ShapeDtypeStruct"):
        turn.lower(olympus.device_put(X, HERE))


def test_operations_read_arrays_in_their_layouts():
    """An executable for rows took columns for rows."""
    x, rows = olympus.device_put(X, COLUMNS), onp.asarray(X)
    assert x.committed and order_of(x) == (1, 0) and np.array_equal(x, X)
    f = olympus.jit(lambda x, y: (x @ y.T, x + 1))
    for _ in range(2):      # compiled for each layout, then by C++ alone
        for given in (rows, x):
            product, more = f(given, rows)
            assert np.array_equal(product, X @ X.T) and np.array_equal(more, X + 1)
            assert order_of(more) == (0, 1)
    assert np.array_equal(onp.sin(x), onp.sin(rows)) and np.array_equal(x[1:, ::2], X[1:, ::2])
    assert np.array_equal(np.from_dlpack(x), X) and x.tolist() == X.tolist()
    gradient = olympus.grad(lambda x: (x ** 2).sum())(x)
    assert np.array_equal(gradient, 2 * X)
    assert np.array_equal(olympus.vmap(onp.cumsum)(x), np.cumsum(X, 1))


def test_layouts_of_values_within_programs():
    value = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    by_columns = lambda x: with_layout_constraint(x * 2, Layout((1, 0)))
    text = olympus.jit(by_columns).lower(X).as_text()
    assert "@LayoutConstraint" in text and "result_layouts = [dense<[0, 1]>" in text
    for axis, order in ((0, (0, 2, 1)), (1, (1, 2, 0)), (2, (2, 1, 0))):
        y = olympus.jit(olympus.vmap(by_columns, axis, axis))(value)
        assert order_of(y) == order and np.array_equal(y, value * 2)
    assert np.array_equal(olympus.grad(lambda x: by_columns(x).sum())(X), np.full((3, 4), 2))
    assert order_of(with_layout_constraint(onp.asarray(X), Layout((1, 0)))) == (1, 0)
    y = olympus.jit(lambda x: lax.with_sharding_constraint(x.T, Format(Layout((1, 0)), HERE)))(X)
    assert order_of(y) == (1, 0) and np.array_equal(y, X.T)


def test_types_say_layouts_ahead_of_time():
    struct = olympus.ShapeDtypeStruct((3, 4), "float32", sharding=COLUMNS)
    assert struct.format == COLUMNS and struct.sharding == HERE
    assert "format=Layout(major_to_minor=(1, 0)" in repr(struct)
    assert struct.update(dtype="int32").format == COLUMNS
    compiled = olympus.jit(lambda x: x * 2).lower(struct).compile()
    assert compiled.input_formats[0][0].layout.major_to_minor == (1, 0)
    assert np.array_equal(compiled(olympus.device_put(X, COLUMNS)), X * 2)


def test_memory_kinds_of_shardings():
    named = NamedSharding(olympus.make_mesh((1,), "x"), PartitionSpec())
    for sharding in (named, HERE):
        default, host = sharding.memory_kind, sharding.with_memory_kind("pinned_host")
        assert default == "device" and host.memory_kind == "pinned_host" and host != sharding
        same = sharding.with_memory_kind(default)
        assert same == sharding and hash(same) == hash(sharding)
        assert olympus.device_put(X, host).sharding == host


def test_operations_of_compute_on_run_elsewhere():
    def f(x):
        with compute_on("device_host"):
            y = onp.sin(x) * 2
        return y + 1

    text = olympus.jit(f).lower(X).as_text()
    for operation in ("stablehlo.sine", "stablehlo.multiply", "stablehlo.add"):
        (line,) = [line for line in text.splitlines() if operation in line]
        assert ('_xla_compute_type = "host"' in line) == (operation != "stablehlo.add")
    np.testing.assert_allclose(olympus.jit(f)(X), np.sin(X) * 2 + 1, rtol=1e-5)
    np.testing.assert_allclose(f(X), np.sin(X) * 2 + 1, rtol=1e-5)
    # The same program elsewhere is another one, though scopes are no part of programs.
    assert olympus.jit(lambda x: onp.sin(x) * 2 + 1).lower(X).as_text() != text
    backward = olympus.jit(olympus.grad(lambda x: f(x).sum())).lower(X).as_text()
    assert backward.count('_xla_compute_type = "host"') >= 2
    named = olympus.jit(lambda x: f(x)).lower(X).as_text(debug_info=True)
    assert "device_host" not in named


def test_programs_that_begin_within_compute_on_run_elsewhere():
    """A jitted function called in such a block ran on the device."""
    f = olympus.jit(lambda x: onp.sin(x) * 2)
    plain = f.lower(X).as_text()
    assert "_xla" not in plain
    for kind, told in (("device_host", '_xla_compute_type = "host"'),
                       ("gpu_stream:1", '_xla_stream_annotation = "1"')):
        with compute_on(kind):
            text = f.lower(X).as_text()
            np.testing.assert_allclose(f(X), np.sin(X) * 2, rtol=1e-6)
            np.testing.assert_allclose(onp.cos(X), np.cos(X), rtol=1e-6)
        assert all(told in line for line in text.splitlines() if "%arg0 " in line or "sine" in line)
        assert told in text and f.lower(X).as_text() == plain


def test_functions_of_compute_on2_are_calls():
    weights = onp.arange(4.0)
    f = compute_on2(lambda x: {"a": onp.sin(x) * weights}, compute_type="device_host",
                    out_memory_spaces=olympus.memory.Space.Host, compiler_options={"k": 1})
    want = np.sin(X) * np.arange(4)
    for run in (f, olympus.jit(f), olympus.vmap(f)):
        np.testing.assert_allclose(run(X)["a"], want, rtol=1e-6)
    assert f(X)["a"].sharding.memory_kind == "pinned_host"
    text = olympus.jit(f).lower(X).as_text()
    assert 'call @compute_on(%arg0) {mhlo.frontend_attributes = {_xla_compute_type = "host", ' in (
        text) and 'backend_config = "{\\22k\\22: 1}"' in text
    g = compute_on2(compute_type="gpu_stream:1", out_memory_spaces=olympus.memory.Space.Device)(
        lambda x: (x ** 2).sum())
    assert np.array_equal(olympus.grad(g)(X), 2 * X)
    assert np.array_equal(olympus.jit(olympus.grad(g))(X), 2 * X)
    assert 'inlineable = "false"' in olympus.jit(g).lower(X).as_text()
    assert "compute_on[" in str(olympus.make_olympuspr(g)(X))


def test_compiled_functions_are_loaded_from_bytes():
    f = olympus.jit(lambda x, *, scale: {"y": onp.sin(x) * scale, "n": x.sum()})
    compiled = f.lower(X, scale=2.0).compile()
    data, in_tree, out_tree = serialize(compiled)
    loaded = deserialize_and_load(data, in_tree, out_tree)
    for _ in range(2):
        found, want = loaded(X, scale=3.0), f(X, scale=3.0)
        assert np.array_equal(found["y"], want["y"]) and found["n"] == want["n"]
    assert loaded.in_tree == compiled.in_tree and loaded.out_avals == compiled.out_avals
    with pytest.raises(TypeError, match="compiled with float32.3,4. and called with"):
        loaded(X[1:], scale=1.0)
    with pytest.raises(ValueError, match="does not support serialization"):
        serialize(olympus.jit(lambda x: olympus.pure_callback(np.sin, x, x)).lower(X).compile())
    with pytest.raises(TypeError, match="a Compiled is required"):
        serialize(f)
    with pytest.raises(ValueError, match="as many are required"):
        deserialize_and_load(data, in_tree, out_tree, execution_devices=olympus.devices() * 2)


def test_rules_for_shardy():
    """Known answers of JAX 0.10.2's documents."""
    rule = parse_rule("... i (j k), k l -> ...1 i", reduction_factors=("k",), j=3)
    assert rule.operand_mappings == (ArrayMapping("…0", "i", CompoundFactor("j", "k")),
                                     ArrayMapping("k", "l"))
    assert str(rule) == ("SdyShardingRule((('…0', 'i', ('j', 'k')), ('k', 'l')), (('…1', 'i'),), "
                         "{'j': 3} reduction_factors=('k',))")
    assert str(parse_rule(" -> i")) == "SdyShardingRule(((),), (('i',),), {})"
    with module_context():
        text = str(rule_attribute(parse_rule("... (i j), k -> ... k", i=2, j=3),
                                  [(4, 5, 6), (7,)], [(4, 5, 7)]))
    assert text == ("#sdy.op_sharding_rule<([i, j, kl], [m])->([i, j, m]) "
                    "{i=4, j=5, k=2, l=3, m=7}, custom>")


@pytest.mark.parametrize(("call", "match"), [
    (lambda: parse_rule("i j"), "There is no ->"),
    (lambda: parse_rule("i) -> i"), "Brackets are not balanced"),
    (lambda: parse_rule("(i j -> i"), "Brackets are not balanced"),
    (lambda: parse_rule("((i j) k) -> i"), "nested brackets"),
    (lambda: parse_rule("(i) -> i"), "at least two factors"),
    (lambda: parse_rule("1 -> i"), "start with a letter"),
    (lambda: parse_rule("i ... -> i"), "at the beginning"),
    (lambda: parse_rule("i .. -> i"), "inside ellipsis"),
    (lambda: parse_rule("i! -> i"), "Unknown character '!'"),
    (lambda: parse_rule("i -> i", j=2), "not used in the rule, but size"),
    (lambda: parse_rule("i -> i", i=2), "do not specify its size"),
    (lambda: parse_rule("(i j) -> i"), "must specify its size"),
    (lambda: parse_rule("i -> i", reduction_factors=["i"]), "must be a tuple"),
    (lambda: parse_rule("i -> i", reduction_factors=("j",)), "is not used in the rule"),
    (lambda: parse_rule("i -> i", reduction_factors=("i", "i")), "duplicated"),
    (lambda: parse_rule("i -> i", reduction_factors=("i",), permutation_factors=("i",)),
     "only be in one of"),
    (lambda: CompoundFactor("i"), "at least two factors"),
    (lambda: CompoundFactor("i", "…"), "Ellipsis can't be used"),
    (lambda: ArrayMapping("i", BATCHING), "at the beginning"),
    (lambda: ArrayMapping(3), "must be a str or CompoundFactor"),
    (lambda: rule_attribute(parse_rule("i -> i"), [(2,), (2,)], [(2,)]), "has 2 operands"),
    (lambda: rule_attribute(parse_rule("... i -> ..."), [(2, 3)], [()]), "different number of"),
    (lambda: rule_attribute(parse_rule("... i -> ... i"), [(2, 3)], [(4, 3)]), "two sizes: 2 and"),
    (lambda: rule_attribute(parse_rule("(i j) -> j", i=2), [(5,)], [(3,)]), "actual size 5"),
])
def test_rules_that_do_not_fit(call, match):
    with pytest.raises(ValueError, match=match):
        call()


def test_functions_with_partitions_say_what_they_miss():
    f = custom_partitioning(lambda x: x + 1)
    with pytest.raises(TypeError, match="factor_sizes must be a dict of str to int"):
        parse_rule("i -> i", i="j")
    with pytest.raises(AttributeError, match="called without def_partition"):
        f(X)
    part = lambda mesh, args, result: None
    with pytest.raises(ValueError, match="Unknown keyword arguments"):
        f.def_partition(part, i=2)
    with pytest.raises(TypeError, match="rule must be a str"):
        f.def_partition(part, sharding_rule=3)
    f.def_partition(part, infer_sharding_from_operands=part)
    with pytest.raises(NotImplementedError, match="provide sharding_rule to migrate"):
        f(X)
    assert f.def_partition(part, sharding_rule="... -> ...") is part
    assert np.array_equal(f(X), X + 1) and np.array_equal(olympus.jit(f)(X), X + 1)
    static = custom_partitioning(lambda x, n: x * n, static_argnums=1)
    static.def_partition(part)
    assert np.array_equal(static(X, n=3), X * 3)
    with pytest.raises(olympus.errors.UnexpectedTracerError, match="static argument"):
        olympus.jit(static)(X, 2)
    with pytest.raises(olympus.errors.UnexpectedTracerError, match="closes over traced"):
        olympus.jit(lambda y: _closing(part, y)(X))(1.0)


def _closing(part, y):
    f = custom_partitioning(lambda x: x + y)
    f.def_partition(part)
    return f


def test_topologies():
    attached = topologies.get_attached_topology("cpu")
    assert attached.devices == olympus.devices()
    assert topologies.make_mesh(attached, (1,), ("x",)).device_ids.tolist() == [0]
    with pytest.raises(NotImplementedError, match="topology not implemented for"):
        topologies.get_topology_desc("v5e:2x2", "cpu")


def test_optimizer_state_stays_in_the_memory_of_the_host():
    spaces, host = olympus.memory.Space, HERE.with_memory_kind("pinned_host")

    def step(weights, momentum):
        momentum = 0.9 * olympus.device_put(momentum, spaces.Device) + weights
        return weights - momentum, olympus.device_put(momentum, spaces.Host)

    for given in ({}, {"donate_argnums": (0, 1), "out_shardings": (HERE, host)}):
        weights, momentum = olympus.device_put(X, HERE), olympus.device_put(X, host)
        update = olympus.jit(step, **given)
        for _ in range(2):
            weights, momentum = update(weights, momentum)
            assert [x.sharding.memory_kind for x in (weights, momentum)] == [
                "device", "pinned_host"]
        np.testing.assert_allclose(momentum, 0.9 * 1.9 * X - 0.9 * X, rtol=1e-5)


@pytest.mark.parametrize(("call", "error", "match"), [
    (lambda: compute_on("moon").__enter__(), ValueError, "Invalid compute type moon"),
    (lambda: compute_on(1).__enter__(), TypeError, "must be a string"),
    (lambda: compute_on2(onp.sin, compute_type="moon", out_memory_spaces=None), ValueError,
     "Invalid compute type moon"),
    (lambda: olympus.jit(lambda x: x, in_shardings=Layout((1, 0))), ValueError, "does not accept"),
    (lambda: olympus.jit(lambda x: x, out_shardings=Layout.AUTO), ValueError, "does not accept"),
    (lambda: olympus.device_put(X, Format(Layout.AUTO, HERE)), ValueError, "should be concrete"),
    (lambda: olympus.device_put(X, Format(Layout((0, 1, 2)), HERE)), ValueError, "rank of the val"),
    (lambda: olympus.jit(lambda x: x, in_shardings=Format(Layout((0, 1, 2)), HERE))(X), ValueError,
     "arguments, x, is incompatible.* rank of the value"),
    (lambda: olympus.jit(lambda x: x, out_shardings=Format(Layout((0,)), HERE))(X), ValueError,
     "results, result, is incompatible.* rank of the value"),
    (lambda: with_layout_constraint(X, HERE), ValueError, "a Layout is required"),
    (lambda: with_layout_constraint(X, Layout((0,))), ValueError, "rank of the value"),
    (lambda: olympus.ShapeDtypeStruct((3, 4), "float32", sharding=Format(Layout.AUTO)), TypeError,
     "cannot be used in place of a device-local layout"),
    (lambda: olympus.make_array_from_callback((3,), Format(Layout.AUTO, HERE), X.__getitem__),
     TypeError, "cannot be used in place of a device-local layout"),
    (lambda: olympus.device_put(onp.ones(3), NamedSharding(
        olympus.make_mesh((1,), "x"), PartitionSpec(None, "x"))), ValueError, "device_put: "),
])
def test_bad_input_says_what_is_required(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_the_compilers_choice_is_named_in_linear_time():
    """It was exponential in the axes of the mesh; lines that run are counted."""
    def lines(axes):
        names = tuple("abcdefghijkl"[:axes])
        mesh = AbstractMesh((2,) * axes, names)
        tiling = NamedSharding(mesh, PartitionSpec(names[::-2], names[0]))._to_xla_hlo_sharding(2)
        count = 0

        def trace(frame, event, arg):
            nonlocal count
            count += event == "line" and "spreading" in frame.f_code.co_filename
            return trace

        outer = sys.gettrace()
        sys.settrace(trace)
        try:
            found = spreading._spec(mesh, tiling, 2)
        finally:
            sys.settrace(outer)
        assert found is not None
        assert lib.same_tiles(NamedSharding(mesh, found)._to_xla_hlo_sharding(2), tiling, 2)
        return count

    assert lines(12) < 2.5 * lines(6)       # of 4096 devices and of 64
