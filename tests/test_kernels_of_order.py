"""Kernels of order: sorts, partitions and order statistics of long arrays beside NumPy's."""

from __future__ import annotations

import functools
import itertools
import sys
from typing import Any

import numpy as np
import pytest
from test_kernel_rules import taken

import olympus
import olympus.numpy as onp
from olympus import enable_x64, grad, jit, lax, vmap
from olympus._src.base.config import kernels
from olympus._src.lax.sort import placed_p, ranked_p

RNG = np.random.default_rng(0)      # of a test; the rows' shapes have their own numbers


@pytest.fixture(autouse=True)
def _numbers_of_the_test(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "RNG", rng)


def normal(shape: tuple[int, ...]) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


# Sorting

DIGITS, COUNTS = "sort by digits", "sort by counts"
FROM, COUNTED = 1 << 13, 1 << 14        # elements


def keys(n: int, dtype: str) -> np.ndarray:
    """Numbers, many of them equal; floats with NaN, infinities, subnormal ones, both zeros."""
    if dtype[0] in "iu":
        kind = np.iinfo(dtype)
        x = RNG.integers(kind.min, kind.max, n, dtype, endpoint=True)
        x[::3] = RNG.integers(0, 9, len(x[::3]))
        return x
    if dtype == "bool":
        return RNG.random(n) < 0.3
    x = RNG.standard_normal(n).astype("float32").astype(olympus.numpy.dtype(dtype))
    for i, value in enumerate((-0.0, 0.0, np.nan, -np.nan, np.inf, -np.inf, 1e-42, -1e-42)):
        x[i::17] = value
    if dtype != "float16":
        x[8::17], x[9::17] = 3e38, -2e-38
    return x


# Elements, the dtype of the keys, the operands carried along, and the kernel.
SORTED: list[tuple[int, str, str, str]] = [
    (FROM - 1, "float32", "", ""), (FROM, "float32", "", DIGITS),
    (FROM, "float32", "int32 bfloat16 bool", DIGITS), (FROM, "int32", "int32", DIGITS),
    (FROM, "uint32", "bfloat16", DIGITS), (FROM + 1, "bfloat16", "complex64", DIGITS),
    (FROM, "float16", "", DIGITS), (FROM + 1, "int16", "bool", DIGITS),
    (FROM, "int8", "int32", DIGITS), (FROM, "uint8", "uint8", DIGITS),
    (FROM + 1, "bool", "float32", DIGITS), (FROM, "uint16", "bfloat16", DIGITS),
    (FROM - 1, "int8", "", ""), (FROM, "int8", "", DIGITS), (COUNTED - 1, "int8", "", DIGITS),
    (COUNTED, "int8", "", COUNTS), (COUNTED + 1, "uint8", "", COUNTS),
    (COUNTED - 1, "uint16", "", DIGITS), (COUNTED, "int16", "", COUNTS),
    (COUNTED + 1, "uint16", "", COUNTS), (FROM, "bool", "", DIGITS), (COUNTED, "bool", "", COUNTS),
    (FROM, "float8_e5m2", "int32", ""),
    # Floats as they are, and as words.
    (131_071, "float32", "", DIGITS), (131_072, "float32", "", DIGITS)]


@pytest.mark.parametrize(("n", "dtype", "carried", "used"), SORTED)
def test_sorting_of_long_vectors(n: int, dtype: str, carried: str, used: str) -> None:
    """Stable, and all bits stay as they were."""
    x = keys(n, dtype)
    order = np.argsort(x.astype("float64"), kind="stable")      # zeros are equal, NaN come last
    rest = [np.arange(n).astype(olympus.numpy.dtype(name)) for name in carried.split()]

    def run(*xs: Any) -> Any:
        return lax.sort(xs)

    assert taken(run, x, *rest) == [used] * bool(used)
    for found, given in zip(jit(run)(x, *rest), (x, *rest), strict=True):
        assert np.asarray(found).tobytes() == given[order].tobytes()


@pytest.mark.parametrize("n", [FROM - 1, FROM, FROM + 1])
def test_sorting_of_float64_by_keys(n: int) -> None:
    """Zeros and NaN are put back in their order; all bits stay as they were."""
    with enable_x64(True):
        for x in (keys(n, "float64"), np.arange(n) % 7 + 1.5, np.full(n, np.nan), np.full(n, -0.0)):
            assert taken(onp.sort, x) == ["sort of float64 by keys"] * (n >= FROM)
            expected = x[np.argsort(x, kind="stable")]
            assert np.asarray(jit(onp.sort)(x)).tobytes() == expected.tobytes()


