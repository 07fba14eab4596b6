"""Indexing, reductions and sorting at their edges; `properties.py` has what holds for all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ops import lax_shape as rows

from olympus import enable_x64, eval_shape, jit, jvp, lax, scipy, vjp, vmap


@pytest.fixture(autouse=True)
def _x64() -> Any:
    with enable_x64(True):
        yield


NAN = np.float32("nan")
SPECIAL = np.array([3.0, NAN, 1.0, -NAN, -0.0, 0.0, -np.inf], np.float32)


def test_nan_order() -> None:
    values, order = lax.sort((SPECIAL, np.arange(7)))
    assert order.tolist() == [6, 4, 5, 2, 0, 1, 3] and np.isnan(np.asarray(values)[-2:]).all()
    assert (int(lax.argmax(SPECIAL, 0, "int32")), int(lax.argmin(SPECIAL, 0, "int32"))) == (1, 1)
    assert np.isnan(lax.reduce_max(SPECIAL, (0,))) and np.isnan(lax.reduce_min(SPECIAL, (0,)))
    assert np.isnan(np.asarray(lax.cummax(SPECIAL))[1:]).all()
    assert lax.sort((np.array([0.0, -0.0]), np.arange(2)))[1].tolist() == [0, 1]


def test_complex_order() -> None:
    x = np.array([1 + 2j, 1 + 1j, 5j, complex(NAN, 0)])
    assert np.asarray(lax.sort(x))[:3].tolist() == [5j, 1 + 1j, 1 + 2j]
    assert complex(lax.reduce_max(x[:3], (0,))) == 1 + 2j


def test_ties_share() -> None:
    x = np.array([1.0, 1.0, 0.0])
    back = vjp(lambda v: lax.reduce_max(v, (0,)), x)[1](1.0)[0]
    assert np.asarray(back).tolist() == [0.5, 0.5, 0]
    assert np.asarray(vjp(lax.cummax, x)[1](np.ones(3))[0]).tolist() == [2, 1, 0]


@pytest.mark.parametrize(("dtype", "value"), [
    ("int32", -(2**31)), ("uint8", 255), ("bool", True), ("float32", NAN)])
def test_fill_defaults(dtype: str, value: Any) -> None:
    out = lax.gather(np.zeros(3, dtype), rows.ints([5]), rows.TAKE, (1,), mode="fill")
    np.testing.assert_array_equal(np.asarray(out), np.array([value], dtype))


@pytest.mark.parametrize(("dtype", "size"), [("int8", 200), ("uint8", 300)])
@pytest.mark.parametrize("mode", ["clip", "fill"])
def test_narrow_indices(dtype: str, size: int, mode: str) -> None:
    """Indices whose dtype cannot hold the axis's size."""
    index = np.array([[100]], dtype)
    x = np.arange(size, dtype=np.float32)
    assert lax.gather(x, index, rows.TAKE, (1,), mode=mode).tolist() == [100]
    assert np.asarray(lax.dynamic_slice(x, (index[0, 0],), (1,))).tolist() == [100]
    written = lax.scatter(x, index, np.float32([-1]), rows.PUT, mode=mode)
    assert np.asarray(written)[100] == -1


def test_empty_axes() -> None:
    assert float(lax.reduce_max(np.zeros((0,)), (0,))) == -np.inf
    assert float(lax.reduce_prod(np.zeros((0,)), (0,))) == 1.0
    assert float(jvp(lambda x: lax.reduce_prod(x, (0,)), (np.zeros(0),), (np.zeros(0),))[1]) == 0
    assert lax.concatenate([np.zeros((0, 2)), np.ones((1, 2))], 0).shape == (1, 2)


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
def test_top_k_of_four_bits(dtype: str) -> None:
    x = np.array([[3, 5, 1], [6, 2, 7]]).astype(dtype)
    values, places = lax.top_k(x, 2)
    assert values.dtype == x.dtype and places.tolist() == [[1, 0], [2, 0]]
    assert np.asarray(values).astype(int).tolist() == [[5, 3], [7, 6]]


RETURN_LISTS = {
    "top_k": (lambda x: lax.top_k(x, 2), 2), "approx_max_k": (lambda x: lax.approx_max_k(x, 2), 2),
    "approx_min_k": (lambda x: lax.approx_min_k(x, 2), 2), "lu": (lax.linalg.lu, 3),
    "hessenberg": (lax.linalg.hessenberg, 2), "schur": (lax.linalg.schur, 2),
    "tridiagonal": (lax.linalg.tridiagonal, 4), "scipy.schur": (scipy.linalg.schur, 2)}


@pytest.mark.parametrize("f, count", RETURN_LISTS.values(), ids=RETURN_LISTS)
def test_results_are_lists_as_jaxs_are(f: Any, count: int) -> None:
    """Regression: they were tuples, so a tree of results had another structure than JAX's."""
    x = np.eye(3, dtype=np.float32)
    outs = [eval_shape(g, y) for g, y in (
        (f, x), (jit(f), x), (vmap(f), x[None]), (lambda x: vjp(f, x)[0], x))]
    assert [(type(out), len(out)) for out in outs] == [(list, count)] * 4
    assert isinstance(scipy.linalg.lu_factor(x), tuple)     # of which lu returns more


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float32", "complex64"])
def test_cumlogsumexp_of_every_float(dtype: str) -> None:
    """float8_e4m3fn has no infinity to start from."""
    x = np.array([0.75, 0.875, 1.5, -2.0])
    got = np.asarray(lax.cumlogsumexp(x.astype(dtype))).astype("c8")
    tol = 0.25 if "8_" in dtype else 1e-5
    np.testing.assert_allclose(got, np.logaddexp.accumulate(x), rtol=tol)
