"""What holds in a process of `python -m olympus.as_jax`: run by tests/test_as_jax.py, all at once.

Prints, as JSON, the traceback of each case that fails.
"""

import collections
import dataclasses
import importlib
import importlib.metadata
import inspect
import io
import json
import multiprocessing
import os
import pickle
import re
import subprocess
import sys
import traceback
import types
import warnings
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import olympus
from olympus._src.as_jax import adapters, check
from olympus._src.as_jax.stand_ins import StandIn

HERE = Path(sys.argv[1]) if __name__ == "__main__" else None    # a folder with another `jax`


def raises(kind, fun, *words):
    try:
        fun()
    except kind as error:
        text = str(error)
        assert all(word in text for word in words), text
        return error
    raise AssertionError(f"no {kind.__name__}")


def case_the_other_jax_on_the_path_is_not_imported():
    assert (HERE / "jax" / "__init__.py").exists() and str(HERE) in sys.path
    assert jax.__file__ == olympus.__file__ and jax.jit is olympus.jit
    assert importlib.metadata.version("jax") == jax.__version__ == "0.10.2"
    assert importlib.util.find_spec("jax").origin == olympus.__file__


def case_modules_have_the_names_in_jax_spelling():
    assert jax.make_jaxpr is olympus.make_olympuspr and "make_jaxpr" in dir(jax)
    assert jax.errors.JAXTypeError is olympus.errors.OLYMPUSTypeError
    assert jnp.linalg is importlib.import_module("jax.numpy.linalg")
    names = {}
    exec("from jax.interpreters.ad import *", names)
    assert names["add_jaxvals"] is olympus.interpreters.ad.add_olympusvals
    assert "sin" in vars(jnp) or jnp.sin is vars(jnp)["sin"]     # kept: read again at no cost
    assert type(jnp) is type(sys)       # reading a name costs what it costs of any module


PUBLIC = """api_util core custom_batching custom_derivatives debug distributed dlpack dtypes errors
experimental experimental.compilation_cache experimental.compilation_cache.compilation_cache export
image interpreters interpreters.ad interpreters.batching interpreters.mlir
interpreters.partial_eval interpreters.pxla interpreters.xla lax lax.linalg lib monitoring nn
nn.initializers numpy numpy.fft numpy.linalg ops profiler random scipy sharding stages tree
tree_util typing version"""


def case_import_jax_brings_what_libraries_look_for_in_sys_modules():
    code = ("import sys, olympus.as_jax; before = {*sys.modules}; import jax; "
            "print(*{*sys.modules} - before); import jax.monitoring; m = sys.modules; "
            "print(m['jax.core'].Tracer, m['jax.monitoring'].__doc__ == jax.monitoring.__doc__ "
            "== m['olympus.monitoring'].__doc__, m['jax.numpy'].__file__)")
    brought, read = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                                   check=True).stdout.splitlines()
    assert {f"jax.{name}" for name in PUBLIC.split()} <= {*brought.split()}
    assert not any("olympus" in name for name in brought.split())       # but when they are read
    assert read == f"{jax.core.Tracer} True {olympus.numpy.__file__}"
    for name in PUBLIC.split():
        module = sys.modules[f"jax.{name}"]
        assert module.__doc__ and module.__name__ == f"jax.{name}", name
        assert importlib.import_module(f"jax.{name}") is module
        assert all(hasattr(module, public) for public in dir(module)[:1]), name


def case_arrays_are_of_the_array_api_under_the_name_of_jax():
    x = jnp.arange(3.)
    assert x.__array_namespace__() is jnp and jnp.__name__ == "jax.numpy"
    assert x.__array_namespace__(api_version="2024.12") is jnp
    assert jnp.__array_api_version__ == "2024.12"
    assert jnp.__array_namespace_info__().capabilities()["boolean indexing"]
    assert jax.jit(lambda x: x * (x.__array_namespace__() is jnp))(2.) == 2
    for name in ("__array__", "__array_ufunc__", "__path_of__"):
        raises(AttributeError, lambda name=name: getattr(jnp, name))