@pytest.mark.parametrize(("dtypes", "count"), [
    ("float64 int8", 1), ("uint64 bool complex128", 1), ("complex64", 1),
    ("uint16 int64 float32", 3), ("bfloat16 bool int32", 2)])
def test_sorting_by_halves_of_keys(dtypes: str, count: int) -> None:
    """Of keys of 64 bits and of several keys; stable, and all bits stay as they were."""
    with enable_x64(True):
        xs = [keys(1 << 14, name) for name in dtypes.split()]
        xs[0][::2] = xs[0][0]
        run: Any = lambda *xs: lax.sort(xs, num_keys=count)
        assert taken(run, *xs) == ["sort by halves of keys"]
        flat = [part for x in xs[:count] for part in (
            [x.real, x.imag] if x.dtype.kind == "c" else [x])]
        order = np.lexsort([x.astype("float64") if x.dtype.itemsize < 4 else x
                            for x in reversed(flat)])
        for found, given in zip(jit(run)(*xs), xs, strict=True):
            assert np.asarray(found).tobytes() == given[order].tobytes()


def test_sorting_by_counts_of_equal_elements_and_in_transformations() -> None:
    for x in (np.zeros(COUNTED, "int8"), np.ones(COUNTED, "bool"), np.full(COUNTED, -128, "int8"),
              np.full(COUNTED, 65535, "uint16"), np.zeros(COUNTED, "bool")):
        assert taken(lambda x: lax.sort(x), x) == [COUNTS]
        np.testing.assert_array_equal(jit(lambda x: lax.sort(x))(x), x)
    x = keys(COUNTED, "int8").reshape(1, COUNTED)
    np.testing.assert_array_equal(jit(lambda x: lax.sort(x, 1))(x), np.sort(x, 1))
    xs = np.stack([x[0], -x[0]])
    np.testing.assert_array_equal(jit(vmap(lax.sort))(xs), np.sort(xs, 1))
    np.testing.assert_array_equal(
        jit(lambda x: olympus.numpy.sort(x, descending=True))(x[0]), np.sort(x[0])[::-1])


def test_sorting_by_digits_in_transformations_and_where_it_does_not_apply() -> None:
    x = keys(FROM, "float32")
    x = np.where(np.isnan(x), 1, x)
    assert taken(lambda x: lax.sort(x), x.reshape(1, FROM, 1)) == []
    assert taken(lambda x: lax.sort(x, 1), x.reshape(1, FROM, 1)) == [DIGITS]
    assert taken(lambda x: lax.sort(x), x.reshape(2, -1)) == []
    assert taken(lambda x: lax.sort((x, x), num_keys=2), x) == []
    assert taken(lambda x: lax.sort(x), x.astype("complex64")) == []
    np.testing.assert_array_equal(jit(lambda x: lax.sort(x, 1))(x.reshape(1, FROM, 1))[0, :, 0],
                                  np.sort(x))
    order = np.argsort(x, kind="stable")
    weights = np.arange(FROM, dtype="float32")
    wanted = np.empty(FROM, "float32")
    wanted[order] = weights
    np.testing.assert_array_equal(
        jit(grad(lambda x: (lax.sort(x) * weights).sum()))(x), wanted)
    each = jit(lambda xs: lax.scan(lambda c, x: (c, lax.sort(x)), 0, xs)[1])(np.stack([x, -x]))
    np.testing.assert_array_equal(each, np.sort(np.stack([x, -x]), 1))
    np.testing.assert_array_equal(jit(vmap(lax.sort))(np.stack([x, -x])), each)


def test_sorting_of_integers_that_share_digits() -> None:
    """Digits that all elements share are passed over: all, the low ones, the high ones, or one."""
    small = RNG.integers(0, 100, FROM)
    for x in (small, small << 22, small - 50, (small << 11) + 5, np.full(FROM, -7), small + 2 ** 30,
              np.where(small == 0, -2 ** 31, 3)):
        given = x.astype("int32")
        order = np.argsort(given, kind="stable")
        run = jit(lambda x: (lax.sort(x), olympus.numpy.argsort(x)))
        for found, wanted in zip(run(given), (given[order], order), strict=True):
            np.testing.assert_array_equal(found, wanted)
    given = (small * 3).astype("int16")
    np.testing.assert_array_equal(olympus.numpy.argsort(given), np.argsort(given, kind="stable"))


