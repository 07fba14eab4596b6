"""Elementwise operations at their edges; `properties.py` has what holds for all."""

from __future__ import annotations

import re
import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import olympus
from olympus import grad, jvp, lax, numpy as onp, vjp, vmap
from olympus._src.lax import comparison
from olympus._src.lax.special import classical as special


@pytest.fixture(autouse=True)
def _x64() -> Any:
    with olympus.enable_x64(True):
        yield


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
    np.testing.assert_array_equal(comparison.lt_to(x, y), i < j)
    np.testing.assert_array_equal(comparison.le_to(x, y), i <= j)
    np.testing.assert_array_equal(comparison.eq_to(x, y), i == j)


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


def test_complex_numbers_without_an_imaginary_part_are_real() -> None:
    """As a NumPy scalar is, with the warning; was: TypeError for each that is a Python complex."""
    assert lax.convert_element_type(complex(np.nan, 0), "int32") == 0
    assert lax.convert_element_type(complex(2.5, -0.0), "float32") == 2.5
    with pytest.warns(np.exceptions.ComplexWarning):
        assert lax.convert_element_type(np.complex128(1 + 3j), "int32") == 1
    with pytest.raises(TypeError, match="take its real part"):
        lax.convert_element_type(1 + 3j, "int32")


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
    out = lax.add(1.0, 2.5)
    assert out.weak_type and out == 3.5
    np.testing.assert_array_equal(lax.mul(x.astype("f2"), x.astype("f2"), out_dtype="float32"), x)


@pytest.mark.parametrize("name", [
    "add", "sub", "mul", "div", "max", "min", "rem", "pow", "atan2", "nextafter", "complex", "eq",
    "ne", "lt", "le", "gt", "ge", "igamma", "igammac", "zeta", "polygamma", "random_gamma_grad"])