def case_scipy_knows_arrays_and_tracers():
    """By its copies of array-api-compat and array-api-extra. NumPy's results are the oracle."""
    os.environ["SCIPY_ARRAY_API"] = "1"
    stats, special, vq = map(importlib.import_module, (
        "scipy.stats", "scipy.special", "scipy.cluster.vq"))
    copies = {name.rpartition(".")[2]: module for name, module in [*sys.modules.items()]
              if re.fullmatch(r"scipy\.[\w.]*array_api_(compat|extra)", name)}
    compat, extra = copies["array_api_compat"], copies["array_api_extra"]

    def knows(x):
        return (compat.is_jax_array(x), compat.is_lazy_array(x), compat.is_writeable_array(x),
                compat.array_namespace(x) is jnp)

    assert knows(jnp.ones(2)) == (True, True, False, True)
    jax.jit(lambda x: knows(x) == (True, True, False, True) or 1 / 0)(1.)
    jax.vmap(jax.grad(lambda x: x * (knows(x) == (True, True, False, True) or 1 / 0)))(jnp.ones(2))
    assert compat.array_namespace(np.zeros(2, jax.dtypes.float0)) is jnp
    rows = np.linspace(-1, 2, 12).reshape(4, 3)
    for f in (lambda x: special.logsumexp(x, axis=0), special.softmax, special.gammaln,
              lambda x: special.rel_entr(x + 2, x + 3), stats.zscore, stats.skew, stats.sem,
              lambda x: stats.gmean(x + 2), lambda x: stats.pearsonr(x[0], x[0] ** 2).statistic,
              lambda x: stats.quantile(x[:, 0], .3), lambda x: stats.ttest_1samp(x, 1.).pvalue,
              lambda x: extra.cov(x.T), lambda x: extra.nunique(x), vq.whiten,
              lambda x: extra.at(x, (0, 1)).set(5.), lambda x: extra.pad(x[0], 2),
              lambda x: extra.at(x, x > 0).add(1., copy=True), lambda x: extra.apply_where(
                  x > 0, x, lambda y: y * 2, lambda y: -y)):
        with jax.numpy_rank_promotion("allow"):
            found = f(jnp.asarray(rows))
        assert isinstance(found, jax.Array), type(found)
        np.testing.assert_allclose(found, f(rows.copy()), rtol=1e-12, atol=1e-12)


def case_a_patched_name_is_seen_by_who_reads_it():
    jax.numpy.sin_of_ours, before = jnp.sin, jnp.cos
    jax.numpy.cos = jnp.sin
    assert jnp.cos is jnp.sin is jnp.sin_of_ours and olympus.numpy.cos is before
    jax.numpy.cos = before


def case_programs_answer_to_both_spellings():
    closed = jax.make_jaxpr(lambda x: lax.scan(lambda c, a: (c + a, c), 0., x))(jnp.ones(3))
    eqn, = closed.jaxpr.eqns
    assert closed.jaxpr is closed.olympuspr
    params = eqn.params
    assert params["jaxpr"] is params["olympuspr"] is params.get("jaxpr") and "jaxpr" in params
    assert "call_jaxpr" not in params and params.get("call_jaxpr", 3) == 3
    assert "jaxpr=" in str(closed) and "olympuspr" not in str(closed) + repr(params)
    changed, body = params.copy(), params["jaxpr"]
    changed["jaxpr"] = changed.pop("jaxpr")
    for again in (params, dict(params, jaxpr=body), changed, params | {"jaxpr": body}):
        carry, _ = eqn.primitive.bind(0., jnp.ones(3), **again)
        assert carry == 3
    traced = jax.jit(jnp.sin).trace(1.)
    assert traced.jaxpr is traced.olympuspr
    program = closed.replace(jaxpr=closed.jaxpr)
    assert jax.core.jaxpr_as_fun(program)(jnp.ones(3))[0] == 3


