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
    *[(f"{f} of complex numbers with NaN in one part", lambda o, f=f: getattr(o, f)(
        HALF_NAN.reshape(2, 3), axis=0)) for f in (
            "max", "min", "argmax", "argmin", "nanargmax", "nanargmin")],
    ("maximum of complex numbers with NaN", lambda o: o.maximum(HALF_NAN, HALF_NAN[::-1])),
    ("minimum of complex numbers with NaN", lambda o: o.minimum(HALF_NAN, HALF_NAN[:1])),
    ("argmax of the flattened complex array", lambda o: o.argmax(HALF_NAN[1::2].reshape(1, 3))),
    *[(f"{f}.accumulate of booleans", lambda o, f=f: getattr(o, f).accumulate(M % 2 > 0, axis=1))
      for f in ("maximum", "minimum")],
    ("partition of nothing", lambda o: o.partition(X[:0], 0)),
    ("argpartition of several places", lambda o: o.partition(X[::-1], (1, 3))[1:4:2]),
    ("partition of the flattened array", lambda o: o.partition(M, 2, axis=None)[2]),
    ("bincount has default integers", lambda o: o.bincount(np.array([1, 1, 3], np.uint8))),
    ("piecewise of a number that functions are called with", lambda o: o.piecewise(
        np.int8(2), [np.True_, np.False_], [lambda v: v * 2, 0])),
    *[(f"{f}.reduce of one element starts from 0", lambda o, f=f: getattr(o, f).reduce(
        np.array([[-2, -3]]), axis=0)) for f in ("gcd", "hypot", "add")],
    ("greater of an unsigned number and a negative one, to the dtype that it has",
     lambda o: o.greater(np.array([5, 0], "u8"), -1, dtype=bool)),
    ("absolute of complex numbers to a wider dtype",
     lambda o: o.absolute(np.array([3 + 4j], "c8"), dtype="f8")),
    ("searchsorted has default integers", lambda o: o.searchsorted(BINS[::-1], 2)),
]
INTS = np.array([[1, 2, 3], [4, 5, 0]])
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
    ("gradient beside an infinity", lambda o: o.gradient(np.array([0, -0.5, INF, 1.5, 2, 3]), 2.0)),
    ("diff more often than there are elements", lambda o: o.diff(X, 10**6)),
    ("diff between two ends", lambda o: o.diff(X, prepend=-1.0, append=9.0)),
    ("unwrap by an odd period", lambda o: o.unwrap(np.array([0, 3, 1, 4]), period=5)),
    ("interp at a jump", lambda o: o.interp(X, np.array([0.0, 2, 2, 4]), np.array([0.0, 1, 5, 6]))),
    ("any of some", lambda o: o.any(M, 1, where=M < 1)),
    ("all of some", lambda o: o.all(M, 1, where=M > 0)),
    ("nanmin over no axes", lambda o: o.nanmin(EDGES, axis=())),
    ("nanmax over no axes from an initial value", lambda o: o.nanmax(EDGES, axis=(), initial=2.0)),
    ("average by weights of several axes",
     lambda o: o.average(CUBE, axis=(2, 0), weights=np.abs(CUBE[:, 0].T))),
    ("trapezoid with steps that broadcast", lambda o: o.trapezoid(M, dx=np.ones((5, 1, 1)))),
    ("trapezoid with a step per gap", lambda o: o.trapezoid(M, dx=np.arange(2.0))),
    ("trapezoid with coordinates of its shape", lambda o: o.trapezoid(M, M * M, axis=0)),
    ("trapezoid over the first of two axes", lambda o: o.trapezoid(M, np.array([1.0, 4]), axis=0)),
    ("trapezoid of no points", lambda o: o.trapezoid(M[:, :0])),
]
PLACES: list[tuple[str, Call]] = [
    ("unravel_index of small integers",
     lambda o: o.unravel_index(np.array([200, 0], np.uint8), (300, 30))),
    ("ravel_multi_index of small integers", lambda o: o.ravel_multi_index(
        (np.array([100], np.int8), np.array([5], np.uint8)), (300, 30))),
    ("choose by small integers that wrap",
     lambda o: o.choose(np.array([127, -1], np.int8), [X[:2], M[1, :2]], mode="wrap")),
    *[(f"take by small integers that {m}", lambda o, m=m: o.take(
        np.arange(300), np.array([100, -1, 127, -128], np.int8), mode=m)) for m in (
            "clip", "wrap")],
    ("take of one place that is clipped", lambda o: o.take(X, -3, mode="clip")),
    ("nonzero has default integers", lambda o: o.nonzero(M > 2)),
    ("argwhere of a scalar", lambda o: o.argwhere(np.array(3.0))),
    ("roll by several shifts along one axis", lambda o: o.roll(M, (1, 2, -4), 0)),
    ("roll by one shift along several axes", lambda o: o.roll(M, np.array([1]), (0, 1, 0))),
    ("roll of all elements by several shifts", lambda o: o.roll(M, (1, 1))),
    ("roll by no shift", lambda o: o.roll(X, [])),
    ("reshape to an array", lambda o: o.reshape(X, np.array([2, -1]))),
    ("meshgrid of matrices and a scalar", lambda o: o.meshgrid(M, 2.0)),
    ("tensordot over fewer than no axes", lambda o: o.tensordot(M, M, axes=-1)),
]
COMPLEX = np.array([0j, -0j, complex(INF, 1), complex(INF, INF), 1 + 2j, 1 - 3j])
TINY = np.array([1e-310, 0, -0.0, 5e-324, -1e-310, 1, -1, 1.7976931348623157e308, INF, -INF, NAN,
                 2.2250738585072014e-308, 4.5e-308, 1e-292])
