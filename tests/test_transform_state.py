"""Whatever raises, wherever: the thread's state is what it was before the transformation."""

from __future__ import annotations

import pickle
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from anomaly import state

import olympus
from olympus import checkpoint, custom_jvp, custom_vjp, grad, jit, lax, numpy as onp, vmap
from olympus._src.base.lib import executables
from olympus._src.core.trace import TRACING
from olympus.core import Trace
from olympus.custom_batching import custom_vmap
from olympus.experimental import jet
from olympus.extend.core import Primitive
from olympus.interpreters import ad, batching, mlir
from olympus.sharding import PartitionSpec as P, use_abstract_mesh

X = np.array([0.3, 0.5], np.float32)


class Boom(Exception):
    """What a test raises."""


def works() -> None:
    """Compiling, mapping and differentiating go on."""
    assert jit(lambda a: a + 1)(2.) == 3
    np.testing.assert_array_equal(vmap(grad(lambda a: a * a))(X), 2 * X)


# A function of everything that runs a user's function --------------------------------------------

@custom_jvp
def ruled(x: Any) -> Any:
    return onp.sin(x)


@ruled.defjvp
def _(primals: Any, tangents: Any) -> Any:
    return ruled(primals[0]), onp.cos(primals[0]) * tangents[0]


@custom_vjp
def reverse_ruled(x: Any) -> Any:
    return onp.sin(x)


reverse_ruled.defvjp(lambda x: (onp.sin(x), onp.cos(x)), lambda c, ct: (c * ct,))


@custom_vmap
def map_ruled(x: Any) -> Any:
    return onp.sin(x)


@map_ruled.def_vmap
def _(size: int, mapped: Any, x: Any) -> Any:
    return onp.sin(x), mapped[0]


def everything(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def inner(x: Any) -> Any:
        with olympus.named_scope("named"), olympus.default_matmul_precision("float32"):
            y = lax.cond(x > 0.4, f, lambda x: f(x) * 2, x)
            y = lax.scan(lambda c, _: (f(c), None), y, None, length=2)[0]
            y = lax.fori_loop(0, 2, lambda i, c: f(c), y)
            y = lax.while_loop(lambda c: c < 0, lambda c: f(c) + 1, y, checkpoints=1)
            y = checkpoint(f)(y) + jit(f)(y)
        with olympus.ensure_compile_time_eval():
            z = f(onp.asarray(0.5))
        y = y + z
        return reverse_ruled(ruled(map_ruled(y) * f(y)))

    return inner


WAYS: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "jit": lambda f: jit(lambda x: f(x[0]))(X),
    "grad": lambda f: grad(f)(X[0]),
    "vmap": lambda f: vmap(f, axis_name="i")(X),
    "vmap grad": lambda f: vmap(grad(f), axis_name="i")(X),
    "grad vmap": lambda f: grad(lambda x: vmap(f)(x).sum())(X),
    "jit vmap grad": lambda f: jit(vmap(grad(f)))(X),
    "linearize": lambda f: olympus.vjp(f, X[0])[1](X[0]),
    "jacrev": lambda f: olympus.jacrev(vmap(f))(X),
    "make_olympuspr": lambda f: olympus.make_olympuspr(f, axis_env=[("i", 2)])(X[0]),
    "eval_shape": lambda f: olympus.eval_shape(f, X[0]),
}