@pytest.mark.parametrize(("dtype", "first", "last"), [
    ("int32", 0, 4095), ("int32", 0, 4096), ("int32", -2 ** 31, 2 ** 31 - 1),
    ("int32", -2 ** 31, -2 ** 31 + 4095), ("int32", 2 ** 31 - 65, 2 ** 31 - 1),
    ("uint32", 2 ** 32 - 4096, 2 ** 32 - 1), ("uint32", 7, 7), ("int64", -2 ** 63, -2 ** 63 + 4095),
    ("int64", -2 ** 63, 2 ** 63 - 1), ("int64", 0, 2 ** 32),
    ("int64", 2 ** 40, 2 ** 40 + 4095)])
def test_sorting_of_integers_in_a_short_range(dtype: str, first: int, last: int) -> None:
    x = RNG.integers(first, last, (1 << 16) + 1, dtype, endpoint=True)
    x[[5, 9, -1]] = first, last, last
    with enable_x64("64" in dtype):
        assert taken(onp.sort, x) == [DIGITS]
        np.testing.assert_array_equal(jit(onp.sort)(x), np.sort(x))
        part = x[:FROM]
        np.testing.assert_array_equal(jit(onp.sort)(part), np.sort(part))



# Rows

ROWS = "sort of rows side by side"
SORTED_ROWS: list[tuple[tuple[int, ...], int, str, bool]] = [
    ((8191, 1), 0, "int32", False), ((127, 64), 1, "int32", False), ((128, 64), 1, "int32", True),
    ((256, 32), 1, "uint32", True), ((264, 31), 1, "int32", False),
    ((529, 31), 1, "int32", True), ((64, 256), 1, "uint8", True),
    ((63, 300), 1, "int32", False), ((65, 253), 1, "uint64", True),
    ((16384, 1), 1, "int32", False), ((8191, 2), 1, "int64", False),
    ((8192, 2), 1, "int64", True), ((6000, 3), 1, "bool", True),
    ((100, 3, 77), 1, "float32", True), ((40, 13, 41), 0, "bfloat16", True),
    ((3, 2000, 5), 2, "float64", True), ((1500, 11), 1, "complex64", True),
    ((2048, 64), 0, "int32", True), ((2049, 64), 0, "int32", False), ((5, 3600), 0, "int16", True),
    ((70, 257), 1, "float16", True)]


@pytest.mark.parametrize(("shape", "axis", "dtype", "used"), SORTED_ROWS)
def test_sorting_of_rows(shape: tuple[int, ...], axis: int, dtype: str, used: bool) -> None:
    """Rows and columns, also of floats and booleans, whose words are integers; bit by bit."""
    with enable_x64(True):
        x = keys(int(np.prod(shape)), "float32" if dtype == "complex64" else dtype).astype(
            olympus.numpy.dtype(dtype)).reshape(shape)
        wide = "complex128" if dtype == "complex64" else "float64"
        order = np.argsort(x if dtype in "uint64 int64" else x.astype(wide), axis, kind="stable")

        def run(x: Any) -> Any:
            return lax.sort(x, axis), olympus.numpy.argsort(x, axis)

        assert ROWS in taken(run, x) if used else ROWS not in taken(lambda x: lax.sort(x, axis), x)
        found, places = map(np.asarray, jit(run)(x))
    np.testing.assert_array_equal(places, order)
    assert found.tobytes() == np.take_along_axis(x, order, axis).tobytes()


def test_sorting_of_many_rows_of_floats_by_keys() -> None:
    """Where zeros or NaN differ in their bits, they keep their order."""
    x = normal((128, 1024)).clip(-3, 3)
    assert taken(onp.sort, x) == ["sort of rows by keys"]
    sort = jit(onp.sort)
    np.testing.assert_array_equal(sort(x), np.sort(x))
    x = keys(x.size, "float32").reshape(x.shape)
    order = np.argsort(x, 1, kind="stable")
    assert np.asarray(sort(x)).tobytes() == np.take_along_axis(x, order, 1).tobytes()


