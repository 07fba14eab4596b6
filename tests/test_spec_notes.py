"""The notes page ("Just JAX") as tests: one for each code block and claim, in its order.

Where newer JAX has dropped something, its modern form is tested: `Array` for DeviceArray, concrete
values under `grad` for ConcreteArray.
"""

import collections
import dataclasses
import logging
import operator
import threading
import time

import numpy as np
import pytest

import olympus
import olympus.numpy as jnp
from olympus import jit, lax, random
from olympus.core import ShapedArray


def count_traces(fun):
    """`fun`, and a list that gets one entry each time its Python runs."""
    runs = []

    def counted(*args, **kwargs):
        runs.append(args)
        return fun(*args, **kwargs)

    return counted, runs


# Key points to remember


def test_transformations_compose():
    f = jit(olympus.vmap(olympus.grad(lambda x: x ** 3)))
    np.testing.assert_allclose(f(jnp.array([1., 2.])), [3., 12.])


def test_from_function_and_input_to_olympuspr_to_stablehlo_to_executable():
    traced = jit(lambda x: x + 1).trace(1.)
    assert "add" in str(traced.olympuspr)
    lowered = traced.lower()
    assert "stablehlo.add" in lowered.as_text()
    assert float(lowered.compile()(1.)) == 2.


def test_an_olympuspr_needs_an_input_not_only_a_function():
    with pytest.raises(TypeError):
        olympus.make_olympuspr(lambda x: x)()
    assert str(olympus.make_olympuspr(lambda x: x)(1.)) == "{ lambda ; a:f32[]. let  in (a,) }"


def test_jit_compiles_just_in_time_once_per_type():
    counted, runs = count_traces(lambda x: x * 2)
    f = jit(counted)
    assert not runs
    f(jnp.ones(3))
    f(jnp.zeros(3))
    assert len(runs) == 1
    f(jnp.ones(4))
    f(jnp.ones(3, jnp.int32))
    assert len(runs) == 3


def test_control_flow_of_jit_is_evaluated_when_it_compiles():
    def f(x):
        if x.ndim == 1:
            return jnp.sin(x)
        return jnp.cos(x)

    text = str(olympus.make_olympuspr(jit(f))(jnp.ones(3)))
    assert "sin" in text and "cos" not in text


