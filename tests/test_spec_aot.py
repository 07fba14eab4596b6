"""Every example and claim of the ahead-of-time page, in the page's order and to its letter.

Blocks of text are the page's own, as literals. Where the page marks an example as skipped or free
in detail, it is tested all the same.
"""

import inspect
import os
import pickle
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import olympus
import olympus.numpy as jnp
from olympus import stages


def f(x, y): return 2 * x + y


def g(x):
    assert x.shape == (3, 2)
    return x @ jnp.ones(2)


def make_z(*shape):
    return jnp.arange(np.prod(shape)).reshape(shape)


x, y = 3, 4
I32 = olympus.ShapeDtypeStruct((), jnp.dtype("int32"))

OLYMPUSPR = """\
{ lambda ; a:i32[] b:i32[]. let
    c:i32[] = mul 2:i32[] a
    d:i32[] = add c b
  in (d,) }"""

MODULE = """\
module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<i32>, %arg1: tensor<i32>) \
-> (tensor<i32> {olympus.result_info = "result"}) {
    %c = stablehlo.constant dense<2> : tensor<i32>
    %0 = stablehlo.multiply %c, %arg0 : tensor<i32>
    %1 = stablehlo.add %0, %arg1 : tensor<i32>
    return %1 : tensor<i32>
  }
}
"""

STATIC_MODULE = """\
module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<i32>) -> (tensor<i32> {olympus.result_info = "result"}) {
    %c = stablehlo.constant dense<14> : tensor<i32>
    %0 = stablehlo.add %c, %arg0 : tensor<i32>
    return %0 : tensor<i32>
  }
}
"""

MISMATCH_SHAPE = """\
Argument types differ from the types for which this computation was compiled. The mismatches are:
Argument 'x' compiled with int32[] and called with int32[3]
Argument 'y' compiled with int32[] and called with int32[3]"""

MISMATCH_DTYPE = """\
Argument types differ from the types for which this computation was compiled. The mismatches are:
Argument 'x' compiled with int32[] and called with float32[]
Argument 'y' compiled with int32[] and called with float32[]"""

REFUSED = ("Cannot apply OLYMPUS transformations to a function lowered and compiled for a "
           "particular signature. Detected argument of Tracer type {}")

ZS = """\
Array([[ 1.,  5.,  9.],
       [13., 17., 21.],
       [25., 29., 33.],
       [37., 41., 45.]], dtype=float32)"""


# The four stages


def test_traced_prints_the_olympuspr():
    traced = olympus.jit(f).trace(x, y)
    assert isinstance(traced, stages.Traced)
    assert str(traced.olympuspr) == OLYMPUSPR


def test_lowered_prints_the_module():
    lowered = olympus.jit(f).trace(x, y).lower()
    assert isinstance(lowered, stages.Lowered)
    assert lowered.as_text() == MODULE
    assert lowered.as_text("stablehlo") == MODULE


def test_compiled_counts_flops():
    compiled = olympus.jit(f).trace(x, y).lower().compile()
    assert isinstance(compiled, stages.Compiled)
    assert compiled.cost_analysis()["flops"] == 2.0
    assert repr(compiled.cost_analysis()["flops"]) == "2.0"


def test_compiled_runs():
    compiled = olympus.jit(f).trace(x, y).lower().compile()
    assert repr(compiled(x, y)) == "Array(10, dtype=int32, weak_type=True)"
    assert repr(compiled(5, 6)) == "Array(16, dtype=int32, weak_type=True)"


def test_a_call_goes_through_the_same_stages():
    jitted = olympus.jit(f)
    assert isinstance(jitted, stages.Wrapped)
    assert repr(jitted(x, y)) == repr(jitted.trace(x, y).lower().compile()(x, y))
    assert jitted.lower(x, y).as_text() == jitted.trace(x, y).lower().as_text()


def test_shape_and_dtype_are_all_that_trace_needs():
    compiled = olympus.jit(f).trace(I32, I32).lower().compile()
    assert repr(compiled(x, y)) == "Array(10, dtype=int32)"


