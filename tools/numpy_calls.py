"""Does olympus.numpy give what NumPy gives? Generated calls of all names of both, in 64 bits.

Each case is a function, or a ufunc's method, with arguments that its parameters' names call for
(`VALUES`; `OWN` for those of one function): arrays of every dtype and of ranks 0 to 3, with and
without elements, numbers, lists, and options, bad ones too. NumPy and Olympus get the same. They
agree if both give the same tree of shapes, dtypes and values, or both refuse by errors of one
family. What differs is held against `REASONS`, one after the other: each is a class of differences
that are meant, with a test that says whether a case is of it. What none of them explains is a
defect.

    PYTHONPATH=. python tools/numpy_calls.py [--cases 60] [--seed 0] [--table] [name ...]
"""

import argparse
import collections
import inspect
import re
import sys
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

import olympus
import olympus.numpy as onp

MODULES = {"": (onp, np), "linalg.": (onp.linalg, np.linalg), "fft.": (onp.fft, np.fft),
           "emath.": (onp.emath, np.emath)}
# Files and text (tests/test_numpy_host.py), memory that is not written, functions of functions.
SKIPPED = frozenset("""
    array2string array_repr array_str empty empty_like frombuffer fromfile fromiter frompyfunc
    fromstring genfromtxt load loadtxt set_printoptions vectorize einsum_path
""".split())    # noqa: SIM905
IN_PLACE = frozenset(["copyto", "putmask", "fill_diagonal", "place", "put", "put_along_axis"])
# Results that are unique up to signs, or phases, of columns and rows.
UNSIGNED = frozenset(["linalg.eig", "linalg.eigh", "linalg.qr", "linalg.svd"])
UNORDERED = frozenset(["argpartition", "partition", "unique_values", "roots"])
METHODS = ("reduce", "accumulate", "outer", "reduceat", "at")

KINDS = ["f8", "f8", "i8", "f4", "c16", "?", "i4", "f2", "u1", "i2", "i1", "u4", "u2", "u8", "c8"]
SHAPES: list[tuple[int, ...]] = [(2, 3), (4,), (3, 3), (), (0,), (2, 3, 2), (1, 3), (0, 3), (5, 5)]
SQUARES: list[tuple[int, ...]] = [(3, 3), (2, 3, 3), (4, 4), (2, 3), (0, 0), (4, 2), (3,), (1, 1)]
TALL: list[tuple[int, ...]] = [(3, 3), (5, 2), (2, 5), (3, 3, 3), (7, 3), (3,), (2, 3, 2), (0, 3)]
VECTORS: list[tuple[int, ...]] = [(4,), (7,), (1,), (3,), (4,), (0,), (2, 3)]
NUMBERS: list[Any] = [2.5, 3, True, 1 + 2j, np.float32(1.5), np.int8(2), -1, 0]
LISTS: list[Any] = [[1.5, 2.0, 0.5], [[1, 2, 3], [3, 1, 2]], [True, False], (1, 2)]
OF_VECTORS = frozenset("""
    bartlett bincount convolve correlate digitize histogram2d interp ix_ poly polyadd polyder
    polydiv polyfit polyint polymul polysub roots vander trim_zeros
""".split())    # noqa: SIM905


def numbers(rng: np.random.Generator, shape: tuple[int, ...], kind: str, odd: float = 0.2
            ) -> np.ndarray:
    """Numbers of a kind; floats without ties, now and then with infinities or NaN."""
    dtype = np.dtype(kind)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        return rng.integers(0 if dtype.kind == "u" else -4, 5, shape, endpoint=True).astype(dtype)
    x = rng.uniform(-3, 3, shape)
    if rng.random() < odd:
        x = np.where(rng.random(shape) < 0.4, rng.choice([0, -0.0, np.nan, np.inf, -np.inf, 1, -1],
                                                         shape), x)
    with np.errstate(all="ignore"):
        return (x + 1j * rng.uniform(-3, 3, shape) if dtype.kind == "c" else x).astype(dtype)


def operand(rng: np.random.Generator, shapes: list[tuple[int, ...]]) -> Any:
    chance = rng.random()
    if chance < 0.08:
        return NUMBERS[rng.integers(len(NUMBERS))]
    if chance < 0.11:
        return LISTS[rng.integers(len(LISTS))]
    return numbers(rng, shapes[min(rng.geometric(0.3) - 1, len(shapes) - 1)],
                   KINDS[rng.integers(len(KINDS))], 0.2 if shapes is SHAPES else 0)


def operand_of(shapes: list[tuple[int, ...]]) -> Callable[[np.random.Generator, Any], Any]:
    return lambda rng, x: operand(rng, shapes)


def beside(rng: np.random.Generator, x: Any) -> Any:
    """A further operand for `x`: mostly of its shape and dtype."""
    x = np.asarray(x)
    chance, kind = rng.random(), KINDS[rng.integers(len(KINDS))]
    if chance < 0.1:
        return NUMBERS[rng.integers(len(NUMBERS))]
    shape = x.shape[-1:] if chance < 0.25 else x.shape
    odd = 0 if x.dtype.kind in "fc" and np.isfinite(x).all() else 0.2
    return numbers(rng, shape, kind if chance > 0.7 else x.dtype.str, odd)


Rng = np.random.Generator
Draw = Callable[[Rng, Any], Any]


def like(kind: str, low: float = 0) -> Draw:
    return lambda rng, x: (np.abs(numbers(rng, np.shape(x), "f8")) + low).astype(kind)


def made(value: Any) -> Draw:
    """A function as the argument."""
    return lambda rng, x: value


def listed(*sizes: int) -> Draw:
    """A list of vectors."""
    return lambda rng, x: [numbers(rng, (n,), "f8", 0) for n in sizes]


def row(rng: Rng, x: Any) -> Any:
    return numbers(rng, np.shape(x)[-1:], "f8")


def indices(rng: Rng, x: Any) -> Any:
    return rng.integers(-2, 2, 3)


def places(rng: Rng, x: Any) -> Any:
    return rng.integers(0, max(1, min(np.shape(x) or (1,))), np.shape(x))