def test_local_random_state_makes_code_thread_safe():
    def work(out, i):
        out[i] = np.asarray(random.normal(random.fold_in(random.PRNGKey(0), i), (4,)))

    alone, together = {}, {}
    for i in range(4):
        work(alone, i)
    threads = [threading.Thread(target=work, args=(together, i)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(4):
        np.testing.assert_array_equal(alone[i], together[i])


def test_arrays_know_their_device_and_are_futures():
    x = jnp.ones(3)
    assert isinstance(x, olympus.Array)
    assert x.device == olympus.devices()[0] and x.devices() == {olympus.devices()[0]}
    assert x.block_until_ready() is x


def test_tracers_have_no_concrete_values():
    seen = []

    @jit
    def f(x):
        seen.append(repr(x))
        assert isinstance(x, olympus.Array)
        return float(x)

    with pytest.raises(olympus.errors.ConcretizationTypeError, match="float"):
        f(1.)
    assert "float32[]" in seen[0] and "1." not in seen[0]


def test_traced_out_of_bounds_indices_raise_nothing():
    x = jnp.arange(10)
    assert int(jit(lambda x, i: x[i])(x, 11)) == 9
    np.testing.assert_array_equal(jit(lambda x, i: x.at[i].set(7))(x, 11), x)
    assert int(x.at[11].get(mode="clip")) == 9
    for read in (lambda x: x[11], jit(lambda x: x[11])):     # known ones do, unlike JAX's
        with pytest.raises(IndexError, match="out of bounds"):
            read(x)


# Pure functions


def pure_uses_internal_state(x):
    state = {"even": 0, "odd": 0}
    for i in range(10):
        state['even' if i % 2 == 0 else 'odd'] += x
    return state['even'] + state['odd']


def test_pure_function_with_internal_state(capsys):
    print(jit(pure_uses_internal_state)(5.))
    assert capsys.readouterr().out == "50.0\n"


def test_an_olympuspr_has_no_side_effects(capsys):
    @jit
    def f(x):
        print("traced")
        return x

    f(1.)
    f(2.)
    assert capsys.readouterr().out == "traced\n"


def test_an_olympuspr_knows_the_branch_taken_only():
    def f(x, flag):
        return x + 1 if flag else x * 2

    assert "mul" not in str(olympus.make_olympuspr(f, static_argnums=1)(1., True))


@pytest.mark.parametrize("section", ["pure functions", "static and traced values"])
def test_captured_global(section, capsys):
    scope = {"g": 0., "jit": jit, "jnp": jnp, "print": print}
    exec("def impure_uses_globals(x):\n  return x + g", scope)
    impure_uses_globals = scope["impure_uses_globals"]
    print("First call: ", jit(impure_uses_globals)(4.))
    scope["g"] = 10.
    print("Second call: ", jit(impure_uses_globals)(5.))
    print("Third call, different type: ", jit(impure_uses_globals)(jnp.array([4.])))
    assert capsys.readouterr().out == ("First call:  4.0\n"
                                       "Second call:  5.0\n"
                                       "Third call, different type:  [14.]\n")


def test_at_returns_a_new_array():
    x = jnp.zeros(3)
    y = x.at[1].set(5.)
    np.testing.assert_array_equal(x, [0, 0, 0])
    np.testing.assert_array_equal(y, [0, 5, 0])
    with pytest.raises(TypeError, match="at"):
        x[1] = 5.


def test_update_under_jit_is_in_place_where_the_operand_is_not_reused():
    step = jit(lambda x, y: x.at[2].set(y), donate_argnums=0)
    x = jnp.zeros(1000)
    compiled = step.lower(x, 1.).compile()
    stats = compiled.memory_analysis()
    assert stats.temp_size_in_bytes == 0
    assert stats.alias_size_in_bytes == x.nbytes
    pointer = x.unsafe_buffer_pointer()
    y = step(x, 1.)
    assert y.unsafe_buffer_pointer() == pointer and float(y[2]) == 1.


def test_debug_print(capfd):
    @jit
    def f(x):
        olympus.debug.print("x is {x} and {}", x + 1, x=x)
        return x

    f(jnp.float32(2.))
    olympus.effects_barrier()
    assert capfd.readouterr().out == "x is 2.0 and 3.0\n"


def test_io_callback():
    seen = []

    def host(x):
        seen.append(float(x))
        return np.float32(x * 2)

    @jit
    def f(x):
        return olympus.experimental.io_callback(
            host, olympus.ShapeDtypeStruct((), np.float32), x, ordered=True)

    assert float(f(3.)) == 6.
    assert float(f(4.)) == 8.
    assert seen == [3., 4.]


def test_check_tracer_leaks():
    leaked = []

    def f(x):
        leaked.append(x + 1)
        return x

    jit(f)(1.)
    with olympus.check_tracer_leaks(), pytest.raises(olympus.errors.UnexpectedTracerError,
                                                     match="outlived"):
        jit(f)(2)


# Stateful to stateless


def test_stateful_program_made_stateless():
    class Counter:
        def count(self, state):
            return state, state + 1     # (Output, State)

    counter, state, seen = Counter(), 0, []
    step = jit(counter.count)
    for _ in range(3):
        out, state = step(state)
        seen.append(int(out))
    assert seen == [0, 1, 2]
    _, outs = lax.scan(lambda s, _: counter.count(s)[::-1], 0, None, length=3)
    assert outs.tolist() == [0, 1, 2]


def test_associative_scan():
    x = jnp.array([1., 2., 3.])
    prefix = lax.associative_scan(operator.add, x)
    assert repr(prefix) == "Array([1., 3., 6.], dtype=float32)"


# vmap


def test_a_monoidal_reduction_is_a_tree():
    text = str(olympus.make_olympuspr(
        lambda x: lax.associative_scan(operator.add, x))(jnp.ones(1024)))
    assert text.count("= add") <= 3 * 10     # levels, not elements
    np.testing.assert_array_equal(
        olympus.vmap(lambda x: lax.associative_scan(operator.mul, x)[-1])(jnp.full((2, 5), 2.)),
        [32., 32.])


# Random numbers


def test_key():
    key = random.PRNGKey(0)
    assert repr(key) == "Array([0, 0], dtype=uint32)"
    assert str(key) == "[0 0]"


def test_split_is_deterministic_and_gives_several_keys():
    one, two = random.split(random.PRNGKey(0)), random.split(random.PRNGKey(0))
    np.testing.assert_array_equal(one, two)
    assert one.shape == (2, 2) and not np.array_equal(one[0], one[1])


# lax


def test_functions_of_lax_are_primitives():
    closed = olympus.make_olympuspr(lambda x: lax.exp(lax.sin(x)))(1.)
    assert [e.primitive for e in closed.eqns] == [lax.sin_p, lax.exp_p]


def test_lax_is_closed_under_jvp_and_transpose():
    def f(x):
        return lax.reduce_sum(lax.cumsum(lax.dynamic_slice(x, (1,), (3,)), axis=0), axes=(0,))

    closed = olympus.make_olympuspr(olympus.grad(f))(jnp.ones(5))
    assert all(hasattr(lax, f"{e.primitive.name}_p") for e in closed.eqns
               if e.primitive.name not in ("jit", "copy"))


# scan


def test_scan_is_a_fold_that_records_each_step():
    carry, ys = lax.scan(lambda c, x: (c + x, c * x), 0., jnp.array([1., 2., 3.]))
    assert float(carry) == 6. and ys.tolist() == [0., 2., 9.]


def test_the_carry_holds_a_fixed_shape_and_dtype():
    with pytest.raises(TypeError, match="scan.*carry"):
        lax.scan(lambda c, x: (jnp.stack([c, c]), x), 0., jnp.ones(3))
    with pytest.raises(TypeError, match="scan.*carry"):
        lax.scan(lambda c, x: (c.astype(np.int32), x), jnp.float32(0), jnp.ones(3))


def test_scan_compiles_its_function():
    counted, runs = count_traces(lambda c, x: (c + x, c))
    lax.scan(counted, 0., jnp.ones(100))
    assert 1 <= len(runs) <= 2
    assert str(olympus.make_olympuspr(
        lambda x: lax.scan(counted, 0., x))(jnp.ones(100))).count("scan[") == 1


def test_scan_stacks_each_leaf_over_time():
    def inference_loop(rng_key, kernel, initial_state, num_samples):
        @olympus.jit
        def one_step(state, rng_key):
            state, info = kernel(rng_key, state)
            return state, (state, info)

        keys = olympus.random.split(rng_key, num_samples)
        _, (states, infos) = olympus.lax.scan(one_step, initial_state, keys)
        return states, infos

    def kernel(key, state):
        return {"position": state["position"] + 1.}, (key[0], state["position"] * 2)

    states, infos = inference_loop(random.PRNGKey(0), kernel, {"position": 0.}, 4)
    assert states["position"].tolist() == [1., 2., 3., 4.]
    assert infos[1].tolist() == [0., 2., 4., 6.]
    np.testing.assert_array_equal(infos[0], random.split(random.PRNGKey(0), 4)[:, 0])


# Tracing


def test_tracing_is_what_every_transformation_does():
    kinds = []

    def f(x):
        kinds.append(type(x).__name__)
        return x * 2

    olympus.grad(f)(1.)
    olympus.vmap(f)(jnp.ones(2))
    jit(f)(1.)
    olympus.make_olympuspr(f)(1.)
    assert all(name.endswith("Tracer") for name in kinds) and len(set(kinds)) >= 3


def test_abstract_inputs():
    counted, runs = count_traces(lambda x: x + 1)
    f = jit(counted)
    for spec in (ShapedArray((3,), jnp.float32), olympus.ShapeDtypeStruct((3,), jnp.float32)):
        traced = f.trace(spec)
        assert str(traced.olympuspr.in_avals[0]) == "float32[3]"
        assert traced.lower().compile()(jnp.zeros(3)).tolist() == [1., 1., 1.]
        assert "f32[3]" in str(olympus.make_olympuspr(counted)(spec))
    runs.clear()
    f(jnp.ones(3))
    assert not runs     # the trace of the abstract value is this one's
    f(jnp.ones(4))
    assert len(runs) == 1


def divide(x, y):
    return x / y if y >= 1. else 0


def test_grad_has_concrete_values_and_jit_does_not():
    assert float(olympus.grad(divide)(4., 2.)) == 0.5
    with pytest.raises(olympus.errors.TracerBoolConversionError, match="static_argnums"):
        jit(divide)(4., 2.)
    f = jit(divide, static_argnums=1)
    assert float(f(4., 2.)) == 2. and int(f(4., 0.5)) == 0


# Static and traced


def selu(x, alpha=1.67, lmbda=1.05):
    return lmbda * jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)


def test_selu():
    counted, runs = count_traces(selu)
    x = jnp.arange(-2., 3.)
    selu_jit = olympus.jit(counted)
    assert not runs
    selu_jit(x).block_until_ready()
    first = selu_jit(x).block_until_ready()
    assert len(runs) == 1
    np.testing.assert_allclose(first, selu(x), rtol=1e-6)
    v = np.arange(-2., 3.)
    np.testing.assert_allclose(first, 1.05 * np.where(v > 0, v, 1.67 * np.exp(v) - 1.67), rtol=1e-5)


def test_static_and_traced_operations():
    @jit
    def f(x):
        return x.reshape(jnp.array(x.shape).prod())

    @jit
    def g(x):
        return x.reshape((np.prod(x.shape),))

    x = jnp.ones((2, 3))
    with pytest.raises(TypeError, match=r"(?s)reshape|shape|int"):
        f(x)
    assert g(x).shape == (6,)


# JIT


def test_static_values_retrace_per_value_and_dynamic_ones_do_not():
    counted, runs = count_traces(lambda x, n: x * n)
    f = jit(counted, static_argnums=1)
    for n in (2, 3, 2, 3):
        assert float(f(2., n)) == 2. * n
    assert len(runs) == 2
    for x in (3., 4.):
        f(x, 2)
    assert len(runs) == 2


def test_grad_against_jit_of_grad(capsys, caplog):
    kept = olympus.config.olympus_enable_compilation_cache      # what is there is not compiled
    olympus.config.update("olympus_enable_compilation_cache", False)
    olympus.config.update("olympus_log_compiles", True)
    try:
        def f(x):
            y = x
            for _ in range(10):
                y = jnp.sin(y) + 0.1 * jnp.cos(y * y) - jnp.tanh(y)
            return jnp.sum(y)

        g = olympus.grad(f)
        gj = olympus.jit(g)
        x = jnp.ones((1_000_000,), dtype=jnp.float32)

        print("olympuspr(grad):")
        print(olympus.make_olympuspr(g)(x))
        print("\nolympuspr(jit(grad)):")
        print(olympus.make_olympuspr(gj)(x))

        with caplog.at_level(logging.WARNING, logger="olympus"):
            g(x).block_until_ready()
            gj(x).block_until_ready()
        times = [time.perf_counter()]
        for fun in (g, gj):
            fun(x).block_until_ready()
            times.append(time.perf_counter())
        print("second-call runtime (grad):     ", times[1] - times[0])
        print("second-call runtime (jit(grad)):", times[2] - times[1])
        print("\nCompiled IR (stablehlo):")
        print(gj.lower(x).compiler_ir(dialect="stablehlo"))
    finally:
        olympus.config.update("olympus_log_compiles", False)
        olympus.config.update("olympus_enable_compilation_cache", kept)
    out = capsys.readouterr().out
    assert "module @jit_f" in out
    assert len(olympus.make_olympuspr(g)(x).eqns) > 60
    assert [e.primitive.name for e in olympus.make_olympuspr(gj)(x).eqns] == ["jit"]
    assert any("Finished XLA compilation of jit(f)" in r.getMessage() for r in caplog.records)
    np.testing.assert_allclose(g(x)[:4], gj(x)[:4], rtol=1e-4)


# Control flow


def test_static_argnames_decide_python_conditions():
    counted, runs = count_traces(lambda x: 1 if x > 0 else -1)

    def f(x):
        return counted(x)

    g = jit(f, static_argnames='x')
    assert [int(g(x=v)) for v in (3, -3, 3)] == [1, -1, 1]
    assert len(runs) == 2
    with pytest.raises(olympus.errors.TracerBoolConversionError):
        jit(f)(3)


def test_shapes_and_dtypes_decide_python_conditions():
    f = jit(lambda x: x.sum() if x.shape[0] > 2 and x.dtype == np.float32 else x)
    assert f(jnp.ones(3)).shape == () and f(jnp.ones(2)).shape == (2,)


def test_structured_control_flow_under_jit():
    x = jnp.array([-1., 0.5, 3.])
    assert float(jit(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x))(0.)) == 1.
    assert jit(lambda x: lax.select(x > 0, x, -x))(x).tolist() == [1., 0.5, 3.]
    f = jit(lambda i, x: lax.switch(i, [lambda x: x, lambda x: 2 * x, lambda x: 3 * x], x))
    assert [float(f(i, 1.)) for i in (-1, 0, 1, 2, 7)] == [1., 1., 2., 3., 3.]
    assert jit(lambda x: jnp.where(x > 0, x, 0.))(x).tolist() == [0., 0.5, 3.]