def case_params_of_calls_branches_and_remat():
    inner = jax.jit(lambda x: x + 1)
    call, = jax.make_jaxpr(inner)(1.).eqns
    assert call.params["jaxpr"].in_avals == call.params["jaxpr"].jaxpr.in_avals
    assert call.params["inline"] is False and "inline" not in dict(call.params)
    out, = call.primitive.bind(1., **dict(call.params, inline=True))
    assert out == 2
    remat, = jax.make_jaxpr(jax.checkpoint(lambda x: x + 1))(1.).eqns
    assert isinstance(remat.params["jaxpr"], jax.extend.core.Jaxpr)
    loop, = jax.make_jaxpr(lambda x: lax.while_loop(lambda x: x < 3, lambda x: x + 1, x))(1.).eqns
    assert len(loop.params["cond_jaxpr"].eqns) == len(loop.params["body_jaxpr"].eqns) == 1
    assert call.primitive.call_primitive is False


def case_keywords_in_jax_spelling():
    closed = jax.make_jaxpr(jnp.sin)(1.)
    assert jax.core.check_jaxpr(jaxpr=closed.jaxpr) is None
    assert [*jax.extend.core.subjaxprs(jaxpr=closed.jaxpr)] == []


def case_messages_name_their_page_and_lie_in_lines():
    try:
        jax.jit(lambda x: 1 if x > 0 else 2)(1.0)
    except jax.errors.TracerBoolConversionError as error:
        text = str(error)
    assert text.endswith("  See docs/errors/TracerBoolConversionError.md"), text
    assert "jax.lax.cond" in text and max(map(len, text.splitlines())) <= 100, text


def case_errors_say_jax():
    def traced():
        jax.jit(lambda x: 1 if x else 2)(1.)
    raises(jax.errors.TracerBoolConversionError, traced, "jax.numpy.where", "jax.lax.cond")
    error = raises(AttributeError, lambda: jax.config.update("jax_enable_x6", True),
                   "jax_enable_x64")
    assert "olympus" not in str(error)
    # The error of a function without an API boundary, which the program catches.
    raises(TypeError, lambda: jnp.asarray([1, object()]), "jax.numpy.asarray")


def case_foreign_arrays():
    class Two:
        def __jax_array__(self):
            return jnp.full(2, 2.)
    for found in (jnp.sin(Two()), jax.jit(jnp.sin)(Two()), lax.sin(Two())):
        np.testing.assert_allclose(found, np.sin([2, 2]), rtol=1e-6)
    np.testing.assert_array_equal(jnp.ones(2) * Two(), [2, 2])
    assert jnp.asarray(Two()).shape == jnp.array([Two()])[0].shape == (2,)
    assert jax.typeof(Two()).shape == (2,)

    class Cell:     # as TensorFlow Probability enters its variables
        def __array__(self, dtype=None, copy=None):
            return np.ones(2, np.float32)
    jax.core.pytype_aval_mappings[Cell] = jax.core.pytype_aval_mappings[np.ndarray]
    np.testing.assert_array_equal(lax.add(Cell(), Cell()), [2, 2])


def case_options_and_variables():
    assert jax.config.jax_enable_x64 is True        # JAX_ENABLE_X64
    assert jax.config.read("jax_numpy_rank_promotion") == "raise"   # OLYMPUS_… holds over JAX_…
    jax.config.update("jax_enable_x64", 0)
    assert jax.config.values["jax_enable_x64"] is False and jnp.ones(1).dtype == "float32"
    assert "jax_enable_x64" in dir(jax.config) and "jax_enable_x64 = False" in repr(jax.config)
    assert jax._src.config.config is jax.config


