"""NumPy-like functions against NumPy: values, shapes, dtypes, weak types and refusals."""

import sys

import ml_dtypes
import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import grad
from olympus._src.core.staging import stage
from olympus._src.numpy import (
    arithmetic, conditions, creation, einsum, elementary, integers, logic, predicates, products,
    promote, reductions, statistics, trigonometry,
)
from olympus._src.numpy.linalg import norms as linalg
from olympus._src.runtime import eager  # noqa: F401  (installs evaluation)

MODULES = (arithmetic, logic, elementary, trigonometry, conditions, predicates, reductions,
           statistics, products, integers)
DTYPES = ("bool", "int8", "uint8", "int32", "float16", "bfloat16", "float32", "complex64")
REAL = DTYPES[1:-1]
FLOATS = ("float16", "bfloat16", "float32")


def find(name):
    return next(getattr(m, name) for m in MODULES if hasattr(m, name))


def sample(rng, dtype, shape):
    x = rng.normal(size=shape) * 3
    if dtype == "complex64":
        return (x + 1j * rng.normal(size=shape)).astype(dtype)
    if dtype == "bool":
        return x > 0
    return (np.abs(x) if dtype == "uint8" else x).astype(getattr(ml_dtypes, dtype, dtype))


def wide(x):
    if isinstance(x, np.ndarray) and x.dtype.name in FLOATS[:2]:
        return x.astype(np.float64)
    return x


def check(got, want, tol=1e-4):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    kind = np.complex128 if want.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(got.astype(kind), want.astype(kind), rtol=tol, atol=tol)


BINARY = [("add", DTYPES), ("subtract", DTYPES[1:]), ("multiply", DTYPES), ("divide", DTYPES),
          ("maximum", DTYPES), ("minimum", DTYPES), ("equal", DTYPES), ("not_equal", DTYPES),
          ("less", DTYPES), ("less_equal", DTYPES), ("greater", DTYPES),
          ("greater_equal", DTYPES), ("logical_and", DTYPES), ("logical_xor", DTYPES),
          ("floor_divide", ("int8", "uint8", "int32", "float32")),
          ("remainder", ("int8", "uint8", "int32", "float32")),
          ("fmod", ("int8", "uint8", "int32", "float32")), ("bitwise_and", DTYPES[:4]),
          ("bitwise_xor", DTYPES[:4]), ("hypot", ("float32",)), ("arctan2", ("float32",)),
          ("logaddexp", ("float32",)), ("logaddexp2", ("float32",)), ("copysign", ("float32",)),
          ("gcd", ("int32", "uint8")), ("lcm", ("int32",))]


@pytest.mark.parametrize(("name", "dtype"), [(n, d) for n, ds in BINARY for d in ds])
def test_binary_is_numpys(name, dtype, rng):
    x, y = sample(rng, dtype, (3, 4)), sample(rng, dtype, (4,))
    if name in ("divide", "floor_divide", "remainder", "fmod"):
        y = np.where(y == 0, np.ones_like(y), y)
    tol = 2e-2 if "16" in dtype else 1e-4
    check(find(name)(x, y), getattr(np, name)(wide(x), wide(y)), tol)


UNARY = [("absolute", DTYPES), ("sign", DTYPES[1:]), ("square", DTYPES[1:]), ("real", DTYPES),
         ("imag", DTYPES), ("conjugate", DTYPES), ("logical_not", DTYPES), ("exp", DTYPES),
         ("sin", DTYPES), ("tanh", DTYPES), ("expm1", DTYPES), ("arctan", DTYPES),
         ("rint", DTYPES[1:]), ("isnan", DTYPES), ("isfinite", DTYPES), ("sinc", DTYPES),
         ("floor", REAL), ("trunc", REAL), ("angle", DTYPES), ("signbit", REAL),
         ("arcsinh", DTYPES), ("nan_to_num", FLOATS), ("isreal", DTYPES), ("count_nonzero", DTYPES)]


@pytest.mark.parametrize(("name", "dtype"), [(n, d) for n, ds in UNARY for d in ds])
def test_unary_is_numpys(name, dtype, rng):
    x = sample(rng, dtype, (3, 4))
    check(find(name)(x), getattr(np, name)(wide(x)),
          3e-2 if dtype != "float32" and dtype != "complex64" else 1e-4)


