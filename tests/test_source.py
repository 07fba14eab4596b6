"""User frames, their formatting, and traceback filtering; the pretty printer; error classes."""

import gc
import re
import traceback
import types
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import errors as public, lax
from olympus._src.base import errors, pretty, source, typing


def internal(code, **names):
    """Compile functions as if they were in the package: their frames count as ours."""
    module = dict(names)
    exec(compile(code, source._PACKAGE + "_src/imaginary.py", "exec"), module)
    return module


LIBRARY = internal("""
def op(): return user_frame()
def deep(n): return deep(n - 1) if n else user_frame()
def fail(): raise ValueError("bad")
def call(f): return f()
def verb(f):
    try:
        return call(f)
    except Exception as error:
        filter_traceback(error)
        raise
""", user_frame=source.user_frame, filter_traceback=source.filter_traceback)


@pytest.fixture
def filtering(monkeypatch):
    def set_mode(mode):
        monkeypatch.setattr(source, "config", SimpleNamespace(
            traceback_filtering=SimpleNamespace(value=mode)))
    return set_mode


def test_user_frame_is_the_innermost_outside_the_package():
    for found in (LIBRARY["op"](), LIBRARY["deep"](20), LIBRARY["call"](LIBRARY["op"])):
        code, lasti = found
        assert isinstance(code, types.CodeType) and type(lasti) is int
        assert code is test_user_frame_is_the_innermost_outside_the_package.__code__


def test_location_names_line_column_and_function():
    found = LIBRARY["op"]()
    where = source.location(found)
    assert where.line == source.location(found).line and where.column == 12
    assert source.source_line(found) == 'found = LIBRARY["op"]()'
    text = source.format_source(found)
    assert text.endswith(f"test_source.py:{where.line}:12 ({where.function})")
    assert source.summarize(found) == f'{text}: found = LIBRARY["op"]()'
    assert source.format_source(None) == source.summarize(None) == "<unknown>"


def test_source_of_a_lambda_keeps_no_values_alive():
    class Thing:
        pass

    def make():
        thing = Thing()
        return LIBRARY["op"](), weakref.ref(thing)
    found, ref = make()
    gc.collect()
    assert ref() is None and found is not None


def test_a_program_whose_current_folder_was_deleted(monkeypatch):
    def fail():
        raise FileNotFoundError(2, "No such file or directory")

    program = {"olympus": olympus, "onp": onp}
    for line in ("f = olympus.jit(lambda x: onp.sin(x) + 1)", "def g(x): return 1 if x > 0 else 0"):
        exec(compile(line, "in_a_deleted_folder", "exec"), program)
    monkeypatch.setattr("os.getcwd", fail)
    assert program["f"](0.) == 1
    with pytest.raises(public.TracerBoolConversionError, match="in_a_deleted_folder:1"):
        olympus.jit(program["g"])(0.)


def test_source_without_a_file():
    module = {"op": LIBRARY["op"]}
    exec(compile("found = op()", "<generated>", "exec"), module)
    assert source.summarize(module["found"]) == "<generated>:1:8 (<module>)"


def frames_of(error):
    return [entry.name for entry in traceback.extract_tb(error.__traceback__)]


def raised_by(f):
    with pytest.raises(ValueError, match="bad") as info:
        LIBRARY["verb"](f)
    return info.value


def user_function():
    return LIBRARY["fail"]()


def test_parameters_of_a_module_are_located_by_their_names_alone():
    def fun(x, *rest, **named):
        return x["a"] + rest[1] + named["w"]

    text = olympus.jit(fun).lower({"a": 1.}, 2., 3., w=4.).as_text(debug_info=True)
    main = next(line for line in text.splitlines() if "func public" in line)
    assert re.findall(r'loc\("([^"]*)"\)', main) == ["x['a']", "rest[1]", "named['w']"]


def test_filtering_leaves_the_users_frames(filtering):
    filtering("remove_frames")
    assert frames_of(raised_by(user_function)) == ["raised_by", "user_function"]


def test_filtering_quietly_says_so_once(filtering):
    filtering("quiet_remove_frames")
    error = raised_by(user_function)
    assert frames_of(error) == ["raised_by", "user_function"]
    source.filter_traceback(error)
    assert len([note for note in error.__notes__ if "removed its internal frames" in note]) == 1


