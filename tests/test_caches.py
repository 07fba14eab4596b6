"""What programs are kept for, and for how long: no cache gives one caller another's program."""

import ast
import copy
import dataclasses
import enum
import functools
import gc
import math
import pickle
import re
import weakref
from pathlib import Path

import numpy as np
import properties
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus._src.base import config, lib, util
from olympus._src.core import context, templates
from olympus._src.core.context import current_context
from olympus._src.numpy import array_methods
from olympus._src.runtime import compile
from olympus.interpreters import mlir
from olympus.lax import tan_p

x3 = onp.array([0.5, 1.5, 2.5])


@pytest.fixture(autouse=True)
def quickly(monkeypatch):
    """XLA compiles without optimisations: no test here is about its code."""
    compile_, options = lib.compile, properties.unoptimised()

    def compiled(*args, **kwargs):
        return compile_(*args, **{**kwargs, "options": {**options, **(kwargs["options"] or {})}})

    monkeypatch.setattr(lib, "compile", compiled)



@olympus.custom_jvp
def sine(x):
    return onp.sin(x)


sine.defjvp(lambda primals, tangents: (onp.sin(primals[0]), onp.cos(primals[0]) * tangents[0]))
jitted = olympus.jit(lambda x: onp.sin(x) * 2)


def step(c, x):
    return c * onp.sin(x), c


def scanned(x):
    return lax.scan(step, x[0], x)[0]