@pytest.mark.parametrize("way", WAYS)
def test_an_error_at_any_bind_leaves_no_state(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    left = 0

    def counted(method: Callable[..., Any]) -> Callable[..., Any]:
        def process(*args: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                raise Boom
            return method(*args)
        return process

    for kind in Trace.__subclasses__():
        for each in (kind, *kind.__subclasses__()):
            for name in {"process", "process_custom"} & vars(each).keys():
                monkeypatch.setattr(each, name, counted(vars(each)[name]))
    before, failed, wanted = state(), 0, 1
    while True:
        left = wanted
        try:
            WAYS[way](everything(lambda x: onp.sin(x) * x))
        except Boom:
            failed += 1
            assert state() == before, f"after an error at bind {wanted}"
        else:
            break
        wanted += 1 + wanted // 6
    left = 0
    assert failed > 5
    assert state() == before
    works()


# An operation whose rules raise ------------------------------------------------------------------

def operation(fails: str) -> Callable[[Any], Any]:
    def check(rule: str) -> None:
        if rule == fails:
            raise Boom

    def jvp_rule(primals: Any, tangents: Any) -> Any:
        check("jvp")
        return linear_p.bind(*primals), linear_p.bind(*tangents)

    def abstract(x: Any) -> Any:
        check("abstract")
        return x

    def transpose(ct: Any, x: Any) -> Any:
        check("transpose")
        return [linear_p.bind(ct)]

    def batch(args: Any, dims: Any) -> Any:
        check("vmap")
        return linear_p.bind(*args), dims[0]

    def lower(lowering: Any, x: Any) -> Any:
        check("lower")
        return [x]

    linear_p = Primitive("linear")
    linear_p.def_abstract_eval(abstract)
    ad.primitive_jvps[linear_p] = jvp_rule
    ad.primitive_transposes[linear_p] = transpose
    batching.primitive_batchers[linear_p] = batch
    mlir.register_lowering(linear_p, lower)
    return lambda x: linear_p.bind(x)


REACHED = {"abstract": WAYS.keys(), "lower": WAYS.keys() - {"make_olympuspr", "eval_shape"},
           "vmap": {w for w in WAYS if "vmap" in w or w == "jacrev"},
           "jvp": {w for w in WAYS if "grad" in w or w in ("linearize", "jacrev")}}
REACHED["transpose"] = REACHED["jvp"]


@pytest.mark.parametrize("rule", REACHED)
def test_an_error_in_a_rule_leaves_no_state(rule: str) -> None:
    before = state()
    for way in REACHED[rule]:
        with pytest.raises(Boom):
            WAYS[way](everything(operation(rule)))
        assert state() == before, way
    works()


@pytest.mark.parametrize("wrap", [jit, grad, lambda f: lambda x: vmap(f)(onp.stack([x]))])
def test_traced_values_are_not_pickled(wrap: Callable) -> None:
    def refused(x: Any) -> Any:
        with pytest.raises(olympus.errors.ConcretizationTypeError, match="pickle: a traced value"):
            pickle.dumps({"x": x})
        assert "~" not in repr(x) or x.weak_type
        return x

    wrap(refused)(X[0])
    if wrap in (jit, grad):
        wrap(refused)(1.0)


@pytest.mark.parametrize("call", [
    lambda: vmap(onp.sin, axis_name=[1])(X),
    lambda: vmap(onp.sin, spmd_axis_name=[1])(X),
    lambda: olympus.make_olympuspr(onp.sin, axis_env=[([1], 2)])(X),
    lambda: grad(lambda x: x.nothing)(1.0),
    lambda: jit(lambda x: vmap(lambda y: onp.dot(y, X), axis_name="i")(onp.ones((2, 3))))(X),
], ids=["vmap", "spmd", "make_olympuspr", "grad", "jit vmap"])
def test_an_error_on_the_way_in_leaves_no_state(call: Callable[[], Any]) -> None:
    before = state()
    with pytest.raises((TypeError, AttributeError, ValueError)):
        call()
    assert state() == before
    works()


@pytest.mark.parametrize("transform", [grad, vmap, jit, lambda f: grad(grad(f)),
                                       lambda f: jit(grad(f))])
def test_tracing_goes_on_after_the_rules_of_bodies(transform: Callable[..., Any]) -> None:
    """C++ runs a jitted function by itself unless it is told that something traces."""
    seen: list[bool] = []

    def fun(x: Any) -> Any:
        for _ in range(2):
            x = lax.scan(lambda c, _: (onp.sin(c), None), x, None, length=2)[0]
            seen.append(TRACING.value)
        return onp.sum(x)

    transform(fun)(X if transform is vmap else X[0])
    assert all(seen) and seen and not TRACING.value


# Ctrl-C: Python raises KeyboardInterrupt where a function is entered and where C code has returned.

X3 = np.arange(3.0, dtype=np.float32)
INTERRUPTED = {
    "jit": lambda: olympus.jit(lambda x: onp.sin(x) * 2.5)(X3),
    "grad": lambda: grad(lambda x: (onp.sin(x) * 2.5).sum())(X3),
    "vmap": lambda: olympus.vmap(lambda x: onp.sin(x) * 2.5, axis_name="i")(X3),
    "scan": lambda: lax.scan(lambda c, x: (c + x * 2.5, c), 0.0, X3)[0],
    "jit, grad, vmap, cond": lambda: olympus.jit(grad(lambda x: olympus.vmap(
        lambda a: lax.cond(a > 1, onp.sin, onp.cos, a))(x).sum()))(X3),
    "checkpoint": lambda: grad(olympus.checkpoint(lambda x: (onp.sin(x) * 2.5).sum()))(X3),
}


def interrupted(call, at):
    """Whether `call` was interrupted at the event of that number, and where."""
    count, where = 0, ""

    def profile(frame, event, arg):
        nonlocal count, where
        # What a generator raises while it is closed is only printed, and what the collector's
        # callbacks raise.
        if event in ("call", "c_return") and "olympus" in frame.f_code.co_filename and (
                frame.f_code.co_name not in ("<genexpr>", "_after_collection")):
            count += 1
            if count == at:
                where = f"{event} {frame.f_code.co_filename}:{frame.f_lineno}"
                sys.setprofile(None)
                raise KeyboardInterrupt

    sys.setprofile(profile)
    try:
        call()
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
    return where


@pytest.mark.parametrize("call", INTERRUPTED.values(), ids=INTERRUPTED)
def test_an_interrupt_anywhere_leaves_the_state_as_it_was(call):
    expected, before, at, seen = np.asarray(call()), state(), 1, 0
    while where := interrupted(call, at):
        assert state() == before, where
        at, seen = at + 7 + at // 25, seen + 1
        if seen % 8 == 0:
            np.testing.assert_array_equal(call(), expected, where)
    assert seen > 10
    np.testing.assert_array_equal(call(), expected)


def test_an_interrupt_where_a_mesh_is_left_does_not_leave_it_current(monkeypatch):
    fun = olympus.jit(olympus.shard_map(lambda x: x * 2, mesh=olympus.make_mesh((1,), ("i",)),
                                        in_specs=P("i"), out_specs=P("i")))
    before = state()

    def interrupt(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(use_abstract_mesh, "__exit__", interrupt)
        fun(X3)
    assert state() == before
    np.testing.assert_array_equal(fun(X3), X3 * 2)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs POSIX signals")
def test_what_compiles_when_an_interrupt_comes_is_waited_for_at_exit(request):
    # A shell's background jobs ignore SIGINT.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    entered, caught, go, ended = threading.Event(), threading.Event(), threading.Event(), []

    def compile_():
        entered.set()
        go.wait()
        ended.append(threading.current_thread())

    def interrupt():
        entered.wait()
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        while not caught.wait(20):      # Python misses one that comes just before it waits
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        executables._to_the_end(compile_)
    caught.set()
    left = [t for t in threading.enumerate() if t.name == "olympus-compile"]
    assert [t.daemon for t in left] == [False]
    go.set()
    left[0].join()
    assert ended == left
    assert executables._to_the_end(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        executables._to_the_end(lambda: 1 // 0)


def test_tracers_have_the_public_names_of_arrays():
    """`hasattr` gives the same answers under a transformation; was: six names more, and others."""
    array, seen = onp.ones(3), {}

    def look(x):
        name = type(x).__name__
        seen[name] = {n for n in dir(x) if n[0] != "_"} - set(dir(array))
        if name == "JitTracer":
            assert repr(x) == "JitTracer(float32[3])"       # what the type is called, too
        return x

    mesh = olympus.make_mesh((1,), ("x",))
    with olympus.disable_jit():
        olympus.shard_map(look, mesh=mesh, in_specs=P(), out_specs=P())(array)
    olympus.jit(look)(array)
    olympus.vmap(look)(array[None])
    olympus.jvp(look, (array,), (array,))
    olympus.grad(lambda x: look(x).sum())(array)
    jet.jet(look, (array,), ((array,),))
    olympus.debug.find_nan(look, array)
    assert {k for k, more in seen.items() if more} == set(), seen
    assert {"JitTracer", "BatchTracer", "JVPTracer", "JetTracer", "WatchTracer",
            "ManualTracer"} <= set(seen)