def test_any_object_with_shape_and_dtype_is_an_argument_of_trace():
    hollow = SimpleNamespace(shape=(), dtype=np.dtype("int32"))
    compiled = olympus.jit(f).trace(hollow, hollow).lower().compile()
    assert repr(compiled(x, y)) == "Array(10, dtype=int32)"


def test_mismatched_shapes_are_told_by_argument_name():
    x_1d = y_1d = jnp.arange(3)
    with pytest.raises(TypeError) as error:
        olympus.jit(f).trace(I32, I32).lower().compile()(x_1d, y_1d)
    assert str(error.value) == MISMATCH_SHAPE


def test_mismatched_dtypes_are_told_by_argument_name():
    x_f = y_f = jnp.float32(72.)
    with pytest.raises(TypeError) as error:
        olympus.jit(f).trace(I32, I32).lower().compile()(x_f, y_f)
    assert str(error.value) == MISMATCH_DTYPE


def test_only_mismatched_arguments_are_listed_with_their_paths():
    def h(tree, y):
        return tree["a"][0] + tree["a"][1] + y

    compiled = olympus.jit(h).trace({"a": (I32, I32)}, I32).lower().compile()
    with pytest.raises(TypeError) as error:
        compiled({"a": (1, 2.0)}, 3)
    assert str(error.value).splitlines()[1:] == [
        "Argument 'tree['a'][1]' compiled with int32[] and called with float32[]"]


# Tracing with static arguments


def test_static_argument_is_folded_into_the_module():
    lowered_with_x = olympus.jit(f, static_argnums=0).trace(7, 8).lower()
    assert lowered_with_x.as_text() == STATIC_MODULE
    assert repr(lowered_with_x.compile()(5)) == "Array(19, dtype=int32, weak_type=True)"


def test_static_argument_must_be_concrete():
    with pytest.raises(TypeError) as error:
        olympus.jit(f, static_argnums=0).trace(I32, I32)
    assert str(error.value) == "unsupported operand type(s) for *: 'int' and 'ShapeDtypeStruct'"


def test_static_value_with_hollow_dynamic_argument():
    compiled = olympus.jit(f, static_argnums=0).trace(10, I32).lower().compile()
    assert repr(compiled(5)) == "Array(25, dtype=int32)"


def test_static_argnames_are_respected_at_every_stage():
    jitted = olympus.jit(f, static_argnames="x")
    for traced in (jitted.trace(7, 8), jitted.trace(x=7, y=8), jitted.trace(7, y=8)):
        assert len(traced.olympuspr.in_avals) == 1
    compiled = jitted.trace(x=7, y=8).lower().compile()
    assert int(compiled(y=5)) == 19
    with pytest.raises(TypeError, match="Function compiled with input pytree does not match"):
        compiled(5)


def test_keyword_arguments_are_respected_at_every_stage():
    traced = olympus.jit(f).trace(y=4, x=3)
    assert traced.in_tree == olympus.tree.structure(((), {"x": 3, "y": 4}))
    lowered = traced.lower()
    args, kwargs = lowered.args_info
    assert args == () and set(kwargs) == {"x", "y"}
    assert int(lowered.compile()(x=3, y=4)) == 10
    assert int(lowered.compile()(y=4, x=3)) == 10


@pytest.mark.parametrize("options", [{"donate_argnums": 0}, {"donate_argnames": "x"}])
def test_donation_is_respected_at_every_stage(options):
    def step(x, y):
        return x + y

    a = jnp.ones((8,))
    traced = olympus.jit(step, **options).trace(a, a)
    assert traced.donate_argnums == (0,)
    lowered = traced.lower()
    assert [i.donated for i in lowered.args_info[0]] == [True, False]
    assert "tf.aliasing_output = 0" in lowered.as_text()
    compiled = lowered.compile()
    assert compiled.donate_argnums == (0,)
    given, other = jnp.full((8,), 2.0), jnp.ones((8,))
    np.testing.assert_array_equal(compiled(given, other), np.full(8, 3.0))
    assert given.is_deleted() and not other.is_deleted()