SPECIAL = np.array([0., -0., 1.5, -2.5, np.inf, -np.inf, np.nan, 1e30, 1e-30], np.float32)


@pytest.mark.parametrize("name", ["signbit", "rint", "trunc", "isposinf", "isneginf", "isinf",
                                  "nan_to_num", "modf", "frexp", "absolute", "sign"])
def test_special_values(name):
    got, want = find(name)(SPECIAL), getattr(np, name)(SPECIAL)
    for g, w in zip(*((got, want) if isinstance(want, tuple) else ((got,), (want,)))):
        np.testing.assert_array_equal(np.asarray(g), w)


@pytest.mark.parametrize("name", ["sum", "mean", "std", "var", "all", "any", "max", "min", "ptp"])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions(name, axis, dtype, rng):
    if name in ("max", "min", "ptp") and dtype == "complex64" or (name, dtype) == ("ptp", "bool"):
        return
    x = sample(rng, dtype, (3, 4, 2))
    tol = 1e-1 if "16" in dtype else 1e-4
    fun, numpys = find(name), getattr(np, name)
    both = olympus.jit(lambda x: [fun(x, axis=axis, keepdims=kept) for kept in (False, True)])
    for got, kept in zip(both(x), (False, True)):
        check(got, numpys(wide(x), axis=axis, keepdims=kept), tol)


def test_the_sum_of_nothing_is_the_initial_value():
    """-0.0 came out as 0.0, its sum with the neutral element."""
    for x, axis in ((onp.zeros(0), None), (onp.zeros((0, 2)), 0)):
        assert np.signbit(reductions.sum(x, axis, initial=-0.0)).all()


def test_masks_and_initial(rng):
    x, w = sample(rng, "float32", (3, 4)), sample(rng, "bool", (3, 4))
    w[0] = True
    check(reductions.sum(x, where=w, initial=2.), np.sum(x, where=w, initial=2.))
    check(reductions.max(x, 0, where=w, initial=-9.), np.max(x, 0, where=w, initial=-9.))
    check(statistics.mean(x, 0, where=w), np.mean(x, 0, where=w))
    check(statistics.var(x, ddof=1, where=w), np.var(x, ddof=1, where=w))
    assert float(reductions.sum(np.zeros((0, 3)))) == 0.0


NAN_FUNCTIONS = ["nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanstd", "nanvar",
                 "nanmedian", "nancumsum", "nancumprod", "nanargmax", "nanargmin"]


@pytest.mark.parametrize("name", NAN_FUNCTIONS)
def test_without_nan(name, rng):
    x = sample(rng, "float32", (3, 4))
    x[0, 1] = x[2, 3] = np.nan
    check(find(name)(x, axis=1), getattr(np, name)(x, axis=1))


@pytest.mark.parametrize("fun", [
    lambda x: onp.quantile(x, 0.5) - onp.nanquantile(x, 0.25), lambda x: -onp.median(x),
    lambda x: onp.average(x, returned=True)[1] + onp.nan, lambda x: onp.sum(np.nan) * 2,
    lambda x: onp.nanmax(np.nan) + onp.min(1)])
def test_what_no_traced_element_decides_is_an_array_under_a_trace(fun):
    """It was a literal, which has no operators."""
    assert np.isnan(olympus.jit(fun)(np.zeros((2, 0), np.float32)))


@pytest.mark.parametrize("method", statistics.METHODS)
def test_quantiles(method, rng):
    x, q = sample(rng, "float32", (3, 5)), np.array([0.1, 0.5, 0.9])
    check(statistics.quantile(x, q, axis=1, method=method),
          np.quantile(x, q, axis=1, method=method))
    check(statistics.percentile(x, 30, method=method, keepdims=True),
          np.percentile(x, 30, method=method, keepdims=True))


MATMUL = [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)),
          ((5, 2, 3), (5, 3, 4)), ((1, 2, 3), (5, 3, 4)), ((5, 1, 2, 3), (4, 3, 2)),
          ((3,), (5, 3, 4)), ((5, 2, 3), (3,)), ((0, 2, 3), (0, 3, 2)), ((2, 0), (0, 3))]


