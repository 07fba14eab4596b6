"""Sorting beside NumPy: every dtype and axis, special values by their bits, ties, several keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import olympus
from olympus import enable_x64, lax, numpy as onp

FLOATS = ["float16", "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2",
          "float8_e4m3fnuz", "float8_e4m3b11fnuz"]
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "int4",
            "uint4"]
COMPLEX = ["complex64", "complex128"]
SHAPES = [((700,), 0), ((3, 5, 4), 1), ((1, 4), 0), ((0, 3), 0), ((3, 0), 0)]


@pytest.fixture(autouse=True)
def _x64() -> Any:
    with enable_x64(True):
        yield


def dtype_of(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


def elements(name: str, shape: Sequence[int], seed: int = 0) -> np.ndarray:
    """Elements of any bits, among them the special ones of a dtype, each several times."""
    rng, dtype = np.random.default_rng(seed), dtype_of(name)
    count = int(np.prod(shape))
    if name in COMPLEX:
        part = f"float{dtype.itemsize * 4}"
        out = np.empty(shape, dtype)
        out.real, out.imag = elements(part, shape, seed + 1), elements(part, shape, seed + 2)
        return out
    if name in ("bool", "int4", "uint4"):
        low, high = {"bool": (0, 2), "int4": (-8, 8), "uint4": (0, 16)}[name]
        return rng.integers(low, high, shape).astype(dtype)
    bits = f"uint{dtype.itemsize * 8}"
    drawn = rng.integers(0, np.iinfo(bits).max, count, bits, endpoint=True)
    top = 1 << (dtype.itemsize * 8 - 1)
    ends = np.array([0, top, 1, top + 1, top - 1, 2 * top - 1], bits)     # zeros, least, NaN
    if name in FLOATS:
        inf = np.array([np.inf, -np.inf, 1, -1, np.nan], dtype).view(bits)
        ends = np.concatenate([ends, inf, inf[:1] + np.array(1, bits)])     # another NaN
    special = ends[rng.integers(0, len(ends), count)]
    return np.where(rng.random(count) < 0.5, drawn, special).view(dtype).reshape(shape)


def order_of(*keys: np.ndarray, axis: int) -> np.ndarray:
    """NumPy's stable order by several keys, the first one first."""
    parts: list[np.ndarray] = []
    for key in keys:
        if key.dtype.kind == "c":
            parts += [key.real, key.imag]
        else:       # wider, since NumPy orders its own floats only
            narrow = key.dtype.kind == "V" or key.dtype.name in (*FLOATS, "int4", "uint4")
            with np.errstate(invalid="ignore"):
                parts.append(key.astype(np.float64) if narrow else key)
    return np.lexsort(parts[::-1], axis)


def assert_same_bits(got: Any, expected: np.ndarray) -> None:
    got = np.asarray(got)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    assert got.tobytes() == np.ascontiguousarray(expected).tobytes()


@pytest.mark.parametrize("name", ["bool", *INTEGERS, *FLOATS, *COMPLEX])
def test_all_elements_are_moved_as_numpy_orders_them(name: str) -> None:
    xs = [elements(name, shape, i) for i, (shape, _) in enumerate(SHAPES)]
    carried = [elements("uint16", shape, i + 50) for i, (shape, _) in enumerate(SHAPES)]

    @olympus.jit
    def outs(xs: Any, carried: Any) -> list[Any]:
        return [(*lax.sort((x, y), axis), lax.sort(x, axis))
                for x, y, (_, axis) in zip(xs, carried, SHAPES, strict=True)]

    for x, y, out, (_, axis) in zip(xs, carried, outs(xs, carried), SHAPES, strict=True):
        order = order_of(x, axis=axis)
        for got, operand in zip(out, (x, y, x), strict=True):
            assert_same_bits(got, np.take_along_axis(operand, order, axis))


@pytest.mark.parametrize("names", [
    ("float32", "float32"), ("bool", "int8", "float16"), ("complex64", "int64"), ("uint8",) * 9,
    ("float64", "complex128", "bfloat16"), ("int64", "int64")], ids="-".join)
def test_several_keys_decide_in_turn(names: Sequence[str]) -> None:
    for shape, axis in SHAPES[:2]:
        # Few values of the first keys, so that the last ones decide as well.
        keys = [np.take(elements(name, (3 + 9 * i,), i), np.random.default_rng(i).integers(
            0, 3 + 9 * i, shape)) for i, name in enumerate(names)]
        order = order_of(*keys, axis=axis)
        places = np.broadcast_to(np.expand_dims(np.arange(shape[axis]), tuple(
            [d for d in range(len(shape)) if d != axis])), shape)
        *_, found = lax.sort((*keys, places), axis, num_keys=len(keys))
        assert_same_bits(found, order)


