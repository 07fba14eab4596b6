"""Sums of 16-bit floats are accumulated in float32, wherever they arise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import grad, jit, lax, nn, ops, vmap
from olympus.scipy import stats

DTYPES = ["bfloat16", "float16"]
# Ones stick at 256 in bfloat16, at 2048 in float16.
N = 4096
PLACES = np.zeros(N, np.int32)


def wide(x: Any) -> Any:
    return onp.sum(x.astype("float32"))


def custom() -> Any:
    @olympus.custom_vjp
    def product(x: Any, w: Any) -> Any:
        return x * w

    product.defvjp(lambda x, w: (x * w, (x, w)), lambda r, g: (g * r[1], g * r[0]))
    return product


def one_by_one(f: Any) -> Any:
    """The gradient in a weight that each iteration reads."""
    return lambda x: grad(lambda w: wide(f(w, x)))(x[0])


SUMS: dict[str, Any] = {
    "reduce": lambda x: lax.reduce(x, x[0] * 0, lax.add, (0,)),
    "reduce-jit": lambda x: lax.reduce(x, x[0] * 0, jit(lax.add), (0,)),
    "reduce_sum": lambda x: lax.reduce_sum(x, (0,)),
    "sum": onp.sum,
    "window": lambda x: lax.reduce_window(x, x[0] * 0, lax.add, (N,), (N,), "VALID")[0],
    "window-moves": lambda x: lax.reduce_window(x, x[0] * 0, lax.add, (N,), (1,), "SAME")[N // 2],
    "window-grad": lambda x: grad(lambda y: wide(x[0] * lax.reduce_window(
        y, y[0] * 0, lax.add, (N,), (1,), ((N - 1, N - 1),))))(x)[9],
    "cumsum": lambda x: lax.cumsum(x)[-1],
    "cumsum-grad": lambda x: grad(lambda y: wide(lax.cumsum(y)))(x)[0],
    "bias": lambda x: grad(lambda b: wide(x.reshape(64, 64, 1) + b))(x[:8])[3],
    "scalar": lambda x: grad(lambda b: wide(x.reshape(16, 16, 16) * b))(x[0]),
    "repeat": lambda x: grad(lambda y: wide(onp.repeat(y, N)))(x[:2])[0],
    "index": lambda x: grad(lambda y: wide(y[PLACES]))(x[:3])[0],
    "take": lambda x: grad(lambda y: wide(onp.take(y, PLACES)))(x[:3])[0],
    "rows": lambda x: grad(lambda y: wide(y.reshape(4, 2)[PLACES]))(x[:8])[1],
    "at-add": lambda x: (x[:3] * 0).at[PLACES].add(x)[0],
    "at-subtract": lambda x: -(x[:3] * 0).at[PLACES].subtract(x)[0],
    "segment_sum": lambda x: ops.segment_sum(x, PLACES, 2)[0],
    "bincount": lambda x: onp.bincount(PLACES, x, length=1)[0],
    "einsum": lambda x: onp.einsum("i->", x),
    "einsum-trace": lambda x: onp.einsum("ii->", onp.diag(x)),
    "einsum-pair": lambda x: onp.einsum("i,i->", x, x),
    "dot": lambda x: x @ x,
    "rows-dot": lambda x: vmap(onp.dot)(onp.stack([x, x]), onp.stack([x, x]))[0],
    "conv": lambda x: lax.conv(x.reshape(1, 64, 8, 8), x.reshape(1, 64, 8, 8), (1, 1), "VALID"),
    "conv-depthwise": lambda x: lax.conv_general_dilated(
        onp.tile(x.reshape(1, 1, 64, 64), (1, 2, 1, 1)), onp.tile(x.reshape(1, 1, 64, 64),
                                                                 (2, 1, 1, 1)),
        (1, 1), "VALID", feature_group_count=2)[0, 0],
    "scan": one_by_one(lambda w, x: lax.scan(lambda c, y: (c, y * w), 0.0, x)[1]),
    "map": one_by_one(lambda w, x: lax.map(lambda y: y * w, x)),
    "vmap": one_by_one(lambda w, x: vmap(lambda y: y * w)(x)),
    "custom_vjp": one_by_one(lambda w, x: vmap(lambda y: custom()(y, w))(x)),
    "psum": lambda x: vmap(lambda y: lax.psum(y, "i"), axis_name="i")(x)[0],
    "pool-grad": lambda x: grad(lambda y: wide(x[0] * lax.reduce_window(
        y, -onp.inf, lax.max, (N,), (1,), ((N - 1, N - 1),))))(x * 0 + (onp.arange(N) == 9))[9],
}


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_ones_add_up(name: str, dtype: str) -> None:
    found = jit(SUMS[name])(onp.ones(N, dtype))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.astype("float32").ravel(), N)


@pytest.mark.parametrize("dtype", DTYPES)
def test_many_readers_of_a_value_add_up(dtype: str) -> None:
    n = 600
    one = onp.ones((), dtype)
    found = grad(lambda x: sum((x * 1).astype("float32") for _ in range(n)))(one)
    assert found.dtype == dtype and found == onp.asarray(n, dtype)


def test_a_few_numbers_are_added_to_a_large_table_in_place() -> None:
    """Without a conversion of the table, which costs more than they do."""
    table, place = onp.zeros((1000, 16), "bfloat16"), onp.array([7])
    text = jit(lambda t, v: t.at[place].add(v)).lower(table, table[:1]).as_text()
    assert "1000x16xf32" not in text
    assert jit(lambda t, v: t.at[place].add(v))(table, table[:1] + 1)[7, 3] == 1


def test_16_bit_sums_are_rounded_once() -> None:
    x = np.random.default_rng(0).random((300, 40)).astype(np.float32)
    for dtype in DTYPES:
        given = onp.asarray(x).astype(dtype)
        wanted = np.asarray(given).astype(np.float64).sum(0)
        found = jit(lambda x: lax.reduce_sum(x, (0,)))(given)
        eps = float(onp.finfo(dtype).eps)
        np.testing.assert_allclose(found.astype("float32"), wanted, eps / 2 * 1.001)
        mean = grad(lambda w: wide(nn.relu(given * w)))(onp.ones(40, dtype))
        np.testing.assert_allclose(mean.astype("float32"), wanted, eps * 0.51)


# What overflows in float16 on the way to a number that fits.
LARGE: dict[str, Any] = {
    "norm": lambda x: onp.linalg.norm(x, axis=-1), "matrix_norm": onp.linalg.matrix_norm,
    "vector_norm": lambda x: onp.linalg.vector_norm(x, ord=3), "std": onp.std,
    "nanstd": lambda x: onp.nanstd(x, 0), "corrcoef": onp.corrcoef,
    "average": lambda x: onp.average(x, axis=0, weights=abs(x[::-1]), returned=True),
    "standardize": nn.standardize,
    "standardize, stable": lambda x: nn.standardize(x, (0, 1), algorithm="stable"),
    "standardize, given": lambda x: nn.standardize(x, mean=x.mean(), variance=300 + 0 * x[:, :1]),
    "cauchy": stats.cauchy.logpdf, "t": lambda x: stats.t.logpdf(x, 3),
    "norm.logpdf": lambda x: stats.norm.logpdf(x, x[::-1] * 0.5, 300),
    "gamma.sf": lambda x: stats.gamma.sf(abs(x), 2.5, 1, 200)}


@pytest.mark.parametrize("name", LARGE)
def test_squares_and_products_of_float16_do_not_overflow(name: str) -> None:
    """Regression: NaN, inf, or zeros (`standardize`), as in JAX."""
    x = onp.asarray(np.random.default_rng(0).normal(size=(6, 5)) * 300, "float16")
    for got, want in zip(*map(olympus.tree.leaves, map(
            jit(LARGE[name]), (x, x.astype("float32")))), strict=True):
        assert got.dtype == "float16" and want.dtype == "float32"
        np.testing.assert_allclose(got, want, 2e-3, 2e-3)