def case_options_on_the_command_line_of_absl():
    """By a stand-in for absl, with the names that are used."""
    class Flags(dict):
        def __call__(self, arguments, known_only):
            for argument in arguments[1:]:
                name, _, text = argument.removeprefix("--").partition("=")
                if name in self:
                    self[name].value = text or True

    def define(name, default, text):
        flags.FLAGS[name] = types.SimpleNamespace(value=default, text=text)
    flags = types.SimpleNamespace(FLAGS=Flags(), DEFINE_bool=define, DEFINE_string=define)
    later = []
    sys.modules |= {"absl.flags": flags, "absl.app": types.SimpleNamespace(
        call_after_init=later.append)}
    before, sys.argv = sys.argv, ["program", "--jax_debug_nans", "--jax_random_seed_offset=7"]
    jax.config.parse_flags_with_absl()
    assert jax.config.jax_debug_nans and jax.config.jax_random_seed_offset == 7
    assert jax.config.x64_enabled is jax.config.jax_enable_x64
    jax.config.update("jax_debug_nans", False)
    jax.config.update("jax_random_seed_offset", 0)
    flags.FLAGS["jax_debug_nans"].value = None
    flags.FLAGS["jax_random_seed_offset"].value = None
    later[0]()
    assert not jax.config.jax_debug_nans
    sys.argv = before


def case_every_adapter_has_what_it_lists():
    assert len(adapters.ROWS) > 40
    for below, adapter in adapters.ROWS.items():
        module = importlib.import_module(f"jax.{below}".rstrip("."))
        for listed, home, ours in adapter.places():
            own = importlib.import_module(f"olympus._src.{home}")
            assert getattr(module, listed) is getattr(own, ours), (below, listed)
        for listed in adapter.stand_ins.split():
            assert getattr(module, listed) is getattr(module, listed), (below, listed)
            assert isinstance(getattr(module, listed), StandIn), (below, listed)


def case_private_names_that_act():
    from jax._src import core, distributed, traceback_util, tree_util, xla_bridge
    from jax._src.flatten_util import ravel_pytree
    assert core.trace_state_clean() and ravel_pytree is jax.flatten_util.ravel_pytree
    jax.vmap(lambda x: x if not core.trace_state_clean() else 1 / 0)(jnp.ones(1))
    assert list in tree_util._registry and int not in tree_util._registry
    assert distributed.global_state.process_id == 0 and distributed.global_state.client is None
    assert "cpu" in xla_bridge._backends
    from jax._src.ad_util import stop_gradient_p
    assert stop_gradient_p is olympus.lax.stop_gradient_p
    from jax._src.dtypes import supports_inf
    assert supports_inf(jnp.float32) and not supports_inf(jnp.float8_e4m3fn)
    from jax._src.numpy.util import promote_dtypes_complex
    assert [x.dtype.name for x in promote_dtypes_complex(1, jnp.ones(2, jnp.float32))] == [
        "complex64"] * 2
    from jax._src.api_util import infer_argnums_and_argnames
    arguments = inspect.signature(lambda x, y, *, z: x)
    assert infer_argnums_and_argnames(arguments, 1, None) == ((1,), ("y",))
    assert infer_argnums_and_argnames(arguments, None, ["z", "x"]) == ((0,), ("z", "x"))
    assert infer_argnums_and_argnames(arguments, None, None) == ((), ())
    scope = {"jit": jax.jit}
    exec(compile("def helper(f, x):\n    return f(x)", "/elsewhere/helper.py", "exec"), scope)
    hidden = traceback_util.api_boundary(lambda x: scope["helper"](jax.jit(lambda x: x[3, 3]), x))
    files = lambda: {f.filename for f in traceback.extract_tb(raises(
        IndexError, lambda: hidden(jnp.ones(3))).__traceback__)}
    assert "/elsewhere/helper.py" in files()
    traceback_util.register_exclusion("/elsewhere")
    assert "/elsewhere/helper.py" not in files()