def mask(rng: Rng, x: Any) -> Any:
    return rng.random(np.shape(x)) < 0.6


def several(rng: Rng, x: Any) -> Any:
    return [x, *(beside(rng, x) for _ in range(rng.integers(3)))]


def ascending(rng: Rng, x: Any) -> Any:
    return np.sort(np.nan_to_num(numbers(rng, (5,), "f8")))


DTYPES = [None, "float32", "float64", "int32", "complex128", "int8", bool, int, float]
AXES = [None, 0, -1, 1, (0, 1), (0,), -2, (), 5]
AXIS = [0, -1, 1, -2, 5]
ANY: list[Any] = [False, True]
# Values of parameters that are no operands, by name; `OWN`'s go first.
VALUES: dict[str, list[Any]] = {
    "axis": AXES, "keepdims": ANY, "dtype": DTYPES, "where": [mask], "ddof": [0, 1],
    "initial": [0, 1.5, 2], "equal_nan": ANY, "rtol": [1e-3, 0.5], "atol": [0.1, 2], "deg": ANY,
    "k": [0, 1, -1, 5], "decimals": [0, 1, -1, 2], "order": ["C"], "copy": [None, True],
    "axis1": [0, 1, -1], "axis2": [1, 0, -2], "offset": [0, 1, -1], "mode": ["full", "same"],
    "n": [0, 1, 2, 3], "N": [3, 0], "M": [4, None, 0, 1], "ndim": [2, 3], "shape": [(2, 3), 3, ()],
    "stable": ANY, "kind": [None, "stable"], "kth": [0, 1, -1], "ndmin": [0, 2, 3],
    "axes": [None, (0, 1), (1, 0), (0,), -1], "returned": ANY, "weights": [like("f8", 0.1)],
    "min": [-1, None, 0.5, beside], "max": [2, 1.5, None, beside], "right": ANY, "rowvar": ANY,
    "bias": ANY, "fweights": [lambda rng, x: rng.integers(0, 4, np.shape(x)[-1:])],
    "aweights": [lambda rng, x: np.abs(row(rng, x))], "y": [beside], "prepend": [0, beside],
    "append": [1, beside], "to_end": [7], "to_begin": [-7], "endpoint": ANY,
    "num": [5, 0, 1],
    "edge_order": [1, 2], "bins": [4, ascending], "range": [(-1.0, 2.0), None], "density": ANY,
    "sparse": ANY, "fill_value": [2, 1.5, True], "left": [-9.0], "period": [2.0],
    "return_indices": ANY, "assume_unique": ANY, "invert": ANY, "beta": [2.5, 14],
    "retstep": ANY, "base": [10.0, 2, 3.5], "indexing": ["ij", "xy"], "nan": [0.0, -5],
    "posinf": [None, 9], "neginf": [None, -9], "q": [0.3, 50, [0.1, 0.5], 1],
    "bitorder": ["little"],
    "method": ["linear", "lower", "higher", "midpoint", "nearest", "weibull", "inverted_cdf"],
    "m": [1, 2, 0], "repeats": [2, 0, [1, 2], 3], "shift": [1, -2, (1, 2)], "start": [0, 1, -1],
    "side": ["left", "right"], "indices_or_sections": [1, 2, 3, [1], (1, 2)],
    "obj": [0, -1, [0, 1]],
    "source": [0, -1, (0, 1)], "destination": [-1, 0, (1, 0)], "reps": [2, (2, 1), 0, ()],
    "return_index": ANY, "return_inverse": ANY, "return_counts": ANY, "sorted": [True],
    "discont": [None, 4.0], "increasing": ANY, "dx": [1.0, 0.5, 2], "x": [row], "upper": ANY,
    "UPLO": ["L", "U"], "hermitian": [False], "full_matrices": ANY, "compute_uv": ANY,
    "ord": [None, 1, 2, np.inf, -np.inf, "fro", "nuc", 0, 3], "p": [None, 1, 2, "fro", np.inf],
    "norm": [None, "ortho", "forward", "backward"], "s": [None, (3, 2), (4,)], "d": [1.0, 0.5, 2],
    "rcond": [None, 1e-3], "full": [False], "include_initial": ANY, "new_shape": [(2, 2), 4, (0,)],
    "minlength": [0, 8], "count": [None, 5], "axisa": AXIS, "axisb": AXIS, "axisc": AXIS,
    "ind": [1, 2], "trim": ["f", "b", "fb"], "stop": [5, 2.5], "step": [1, 2, 0.5, -1],
    "wrap": ANY, "correction": [0, 1], "cov": ANY, "w": [like("f8", 0.5)], "default": [0, 1.5],
    "prec": [1], "stat_length": [None, 1], "from_": ["i4", "f4", "?"], "to": ["f4", "i8", "i2"],
    "type1": ["i4", "i8", "?", "c8"], "type2": ["i4", "f8", "c8", "i2"],
    "arg1": ["i4", float, "c8"], "arg2": [np.integer, np.floating, "i4"],
    "keys": [several], "arrays": [several], "tup": [several], "values": [beside], "sample": [],
}
# Parameters that are never operands, first as they may stand.
NO_OPERANDS = frozenset(["n", "N", "M", "shape", "from_", "type1", "arg1", "keys",
                         "arrays", "tup"])