ZEROS = np.array([1.0, -1, 0, NAN, INF, 7.5])
FLOATS: list[tuple[str, Call]] = [
    ("log10 of complex zeros and infinities", lambda o: o.log10(COMPLEX)),
    ("log2 of complex zeros and infinities", lambda o: o.log2(COMPLEX)),
    ("spacing of subnormal numbers", lambda o: o.spacing(TINY)),
    ("spacing in float32", lambda o: o.spacing(TINY.astype(np.float32))),
    ("ldexp by exponents beyond int32",
     lambda o: o.ldexp(np.array([1.0, -2, 3], np.float32), np.array([2**31, 2**33, -2**40]))),
    ("multiply of NaN by a boolean", lambda o: o.multiply(ZEROS[:, None], np.array([True, False]))),
    ("floor_divide by zeros", lambda o: o.floor_divide(ZEROS[:, None], np.array([0.0, -0.0]))),
    ("divmod by zeros", lambda o: o.divmod(ZEROS[:, None], np.array([0.0, -0.0]))),
]
EMPTY_PADS: list[tuple[str, Call]] = [
    (f"pad of an empty array by {m}", lambda o, m=m: o.pad(M[:0], ((0, 0), (1, 1)), m))
    for m in ("edge", "reflect", "symmetric", "wrap", "linear_ramp", "maximum", "minimum", "mean",
              "median")]
NORMS: list[tuple[str, Call]] = [
    *[(f"norm {k} of no numbers", lambda o, k=k: o.linalg.norm(X[:0], k))
      for k in (None, 0, 1, 2, 3, -3, INF)],
    ("vector_norm of no order", lambda o: o.linalg.vector_norm(M, axis=0, ord=None)),
    *[(f"norm {k} of an empty matrix", lambda o, k=k: o.linalg.norm(M[:0], k))
      for k in (None, "nuc", 1, -1, 2, INF)],
]
ROWS = [*SORTS, *STATISTICS, *PLACES, *FLOATS, *EMPTY_PADS, *NORMS]


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


def test_places_written_by_small_integers() -> None:
    found = onp.put(np.zeros(600), np.array([200, 255], np.uint8), 7.0, inplace=False)
    np.testing.assert_array_equal(np.nonzero(found)[0], [200, 255])
    found = onp.put(np.zeros(300), np.array([-1, 100], np.int8), 7.0, mode="wrap", inplace=False)
    np.testing.assert_array_equal(np.nonzero(found)[0], [100, 299])


