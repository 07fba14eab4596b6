"""`jit`: what is traced and compiled, how often, what is kept, and every option."""

import concurrent.futures
import copy
import functools
import gc
import importlib
import inspect
import logging
import math
import operator
import os
import pickle
import re
import subprocess
import sys
import threading
import weakref
from typing import Any, NamedTuple

import numpy as np
import pytest

import olympus
import olympus.numpy as jnp
from olympus import jit, lax
from olympus._src.base import lib
from olympus._src.control import remat
from olympus._src.jit import arguments
from olympus.errors import DonatedArgumentError
from olympus.extend.core import Olympuspr, Var


@pytest.fixture
def compiles(monkeypatch):
    """The names of the programs compiled so far."""
    names, compile_ = [], lib.compile

    def counted(client, module, *args, **kwargs):
        names.append(re.search(r"@(\S+)", str(module))[1])
        return compile_(client, module, *args, **kwargs)

    monkeypatch.setattr(lib, "compile", counted)
    return names


def counted(fun):
    """`fun`, and a list that gets one entry each time its Python runs."""
    runs = []

    @functools.wraps(fun)
    def wrapper(*args, **kwargs):
        runs.append((args, kwargs))
        return fun(*args, **kwargs)

    return wrapper, runs


# Compiles counted


X = np.arange(6, dtype=np.float32).reshape(2, 3)
INDICES = np.array([1, 0, 1])
MASK = np.array([True, False, True])
EAGER = {
    "add": lambda x: x + x,
    "add scalar": lambda x: x + 2,
    "var": lambda x: jnp.var(x, axis=0),
    "softmax": lambda x: olympus.nn.softmax(x),
    "einsum": lambda x: jnp.einsum("ij,kj->ik", x, x),
    "index int": lambda x: x[1],
    "index slice": lambda x: x[:, 1:],
    "index array": lambda x: x[INDICES],
    "where": lambda x: jnp.where(MASK, x, 0.),
    "sum": lambda x: jnp.sum(x),
}


@pytest.mark.parametrize("name", EAGER)
def test_an_eager_function_is_one_executable(name, compiles, clear_caches):
    x = jnp.asarray(X) + 0
    clear_caches()
    compiles.clear()
    first = EAGER[name](x)
    assert len(compiles) == 1, compiles
    second = EAGER[name](x)
    assert len(compiles) == 1, compiles
    np.testing.assert_array_equal(first, second)


def test_a_jitted_function_compiles_once_per_type(compiles):
    f = jit(lambda x: x * 3.25)
    for x in (jnp.ones(3), jnp.zeros(3), np.ones(3, np.float32)):
        f(x)
    assert len(compiles) == 1 + compiles.count("jit_broadcast_in_dim")
    f(1.)
    f(2.)
    f(np.float32(1.))   # not weak: another program
    # Three programs, and two modules: a weak type is no matter of StableHLO.
    assert len(f.trace(1.).olympuspr.in_avals) == 1
    assert sum("lambda" in name for name in compiles) == 2


def test_equal_programs_compile_once(compiles):
    for _ in range(3):
        jit(lambda x: x * 17.5 - 1)(1.)
    assert sum("lambda" in name for name in compiles) == 1


def test_two_jits_of_one_function_trace_once():
    f, runs = counted(lambda x: x + 1)
    assert float(jit(f)(1.)) == float(jit(f)(1.)) == 2.
    assert len(runs) == 1
    jit(f, keep_unused=True)(1.)
    assert len(runs) == 2