SECTION = {"axis": [0, -1, 1]}
ONE: dict[str, list[Any]] = {"axis": [0, -1, 1, None, 5]}
SETS: dict[str, list[Any]] = {"ar2": [beside]}
OWN: dict[str, dict[str, list[Any]]] = {
    **{n: ONE for line in (
        "append argmax argmin argsort argpartition partition sort cumsum cumprod nancumsum stack",
        "nancumprod insert concatenate concat cumulative_sum cumulative_prod delete nanargmax",
        "nanargmin trapezoid lexsort unwrap packbits unstack expand_dims rollaxis unique",
    ) for n in line.split()},
    **dict.fromkeys(["bartlett", "blackman", "hamming", "hanning"],
                    {"M": [-1, 0, 1, 2, 3, 4, 7, 50]}),
    **dict.fromkeys(["cov", "corrcoef"], {"y": [None, row, lambda rng, x: np.atleast_1d(x)[:2]],
                                          "ddof": [None, 2, 1.5], "fweights": [
        lambda rng, x: rng.integers(0, 4, np.shape(x)[-1:]), lambda rng, x: [-1, 2]]}),
    **dict.fromkeys(["emath.arccos", "emath.arcsin", "emath.arctanh"], {"x": [
        operand_of(SHAPES), np.array([0.5, -0.5]), np.array([2.0, 0.1]), 3, -0.5]}),
    **dict.fromkeys(["histogram", "histogram_bin_edges"], {
        "bins": [10, 1, 7, 0, "auto", "fd", "sturges", "sqrt", "other", ascending,
                 np.array([3, 1]), np.array([[1.0, 2]])],
        "range": [None, (0, 5), (5, 0), (2, 2), (0, np.inf)], "weights": [None, row]}),
    "copyto": {"src": [1, 2.5, 1j, np.float32(2), beside, row, [1, 2, 3]],
               "casting": ["same_kind", "unsafe", "no"], "where": [True, mask]},
    "emath.logn": {"n": [2, 0.5, -2.0], "x": [beside, np.array([-1.0, 4]), -4]},
    "emath.power": {"p": [2, 0.5, -1, -0.5, 2j, beside]},
    "putmask": {"mask": [mask], "values": [7, np.array([10, 20]), np.arange(50), 2.5]},
    "real_if_close": {"a": [np.array([1 + 0j, 2]), np.array([1 + 1e-10j, 2]), np.array([1j]),
                            operand_of(SHAPES)], "tol": [100, 1e-3, 1e7]},
    "require": {"requirements": [None, "C", ["C", "A"], "O", "E", "other"]},
    "apply_along_axis": {"func1d": [made(lambda x: x.sum()), made(lambda x: x[::-1])], **SECTION},
    "apply_over_axes": {"func": [made(lambda a, axis: a.sum(axis))], "axes": [0, (0, 1), -1]},
    "arange": {"start_or_stop": [5, 0, 2.5, -3]}, "block": {"arrays": [several, beside]},
    "broadcast_shapes": {"args": [(2, 1), (3,), 3, (2, 3)]},
    "broadcast_to": {"shape": [(2, 3), (4, 2, 3), (3,), (2, 4)]},
    "bincount": {"x": [places], "weights": [row]},
    "choose": {"a": [lambda rng, x: rng.integers(0, 2, np.shape(x))], "mode": ["clip", "wrap"],
               "choices": [lambda rng, x: [x, np.asarray(x) * 2], lambda rng, x: [x, 1]]},
    "compress": {"condition": [lambda rng, x: mask(rng, x).ravel()[:3]], **ONE},
    **dict.fromkeys(["convolve", "correlate"], {"mode": ["full", "same", "valid", "other"]}),
    "diff": {"n": [0, 1, 2, 9], **SECTION}, "digitize": {"bins": [ascending]},
    "einsum": {"operands": []}, "extract": {"condition": [mask]},
    "fill_diagonal": {"a": [lambda rng, x: numbers(rng, TALL[rng.integers(len(TALL))], "f8")],
                      "val": [2, 1.5, np.array([1, 2]), np.arange(10), np.array([])]},
    "full": {"fill_value": [2, 1.5, True, [1, 2, 3]]},
    "fromfunction": {"function": [made(lambda i, j: i + 2 * j)], "shape": [(2, 3)],
                     "dtype": ["f8", "i4", int]},
    "geomspace": {"start": [1, 2.5], "stop": [10, 1000.0, [2.0, 4]], "axis": [0, -1]},
    "gradient": {"varargs": [], **SECTION}, "histogramdd": {"sample": [
        lambda rng, x: numbers(rng, (9, 2), "f8"), lambda rng, x: numbers(rng, (9, 1), "i8"),
        lambda rng, x: numbers(rng, (0, 2), "f8"), listed(6, 6)],
        "bins": [4, (2, 3), 0, [3, 4, 5], lambda rng, x: [3, np.array([-1.0, 0, 0.5, 3])]],
        "range": [None, [(0, 1), (0, 2)], [None, (0, 2)], [(0, 1)]],
        "weights": [None, lambda rng, x: rng.random(9)]},
    "histogram2d": {"range": [None, [(-1, 1), (-2, 2)]], "weights": [None, row],
                    "bins": [4, (2, 3), ascending, 0, [3, 4, 5]]},
    "indices": {"dimensions": [(2, 3), (0,), ()], "dtype": ["i4", "f8", int]},
    "insert": {"obj": [0, 1, -1, [0, 1]], "values": [7, 1.5, [1, 2]], **ONE},
    "interp": {"x": [beside], "xp": [lambda rng, x: np.sort(np.arange(np.size(x)) * 1.5)],
               "fp": [row], "right": [9.0], "period": [None, 2.5, -3, 0]},
    "intersect1d": SETS, "isdtype": {"dtype": [np.dtype("f4"), np.dtype("i4"), np.dtype("c8")],
                                     "kind": ["bool", "integral", "numeric", ("real floating",)]},
    "iterable": {"y": [1, [2], "ab"]}, "ix_": {"args": [places, mask]},
    "kaiser": {"M": [0, 1, 2, 5, 50], "beta": [0, 1, 8.6, -3.0, 200.0]},
    "linspace": {"axis": [0, -1], "stop": [5, [1.0, 2], 2j]},
    "logspace": {"start": [0, 1.5], "stop": [2, [1.0, 2]], "axis": [0, -1]},
    "meshgrid": {"copy": [True]},
    "moveaxis": {}, "nanpercentile": {"q": [30, [10, 50]]}, "percentile": {"q": [30, [10.0, 50]]},
    "pad": {"pad_width": [1, (1, 2), ((0, 1), (2, 0)), 0], "kwargs": [],
            "mode": ["constant", "edge", "reflect", "symmetric", "wrap", "linear_ramp", "maximum",
                     "mean", "median", "minimum"]},
    "packbits": {"a": [operand_of(SHAPES), lambda rng, x: rng.integers(0, 2, (3, 9, 2))],
                 "bitorder": ["big", "little"], **ONE},
    "piecewise": {"condlist": [lambda rng, x: [mask(rng, x), mask(rng, x)]],
                  "funclist": [[1.0, 2], [1, 2, 3], [lambda v: v * 2, 0]], "args": []},
    "place": {"mask": [mask], "vals": [[1, 2], [1.5]]},
    "polyder": {"m": [1, 2, 0, 5, -1]}, "polyfit": {
        "deg": [1, 2, 0, -1, 1.5], "cov": [False, True, "unscaled"], "full": ANY, "y": [
            beside, lambda rng, x: numbers(rng, (*np.shape(x)[:1], 2), "f8", 0)]},
    "polyint": {"m": [1, 2, 5, -1], "k": [None, np.array([1, 2]), 3, 2j, np.array([])]},
    "poly": {}, "polyval": {"p": [beside]},
    "put": {"ind": [indices, 0, [1, 2]], "v": [7, [1, 2], 1.5], "mode": ["clip", "wrap"]},
    "put_along_axis": {"indices": [places], "values": [7, 1.5], **ONE},
    "quantile": {"q": [0.3, 1, [0.1, 0.5], 0.0]},
    "ravel": {"order": ["C", "F"]},
    "ravel_multi_index": {"multi_index": [lambda rng, x: (indices(rng, x) % 3, [0, 1, 2])],
                          "dims": [(3, 4), (5, 3)], "mode": ["clip", "wrap"]},
    "repeat": {"repeats": [2, 0, [1, 2], [1, 2, 3]], **ONE},
    "reshape": {"shape": [-1, (3, 2), (-1, 2), 6, (0, -1), ()], "order": ["C", "F"]},
    "result_type": {"arrays_and_dtypes": ["i4", "i8", "c8", float, bool]},
    "roll": {"axis": [None, 0, -1, (0, 1)]}, "rot90": {"axes": [(0, 1), (1, 0), (-1, 0)]},
    "searchsorted": {"a": [ascending], "sorter": [None, np.arange(5)]},
    "select": {"condlist": [lambda rng, x: [mask(rng, x), mask(rng, x)]],
               "choicelist": [lambda rng, x: [x, 2], lambda rng, x: [x, x]]},
    "setdiff1d": SETS, "setxor1d": SETS, "union1d": SETS,
    "squeeze": {"axis": [None, 0, -1, (0,)]}, "split": SECTION, "array_split": SECTION,
    "swapaxes": {}, "take": {
        "indices": [indices, 0, [[0, 1], [1, 0]]], "mode": ["clip", "wrap"], **ONE},
    "take_along_axis": {"indices": [places], **ONE},
    "tensordot": {"axes": [0, 1, 2, ([0], [0]), ((0, 1), (0, 1))]},
    "linalg.tensordot": {"axes": [0, 1, 2, ([0], [0]), ((0, 1), (0, 1))]},
    "transpose": {"axes": [None, (1, 0), (0,), (-1, 0), (2, 0, 1)]},
    "permute_dims": {"axes": [None, (1, 0), (0,), (-1, 0), (2, 0, 1)]},
    "trim_zeros": {"axis": [None, 0, -1, (0,), (0, 1), 5], "trim": ["fb", "f", "b", "x", ""],
                   "filt": [np.array([0, 0, 1, 2, 0, 3, 0]), np.zeros(4), np.eye(4)[1:3],
                            np.array([np.nan, 0]), operand_of(SHAPES)]},
    "unpackbits": {"a": [like("u1"), lambda rng, x: rng.integers(0, 99, (2, 3)).astype("u1")],
                   "count": [None, 0, 3, -3, 20, -99], "bitorder": ["big", "little"], **ONE},
    "unwrap": {"p": [operand_of(SHAPES), lambda rng, x: np.cumsum(rng.uniform(-9, 9, 9))],
               "period": [4, 5, 2.5], "discont": [None, 5.0, 0.1], "axis": [0, -1]},
    "unravel_index": {"indices": [places, 3], "shape": [(3, 4), (5, 2, 2), 6]},
    "vander": {"N": [3, None, 0]}, "where": {"condition": [mask, beside], "x": [beside]},
    "linalg.multi_dot": {"arrays": [lambda rng, x: [x, x], lambda rng, x: [x, x, x]]},
    "linalg.norm": {"axis": [None, 0, -1, (0, 1), (1, 0), 5]},
    "linalg.matrix_norm": {"ord": ["fro", 1, 2, "nuc", -1, np.inf]},
    "linalg.matrix_power": {"n": [0, 1, 3, -2, 5]}, "linalg.matrix_rank": {"tol": [None, 0.1]},
    "linalg.cross": {"axis": [-1, 0]}, "linalg.vecdot": {"axis": [-1, 0]},
    "linalg.qr": {"mode": ["reduced", "complete", "r"]}, "linalg.tensorinv": {"ind": [1, 2]},
    "linalg.tensorsolve": {
        "axes": [None], "b": [lambda rng, x: numbers(rng, np.shape(x)[:-1], "f8")]},
    **{f"fft.{n}": {"n": [None, 2, 5, 0], "axis": [-1, 0, 1, 5]} for n in (
        "fft", "ifft", "rfft", "irfft", "hfft", "ihfft")},
    **{f"fft.{n}": {"n": [1, 5, 4, 0]} for n in ("fftfreq", "rfftfreq")},
}
EINSUMS: list[tuple[str, int]] = [("ij->ji", 1), ("ij", 1), ("ii", 1), ("ii->i", 1), ("ij,jk", 2),
                                  ("ij,ij->", 2), ("i,i", 2), ("...i,...i", 2), ("i,j->ij", 2)]


