"""olympus.numpy called as NumPy is, in 64 bits: values, shapes and dtypes are NumPy's.

Each row was found wrong once, alone or by `generated`, which draws arguments from seeded pools
that hold what is rare: NaN in either part, ties, zeros of both signs, no elements, no axes.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import olympus
from olympus import numpy as onp

NAN, INF = np.nan, np.inf
X = np.arange(6.0)
M = np.arange(6.0).reshape(2, 3)
CUBE = np.random.default_rng(0).normal(size=(2, 3, 4))
BINS = np.array([3.0, 2.0, 1.0])
EDGES = np.array([0.5, 1.0, 1.5, 2.0, 3.0, 4.0, NAN])
HALF_NAN = np.array([complex(1, NAN), 3, complex(5, NAN), 9, complex(NAN, 0), 9])
ROWS_NAN = np.array([[7.0, 7], [1, 2], [7, 7]])

Call = Callable[[Any], Any]
SORTS: list[tuple[str, Call]] = [
    ("digitize by descending bins, at ties", lambda o: o.digitize(EDGES, BINS)),
    ("digitize by descending bins from the right", lambda o: o.digitize(EDGES, BINS, right=True)),
    ("digitize by one bin", lambda o: o.digitize(EDGES, BINS[:1])),
    ("digitize by bins that end in NaN", lambda o: o.digitize(EDGES, np.array([0.0, 1, NAN]))),
    ("sort of complex numbers with NaN in one part", lambda o: o.sort(HALF_NAN)),
    ("argsort of complex numbers with NaN", lambda o: o.argsort(HALF_NAN, kind="stable")),
    ("searchsorted among complex numbers with NaN",
     lambda o: o.searchsorted(np.sort(HALF_NAN), HALF_NAN, side="right")),
    ("lexsort with a complex key", lambda o: o.lexsort((X, HALF_NAN))),
    ("unique of complex numbers with NaN", lambda o: o.unique(HALF_NAN, True, True, True)),
    ("unique rows", lambda o: o.unique(ROWS_NAN, axis=0, return_counts=True)),
    ("argpartition of several places", lambda o: o.partition(X[::-1], (1, 3))[1:4:2]),
    ("partition of the flattened array", lambda o: o.partition(M, 2, axis=None)[2]),
    ("bincount has default integers", lambda o: o.bincount(np.array([1, 1, 3], np.uint8))),
    ("searchsorted has default integers", lambda o: o.searchsorted(BINS[::-1], 2)),
]
METHODS = [
    "linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf", "averaged_inverted_cdf",
    "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased",
    "normal_unbiased",
]
FRACTIONS = np.array([0, 0.1, 0.2, 0.25, 0.5, 0.6, 0.75, 1])
TIED = np.array([0.1, -0.1, 0.6, 0.1, -0.5])
WEIGHTS = np.array([[0, 1, 2], [2, 0, 1]])
STATISTICS: list[tuple[str, Call]] = [
    ("median over no axes", lambda o: o.median(M, axis=())),
    ("quantile over no axes", lambda o: o.quantile(M, 0.3, axis=(), keepdims=True)),
    ("median of an empty batch", lambda o: o.median(np.zeros((2, 0, 3)), -1)),
    ("median of no elements is NaN", lambda o: o.median(np.zeros((2, 0, 3)), 1)),
    *[(f"quantile by {m}", lambda o, m=m: o.quantile(TIED, FRACTIONS, method=m)) for m in METHODS],
    ("quantile with weights",
     lambda o: o.quantile(M, FRACTIONS, method="inverted_cdf", weights=WEIGHTS)),
    ("percentile with a weight per column", lambda o: o.percentile(
        M, 30.0, axis=1, method="inverted_cdf", weights=np.array([1, 0, 2]))),
    ("nanquantile with weights", lambda o: o.nanquantile(
        np.where(M == 3, NAN, M), FRACTIONS, axis=1, method="inverted_cdf", weights=WEIGHTS)),
    ("average by weights of several axes",
     lambda o: o.average(CUBE, axis=(2, 0), weights=np.abs(CUBE[:, 0].T))),
    ("trapezoid with steps that broadcast", lambda o: o.trapezoid(M, dx=np.ones((5, 1, 1)))),
    ("trapezoid with a step per gap", lambda o: o.trapezoid(M, dx=np.arange(2.0))),
    ("trapezoid over the first of two axes", lambda o: o.trapezoid(M, np.array([1.0, 4]), axis=0)),
    ("trapezoid of no points", lambda o: o.trapezoid(M[:, :0])),
]
ROWS = [*SORTS, *STATISTICS]


@pytest.fixture(autouse=True)
def wide() -> Iterator[None]:
    with olympus.enable_x64(True):
        yield


def check(found: Any, expected: Any) -> None:
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for f, e in zip(found, expected, strict=True):
            check(f, e)
        return
    expected = np.asarray(expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", [c for _, c in ROWS], ids=[name for name, _ in ROWS])
def test_is_numpys(call: Call) -> None:
    check(call(onp), call(np))


def pool(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """n numbers with ties, for floats and complex numbers with NaN."""
    x = rng.integers(0, 4, n)
    if kind not in "dz":
        return x.astype({"i": "i4", "u": "u1", "b": "?"}[kind])
    x = np.where(rng.random(n) < 0.25, NAN, x)
    if kind == "d":
        return x
    z = x.astype("c16")
    z.imag = np.where(rng.random(n) < 0.2, NAN, rng.integers(0, 2, n))
    return z


@pytest.mark.parametrize("kind", "dziub")
def test_sets_with_nan_and_ties_are_numpys(kind: str) -> None:
    rng = np.random.default_rng(ord(kind))
    for n, m in [(6, 6), (6, 0), (0, 6), (6, 6)]:
        a, b = pool(kind, n, rng), pool(kind, m, rng)
        for name, args, options in (
                ("unique", (a,), {"return_index": True, "return_inverse": True,
                                  "return_counts": True}),
                ("unique", (a,), {"equal_nan": False}), ("union1d", (a, b), {}),
                ("setdiff1d", (a, b), {}), ("setdiff1d", (a, b), {"assume_unique": True}),
                ("setxor1d", (a, b), {}), ("intersect1d", (a, b), {"return_indices": True}),
                ("isin", (a, b), {})):
            check(getattr(onp, name)(*args, **options), getattr(np, name)(*args, **options))


def test_rows_with_nan_are_counted_once() -> None:
    values, counts = onp.unique(np.array([[NAN, 1], [NAN, 1], [7, 7]]), axis=0, return_counts=True)
    check(values, np.array([[7, 7], [NAN, 1]]))
    check(counts, np.array([1, 2]))


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_nan_of_small_floats_is_one_element(kind: str) -> None:
    x = onp.array([NAN, 2, NAN, 1, -NAN], kind)
    values, counts = onp.unique(x, return_counts=True)
    np.testing.assert_array_equal(values.astype("float64"), [1, 2, NAN])
    check(counts, np.array([1, 1, 3]))


def test_sets_of_fixed_size() -> None:
    a, b = np.array([3.0, 1, 3, NAN]), np.array([3.0, NAN, 0])
    found, left, right = olympus.jit(lambda a, b: onp.intersect1d(
        a, b, return_indices=True, size=3, fill_value=-1))(a, b)
    check([found, left, right], [np.array([3.0, -1, -1]), np.array([0, 4, 4]),
                                 np.array([0, 3, 3])])
    check(onp.setxor1d(a, b, size=5, fill_value=9), np.array([0, 1, NAN, NAN, 9]))
    check(onp.setdiff1d(a, b, size=3, fill_value=9), np.array([1, NAN, 9]))
    check(onp.unique(a, size=0), np.zeros(0))
    check(onp.unique(a, size=4, fill_value=9), np.array([1, 3, NAN, 9]))
    check(onp.unique(a[:0], size=2, fill_value=9), np.array([9.0, 9]))


def test_quantiles_outside_of_0_and_1_are_nan() -> None:
    check(onp.quantile(X, np.array([NAN, -0.1, 1.1, 1.0])), np.array([NAN, NAN, NAN, 5]))


REFUSALS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: onp.bincount(np.array([1]), minlength=1.5), TypeError, "minlength: dimension 1.5"),
    (lambda: onp.bincount(np.array([1]), minlength=-1), ValueError, "minlength: dimension -1"),
    (lambda: onp.unique(X, size=1.5), TypeError, "unique: size: dimension 1.5"),
    (lambda: onp.unique(X[:0], size=2), ValueError, "pass fill_value"),
    (lambda: onp.ediff1d(X > 2), TypeError, "booleans have no differences"),
    (lambda: onp.std(X, dtype=bool), ValueError, "variances are real"),
    (lambda: onp.var(X, dtype=bool), ValueError, "variances are real"),
    (lambda: onp.nanmean(X, dtype=bool), TypeError, "a dtype of numbers is required"),
    (lambda: onp.quantile(X, 0.5, weights=X), ValueError, "only 'inverted_cdf' takes weights"),
    (lambda: onp.quantile(X, 1j), ValueError, "have no order"),
    (lambda: onp.average(M, axis=1, weights=X), ValueError, "sizes of the axes"),
]


@pytest.mark.parametrize(("call", "error", "text"), REFUSALS, ids=[r[2] for r in REFUSALS])
def test_refused(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