def test_axes_by_any_sequence() -> None:
    for axes in (range(2), np.array([0, 1]), onp.array([0, 1]), [0, 1]):
        check(onp.sum(M, axis=axes), np.sum(M))
        check(onp.transpose(M, axes), M)
        assert onp.expand_dims(M, axes).shape == (1, 1, 2, 3)
    check(onp.sum(M, axis=np.array(0)), np.sum(M, 0))
    check(onp.reshape(X, onp.array([3, 2])), X.reshape(3, 2))
    assert onp.shape(None) == () and onp.ndim(None) == 0 and onp.size(None) == 1


def test_arrays_of_text_have_a_shape() -> None:
    text = np.array([["a", "b"]])
    assert onp.shape(text) == (1, 2) and onp.ndim(text) == 2 and onp.size(text, 1) == 2


@pytest.mark.parametrize(("kind", "to"), [
    ("?", "uint8"), ("?", "int16"), ("uint8", "?"), ("int16", "?"), ("c16", "f8"), ("f8", "c16"),
    ("c8", "uint16"), ("c16", "c8"), ("f4", "c16")])
def test_view_of_booleans_and_complex_numbers(kind: str, to: str) -> None:
    x = (np.arange(8).reshape(2, 4) % 3).astype(kind)
    check(onp.array(x).view(to), x.view(to))


def test_scalars_come_back_as_arrays() -> None:
    for scalar in (1.5, np.float32(2), np.array(3)):
        for found in (onp.fft.fftshift(scalar), onp.fft.ifftshift(scalar), onp.squeeze(scalar),
                      onp.transpose(scalar), onp.permute_dims(scalar, ()), onp.roll(scalar, 1)):
            assert isinstance(found, olympus.Array)
            assert float(found) == scalar


def test_logaddexp_of_complex_numbers_is_the_principal_logarithm() -> None:
    x, y = np.array([1 + 3j, 1 + 4j, -2 - 9j, 5j]), np.array([1 + 3j, 1 + 4j, 1 + 20j, -7j])
    check(onp.logaddexp(x, y), np.log(np.exp(x) + np.exp(y)))
    check(onp.logaddexp2(x, y), np.log(np.exp2(x) + np.exp2(y)) / np.log(2))
    slope = np.exp(x) / (np.exp(x) + np.exp(y))
    check(olympus.vmap(olympus.grad(onp.logaddexp, holomorphic=True))(onp.array(x), onp.array(y)),
          slope)


def test_geometric_sequences_from_or_to_zero() -> None:
    for ends in ((1, 0), (0.0, 2), (np.array([1, 0.0]), 3)):
        with pytest.raises(ValueError, match="geomspace: .* cannot include zero"):
            onp.geomspace(*ends, 3)
    found = olympus.jit(lambda a, b: onp.geomspace(a, b, 3))(np.array([1.0, 1]), np.array([0, 4.0]))
    check(found, np.array([[NAN, 1], [NAN, 2], [NAN, 4]]))


BEYOND = [300.0, -5.0, 255.9, 1e30, -1e30, NAN, INF, -INF]
CONVERSIONS: list[tuple[str, Callable[[float], Any]]] = [
    ("astype", lambda x: onp.astype(x, "uint8")), ("full", lambda x: onp.full((), x, "uint8")),
    ("full in a program", lambda x: olympus.jit(lambda: onp.full((), x, "uint8"))()),
    ("NumPy's array", lambda x: onp.asarray(np.array(x), "uint8")),
    ("NumPy's scalar", lambda x: onp.asarray(np.float32(x), "uint8")),
    ("Array", lambda x: onp.asarray(x).astype("uint8")),
    ("convert_element_type", lambda x: olympus.lax.convert_element_type(x, "uint8")),
    ("stack", lambda x: onp.stack([x], dtype="uint8", casting="unsafe")[0]),
]


@pytest.mark.parametrize("convert", [c for _, c in CONVERSIONS], ids=[n for n, _ in CONVERSIONS])
def test_floats_beyond_an_integer_dtype_saturate_however_they_are_given(convert: Any) -> None:
    assert [int(convert(x)) for x in BEYOND] == [255, 0, 255, 255, 0, 0, 255, 0]