def case_nodes_of_pytrees_are_taken_apart_and_made_as_jaxlie_does():
    registry = importlib.import_module("jax._src.tree_util")._registry

    @jax.tree_util.register_dataclass
    @dataclasses.dataclass
    class Pose:
        turn: object
        name: str = dataclasses.field(default="", metadata={"static": True})

    for tree in ((1, [2]), [3, (4,)], {"b": 5, "a": [6]}, Pose([7], "p"), None,
                 collections.OrderedDict(b=8, a=9), jax.tree_util.Partial(max, 10)):
        node = registry[type(tree)]
        children, aux = node.to_iter(tree)
        made = node.from_iter(aux, list(children))
        assert type(made) is type(tree) and jax.tree.structure(made) == jax.tree.structure(tree)
        assert jax.tree.leaves(made) == jax.tree.leaves(tree)
    raises(KeyError, lambda: registry[int])


def case_places_of_equations_and_of_errors_as_jaxls_reads_them():
    from jax._src import source_info_util, traceback_util
    eqn, = jax.make_jaxpr(lambda x: jnp.sin(
        x))(1.).eqns
    frame = source_info_util.user_frame(eqn.source_info)
    line = source_info_util.user_frame(eqn.source_info.traceback)._replace(start_line=0)
    assert frame.file_name == __file__ and frame._replace(start_line=0) == line
    assert frame.end_line == frame.start_line + 1 and "<lambda>" in frame.function_name
    assert source_info_util.user_frame(None) is None
    error = raises(ZeroDivisionError, lambda: jax.tree.map(lambda x: 1 / x, 0))
    shown = traceback.extract_tb(traceback_util.filter_traceback(error.__traceback__))
    assert len(shown) >= 3 and {entry.filename for entry in shown} == {__file__}


def case_programs_are_made_of_their_parts_as_kfac_does():
    closed = jax.make_jaxpr(lambda x: x + 1)(1.)
    info = closed.jaxpr.debug_info
    assert (info.traced_for, info.func_src_info.split()[0]) == ("jit", "<lambda>")
    named = jax.extend.core.DebugInfo(info.traced_for, "g", info.arg_names, ("result",))
    made = jax.extend.core.ClosedJaxpr(jaxpr=closed.jaxpr.replace(debug_info=named), consts=())
    assert made.jaxpr.debug_info.func_name == "g" and jax.core.jaxpr_as_fun(made)(1.) == [2.]


class Labelled:
    def __init__(self, name, rows):
        self.name, self.rows = name, rows


def case_vmap_maps_a_class_by_its_own_functions_as_mujoco_registers_one():
    from jax._src.interpreters.batching import is_vmappable
    from jax.interpreters import batching
    assert not is_vmappable(jnp.ones(2)) and not is_vmappable([1])
    x, y = Labelled("x", jnp.arange(6.).reshape(2, 3)), jnp.array([1., 2.])
    raises(TypeError, lambda: jax.vmap(lambda x: x.rows)(x))
    batching.register_vmappable(
        Labelled, int, int, lambda cont, _, x, axis: Labelled(x.name, cont(x.rows, axis)),
        lambda cont, n, x, axis: Labelled(f"{x.name}{n}", cont(n, x.rows, axis)), None)
    try:
        assert is_vmappable(x)
        out = jax.vmap(lambda x, y, k: {"a": Labelled(x.name, x.rows * y), "b": y + k},
                       out_axes={"a": 1, "b": 0})(x, y, k=y)
        assert out["a"].name == "x2" and out["b"].tolist() == [2, 4]
        assert out["a"].rows.tolist() == [[0, 6], [1, 8], [2, 10]]
        nested = jax.vmap(jax.vmap(lambda y, x: Labelled("z", y + x.rows), (0, 1)), (0, None))
        assert nested(jnp.ones((4, 3)), x).rows.shape == (4, 3, 2)
        jitted = jax.jit(jax.vmap(jax.grad(lambda y: Labelled("z", y ** 2).rows)))
        assert jitted(y).tolist() == [2, 4]
        raises(ValueError, lambda: jax.vmap(lambda x, y: y)(x, jnp.ones(3)))
    finally:
        batching.unregister_vmappable(Labelled)
    raises(TypeError, lambda: jax.vmap(lambda x: x.rows)(x))