class Case(NamedTuple):
    name: str
    number: int
    args: tuple[Any, ...]
    options: dict[str, Any]

    def __str__(self) -> str:
        given = [*map(_shown, self.args), *(f"{k}={_shown(v)}" for k, v in self.options.items())]
        return f"{self.name}({', '.join(given)})  #{self.number}"


def _shown(x: Any) -> str:
    if isinstance(x, (np.ndarray, np.generic)):
        return f"np.array({x.tolist()}, {x.dtype.str[1:]!r})"
    if isinstance(x, (list, tuple)) and any(isinstance(e, np.ndarray) for e in x):
        return f"[{', '.join(map(_shown, x))}]"
    return getattr(x, "__name__", repr(x))


def names() -> list[str]:
    """Names that both have, methods of ufuncs among them."""
    found = []
    for prefix, (ours, theirs) in MODULES.items():
        for name in sorted(dir(ours)):
            f, g = getattr(ours, name), getattr(theirs, name, None)
            if (name.startswith("_") or name in SKIPPED or not callable(f) or not callable(g)
                    or f is g or inspect.isclass(f) or isinstance(g, type)):
                continue
            found.append(prefix + name)
            if isinstance(g, np.ufunc) and g.signature is None:
                found += [f"{prefix}{name}.{m}" for m in METHODS[4 if g.nin == 1 else 0:]]
    return found