CALLS = {
    "jit": jitted,
    "grad of jit": olympus.grad(lambda x: jitted(x).sum()),
    "vmap of jit": olympus.vmap(jitted),
    "scan": scanned,
    "grad of scan": olympus.grad(scanned),
    "loop": lambda x: lax.fori_loop(0, 3, lambda i, c: onp.sin(c), x),
    "cond": lambda x: lax.cond(x[0] > 0, onp.sin, onp.cos, x),
    "checkpoint": olympus.grad(lambda x: olympus.checkpoint(onp.sin)(x).sum()),
    "custom_jvp": olympus.grad(lambda x: sine(x).sum()),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_program_is_named_by_each_caller_not_by_the_first(call):
    def names(scope):
        def f(x):
            with olympus.named_scope(scope):
                return call(x)

        text = olympus.jit(f).lower(x3).as_text(debug_info=True)
        return {name for name in re.findall(r'loc\("([^"]*)"', text) if "/" in name}

    with olympus.named_scope("around"):
        first = names("first")
    second = names("second")
    assert any("first" in n for n in first)
    assert any("second" in n for n in second)
    assert not any("first" in n or "around" in n for n in second), second


def test_scopes_inside_a_program_that_is_differentiated_keep_their_names():
    @olympus.jit
    def f(x):
        with olympus.named_scope("inner"):
            return onp.sin(x)

    text = olympus.jit(olympus.grad(f)).lower(1.0).as_text(debug_info=True)
    assert "inner/" in text


# A function is traced anew where anything else that programs depend on has changed.

OTHER = {"olympus_enable_x64": True, "olympus_debug_nans": True, "olympus_debug_infs": True,
         "olympus_debug_key_reuse": True, "olympus_enable_custom_prng": True,
         "olympus_legacy_prng_key": "warn",
         "olympus_check_tracer_leaks": True, "olympus_enable_checks": True,
         "olympus_numpy_dtype_promotion": "strict", "olympus_numpy_rank_promotion": "warn",
         "olympus_default_matmul_precision": "highest", "olympus_default_prng_impl": "rbg",
         "olympus_threefry_partitionable": False, "olympus_softmax_custom_jvp": True,
         "olympus_random_seed_offset": 1, "olympus_default_device": "cpu",
         "olympus_no_collectives": True, "olympus_remove_size_one_mesh_axis_from_type": True,
         "olympus_auto_pcast": False, "olympus_hold": "off", "olympus_compatible": True,
         "olympus_kernels": "off", "olympus_pallas_interpret": True,
         "olympus_pallas_enable_debug_checks": True,
         "olympus_high_dynamic_range_gumbel": True, "olympus_jit_guards": "retrace",
         **{f"olympus_error_checking_behavior_{kind}": "raise"
            for kind in ("nan", "divide", "oob")}}
told = [0.0]


def tell(x):
    """Reads a value that no cache knows: whoever calls it again has traced it again."""
    return x + told[0]


def carry(c, x):
    return tell(c), x


def tell_sum(x, y):
    return x + y + told[0]


@olympus.custom_jvp
def tell_jvp(x):
    return tell(x)


tell_jvp.defjvp(lambda primals, tangents: (tell(primals[0]), tangents[0] * told[0]))


@olympus.custom_vjp
def tell_vjp(x):
    return tell(x)


tell_vjp.defvjp(lambda x: (tell(x), None), lambda _, ct: (ct * told[0],))
tell_jit = olympus.jit(tell)
TELLERS = {
    "jit": tell_jit,
    "vmap of jit": lambda x: olympus.vmap(tell_jit)(x[None])[0],
    "jvp of jit": lambda x: olympus.jvp(tell_jit, (x,), (x,))[0],
    "jit of jit": olympus.jit(lambda x: tell_jit(x)),
    "scan": lambda x: lax.scan(carry, x, None, length=1)[0],
    "fori_loop": lambda x: lax.fori_loop(0, 1, lambda i, c: tell(c), x),
    "cond": lambda x: lax.cond(True, tell, tell, x),
    "map": lambda x: lax.map(tell, x),
    "checkpoint": olympus.checkpoint(tell),
    "reduce": lambda x: lax.reduce(onp.zeros((2, 2), x.dtype), x[0] * 0, tell_sum, (0,))[:1] * 0 + x
    + told[0],
    "custom_jvp": lambda x: olympus.grad(lambda y: tell_jvp(y).sum())(x) + x,
    "custom_vjp": lambda x: olympus.grad(lambda y: tell_vjp(y).sum())(x) + x,
}


def test_all_options_that_programs_depend_on_are_tried():
    text = Path(config.__file__).read_text()
    rows = [row.split("doc=")[0] for row in re.split(r"= _option\(", text)[1:]]
    keys = {re.search(r'"(\w+)"', row)[1] for row in rows if "trace_key=True" in row}
    assert len(keys) > 10
    assert keys - {"olympus_disable_jit"} <= set(OTHER)     # under that, nothing is traced


@pytest.mark.parametrize("call", TELLERS.values(), ids=TELLERS)
def test_a_program_belongs_to_its_context(call):
    x = onp.ones(2)
    told[0] = 0.0
    call(x)
    for i, (name, value) in enumerate(OTHER.items()):
        told[0] = i + 1.0
        with config._options[name](value):
            assert call(x).tolist() == [i + 2.0] * 2, name


# What is derived of a body: the rules that run then read the context too.

@olympus.custom_batching.custom_vmap
def tell_vmap(x):
    return x


@tell_vmap.def_vmap
def _(size, mapped, x):
    return x + told[0], True


@olympus.custom_jvp
def slope(x):
    return x


slope.defjvp(lambda primals, tangents: (primals[0], tangents[0] * told[0]))


@olympus.custom_vjp
def pulled(x):
    return x


pulled.defvjp(lambda x: (x, None), lambda _, ct: (ct * told[0],))


def tangent(f):
    return lambda x: olympus.jvp(f, (x,), (onp.ones_like(x),))[1]


def gradient(f):
    return olympus.grad(lambda x: f(x).sum())


def mapped(f):
    return lambda x: olympus.vmap(f)(x[None])[0] - x


def rerun(f):
    """The operations of `f`, traced once: the same bodies, whatever the context is later."""
    closed = olympus.make_olympuspr(f)(onp.ones(2))
    return lambda x: olympus.core.eval_olympuspr(closed.olympuspr, closed.consts, x)[0]


RULES = {"jvp": (slope, tangent), "linearise": (slope, gradient), "vjp": (pulled, gradient),
         "vmap": (tell_vmap, mapped)}
AROUND = {
    "jit": olympus.jit,
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0],
    "map": lambda f: lambda x: lax.map(f, x),
    "cond": lambda f: lambda x: lax.cond(x[0] < 5, f, f, x),
    "while": lambda f: lambda x: lax.while_loop(
        lambda c: c[0] < 1, lambda c: (c[0] + 1, f(c[1])), (0, x))[1],
    "checkpoint": olympus.checkpoint,
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("how", RULES)
def test_what_is_derived_of_a_body_belongs_to_its_context(how, around):
    rule, transform = RULES[how]
    if around == "while" and transform is gradient:
        pytest.skip("has no reverse derivative")
    call = transform(rerun(AROUND[around](rule)))
    x = onp.ones(2)
    told[0] = 0.5
    call(x)
    for i, (name, value) in enumerate(OTHER.items()):
        told[0] = i + 1.0
        with config._options[name](value):
            assert call(x).tolist() == [i + 1.0] * 2, name


def test_a_program_belongs_to_its_named_axes():
    def size(x):
        return tell_jit(x) + lax.axis_size("i") * 0

    for n in (1, 2, 3):
        told[0] = float(n)
        out = olympus.vmap(size, axis_name="i")(onp.zeros(n))
        assert out.tolist() == [n] * n


def test_a_context_is_one_object_and_is_dropped():
    with config.random_seed_offset(7):
        first = current_context()
        assert current_context() is first
        with config.random_seed_offset(8):
            assert current_context() is not first
        assert current_context() is first
    kept = weakref.ref(first)
    del first
    assert current_context() is current_context()
    assert kept() is None


def test_named_scopes_are_dropped():
    before = len(context._scopes)
    for i in range(100):
        with olympus.named_scope(f"scope {i}"):
            olympus.make_olympuspr(onp.sin)(1.0)
    gc.collect()
    assert len(context._scopes) <= before + 1


# Callables are told apart by identity, values by their bits.

@dataclasses.dataclass(frozen=True)
class Scale:
    """Equal ones may be different functions: 1 == 1.0 == True, 0.0 == -0.0."""

    k: object

    def __call__(self, x):
        return x * self.k

    def add(self, c, x):
        return self(c), x


NUMBERS = (1, 1.0, True, 0.0, -0.0, math.nan, 0, False)
APPLIED = {
    "jit": lambda f, x: olympus.jit(f)(x),
    "jit of method": lambda f, x: olympus.jit(f.__call__)(x),
    "scan": lambda f, x: lax.scan(lambda c, _: (c, f(c)), x, None, length=1)[1][0],
    "map": lambda f, x: lax.map(f, x),
    "cond": lambda f, x: lax.cond(True, f, f, x),
    "checkpoint": lambda f, x: olympus.checkpoint(f)(x),
    "vmap": lambda f, x: olympus.vmap(f)(x),
    "named_call": lambda f, x: olympus.named_call(f, name="f")(x),
    "static": lambda f, x: olympus.jit(lambda k, x: x * k, static_argnums=0)(f.k, x),
    "static, one function": lambda f, x: times(f.k, x),
    "argument": lambda f, x: jitted_times(f.k, x),
    "eager": lambda f, x: x * f.k,
    "eager, swapped": lambda f, x: f.k * x,
    "eager function": lambda f, x: onp.multiply(x, f.k),
    "pure_callback": lambda f, x: olympus.jit(lambda x: olympus.pure_callback(
        lambda x: np.asarray(np.asarray(x) * f.k, onp.result_type(x, f.k)),
        olympus.ShapeDtypeStruct(x.shape, onp.result_type(x, f.k)), x))(x),
}
times = olympus.jit(lambda k, x: x * k, static_argnums=0)
jitted_times = olympus.jit(lambda k, x: x * k)


@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("apply", APPLIED.values(), ids=APPLIED)
def test_what_is_equal_is_not_the_same(apply, dtype):
    for _ in range(2):
        for k in NUMBERS:
            x = np.array([2, 3], dtype)
            # A Python number takes the dtype of the array, unless its kind is higher.
            higher = isinstance(k, float) and dtype == "int32"
            wanted = np.dtype("float32" if higher else dtype)
            expected = x.astype(wanted) * wanted.type(k)
            found = np.asarray(apply(Scale(k), onp.asarray(x)))
            assert found.dtype == expected.dtype, k
            np.testing.assert_array_equal(found, expected)
            assert np.signbit(found).tolist() == np.signbit(expected).tolist(), k


COMPLEX = [complex(a, b) for a in (1.0, 0.0, -0.0) for b in (2.0, 0.0, -0.0)]


def parts(x, k):
    """The real and the imaginary part of the complex number in k, times ones."""
    k = next(k for k in olympus.tree.leaves(k) if isinstance(k, complex | np.complexfloating))
    return x * np.array([k.real, k.imag], "float32")


static_parts = olympus.jit(parts, static_argnums=1)
named_parts = olympus.jit(parts, static_argnames="k")


@pytest.mark.parametrize("wrap", [lambda k: k, lambda k: (k,), lambda k: (1, (k, 2)), np.complex64,
                                  lambda k: (np.complex128(k),)],
                         ids=["number", "tuple", "nested", "complex64", "tuple of complex128"])
@pytest.mark.parametrize("apply", [
    static_parts, lambda x, k: named_parts(x, k=k), olympus.checkpoint(parts, static_argnums=1),
    lambda x, k: lax.map(lambda _: parts(x, k), x)[0],
    lambda x, k: olympus.vmap(static_parts, (0, None))(x[None], k)[0]],
    ids=["static", "static by name", "checkpoint", "map", "vmap"])
def test_complex_numbers_are_told_apart_by_the_signs_of_their_zeros(apply, wrap):
    x = onp.ones(2)
    for _ in range(3):
        for k in COMPLEX:
            found = np.asarray(apply(x, wrap(k)))
            assert [*map(str, found)] == [str(k.real), str(k.imag)], k


@pytest.fixture
def work(clear_caches, monkeypatch):
    """The programs lowered and compiled, by name."""
    done = {"lowered": [], "compiled": []}
    lower, compile_ = compile.lower_program, lib.compile

    def lowered(program):
        done["lowered"].append(program.name)
        return lower(program)

    def compiled(*args, **kwargs):
        done["compiled"].append(1)
        return compile_(*args, **kwargs)

    monkeypatch.setattr(compile, "lower_program", lowered)
    monkeypatch.setattr(lib, "compile", compiled)
    return done


def made_anew(kind, traced, k=1.625):
    """A function and its argument; each call makes another function of the same program."""
    w = onp.asarray(np.array([1.0, 2.0, k], np.float32))

    def f(x):
        traced.append(1)
        return onp.sin(x) * k

    g = olympus.custom_jvp(lambda x: f(x))
    g.defjvp(lambda p, t: (f(p[0]), t[0] * 2))
    h = olympus.custom_vjp(lambda x: f(x))
    h.defvjp(lambda x: (f(x), None), lambda _, ct: (ct * k,))
    return {
        "jit": olympus.jit(lambda x: f(x)),
        "array": olympus.jit(lambda x: f(x) + w),
        "numpy array": olympus.jit(lambda x: f(x) + np.asarray(w)),
        "inner": olympus.jit(lambda x: olympus.jit(f)(x) + olympus.jit(f)(x)),
        "custom_jvp": olympus.jit(lambda x: g(x)),
        "custom_vjp": olympus.jit(lambda x: h(x)),
        "gradient": olympus.jit(olympus.grad(lambda x: (g(x) * h(x)).sum())),
        "checkpoint": olympus.jit(olympus.grad(lambda x: olympus.checkpoint(
            f, policy=lambda *_, **__: False)(x).sum())),
        "vmap": olympus.jit(olympus.vmap(f)),
        "scan": olympus.jit(lambda x: lax.scan(lambda c, y: (c, f(y)), 0, x)[1]),
        "eager scan": lambda x: lax.scan(lambda c, y: (c, f(y)), 0, x)[1],
        "eager while": lambda x: lax.while_loop(lambda c: c[0] > 1e9, f, x),
        "eager cond": lambda x: lax.cond(True, f, onp.cos, x),
        "eager map": lambda x: lax.map(f, x),
        "random": olympus.jit(lambda x: f(x) + olympus.random.normal(olympus.random.key(3), (3,))),
        "gather": olympus.jit(lambda x: f(x)[onp.array([0, 2, 2])].at[1].add(3.0)),
    }[kind]


@pytest.mark.parametrize("kind", [
    "jit", "array", "numpy array", "inner", "custom_jvp", "custom_vjp", "gradient", "checkpoint",
    "vmap", "scan", "eager scan", "eager while", "eager cond", "eager map", "random", "gather"])
def test_a_function_made_anew_is_traced_anew_and_lowered_and_compiled_once(work, kind):
    traced = []
    expected = made_anew(kind, traced)(x3).tolist()
    times, counts = len(traced), {key: len(done) for key, done in work.items()}
    assert times
    for _ in range(5):
        assert made_anew(kind, traced)(x3).tolist() == expected
    assert len(traced) == 6 * times
    assert {key: len(done) for key, done in work.items()} == counts, work


def test_a_lambda_made_anew_a_hundred_times_is_lowered_once(work):
    traced = []
    for _ in range(100):
        out = olympus.jit(lambda x: (traced.append(1), x * 1.8125)[1])(x3)
        gc.collect(0)
    assert out.tolist() == (np.asarray(x3) * np.float32(1.8125)).tolist()
    assert (len(traced), len(work["lowered"]), len(work["compiled"])) == (100, 1, 1)


def test_a_program_that_differs_in_anything_is_another(work):
    """Each neighbour differs from the one before in one thing, which its identity must tell."""
    zeros = np.zeros(3, np.float32)
    functions = [
        lambda x: x * 1.25, lambda x: x * 1.5, lambda x: x + 1.5, lambda x: 1.5 - x,
        lambda x: x - 1.5, lambda x: x * 0.0, lambda x: x * -0.0, lambda x: x * np.nan,
        lambda x: x + zeros, lambda x: x + -zeros, lambda x: x + (zeros + 1),
        lambda x: (onp.sin(x), onp.cos(x)), lambda x: (onp.cos(x), onp.sin(x)),
        lambda x: (onp.sin(x), onp.sin(x)), lambda x: (onp.cos(x), x), lambda x: (x, onp.cos(x)),
        lambda x: x.astype("int32"), lambda x: x.astype("uint32"), lambda x: x.reshape(1, 3),
        lambda x: x.reshape(3, 1), lambda x: x[::-1], lambda x: x[1:], lambda x: x[:2],
        lambda x: olympus.jit(onp.sin)(x), lambda x: olympus.jit(onp.cos)(x),
        lambda x: lax.cond(x[0] > 0, onp.sin, onp.cos, x),
        lambda x: lax.cond(x[0] > 0, onp.cos, onp.sin, x),
        lambda x: lax.scan(lambda c, y: (c + y, c), 0.0, x),
        lambda x: lax.scan(lambda c, y: (c + y, y), 0.0, x),
        lambda x: lax.scan(lambda c, y: (c + y, c), 0.0, x, reverse=True),
        lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2, x),
        lambda x: lax.fori_loop(0, 4, lambda i, c: c * 2, x),
        lambda x: lax.reduce_precision(x, 8, 4), lambda x: lax.reduce_precision(x, 8, 5),
        lambda x: x.at[x3.astype("int32") + 9].get(mode="fill", fill_value=0),
        lambda x: x.at[x3.astype("int32") + 9].get(mode="fill", fill_value=-0.0),
    ]
    eager = [[np.asarray(y) for y in olympus.tree.leaves(f(x3))] for f in functions]
    for f, expected in zip(functions, eager, strict=True):
        before = len(work["lowered"])
        found = olympus.tree.leaves(olympus.jit(f)(x3))
        assert len(work["lowered"]) > before
        for x, y in zip(found, expected, strict=True):
            assert (x.dtype, x.shape) == (y.dtype, y.shape)
            np.testing.assert_allclose(x, y, rtol=1e-6)
            assert (np.signbit(x) == np.signbit(y)).all()