@pytest.mark.parametrize("shapes", MATMUL)
@pytest.mark.parametrize("dtype", ["bool", "int32", "float32", "complex64"])
def test_matmul(shapes, dtype, rng):
    x, y = (sample(rng, dtype, s) for s in shapes)
    check(products.matmul(x, y), np.matmul(x, y), 1e-3)


EINSUM = [("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ii", (3, 3)),
          ("ii->i", (3, 3)), ("ij->ji", (2, 3)), ("ij->", (2, 3)), ("i,j->ij", (2,), (3,)),
          ("...ij,jk->...ik", (5, 2, 3), (3, 4)), ("ijj,jk->ik", (2, 3, 3), (3, 4)),
          ("abc,cd,def,f->abe", (2, 3, 4), (4, 5), (5, 6, 7), (7,)), ("i,->i", (3,), ()),
          ("ij,k->i", (2, 3), (4,)), ("b...,b...->...", (2, 3), (2, 3)), ("iij->j", (3, 3, 2)),
          ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5))]


@pytest.mark.parametrize("row", EINSUM, ids=lambda row: row[0])
@pytest.mark.parametrize("optimize", ["auto", True, False])
def test_einsum(row, optimize, rng):
    operands = [sample(rng, "float32", s) for s in row[1:]]
    check(einsum.einsum(row[0], *operands, optimize=optimize), np.einsum(row[0], *operands))


@pytest.mark.parametrize("order", [None, 1, 2, 0, 3, np.inf, -np.inf, -1])
def test_vector_norms(order, rng):
    x = sample(rng, "complex64", (5, 3))
    check(linalg.norm(x, order, axis=0), np.linalg.norm(x, order, axis=0))


@pytest.mark.parametrize("order", [None, "fro", 1, -1, np.inf, -np.inf])
def test_matrix_norms(order, rng):
    x = sample(rng, "float32", (2, 5, 3))
    check(linalg.norm(x, order, axis=(2, 0), keepdims=True),
          np.linalg.norm(x, order, axis=(2, 0), keepdims=True))


CREATION = [("arange", (2, 9, 3)), ("arange", (0.0, 1.0, 0.1)), ("arange", (3, 0)),
            ("linspace", (0, 1, 5)), ("linspace", (0, 1, 0)), ("logspace", (0, 2, 3)),
            ("geomspace", (1, 100, 3)), ("eye", (2, 3, 1)), ("tri", (2, 3, -1)),
            ("identity", (3,)), ("vander", (np.arange(3.),)), ("indices", ((2, 3),)),
            ("diag", (np.arange(3), -1)), ("diag", (np.ones((2, 3)), 1)),
            ("diagflat", (np.ones((2, 2)), 1)), ("tril", (np.ones((3, 4)), 1)),
            ("triu", (np.ones((2, 3, 4)), -1))]


@pytest.mark.parametrize(("name", "args"), CREATION)
def test_creation(name, args):
    check(getattr(onp, name)(*args), getattr(np, name)(*args))


I32, F32, U8, B = (np.ones(3, d) for d in ("int32", "float32", "uint8", "bool"))
# (function, operands, dtype, weak type): outputs of JAX 0.10.2.
PROMOTED = [("add", (F32, 1.0), "float32", False), ("add", (I32, 1.0), "float32", True),
            ("add", (B, 1), "int32", True), ("add", (U8, 1), "uint8", False),
            ("add", (1, 2), "int32", True), ("add", (I32, 1j), "complex64", True),
            ("add", (U8, I32), "int32", False), ("power", (2, I32), "int32", False),
            ("divide", (U8, 2), "float32", False), ("sqrt", (True,), "float32", False),
            ("sin", (2,), "float32", True), ("floor", (B,), "bool", False),
            ("power", (I32, 2.0), "float32", True), ("clip", (I32, 1, 2.5), "float32", True),
            ("sum", (B,), "int32", False), ("sum", (U8,), "uint32", False),
            ("mean", (B,), "float32", False), ("cumsum", (U8,), "uint8", False)]


@pytest.mark.parametrize(("name", "args", "dtype", "weak"), PROMOTED)
def test_result_types(name, args, dtype, weak):
    aval = find(name)(*args).aval
    assert (aval.dtype.name, aval.weak_type) == (dtype, weak)