def function(name: str, module: int) -> Any:
    found = (onp, np)[module]
    for part in name.split("."):
        found = getattr(found, part)
    return found


def case(name: str, number: int, seed: int = 0) -> Case:
    """The `number`-th call of a function; the first few have no options."""
    rng = np.random.default_rng([zlib.crc32(name.encode()), number, seed])
    own = OWN.get(name, {})
    x = operand(rng, SQUARES if name.startswith("linalg.") else
                VECTORS if name in OF_VECTORS else SHAPES)
    few = number % 3 == 0
    theirs = function(name, 1)
    args: list[Any] = []
    options: dict[str, Any] = {}
    if name == "einsum":
        text, n = EINSUMS[rng.integers(len(EINSUMS))]
        return Case(name, number, (text, *[x, beside(rng, x)][:n]), {})
    if name == "mask_indices":
        return Case(name, number, (int(rng.integers(5)), _triangle), {})
    if "." in name and not name.startswith(("linalg", "fft", "emath")):
        ufunc, method = name.rsplit(".", 1)
        more = (beside(rng, x),) if function(ufunc, 1).nin > 1 else ()
        if method == "at":      # of a dtype that the results have
            to = "i8" if any(t.endswith("l->l") for t in function(ufunc, 1).types) else "f8"
            x = numbers(rng, (2, *np.shape(x)[1:]), to)
            more = (numbers(rng, x.shape[1:], to),) if more else ()
        if method in ("outer", "at", "reduceat"):
            args = {"outer": [x, *more], "at": [x, indices(rng, x), *more],
                    "reduceat": [x, np.abs(indices(rng, x))]}[method]
            return Case(name, number, tuple(args), {})
        pool = {"axis": AXES if method == "reduce" else AXIS, "dtype": DTYPES[:4],
                **({"keepdims": ANY, "where": [mask], "initial": [1, 0.5]} if method == "reduce"
                   else {})}
        options = {} if few else {k: _drawn(v, rng, x) for k, v in pool.items()
                                  if rng.random() < 0.4}
        return Case(name, number, (x,), options)
    ours = inspect.signature(function(name, 0)).parameters
    first = True
    for p in inspect.signature(theirs).parameters.values():
        values = own.get(p.name, VALUES.get(p.name))
        required = p.default is p.empty
        if p.kind is p.VAR_KEYWORD or p.name in (
                {"out", "device", "casting", "subok", "signature"} - own.keys()):
            continue
        if p.kind is p.VAR_POSITIONAL:
            values = own.get(p.name)
            if values != []:
                args += [_drawn(values, rng, x) if values or i == 0 else beside(rng, x)
                         for i in range(rng.integers(1, 4))]
        elif required and p.kind is not p.KEYWORD_ONLY:
            drawn = values and (p.name in own or p.name in NO_OPERANDS or not first)
            args.append(_drawn(values, rng, x) if drawn else x if first else beside(rng, x))
            first = False
        elif not few and values and p.name in ours and rng.random() < 0.4:
            options[p.name] = _drawn(values, rng, x)
    if name == "clip":
        options = {k: _drawn(VALUES[k], rng, x) for k in ("min", "max")}
    if name == "where" and not few:
        args, options = [mask(rng, x), x, beside(rng, x)], {}
    return Case(name, number, tuple(args), options)


def _triangle(m: Any, k: int = 0) -> Any:
    return np.triu(np.asarray(m), k)


def _drawn(values: list[Any] | None, rng: Rng, x: Any) -> Any:
    value = (values or [x])[rng.integers(len(values or [x]))]
    return value(rng, x) if inspect.isfunction(value) else value


# Calling and comparing --------------------------------------------------------------------------

FAMILIES: tuple[type[Exception], ...] = (TypeError, ValueError, IndexError, OverflowError)


# Options that make Olympus do as NumPy does: shapes by values, half of a matrix read.
FIXED: dict[str, dict[str, Any]] = {
    **{n: {"trim_leading_zeros": True} for n in ("polydiv", "polymul")},
    "linalg.lstsq": {"numpy_resid": True},
    **{f"linalg.{n}": {"symmetrize_input": False} for n in ("cholesky", "eigh", "eigvalsh")},
}


def _parts(x: Any) -> Any:
    """A tree of arrays and text; NumPy's scalars and Python's are arrays of rank 0."""
    if isinstance(x, (tuple, list)):
        return [_parts(e) for e in x]
    return x if x is None or isinstance(x, (str, type)) else np.asarray(x)


def outcome(c: Case, module: int) -> Any:
    """What a call gives in Olympus (0) or NumPy (1): a tree of NumPy arrays, or the exception."""
    base = c.name.removesuffix(".at")
    fun = function(c.name, module)
    writes = base != c.name or c.name in IN_PLACE
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            if not writes:
                own = {} if module else FIXED.get(c.name, {})
                out, where = _parts(fun(*c.args, **c.options, **own)), c.options.get("where")
                if isinstance(fun, (np.ufunc, onp.ufunc)) and where is not None:    # undefined
                    return [np.where(where, e, 0) for e in (out if type(out) is list else [out])]
                return out
            if module == 0:
                return _parts(fun(*c.args, **c.options, inplace=False))
            written = np.array(c.args[0])
            fun(written, *c.args[1:], **c.options)
            return written
    except Exception as error:
        return error


