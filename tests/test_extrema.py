"""Maxima and minima keep NaN at every size, where XLA:CPU takes other kernels, and over devices."""

from __future__ import annotations

import warnings
from typing import Any

import eight_devices
import extrema_cases
import ml_dtypes
import numpy as np
import properties
import pytest

import olympus
import olympus.numpy as onp
from olympus import enable_x64, grad, jit, lax, vmap

# Sizes around those from which XLA hands reductions to libraries, and from which ours are by
# pieces; axes whose pieces divide them and do not.
SHAPES: list[tuple[int, ...]] = [
    (5,), (1000,), (4095,), (4096,), (8191,), (8193,), (100_000,), (64, 64), (127, 65), (15, 700),
    (700, 15), (1000, 129), (8, 20_000), (30, 20, 40), (0, 3), (1, 9000)]
FLOATS = ["float32", "float64", "bfloat16", "float16"]
SMALL = ["float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"]


def axes_of(ndim: int) -> list[tuple[int, ...]]:
    return {1: [(0,)], 2: [(0,), (1,), (0, 1)], 3: [(0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2)]}[
        ndim]


def numbers(shape: tuple[int, ...], dtype: str, missing: bool) -> np.ndarray:
    rng = np.random.default_rng(len(shape) + sum(shape))
    x = rng.standard_normal(shape)
    if missing and x.size:
        for at in (0, x.size // 3, x.size - 1)[:1 + (x.size > 64) * 2]:
            x.reshape(-1)[at] = np.nan
    return x.astype(getattr(ml_dtypes, dtype, dtype))


@pytest.mark.parametrize("dtype", FLOATS + SMALL)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_nan_is_the_extremum(shape: tuple[int, ...], dtype: str) -> None:
    if dtype in SMALL and shape not in SHAPES[4:9:2]:
        pytest.skip("one kernel for all sizes")
    axes = [a for a in axes_of(len(shape)) if 0 not in [shape[i] for i in a]]

    def all_of(x: Any) -> list[Any]:
        return [f(y, a) for f in (lax.reduce_max, lax.reduce_min) for a in axes
                for y in (x, x + x)]    # one is computed before

    with enable_x64(True):
        run = jit(all_of)
        for missing in (False, True):
            x = numbers(shape, dtype, missing and dtype != "float4_e2m1fn")
            found = iter(run(x))
            for f in (np.max, np.min):
                for a in axes:
                    for y in (x, x + x):
                        wanted = f(y.astype(np.float64), a)
                        np.testing.assert_array_equal(
                            np.asarray(next(found)).astype(np.float64), wanted)


@pytest.mark.parametrize("dtype", [*FLOATS, "float8_e4m3fn", "complex64"])
def test_extrema_of_the_numbers_beside_nan(dtype: str) -> None:
    """Of columns with NaN alone NaN, and no place; float8_e4m3fn has no infinity to put there."""
    rng = np.random.default_rng(4)
    wide = np.float64 if dtype != "complex64" else np.complex128
    x = rng.standard_normal((33, 31)).astype(wide).astype(getattr(ml_dtypes, dtype, dtype))
    x[rng.random(x.shape) < 0.3], x[:, 4] = np.nan, np.nan
    values, axes = x.astype(wide), (None, 0, 1)
    with enable_x64(True):
        run = properties.compiled(lambda x: [[getattr(onp, name)(x, a) for a in axes] for name in (
            "nanmax", "nanmin", *(["nanargmax", "nanargmin"] if wide is np.float64 else []))])
        found = run(x)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, results in zip(("nanmax", "nanmin"), found):
            for a, y in zip(axes, results):
                np.testing.assert_array_equal(np.asarray(y).astype(wide),
                                              getattr(np, name)(values, a))
    for sign, results in zip((1, -1), found[2:]):
        filled = np.where(np.isnan(values), -np.inf, sign * values)
        for a, y in zip(axes, results):
            place = np.where(np.isnan(values).all(a), -1, filled.argmax(a))
            np.testing.assert_array_equal(y, place)


def test_the_derivative_of_an_extremum_beside_nan() -> None:
    """Equal extrema share it, and it is 0 where there is no number."""
    x = onp.array([[1.0, np.nan, 3.0, 3.0], [np.nan] * 4, [2.0, 1.0, 0.0, -1.0]])
    slope = properties.compiled(grad(
        lambda x: onp.nanmax(x, 1).at[1].set(onp.nanmin(x, 1)[1]).sum()))
    np.testing.assert_array_equal(slope(x), [[0, 0, 0.5, 0.5], [0] * 4, [1, 0, 0, 0]])


@pytest.mark.parametrize("axis", [0, 1, (1, 2)])
def test_any_and_all_of_computed_rows(axis: Any) -> None:
    x = np.random.default_rng(1).integers(0, 9, (16, 48, 64)).astype(np.float32)
    x[3], x[:, 5] = 2, 2
    found = properties.compiled(lambda x, y: [(x == y).all(axis), (x != y).any(axis)])(x, x[3])
    np.testing.assert_array_equal(found[0], (x == x[3]).all(axis))
    np.testing.assert_array_equal(found[1], (x != x[3]).any(axis))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "uint32", "int64", "uint64"])