def test_floats_beyond_the_widest_integers_saturate() -> None:
    x = np.array([1e30, -1e30, 2.0**63, 2.0**64, -0.5, 5.7, NAN])
    check(onp.asarray(x, "int64"), np.array([2**63 - 1, -2**63, 2**63 - 1, 2**63 - 1, 0, 5, 0]))
    check(onp.asarray(x, "uint64"),
          np.array([2**64 - 1, 0, 2**63, 2**64 - 1, 0, 5, 0], np.uint64))
    assert onp.asarray(x, "int4").astype("int8").tolist() == [7, -8, 7, 7, 0, 5, 0]


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_determinants_of_small_floats(kind: str) -> None:
    a = np.diag([2.0, -4, 1, 0.5]) + np.eye(4, k=1)
    sign, size = onp.linalg.slogdet(onp.array(a, kind))
    assert (sign.dtype, size.dtype) == (kind, kind)
    np.testing.assert_allclose(size.astype(float), np.log(4), rtol=1e-2)
    assert float(sign) == -1 and float(onp.linalg.det(onp.array(a, kind))) == -4


def test_quantiles_outside_of_0_and_1_are_nan() -> None:
    check(onp.quantile(X, np.array([NAN, -0.1, 1.1, 1.0])), np.array([NAN, NAN, NAN, 5]))


STRICT: list[tuple[str, Call]] = [
    ("average of integers", lambda o: o.average(INTS)),
    ("average with integer weights", lambda o: o.average(INTS, axis=1, weights=INTS[0])),
    ("average with weights", lambda o: o.average(INTS, axis=1, weights=o.sum(M, 0))),
    ("var of complex numbers", lambda o: o.var(M + 1j)),
    ("nanstd of complex numbers", lambda o: o.nanstd(M + 1j, axis=0)),
    ("unravel_index", lambda o: o.unravel_index(INTS.astype(np.int8), (2, 3))),
    ("ldexp", lambda o: o.ldexp(M, INTS)), ("trace", lambda o: o.trace(INTS)),
    ("quantile of integers", lambda o: o.quantile(INTS, 0.3)),
    ("isin by pairs", lambda o: o.isin(M, np.arange(12.0))),
    ("searchsorted", lambda o: o.searchsorted(X, M)),
    ("trapezoid with coordinates", lambda o: o.trapezoid(M, M[0])),
    ("array_equiv", lambda o: o.array_equiv(M, M[0])),
    ("trapezoid with a step per gap", lambda o: o.trapezoid(M, dx=X[:2])),
    ("pad by mean", lambda o: o.pad(INTS, 1, "mean")),
    ("gradient", lambda o: o.gradient(M, 2.0, axis=1)), ("polyval", lambda o: o.polyval(X, M)),
    ("convolve", lambda o: o.convolve(X, BINS)), ("cov", lambda o: o.cov(M, M[0])),
    ("corrcoef", lambda o: o.corrcoef(M)), ("polydiv", lambda o: o.polydiv(X[1:], BINS)[0]),
    ("polyfit", lambda o: o.polyfit(X, X ** 2, 1, cov=True)),
    ("interp", lambda o: o.interp(M, BINS[::-1], X[:3], left=-1.0)),
    ("histogram of integers", lambda o: o.histogram(INTS, 3)),
    ("histogramdd of integers", lambda o: o.histogramdd(INTS, 2, density=True)),
    ("unwrap of integers", lambda o: o.unwrap(INTS, period=4)),
]


@pytest.mark.parametrize("start, stop, base, axis", [
    (0, 3, [2, 3, 4, 5], 0), (0, 3, [2, 3], -1), ([0, 1], 3, [[2], [3]], 1),
    (0, [[1], [2]], [2, 3], 0), (-1, 2, [[2, 3]], -1)])
def test_a_geometric_grid_has_an_axis_more_than_its_bases(start, stop, base, axis):
    args = [np.asarray(x, "float32") for x in (start, stop, base)]
    want = np.logspace(*args[:2], 4, base=args[2], axis=axis)
    for fun in (onp.logspace, olympus.jit(onp.logspace, static_argnums=(2, 3, 5, 6))):
        found = fun(*args[:2], 4, True, args[2], None, axis)
        assert found.shape == want.shape
        np.testing.assert_allclose(found, want, 1e-5)