def test_piecewise_and_select_under_jit():
    x = jnp.array([-1., 0.5, 3.])
    f = jit(lambda x: jnp.piecewise(x, [x < 0, x > 1], [lambda x: -x, 10., lambda x: x + 100]))
    assert f(x).tolist() == [1., 100.5, 10.]
    g = jit(lambda x: jnp.select([x < 0, x > 1], [x - 1, x + 1], default=7.))
    assert g(x).tolist() == [-2., 7., 4.]


def test_logical_operators():
    f = jit(lambda a, b: (jnp.logical_and(a, b), jnp.logical_or(a, b), jnp.logical_not(a)))
    assert [bool(v) for v in f(True, False)] == [False, True, False]


def test_loops():
    def unrolled(x):
        for _ in range(3):
            x = x * 2
        return x

    assert str(olympus.make_olympuspr(unrolled)(1.)).count("mul") == 3
    fori = jit(lambda n, x: lax.fori_loop(0, n, lambda i, x: x * 2, x))
    assert float(fori(3, 1.)) == 8.
    assert str(olympus.make_olympuspr(fori)(1000, 1.)).count("mul") == 1
    early = jit(lambda limit: lax.while_loop(lambda x: x < limit, lambda x: x * 2, 1.))
    assert float(early(100.)) == 128.
    collected = jit(lambda x: lax.scan(lambda c, _: (c * 2, c), x, None, length=3)[1])
    assert collected(1.).tolist() == [1., 2., 4.]
    assert float(olympus.grad(lambda x: collected(x).sum())(1.)) == 7.