@pytest.mark.parametrize("keep", [False, True])
def test_keep_unused_is_respected_at_every_stage(keep):
    lowered = olympus.jit(lambda x, y: x * 2, keep_unused=keep).trace(I32, I32).lower()
    assert ("%arg1" in lowered.as_text()) is keep
    assert len(lowered.in_avals[0]) == 2
    assert int(lowered.compile()(3, 4)) == 6


# AOT-compiled functions cannot be transformed


def test_vmap_of_the_jitted_function():
    zs = make_z(4, 3, 2)
    assert repr(olympus.vmap(olympus.jit(g))(zs)) == ZS


def test_vmap_of_the_compiled_function_is_refused():
    z, zs = make_z(3, 2), make_z(4, 3, 2)
    g_aot = olympus.jit(g).trace(z).lower().compile()
    with pytest.raises(TypeError) as error:
        olympus.vmap(g_aot)(zs)
    assert str(error.value) == REFUSED.format(
        "<class 'olympus._src.interpreters.batching.BatchTracer'>")


def test_autodiff_of_the_compiled_function_is_refused():
    z = jnp.ones((3, 2))
    total = olympus.jit(lambda z: g(z).sum()).trace(z).lower().compile()
    for transformed in (olympus.grad(total), lambda z: olympus.jvp(total, (z,), (z,)),
                        lambda z: olympus.vjp(total, z), lambda z: olympus.linearize(total, z)):
        with pytest.raises(TypeError) as error:
            transformed(z)
        assert str(error.value).startswith(
            REFUSED.format("<class 'olympus.interpreters.ad.JVPTracer"))
    assert float(total(z)) == 6.0


def test_jit_of_the_compiled_function_is_refused():
    z = make_z(3, 2)
    g_aot = olympus.jit(g).trace(z).lower().compile()
    with pytest.raises(TypeError) as error:
        olympus.jit(g_aot)(z)
    assert str(error.value) == REFUSED.format("<class 'olympus._src.core.staging.JitTracer'>")


# Debug information and analyses


def test_debug_info_shows_source_locations():
    lowered = olympus.jit(f).trace(x, y).lower()
    line = inspect.getsourcelines(f)[1]
    text = lowered.as_text(debug_info=True)
    assert f'{os.path.basename(__file__)}":{line}:' in text
    assert "loc(" in text and "loc(" not in lowered.as_text()


def test_text_representations():
    lowered = olympus.jit(f).trace(x, y).lower()
    assert lowered.as_text("hlo").startswith("HloModule jit_f")
    assert "ENTRY" in lowered.compile().as_text()
    with pytest.raises(ValueError, match="dialect 'nonsense' given; 'stablehlo' or 'hlo'"):
        lowered.as_text("nonsense")


def test_compiler_ir():
    lowered = olympus.jit(f).trace(x, y).lower()
    module = lowered.compiler_ir()
    assert str(module) == MODULE == str(lowered.compiler_ir("stablehlo"))
    assert module.operation.verify()
    assert "multiply" in lowered.compiler_ir("hlo").as_hlo_text()
    with pytest.raises(ValueError, match="dialect 'xla' given"):
        lowered.compiler_ir("xla")


def test_cost_analysis_before_compiling():
    assert olympus.jit(f).trace(x, y).lower().cost_analysis()["flops"] == 2.0


def test_memory_analysis():
    stats = olympus.jit(f).trace(x, y).lower().compile().memory_analysis()
    assert stats.argument_size_in_bytes == 8
    assert stats.output_size_in_bytes == 4


def test_what_a_backend_lacks_is_none():
    class Lacking:
        """An executable whose backend implements no analysis."""

        def cost_analysis(self):
            raise NotImplementedError("cost_analysis")

        get_compiled_memory_stats = hlo_modules = cost_analysis

    compiled = olympus.jit(f).trace(x, y).lower().compile()
    lacking = stages.Compiled(compiled._program, SimpleNamespace(xla=Lacking(), exclusive=(),
                                                                  placement=None))
    assert lacking.cost_analysis() is None
    assert lacking.memory_analysis() is None
    assert lacking.as_text() is None


# What the stages say of the function