def test_sorting_of_rows_in_transformations() -> None:
    x = np.where(np.isnan(x := keys(3 * 70 * 100, "float32")), 1, x).reshape(3, 70, 100)
    each = jit(vmap(lambda x: lax.sort(x, 0)))
    assert taken(each, x) == [ROWS]
    np.testing.assert_array_equal(each(x), np.sort(x, 1))
    np.testing.assert_array_equal(
        jit(lambda x: lax.scan(lambda c, x: (c, lax.sort(x, 1)), 0, x)[1])(
            np.concatenate([x, x], 1)), np.sort(np.concatenate([x, x], 1), 2))
    weights = normal((210, 100))
    flat = x.reshape(210, 100)
    wanted = np.empty_like(flat)
    np.put_along_axis(wanted, np.argsort(flat, 1, kind="stable"), weights, 1)
    np.testing.assert_array_equal(jit(grad(lambda x: (lax.sort(x) * weights).sum()))(flat), wanted)
    with kernels("off"):
        assert taken(lambda x: lax.sort(x), flat) == []
    rows = keys(16384, "int32").reshape(128, 128)
    for given in (np.zeros_like(rows), np.full_like(rows, -2 ** 31), np.sort(rows)[:, ::-1]):
        np.testing.assert_array_equal(jit(lambda x: lax.sort(x))(given), np.sort(given))


# Partitions

PARTS = "parts by ranks"
PARTED: list[tuple[tuple[int, ...], Any, str, Any, bool]] = [
    ((16383,), -1, "float32", 100, False), ((16384,), -1, "float32", 16383, True),
    ((16385,), None, "float32", 0, True), ((16385,), -1, "float32", (7, 10000, 7), True),
    ((16384,), -1, "float32", (1, 2, 3), False), ((33000,), -1, "int32", -5, True),
    ((70000,), -1, "int16", 9, False), ((520, 63), 1, "float32", 9, False),
    ((260, 64), 1, "float32", (9, 10), True), ((300, 65), 0, "float64", 150, True),
    ((3, 150, 40), 1, "uint32", 75, True)]


@pytest.mark.parametrize(("shape", "axis", "dtype", "kth", "used"), PARTED)
def test_partitions(shape: tuple[int, ...], axis: Any, dtype: str, kth: Any, used: bool) -> None:
    with enable_x64(dtype == "float64"):
        x = keys(int(np.prod(shape)), dtype).reshape(shape)
        def run(x: Any) -> Any:
            return onp.partition(x, kth, axis), onp.argpartition(x, kth, axis)

        assert taken(run, x).count(PARTS) == 2 * used
        parted, places = map(np.asarray, jit(run)(x))
    flat, along = (x.ravel(), 0) if axis is None else (x, axis)
    wanted, n = np.sort(flat, along), flat.shape[along]
    np.testing.assert_array_equal(np.sort(places, along), np.sort(np.argsort(flat, along), along))
    for found in (parted, np.take_along_axis(flat, places, along)):
        np.testing.assert_array_equal(np.sort(found, along), wanted)
        ends = [0, *sorted({k % n for k in np.atleast_1d(kth)}), n]
        for start, stop in itertools.pairwise(ends):    # within a part the order is free
            part, of = [np.take(v, range(start, stop), along) for v in (found, wanted)]
            np.testing.assert_array_equal(np.sort(part, along), of)
        for k in ends[1:-1]:
            np.testing.assert_array_equal(np.take(found, k, along), np.take(wanted, k, along))


def test_partitions_of_nan_infinities_and_zeros_and_in_transformations() -> None:
    x = np.array(normal((6, 6000)))
    x[0, 7], x[1, 3:9], x[2], x[3, ::2], x[3, 1::2] = np.nan, -np.nan, np.nan, np.inf, -np.inf
    x[4, ::2], x[4, 1::2] = -0.0, 0.0
    for kth in (0, 3000, 5999):
        run = functools.partial(onp.partition, kth=kth)
        assert taken(run, x) == [PARTS]
        found = np.asarray(jit(run)(x))
        np.testing.assert_array_equal(found[:, kth], np.sort(x)[:, kth])
        for part in (slice(None), slice(kth), slice(kth, None)):
            np.testing.assert_array_equal(np.sort(found[:, part]), np.sort(x)[:, part])
    each = jit(vmap(functools.partial(onp.partition, kth=10)))(x)
    np.testing.assert_array_equal(each[:, 10], np.sort(x)[:, 10])
    y = np.array(normal((40_000,)))
    gradient = jit(grad(lambda y: onp.partition(y, 9)[9]))(y)
    np.testing.assert_array_equal(np.nonzero(gradient)[0], np.argsort(y)[9:10])
    ones = jit(grad(lambda y: onp.partition(y, 9).sum()))(y)
    np.testing.assert_array_equal(ones, np.ones_like(y))