# Pytrees


def test_tree_leaves(capsys):
    thing = object()
    example_trees = [
        [1, 'a', thing],
        (1, (2, 3), ()),
        [1, {'k1': 2, 'k2': (3, 4)}, 5],
        {'a': 2, 'b': (2, 3)},
        jnp.array([1, 2, 3]),
    ]
    print(olympus.tree.leaves(example_trees))
    assert capsys.readouterr().out == (
        f"[1, 'a', {thing!r}, 1, 2, 3, 1, 2, 3, 4, 5, 2, 2, 3, Array([1, 2, 3], dtype=int32)]\n")
    for pytree in example_trees:
        leaves = olympus.tree.leaves(pytree)
        print(f"{repr(pytree):<45} has {len(leaves)} leaves: {leaves}")
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == f"{'(1, (2, 3), ())':<45} has 3 leaves: [1, 2, 3]"
    assert lines[4] == (f"{'Array([1, 2, 3], dtype=int32)':<45} has 1 leaves: "
                        "[Array([1, 2, 3], dtype=int32)]")


def test_tree_map_keeps_the_structure():
    tree = [1, {'k1': 2, 'k2': (3, 4)}, 5]
    assert olympus.tree.map(lambda v: v * 10, tree) == [10, {'k1': 20, 'k2': (30, 40)}, 50]