def failing(*_):
    raise ValueError("bad")


@pytest.mark.parametrize("call", [
    lambda: lax.scan(failing, 0., onp.ones(3)),
    lambda: lax.while_loop(lambda x: x < 3, failing, 0),
    lambda: lax.fori_loop(0, 3, failing, 0.),
    lambda: lax.map(failing, onp.ones(3)),
    lambda: lax.cond(True, failing, failing),
    lambda: lax.switch(1, [failing, failing]),
    lambda: lax.associative_scan(failing, onp.ones(3)),
    lambda: lax.custom_root(failing, 0., failing, failing),
    lambda: lax.custom_linear_solve(failing, 0., failing),
    lambda: lax.platform_dependent(1., default=failing),
    lambda: lax.reduce_window(onp.ones(3), 0., failing, (2,), (1,), "VALID"),
], ids=["scan", "while_loop", "fori_loop", "map", "cond", "switch", "associative_scan",
        "custom_root", "custom_linear_solve", "platform_dependent", "reduce_window"])
def test_an_error_of_a_function_given_to_a_loop_comes_without_internal_frames(filtering, call):
    filtering("auto")
    with pytest.raises(ValueError, match="bad") as info:
        call()
    assert set(frames_of(info.value)) == {
        "test_an_error_of_a_function_given_to_a_loop_comes_without_internal_frames", "<lambda>",
        "failing"}


def test_filtering_off(filtering):
    filtering("off")
    assert frames_of(raised_by(user_function)) == [
        "raised_by", "verb", "call", "user_function", "fail"]


def test_filtering_marks_frames_for_ipython(filtering):
    filtering("tracebackhide")
    error = raised_by(user_function)
    assert "fail" in frames_of(error)
    entry = error.__traceback__
    while entry.tb_next is not None:
        entry = entry.tb_next
    assert entry.tb_frame.f_locals["__tracebackhide__"] is True


def test_filtering_reaches_causes_and_stops_at_cycles(filtering):
    filtering("auto")

    def user():
        try:
            LIBRARY["fail"]()
        except ValueError as error:
            raise ValueError("bad") from error
    error = raised_by(user)
    assert frames_of(error.__cause__) == ["user"]
    error.__cause__.__cause__ = error
    source.filter_traceback(error)


def test_api_boundary(filtering):
    filtering("auto")

    def verb(x, *, y=0):
        """A verb."""
        return x + y
    wrapped = source.api_boundary(verb)
    assert wrapped(1, y=2) == 3 and wrapped.__doc__ == "A verb." and wrapped.__wrapped__ is verb
    with pytest.raises(ValueError, match="bad") as info:
        source.api_boundary(user_function)()
    assert "fail" not in frames_of(info.value)


def test_error_classes_are_public_and_name_their_public_home():
    for name in public.__all__:
        cls = getattr(public, name)
        assert issubclass(cls, Exception)
        if cls is not public.OlympusRuntimeError:
            assert (cls.__module__, cls.__name__) == ("olympus.errors", name)
    assert issubclass(errors.TracerBoolConversionError, errors.ConcretizationTypeError)
    assert issubclass(errors.ConcretizationTypeError, errors.OlympusTypeError)
    assert issubclass(errors.NonConcreteBooleanIndexError, IndexError)
    assert issubclass(errors.LeakError, errors.UnexpectedTracerError)
    assert str(errors.ConcretizationTypeError("what", "where")) == (
        "what\nwhere\n  See docs/errors/ConcretizationTypeError.md")
    assert errors.said(errors.TracerArrayConversionError("what")) == "what"


def test_runtime_errors_are_subclasses_of_the_runtimes_own():
    assert issubclass(errors.DonatedArgumentError, public.OlympusRuntimeError)
    assert issubclass(public.OlympusRuntimeError, RuntimeError)


def test_pretty_breaks_a_group_only_if_it_must():
    words = pretty.join(pretty.brk(), map(pretty.text, ("alpha", "beta", "gamma")))
    doc = pretty.group(pretty.concat([pretty.text("f("), pretty.nest(2, words),
                                      pretty.text(")")]))
    assert pretty.format(doc) == "f(alpha beta gamma)"
    assert pretty.format(doc, width=10) == "f(alpha\n  beta\n  gamma)"
    noted = pretty.concat([pretty.annotated(pretty.text("x"), "note"), pretty.brk("")])
    assert "x # note" in pretty.format(noted)