# Places of ranks

GROUPS = "groups of the ranks"


@pytest.mark.parametrize(("n", "count", "used"), [
    (32767, 3, False), (32768, 1, True), (32769, 512, True), (32768, 513, False),
    (70_001, 100, True)])
def test_places_of_ranks(n: int, count: int, used: bool) -> None:
    """Random words, and words so alike that a group has too many of them."""
    for high in (2 ** 32, 2 ** 20, 50, 1):
        x = RNG.integers(0, high, n, "uint32")
        x[::100] = 2 ** 32 - 1
        ranks = RNG.integers(0, n, count).astype("int32")
        ranks[0], ranks[-1] = 0, n - 1
        assert taken(placed_p.bind, x, ranks) == [GROUPS if used else DIGITS]
        order = np.argsort(x, kind="stable")
        np.testing.assert_array_equal(jit(placed_p.bind)(x, ranks), order[ranks])
    x = keys(4 * 300, "float32").reshape(4, 300)
    ranks = RNG.integers(0, 300, (4, 7))
    wanted = np.take_along_axis(np.argsort(x, 1, kind="stable"), ranks, 1)
    np.testing.assert_array_equal(jit(placed_p.bind)(x, ranks), wanted)
    np.testing.assert_array_equal(vmap(placed_p.bind)(x, ranks), wanted)
    wanted = np.argsort(x[0], kind="stable")[ranks]
    np.testing.assert_array_equal(vmap(placed_p.bind, (None, 0))(x[0], ranks), wanted)


def test_choices_of_few_are_the_first_of_a_permutation() -> None:
    """The draws for a key do not depend on how they are found."""
    random, key = olympus.random, olympus.random.key(5)
    for n, draws in ((64, 1), (1626, 25), (33_000, 515), (33_000, 516)):
        wanted = np.asarray(random.permutation(key, n))[:draws]
        for a in (n, np.arange(n) * 2, np.arange(2 * n).reshape(n, 2)):
            found = random.choice(key, a, (draws,), replace=False)
            np.testing.assert_array_equal(found, wanted if a is n else a[wanted])
    few = jit(lambda key: random.choice(key, 33_000, (5, 103), replace=False))
    assert taken(few, key) == [GROUPS]      # in a loop over rounds
    with kernels("off"):
        assert taken(few, key) == []
    np.testing.assert_array_equal(few(key).ravel(), wanted[:515])
    x = np.arange(200.0, dtype="float32").reshape(2, 100)
    np.testing.assert_array_equal(random.choice(key, x, (1,), False, axis=1),
                                  x[:, np.asarray(random.permutation(key, 100))[:1]])
    pairs = vmap(lambda key: random.choice(key, 100, (1,), False))(random.split(key, 3))
    for pair, one in zip(pairs, random.split(key, 3), strict=True):
        np.testing.assert_array_equal(pair, random.permutation(one, 100)[:1])
    gradient = grad(lambda x: random.choice(key, x, (2,), False).sum())(np.ones(200, "float32"))
    assert gradient.sum() == 2


# Places of true elements