CALLS = {
    "positional": (lambda x, y: x + y, {}, (1., 2.), {}),
    "keyword": (lambda x, y: x + y, {}, (1.,), {"y": 2.}),
    "static": (lambda x, n: x * n, {"static_argnums": 1}, (1., 3), {}),
    "static name": (lambda x, n: x * n, {"static_argnames": "n"}, (1.,), {"n": 3}),
    "dict": (lambda d: d["a"] + d["b"], {}, ({"a": 1., "b": 2.},), {}),
    "numpy": (lambda x: x + 1, {}, (X,), {}),
    "array": (lambda x: x + 1, {}, (jnp.ones(3),), {}),
    "tuple result": (lambda x: (x, [x, {"k": x}]), {}, (jnp.ones(3),), {}),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_second_call_enters_no_python(name):
    fun, options, args, kwargs = CALLS[name]
    f = jit(fun, **options)
    f(*args, **kwargs)
    f(*args, **kwargs)
    assert python_calls(f, args, kwargs) == ["_entering"] * (name == "numpy")     # which copies


def test_the_second_donating_call_enters_no_python():
    f = jit(lambda x: x + 1, donate_argnums=0)
    x = f(f(jnp.ones(3)))
    assert python_calls(f, (x,), {}) == []


def python_calls(f, args, kwargs):
    """The Python functions entered by a call."""
    seen = []

    def profile(frame, event, arg):
        if event == "call":
            seen.append(frame.f_code.co_qualname)

    sys.setprofile(profile)
    try:
        f(*args, **kwargs)
    finally:
        sys.setprofile(None)
    return seen


# Nothing kept


class Payload:
    """Something a function closes over, whose life can be watched."""


def use_a_function():
    """Weak references to a jitted function and the arrays it closes over, after its last use."""
    payload, array = Payload(), jnp.arange(1000.) * 2

    def f(x):
        assert payload is not None
        return x + array

    g = jit(f)
    g(jnp.ones(1000))
    olympus.grad(lambda x: g(x).sum())(jnp.ones(1000))
    return [weakref.ref(payload), weakref.ref(f), weakref.ref(array)]


def test_nothing_is_kept_after_del():
    refs = use_a_function()
    gc.collect()
    assert [ref() is None for ref in refs] == [True, True, True]


def test_programs_go_with_their_functions():
    def make(k):
        return jit(lambda x: x * k)

    make(-1.)(2.)
    before = programs()
    for k in range(200):
        make(float(k)).trace(2.)
    assert programs() - before <= 5


def programs():
    """How many programs are alive."""
    gc.collect()
    return sum(type(o) is Olympuspr for o in gc.get_objects())


def test_many_shapes_are_bounded():
    f = jit(lambda x: x + 1)
    before = programs()
    for n in range(5000):
        f.trace(olympus.ShapeDtypeStruct((n,), np.float32))
    assert programs() - before <= 4096


# Static arguments


def test_static_values_that_python_calls_equal_are_distinct():
    f, runs = counted(lambda x, s: (x, jnp.asarray(s), repr(s)) and (jnp.asarray(s),))
    g = jit(f, static_argnums=1)
    out = [g(0., s)[0] for s in (1, True, 1.0, 0.0, -0.0)]
    assert len(runs) == 5
    assert [str(x.dtype) for x in out] == ["int32", "bool", "float32", "float32", "float32"]
    assert np.signbit(out[4]) and not np.signbit(out[3])
    again = [g(0., s)[0] for s in (1, True, 1.0, 0.0, -0.0)]
    assert len(runs) == 5
    assert [str(x) for x in again] == [str(x) for x in out]


def test_static_values_inside_tuples_are_distinct():
    f, runs = counted(lambda x, s: x + jnp.asarray(s[0]))
    g = jit(f, static_argnums=1)
    kinds = [str(g(np.int8(0), (s,)).dtype) for s in (1, True, 1.0)]
    assert len(runs) == 3 and len(set(kinds)) >= 2


class Pair(NamedTuple):
    first: Any
    second: Any


TUPLES = [(1, 2), (1.0, 2), (True, 2), (1, 2.0), (np.int64(1), 2), (np.float32(1), 2), (1 + 0j, 2),
          (0.0, 2), (-0.0, 2), (0, 2), (False, 2), ((1, 2), 2), ((1.0, 2), 2), ((True, 2), 2),
          (((0.0,),), 2), (((-0.0,),), 2), Pair(1, 2), Pair(1.0, 2), Pair(True, 2), (Pair(1, 2), 2),
          (np.dtype("int64"), 2), (int, 2), ("int64", 2), (None, 2), (b"a", 2), ("a", 2),
          ("a", (None, 2)), ("a", (None, 2.0)), (), ((),), (Pair(1, (2.0, "a")), 2)]


@pytest.mark.parametrize("order", [1, -1])
def test_static_tuples_are_told_apart_where_cpp_makes_the_calls(order):
    """Each tuple is one program, in whatever order they come, and C++ finds it."""
    given = TUPLES[::order]
    seen = []
    g = jit(lambda x, s, *, t=(): seen.append((s, t)) or x + len(seen), static_argnums=1,
            static_argnames="t")
    x = jnp.zeros(())
    first = [int(g(x, s)) for s in given]
    assert first == list(range(1, len(given) + 1))
    assert [repr(s) for s, _ in seen] == list(map(repr, given))     # as the user gave it
    assert [type(s) for s, _ in seen] == list(map(type, given))
    few = given[:9]
    named = [int(g(x, "t", t=s)) for s in few]
    for _ in range(3):
        assert [int(g(x, s)) for s in given] == first
        assert [int(g(x, "t", t=s)) for s in few[::-1]] == named[::-1]
    assert len(seen) == len(given) + len(named)


def test_static_tuples_beside_what_cpp_cannot_tell_apart():
    g = jit(lambda x, s, t: x + math.copysign(1, s) * type(t[0])(t[0]), static_argnums=(1, 2))
    for _ in range(3):
        assert [float(g(1.0, s, (2, 3))) for s in (0.0, -0.0)] == [3.0, -1.0]
    assert float(olympus.grad(lambda x: g(x, 0.0, (2, 3)))(1.0)) == 1.0
    with pytest.raises(ValueError, match="Non-hashable static arguments"):
        g(1.0, 1.0, ([1], 2))


def test_threads_that_call_with_a_new_static_tuple_at_once_get_its_program():
    g = jit(lambda x, s: x + s[0], static_argnums=1)
    x = jnp.zeros(())
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for i in range(20):
            given = [(i, 2), (float(i), 2), (i, 2), (i, 2.0)] * 4
            assert list(pool.map(lambda s: float(g(x, s)), given)) == [i] * 16


def test_a_static_nan_is_traced_once():
    f, runs = counted(lambda x, s: x + s)
    g = jit(f, static_argnums=1)
    g(1., float("nan"))
    g(1., float("nan"))
    assert len(runs) == 1


def test_unhashable_static_argument():
    f = jit(lambda x, n: x, static_argnums=1)
    with pytest.raises(ValueError, match=r"(?s)Non-hashable static arguments.*'list'>, \[1\]"):
        f(1., [1])      # found in C++, before any Python
    with pytest.raises(ValueError, match=r"Non-hashable static arguments.*n of <lambda> is \[1\]"):
        f.trace(1., [1])
    with pytest.raises(ValueError, match="Non-hashable static arguments"):
        jit(lambda x, n: x, static_argnames="n").trace(1., n={})


@pytest.mark.parametrize(("options", "error", "message"), [
    ({"static_argnums": 5}, ValueError, r"static_argnums=\(5,\), but only accepts 2"),
    ({"static_argnames": "z"}, ValueError, "invalid argnames {'z'} in static_argnames"),
    ({"donate_argnums": "x"}, TypeError, "donate_argnums='x' given; an int"),
    ({"static_argnames": 3}, TypeError, "static_argnames=3"),
])
def test_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        jit(lambda x, y: x, **options)


def test_negative_and_several_static_argnums():
    f = jit(lambda x, a, b: x * a + b, static_argnums=(-1, 1))
    assert len(f.trace(1., 2, 3).olympuspr.in_avals) == 1
    assert float(f(1., 2, 3)) == 5.


@pytest.mark.parametrize(("numbers", "kinds"), [
    (-1, {1: "s", 2: "ds", 3: "dds"}),
    (-2, {2: "sd", 3: "dsd"}),
    ((-1, 0), {1: "s", 2: "ss", 3: "sds"}),
    ((1, -1), {1: "s", 2: "ds", 3: "dss"}),
])
def test_a_static_argument_counted_from_the_last_of_each_call(numbers, kinds):
    traced = []

    def f(*args):
        traced.append("".join("s" if type(x) is int else "d" for x in args))
        return sum(args)

    g = jit(f, static_argnums=numbers)
    for count in [*kinds, *kinds]:
        assert float(g(*range(1, count + 1))) == count * (count + 1) / 2
    assert traced == list(kinds.values())
    with pytest.raises(ValueError, match="static_argnums has -4; f is called with 2 positional"):
        jit(f, static_argnums=-4)(1, 2)
    with pytest.raises(ValueError, match="static_argnums has -1099.*below 2"):
        jit(f, static_argnums=-2**40)


def test_a_donated_argument_counted_from_the_last_of_each_call():
    f = jit(lambda *args: sum(args), donate_argnums=-1)
    for count in (2, 3, 2):
        xs = [jnp.ones(3) for _ in range(count)]
        f(*xs)
        assert [x.is_deleted() for x in xs] == [False] * (count - 1) + [True]
    with pytest.raises(ValueError, match="cannot intersect"):
        jit(lambda *args: args, donate_argnums=0, static_argnums=-1)(1)


# Donation


@pytest.mark.parametrize("number", [0, 1])
def test_one_array_given_to_a_donated_and_another_argument(number):
    """Regression: the message was XLA's, with the arguments' numbers."""
    f = jit(lambda s, t: s["w"] + t[0], donate_argnums=number)
    x = jnp.ones(3)
    cached = f.lower({"w": x}, [x]).compile()
    for _ in range(3):
        cached({"w": jnp.ones(3)}, [jnp.ones(3)])
    for call in (f, f.lower({"w": x}, [x]).compile(), cached):
        with pytest.raises(RuntimeError, match=r"(?s)s\['w'\] and t\[0\] of <lambda> are the same "
                           r"array, and.*test_jit.py:\d+.*donate neither, or copy one"):
            call({"w": x}, [x])
    np.testing.assert_array_equal(f({"w": x}, [jnp.ones(3)]), [2, 2, 2])


def test_a_donated_argument_used_again():
    f = jit(lambda x: x + 1, donate_argnums=0)
    x = jnp.ones(3)
    f(x)
    assert x.is_deleted()
    with pytest.raises(DonatedArgumentError,
                       match=r"argument x of <lambda>: Array has been deleted with shape=float32"
                             r"\[3\].*test_jit.py:\d+"):
        f(x)
    with pytest.raises(DonatedArgumentError, match=r"add: operand 0: .*float32\[3\]"):
        x + 1
    with pytest.raises(DonatedArgumentError, match="deleted"):
        jnp.var(x)


def test_an_array_donated_by_a_cached_call_used_again():
    f = jit(lambda x: x + 1, donate_argnums=0)
    y = f(jnp.ones(3))
    f(y)
    with pytest.raises((ValueError, DonatedArgumentError), match="deleted or donated"):
        f(y)            # C++'s own words: no Python of ours runs in a cached call
    with pytest.raises(DonatedArgumentError, match="operand 0"):
        y * 2
    compiled = jit(lambda x, y: x + y, donate_argnums=0).lower(1.0, 2.0).compile()
    for _ in range(3):
        x = jnp.asarray(1.0)
        compiled(x, jnp.asarray(2.0))
        for args, name in (((x, jnp.asarray(2.0)), "x"), ((jnp.asarray(1.0), x), "y")):
            with pytest.raises(DonatedArgumentError, match=rf"argument {name} of.*test_jit\.py"):
                compiled(*args)


def test_what_no_result_takes_over_is_warned_of_and_not_deleted():
    f = jit(lambda x, y: (x[:1], y + x), donate_argnums=(0, 1))
    x, y = jnp.ones(3), jnp.ones(3)
    with pytest.warns(UserWarning, match=r"Some donated buffers were not usable: float32\[3\];"):
        f(x, y)
    f(jnp.ones(3), y)
    assert x.is_deleted() and not y.is_deleted()
    quiet = jit(lambda x, y, z: (x > 0, y.reshape(3, 1)), donate_argnums=(0, 1, 2))
    for _ in range(2):      # by size XLA decides; unread arguments are not passed
        x, y, z = jnp.ones(2), jnp.ones((1, 3)), jnp.ones(5)
        quiet(x, y, z)
        assert (x.is_deleted(), y.is_deleted(), z.is_deleted()) == (False, True, False)


def test_donate_argnames_and_trees():
    f = jit(lambda a, b: {"a": a["p"] + b, "b": a["q"] * b}, donate_argnames="a")
    a, b = {"p": jnp.ones(3), "q": jnp.ones(3)}, jnp.ones(3)
    f(a, b)
    assert a["p"].is_deleted() and a["q"].is_deleted() and not b.is_deleted()


# Forms of use


def test_decorator_with_options():
    @jit(static_argnames=("n",))
    def power(x, n=2):
        """Doc."""
        return x ** n

    @functools.partial(jit, static_argnums=1)
    def scaled(x, n):
        return x * n

    assert float(power(3.)) == 9. and float(power(3., n=3)) == 27. and float(scaled(2., 3)) == 6.
    assert power.__name__ == "power" and power.__doc__ == "Doc."
    assert power.__wrapped__(2., 2) == 4.


def test_methods():
    class Model:
        def __init__(self, scale):
            self.scale = scale

        @functools.partial(jit, static_argnums=0)
        def __call__(self, x):
            return x * self.scale

        @jit
        def double(x):
            return x * 2

    assert float(Model(3.)(2.)) == 6. and float(Model(4.)(2.)) == 8.
    assert float(Model.double(2.)) == 4.


def test_not_a_function():
    with pytest.raises(TypeError, match="jit: Expected a callable value, got 3"):
        jit(3)


def test_lambdas_partials_and_builtins():
    assert float(jit(functools.partial(lambda a, b: a - b, 5.))(2.)) == 3.
    assert float(jit(abs)(-2.)) == 2.


def test_nested_jit_is_one_private_function():
    @jit
    def inner(x):
        return jnp.sin(x) * 2

    text = jit(lambda x: inner(inner(x)) + inner(x)).lower(1.).as_text()
    assert len(re.findall(r"func\.func private @inner", text)) == 1
    assert len(re.findall(r"call @inner", text)) == 3


def test_inline():
    inner = jit(lambda x: jnp.sin(x), inline=True)
    closed = olympus.make_olympuspr(lambda x: inner(x))(1.)
    assert [e.primitive.name for e in closed.eqns] == ["sin"]
    assert float(inner(0.)) == 0.


@pytest.mark.parametrize("keep", [False, True])
def test_keep_unused(keep):
    f = jit(lambda x, y: x + 1, keep_unused=keep)
    assert float(f(1., 2.)) == 2. and float(f(1., 3.)) == 2.
    assert len(re.findall(r"%arg\d: tensor", f.lower(1., 2.).as_text())) == 1 + keep


def test_eval_shape_and_clear_cache():
    f, runs = counted(lambda x: {"y": x[0]})
    g = jit(f)
    assert g.eval_shape(jnp.ones((2, 3)))["y"].shape == (3,)
    g(jnp.ones((2, 3)))
    g.clear_cache()
    assert float(g(jnp.ones((2, 3)))["y"][0]) == 1.


def test_clear_cache_frees_the_executable_unless_an_equal_function_has_it():
    x, client = jnp.arange(3.), olympus.devices()[0].client
    f, same = (jit(lambda x: jnp.tan(x) * 711) for _ in range(2))
    f(x)
    before = len(client.live_executables())
    same(x)
    f.clear_cache()
    assert len(client.live_executables()) == before
    same.clear_cache()
    assert len(client.live_executables()) == before - 1
    assert float(f(x)[0]) == 0.0


def test_recursion_and_closures_over_tracers():
    @jit
    def outer(x):
        @jit
        def inner(y):
            return x * y

        return inner(x + 1)

    assert float(outer(2.)) == 6.
    assert float(olympus.grad(outer)(2.)) == 5.
    np.testing.assert_array_equal(olympus.vmap(outer)(jnp.array([1., 2.])), [2., 6.])


def test_variadic_and_default_arguments():
    f = jit(lambda *xs, scale=2., **kw: sum(xs) * scale + kw["z"])
    assert float(f(1., 2., z=1.)) == 7. and float(f(1., scale=3., z=0.)) == 3.


def test_results_keep_structure_and_none():
    out = jit(lambda x: (None, {"a": [x, 1]}))(2.)
    assert out[0] is None and int(out[1]["a"][1]) == 1


def test_threads_share_a_function():
    f, results = jit(lambda x: jnp.sin(x) @ jnp.cos(x)), {}

    def work(i):
        results[i] = float(f(jnp.full(64, float(i))))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(8):
        np.testing.assert_allclose(results[i], 64 * np.sin(i) * np.cos(i), atol=1e-4)


# Configuration


def test_disable_jit():
    seen = []

    @jit
    def f(x):
        seen.append(x)
        return x + 1 if x > 0 else x

    with olympus.disable_jit():
        assert float(f(jnp.float32(1.))) == 2. and float(f(jnp.float32(-1.))) == -1.
    assert len(seen) == 2 and not isinstance(seen[0], olympus.core.Tracer)


def test_x64_flip_retraces():
    f, runs = counted(lambda x: x + jnp.arange(2)[1])
    g = jit(f)
    assert g(np.float64(1)).dtype == np.float32
    with olympus.enable_x64():
        assert g(np.float64(1)).dtype == np.float64
        assert jnp.arange(2).dtype == np.int64
    assert g(np.float64(1)).dtype == np.float32
    assert len(runs) == 2


@pytest.mark.parametrize(("option", "value"), [
    ("default_matmul_precision", "highest"), ("numpy_rank_promotion", "raise"),
    ("numpy_dtype_promotion", "strict"), ("enable_x64", True)])
def test_options_that_change_meaning_retrace(option, value):
    f, runs = counted(lambda x: x * x)
    g = jit(f)
    g(jnp.ones(3))
    with getattr(olympus, option)(value):
        g(jnp.ones(3))
        g(jnp.ones(3))
    g(jnp.ones(3))
    assert len(runs) == 2


def test_log_compiles(caplog):
    with olympus.log_compiles(True), caplog.at_level(logging.WARNING, logger="olympus"):
        jit(lambda x: x * 3.75 + 9)(1.)
    assert "Compiling <lambda> with global shapes and types [float32[]" in caplog.text
    line = test_log_compiles.__code__.co_firstlineno + 2
    assert f"test_jit.py:{line}" in caplog.text
    for step in ("tracing", "lowering", "XLA compilation"):
        assert f"Finished {step} of jit(<lambda>) in" in caplog.text


@pytest.mark.parametrize(("again", "why"), [
    (lambda f: f({"a": jnp.ones(3)}, 1), r"x\['a'\] is .*float32\[3\].*, before .*float32\[2\]"),
    (lambda f: f([jnp.ones(2)], 1),
     r"x\[0\] is float32\[2\], before absent"),
    (lambda f: f({"a": jnp.ones(2)}, 1.0), "the static argument k is 1.0, before 1"),
])
def test_explain_cache_misses(caplog, again, why):
    f = jit(lambda x, k: x, static_argnums=1)
    with olympus.explain_cache_misses(True), caplog.at_level(logging.WARNING, logger="olympus"):
        f({"a": jnp.ones(2)}, 1)
        caplog.clear()
        f({"a": jnp.ones(2)}, 1)
        assert not caplog.text
        again(f)
    assert re.search(r"jit: <lambda> is traced again at .*test_jit.py:\d+.*: " + why, caplog.text)


def test_a_function_that_is_made_anew_is_explained(caplog):
    with olympus.explain_cache_misses(True), caplog.at_level(logging.WARNING, logger="olympus"):
        for n, wrap in enumerate([jit, lambda f: jit(functools.partial(f)), jit]):
            wrap(lambda x: x + 1)(float(n))
            assert caplog.text.count("though of the same code") == n
    assert re.search(r"jit: <lambda> is traced again at .*test_jit.py:\d+.*: it is another "
                     r"function than before, .*test_jit.py:\d+; make it and jit it once",
                     caplog.text)


def test_control_flow_inside_jit():
    f = jit(lambda n: lax.fori_loop(0, n, lambda i, s: s + i, 0))
    assert int(f(5)) == 10


def test_clear_caches_reaches_functions_that_are_jitted_again():
    """C++ still ran the entries that it kept of them, since no `jit` of theirs was alive."""
    traced = []

    def f(x):
        traced.append(x)
        return x + 1

    jit(f)(1.)
    jit(f)(1.)
    olympus.clear_caches()
    jit(f)(1.)
    assert len(traced) == 2


def test_clear_caches_forgets_programs_and_types():
    f = jit(lambda x: jnp.sin(x) * 2)
    f(jnp.ones(3))
    program = weakref.ref(f.trace(jnp.ones(3)).olympuspr.olympuspr)
    assert olympus.lax.sin_p._inferred and program() is not None
    olympus.clear_caches()
    gc.collect()
    assert not olympus.lax.sin_p._inferred and program() is None and f._cache_size() == 0
    assert f(jnp.ones(3)).shape == (3,)


def test_uncommitted_operands_follow_committed_ones():
    """On two devices, in a process of its own: numbers, uncommitted arrays and NumPy arrays."""
    script = """
import numpy, olympus, olympus.numpy as np
first, second = olympus.devices()
x, free = olympus.device_put(numpy.ones(3, 'float32'), second), np.ones(3)
add = olympus.jit(lambda x, y: x + y)
for _ in range(3):
    for out in (x * 2.0, x + free, np.where(x > 0, x, 0.0), x + numpy.ones(3, 'float32'),
                add(x, free), add(x, 2.0), free @ x):
        assert out.device is second, out.device
assert (free * 2.0).device is first
"""
    environ = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    subprocess.run([sys.executable, "-c", script], env=environ, check=True)


def test_a_list_two_thousand_deep_is_refused_by_its_name(request):
    limit = sys.getrecursionlimit()     # which other tests may have left higher
    request.addfinalizer(lambda: sys.setrecursionlimit(limit))
    sys.setrecursionlimit(1000)
    deep = 1.0
    for _ in range(2000):
        deep = [deep]
    function = olympus.jit(lambda x: x)
    for call in (function, function.lower, function.lower(1.0).compile()):
        with pytest.raises(RecursionError, match="the tree is nested deeper"):
            call(deep)


def test_one_way_of_saying_what_is_static_is_read_from_the_other_only_where_that_is_not_given():
    def f(x, n):
        return x * len(n)

    assert jit(f, static_argnums=1)(2.0, n="abc") == jit(f, static_argnames="n")(2.0, "abc") == 6
    for options, args, kwargs in (
            ({"static_argnums": 1, "static_argnames": ()}, (2.0,), {"n": "a"}),
            ({"static_argnums": (), "static_argnames": "n"}, (2.0, "a"), {})):
        with pytest.raises(TypeError, match="value is of type <class 'str'>"):
            jit(f, **options)(*args, **kwargs)
    for options in ({"static_argnums": 0, "donate_argnums": 0}, {
            "static_argnames": "x", "donate_argnames": "x"}, {
            "static_argnums": 0, "donate_argnames": "x"}):
        with pytest.raises(ValueError, match="cannot intersect"):
            jit(f, **options)


def test_names_alone_donate_nothing_of_a_function_whose_signature_cannot_be_read():
    class Opaque:
        __signature__ = "none"

        def __call__(self, a, b):
            return a + b

    with pytest.raises(ValueError, match="Pass donate_argnums instead"):
        jit(Opaque(), donate_argnames="a")
    assert jit(Opaque(), donate_argnames="a", donate_argnums=0)(1.0, 2.0) == 3.0


def test_a_jitted_function_is_pickled_by_its_name(tmp_path, monkeypatch):
    """Regression: neither pickle nor cloudpickle could write one ("cannot pickle a lock")."""
    (tmp_path / "mine.py").write_text("import olympus\n@olympus.jit\ndef f(x):\n    return x + 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    mine = importlib.import_module("mine")
    assert pickle.loads(pickle.dumps(mine.f)) is mine.f


def test_a_jitted_function_without_a_name_is_pickled_with_its_options():
    jitted = jit(functools.partial(operator.mul, 3), donate_argnums=0)
    loaded = pickle.loads(pickle.dumps(jitted))
    x = jnp.arange(2)
    np.testing.assert_array_equal(loaded(x), [0, 3])
    assert x.is_deleted()


def powers(x):
    """Loops, branches, calls, scopes and literals."""
    with olympus.named_scope("powers"):
        grown = lax.fori_loop(0, 3, lambda i, y: y * jnp.sin(x), jnp.ones_like(x))
        kept = olympus.checkpoint(lambda y: jnp.cos(y) * 2., policy=saved)(grown)
        return jit(lambda y: lax.cond(y.sum() > 0, jnp.exp, jnp.tanh, y))(kept)


saved = olympus.checkpoint_policies.everything_saveable


def test_programs_and_linear_functions_are_pickled():
    """Regression: "cannot pickle '_thread.lock' object", of caches and of primitives."""
    x = jnp.array([0.5, 1.5])
    closed = olympus.make_olympuspr(powers)(x)
    loaded = pickle.loads(pickle.dumps(closed))
    assert str(loaded) == str(closed) and [e.ctx for e in loaded.eqns] == [
        e.ctx for e in closed.eqns]
    for _, linear in (olympus.linearize(powers, x), olympus.vjp(powers, x)):
        again = pickle.loads(pickle.dumps(linear))
        np.testing.assert_array_equal(again(x), linear(x))


def test_primitives_are_pickled_by_their_names():
    for primitive in (lax.sin_p, lax.scan_p, remat.checkpoint_p, lax.linalg.cholesky_p):
        assert pickle.loads(pickle.dumps(primitive)) is primitive is copy.copy(primitive)
    with pytest.raises(TypeError, match="pickle: primitive mine given; one that a module has"):
        pickle.dumps([olympus.extend.core.Primitive("mine")])
    for answer in (olympus.ad_checkpoint.Saveable, olympus.ad_checkpoint.Recompute):
        assert pickle.loads(pickle.dumps(answer)) is answer


@pytest.mark.parametrize("transformed", [
    olympus.checkpoint, functools.partial(olympus.checkpoint, policy=saved), olympus.vmap,
    lambda f: olympus.grad(lambda x: f(x).sum()), lambda f: olympus.make_olympuspr(f),
    lambda f: olympus.linear_transpose(lambda x: 2. * x, jnp.ones(2))],
    ids=["checkpoint", "policy", "vmap", "grad", "make_olympuspr", "linear_transpose"])
def test_transformed_functions_are_pickled_by_cloudpickle(transformed):
    cloudpickle = pytest.importorskip("cloudpickle")
    x, f = jnp.array([0.5, 1.5]), transformed(powers)
    loaded = pickle.loads(cloudpickle.dumps(f))
    assert str(loaded(x)) == str(f(x))


def test_names_and_copies_of_jitted_functions():
    def double(x, by):
        return x * by

    partly = functools.partial(functools.partial(double), by=2)
    fun = jit(partly)
    assert fun.__name__ == "double" and "@jit_double" in fun.lower(1.0).as_text()
    partly.__name__ = "twice"
    assert "@jit_twice" in jit(partly).lower(1.0).as_text()

    class Model:
        def __init__(self):
            self.weights, self.step = [1.0], jit(lambda x: x + 1)

    model = Model()
    other = copy.deepcopy(model)
    assert other.weights is not model.weights and other.step is model.step and other.step(1.0) == 2


@pytest.mark.parametrize("made", [np.array, jnp.array, tuple])
def test_a_closed_over_array_keeps_its_elements(made):
    order = made([2, 0, 1])
    x = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(jit(lambda x: x[np.asarray(order)])(x), x[[2, 0, 1]])
    np.testing.assert_array_equal(jit(lambda: jnp.asarray(order))(), [2, 0, 1])


def _named(a, /, b, c=1, *rest, d=2, **more):
    return a


def _spelled(*args, **kwargs):
    return args


def _around_itself(x):
    return x


_spelled.__signature__ = inspect.signature(lambda p, q: p)
_around_itself.__wrapped__ = _around_itself


@pytest.mark.parametrize("fun", [
    _named, _spelled, _around_itself, len, int, Var, [].append, "".join, functools.wraps(_named)(
        lambda *args: args), functools.wraps(_spelled)(lambda *args: args), functools.wraps(int)(
        lambda x: x), functools.partial(_named, 1), jit(_named), olympus.vmap(_named),
    olympus.vmap(jit(functools.partial(_named, d=1)))])
def test_names_of_arguments_that_are_read_off_the_code_are_those_of_the_signature(fun):
    for position in (0, 1, 2, 3, 5, "b", "d", "other"):
        assert arguments.name_in_code(fun, position) in (
            "", arguments.parameter_name(arguments.parameters_of(fun), position))
    assert arguments.name_in_code(_named, 1) == "b"


def test_what_gives_no_value_or_is_no_function_is_refused():
    def count(n):
        yield n

    with pytest.raises(TypeError, match="generator function"):
        jit(count)
    with pytest.raises(TypeError, match="staticmethod"):
        jit(staticmethod(abs))
    for name in "ar":       # positional only; of many
        with pytest.raises(ValueError, match="positional-only"):
            jit(lambda a, /, b, *r: b, static_argnames=name)