@pytest.mark.parametrize("name", [*INTEGERS[:8], *FLOATS[:4]])
@pytest.mark.parametrize("k", [0, 1, 5, 9])
def test_the_largest_are_in_the_total_order(name: str, k: int) -> None:
    """NaN of either sign, numbers, and -0.0 below 0.0; the first of equal elements first."""
    x = elements(name, (4, 9))
    bits = x.view(f"uint{x.dtype.itemsize * 8}").astype(object)
    top = 1 << (x.dtype.itemsize * 8 - 1)
    signed = name in FLOATS or name.startswith("i")
    rank = np.where(bits >= top, top - 1 - bits if name in FLOATS else bits - 2 * top, bits)
    with np.errstate(invalid="ignore"):
        rank[x != x] = top
    order = np.argsort(-(rank if signed else bits), -1, kind="stable")[:, :k]
    values, places = lax.top_k(x, k)
    wanted, found = np.take_along_axis(x, order, -1), np.asarray(values)
    with np.errstate(invalid="ignore"):
        number = wanted == wanted
        assert np.array_equal(number, found == found)
    assert_same_bits(found[number], wanted[number])
    assert_same_bits(places, order.astype("i4"))
    assert [a.shape for a in lax.top_k(x[:0], k)] == [(0, k)] * 2


def test_orders_of_transformed_sorts_are_those_of_each_row() -> None:
    x, y = elements("float32", (6, 40)), elements("int16", (6, 40))

    def both(a: Any, b: Any) -> Any:
        return lax.sort((a, b), 0, num_keys=2), onp.argsort(a, descending=True)

    (keys, carried), places = olympus.jit(olympus.vmap(both, (0, 1)))(x, y.T)
    order = order_of(x, y, axis=1)
    assert_same_bits(keys, np.take_along_axis(x, order, 1))
    assert_same_bits(carried, np.take_along_axis(y, order, 1))
    backward = x.shape[1] - 1 - order_of(x[:, ::-1], axis=1)[:, ::-1]
    assert_same_bits(places, backward)


def test_many_float64_alone_are_moved_bit_for_bit() -> None:
    """By their bits; where elements that compare equal differ, rows with their places, and of a
    vector those are put back in their order."""
    rng, sort = np.random.default_rng(0), olympus.jit(onp.sort)
    signalling = np.array(0x7FF0000000000001, np.uint64).view(np.float64)
    for special in ([1.0], [np.inf, -np.inf, 5e-324, -5e-324, 0.0, np.nan], [0.0, -0.0], [-0.0],
                    [-np.nan, np.nan], [signalling]):
        x = rng.choice([*rng.normal(size=9), *special], (2, 20000))
        for y in (x, x[:1, :16384], x[0, :16383]):
            assert_same_bits(sort(y), np.take_along_axis(y, order_of(y, axis=-1), -1))


def test_integers_alone_are_sorted_stably_where_that_is_faster() -> None:
    """Regression: XLA:CPU took half as long again, for the same result."""
    text = olympus.jit(lambda x: lax.sort(x, is_stable=False)).lower(np.arange(9)).as_text()
    assert "is_stable = true" in text


def test_one_cpu_compares_the_keys_of_few_floats_and_sorts_many_as_words() -> None:
    """Regression: floats were sorted by a compiled comparison, at five times the cost; words of few
    take three times as long to compile, which hardly any number of calls repays."""
    def text(x: np.ndarray) -> str:
        return olympus.jit(lambda x: (onp.argsort(x), onp.sort(x))).lower(x).as_text()

    few, many = text(np.ones(511)), text(np.ones(512))
    assert "TOTALORDER" not in few + many and few.count("UNSIGNED") > many.count("UNSIGNED") > 0
    assert "tensor<512xui64>" in many and "tensor<511xui64>" not in few
    exported = olympus.export.export(olympus.jit(onp.sort))(np.ones(9))
    assert "TOTALORDER" in exported.mlir_module()


def test_the_least_of_the_largest_is_found_without_sorting_all() -> None:
    """XLA merged the reader's slice with the one behind its sort, and sorted the whole axis."""
    x = np.random.default_rng(0).normal(size=(3, 90)).astype("f")
    largest = lambda x: onp.where(x >= lax.top_k(x, 5)[0][:, -1:], x, 0)
    kept = olympus.jit(largest).lower(x).compile()
    assert 'custom_call_target="TopK"' in kept.as_text()
    np.testing.assert_array_equal(kept(x), np.where(x >= np.sort(x)[:, -5:-4], x, 0))


@pytest.mark.parametrize("name", FLOATS[:6])
@pytest.mark.parametrize("fun", [
    lambda x: lax.top_k(x, 4), lambda x: lax.top_k(x, 8), lambda x: lax.approx_max_k(x, 3),
    lambda x: lax.approx_min_k(x, 3), lambda x: lax.top_k(onp.stack([x, x[::-1]], 1), 3, axis=0),
    onp.sort, onp.argsort, lambda x: onp.argpartition(x, 3), onp.argmax, onp.median, onp.max])
def test_the_sign_of_a_nan_does_not_rank_it(fun: Any, name: str) -> None:
    """0/0 and inf - inf have the sign bit set on x86."""
    x = np.array([3, -1, np.nan, 2, 7, np.nan, 0, 5]).astype(dtype_of(name))
    y = x.copy()
    bits = f"uint{8 * x.dtype.itemsize}"
    y.view(bits)[[2, 5]] ^= np.array([1 << (8 * x.dtype.itemsize - 1), 0], bits)
    for a, b in zip(*[olympus.tree.leaves(olympus.jit(fun)(v)) for v in (x, y)], strict=True):
        np.testing.assert_array_equal(np.asarray(a).astype(float), np.asarray(b).astype(float))
    values, places = olympus.jit(lambda x: lax.top_k(x, 3))(y)
    assert places.tolist() == [2, 5, 4]
    assert np.isnan(np.asarray(values).astype(float)).tolist() == [True, True, False]