def _error(x: Any) -> str:
    return f"{type(x).__name__}: {(str(x).splitlines() or [''])[0][:110]}"


def differ(ours: Any, theirs: Any, name: str = "") -> str:
    """How two outcomes differ; empty if they agree."""
    if isinstance(ours, Exception) and isinstance(theirs, Exception):
        same = any(isinstance(ours, f) and isinstance(theirs, f) for f in FAMILIES)
        return "" if same else f"{_error(ours)} / {_error(theirs)}"
    if isinstance(ours, Exception):
        return f"refused: {_error(ours)}"
    if isinstance(theirs, Exception):
        return f"taken / {_error(theirs)}"
    if isinstance(theirs, list):
        if not isinstance(ours, list) or len(ours) != len(theirs):
            return "other structure"
        return next(filter(None, (differ(o, t, name)
                                  for o, t in zip(ours, theirs, strict=True))), "")
    if not isinstance(ours, np.ndarray) or not isinstance(theirs, np.ndarray):
        return "" if type(ours) is type(theirs) and ours == theirs else f"{ours!r} / {theirs!r}"
    if ours.shape != theirs.shape:
        return f"shape {ours.shape} / {theirs.shape}"
    if ours.dtype != theirs.dtype:
        return f"dtype {ours.dtype} / {theirs.dtype}"
    return "" if _close(ours, theirs, name) else f"value {_shown(ours)} / {_shown(theirs)}"[:300]


def _close(a: np.ndarray, b: np.ndarray, name: str) -> bool:
    """Elementwise functions to 8 units in the last place, others to 64 of the largest number."""
    if name in UNORDERED:
        a, b = np.sort(a, None), np.sort(b, None)
    if a.dtype.kind not in "fc":
        return bool(np.array_equal(a, b))
    if name in UNSIGNED:
        a, b = np.abs(a), np.abs(b)
    each = isinstance(function(name, 1), np.ufunc)
    eps = float(np.finfo(a.dtype).eps)
    with np.errstate(all="ignore"):
        wide = "c16" if a.dtype.kind == "c" else "f8"
        x, y = a.astype(wide), b.astype(wide)
        scale = np.abs(np.where(np.isfinite(y), y, 0)).max(initial=float(np.finfo(a.dtype).tiny))
        if name.endswith(".at"):    # applied again and again, errors grow
            each, eps = False, eps ** 0.5
        return bool(np.allclose(x, y, 8 * eps if each else 64 * eps,
                                eps * eps if each else 64 * eps * scale, equal_nan=True))


# What is meant to differ ------------------------------------------------------------------------

def _mapped(c: Case, change: Callable[[Any], Any]) -> Case:
    """The case with its arrays, numbers and lists of arrays changed; not its masks and places."""
    def mapped(x: Any) -> Any:
        if isinstance(x, (list, tuple)) and any(isinstance(e, np.ndarray) for e in x):
            return [mapped(e) for e in x]
        return change(x)

    args = [mapped(x) for x in c.args]
    if c.name.endswith((".at", ".reduceat")):
        args[1] = c.args[1]
    return c._replace(args=tuple(args),
                      options={k: mapped(v) if isinstance(v, np.ndarray) and k != "where" else v
                               for k, v in c.options.items()})


def _arrays(c: Case) -> list[Any]:
    flat: list[Any] = []
    _mapped(c, lambda x: flat.append(x) or x)
    return [x for x in flat if isinstance(x, (np.ndarray, np.generic, bool, int, float, complex))]


def _listed(c: Case, ours: Any, theirs: Any) -> bool:
    """Lists are no operands: with arrays for them both agree, but for other reasons."""
    lists = (list, tuple)
    if not isinstance(ours, TypeError) or not any(
            isinstance(x, lists) for x in (*c.args, *c.options.values())):
        return False
    try:
        c = c._replace(args=tuple(np.asarray(x) if isinstance(x, lists) else x for x in c.args),
                       options={k: np.asarray(v) if isinstance(v, lists) and k != "axis" else v
                                for k, v in c.options.items()})
    except ValueError:      # of arrays of several shapes
        return False
    ours, theirs = outcome(c, 0), outcome(c, 1)
    return not differ(ours, theirs, c.name) or bool(explained(c, ours, theirs))


def _lattice(c: Case, ours: Any, theirs: Any) -> bool:
    """NumPy agrees about operands, or about results, in the dtypes that the lattice gives them."""
    if c.name in ("can_cast", "promote_types", "result_type"):
        return True
    operands = _arrays(c)
    if isinstance(ours, Exception) or not operands:
        return False
    return any(_of_dtypes(c, ours, theirs, onp.result_type(*some))
               for some in (operands, operands[:1]))


def _of_dtypes(c: Case, ours: Any, theirs: Any, common: np.dtype) -> bool:
    inexact = np.dtype("float32") if common.kind in "iub" and common.itemsize <= 4 else (
        np.result_type(common, np.float16 if common.kind in "fc" else np.float64))
    real = np.finfo(inexact).dtype
    meant = {common, inexact, real, np.result_type(real, np.complex64)}
    if c.name in RANKED:
        meant.add(np.dtype(int))
    for dtype in (common, inexact, np.dtype("int32"), np.dtype("float32")):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cast = _mapped(c, lambda x, d=dtype: np.asarray(x).astype(d) if isinstance(
                x, (np.ndarray, np.generic, bool, int, float, complex)) else x)
        if not differ(ours, _cast(outcome(cast, 1), ours, meant), c.name):
            return True
    if isinstance(theirs, Exception):
        return False
    return not differ(ours, _cast(theirs, ours, meant), c.name)


def _cast(theirs: Any, ours: Any, meant: set[np.dtype]) -> Any:
    """NumPy's results in the dtypes of ours, where these are meant."""
    if isinstance(theirs, list) and isinstance(ours, list):
        return [_cast(t, o, meant) for t, o in zip(theirs, ours, strict=False)]
    if isinstance(theirs, np.ndarray) and isinstance(ours, np.ndarray) and ours.dtype in meant:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return theirs.astype(ours.dtype)
    return theirs


