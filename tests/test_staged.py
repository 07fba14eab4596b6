"""Composites, choices by platform, tokens and sinks: what rows cannot say."""

import pickle

import numpy as np
import pytest

import olympus
from olympus import jit, lax, numpy as onp, vmap
from olympus._src.lowering.module import Lowering, lower_program
from olympus.core import abstract_token
from olympus.extend.core import Token

X = np.arange(4.0, dtype="f4")
ATTRIBUTES = {
    "a": (1, 2.5, 'x"\n'), "b": True, "c": None, "d": np.arange(3, dtype="i4"),
    "e": {"q": np.float32(2)}, "f": np.array([True, False]), "g": (), "h": float("inf"),
    "i": np.int8(-3), "j": np.zeros((0, 2)), "k": np.array([0.5], onp.bfloat16),
    "l": list(map(np.dtype, ("i1", "u1", bool, onp.bfloat16, "c8")))}
TEXT = ('{a = [1, 2.500000e+00, "x\\22\\0A"], b = true, d = dense<[0, 1, 2]> : tensor<3xi32>, '
        "e = {q = 2.000000e+00 : f32}, f = dense<[true, false]> : tensor<2xi1>, g = [], "
        "h = 0x7FF0000000000000 : f64, i = -3 : i8, j = dense<> : tensor<0x2xf64>, "
        "k = dense<5.000000e-01> : tensor<1xbf16>, l = [i8, ui8, i1, bf16, complex<f32>]}")


def test_composite_is_one_operation_with_attributes():
    twice = lax.composite(lambda tree, **_: {"out": tree["x"] * 2}, "test.twice", 3)
    fun = jit(lambda x: twice({"x": x}, **ATTRIBUTES))
    text = fun.lower(X).as_text()
    assert 'stablehlo.composite "test.twice" %arg0' in text
    assert TEXT in text
    assert "decomposition = @test.twice, version = 3 : i32" in text
    assert fun(X)["out"].tolist() == [0, 2, 4, 6]


def test_composite_is_differentiated_and_mapped_as_its_definition():
    sine = lax.composite(onp.sin, "test.sine")
    np.testing.assert_allclose(vmap(olympus.grad(olympus.grad(sine)))(X), -np.sin(X), 1e-6)
    np.testing.assert_allclose(jit(olympus.grad(lambda x: sine(x).sum()))(X), np.cos(X), 1e-6)
    total = lax.composite(lambda x: lax.psum(x, "i"), "test.total")
    assert vmap(total, axis_name="i")(X).tolist() == [6] * 4
    assert "composite" not in str(olympus.make_olympuspr(vmap(sine))(X))