def test_typing():
    assert isinstance(np.ones(2), typing.DuckTypedArray)
    assert isinstance(np.float32(1), typing.ArrayLike) and isinstance(1j, typing.ArrayLike)
    assert not isinstance([1], typing.ArrayLike)


def op_names(fun, *args):
    """The names of operations in the lowered module of `jit(fun)`, without the program's own."""
    text = olympus.jit(fun).lower(*args).as_text(debug_info=True)
    return {name.partition("/")[2] for name in re.findall(r'loc\("(jit\([^"]*)"', text)}


def scaled_sine(x):
    with olympus.named_scope("block"):
        y = onp.sin(x) * x
    return y.sum()


def named(name, fun):
    return olympus.named_scope(name)(fun)


def in_scope(x):
    with olympus.named_scope("outer"):
        return olympus.vmap(olympus.grad(scaled_sine))(x)


@pytest.mark.parametrize("fun, shape, names", [
    (lambda x: olympus.jvp(scaled_sine, (x,), (x,)), (3,),
     {"jvp(block)/sin", "jvp(block)/cos", "jvp()/reduce_sum"}),
    (olympus.grad(scaled_sine), (3,),
     {"jvp(block)/sin", "transpose(jvp(block))/mul", "transpose(jvp())/broadcast_in_dim"}),
    (olympus.vmap(scaled_sine), (2, 3), {"vmap(block)/sin", "vmap()/reduce_sum"}),
    (olympus.vmap(olympus.grad(scaled_sine)), (2, 3), {"vmap(transpose(jvp(block)))/mul"}),
    (olympus.grad(lambda x: olympus.vmap(scaled_sine)(x).sum()), (2, 3),
     {"jvp(vmap(block))/cos", "transpose(jvp(vmap(block)))/mul"}),
    (in_scope, (2, 3), {"outer/vmap(jvp(block))/sin", "outer/vmap(transpose(jvp(block)))/mul"}),
    (olympus.hessian(scaled_sine), (3,), {"jvp(jvp(block))/sin", "vmap(jvp(jvp(block)))/mul"}),
    (lambda x: olympus.linear_transpose(lambda x: 2 * x, x)(x), (3,), {"transpose()/mul"}),
    (olympus.vmap(named("outer", named("inner", onp.sin))), (3,), {"vmap(outer)/inner/sin"}),
    (olympus.vmap(olympus.jit(scaled_sine)), (2, 3), {"vmap(jit(scaled_sine))"}),
    (olympus.grad(named("outer", olympus.jit(scaled_sine))), (3,),
     {"jvp(outer)/jit(scaled_sine)", "transpose(jvp(outer))/jit(scaled_sine)"}),
    (named("outer", lambda x: lax.while_loop(named("test", lambda x: x < 5),
                                             named("step", lambda x: x + 1), x)), (),
     {"outer/while/cond/test/lt", "outer/while/body/step/add"}),
    (named("outer", lambda x: lax.cond(x > 0, named("yes", onp.sin), onp.cos, x)), (),
     {"outer/cond/branch_1_fun/yes/sin", "outer/cond/branch_0_fun/cos"}),
    (olympus.grad(lambda x: lax.scan(named("step", lambda c, _: (onp.sin(c), None)), x, None, 2)[0]
                  ), (), {"jvp()/while/body/step/sin", "transpose(jvp())/while/body/step/mul"}),
    (olympus.checkpoint(onp.sin), (), {"checkpoint/sin"}),
    (olympus.grad(olympus.checkpoint(onp.sin)), (),
     {"transpose(jvp())/checkpoint/rematted_computation"}),
], ids=["jvp", "grad", "vmap", "vmap of grad", "grad of vmap", "in a scope", "hessian",
        "linear_transpose", "scopes in vmap", "vmap of jit", "grad of jit", "while", "cond",
        "grad of scan", "checkpoint", "grad of checkpoint"])
def test_op_names_say_the_transformations(fun, shape, names):
    assert names <= op_names(fun, onp.ones(shape))