def case_autoray_and_opt_einsum_take_traced_values_for_those_of_jax():
    import opt_einsum
    seen = []

    def f(x):
        seen.append(type(x).__module__.split(".")[0])
        assert jax.core.is_concrete(x) == (len(seen) == 1) and jax.core.is_constant_dim(len(x))
        return opt_einsum.contract("i,ij,j->", x, jnp.ones((2, 2)), x)

    x = jnp.arange(2.)
    assert jax.grad(f)(x).tolist() == [2, 2] and jax.jit(f)(x) == 1
    assert jax.vmap(f)(x[None]).tolist() == [1] and seen == ["jax"] * 3
    assert jax.lib.__version__ == importlib.metadata.version("jaxlib")


def case_pytensor_takes_scan_from_a_private_module():
    from jax._src.lax.control_flow import scan
    assert scan is jax.lax.scan


def case_keywords_have_the_names_of_0_10_2():
    assert jax.make_mesh(axis_shapes=(1,), axis_names=("a",)).axis_names == ("a",)
    assert jax.make_mesh(axis_sizes=(1,), axis_names=("a",)).axis_names == ("a",)
    jax.config.update(name="jax_enable_x64", val=jax.config.jax_enable_x64)


def case_compilations_can_be_refused_as_chex_does():
    from jax._src import compiler
    inner, asked = compiler.backend_compile_and_load, []

    def wrapper(backend, *args, **options):
        asked.append(backend.platform)
        if len(asked) == 1:
            raise RuntimeError("forbidden")
        return inner(backend, *args, **options)
    compiler.backend_compile_and_load = wrapper
    run = jax.jit(lambda x: x * 3.25 + 1.125)
    raises(RuntimeError, lambda: run(1.), "forbidden")
    assert float(run(1.)) == 4.375 and asked == ["cpu"] * 2
    compiler.backend_compile_and_load = inner


def case_stand_ins():
    from jax.experimental.pallas import PipelineMode
    assert not isinstance(jnp.ones(1), PipelineMode) and isinstance(1, int | PipelineMode)
    for use in (lambda: PipelineMode(1), lambda: PipelineMode.of(1)):
        raises(NotImplementedError, use, "planned", "as_jax_cases.py", "docs/coming_from_jax.md")


def case_sparse_arrays_and_references_are_ours():
    from jax.experimental.sparse import BCOO
    assert (BCOO.fromdense(jnp.eye(2)) @ jnp.ones(2)).tolist() == [1, 1]
    assert isinstance(jax.new_ref(1), jax.Ref) and jax.ref.get(jax.new_ref(2)) == 2


def case_references_are_known_by_their_types():
    from jax._src.state.types import AbstractRef, TransformedRef
    ref = jax.new_ref(jnp.ones(3))
    assert isinstance(jax.typeof(ref), AbstractRef) and isinstance(ref.at[0], TransformedRef)
    assert not isinstance(jax.typeof(ref[...]), AbstractRef)