def test_composite_keeps_arrays_that_it_closes_over():
    shift = lax.composite(lambda x: x + onp.asarray(X), "test.shift")
    assert jit(shift)(X).tolist() == [0, 2, 4, 6]


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: lax.composite(3, "a.b"), TypeError, "decomposition is 3; pass the function"),
    (lambda: lax.composite(abs, "plain"), ValueError, "name 'plain' given; a namespace"),
    (lambda: lax.composite(abs, "a.b", 1.5), ValueError, "version 1.5 given"),
    (lambda: lax.composite(abs, "a.b")("x"), TypeError, "an array is required"),
    (lambda: lax.composite(lambda x, k: x, "a.b")(X, k=2j), TypeError, "attribute k is 2j"),
    (lambda: lax.composite(lambda x, k: x, "a.b")(X, k={1: 2}), TypeError, "has the key 1"),
    (lambda: lax.composite(lambda x, k: x, "a.b")(X, k=[1j * X]), TypeError,
     "real numbers are required"),
    (lambda: jit(lambda x: lax.composite(lambda x, k: x, "a.b")(X, k=x))(X),
     olympus.errors.UnexpectedTracerError, "k is a traced .* as an attribute in the"),
    (lambda: jit(lambda y: lax.composite(lambda x: x + y, "a.b")(X))(X),
     olympus.errors.UnexpectedTracerError,
     "as a constant in the decomposition for the composite op 'a.b': it closes over a traced"),
    (lambda: lax.platform_dependent(X), ValueError, "no functions given"),
    (lambda: lax.platform_dependent(X, gpu=abs), ValueError, "cuda= or rocm= is required"),
    (lambda: lax.platform_dependent(X, cpu=3), TypeError, "cpu is 3; pass the function"),
    (lambda: lax.platform_dependent(X, tpu=abs), ValueError,
     "lowered for cpu; functions are given for tpu"),
    (lambda: lax.platform_dependent(X, cpu=abs, tpu=lambda x: x[0]), TypeError,
     "branch 1 .* returns something else"),
    (lambda: lax.after_all(X), TypeError, "operand 0 is float32.4.; tokens are required"),
    (lambda: lax.stage([1]), TypeError, "convert it with olympus.numpy.asarray"),
])
def test_messages(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_platform_is_chosen_when_lowered():
    def fun(x):
        return lax.platform_dependent(x, cuda=onp.sin, rocm=onp.tanh, cpu=lambda x: x * y,
                                      default=onp.cos)

    y = onp.asarray(X)
    program = olympus.make_olympuspr(fun)(X)
    for platform, wanted in (("cpu", "multiply"), ("gpu", "sine"), ("cuda", "sine"),
                             ("rocm", "tanh"), ("tpu", "cosine")):
        text = str(lower_program(Lowering(program, "f", platform))[0])
        found = [op for op in ("multiply", "cosine", "tanh", "sine") if f"stablehlo.{op}" in text]
        assert found == [wanted]
    assert fun(X).tolist() == [0, 1, 4, 9]


def test_platform_branches_are_differentiated():
    fun = lambda x: lax.platform_dependent(x, cpu=lambda x: x**3, tpu=onp.exp).sum()
    np.testing.assert_allclose(jit(olympus.grad(fun))(X), 3 * X**2, 1e-6)
    np.testing.assert_allclose(olympus.hessian(fun)(X), np.diag(6 * X), 1e-6)
    whole = lambda x: lax.platform_dependent(x, cpu=lambda x: 2, default=lambda x: 2.5 * x)
    with pytest.raises(TypeError, match="float32.*required int32|int32.*required float32"):
        whole(X[0])
    assert lax.platform_dependent(cpu=lambda: 3).weak_type


def test_tokens_pass_through_programs():
    token = lax.create_token()
    assert isinstance(token, Token)
    assert olympus.typeof(token) is abstract_token
    assert pickle.loads(pickle.dumps(abstract_token)) is abstract_token
    assert isinstance(token.block_until_ready(), Token)
    fun = jit(lambda t, x: (lax.after_all(t, lax.create_token(x)), x + 1))
    for _ in range(3):
        token, out = fun(token, X)
        assert isinstance(token, Token)
    assert out.tolist() == [1, 2, 3, 4]
    text = fun.lower(token, X).as_text()
    assert "stablehlo.after_all" in text
    assert "%arg0: tensor<0xi1>" in text
    looped = jit(lambda x: lax.fori_loop(
        0, 3, lambda i, c: (lax.after_all(c[0]), c[1] + i), (lax.create_token(), x)))(X)
    assert looped[1].tolist() == [3, 4, 5, 6]
    assert isinstance(jit(lambda x: lax.cond(x > 1, lax.after_all, lambda t: t, token))(3), Token)
    assert isinstance(fun.lower(token, X).compile()(token, X)[0], Token)
    assert "Tok = after_all" in str(olympus.make_olympuspr(lambda: lax.after_all())())


def test_sinks_keep_operations():
    fun = lambda x: (lax.dce_sink(onp.exp(x)), x.sum())[1]
    assert "exp" in str(olympus.make_olympuspr(olympus.grad(fun))(X))
    assert "exp" in str(olympus.make_olympuspr(jit(fun))(X))
    assert "stablehlo.exponential" in jit(fun).lower(X).as_text()
    kept = jit(lambda x: lax.dce_sink(onp.exp(x), prevent_mlir_dce=True))
    assert "exponential" in kept.lower(X).compile().as_text()
    assert kept(X) is None


def test_stage():
    assert type(lax.stage(3.0)) is type(onp.asarray(3.0))
    assert lax.stage(3.0).weak_type
    assert "stage 2.0" in str(olympus.make_olympuspr(lambda: lax.stage(2.0))())
    assert vmap(lambda x: lax.stage(x) * lax.stage(np.float32(2)))(X).tolist() == [0, 2, 4, 6]
    assert olympus.grad(lambda x: lax.stage(x) ** 2)(3.0) == 6


@pytest.mark.parametrize("transform", [
    olympus.grad, olympus.jacfwd, olympus.hessian, olympus.checkpoint,
    lambda f: lambda x: olympus.vmap(f)(onp.stack([x, x])),
    lambda f: lambda x: olympus.vmap(olympus.grad(f))(onp.stack([x, x])),
    lambda f: olympus.grad(lambda x: onp.sum(olympus.vmap(f)(onp.stack([x, x])))),
], ids=["grad", "jacfwd", "hessian", "checkpoint", "vmap", "vmap of grad", "grad of vmap"])
def test_library_functions_are_inline_wherever_a_program_is_recorded(transform):
    def f(x):
        return onp.sum(onp.logaddexp(onp.sin(x), 1.0) + onp.var(x) + onp.cumsum(x) + onp.median(x))

    program = olympus.make_olympuspr(transform(f))(onp.arange(1.0, 4.0))
    assert " jit" not in str(program)


BESIDE = {
    "*": (lambda x, s: x * s, "mul"), "reflected -": (lambda x, s: s - x, "sub"),
    "maximum": (onp.maximum, "max"), ">": (lambda x, s: x > s, "gt"),
    "lax.div": (lax.div, "div"), "arctan2": (onp.arctan2, "atan2"),
}


@pytest.mark.parametrize("s", [2.0, np.float32(2)], ids=["weak", "strong"])
@pytest.mark.parametrize("name", BESIDE)
def test_a_traced_scalar_beside_an_array_is_one_operation(name, s):
    fun, op = BESIDE[name]
    x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    wide = np.full_like(x, s)
    for made, args in ((fun, (x, s)), (vmap(fun, (0, None)), (x, s))):
        program = olympus.make_olympuspr(made)(*args).olympuspr
        assert [eqn.primitive.name for eqn in program.eqns] == [op]
    np.testing.assert_array_equal(jit(fun)(x, s), fun(x, wide))
    np.testing.assert_array_equal(vmap(fun, (None, 0))(x[0], np.float32([s, s])),
                                  vmap(fun, (None, None), axis_size=2)(x[0], wide[0]))
    if name == ">":
        return
    value = lambda x, s: onp.sum(fun(x, s) * x)
    by_x, by_s = olympus.grad(value, (0, 1))(x, wide)
    found = jit(olympus.grad(value, (0, 1)))(x, s)
    np.testing.assert_allclose(found[0], by_x, rtol=1e-6)
    np.testing.assert_allclose(found[1], by_s.sum(), rtol=1e-6)
    slope = olympus.jvp(fun, (x, s), (x, type(s)(3)))[1]
    np.testing.assert_allclose(slope, olympus.jvp(fun, (x, wide), (x, 0 * x + 3))[1], rtol=1e-6)


def test_the_transpose_of_a_scalar_beside_an_array_is_a_sum():
    x = np.float32([1, 2, 3])
    assert olympus.linear_transpose(lambda s: x * s, np.float32(0))(x)[0] == 14
    assert olympus.linear_transpose(lambda s: lax.sub(x * s, s), np.float32(0))(x)[0] == 8