REFUSED = [(lambda: arithmetic.add([1], 2), TypeError, "add: operand 0 is of type list"),
           (lambda: arithmetic.add("a", 2), TypeError, "add: operand 0 is of type str"),
           (lambda: arithmetic.add(1, None), TypeError, "add: operand 1 is of type NoneType"),
           (lambda: arithmetic.add(I32, 2**40), OverflowError, "1099511627776"),
           (lambda: arithmetic.add(np.ones(3), np.ones(4)), TypeError, "incompatible shapes"),
           (lambda: arithmetic.subtract(B, B), TypeError, "bool"),
           (lambda: arithmetic.power(I32, -1), TypeError, "negative powers"),
           (lambda: arithmetic.add(1, 2, out=3), TypeError, "out"),
           (lambda: reductions.max(np.zeros(0)), ValueError, "no identity"),
           (lambda: reductions.argmax(np.zeros(0)), ValueError, "empty sequence"),
           (lambda: reductions.sum(I32, 1), ValueError, "out of bounds"),
           (lambda: reductions.sum(F32, where=1.0), ValueError, "boolean"),
           (lambda: products.matmul(I32, 2), ValueError, "at least one axis"),
           (lambda: products.matmul(np.ones((2, 3)), np.ones((2, 3))), TypeError, "shape"),
           (lambda: creation.array(None), ValueError, "None"),
           (lambda: creation.array("a"), TypeError, "str"),
           (lambda: creation.array(2**40), OverflowError, "int32"),
           (lambda: creation.array(300, "uint8"), OverflowError, "uint8"),
           (lambda: einsum.einsum("ij,jk", np.ones((2, 3)), np.ones((2, 3))), ValueError, "'j'")]


@pytest.mark.parametrize(("call", "error", "text"), REFUSED)
def test_refusals(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_scalars_become_literals():
    aval = creation.ones(3).aval
    program = stage(lambda x: [arithmetic.add(arithmetic.multiply(x, 2), 0.5)], [aval])
    assert [e.primitive.name for e in program.olympuspr.eqns] == ["mul", "add"]


def test_frames_of_add():
    aval, frames = creation.ones(3).aval, []

    def add(x, y):
        sys.setprofile(lambda frame, event, arg: frames.append(frame) if event == "call" else None)
        try:
            return [arithmetic.add(x, y)]
        finally:
            sys.setprofile(None)

    for _ in range(2):
        frames.clear()
        stage(add, [aval, aval])
    assert len(frames) <= 10


@pytest.mark.parametrize("name", ["ldexp", "vecdot", "matvec", "vecmat", "solve"])
def test_rank_promotion_of_axes_that_broadcast(name):
    function = onp.linalg.solve if name == "solve" else getattr(onp, name)
    matrix, vector = onp.eye(3), onp.ones(3)
    x, y = {"ldexp": (vector, vector.astype(int)), "vecdot": (vector, vector),
            "vecmat": (vector, matrix)}.get(name, (matrix, vector))
    with olympus.numpy_rank_promotion("raise"):
        assert function(x, y).size in (1, 3)
        with pytest.raises(ValueError, match=f"{name}: operands .* ranks"):
            function(x[None], y)
    assert function(x[None], y).ndim == function(x, y).ndim + 1


def test_rank_promotion_option():
    x, y = creation.ones((2, 3)), creation.ones(3)
    with promote.config.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="ranks"):
        arithmetic.add(x, y)
    with promote.config.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="ranks"):
        arithmetic.add(x, y)


def test_derivatives_at_special_points():
    assert float(grad(lambda x: elementary.logaddexp(x, 0.0))(-np.inf)) == 0.0
    assert float(grad(trigonometry.sinc)(0.0)) == 0.0
    np.testing.assert_allclose(grad(grad(trigonometry.sinc))(0.0), -np.pi**2 / 3, rtol=1e-5)


@pytest.mark.parametrize("decimals", [-1, 1, 3])
def test_rounded_numbers_are_numpys_to_the_last_bit(decimals):
    x = np.float32(10) * np.random.default_rng(0).normal(size=1000).astype(np.float32)
    assert (np.asarray(onp.round(x, decimals)) == np.round(x, decimals)).all()