def test_what_a_module_is_made_from_besides_the_program_is_in_its_key(work):
    def f(x):
        return (x * 1.9375, x * 2)

    def lowered(**options):
        x = onp.array(np.asarray(x3))
        before = len(work["lowered"])
        olympus.jit(lambda x: f(x), **options)(x)
        return len(work["lowered"]) - before

    assert lowered() == 1
    assert lowered() == 0
    assert lowered(donate_argnums=0) == 1
    assert lowered(donate_argnums=0) == 0
    assert lowered(compiler_options={"xla_cpu_enable_fast_math": True}) == 1
    with olympus.numpy_dtype_promotion("strict"):
        assert lowered() == 1
    assert lowered() == 0


def test_what_has_no_identity_is_lowered_again(work):
    def with_callback():
        return olympus.jit(lambda x: olympus.pure_callback(
            lambda x: np.asarray(x) + 1, olympus.ShapeDtypeStruct((3,), "float32"), x))

    for i in range(1, 4):
        assert with_callback()(x3).tolist() == [1.5, 2.5, 3.5]
        assert len(work["lowered"]) == i


def test_a_rule_that_is_registered_later_is_used(work):
    assert olympus.jit(lambda x: lax.tan(x))(x3).tolist() == pytest.approx(np.tan(x3), rel=1e-5)
    try:
        mlir.register_lowering(tan_p, mlir.lower_fun(
            lambda x, **_: lax.sin(x), multiple_results=False))
        found = olympus.jit(lambda x: lax.tan(x))(x3).tolist()
    finally:
        del tan_p.lower
    assert found == pytest.approx(np.sin(x3), rel=1e-5)
    assert olympus.jit(lambda x: lax.tan(x))(x3).tolist() == pytest.approx(np.tan(x3), rel=1e-5)