def case_private_names_of_references_and_types_of_users():
    from jax._src import core, hijax, linear_util
    from jax._src.custom_derivatives import custom_jvp_call_p, custom_vjp_call_p
    from jax._src.state.discharge import run_state_reference
    from jax._src.state.types import shaped_array_ref
    from jax._src.util import safe_map, safe_zip, tuple_insert
    ref = core.new_ref(jnp.ones(3))
    assert isinstance(ref, core.Ref) and jax.typeof(ref) == shaped_array_ref((3,), "float32")
    assert run_state_reference(lambda r: r.set(r[...] * 2))(core.freeze(ref)).tolist() == [2] * 3
    assert issubclass(hijax.HiType, hijax.Ty) and issubclass(core.AvalQDD, tuple)
    assert {custom_jvp_call_p.name, custom_vjp_call_p.name} == {"custom_jvp_call",
                                                                "custom_vjp_call"}
    assert linear_util.wrap_init(abs).call_wrapped(-1) == 1
    assert safe_map(max, [1, 5], [3, 4]) == [3, 5] and safe_zip([1], [2]) == [(1, 2)]
    raises(ValueError, lambda: safe_zip([1], []))
    assert tuple_insert((1, 3), 1, 2) == (1, 2, 3)


def case_a_trace_of_a_users_class_sees_params_by_their_names():
    from jax._src import core, literals
    from jax._src.pjit import jit_p
    from jax._src.random import threefry2x32
    seen = []

    class Trace(core.Trace):
        def process_primitive(self, prim, args, params):
            seen.append((prim, params.keys()))
            return prim.bind(*args, **params)

    def f(x):
        x = jax.jit(lambda x: x + 1)(x)
        x = jax.lax.while_loop(lambda x: x < 3, lambda x: x + 1, x)
        x = jax.lax.cond(x > 2, lambda x: x * 2, lambda x: x, x)
        return jax.lax.scan(lambda x, y: (x + y, y), x, jnp.ones(3))[0]

    with core.set_current_trace(Trace()):
        assert f(1.0) == 9
    params = dict(seen)
    assert {"jaxpr", "inline", "name", "keep_unused"} <= params[jit_p]
    assert params[jax.lax.while_p] == {"cond_jaxpr", "cond_nconsts", "body_jaxpr", "body_nconsts"}
    assert {"jaxpr", "num_consts", "num_carry", "reverse"} <= params[jax.lax.scan_p]
    assert "branches" in params[jax.lax.cond_p] and "olympus" not in repr(params.values())
    assert core.trace_ctx.trace is core.find_top_trace(())
    number = literals.TypedFloat(1.5, np.dtype("float16"))
    assert number == 1.5 and number.dtype == "float16"
    words = threefry2x32.threefry_seed(jnp.asarray(3))
    key = jax.random.key(3)
    assert (words == jax.random.key_data(key)).all()
    assert (threefry2x32.threefry_split(words, (2,)) == jax.random.key_data(
        jax.random.split(key))).all()
    assert (threefry2x32.threefry_random_bits(words, 32, (3,)) == jax.random.bits(key, (3,))).all()


def case_types_of_users():
    from jax.experimental import hijax
    from jax.experimental.hijax import HiPrimitive, VJPHiPrimitive

    class Square(HiPrimitive):      # the older form, by JAX's names
        def abstract_eval(self, x):
            return x, set()

        def to_lojax(self, x):
            return x * x

        def jvp(self, primals, tangents):
            return self.bind(*primals), 2 * primals[0] * tangents[0]

    class Cube(VJPHiPrimitive):
        def __init__(self, aval):
            self.in_avals, self.out_aval, self.params = (aval,), aval, {}
            super().__init__()

        def expand(self, x):
            return x ** 3

        def vjp_fwd(self, nzs, x):
            return self(x), x

        def vjp_bwd_retval(self, x, ct):
            return (3 * x ** 2 * ct,)

    square = Square("square")
    assert float(jax.jit(square.bind)(3.)) == 9. and float(jax.grad(square.bind)(3.)) == 6.
    assert float(jax.jit(jax.grad(lambda x: Cube(jax.typeof(x))(x)))(2.)) == 12.
    hijax.control_flow_allowed_effects.add_type(type(None))