class RegisteredSpecial:
    def __init__(self, x, y, name="special"):
        self.x, self.y, self.name = x, y, name


def special_flatten(v):
    return (v.x, v.y), v.name


def special_unflatten(aux_data, children):
    return RegisteredSpecial(*children, aux_data)


olympus.tree_util.register_pytree_node(RegisteredSpecial, special_flatten, special_unflatten)


def test_registered_node_with_static_aux_data():
    def f(v):
        assert isinstance(v.name, str)
        return RegisteredSpecial(v.x + v.y, v.y, v.name + "!")

    counted, runs = count_traces(f)
    g = jit(counted)
    out = g(RegisteredSpecial(1., 2., "a"))
    assert (float(out.x), out.name) == (3., "a!")
    g(RegisteredSpecial(5., 6., "a"))
    assert len(runs) == 1           # numeric state: not static
    assert g(RegisteredSpecial(5., 6., "b")).name == "b!"
    assert len(runs) == 2           # aux data: static
    grads = olympus.grad(lambda v: v.x * v.y)(RegisteredSpecial(2., 3., "c"))
    assert (float(grads.x), float(grads.y), grads.name) == (3., 2., "c")


def test_dataclasses_are_no_pytrees_and_namedtuples_are():
    @dataclasses.dataclass
    class Plain:
        a: float

    class Named(collections.namedtuple("Named", "a b")):
        pass

    plain = Plain(1.)
    assert olympus.tree.leaves(plain) == [plain]
    assert olympus.tree.leaves(Named(1, (2, 3))) == [1, 2, 3]
    with pytest.raises(TypeError, match="Plain"):
        jit(lambda p: p)(plain)