def test_axes_of_size_1_are_broadcast(name: str) -> None:
    fun = getattr(lax, name)
    x, y = np.linspace(1, 2, 6).reshape(2, 3, 1), np.linspace(2, 3, 8).reshape(2, 1, 4)
    for a, b in ((x, y), (x, y[:1]), (x[:, :1], y), (x[:0], y[:1]), (x[0], y[0])):
        np.testing.assert_array_equal(fun(a, b), fun(*np.broadcast_arrays(a, b)))
    if name in ("eq", "ne", "lt", "le", "gt", "ge", "nextafter", "complex", "zeta", "polygamma"):
        return
    one, other = vjp(fun, x, y)[1](np.ones((2, 3, 4)))
    whole = vjp(fun, *map(np.array, np.broadcast_arrays(x, y)))[1](np.ones((2, 3, 4)))
    np.testing.assert_allclose(one, np.sum(whole[0], 2, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(other, np.sum(whole[1], 1, keepdims=True), rtol=1e-12)


@pytest.mark.parametrize("name", ["bfloat16", "float32", "float64"])
def test_angles_of_subnormal_numbers_are_no_nan(name: str) -> None:
    with olympus.enable_x64(True):
        info = olympus.dtypes.finfo(name)
        tiny, least = float(info.smallest_normal), float(info.smallest_subnormal)
        sizes = [0, least, 3 * least, tiny / 2, tiny - least, tiny, tiny * 1.5, tiny * 1e3]
        numbers = np.array([*sizes, *[-n for n in sizes]]).astype(info.dtype)
        y, x = np.repeat(numbers, len(numbers)), np.tile(numbers, len(numbers))
        wanted = np.arctan2(y.astype("float64"), x.astype("float64"))
        for fun in lax.atan2, olympus.jit(lax.atan2):
            found = np.asarray(fun(y, x)).astype("float64")
            np.testing.assert_allclose(found, wanted, rtol=float(info.eps))
            np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


@pytest.mark.parametrize("repeats", [1, 200])
@pytest.mark.parametrize("name", ["bfloat16", "float16", "float32", "float64"])
def test_cube_roots_of_subnormal_numbers_keep_size_and_sign(name: str, repeats: int) -> None:
    with olympus.enable_x64(True):
        info = olympus.dtypes.finfo(name)
        tiny, least = float(info.smallest_normal), float(info.smallest_subnormal)
        sizes = np.array([0, least, 3 * least, tiny / 3, tiny - least, tiny, 27, np.inf, np.nan])
        x = np.tile([*sizes, *-sizes], repeats).astype(info.dtype)
        found = np.asarray(lax.cbrt(x)).astype("float64")
        wanted = np.cbrt(x.astype("float64"))
        # On some processors the roots of ordinary float64 are up to 1.6 units off, too.
        np.testing.assert_allclose(found, wanted, rtol=2 * float(info.eps))
        np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("repeats", [1, 64])      # 64 for the formulas of large arrays
def test_the_angle_of_a_subnormal_and_an_ordinary_number(name: str, repeats: int) -> None:
    with olympus.enable_x64(True):
        info = olympus.dtypes.finfo(name)
        tiny, least = float(info.smallest_normal), float(info.smallest_subnormal)
        sizes = [least, tiny / 2 + least, tiny, 1e-3, 1, 300, float(info.max), np.inf]
        numbers = np.array([*sizes, *[-n for n in sizes]]).astype(info.dtype)
        y, x = np.repeat(numbers, 16 * repeats), np.tile(numbers, 16 * repeats)
        wanted = np.arctan2(y.astype("float64"), x.astype("float64"))
        found = np.asarray(lax.atan2(y, x)).astype("float64")
    np.testing.assert_allclose(found, wanted, rtol=float(info.eps), atol=tiny)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


def test_betainc_broadcasts_axes_of_size_1() -> None:
    a, b, x = np.full((3, 1), 2.0), np.linspace(1, 2, 4)[None], np.full((1, 1), 0.5)
    np.testing.assert_array_equal(lax.betainc(a, b, x), lax.betainc(*map(np.array, (
        np.broadcast_arrays(a, b, x)))))


def pair(x: Any) -> Any:
    return lax.broadcast(x, (2,))


def matrix(x: Any) -> Any:
    return lax.broadcast(x, (1, 1))


WEAK_AS_THE_OPERAND = [
    lax.is_finite, lambda x: lax.reduce_sum(pair(x), (0,)), lambda x: lax.top_k(pair(x), 1)[0],
    lambda x: lax.approx_max_k(pair(x), 1)[0], lambda x: lax.linalg.cholesky(matrix(x)),
    lambda x: lax.linalg.eigh(matrix(x))[1], lambda x: lax.linalg.lu(matrix(x))[0],
    lambda x: lax.linalg.svd(matrix(x), compute_uv=False), lambda x: lax.linalg.qr(matrix(x))[0]]
WEAK_IF_BOTH_ARE = [
    lax.add, lax.max, lax.pow, lax.eq, lax.ne, lax.lt, lax.ge,
    lambda x, y: lax.clamp(x, y, y), lambda x, y: lax.clamp(y, x, y),
    lambda x, y: lax.clamp(y, y, x), lambda x, y: lax.select(True, x, y),
    lambda x, y: lax.reduce(pair(x), y, lambda a, b: lax.mul(a, lax.exp(b)), (0,)),
    lambda x, y: lax.rng_uniform(x, y, (2,)),
    lambda x, y: lax.linalg.triangular_solve(matrix(x), matrix(y), left_side=True)]


@pytest.mark.parametrize("fun", WEAK_AS_THE_OPERAND)
def test_results_are_weak_as_the_operand(fun: Any) -> None:
    assert fun(olympus.numpy.asarray(0.5)).weak_type and not fun(np.float64(0.5)).weak_type


@pytest.mark.parametrize("fun", WEAK_IF_BOTH_ARE)
def test_results_are_weak_if_both_operands_are(fun: Any) -> None:
    weak, strong = olympus.numpy.asarray(0.5), np.float64(0.5)
    assert fun(weak, weak).weak_type
    assert not any(fun(*xs).weak_type for xs in ((weak, strong), (strong, weak)))


def test_an_update_makes_strong() -> None:
    weak = lax.broadcast(olympus.numpy.asarray(0.5), (2,))
    assert weak.weak_type and not lax.dynamic_update_slice(weak, weak[:1], (0,)).weak_type


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


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32"])
def test_negative_constants_have_no_leading_zeros(dtype):
    """XLA folds count-leading-zeros of a signed constant to a negative number."""
    x = np.asarray([-1, -100, 5, 0]).astype(dtype)
    bits = x.itemsize * 8
    assert olympus.jit(lambda: lax.clz(x))().tolist() == [0, 0, bits - 3, bits]


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_nextafter_of_every_kind_of_number(dtype: str) -> None:
    """Bit by bit, subnormals among them, which XLA:CPU takes for zeros elsewhere."""
    real = np.dtype(getattr(ml_dtypes, dtype, dtype))
    bits = np.dtype(f"uint{8 * real.itemsize}")
    tiny = np.array([onp.finfo(dtype).tiny], real).view(bits)[0]
    ends = np.array([0, 1, 2, 3, tiny - 2, tiny - 1, tiny, tiny + 1], bits).view(real)
    x = np.concatenate([ends, -ends, np.array([1, onp.finfo(dtype).max, np.inf, np.nan], real)])
    a, b = [v.ravel() for v in np.meshgrid(x, x)]
    with olympus.enable_x64(True):
        found = np.asarray(olympus.jit(lax.nextafter)(a, b))
    with np.errstate(over="ignore"):
        wanted = np.nextafter(a, b)
    missing = wanted != wanted
    assert np.array_equal(found != found, missing)
    assert np.array_equal(found.view(bits)[~missing], wanted.view(bits)[~missing])


@pytest.mark.parametrize("dtype", ["int4", "uint4", "int8", "int32"])
def test_bits_of_negative_numbers_are_counted(dtype: str) -> None:
    x = onp.arange(-8, 8).astype(dtype)
    width = int(dtype.removeprefix("u").removeprefix("int"))
    known = [int(v) % 2**width for v in np.asarray(x).astype(int)]
    for run in (lambda f: f, olympus.jit):
        assert run(lax.population_count)(x).tolist() == [bin(v).count("1") for v in known]
        assert run(onp.bitwise_count)(x).tolist() == [
            bin(abs(int(v))).count("1") for v in np.asarray(x).astype(int)]