@pytest.mark.parametrize("call", [c for _, c in STRICT], ids=[name for name, _ in STRICT])
def test_strict_promotion_of_dtypes_and_ranks(call: Call) -> None:
    """What a function needs inside must not be asked of the user."""
    with olympus.numpy_dtype_promotion("strict"), olympus.numpy_rank_promotion("raise"):
        found = call(onp)
    check(found, call(np))


# What strict promotion refuses of (float32[3], int32[3]): as JAX 0.10.2, but for `DIFFERENT`.
MIXED_REFUSED = """
    searchsorted linspace logspace isclose allclose array_equal cov polyval polyadd digitize append
    kron cross outer convolve vdot setxor1d union1d isin intersect1d setdiff1d power corrcoef equal
    maximum divmod histogram2d vecdot array_equiv add subtract multiply divide hypot arctan2
    concatenate stack hstack column_stack where select interp clip block
""".split()    # noqa: SIM905
MIXED_TAKEN = """
    ldexp repeat meshgrid logical_and logical_or logical_xor take average trapezoid gradient
    histogram bincount place piecewise ediff1d
""".split()    # noqa: SIM905
DIFFERENT = {
    "array_equiv": "compares, as array_equal and equal do, which JAX refuses",
    "interp": "the values are interpolated at a dtype of all three; JAX casts them",
    "logical_and": "operands are booleans first, each by itself", "logical_xor": "as logical_and",
    "logical_or": "as logical_and", "average": "weights count, and are of any dtype",
    "trapezoid": "places need not have the dtype of the values", "gradient": "as trapezoid",
    "place": "values are cast to the dtype of what they are written into",
}
MIXED_CALLS: dict[str, Call] = {
    "where": lambda o: o.where(F3 > 1, F3, I3), "interp": lambda o: o.interp(F3, F3, I3),
    "select": lambda o: o.select([F3 > 1, F3 > 0], [F3, I3]), "block": lambda o: o.block([F3, I3]),
    "clip": lambda o: o.clip(F3, I3, None),
    "piecewise": lambda o: o.piecewise(F3, [F3 > 1], I3[:2]),
    "take": lambda o: o.take(F3, I3), "average": lambda o: o.average(F3, weights=I3 + 1),
    "place": lambda o: o.place(F3, F3 > 1, I3, inplace=False),
    "gradient": lambda o: o.gradient(F3, I3), "bincount": lambda o: o.bincount(I3, F3),
    "histogram": lambda o: o.histogram(F3, 2, weights=I3),
    "ediff1d": lambda o: o.ediff1d(F3, to_end=I3, to_begin=F3.astype("f2")),
    **{name: lambda o, name=name: getattr(o, name)([F3, I3])
       for name in ("concatenate", "stack", "hstack", "column_stack")},
}
F3, I3 = np.array([0.5, 1.5, 2.5], np.float32), np.array([2, 0, 1], np.int32)


@pytest.mark.parametrize("name", [*MIXED_REFUSED, *MIXED_TAKEN])
def test_strict_promotion_of_two_dtypes(name: str) -> None:
    call = MIXED_CALLS.get(name, lambda o: getattr(o, name)(F3, I3))
    with olympus.numpy_dtype_promotion("strict"):
        if name in MIXED_TAKEN:
            call(onp)
        else:
            with pytest.raises(ValueError, match="dtype promotion: .* given; operands of one"):
                call(onp)
    call(onp)


def test_what_strict_promotion_decides_by_itself_has_a_row() -> None:
    assert set(DIFFERENT) <= {*MIXED_REFUSED, *MIXED_TAKEN}


