"""Elementwise operations: values in every dtype, derivatives, vmap, transposes, edges, errors."""

from __future__ import annotations

import re
import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from ops import lax_elementwise as rows

import olympus
from olympus import grad, jit, jvp, lax, vjp, vmap
from olympus._src.lax import choice, families, special

DTYPES = {"f": ("float64", "float32"), "h": ("float16", "bfloat16"), "c": ("complex128",),
          "i": ("int32",), "u": ("uint8",), "b": ("bool",)}
EVERY = [pytest.param(row, id=row.name) for row in rows.ALL]
CASES = [pytest.param(row, np.dtype(getattr(ml_dtypes, d, d)), id=f"{row.name}-{d}")
         for row in rows.ALL for kind in row.kinds for d in DTYPES[kind]]
SMOOTH = [pytest.param(row, kind, id=f"{row.name}-{kind}") for row in rows.ALL if row.grad
          for kind in row.kinds if kind in "fc"]
FLAT = [pytest.param(row, id=row.name) for row in rows.ALL
        if not row.grad and row.kinds[0] == "f"
        and row.name not in ("nextafter", "reduce_precision")]


@pytest.fixture(autouse=True)
def _x64() -> Any:
    with olympus.enable_x64(True):
        yield


def arguments(row: rows.Row, dtype: np.dtype) -> list[np.ndarray]:
    if dtype.kind == "u":
        return [np.abs(a).astype(dtype) for a in row.args]
    if dtype.kind == "c":
        return [a + 1j * (0.3 + 0.1 * i + 0.05 * np.arange(a.size))
                for i, a in enumerate(row.args)]
    return [a.astype(dtype) for a in row.args]


def assert_close(actual: Any, expected: Any, ulps: float, eps: float) -> None:
    actual = np.asarray(actual)
    wide = "c16" if np.iscomplexobj(expected) else "f8"
    np.testing.assert_allclose(actual.astype(wide), np.asarray(expected).astype(wide),
                               rtol=ulps * eps, atol=eps * 1e-2)


@pytest.mark.parametrize(("row", "dtype"), CASES)
def test_values(row: rows.Row, dtype: np.dtype) -> None:
    args = arguments(row, dtype)
    exact = dtype.kind not in "fc" and dtype != ml_dtypes.bfloat16
    expected = row.oracle(*(args if exact or dtype == np.float32 and row.name == "nextafter" else
                            [a.astype("c16" if dtype.kind == "c" else "f8") for a in args]))
    out = row.fun(*args)
    assert out.shape == expected.shape
    if expected.dtype != bool:
        real = np.dtype("f8") if row.name in ("abs", "real", "imag") and dtype.kind == "c" else None
        made = {"complex": {"float64": "c16", "float32": "c8"}.get(dtype.name)}.get(row.name)
        assert out.dtype == (made or real or dtype)
    assert_close(out, expected, 0 if exact else row.ulps,
                 0.0 if exact else float(ml_dtypes.finfo(dtype).eps))
    jitted = np.asarray(jit(row.fun)(*args))
    assert_close(jitted, expected, row.ulps, 0.0 if exact else float(ml_dtypes.finfo(dtype).eps))