def case_checkify():
    from jax._src.checkify import JaxException
    from jax.experimental import checkify
    checkify.check(True, "fine")
    raises(checkify.JaxRuntimeError, lambda: checkify.check(False, "x is {}", 3), "x is 3")
    error, _ = jax.jit(checkify.checkify(jnp.log, errors=checkify.float_checks))(-1.)
    raises(checkify.JaxRuntimeError, error.throw, "nan generated by primitive: log.")
    assert isinstance(error.get_exception(), JaxException)
    raises(ValueError, lambda: jax.jit(lambda x: checkify.check(x > 0, "no"))(1.), "jax.jit(checks")


def case_names_that_neither_has():
    raises(AttributeError, lambda: jax.make_jaxp, "'jax'", "'make_jaxp'", "'olympus'",
           "'make_olympusp'", "nearest names: make_jaxpr", "as_jax_cases.py")
    raises(AttributeError, lambda: jax.tree_map, "use jax.tree.map")
    raises(ImportError, lambda: importlib.import_module("jax._src.nothing"), "'nothing'")

    def imported():
        from jax.numpy import sinn  # noqa: F401
    raises(ImportError, imported, "'sinn'", "sin")
    assert not hasattr(jnp, "sinn") and not hasattr(jax, "__wrapped__")


def case_what_jax_does():
    x = jnp.arange(3.)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert x[5] == 2 and (x.at[5].set(7.) == x).all()
    assert len(told) == 2 and all("out of bounds" in str(w.message) for w in told)
    assert jnp.histogram(x, 2)[0].dtype == "float32"


def case_errors_of_callbacks_name_their_class():
    def fail(x):
        raise KeyError("lost")
    run = jax.jit(lambda x: jax.pure_callback(fail, x, x))
    raises(jax.errors.JaxRuntimeError, lambda: run(1.).block_until_ready(), "KeyError: 'lost'")


def of_a_child(x):
    return jax.__file__, float(jnp.sin(x))


def case_children():
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawned) as pool:    # raises where the child cannot run
        file, value = pool.submit(of_a_child, 0.).result()
    code = ("import sys, importlib.metadata as m; assert 'olympus' not in sys.modules; "
            "v = m.version('jax'); import jax, siteless; print(jax.__file__, v, siteless.found)")
    (HERE / "sitecustomize.py").write_text("import siteless; siteless.found = True")
    (HERE / "siteless.py").write_text("found = False")
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert value == 0 and shown.stdout.split() == [file, "0.10.2", "True"] == [
        olympus.__file__, "0.10.2", "True"]


def case_values_go_to_processes_without_the_mode():
    text = pickle.dumps([jnp.sin, jax.sharding.PartitionSpec("x")])
    assert b"jax" not in text.replace(b"jaxlib", b"")


def case_check():
    program = HERE / "program.py"
    program.write_text("import helpers, jax\nfrom jax.numpy import sin, sinn\nimport jax.lax as L\n"
                       "L.add\nL.addd\njax.experimental.pallas.PipelineMode\njax.Array.at\n")
    (HERE / "helpers.py").write_text(
        "import jax\ntry:\n    jax.old\nexcept AttributeError:\n    pass\n"
        "def f(jax):\n    jax.mine\n")
    shown = io.StringIO()
    with redirect_stdout(shown):
        status = check.report([str(program)])
    lines = shown.getvalue().splitlines()
    assert status == 1 and "2 missing, 1 missing where that is expected" in lines[0]
    assert any("jax.lax.addd" in line and "program.py:5" in line for line in lines)
    assert any("jax.old" in line and "helpers.py:3" in line for line in lines)
    assert any("PipelineMode" in line and "kernels" in line for line in lines)
    assert not any("mine" in line or "Array" in line for line in lines)


def main():
    failed = {}
    for name, case in [*globals().items()]:
        if name.startswith("case_"):
            try:
                case()
            except Exception:
                failed[name] = traceback.format_exc()
    print(json.dumps(failed))


if __name__ == "__main__":
    assert os.path.samefile(sys.argv[0], __file__)
    main()