def test_the_names_of_a_jitted_function_stay_in_its_transpose():
    fun = named("outer", olympus.jit(scaled_sine))
    outer = olympus.make_olympuspr(olympus.grad(fun))(onp.ones(3))
    assert [str(e.source_info.name_stack) for e in outer.eqns] == [
        "jvp(outer)", "transpose(jvp(outer))"]
    for eqn in outer.eqns:
        assert "block" in {str(e.source_info.name_stack) for e in eqn.params["olympuspr"].eqns}


def test_the_text_of_hlo_has_names_on_demand():
    lowered = olympus.jit(scaled_sine).lower(onp.ones(3))
    assert 'op_name="jit(scaled_sine)/block/sin"' in lowered.as_text("hlo", debug_info=True)
    assert "op_name" not in lowered.as_text("hlo")


def test_a_scope_called_like_a_transformation_is_a_scope():
    def f(x):
        with olympus.named_scope("jvp"):
            return onp.sin(x)

    assert "jvp/sin" in op_names(f, 1.0) and "jvp(jvp)/cos" in op_names(olympus.grad(f), 1.0)


@pytest.mark.parametrize("static, call", [
    (True, lambda f: olympus.jit(f)(1.0)), (True, lambda f: olympus.jit(olympus.grad(f))(1.0)),
    (True, lambda f: olympus.checkpoint(f)(1.0)), (True, lambda f: olympus.make_olympuspr(f)(1.0)),
    (False, lambda f: olympus.vmap(f)(onp.ones(2))),
    (False, lambda f: onp.vectorize(f)(onp.ones(2))),
    (False, lambda f: lax.scan(lambda c, _: (f(c), None), 1.0, None, 2)),
    (False, lambda f: lax.cond(True, f, f, 1.0)), (False, lambda f: lax.map(f, onp.ones(2))),
    (False, lambda f: lax.while_loop(lambda c: c < 2, f, 1.0)),
    (False, lambda f: olympus.eval_shape(f, 1.0)),
], ids=["jit", "grad in jit", "checkpoint", "make_olympuspr", "vmap", "vectorize", "scan", "cond",
        "map", "while", "eval_shape"])
def test_static_arguments_are_advised_where_there_are_any(static, call):
    for f in (lambda x: 1.0 if x > 0 else x, lambda x: onp.zeros(x.astype(int)).sum()):
        with pytest.raises(TypeError) as told:
            call(f)
        assert ("mark the argument static" in str(told.value)) is static


def test_what_users_see_has_public_names():
    """`hasattr(x, "name")` told whether a function is jitted; messages spoke of private classes."""
    seen = []

    def f(x):
        seen.append({name for name in ("name", "known", "bound", "origin") if hasattr(x, name)})
        return x

    for transform in (olympus.jit, olympus.grad, lambda f: lambda x: olympus.vmap(f)(x[None])[0]):
        transform(f)(onp.float32(1.0))
    assert seen == [set()] * 3
    for error in (errors.ShardingTypeError, errors.RuleMissingError, errors.DonatedArgumentError):
        assert error.__module__ == "olympus.errors"
    traced = olympus.jit(lambda x: x * 2).trace(1.0)
    assert str(traced) == "Traced(<lambda>: f32[] -> f32[], 1 equation)"
    assert str(traced.lower().compile()).startswith("Compiled(<lambda>: f32[] -> f32[], cpu")


def test_a_derived_program_has_the_lines_of_its_own_functions():
    @olympus.custom_jvp
    def cube(x):
        return x ** 3

    cube.defjvp(lambda primals, tangents: (cube(*primals), 3 * tangents[0]))

    @olympus.jit
    def inner(x):
        return onp.sin(cube(onp.cos(x))) * 2

    call, = olympus.make_olympuspr(lambda x: olympus.vmap(inner)(x))(onp.ones(3)).eqns
    eqns = call.params["olympuspr"].eqns
    assert [e.primitive.name for e in eqns] == ["cos", "custom_jvp_call", "sin", "mul"]
    assert {e.source[0].co_name for e in eqns} == {"inner"}
    body = eqns[1].params["call_olympuspr"].eqns
    assert {e.source[0].co_name for e in body} == {"cube"}