RANKED = ("linalg.lstsq", "polyfit")
VALUES_REFUSED = ("is not finite", "did not converge", "Singular matrix", "positive definite",
                  "infs or NaNs", "negative integer powers", "range is not finite",
                  "must not contain negative", "cannot be negative", "Too many bins")


def _values(c: Case, ours: Any, theirs: Any) -> bool:
    """NumPy looks at values and raises: a program gives NaN, or the documented result."""
    return not isinstance(ours, Exception) and isinstance(theirs, Exception) and any(
        text in str(theirs) for text in VALUES_REFUSED)


def _errors(c: Case, ours: Any, theirs: Any) -> bool:
    return isinstance(ours, Exception) and isinstance(theirs, Exception)


def _infinite(c: Case, ours: Any, theirs: Any) -> bool:
    """Of complex numbers that are not finite; where both results are finite, they agree."""
    if not any(np.iscomplexobj(x) and not np.isfinite(x).all() for x in _arrays(c)):
        return False
    pairs = list(zip(ours, theirs, strict=True)) if isinstance(ours, list) else [(ours, theirs)]
    return all(isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.dtype == b.dtype
               and a.shape == b.shape and _close(*(np.where(np.isfinite(a) & np.isfinite(b), x, 0)
                                                   for x in (a, b)), c.name) for a, b in pairs)


def _quotient(c: Case, ours: Any, theirs: Any) -> bool:
    """A quotient and a remainder of polynomials, up to rounding."""
    if c.name != "polydiv" or not isinstance(ours, list):
        return False
    u, v = map(np.atleast_1d, c.args)
    rough = 64 * float(np.finfo(ours[0].dtype).eps)
    back = np.polysub(np.polyadd(np.polymul(ours[0], v), ours[1]), u)
    return bool(np.allclose(back, 0, atol=rough * np.abs(u).max() * max(1, np.abs(ours[0]).max())))


def _edges(c: Case, ours: Any, theirs: Any) -> bool:
    """As many elements in bins of the same edges."""
    if not c.name.startswith("histogram") or not isinstance(ours, list):
        return False
    (counts, *edges), (their_counts, *their_edges) = ours, theirs
    return counts.shape == their_counts.shape and bool(np.isclose(
        counts.sum(), their_counts.sum())) and all(
            np.allclose(np.asarray(a, float), np.asarray(b, float), 1e-5, 1e-6)
            for a, b in zip(edges, their_edges, strict=True))


def _as_integers(c: Case, ours: Any, theirs: Any) -> bool:
    return isinstance(ours, np.ndarray) and isinstance(theirs, np.ndarray) and (
        ours.dtype == theirs.dtype and ours.dtype.kind in "iu") and any(
            np.asarray(x).dtype.kind in "fc" and not np.all(
                (np.iinfo(ours.dtype).min <= np.real(x)) & (np.real(x) <= np.iinfo(ours.dtype).max))
            for x in _arrays(c))


def _ties(c: Case, ours: Any, theirs: Any) -> bool:
    if c.name != "argsort" or any(isinstance(x, Exception) for x in (ours, theirs)):
        return False
    x, axis = np.asarray(c.args[0]), c.options.get("axis", -1)
    x, axis = (x.ravel(), 0) if axis is None else (x, axis)
    return bool(np.array_equal(*(np.take_along_axis(x, y, axis) for y in (ours, theirs))))


Reason = Callable[[Case, Any, Any], bool]


def told(names: str, text: str = "") -> Reason:
    """Calls of these functions, or their methods, that differ in words with this pattern."""
    chosen = frozenset(names.split())

    def test(c: Case, ours: Any, theirs: Any) -> bool:
        return (c.name in chosen or c.name.rpartition(".")[0] in chosen) and bool(
            re.search(text, differ(ours, theirs, c.name)))
    return test