@pytest.mark.parametrize("n", [0, 1, 255, 256, 257, 1031, 40_000])
def test_places_of_true_elements(n: int) -> None:
    """As many as there are, fewer, and more, in an eighth of one and beyond."""
    for part in (0.0, 0.01, 0.5, 1.0):
        x = RNG.random(n) < part
        places = np.flatnonzero(x)
        for size in (0, 1, 7, len(places), n + 9):
            fun = jit(lambda x, size=size: onp.nonzero(x, size=size, fill_value=-5)[0])
            assert taken(fun, x) == (["eight places a step"] if n >= 256 and size else [])
            wanted = np.append(places, np.full(size, -5))[:size]
            np.testing.assert_array_equal(fun(x), wanted)
            with enable_x64(True):
                found = fun(x)
            np.testing.assert_array_equal(found, wanted)
            assert found.dtype == np.int64
    x = RNG.random((3, 5, 90)) < 0.1
    find = functools.partial(onp.nonzero, size=90, fill_value=-1)
    for found, each in zip(jit(vmap(find))(x)[1], x, strict=True):
        np.testing.assert_array_equal(found[:each.sum()], np.nonzero(each)[1])
        assert set(found[each.sum():].tolist()) == {-1}
    np.testing.assert_array_equal(jit(lambda x: onp.nonzero(x, size=x.size))(x)[2][:x.sum()],
                                  np.nonzero(x)[2])


# The largest

LARGEST, OF_BLOCKS = "the largest part, sorted", "the largest of the blocks with the largest maxima"
TOPS: list[tuple[tuple[int, ...], str, int, str]] = [
    ((32767,), "float32", 2000, ""), ((32768,), "float32", 1023, ""),
    ((32768,), "float32", 1024, LARGEST), ((32769,), "float32", 32769, LARGEST),
    ((32768,), "int32", 0, DIGITS), ((32768,), "int32", 1, OF_BLOCKS),
    ((32768,), "uint32", 16384, LARGEST), ((32768,), "int32", 16385, DIGITS),
    ((40_000,), "bfloat16", 5000, LARGEST),
    ((40_000,), "uint16", 9000, LARGEST), ((40_000,), "int8", 9000, LARGEST),
    ((520, 64), "float32", 64, LARGEST), ((520, 63), "float32", 63, ""),
    ((9, 4000), "float64", 3, LARGEST), ((32767,), "int32", 1, DIGITS),
    ((32768,), "uint32", 128, OF_BLOCKS), ((32769,), "int32", 129, LARGEST),
    ((3, 64, 512), "int32", 2, OF_BLOCKS), ((80, 511), "int32", 1, LARGEST),
    ((262_143,), "float32", 3, ""), ((262_144,), "float32", 1024, OF_BLOCKS),
    ((500, 601), "float32", 2, OF_BLOCKS), ((262_145,), "bfloat16", 5, OF_BLOCKS),
    ((262_145,), "int16", 9, OF_BLOCKS), ((262_144,), "int8", 9, OF_BLOCKS)]


@pytest.mark.parametrize(("shape", "dtype", "k", "used"), TOPS)
def test_the_largest(shape: tuple[int, ...], dtype: str, k: int, used: str) -> None:
    """Sorted, the first of equal ones first, 0.0 above -0.0, NaN first."""
    with enable_x64(dtype == "float64"):
        x = keys(int(np.prod(shape)), dtype).reshape(shape)
        run = functools.partial(lax.top_k, k=k)
        assert taken(run, x) == ([used] if used else [])
        values, places = map(np.asarray, jit(run)(x))
    rank = x.astype("float64")
    rank = np.where(np.isnan(rank), np.inf, rank) if dtype[0] != "u" else rank
    second = np.where(np.isnan(x.astype("float64")), 2, 1 - np.signbit(rank))
    index = np.broadcast_to(np.arange(shape[-1]), shape)
    wanted = np.lexsort((index, -second, -rank))[..., :k]
    np.testing.assert_array_equal(places, wanted)
    taken_of = np.take_along_axis(x, wanted, -1)
    assert values[values == values].tobytes() == taken_of[taken_of == taken_of].tobytes()


def test_the_largest_in_transformations() -> None:
    x = normal((3, 40_000))
    run = jit(vmap(lambda x: lax.top_k(x, 4000)[0]))
    np.testing.assert_array_equal(run(x), -np.sort(-x)[:, :4000])
    gradient = jit(grad(lambda x: lax.top_k(x, 4000)[0].sum()))(x[0])
    wanted = np.zeros(40_000, "float32")
    wanted[np.argsort(-x[0], kind="stable")[:4000]] = 1
    np.testing.assert_array_equal(gradient, wanted)


# Order statistics

