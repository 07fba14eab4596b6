"""Sums along short axes and beside them, by kernels on one CPU, next to NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from olympus import grad, jit, lax, vmap


def taken(fun: Callable[..., Any], *args: Any) -> list[str]:
    """The names of the kernels that a function's program is lowered by."""
    return [t.kernel.name for t in jit(lambda *xs: fun(*xs)).lower(*args)._context.taken]


ROWS, COLUMNS = "sum of short rows by slices", "sum of each column"


# Shape, axes, the kernel; sizes at its thresholds, and one below or above.
@pytest.mark.parametrize("shape, axes, kernel", [
    ((1024, 2), (1,), ROWS), ((1023, 2), (1,), None), ((32, 40, 12), (2,), ROWS),
    ((32, 40, 13), (2,), None), ((1100, 3, 4), (1, 2), ROWS), ((40, 30, 3), (-1,), ROWS),
    ((2, 1024, 1), (2,), None), ((0, 3), (1,), None),
    ((300, 64, 2), (1,), COLUMNS), ((300, 63, 2), (1,), None), ((11000, 3), (0,), COLUMNS),
    ((200, 64, 4), (1,), None), ((9, 40, 100, 3), (1, 2), COLUMNS),
    ((9, 40, 100, 3), (0, 2), COLUMNS)])
def test_sums_along_and_beside_short_axes(
        shape: tuple[int, ...], axes: tuple[int, ...], kernel: str | None,
        rng: np.random.Generator) -> None:
    x = rng.standard_normal(shape).astype(np.float32)
    axes = tuple(a % len(shape) for a in axes)
    fun = lambda x: lax.reduce_sum(x, axes)
    assert taken(fun, x) == ([] if kernel is None else [kernel])
    found = np.asarray(jit(fun)(x))
    np.testing.assert_allclose(found, x.sum(axes, dtype=np.float64), rtol=1e-5, atol=1e-4)
    if kernel is None:
        return
    # Where a number is infinite, or NaN, or all are -0.0.
    for value in (np.inf, -np.inf, np.nan):
        y = x.copy()
        y.flat[7] = value
        np.testing.assert_array_equal(np.isfinite(jit(fun)(y)), np.isfinite(y.sum(axes)))
        np.testing.assert_array_equal(np.isnan(jit(fun)(y)), np.isnan(y.sum(axes)))
    y = np.asarray(jit(fun)(np.full(shape, -0.0, np.float32)))
    assert (y == 0).all() and not np.signbit(y).any()
    if len(shape) > 2:
        return
    found = jit(grad(lambda x: (fun(x) ** 2).sum()))(x)
    wanted = np.broadcast_to(2 * x.sum(axes, keepdims=True, dtype=np.float64), shape)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("shape, kernel", [
    ((64, 1024, 2), COLUMNS), ((63, 1024, 2), "sum of slices"), ((64, 1023, 2), None),
    ((64, 600, 4), "sum of slices"), ((64, 30, 35, 2), COLUMNS)])
def test_computed_rows_of_few_numbers_are_added_each_by_itself(
        shape: tuple[int, ...], kernel: str | None, rng: np.random.Generator) -> None:
    x = rng.standard_normal(shape).astype(np.float32)
    fun = lambda x: lax.reduce_sum(lax.mul(x, x), (0,))
    assert taken(fun, x) == ([] if kernel is None else [kernel])
    if kernel == COLUMNS:       # in memory, one row after another is quicker
        assert taken(lambda x: lax.reduce_sum(x, (0,)), x) == ["sum of slices"]
    wanted = (x.astype(np.float64) ** 2).sum(0)
    np.testing.assert_allclose(jit(fun)(x), wanted, rtol=1e-5)
    np.testing.assert_allclose(jit(vmap(fun, 1))(x), wanted, rtol=1e-5)
    np.testing.assert_allclose(jit(grad(lambda x: fun(x).sum()))(x), 2 * x, rtol=1e-5)


def test_short_rows_of_mapped_functions(rng: np.random.Generator) -> None:
    x, y = [rng.standard_normal((40, 3)).astype(np.float32) for _ in range(2)]
    fun = vmap(vmap(lambda a, b: lax.reduce_sum((a - b) ** 2, (0,)), (None, 0)), (0, None))
    assert taken(fun, x, y) == [ROWS]
    wanted = ((x[:, None].astype(np.float64) - y) ** 2).sum(-1)
    np.testing.assert_allclose(jit(fun)(x, y), wanted, rtol=1e-6)


def test_short_rows_of_integers_and_narrow_floats_stay_with_xla() -> None:
    for dtype in ("int32", "bfloat16", "float16"):
        x = lax.full((2000, 3), 1, dtype)
        assert taken(lambda x: lax.reduce_sum(x, (1,)), x) == []


def test_the_slope_of_a_known_power_has_a_known_power() -> None:
    x = np.float32([0, 0.25, 2, 9])
    for exponent in (-1.5, 0.0, 1.0, 2.5):
        slope = grad(lambda x: (x ** exponent).sum())
        with np.errstate(divide="ignore"):
            wanted = exponent * x ** (exponent - 1) if exponent else np.zeros(4, np.float32)
        np.testing.assert_allclose(slope(x), wanted, rtol=1e-6)