# (kind of difference, why it is meant, test of a case): the first that holds explains.
REASONS: list[tuple[str, str, Reason]] = [
    ("lists", "lists and tuples are no arrays, as in JAX: `onp.asarray` makes one of them once, "
     "where an operation on a list would do so silently and slowly", _listed),
    ("lattice", "dtypes follow JAX's promotion lattice: floats win over integers whatever their "
     "width, float functions of small integers are float32", _lattice),
    ("values", "NumPy looks at values and raises; a program cannot, and gives NaN", _values),
    ("scalars", "NumPy lets axes 0 and -1 of an array without axes pass; here they are out of "
     "bounds, as in the array API standard",
     lambda c, ours, theirs: "out of bounds for array of dimension 0" in str(ours)),
    ("errors", "both refuse, by errors of two classes: here TypeError for dtypes, ranks and "
     "structure, ValueError for values and sizes", _errors),
    ("infinities", "products, quotients and powers of complex infinities are left open by the "
     "standard: NumPy's own loops differ in them, and XLA's from those", _infinite),
    ("edges", "an element on an edge of a bin is in the next one if the edge, computed by "
     "`linspace`, is rounded down instead of up", _edges),
    ("rounding", "a remainder that is zero but for rounding is another small number", _quotient),
    ("complex", "eigenvalues and roots are complex whatever their values: a dtype that depends on "
     "values cannot be compiled", told("linalg.eig linalg.eigvals poly roots", "dtype complex")),
    ("ranks", "ranks are default integers, not int32", told(" ".join(RANKED), "int64 / int32")),
    ("integers", "floats beyond an integer dtype, and infinities, become its last numbers, NaN 0, "
     "in whatever order a sum and a conversion are done; C, and so NumPy, leaves that open",
     _as_integers),
    ("ties", "equal elements keep their order unless NumPy is told `stable` too", _ties),
    ("float", "reciprocals are floats, also of integers; those of 0 that `at` writes are the last "
     "integer", told("reciprocal", "dtype int|float64 / int|9223372036854775807|float32 / int")),
    ("booleans", "booleans are left by `conjugate` and `positive`, are int32 where NumPy has int8, "
     "and cannot be rounded, as in JAX",
     told("conj conjugate positive round around floor_divide remainder mod fmod pow power square "
          "left_shift right_shift bitwise_left_shift bitwise_right_shift",
          "int64 / int8|int32 / int8|taken|round: bool")),
    ("floor_divide", "of infinities, by the array API standard's table",
     told("floor_divide divmod remainder mod", "inf|nan")),
    ("loops", "NumPy 2.4's vectorised loops of `arctan2` and `power` reduce with wrong operands",
     told("arctan2.reduce arctan2.accumulate arctan2.reduceat atan2.reduce atan2.accumulate "
          "atan2.reduceat pow.reduce pow.accumulate pow.reduceat power.reduce power.accumulate "
          "power.reduceat", "value|dtype float32 / float(16|64)")),
    ("numpy", "NumPy's own mistakes: negative float16 have positive spacing; a count longer "
     "than the data leaves `unpackbits` with what was in memory; `fftn` of scalars is the scalar; "
     "of no elements `nanpercentile` has one result for several q",
     told("spacing unpackbits fft.fftn fft.ifftn nanpercentile nanquantile",
          "'f2'|value|complex64 / |shape")),
    ("counts", "`bincount` without weights counts as integers, whatever they would be",
     told("bincount", "float64 / int64")),
    ("assumed", "what is assumed to be unique and is not", told(
        "intersect1d setxor1d setdiff1d union1d", "shape|value")),
    ("infinite ends", "between infinite ends `linspace` is infinite where NumPy has NaN, and its "
     "step has the shape of the ends if there is no step",
     told("linspace logspace geomspace", r"inf|nan|shape .* / \(\)")),
    ("complex numbers", "functions that NumPy has of real numbers only are continued analytically",
     told("logaddexp logaddexp2 arctan2 atan2 linspace", "taken / (TypeError|UFuncTypeError)")),
    ("precision", "`float_power` computes in the operands' precision", told(
        "float_power", "taken|dtype (float|complex)")),
    ("argument dtypes", "variances and means are computed as floats and converted to `dtype` at "
     "the end; NumPy converts as it goes and refuses some",
     told("std var nanstd nanvar mean nanmean average cov corrcoef", "taken|-9223372036854775808")),
    ("variances", "variances are real, means are no booleans: such dtypes are refused for them",
     told("std var nanstd nanvar mean nanmean", "are real|a dtype of numbers")),
    ("small floats", "linear algebra of float16 is done in float32", lambda c, ours, theirs: (
        "float16 is unsupported in linalg" in str(theirs))),
    ("scalar operands", "numbers count as vectors of one element, and lists as what is converted, "
     "where NumPy fails on them",
     told("poly roots polyder polyint polyfit ix_ fft.fftshift fft.ifftshift fft.rfft2 fft.irfft2 "
          "fft.rfftn fft.irfftn tril_indices_from triu_indices_from diag_indices_from isfortran "
          "row_stack vstack hstack dstack stack concatenate column_stack lexsort ediff1d digitize "
          "emath.logn emath.power", "taken")),
    ("no elements", "of no elements NumPy fails on shapes: here there are none, or NaN",
     told("percentile quantile nanpercentile nanquantile select take take_along_axis linalg.cond "
          "linalg.det linalg.tensorinv cov corrcoef median", "taken")),
    ("options", "options that exclude each other in NumPy and mean the same here",
     told("argsort sort fft.fftfreq fft.rfftfreq matvec vecmat ldexp frexp", "taken")),
    ("vectors", "coefficients are vectors, weights of data have their shape; NumPy lets some "
     "matrices pass by accident", told(
         "polyadd polysub polymul polydiv polyval histogramdd ldexp", "refused: \\w*Error: (poly|"
         "histogramdd: weights|ldexp: x2)")),
    ("matrices", "two axes are required, as in JAX, for `tril`, `triu` and `fft2` and its kin; "
     "`permute_dims` wants axes; running sums of several axes, or none, an axis", told(
         "tril triu fft.fft2 fft.ifft2 fft.rfft2 fft.irfft2 permute_dims cumulative_sum "
         "cumulative_prod diff linalg.multi_dot vstack", "refused")),
    ("order", "complex numbers have no order for `clip`, `median` and quantiles, as in JAX", told(
        "clip median nanmedian quantile percentile nanquantile nanpercentile", "complex")),
    ("degrees", "a degree that is no integer is refused, not truncated", told("polyfit", "deg")),
    ("interp", "points that stand twice, or values that are not finite",
     told("interp", "inf|nan")),
    ("putmask", "a float is not truncated into integers", told("putmask", "refused: TypeError")),
    ("copyto", "an array of one element does not become a scalar", told("copyto", "ValueError")),
]


def explained(c: Case, ours: Any, theirs: Any) -> str:
    """The reason for a difference; empty for a defect."""
    return next((name for name, _, test in REASONS if test(c, ours, theirs)), "")


def sweep(names: Iterable[str], cases: int, first: int = 0, seed: int = 0
          ) -> Iterator[tuple[Case, str, str]]:
    """(case, how it differs, why) of each case; two empty strings where both agree."""
    with olympus.enable_x64(True):
        for name in names:
            for number in range(first, first + cases):
                c = case(name, number, seed)
                ours, theirs = outcome(c, 0), outcome(c, 1)
                text = differ(ours, theirs, name)
                yield c, text, explained(c, ours, theirs) if text else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of names")
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--all", action="store_true", help="print explained differences too")
    parser.add_argument("--table", action="store_true", help="print counts of each name")
    options = parser.parse_args()
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    chosen = [n for n in names() if not options.names or any(p in n for p in options.names)]
    for c, text, why in sweep(chosen, options.cases, options.first, options.seed):
        kind = why or ("unexplained" if text else "agree")
        counts[c.name][kind] += 1
        if text and (options.all or not why):
            print(f"{c}\n    {why and why + ': '}{text}", flush=True)
    if options.table:
        for name, found in counts.items():
            print(name, *(f"{n} {kind}" for kind, n in sorted(found.items())))
    total = sum(counts.values(), collections.Counter[str]())
    cases = sum(total.values())
    print(f"{cases} calls of {len(counts)} names: {100 * total['agree'] / max(cases, 1):.1f} % "
          "agree, " + ", ".join(f"{n} {kind}" for kind, n in total.most_common()))
    return int(bool(total["unexplained"]))


if __name__ == "__main__":
    sys.exit(main())