def test_every_stage_knows_trees_and_types():
    def h(a, *, b):
        return {"sum": a + b, "two": (a, 2)}

    traced = olympus.jit(h).trace(jnp.ones((2, 3)), b=1.0)
    lowered = traced.lower()
    compiled = lowered.compile()
    for stage in (traced, lowered, compiled):
        assert stage.in_tree == olympus.tree.structure(((0,), {"b": 0}))
        assert stage.out_tree == olympus.tree.structure({"sum": 0, "two": (0, 0)})
        (info,), rest = stage.args_info
        assert (info.shape, info.dtype, info.donated) == ((2, 3), np.float32, False)
        assert set(rest) == {"b"}
        (aval,), kwargs = stage.in_avals
        assert str(aval) == "float32[2,3]" and str(kwargs["b"]) == "float32[]"
        assert stage.out_info["sum"].shape == (2, 3)
        assert stage.out_info["two"][1].dtype == np.int32
        assert stage.donate_argnums == ()
    assert traced.fun_name == "h"
    assert str(traced.out_avals["sum"]) == "float32[2,3]"
    assert isinstance(traced.effects, frozenset) or not traced.effects


def test_shardings_of_a_compiled_function():
    compiled = olympus.jit(f).trace(I32, I32).lower().compile()
    args, kwargs = compiled.input_shardings
    assert len(args) == 2 and kwargs == {}
    placed = olympus.device_put(1, olympus.devices()[0])
    assert compiled.output_shardings == args[0] == placed.sharding


def test_a_traced_function_can_be_called():
    assert int(olympus.jit(f).trace(x, y)(5, 6)) == 16


def test_compiler_options():
    lowered = olympus.jit(f).trace(x, y).lower()
    compiled = lowered.compile(compiler_options={"xla_embed_ir_in_executable": True})
    assert int(compiled(x, y)) == 10
    with pytest.raises(ValueError, match="got compiler option 'invalid_key'"):
        lowered.compile(compiler_options={"invalid_key": "some_value"})
    optioned = olympus.jit(f, compiler_options={"invalid_key": 1})
    with pytest.raises(ValueError, match="got compiler option 'invalid_key'"):
        optioned(x, y)


def test_structure_mismatch_names_what_differs():
    compiled = olympus.jit(f).trace(x, y).lower().compile()
    with pytest.raises(TypeError, match="input pytree does not match"):
        compiled(x)
    with pytest.raises(TypeError, match="input pytree does not match"):
        compiled(x, y=y)
    with pytest.raises(TypeError, match="is not an array|is given|an array"):
        compiled("x", y)


def test_stages_refuse_pickling_and_point_to_export():
    traced = olympus.jit(f).trace(x, y)
    lowered = traced.lower()
    for stage in (traced, lowered, lowered.compile()):
        with pytest.raises(TypeError, match=f"pickle: a {type(stage).__name__} given.*export"):
            pickle.dumps(stage)


def test_lowering_for_a_named_platform():
    traced = olympus.jit(f).trace(x, y)
    assert traced.lower(lowering_platforms=("cpu",)).as_text() == MODULE
    both = traced.lower(lowering_platforms=("cpu", "cuda"))
    assert "_platform_index" in both.as_text()
    with pytest.raises(NotImplementedError, match="one platform is required"):
        both.compile()


def test_methods_can_be_staged():
    class Affine:
        def __init__(self, scale):
            self.scale = scale

        def __call__(self, x):
            return self.scale * x

    compiled = olympus.jit(Affine(3)).trace(2).lower().compile()
    assert int(compiled(2)) == 6
    assert olympus.jit(Affine(3)).trace(2).lower().as_text().startswith("module @jit_Affine")


# Without jax

WITHOUT_JAX = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name == "jax" or name.startswith("jax."):
            raise ImportError(f"{name} must not be imported")

sys.meta_path.insert(0, Refuse())
try:
    import jax
except ImportError:
    pass
else:
    raise SystemExit("jax could be imported")
import pytest
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-k", "not without_jax", sys.argv[1]]))
"""


def test_all_of_this_without_jax():
    done = subprocess.run([sys.executable, "-c", WITHOUT_JAX, __file__], capture_output=True,
                          text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