@pytest.mark.parametrize("leaf", ["text", object()], ids=["str", "object"])
def test_str_and_object_leaves_are_refused_by_jit_but_legal_in_aux_data(leaf):
    with pytest.raises(TypeError, match=rf"of type .*{type(leaf).__name__}.*path tree\[1\]"):
        jit(lambda tree: tree)((1., leaf))
    out = jit(lambda v: v)(RegisteredSpecial(1., 2., leaf))
    assert out.name is leaf and float(out.x) == 1.


def test_trees_are_referentially_transparent():
    shared = [1., 2.]
    out = jit(lambda tree: tree)([shared, shared])
    assert out[0] is not out[1] and [float(v) for v in out[1]] == [1., 2.]


def test_in_axes_of_a_tree():
    seen = []

    def f(x, tree):
        seen.append((x.shape, tree["k1"].shape, tree["k2"].shape))
        return x + tree["k1"] + tree["k2"]

    tree = {"k1": jnp.ones(2), "k2": jnp.arange(6.).reshape(2, 3)}
    out = olympus.vmap(f, in_axes=(None, {"k1": None, "k2": 1}))(jnp.zeros(2), tree)
    assert seen == [((2,), (2,), (2,))]
    assert out.tolist() == [[1., 4.], [2., 5.], [3., 6.]]


ATuple = collections.namedtuple("ATuple", ("name"))
KEYED = [1, {'k1': 2, 'k2': (3, 4)}, ATuple('foo')]


def test_key_paths(capsys):
    flattened, _ = olympus.tree_util.tree_flatten_with_path(KEYED)
    for key_path, value in flattened:
        print(f'Value of tree{olympus.tree_util.keystr(key_path)}: {value}')
    assert capsys.readouterr().out == """\
Value of tree[0]: 1
Value of tree[1]['k1']: 2
Value of tree[1]['k2'][0]: 3
Value of tree[1]['k2'][1]: 4
Value of tree[2].name: foo
"""


def test_key_path_reprs(capsys):
    flattened, _ = olympus.tree_util.tree_flatten_with_path(KEYED)
    for key_path, _ in flattened:
        print(f'Key path of tree{olympus.tree_util.keystr(key_path)}: {repr(key_path)}')
    assert capsys.readouterr().out == """\
Key path of tree[0]: (SequenceKey(idx=0),)
Key path of tree[1]['k1']: (SequenceKey(idx=1), DictKey(key='k1'))
Key path of tree[1]['k2'][0]: (SequenceKey(idx=1), DictKey(key='k2'), SequenceKey(idx=0))
Key path of tree[1]['k2'][1]: (SequenceKey(idx=1), DictKey(key='k2'), SequenceKey(idx=1))
Key path of tree[2].name: (SequenceKey(idx=2), GetAttrKey(name='name'))
"""


# Autodiff


def test_grad_makes_a_program_of_primitives():
    text = str(olympus.make_olympuspr(olympus.grad(lambda x: jnp.sin(x) * 3.))(1.))
    assert "cos" in text and "mul" in text