REFUSALS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: onp.bincount(np.array([1]), minlength=1.5), TypeError, "minlength: dimension 1.5"),
    (lambda: onp.bincount(np.array([1]), minlength=-1), ValueError, "minlength: dimension -1"),
    (lambda: onp.unique(X, size=1.5), TypeError, "unique: size: dimension 1.5"),
    (lambda: onp.unique(X[:0], size=2), ValueError, "pass fill_value"),
    (lambda: onp.ediff1d(X > 2), TypeError, "booleans have no differences"),
    (lambda: onp.ediff1d(INTS, to_end=1.5), TypeError, "a dtype of the same kind"),
    (lambda: onp.cov(M, dtype=int), ValueError, "cov: dtype int"),
    (lambda: onp.corrcoef(M, dtype=bool), ValueError, "corrcoef: dtype bool given"),
    (lambda: onp.linalg.cross(1.0, X), ValueError, "axis -1 is out of bounds"),
    *[(lambda m=m: onp.pad(M[:0], 1, m), ValueError, f"mode '{m}' given; can't extend empty axis")
      for m in ("edge", "linear_ramp", "maximum", "mean")],
    (lambda: onp.pad(M[:0], 1, "reflect", reflect_type="odd"), ValueError, "can't extend empty"),
    (lambda: onp.sum(X, dtype=1.5), TypeError, "dtype: 1.5 given; data type not understood"),
    (lambda: onp.diff(X, 1.5), TypeError, "diff: n 1.5"),
    (lambda: onp.tensordot(M, M, axes=None), TypeError, "tensordot: axes None"),
    (lambda: onp.trace(M, 1.5), TypeError, "trace: offset 1.5"),
    (lambda: onp.linalg.tensorinv(M, 1.5), TypeError, "tensorinv: ind 1.5"),
    (lambda: onp.rollaxis(M, 1, None), TypeError, "rollaxis: start None"),
    (lambda: onp.lexsort((X, X), batch_size=1.5), TypeError, "lexsort: batch_size 1.5"),
    (lambda: onp.nonzero(X, size="a"), TypeError, "nonzero: size: dimension 'a'"),
    (lambda: onp.fft.fftn(M, 1.5), TypeError, "fftn: s 1.5 given; a sequence"),
    (lambda: onp.fft.fft2(M, axes=1), TypeError, "fft2: axes 1 given; a sequence"),
    (lambda: onp.fft.fft(M, 1j), TypeError, "fft: size 1j"),
    (lambda: onp.std(X, dtype=bool), ValueError, "variances are real"),
    (lambda: onp.var(X, dtype=bool), ValueError, "variances are real"),
    (lambda: onp.nanmean(X, dtype=bool), TypeError, "a dtype of numbers is required"),
    (lambda: onp.quantile(X, 0.5, weights=X), ValueError, "only 'inverted_cdf' takes weights"),
    (lambda: onp.quantile(X, 1j), ValueError, "have no order"),
    (lambda: onp.round(X, 1.5), TypeError, "round: decimals 1.5"),
    (lambda: onp.pad(X, 1.5), TypeError, "pad: pad_width 1.5"),
    (lambda: onp.pad(X, np.array([1.0, 2])), TypeError, "pad: pad_width np.float64"),
    (lambda: onp.pad(X, 1, "mean", stat_length=1.5), TypeError, "pad: stat_length 1.5"),
    (lambda: onp.pad(X, {3: 1}), ValueError, "pad: axis 3 is out of bounds"),
    (lambda: onp.tile(X, 1j), TypeError, "tile: reps: dimension 1j"),
    (lambda: onp.tile(X, 1.5), TypeError, "tile: reps: dimension 1.5"),
    (lambda: onp.rot90(M, 1.5), TypeError, "rot90: k 1.5"),
    (lambda: onp.rot90(CUBE, 1, (0, 1, 2)), ValueError, "two axes are required"),
    (lambda: onp.roll(X, 1.5), TypeError, "an integer, or a vector"),
    (lambda: onp.roll(M, (1, 2), (0, 1, 0)), ValueError, "2 shifts given for 3 axes"),
    (lambda: onp.ravel([1, 2]), TypeError, "ravel: operand 0 is of type list"),
    (lambda: onp.zeros(b"ab"), TypeError, "dimension b'ab'"),
    (lambda: onp.zeros({1}), TypeError, "dimension {1}"),
    (lambda: onp.repeat(2.0, 2, axis=1), ValueError, "axis 1 is out of bounds"),
    (lambda: onp.unravel_index(np.array([1]), (2.5,)), TypeError, "dimension 2.5"),
    (lambda: onp.ravel_multi_index(np.array([[1]] * 5), (2**13,) * 5, mode="wrap"), ValueError,
     "cannot count as many"),
    (lambda: onp.extract(X > -1, X, size=7), ValueError, "size 7 given for an axis of 6"),
    (lambda: onp.einsum("ii->i", M[:1]), ValueError, "axes of several sizes"),
    (lambda: onp.einsum("ii,i", np.ones((1, 3)), BINS), ValueError, "axes of several sizes"),
    (lambda: onp.fft.fftfreq(4, 1j), TypeError, "a real number is required"),
    *[(lambda f=f: getattr(onp.fft, f)(X, axis=None), TypeError, f"{f}: axis None")
      for f in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")],
    (lambda: onp.linalg.norm(X[:0], -INF), ValueError, "the smallest of no elements"),
    (lambda: onp.linalg.norm(M[:0], -2), ValueError, "the smallest of no elements"),
    (lambda: onp.linalg.norm(M[:, :0], -1), ValueError, "the smallest of no elements"),
    (lambda: onp.vsplit(X, 2), ValueError, "vsplit: float64.6. given; at least 2 axes"),
    (lambda: onp.dsplit(M, 3), ValueError, "dsplit: float64.2,3. given; at least 3 axes"),
    (lambda: onp.average(M, axis=1, weights=X), ValueError, "sizes of the axes"),
]