# Everything goes when its user lets go of it.

class Model:
    """Reaches itself through the programs of its own jitted method."""

    def __init__(self, body):
        self.w, self.body = onp.ones(3), body
        self.step = olympus.jit(self.run)

    def run(self, x):
        return self.body(self, x)

    def host(self, x):
        return np.asarray(x) * np.asarray(self.w)

    def call_host(self, x):
        return olympus.pure_callback(self.host, olympus.ShapeDtypeStruct(x.shape, x.dtype), x,
                                     vmap_method="sequential")


def with_jvp(self, x):
    f = olympus.custom_jvp(lambda x: x * self.w)
    f.defjvp(lambda p, t: (p[0] * self.w, t[0] * self.w))
    return f(x)


def with_vjp(self, x):
    f = olympus.custom_vjp(lambda x: x * self.w)
    f.defvjp(lambda x: (x * self.w, None), lambda _, ct: (ct * self.w,))
    return f(x)


def with_print(self, x):
    olympus.debug.callback(self.host, x)
    return x


BODIES = {
    "array": lambda self, x: x * self.w,
    "callback": Model.call_host,
    "debug": with_print,
    "custom_jvp": with_jvp,
    "custom_vjp": with_vjp,
    "scan": lambda self, x: lax.scan(lambda c, _: (c * self.w, None), x, None, length=2)[0],
    "callback in scan": lambda self, x: lax.scan(
        lambda c, _: (self.call_host(c), None), x, None, length=2)[0],
    "while": lambda self, x: lax.while_loop(
        lambda c: c.sum() < 9, lambda c: c + self.w, x),
    "cond": lambda self, x: lax.cond(x[0] > 0, lambda x: x * self.w, lambda x: x, x),
    "checkpoint": lambda self, x: olympus.checkpoint(lambda x: x * self.w)(x),
    "jit in jit": lambda self, x: olympus.jit(lambda x: x * self.w)(x),
    "reduce": lambda self, x: x + lax.reduce(x, np.float32(0), lambda a, b: a + b, (0,)) * self.w,
}