RANKS = "ranks by counting"
SORTED_RANKS: list[tuple[tuple[int, ...], Any, str, int, bool]] = [
    ((8191,), None, "float32", 1, False), ((8192,), None, "float32", 1, True),
    ((8193,), None, "float32", 6, True), ((8192,), None, "float32", 7, False),
    ((33000,), None, "float64", 2, True), ((520, 63), 1, "float32", 1, False),
    ((256, 64), 1, "float32", 2, True), ((255, 64), 1, "float32", 2, False),
    ((2, 17000), 1, "float32", 3, True), ((1, 8192), 1, "float32", 1, True),
    ((65, 600), 0, "float64", 2, True), ((3, 300, 40), (0, 2), "float32", 2, True)]


@pytest.mark.parametrize(("shape", "axis", "dtype", "count", "used"), SORTED_RANKS)
def test_order_statistics(shape: tuple[int, ...], axis: Any, dtype: str, count: int, used: bool
                          ) -> None:
    with enable_x64(dtype == "float64"):
        x = RNG.standard_normal(shape).astype(dtype)
        x[x > 1] = 1                                        # ties
        q = np.array([0, 1, 0.5, 0.25, 0.9, 1 / 3, 0.07])[:count].astype(dtype)

        def run(x: Any, q: Any) -> Any:
            return olympus.numpy.quantile(x, q, axis, method="lower")       # elements themselves

        assert (RANKS in taken(run, x, q)) == used
        np.testing.assert_array_equal(jit(run)(x, q), np.quantile(x, q, axis, method="lower"))


@pytest.mark.filterwarnings("ignore:All-NaN", "ignore:invalid value")
def test_order_statistics_of_nan_infinities_zeros_and_ties() -> None:
    x = np.array(normal((9, 5000)))
    x[0, 7], x[1, 3:9], x[2], x[3, ::2], x[3, 1::2] = np.nan, -np.nan, np.nan, np.inf, -np.inf
    x[4], x[5], x[6, ::2], x[6, 1::2] = 0.0, -0.0, np.inf, 1e-42
    x[7] = np.float32(-1e-42)
    for fun, oracle in ((onp.median, np.median), (onp.nanmedian, np.nanmedian)):
        run = functools.partial(fun, axis=1)
        assert taken(run, x) == [RANKS]
        # XLA takes subnormal numbers for zeros in products.
        np.testing.assert_allclose(jit(run)(x), oracle(x, 1), rtol=0, atol=1e-40)
    found = np.asarray(jit(lambda x: onp.quantile(x, 0.3, 1, method="lower"))(x))
    assert list(np.signbit(found[4:6])) == [False, True]
    outside = jit(lambda q: onp.quantile(x[8:], q, method="lower"))
    assert [bool(np.isnan(outside(q))) for q in (np.nan, -0.1, 1.1)] == [True] * 3
    for rank in (0, 1, 4998, 4999):
        at = np.full((9, 1), rank, "int32")
        wanted = np.sort(x, 1)[:, [rank, min(rank + 1, 4999)]]
        pair = jit(ranked_p.bind)(x, at)
        np.testing.assert_array_equal(np.concatenate(pair, 1), wanted)


def test_order_statistics_of_integers() -> None:
    for dtype in ("int32", "uint32"):
        x = keys(40_000, dtype)
        at = np.array([0, 1, 20_000, 39_999], "int32")
        assert taken(ranked_p.bind, x, at) == [RANKS]
        for found, places in zip(
                jit(ranked_p.bind)(x, at), (at, np.minimum(at + 1, 39_999)), strict=True):
            np.testing.assert_array_equal(found, np.sort(x)[places])


def test_order_statistics_in_transformations() -> None:
    x = np.asarray(normal((3, 40_000)))
    each = jit(vmap(onp.median))(x)
    np.testing.assert_array_equal(each, np.median(x, 1))
    gradient = np.asarray(jit(grad(lambda x: onp.quantile(x, 0.1)))(x[0]))
    place = 0.1 * 39_999
    order = np.argsort(x[0])[int(place):int(place) + 2]
    wanted = np.zeros(40_000, "float32")
    wanted[order] = [1 - place % 1, place % 1]
    np.testing.assert_allclose(gradient, wanted, atol=1e-2)
    q = np.array([0.2, 0.8], "float32")
    mapped = jit(vmap(lambda q: onp.quantile(x[0], q, method="lower")))(q)
    np.testing.assert_array_equal(mapped, np.quantile(x[0], q, method="lower"))