def test_extrema_of_integers(dtype: str) -> None:
    kind = np.iinfo(dtype)
    with enable_x64(True):
        for shape in ((8191,), (8193,), (512, 15), (512, 17), (7, 2, 1001), (0, 3)):
            x = np.random.default_rng(0).integers(kind.min, kind.max, shape, dtype, endpoint=True)
            for axes in axes_of(len(shape)):
                for fun, oracle, start in ((lax.reduce_max, np.max, kind.min),
                                           (lax.reduce_min, np.min, kind.max)):
                    found = jit(lambda x, fun=fun, axes=axes: fun(x, axes))(x)
                    np.testing.assert_array_equal(found, oracle(x, axes, initial=start))


X = numbers((100, 100), "float32", True)
LOW, HIGH = np.float32(-np.inf), np.float32(np.inf)


def places_of_nan(x: Any) -> np.ndarray:
    return np.isnan(np.asarray(x))


@pytest.mark.parametrize("fun", [
    onp.max, onp.min, onp.ptp, lambda x: onp.linalg.norm(x.ravel(), onp.inf),
    lambda x: onp.linalg.norm(x, onp.inf), lambda x: onp.max(onp.abs(x)),
    lambda x: onp.maximum.reduce(x.ravel()), lambda x: x.max(where=x > 2, initial=0.) + x.max(),
    lambda x: lax.reduce(x, LOW, lax.max, (0, 1)),
    lambda x: lax.reduce(x, LOW, jit(lax.max), (0, 1)),
    lambda x: lax.reduce(x, LOW, lambda a, b: lax.max(a, lax.max(b, a)), (0, 1)),
    lambda x: lax.reduce(x, HIGH, lambda a, b: lax.min(a, b + 0.), (0, 1)),
    lambda x: lax.reduce_window(x, LOW, lax.max, (100, 100), (100, 100), "VALID")[0, 0],
    lambda x: lax.reduce_window(x, LOW, jit(lax.max), (10, 10), (10, 10), "VALID")[0, 0],
    lambda x: lax.cummax(x.ravel())[-1], lambda x: lax.cummin(x.ravel())[-1],
    lambda x: vmap(onp.max)(x)[0], lambda x: lax.map(onp.max, x)[0],
    lambda x: lax.fori_loop(0, 2, lambda i, c: c + onp.max(x), 0.)])
def test_functions_on_extrema_keep_nan(fun: Any) -> None:
    for run in (jit(fun), fun):
        assert np.isnan(run(onp.asarray(X)))
        assert np.isfinite(run(onp.nan_to_num(X)))


@pytest.mark.parametrize("window", [(1, 100), (100, 1), (10, 10), (2, 2), (50, 100)])
@pytest.mark.parametrize("op", [lax.max, lax.min])
def test_windows_keep_nan(op: Any, window: tuple[int, int]) -> None:
    strides = [(1, 1), window]
    runs = jit(lambda x: [lax.reduce_window(x, LOW if op is lax.max else HIGH, op, window, s,
                                            "VALID") for s in strides])
    for found, (a, b) in zip(runs(X), strides, strict=True):
        views = np.lib.stride_tricks.sliding_window_view(X, window)[::a, ::b]
        wanted = (np.max if op is lax.max else np.min)(views, (2, 3))
        np.testing.assert_array_equal(found, wanted)


def test_the_derivative_of_a_long_maximum() -> None:
    x = numbers((9000,), "float32", False)
    x[[17, 8000]] = 9.0
    wanted = np.zeros(9000)
    wanted[[17, 8000]] = 0.5
    np.testing.assert_array_equal(grad(lambda x: onp.max(x))(x), wanted)
    rows = x.reshape(9, 1000)
    found = olympus.jacobian(lambda x: onp.max(x, 1))(rows)[0]
    np.testing.assert_array_equal(found.ravel(), [*np.eye(1000)[17], *np.zeros(8000)])


@pytest.fixture(scope="module")
def results(request: Any) -> Any:
    return eight_devices.outcomes(extrema_cases, request)


@pytest.mark.parametrize("case", extrema_cases.CASES)
def test_on_eight_devices(results: Any, case: str) -> None:
    assert not results[case], results[case]