NO_REVERSE = (BODIES["callback"], BODIES["callback in scan"], BODIES["while"])


def use(call, how):
    if "grad" in how:
        olympus.grad(lambda x: call(x).sum())(onp.ones(3))
    elif how == "vmap":
        olympus.vmap(call)(onp.ones((2, 3)))
    else:
        call(onp.ones(3))


@pytest.mark.parametrize("how", ["jit", "eager", "grad", "eager grad", "vmap"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_an_object_goes_that_its_programs_lead_back_to(body, how):
    if "grad" in how and body in NO_REVERSE:
        pytest.skip("has no reverse derivative")
    model = Model(body)
    use(model.run if how.startswith("eager") else model.step, how)
    olympus.effects_barrier()
    left = weakref.ref(model)
    del model
    gc.collect()
    assert left() is None


def test_a_callback_runs_though_the_function_that_calls_it_is_gone():
    seen = []
    for i in range(8):
        def say(x, i=i):
            olympus.debug.callback(lambda x: seen.append(float(x) + i), x)

        olympus.jit(say)(1.0)
        del say
        gc.collect()
    olympus.effects_barrier()
    assert sorted(seen) == [i + 1.0 for i in range(8)]


def test_wraps_does_not_carry_programs_along():
    def f(x):
        return x + 1

    assert olympus.jit(f)(1) == 2

    @functools.wraps(f)
    def g(x):
        return x + 2

    assert olympus.jit(g)(1) == 3
    assert olympus.jit(f)(1) == 2
    assert copy.copy(f) is f
    assert pickle.loads(pickle.dumps(util.Owned(f))).memos == {}


# Every cache: its key, its owner, and its bound.

CACHES = {
    # programs and code
    ("jit/program.py", "programs_of"): "types, tree, statics by bits, Context | the "
        "function | 4096, code in all 2 GiB",
    ("base/lib/executables.py", "shared_signatures"): "options, types, tree, statics | the "
        "function | 8192",
    ("control/bodies.py", "stage_body"): "types, tree, what is done with it, what it reads, "
        "Context | the function | 64",
    ("core/ir.py", "cache"): "the pass and its arguments | the program | _DERIVED_LIMIT",
    ("host/ffi.py", "_params"): "what is promised, types, attributes by bits | process | 1024",
    ("runtime/eager.py", "_programs"): "primitive and params | process | 16384",
    ("interpreters/compiled_rules.py", "_rules"): "rule, primitive, avals, which operands are one, "
        "params, Context | process | 4096",
    ("runtime/compile.py", "_executables"): "digest, devices, options | process | see its two",
    ("runtime/compile.py", "by_digest"): "digest, devices, options | weak",
    ("runtime/compile.py", "recent"): "digest, devices, options | process | 128, 64 MiB",
    ("runtime/compile.py", "programs"): "identity, Context, devices, options | process"
        " | 4096",
    ("runtime/hosts.py", "functions"): "calls of the host | weak",
    ("runtime/disk_cache.py", "_cpu_features"): "none | process | one",
    ("runtime/disk_cache.py", "_directory"): "path, bounds | process | 8",
    ("runtime/disk_cache.py", "_libraries"): "directory | process | as many as are set",
    ("runtime/disk_cache.py", "_calls"): "none: what the thread is to write | process | 64 MiB",
    ("runtime/disk_cache.py", "faults"): "none: what went wrong there | process | 64",
    ("core/identity.py", "_part_numbers"): "primitive and params by bits, aval, elements' digest | "
        "process | 65536",
    ("lax/special/series.py", "program"): "shape, dtype, params | the primitive | 256",
    ("lax/special/series.py", "_economised"): "coefficients, range | process | 64",
    ("nn/resampling.py", "_band"): "sizes, method, antialias | process | 256",
    ("lax/indexing.py", "_update_body"): "primitive, dtype | process | 256",
    ("control/manual_trace.py", "_programs"): "an operation and its params, types, mesh, Context | "
        "process, or the operation's body | 1024",
    ("control/platform.py", "platform_cond"): "platforms | process | as many as there are",
    # what lowering makes again and again
    ("lowering/rule_programs.py", "_programs"): "primitive, params, avals, platform, rule's code "
        "and partial, Context | process | 512",
    ("lowering/glances.py", "GLANCES"): "primitive | process | 1024",
    ("lowering/kernels.py", "_applying"): "primitive, params, avals | process | 4096",
    ("lowering/attributes.py", "_types"): "aval or dtype | process | 65536, the context 32 MiB",
    ("lowering/attributes.py", "_attrs"): "text or ints | process | 65536, the context 32 MiB",
    ("lowering/attributes.py", "_recipes"): "primitive, platform, types, params | process | 65536, "
        "the context 32 MiB",
    ("lowering/attributes.py", "_locations"): "name, line | process | 65536, the context 32 MiB",
    ("lowering/attributes.py", "_grown"): "none | process | 32 MiB of what the context holds",
    ("base/lib/mlir.py", "_current"): "none | process | one context",
    ("lowering/module.py", "cut_sizes"): "none | the module that is lowered | one set",
    ("lowering/module.py", "uneven_sizes"): "none | the module that is lowered | one set",
    ("runtime/compile.py", "_copier"): "aval, device, layouts | process | 256",
    ("base/lib/partitioning.py", "_calls"): "name of the rule | weak",
    # constants
    ("runtime/eager.py", "scalars"): "aval, type, bits, device | process | 4096 scalars",
    # types and plans
    ("core/context.py", "_contexts"): "options, axes | weak",
    ("core/context.py", "_scopes"): "names | weak",
    ("types/avals.py", "_table"): "shape, dtype … | weak",
    ("types/avals.py", "_recent"): "none | process | 1024 types",
    ("types/avals.py", "_without_axis"): "aval, axis | process | 1024",
    ("core/primitive.py", "_inferred"): "avals, params | the primitive | 8192",
    ("types/shape.py", "_broadcast_shapes"): "shapes | process | 4096",
    ("types/sharding.py", "_one_key"): "mesh, spec, kind of memory | process | 4096",
    ("types/sharding.py", "_in_types"): "abstract mesh, spec, axes | process | 4096",
    ("types/sharding.py", "_slices"): "sharding, shape | process | 1024",
    ("types/sharding.py", "replica_ids"): "sharding, shape | process | 1024",
    ("devices/array.py", "_parts_of"): "aval, sharding, option | process | 1024",
    ("lowering/known_numbers.py", "_limits"): "dtype | process | as many as there are",
    ("control/shard_map.py", "_inner"): "mesh, axes | process | 4096",
    ("arrays/multihost.py", "_gather"): "mesh | process | 16 programs",
    ("types/dtypes.py", "_AS_DTYPE"): "spelling of a dtype | process | as many as there are",
    ("types/dtypes.py", "integer_range"): "dtype | process | 64",
    ("types/dtypes.py", "_PROMOTED"): "dtypes, x64, mode | process | as many as there are",
    ("lax/families.py", "_range"): "dtype | process | 256",
    ("lax/contract.py", "_cotangent_plan"): "dimension numbers, ranks | process | 1024",
    ("lax/ragged.py", "roles_of"): "dimension numbers, ranks | process | 1024",
    ("core/templates.py", "_exact"): "type | process | the library's, 1024 that were met",
    ("numpy/array_methods.py", "_accepted"): "type | process | the library's, 1024 that were met",
    ("core/templates.py", "_templates"): (
        "function, Context, avals, other arguments by bits | process | 4096"),
    ("numpy/promote.py", "_plans"): "avals, x64, mode | process | 16384",
    ("numpy/promote.py", "scalar_plan"): "aval, type, x64, mode | process | 4096",
    ("numpy/einsum.py", "_plans"): "subscripts, shapes | process | 1024",
    ("numpy/einsum.py", "_labels"): "subscripts, avals | process | 1024",
    ("numpy/einsum.py", "_named_path"): "equation, shapes, strategy | process | 1024",
    ("numpy/index_plan.py", "_plans"): "shape, kinds of entries | process | 16384",
    ("numpy/indexing.py", "_window"): (
        "shape, x64, default device, ints and slices of the index | process | 16384"),
    ("numpy/masks.py", "_layout"): "places of axes | process | 1024",
    ("numpy/indexing.py", "_hows"): "options by type and text | process | 1024",
    # tables of one entry
    ("devices/devices.py", "_warned"): "none | process | one",
    ("devices/devices.py", "_forked"): "none | process | one",
    ("devices/devices.py", "_failed"): "none | process | as many platforms as there are",
    ("base/lib/waiting.py", "_ending"): "none | process | one",
    ("base/lib/waiting.py", "_helpers"): "none | process | one thread that rests",
    ("base/lib/waiting.py", "at_end"): "none | process | one",
    ("base/lib/arrays.py", "shard_slices"): "sharding, shape | process | 1024",
    ("base/lib/arrays.py", "single_device_sharding"): "device, memory | process | 4096",
    ("base/lib/calls.py", "lapack_names"): "none | process | one",
    ("command_line/arguments.py", "_dtypes"): "none | process | one",
    ("base/lib/executables.py", "_flags"): "none | process | one",
    ("base/lib/clients.py", "has_long_vectors"): "none | process | one",
    ("base/lib/executables.py", "_cpu_options"): "emitter | process | two",
    ("devices/devices.py", "_present"): "plugin | process | as many as there are",
    ("base/lib/plugins.py", "_load_cuda_plugin"): "none | process | one",
    ("base/lib/plugins.py", "_load_tpu_plugin"): "none | process | one",
    ("lax/kernels/fourier.py", "_quick"): "size | process | 1024",
    ("planning/hlo.py", "_type"): "text of a type | process | 4096",
    ("planning/hlo.py", "_pairs"): "sizes of a window along an axis | process | 1024",
    ("base/lib/mlir.py", "stablehlo_versions"): "none | process | one",
    ("base/lib/partitioning.py", "_register"): "none | process | one",
    ("checkpoint/store.py", "_chunk_layout"): "none | process | one",
    ("base/lib/mlir.py", "_register_passes"): "none | process | one",
    ("base/logs.py", "_loud"): "none | process | the loggers that are named",
    ("base/config.py", "_options"): "name | process | the options",
    ("base/config.py", "in_trace_key"): "none | process | the options",
    ("base/util.py", "_later"): "façade | process | names that are imported when they are used",
    ("base/source.py", "excluded"): "none | process | files that libraries name",
    ("runtime/compile.py", "before_compiling"): "none | process | one for `as_jax`",
    ("base/source.py", "_internal"): "file | process | files that code was written in",
    ("base/util.py", "_caches"): "the caches | weak",
    ("base/lib/allocator.py", "_keeping"): "none | process | one",
    ("base/lib/allocator.py", "_libc"): "none | process | one",
    ("types/avals.py", "HIGH"): "none | process | one",
    ("types/avals.py", "MUTABLE"): "none | process | one",
    ("types/refs.py", "_table"): "content | weak",
    ("lax/refs.py", "ENDED"): "variable | weak",
    ("numpy/refs.py", "_numbers"): "type, number, aval | process | 4096",
    ("numpy/refs.py", "_views"): "index, shape | process | 4096",
    ("sparse/transform.py", "sparse_rules_bcoo"): "primitive | process | rules that users gave",
    ("sparse/transform.py", "sparse_rules_bcsr"): "primitive | process | rules that users gave",
    ("mapping/roofline.py", "_rules"): "primitive | process | rules that users gave",
    ("mapping/vmap.py", "ON_ARRAYS"): "none | process | one class",
    ("mapping/vmappable.py", "VMAPPABLE"): "class | process | classes that users registered",
    ("extend/registration.py", "_constant_handlers"): "class | process | handlers that users gave",
    ("extend/tables.py", "partial_eval_olympuspr_custom_rules"): (
        "primitive | process | rules that users gave"),
    ("kernel_library/mask_info.py", "_process_mask"): "mask, block shape, options | process | 16",
    ("interpreters/jet.py", "jet_rules"): "primitive | process | rules that users gave",
    ("export/nodes.py", "_by_type"): "type | process | types that users registered",
    ("export/nodes.py", "_by_name"): "name | process | types that users registered",
    ("jit/jit.py", "_made"): "code of functions that are traced | weak",
    ("jit/recompiles.py", "_warned"): "code of functions that were warned of | weak",
    ("arrays/multihost.py", "_seen"): "device | process | the devices",
    ("types/tree_registry.py", "registered_field_names"): "type | process | registered types",
    ("types/tree_registry.py", "registered_functions"): "type | process | registered types",
    ("jit/persistent.py", "programs"): "types, tree, statics by bits, Context, placement | "
        "the jitted function | 4096",
    ("jit/guards.py", "captures"): "none | the jitted function, or `f.clear_cache` | 1",
    ("base/code_reads.py", "own_reads"): "code | process | 4096",
    ("base/code_reads.py", "all_reads"): "code | process | 4096",
    ("base/users.py", "_of_users"): "file, module | process | 4096",
    ("base/users.py", "impure"): "name | process | 4096",
    ("core/walks.py", "_library"): "module | process | 4096",
    ("control/bodies.py", "_made"): "code | process | 4096 numbers",
    ("jit/stable_key.py", "software"): "none | process | one",
    # what is under way
    ("base/lib/calls.py", "_registered"): "name, platform, version | process | what users register",
    ("base/lib/calls.py", "_partitionable"): "none | process | what users register",
    ("base/lib/calls.py", "_plugins"): "none | process | plugins",
    ("base/lib/calls.py", "_kept"): "address | process | functions of libraries that users wrap",
    ("base/lib/calls.py", "_register_at_once"): "none | process | one",
    ("base/lib/host.py", "_failures"): "none | process | 64 exceptions",
    ("runtime/failures.py", "noted"): "none: codes in order | the thread | of programs that still "
        "run, then one that failed",
    ("base/lib/host.py", "_waiting"): "none | process | one thread",
    ("core/effects.py", "_last_ordered"): "none | process | one",
    ("core/effects.py", "_pending"): "none | process | 64 tokens",
}


def test_classes_of_users_go_however_many_operators_and_functions_met():
    """Two sets of types kept every class that an operator or a library function was given."""
    def meet():
        class Weights(np.ndarray):
            pass

        class Mode(enum.Enum):
            ON = 1

        w = np.ones(2).view(Weights)
        assert (onp.ones(2) + w).shape == (2,)
        with pytest.raises(TypeError):
            olympus.make_olympuspr(lambda x: onp.sum(x, axis=Mode.ON))(onp.ones(2))
        return weakref.ref(Weights), weakref.ref(Mode)

    first = meet()
    for _ in range(2200):
        array_methods._accepted.meet(type("Weights", (), {}))
        templates._exact.meet(type("Mode", (), {}))
    gc.collect()
    assert len(array_methods._accepted) < 1100 and len(templates._exact) < 1200
    assert [kind() for kind in first] == [None, None]


def mutable_caches():
    """(file, name) of each cache in the package, by what makes one."""
    makers = {"Memo", "memoize", "lru_cache", "cache", "WeakValueDictionary", "WeakKeyDictionary",
              "WeakSet", "OrderedDict", "deque", "weakref_lru_cache", "Executables", "_Grown",
              "PjitFunctionCache", "KnownTypes", "_Glances"}
    root = Path(olympus.__file__).parent

    def maker(node):
        while isinstance(node, ast.Call):
            node = node.func
        return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)

    for path in sorted(root.rglob("*.py")):
        where = str(path.relative_to(root / "_src")) if "_src" in path.parts else path.name
        text = path.read_text()
        tree = ast.parse(text)
        top = {id(node) for node in tree.body}
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                if any(maker(d) in makers for d in node.decorator_list) and id(node) in top:
                    yield where, node.name
                if "Owned.memo(" in text and any(
                        isinstance(n, ast.Call) and ast.unparse(n.func) == "Owned.memo"
                        for n in ast.walk(node)):
                    yield where, node.name
            elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                kept = id(node) in top or isinstance(targets[0], ast.Attribute)
                empty = isinstance(node.value, (ast.Dict, ast.List)) and not (
                    getattr(node.value, "keys", None) or getattr(node.value, "elts", None))
                made = isinstance(node.value, ast.Call) and maker(node.value) in makers
                name = getattr(targets[0], "attr", None) or getattr(targets[0], "id", None)
                if kept and (made or (empty and id(node) in top)) and name != "__all__":
                    yield where, name


def test_every_cache_has_its_row():
    found = set(mutable_caches())
    assert found == set(CACHES), (sorted(found - set(CACHES)), sorted(set(CACHES) - found))