def test_forward_and_reverse_mode_agree():
    def f(x):
        return jnp.stack([jnp.sin(x[0]) * x[1], x[1] ** 2, x[0]])

    x = jnp.array([0.3, 2.])
    np.testing.assert_allclose(olympus.jacfwd(f)(x), olympus.jacrev(f)(x), rtol=1e-6)


def test_derivatives_are_of_the_values_and_follow_the_path_taken():
    f = olympus.grad(lambda x: x ** 2 if x > 0 else -x)
    assert float(f(3.)) == 6. and float(f(-3.)) == -1.


def cubes(x):
    return jnp.sum(x ** 3)


def test_directional_derivative_by_jvp():
    x, v = jnp.array([1., 2.]), jnp.array([3., 4.])
    out, tangent = olympus.jvp(cubes, (x,), (v,))
    assert float(out) == 9.
    np.testing.assert_allclose(tangent, jnp.dot(olympus.grad(cubes)(x), v))


def test_hessian_vector_product_is_jvp_of_grad():
    def hvp(f, primals, tangents):
        return olympus.jvp(olympus.grad(f), primals, tangents)[1]

    x, v = jnp.array([1., 2.]), jnp.array([3., 4.])
    np.testing.assert_allclose(hvp(cubes, (x,), (v,)), 6 * np.asarray(x) * np.asarray(v))
    np.testing.assert_allclose(hvp(cubes, (x,), (v,)),
                               jnp.tensordot(olympus.hessian(cubes)(x), v, 1), rtol=1e-6)


# Asynchronous dispatch


def test_shape_and_type_never_block_and_values_do():
    x = jnp.ones((1500, 1500))
    x = jnp.dot(x, x)
    y = jnp.dot(x, x) + x
    assert y.shape == (1500, 1500) and y.dtype == np.float32
    assert float(y[0, 0]) == 1500. ** 2 * 1500. + 1500. or np.isfinite(float(y[0, 0]))
    assert y.block_until_ready().is_ready()
    assert isinstance(np.asarray(y), np.ndarray)


# Compilation


def test_ahead_of_time():
    def f(x, y): return 2 * x + y
    x, y = 3, 4
    assert int(olympus.jit(f).trace(x, y).lower().compile()(x, y)) == 10
    i32_scalar = olympus.ShapeDtypeStruct((), jnp.dtype('int32'))
    assert int(olympus.jit(f).trace(i32_scalar, i32_scalar).lower().compile()(x, y)) == 10
    assert int(olympus.jit(f).lower(x, y).compile()(x, y)) == 10


def test_inspection_without_running(capsys):
    def f(x, y): return 2 * x + y
    traced = olympus.jit(f).trace(3, 4)
    print(traced.olympuspr)
    lowered = traced.lower()
    print(lowered.as_text())
    compiled = lowered.compile()
    assert compiled.cost_analysis()['flops'] == 2.
    assert int(compiled(3, 4)) == 10
    out = capsys.readouterr().out
    assert out.startswith("{ lambda ; a:i32[] b:i32[]. let") and "module @jit_f" in out


def test_control_flow_primitives_nest_olympusprs():
    closed = olympus.make_olympuspr(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x))(1.)
    (eqn,) = [e for e in closed.eqns if e.primitive.name == "cond"]
    assert len(eqn.params["branches"]) == 2


def test_staging_runs_nothing():
    ran = []

    def host(x):
        ran.append(x)
        return x

    jit(lambda x: olympus.pure_callback(host, olympus.ShapeDtypeStruct((), np.float32), x)
        ).trace(1.).lower().compile()
    assert not ran


def test_device_put_moves_numpy_arrays_once():
    x = olympus.device_put(np.ones(3, np.float32))
    assert isinstance(x, olympus.Array)
    assert float(jnp.dot(x, x)) == 3.
    assert isinstance(olympus.device_get(x), np.ndarray)


@pytest.mark.parametrize("transform", [jit, olympus.grad, olympus.vmap],
                         ids=["jit", "grad", "vmap"])
def test_compiled_functions_cannot_be_transformed(transform):
    compiled = jit(lambda x: x).lower(1.).compile()
    x = jnp.ones(2) if transform is olympus.vmap else 1.
    with pytest.raises(TypeError, match="Cannot apply OLYMPUS transformations"):
        transform(compiled)(x)