@pytest.mark.parametrize(("row", "kind"), SMOOTH)
def test_jvp_is_the_central_difference(row: rows.Row, kind: str, rng: np.random.Generator) -> None:
    args = arguments(row, np.dtype("c16" if kind == "c" else "f8"))
    tangents = [rng.normal(size=a.shape) + (1j * rng.normal(size=a.shape) if kind == "c" else 0)
                for a in args]

    def numeric(fun: Any, h: float = 1e-5) -> np.ndarray:
        ahead, behind = ([a + s * h * t for a, t in zip(args, tangents)] for s in (1, -1))
        return (np.asarray(fun(*ahead)) - np.asarray(fun(*behind))) / (2 * h)

    out, tangent = jvp(row.fun, args, tangents)
    np.testing.assert_array_equal(out, row.fun(*args))
    np.testing.assert_allclose(tangent, numeric(row.fun), rtol=2e-6, atol=2e-6)

    def first(*xs: Any) -> Any:
        return jvp(row.fun, xs, tangents)[1]
    if row.name != "polygamma":
        second = jvp(first, args, tangents)[1]
        np.testing.assert_allclose(second, numeric(first), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(("row", "kind"), SMOOTH)
def test_vjp_is_the_transpose_of_jvp(row: rows.Row, kind: str, rng: np.random.Generator) -> None:
    args = arguments(row, np.dtype("c16" if kind == "c" else "f8"))

    def normal(like: Any) -> np.ndarray:
        x = rng.normal(size=like.shape)
        return x + 1j * rng.normal(size=like.shape) if np.iscomplexobj(like) else x
    tangents = [normal(a) for a in args]
    out, pull = vjp(row.fun, *args)
    ct = normal(np.asarray(out))
    out_tangent = np.asarray(jvp(row.fun, args, tangents)[1])
    forward = np.sum(out_tangent * ct).real
    backward = sum(np.sum(np.asarray(g) * t).real for g, t in zip(pull(ct), tangents))
    np.testing.assert_allclose(backward, forward, rtol=1e-9)


@pytest.mark.parametrize("row", FLAT)
def test_flat_functions_have_derivative_zero(row: rows.Row) -> None:
    if row.fun(*row.args).dtype == bool:
        return
    _, tangent = jvp(row.fun, row.args, [np.ones_like(a) for a in row.args])
    np.testing.assert_array_equal(tangent, np.zeros_like(row.args[0]))


@pytest.mark.parametrize("row", EVERY)
def test_vmap_is_the_loop(row: rows.Row) -> None:
    dtype = np.dtype(DTYPES[row.kinds[0]][0])
    args = arguments(row, dtype)
    stacked = [np.stack([a, a[::-1], np.roll(a, 1)], axis=1) for a in args]
    expected = np.stack([row.fun(*(s[:, i] for s in stacked)) for i in range(3)])
    np.testing.assert_allclose(vmap(row.fun, in_axes=1)(*stacked), expected, rtol=1e-12)
    if len(args) == 2:
        expected = np.stack([row.fun(args[0], stacked[1][:, i]) for i in range(3)])
        out = vmap(row.fun, in_axes=(None, 1))(args[0], stacked[1])
        np.testing.assert_allclose(out, expected, rtol=1e-12)


NAN, INF = np.nan, np.inf
# (function, point, derivatives of order 1, 2, …)
EDGES = [
    ("abs", lax.abs, 0.0, (1.0, 0.0)),
    ("sqrt", lax.sqrt, 0.0, (INF,)),
    ("max tie", lambda x: lax.max(x, 1.0), 1.0, (0.5,)),
    ("min tie", lambda x: lax.min(1.0, x), 1.0, (0.5,)),
    ("max itself", lambda x: lax.max(x, x), 2.0, (1.0,)),
    ("x**2.", lambda x: lax.pow(x, 2.0), 0.0, (0.0, 2.0, 0.0)),
    ("x**3", lambda x: lax.pow(x, 3), 0.0, (0.0, 0.0, 6.0, 0.0)),
    ("x**0.", lambda x: lax.pow(x, 0.0), 0.0, (0.0,)),
    ("(-2)**3.", lambda x: lax.pow(x, 3.0), -2.0, (12.0, -12.0)),
    ("0**y", lambda y: lax.pow(0.0, y), 2.0, (0.0,)),
    ("integer_pow 0", lambda x: lax.integer_pow(x, 0), 0.0, (0.0,)),
    ("integer_pow 1", lambda x: lax.integer_pow(x, 1), 0.0, (1.0, 0.0)),
    ("integer_pow 2", lambda x: lax.integer_pow(x, 2), 0.0, (0.0, 2.0, 0.0)),
    ("clamp below", lambda x: lax.clamp(0.0, x, 1.0), -1.0, (0.0,)),
    ("clamp inside", lambda x: lax.clamp(0.0, x, 1.0), 0.5, (1.0,)),
    ("clamp at", lambda x: lax.clamp(0.0, x, 1.0), 1.0, (0.0,)),
    ("clamp low", lambda x: lax.clamp(x, 0.0, 2.0), 1.0, (1.0,)),
    ("clamp high", lambda x: lax.clamp(0.0, 3.0, x), 1.0, (1.0,)),
    ("clamp crossed", lambda x: lax.clamp(x, 0.5, 1.0), 2.0, (0.0,)),
    ("bessel_i1e", special.bessel_i1e, 0.0, (0.5,)),
    ("rem", lambda y: lax.rem(5.0, y), 2.0, (-2.0,)),
    ("reduce_precision", lambda x: lax.reduce_precision(x, 5, 2), 1.1, (1.0,)),
    ("convert", lambda x: lax.convert_element_type(lax.square(x), "float32"), 3.0, (6.0, 2.0)),
    ("to int", lambda x: lax.convert_element_type(lax.convert_element_type(x, "int32"), "float64"),
     3.5, (0.0,)),
    ("bitcast", lambda x: lax.bitcast_convert_type(lax.bitcast_convert_type(x, "int64"),
                                                   "float64"), 3.5, (0.0,)),
    ("stop_gradient", lambda x: lax.mul(x, lax.stop_gradient(x)), 3.0, (3.0, 0.0)),
    ("barrier", lambda x: lax.mul(*lax.optimization_barrier((x, x))), 3.0, (6.0, 2.0)),
]


@pytest.mark.parametrize(("fun", "x", "expected"), [pytest.param(*e[1:], id=e[0]) for e in EDGES])
def test_derivatives_at_edges(fun: Any, x: float, expected: tuple[float, ...]) -> None:
    for value in expected:
        fun = grad(fun)
        np.testing.assert_equal(np.asarray(fun(x)), value)


def test_complex_derivative_at_zero() -> None:
    zero, one = np.complex128(0), np.complex128(1)
    assert jvp(lax.abs, (zero,), (one,))[1] == 0
    assert jvp(lax.sign, (zero,), (one,))[1] == 0


TOTAL = np.array([-NAN, -INF, -1.0, -0.0, 0.0, 1.0, INF, NAN])


def test_total_order() -> None:
    x, y = (a.ravel() for a in np.meshgrid(TOTAL, TOTAL, indexing="ij"))
    x[np.isnan(x)] = np.copysign(NAN, np.repeat(np.arange(8) - 3.5, 8)[np.isnan(x)])
    y[np.isnan(y)] = np.copysign(NAN, np.tile(np.arange(8) - 3.5, 8)[np.isnan(y)])
    i, j = np.repeat(np.arange(8), 8), np.tile(np.arange(8), 8)
    np.testing.assert_array_equal(choice.lt_to(x, y), i < j)
    np.testing.assert_array_equal(choice.le_to(x, y), i <= j)
    np.testing.assert_array_equal(choice.eq_to(x, y), i == j)


CASTS = [
    ([NAN, INF, -INF, 3e9, -1.5, 2.7], "float32", "int32",
     [0, 2**31 - 1, -2**31, 2**31 - 1, -1, 2]),
    ([NAN, INF, -INF, -1.5, 300.0], "float32", "uint8", [0, 255, 0, 0, 255]),
    ([NAN, 0.0, -0.0, 0.25], "float32", "bool", [True, False, False, True]),
    ([1j, 0.0], "complex64", "bool", [True, False]),
    ([-1, 256], "int32", "uint8", [255, 0]),
    ([True, False], "bool", "complex64", [1, 0]),
    ([1.5, -2.0], "float64", "bfloat16", [1.5, -2.0]),
    ([1.5 + 2j], "complex64", "complex128", [1.5 + 2j]),
]


@pytest.mark.parametrize(("values", "old", "new", "expected"), CASTS)
def test_convert_element_type(values: list, old: str, new: str, expected: list) -> None:
    out = lax.convert_element_type(np.array(values, old), new)
    assert out.dtype.name == new and not out.weak_type
    np.testing.assert_array_equal(out, np.array(expected, getattr(ml_dtypes, new, new)))


def test_complex_to_real_warns() -> None:
    with pytest.warns(np.exceptions.ComplexWarning, match=re.escape(
            "convert_element_type: complex128[2] to float64 drops the imaginary part; use "
            "lax.real to say so.")):
        out = lax.convert_element_type(np.array([1 + 2j, 3 - 1j]), "float64")
    np.testing.assert_array_equal(out, [1.0, 3.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        pull = vjp(lambda z: lax.convert_element_type(z, "float64"), np.array([1 + 2j]))[1]
    np.testing.assert_array_equal(pull(np.array([3.0]))[0], [3 + 0j])


def test_bitcast_widths() -> None:
    x = np.array([1.5, -2.25], "f4")
    for name in ("int32", "uint32", "int16", "uint8", "bfloat16"):
        out = lax.bitcast_convert_type(x, name)
        expected = x.view(getattr(ml_dtypes, name, name)).reshape(out.shape)
        np.testing.assert_array_equal(np.asarray(out).view("u1"), expected.view("u1"))
        np.testing.assert_array_equal(lax.bitcast_convert_type(out, "float32"), x)
    mapped = vmap(lambda v: lax.bitcast_convert_type(v, "int16"), in_axes=1)(x.reshape(1, 2))
    np.testing.assert_array_equal(mapped, x.view("i2").reshape(2, 1, 2))


def test_reduce_precision_rounds() -> None:
    x = np.linspace(-3, 3, 41).astype("f4")
    out = lax.reduce_precision(x, 8, 7)
    np.testing.assert_array_equal(out, x.astype(ml_dtypes.bfloat16).astype("f4"))


def test_scalar_selector_under_vmap() -> None:
    x, y = np.arange(6.0).reshape(2, 3), -np.ones((2, 3))
    flags = np.array([True, False, True])
    out = vmap(lax.select, in_axes=(0, None, 1))(flags, x[:, 0], y)
    np.testing.assert_array_equal(out, np.where(flags[:, None], x[:, 0], -1.0))
    out = vmap(lambda low, v: lax.clamp(low, v, 4.0), in_axes=(0, None))(np.arange(3.0), x)
    np.testing.assert_array_equal(out, np.stack([np.clip(x, k, 4.0) for k in range(3)]))
    out = vmap(lax.mul, in_axes=(0, None))(np.arange(3.0), x)
    np.testing.assert_array_equal(out, np.arange(3.0)[:, None, None] * x)


def test_scalars_join_arrays() -> None:
    x = np.ones(2, "f4")
    assert lax.add(x, 2).dtype == lax.mul(0.5, x).dtype == np.float32
    assert lax.add(x, np.ones((), "f4")).shape == (2,)
    out = lax.add(1, 2.5)
    assert out.weak_type and out == 3.5
    assert families._const(np.int8(3), 2).aval.dtype == np.int8
    np.testing.assert_array_equal(lax.mul(x.astype("f2"), x.astype("f2"), out_dtype="float32"), x)


def test_printed() -> None:
    x = np.ones(3, "f4")
    printed = [
        (lambda x: lax.exp(x), "exp a"), (lambda x: lax.integer_pow(x, 2), "integer_pow[y=2] a"),
        (lambda x: lax.add(x, 2), "add a 2.0:f32[]"),
        (lambda x: lax.mul(0.5, x), "mul 0.5:f32[] a"),
        (lambda x: lax.clamp(0, x, 1), "clamp 0.0:f32[] a 1.0:f32[]"), (lax.reciprocal,
                                                                   "integer_pow[y=-1] a"),
        (lambda x: lax.round(x), "round[rounding_method=0] a"),
        (lambda x: lax.reduce_precision(x, 5, 10),
         "reduce_precision[exponent_bits=5 mantissa_bits=10] a"),
    ]
    for fun, text in printed:
        assert f"= {text}" in " ".join(str(olympus.make_olympuspr(fun)(x)).split())


def test_accuracy() -> None:
    x = np.linspace(0.5, 2, 5)
    for fun in (lax.exp, lax.exp2, lax.expm1, lax.log, lax.log1p, lax.log2, lax.logistic, lax.sin,
                lax.cos, lax.tan, lax.tanh, lax.cbrt, lax.sqrt, lax.rsqrt):
        for accuracy in (lax.AccuracyMode.HIGHEST, lax.Tolerance(ulps=2)):
            np.testing.assert_allclose(fun(x, accuracy=accuracy), fun(x), rtol=1e-14)
            _, tangent = jvp(lambda v, fun=fun, a=accuracy: fun(v, accuracy=a), (x,), (x,))
            np.testing.assert_allclose(tangent, jvp(fun, (x,), (x,))[1], rtol=1e-14)
    assert lax.Tolerance(1e-3) == lax.Tolerance(1e-3) != lax.Tolerance(ulps=1)


F, I, B = np.ones(3, "f4"), np.ones(3, "i4"), np.ones(3, bool)
ERRORS = [
    (lambda: lax.add(F, I), TypeError, "add: operands are float32[3], int32[3]; one dtype is"),
    (lambda: lax.add(F, np.ones((2, 3), "f4")), TypeError,
     "add: operands are float32[3], float32[2,3]; equal shapes are required"),
    (lambda: lax.add(I, 2.5), TypeError, "add: operands are int32[3], float64[]; one dtype is"),
    (lambda: lax.add(B, B), TypeError, "add: operand 0 is bool[3]; dtypes accepted are signed"),
    (lambda: lax.add(np.ones(2, "u1"), 300), OverflowError, "the Python int 300 given next to"),
    (lambda: lax.exp(I), TypeError, "exp: operand 0 is int32[3]; dtypes accepted are floating"),
    (lambda: lax.rem(F + 0j, F + 0j), TypeError, "rem: operand 0 is complex64[3]"),
    (lambda: lax.sin([1.0]), TypeError, "a value of type builtins.list given"),
    (lambda: lax.integer_pow(I, -1), TypeError, "integer_pow: int32[3] to the power -1 given"),
    (lambda: lax.integer_pow(F, 2.5), TypeError, "integer_pow: exponent 2.5 given"),
    (lambda: lax.pow(I, I), TypeError, "pow: operand 0 is int32[3]; dtypes accepted"),
    (lambda: lax.complex(F.astype("f2"), F.astype("f2")), TypeError, "float32 or float64 is"),
    (lambda: lax.real(F), TypeError, "real: operand 0 is float32[3]; dtypes accepted are complex"),
    (lambda: lax.select(B, F, I), TypeError, "select_n: operands are bool[3], int32[3], float32"),
    (lambda: lax.select(F, F, F), TypeError, "select_n: which is float32[3]; bool or int32"),
    (lambda: lax.select_n(B, F, F, F), TypeError, "select_n: bool which given with 3 cases"),
    (lambda: lax.select_n(B[:2], F, F), TypeError, "which of rank 0 or of the cases' shape is"),
    (lambda: lax.select_n(True), ValueError, "select_n: no cases given"),
    (lambda: lax.clamp(F[:2], F, 1.0), TypeError, "equal shapes are required"),
    (lambda: lax.clamp(F, np.float32(1), 2.0), TypeError,
     "clamp: bounds float32[3] and float32[] given"),
    (lambda: lax.bitcast_convert_type(B, "int8"), TypeError, "bitcast_convert_type: bool[3] to"),
    (lambda: lax.bitcast_convert_type(np.ones((3, 3), "i1"), "float32"), ValueError,
     "a last axis of size 4 is required"),
    (lambda: lax.reduce_precision(F, 0, 1), ValueError, "exponent_bits=0, mantissa_bits=1 given"),
    (lambda: lax.exp(F, accuracy=3), TypeError, "accuracy: 3 given; an AccuracyMode, a Tolerance"),
    (lambda: lax.Tolerance(), ValueError, "Tolerance: atol=0.0, rtol=0.0, ulps=0 given"),
    (lambda: lax.round(F, 7), ValueError, "7 is not a valid RoundingMethod"),
    (lambda: lax.stop_gradient({"a": "s"}), TypeError, "a value of type builtins.str given"),
    (lambda: grad(lambda x: lax.nextafter(x, 2.0))(1.0), NotImplementedError,
     "nextafter: differentiated; it has no derivative"),
]


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS)
def test_errors(call: Any, kind: type, message: str) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        call()