@pytest.mark.parametrize(("call", "error", "text"), REFUSALS, ids=[r[2] for r in REFUSALS])
def test_refused(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


KEYWORDS: list[tuple[str, Call]] = [
    ("array", lambda o: o.array([1, 2], subok=True, ndmax=1, like=None)),
    ("asarray", lambda o: o.asarray([1, 2], like=None)),
    ("zeros", lambda o: o.zeros((2, 3), float, "C", like=None)),
    ("ones", lambda o: o.ones(3, int, order="C")), ("full", lambda o: o.full(3, 2, int, "C")),
    ("eye", lambda o: o.eye(2, 3, 1, float, "C", like=None)),
    ("copy", lambda o: o.copy(X, "K") if o is np else o.copy(X, "K", True)),
    ("identity", lambda o: o.identity(2, like=None)), ("arange", lambda o: o.arange(3, like=None)),
    ("zeros_like", lambda o: o.zeros_like(M, order="K", subok=False)),
    ("ones_like", lambda o: o.ones_like(M, order="A", subok=True)),
    ("full_like", lambda o: o.full_like(M, 3, order="C", subok=True)),
    ("empty_like", lambda o: 0 * o.empty_like(INTS, order="K", subok=False)),
    ("frombuffer", lambda o: o.frombuffer(b"abcd", "uint8", like=None)),
    ("nanvar", lambda o: o.nanvar(EDGES, correction=1)),
    ("nanvar of no more than ddof", lambda o: o.stack(
        [o.nanvar(EDGES[5:], ddof=1), o.nanvar(M, ddof=7), o.nanvar(INTS, ddof=99),
         o.var(EDGES[:2], ddof=3)])),
    ("nanstd", lambda o: o.nanstd(M, axis=0, correction=0.5)),
    ("concatenate", lambda o: o.concatenate([M, M], 1, out=None, casting="safe", dtype=float)),
    ("concat", lambda o: o.concat([INTS, INTS], axis=0, dtype=float, casting="safe", out=None)),
    ("stack", lambda o: o.stack([X, X], casting="same_kind")),
    ("vstack", lambda o: o.vstack([X, X], casting="no", dtype=float)),
    ("hstack", lambda o: o.hstack([X, X], casting="equiv", dtype=float)),
    ("broadcast_to", lambda o: o.broadcast_to(X, (2, 6), True)),
    ("broadcast_arrays", lambda o: o.broadcast_arrays(M, M[0], subok=True)),
    ("isin", lambda o: o.isin(INTS, [2, 3] if o is np else np.array([2, 3]), kind="sort")),
    ("partition", lambda o: o.partition(X[::-1], 2, kind="introselect")[2]),
    ("argpartition", lambda o: o.argpartition(X[::-1], 0, kind="introselect", order=None)[0]),
    ("unravel_index", lambda o: o.unravel_index(np.arange(24), (2, 3, 4), order="F")),
    ("cumulative_sum", lambda o: o.cumulative_sum(X, out=None)),
    ("matrix_rank", lambda o: o.linalg.matrix_rank(A=M)), ("tri", lambda o: o.tri(2, like=None)),
    ("concatenate to a narrower kind",
     lambda o: o.concatenate([X], dtype="int32", casting="unsafe")),
    ("genfromtxt", lambda o: o.genfromtxt(["1,2", "3,"], delimiter=",", like=None)),
    ("loadtxt", lambda o: o.loadtxt(["1 2"], like=None)),
    ("dot", lambda o: o.dot(M, M[0], out=None)), ("clip", lambda o: o.clip(X, a_min=1, a_max=3)),
]


@pytest.mark.filterwarnings("ignore:Degrees of freedom", "ignore:divide by zero")
@pytest.mark.parametrize("call", [c for _, c in KEYWORDS], ids=[name for name, _ in KEYWORDS])
def test_keywords_are_numpys(call: Call) -> None:
    check(call(onp), call(np))


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: onp.zeros(3, order="F"), ValueError, "zeros: order 'F' given; programs see no"),
    (lambda: onp.ones(2) * np.clongdouble(1), TypeError, "multiply: operand 1 is a NumPy array of"),
    (lambda: onp.array([[1]], ndmax=1), ValueError, "at most ndmax = 1"),
    (lambda: onp.ones(3, like=X), TypeError, "ones: like of type ndarray"),
    (lambda: onp.tri(3, like=X), TypeError, "tri: like of type ndarray"),
    (lambda: onp.loadtxt(["1"], like=X), TypeError, "loadtxt: like of type ndarray"),
    (lambda: onp.genfromtxt(["1"], like=X), TypeError, "genfromtxt: like of type ndarray"),
    (lambda: onp.stack([X], dtype="int32"), TypeError, "stack: float64.6. and dtype int32 given"),
    (lambda: onp.hstack([X, X > 1], casting="equiv"), TypeError, "rule 'equiv'"),
    (lambda: onp.linalg.matrix_rank(M=M, A=M), TypeError, "matrix_rank: M and A given"),
    (lambda: onp.linalg.multi_dot([M, M.T], out=X), TypeError, "multi_dot: the argument out"),
    *[(lambda f=f: getattr(onp.fft, f)(M, out=X), TypeError, f"{f}: the argument out is given")
      for f in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fftn", "ifftn", "rfftn",
                "irfftn", "fft2", "ifft2", "rfft2", "irfft2")],
    (lambda: onp.concatenate([X], dtype="int32", casting="safe"), TypeError, "rule 'safe'"),
    (lambda: onp.clip(X, 1, a_min=2), ValueError, "they mean the same"),
    (lambda: onp.clip(X, 1, out=X), TypeError, "clip: the argument out is given"),
    (lambda: onp.dot(X, X, out=X), TypeError, "dot: the argument out is given"),
    (lambda: onp.concat([X], out=X), TypeError, "the argument out is given"),
    (lambda: onp.cumulative_prod(X, out=X), TypeError, "the argument out is given"),
    (lambda: onp.partition(X, 1, kind="other"), ValueError, "'introselect' is required"),
    (lambda: onp.isin(X, X, kind="other"), ValueError, "isin: kind 'other' given"),
    (lambda: onp.unravel_index(1, (2, 3), order="K"), ValueError, "'C' or 'F' is required"),
], ids=["order", "extended", "ndmax", "like", "tri", "loadtxt", "genfromtxt", "kind", "equiv", "A",
        "multi_dot", *[f"fft{i}" for i in range(14)], "casting", "a_min", "clip-out", "dot-out",
        "concat-out", "cumulative-out", "partition", "isin", "unravel_index"])
def test_keywords_that_arrays_cannot_honour(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_quantiles_are_never_elements_without_weight() -> None:
    """The running sum of the weights, in float32, moves where 0 is added."""
    rng = np.random.default_rng(0)
    w = rng.random(100_000).astype(np.float32)
    w[rng.random(w.size) < 0.5] = 0
    x = np.arange(w.size, dtype=np.float32)
    q = np.float32([0.020444816, 0.25, 0.5])
    found = olympus.jit(onp.quantile, static_argnames="method")(
        x, q, weights=w, method="inverted_cdf")
    assert np.all(w[np.asarray(found).astype(int)] > 0)
