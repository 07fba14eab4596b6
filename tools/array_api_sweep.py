"""Does `olympus.numpy` do what the array API standard says? A sweep of its functions, x64 on.

The standard's signatures are the lines of tests/data/array_api.txt. Each function gets seeded
arguments of every dtype that it takes, shapes empty and 0-d among them, axes counted from both
ends; NumPy, which follows the standard, says what comes out: values, dtype, shape, names of tuples,
or that the call is refused. `LAWS` are sentences of the standard that NumPy does not decide.

    PYTHONPATH=. python tools/array_api_sweep.py [--seed 0] [--share 1/7] [name ...]

prints what differs, and how much was compared.
"""

from __future__ import annotations

import argparse
import inspect
import itertools
import math
import pathlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import olympus
import olympus.numpy as onp

SIGNATURES = pathlib.Path(__file__).parent.parent / "tests" / "data" / "array_api.txt"
SIGNED = ["int8", "int16", "int32", "int64"]
INTEGERS = [*SIGNED, "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float32", "float64"]
REAL = [*INTEGERS, *FLOATS]
INEXACT = [*FLOATS, "complex64", "complex128"]
NUMBERS = [*INTEGERS, *INEXACT]
ALL = ["bool", *NUMBERS]
SHAPES = [(), (0,), (5,), (2, 3), (3, 0, 2), (2, 1, 4)]


class Call(NamedTuple):
    """One call of a function: its name in the namespace, and arguments with NumPy arrays."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = {}

    def __str__(self) -> str:
        shown = [*map(_shown, self.args), *(f"{k}={_shown(v)}" for k, v in self.kwargs.items())]
        return f"{self.name}({', '.join(shown)})"


def _shown(x: Any) -> str:
    return f"{x.dtype}{list(x.shape)}" if isinstance(x, np.ndarray) else repr(x)


def resolve(module: Any, name: str) -> Any:
    """`linalg.svd` in a namespace; `op.add` is the operator, called by `_operate`."""
    for part in name.split("."):
        module = getattr(module, part)
    return module


# Arguments ---------------------------------------------------------------------------------------

class Values:
    """Seeded arrays of any dtype and shape."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def array(self, dtype: str, shape: tuple[int, ...], low: int = -6, high: int = 7) -> np.ndarray:
        """An array of small numbers, some of them equal."""
        if dtype == "bool":
            return np.asarray(self.rng.integers(0, 2, shape), bool)
        whole = self.rng.integers(max(low, 0) if dtype[0] == "u" else low, high, shape)
        if dtype[0] in "iu":
            return np.asarray(whole, dtype)
        fractions = whole + self.rng.integers(0, 4, shape) / 4
        if dtype[0] == "c":
            return np.asarray(fractions + 1j * self.rng.integers(low, high, shape), dtype)
        return np.asarray(fractions, dtype)

    def shape(self) -> tuple[int, ...]:
        """One of the shapes."""
        return SHAPES[self.rng.integers(len(SHAPES))]

    def one(self, options: Any) -> Any:
        """One of several."""
        return options[self.rng.integers(len(options))]

    def axes(self, ndim: int) -> Iterator[Any]:
        """None, each axis by one of its names, and several axes."""
        yield None
        for axis in range(ndim):
            yield self.one((axis, axis - ndim))
        if ndim > 1:
            yield (0, -1)
            yield ()


UNARY = {
    **dict.fromkeys(["abs", "positive", "square", "isfinite", "isinf", "isnan", "sign", "round"],
                    NUMBERS),
    **dict.fromkeys(["negative"], [*SIGNED, *INEXACT]),
    **dict.fromkeys(["ceil", "floor", "trunc"], REAL), "signbit": FLOATS,
    **dict.fromkeys(["acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp",
                     "expm1", "log", "log1p", "log10", "log2", "reciprocal", "sin", "sinh", "sqrt",
                     "tan", "tanh"], INEXACT),
    **dict.fromkeys(["real", "imag"], ["complex64", "complex128"]), "conj": NUMBERS,
    "bitwise_invert": ["bool", *INTEGERS], "logical_not": ["bool"],
}
BINARY = {
    **dict.fromkeys(["add", "subtract", "multiply", "pow"], NUMBERS),
    **dict.fromkeys(["floor_divide", "remainder", "maximum", "minimum", "less", "less_equal",
                     "greater", "greater_equal"], REAL),
    **dict.fromkeys(["equal", "not_equal"], ALL), "divide": INEXACT,
    **dict.fromkeys(["atan2", "copysign", "hypot", "logaddexp", "nextafter"], FLOATS),
    **dict.fromkeys(["bitwise_and", "bitwise_or", "bitwise_xor"], ["bool", *INTEGERS]),
    **dict.fromkeys(["bitwise_left_shift", "bitwise_right_shift"], INTEGERS),
    **dict.fromkeys(["logical_and", "logical_or", "logical_xor"], ["bool"]),
}
OPERATORS = {
    "__add__": "add", "__sub__": "subtract", "__mul__": "multiply", "__truediv__": "divide",
    "__floordiv__": "floor_divide", "__mod__": "remainder", "__pow__": "pow", "__eq__": "equal",
    "__ne__": "not_equal", "__lt__": "less", "__le__": "less_equal", "__gt__": "greater",
    "__ge__": "greater_equal", "__and__": "bitwise_and", "__or__": "bitwise_or",
    "__xor__": "bitwise_xor", "__lshift__": "bitwise_left_shift",
    "__rshift__": "bitwise_right_shift",
}
REFLECTED = {name for name in OPERATORS if hasattr(int, "__r" + name[2:])
             and name not in ("__eq__", "__ne__")}


def _kind(dtype: str) -> str:
    return dtype.strip("0123456789").removeprefix("u")


def _mix(a: str, b: str) -> bool:
    """Whether the standard promotes two dtypes: of one kind, or a float and a complex one."""
    if {a, b} & {"uint64"} and (a[0], b[0]) in (("i", "u"), ("u", "i")):
        return False
    return _kind(a) == _kind(b) or {_kind(a), _kind(b)} == {"float", "complex"}


def unary(values: Values) -> Iterator[Call]:
    """Each function of one array at each dtype."""
    for name, dtypes in UNARY.items():
        for dtype in dtypes:
            yield Call(name, (values.array(dtype, values.shape()),))
            yield Call(name, (values.array(dtype, (7,)),))


def binary(values: Values) -> Iterator[Call]:
    """Each function of two arrays at each pair of dtypes that promote, and with Python scalars."""
    for name, dtypes in BINARY.items():
        low = 0 if "shift" in name or name == "pow" else -6
        for a, b in itertools.product(dtypes, dtypes):
            if _mix(a, b):
                left, right = values.one([((2, 3), (3,)), ((), (4,)), ((3, 1), (1, 2)),
                                          ((0,), (1,)), ((5,), ())])
                x, y = values.array(a, left, low), values.array(b, right, low)
                if name in ("floor_divide", "remainder") and b[0] in "iu":
                    y[y == 0] = 3
                yield Call(name, (x, y))
        for dtype in dtypes:
            x = values.array(dtype, (4,), max(low, 1) if name in ("pow", "remainder",
                                                                  "floor_divide") else low)
            for scalar in _scalars(dtype):
                yield Call(name, (x, scalar))
                yield Call(name, (scalar, x))
                for operator in (o for o, f in OPERATORS.items() if f == name):
                    yield Call(f"op.{operator}", (x, scalar))
                    if operator in REFLECTED:
                        yield Call(f"op.__r{operator[2:]}", (x, scalar))


def _scalars(dtype: str) -> list[Any]:
    """The Python scalars that the standard lets stand beside an array of this dtype."""
    of = {"bool": [True], "int": [3], "float": [2, 1.5], "complex": [2, 1.5, 1.5j]}
    return of[_kind(dtype)]


def reductions(values: Values) -> Iterator[Call]:
    """Reductions and cumulative functions along every axis."""
    table = {"sum": NUMBERS, "prod": NUMBERS, "max": REAL, "min": REAL, "mean": INEXACT,
             "std": FLOATS, "var": FLOATS, "all": ALL, "any": ALL, "count_nonzero": ALL}
    for name, dtypes in table.items():
        for dtype in dtypes:
            for shape in ((2, 3), values.shape()):
                for axis in values.axes(len(shape)):
                    x = values.array(dtype, shape, -2, 3)
                    yield Call(name, (x,), {"axis": axis, "keepdims": values.one((False, True))})
        for dtype in dtypes[:2]:
            x = values.array(dtype, (3, 2))
            if name in ("std", "var"):
                yield Call(name, (x,), {"correction": values.one((0, 1, 1.5))})
            if name in ("sum", "prod"):
                yield Call(name, (x,), {"dtype": np.float64, "axis": 0})
    for name in ("argmax", "argmin"):
        for dtype in REAL:
            for axis in (None, 0, -1):
                yield Call(name, (values.array(dtype, (2, 3)),),
                           {"axis": axis, "keepdims": values.one((False, True))})
    for name in ("cumulative_sum", "cumulative_prod"):
        for dtype in NUMBERS:
            for shape, axis in (((4,), None), ((2, 3), 0), ((2, 3), -1), ((0,), None), ((0, 2), 1)):
                yield Call(name, (values.array(dtype, shape, -2, 3),),
                           {"axis": axis, "include_initial": values.one((False, True))})
        yield Call(name, (values.array("int8", (4,)),), {"dtype": np.float64})
    for dtype in NUMBERS:
        x = values.array(dtype, (3, 4))
        yield Call("diff", (x,), {"axis": values.one((0, -1)), "n": values.one((0, 1, 2))})
        yield Call("diff", (x,), {"axis": 0, "prepend": x[:1], "append": x[1:]})


def creation(values: Values) -> Iterator[Call]:
    """Arrays of shapes and numbers."""
    for name in ("zeros", "ones", "empty"):
        for shape in (*SHAPES, 3):
            yield Call(name, (shape,))
            yield Call(name, (shape,), {"dtype": np.dtype(values.one(ALL))})
    for dtype in ALL:
        x = values.array(dtype, values.shape())
        for name in ("zeros_like", "ones_like", "empty_like", "asarray"):
            yield Call(name, (x,))
            yield Call(name, (x,), {"dtype": np.dtype("complex128")})
        fill = values.array(dtype, ()).item()
        yield Call("full_like", (x, fill))
        yield Call("full", (x.shape, fill))
        yield Call("full", (x.shape, fill), {"dtype": np.dtype(dtype)})
        yield Call("astype", (x, np.dtype(values.one([d for d in ALL if d[0] != "c"] if dtype[
            0] != "c" else INEXACT[2:]))), {"copy": values.one((True, False))})
        for k in (-1, 0, 2):
            square = values.array(dtype, values.one([(3, 4), (2, 2, 3), (0, 2)]))
            yield Call("tril", (square,), {"k": k})
            yield Call("triu", (square,), {"k": k})
            yield Call("eye", (3, values.one((None, 2, 5, 0))), {"k": k, "dtype": np.dtype(dtype)})
    for start, stop, step in ((5, None, 1), (0, 5, 2), (5, 0, -2), (0.0, 1.0, 0.25), (3, 3, 1),
                              (0, 3, -1), (-1, 2.5, 0.5)):
        yield Call("arange", (start, stop, step))
        yield Call("arange", (start,), {"stop": stop, "step": step, "dtype": np.dtype("float32")})
    for args in ((0, 1, 5), (0.0, -3.0, 4), (1, 2, 1), (1, 2, 0), (1j, 2, 3)):
        yield Call("linspace", args)
        yield Call("linspace", args, {"endpoint": False})
    yield Call("linspace", (0, 9, 4), {"dtype": np.dtype("float32")})
    for indexing in ("xy", "ij"):
        for count in (1, 2, 3):
            vectors = tuple(values.array("int32", (n + 1,)) for n in range(count))
            yield Call("meshgrid", vectors, {"indexing": indexing})
    for nested in ([[1, 2], [3, 4]], [True, False], [1, True], [1, 2.5], [1, 1j], 3, 2.5, 1j, True,
                   [[]], ((1.5,), (2,))):
        yield Call("asarray", (nested,))


def manipulation(values: Values) -> Iterator[Call]:
    """Shapes, axes, joining, choosing."""
    for dtype in ALL:
        x = values.array(dtype, (2, 3, 1))
        yield from (Call("expand_dims", (x,), {"axis": a}) for a in range(-5, 5))
        yield from (Call("squeeze", (x, a)) for a in (2, -1, (2,), 0))
        yield from (Call("flip", (x,), {"axis": a}) for a in (None, 1, -3, (0, 2)))
        yield from (Call("permute_dims", (x, p)) for p in itertools.permutations(range(3)))
        yield Call("moveaxis", (x, values.one((0, -1)), values.one((1, 2))))
        yield Call("moveaxis", (x, (0, 1), (-1, 0)))
        yield from (Call("roll", (x, s), {"axis": a})
                    for s, a in ((1, None), (-2, 0), ((1, 2), (0, -2)), (7, 1)))
        yield from (Call("repeat", (x, r), {"axis": a})
                    for r, a in ((2, None), (0, 0), (np.asarray([1, 0, 2]), 1),
                                 (np.asarray([2]), -1)))
        yield from (Call("tile", (x, r)) for r in ((2,), (1, 2, 1, 3), (), (0, 1)))
        yield from (Call("reshape", (x, s)) for s in ((6,), (-1, 2), (3, 1, 2)))
        yield from (Call("broadcast_to", (x, s)) for s in ((2, 3, 4), (5, 2, 3, 1)))
        yield Call("broadcast_arrays", (x, values.array(dtype, (4,)), values.array("int8", ())))
        other = values.array(values.one([d for d in ALL if _mix(dtype, d)]), (2, 2, 1))
        yield Call("concat", ([x, other],), {"axis": values.one((1, -2))})
        yield Call("concat", ((x, other),), {"axis": None})
        yield from (Call("stack", ([x, x + x[:1]],), {"axis": a}) for a in (0, 2, -1))
        yield from (Call("unstack", (x,), {"axis": a}) for a in (0, 1, -1))
        yield from (Call("take", (x, np.asarray([1, 0, 1], values.one(INTEGERS))), {"axis": a})
                    for a in (0, 1, -2))
        yield Call("take", (x[0, :, 0], np.asarray([2, 0])))
        yield Call("take_along_axis", (x[..., 0], np.asarray([[0, 2], [1, 1]])))
        yield Call("take_along_axis", (x, np.asarray([[[1]], [[0]]])), {"axis": 0})
        yield Call("where", (values.array("bool", (2, 1, 1)), x, values.one(_scalars(dtype))))
        yield Call("where", (values.array("bool", (3, 1)), values.one(_scalars(dtype)), x))
        yield Call("where", (values.array("bool", ()), x, other[:, :1]))
        yield Call("nonzero", (values.array(dtype, values.one([(4,), (2, 3), (0,)])),))
        yield Call("matrix_transpose", (x,))
        yield Call("broadcast_shapes", ((2, 1), (), (1, 3)))
    yield Call("nonzero", (np.asarray(3),))
    yield Call("expand_dims", (np.asarray(3),), {"axis": 1})
    yield Call("result_type", (np.zeros(2, "int8"), 3))


def sorting(values: Values) -> Iterator[Call]:
    """Sorting, searching, sets, clip."""
    for dtype in REAL:
        x = values.array(dtype, (3, 5))
        for axis, descending in ((-1, False), (0, True), (-1, True)):
            yield Call("sort", (x,), {"axis": axis, "descending": descending})
            yield Call("argsort", (x,), {"axis": axis, "descending": descending, "stable": True})
        ordered = np.unique(values.array(dtype, (6,)))
        for side in ("left", "right"):
            yield Call("searchsorted", (ordered, x), {"side": side})
        yield Call("searchsorted", (ordered, values.one(_scalars(dtype))))
        yield Call("searchsorted", (ordered[::-1], x), {"sorter": np.arange(len(ordered))[::-1]})
        low, high = sorted(values.array(dtype, (2,)))
        yield Call("clip", (x, low.item(), high.item()))
        yield Call("clip", (x, None, high.item()))
        yield Call("clip", (x,), {"min": np.asarray([low] * 5)})
        yield Call("clip", (x,))
    for dtype in ALL:
        x = values.array(dtype, values.one([(6,), (2, 3), (0,)]))
        for name in ("unique_all", "unique_counts", "unique_inverse", "unique_values"):
            yield Call(name, (x,))
    for dtype in INTEGERS:
        x = values.array(dtype, (2, 3))
        yield Call("isin", (x, values.array(dtype, (2,))), {"invert": values.one((False, True))})


def linear_algebra(values: Values) -> Iterator[Call]:
    """Products and decompositions, batched."""
    for a, b in itertools.product(NUMBERS, NUMBERS):
        if not _mix(a, b):
            continue
        x, y = values.array(a, (2, 3)), values.array(b, (3, 4))
        yield Call("matmul", (x, values.one((y, y[:, 0], y[None]))))
        yield Call("tensordot", (x, y), {"axes": values.one((1, ((1,), (0,)), ((-1,), (0,))))})
        yield Call("vecdot", (x, values.array(b, (3,))))
    for dtype in NUMBERS:
        x, y = values.array(dtype, (3, 2)), values.array(dtype, (3, 1))
        yield Call("vecdot", (x, y), {"axis": 0} if values.one((True, False)) else {"axis": -2})
        yield Call("linalg.cross", (values.array(dtype, (4, 3)), values.array(dtype, (3,))))
        yield Call("linalg.outer", (values.array(dtype, (4,)), values.array(dtype, (2,))))
        yield Call("tensordot", (x, x), {"axes": values.one((0, 2))})
        square = values.array(dtype, (2, 3, 3))
        for offset in (0, 1, -2):
            yield Call("linalg.diagonal", (square,), {"offset": offset})
            yield Call("linalg.trace", (square,), {"offset": offset})
        yield Call("linalg.trace", (square,), {"dtype": np.dtype("complex128")})
        for n in (0, 1, 3):
            yield Call("linalg.matrix_power", (square, n))
        for name in ("matmul", "matrix_transpose", "tensordot", "vecdot"):
            yield Call(f"linalg.{name}", (square,) * (1 if name == "matrix_transpose" else 2))
    for dtype in INEXACT:
        yield from _decompositions(values, dtype)


def _decompositions(values: Values, dtype: str) -> Iterator[Call]:
    for shape in ((3, 3), (2, 4, 4), (0, 3, 3), (0, 0)):
        square = values.array(dtype, shape) + 9 * np.eye(shape[-1], dtype=dtype)
        definite = square @ np.conj(np.swapaxes(square, -1, -2))
        yield from (Call(f"linalg.{name}", (square,)) for name in ("det", "slogdet", "inv", "qr",
                                                                  "svd", "svdvals", "pinv"))
        yield from (Call(f"linalg.{name}", (definite,)) for name in ("eigh", "eigvalsh"))
        yield from (Call("linalg.cholesky", (definite,), {"upper": u}) for u in (False, True))
        yield Call("linalg.solve", (square, values.array(dtype, (*shape[:-1], 2))))
        yield Call("linalg.solve", (square, values.array(dtype, shape[-1:])))
    wide = values.array(dtype, (2, 3, 5))
    yield from (Call("linalg.qr", (wide,), {"mode": m}) for m in ("reduced", "complete"))
    yield from (Call("linalg.svd", (wide,), {"full_matrices": f}) for f in (False, True))
    yield from (Call("linalg.matrix_rank", (wide,), k) for k in ({}, {"rtol": 0.5}))
    yield from (Call("linalg.pinv", (wide,), k) for k in ({}, {"rtol": 0.01}))
    for order in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf):
        yield Call("linalg.matrix_norm", (wide,), {"ord": order,
                                                   "keepdims": values.one((False, True))})
    for order in (0, 1, 2, 3.5, -1, math.inf, -math.inf):
        for axis in (None, -1, (0, 2)):
            yield Call("linalg.vector_norm", (wide,), {"ord": order, "axis": axis,
                                                       "keepdims": values.one((False, True))})


def transforms(values: Values) -> Iterator[Call]:
    """Fourier transforms."""
    for norm in ("backward", "ortho", "forward"):
        for name, real in (("fft", False), ("ifft", False), ("rfft", True), ("irfft", False),
                           ("hfft", False), ("ihfft", True)):
            for dtype in FLOATS if real else INEXACT[2:]:
                x = values.array(dtype, (3, 6))
                yield Call(f"fft.{name}", (x,), {"norm": norm, "axis": values.one((0, -1)),
                                                 "n": values.one((None, 4, 8))})
        for name, real in (("fftn", False), ("ifftn", False), ("rfftn", True), ("irfftn", False)):
            for dtype in FLOATS if real else INEXACT[2:]:
                x = values.array(dtype, (2, 3, 4))
                yield Call(f"fft.{name}", (x,), {"norm": norm})
                yield Call(f"fft.{name}", (x,), {"s": (4, 2), "axes": (0, -1), "norm": norm})
    for n in (1, 4, 7):
        for name in ("fftfreq", "rfftfreq"):
            yield Call(f"fft.{name}", (n,), {"d": 0.5})
    for dtype in INEXACT:
        x = values.array(dtype, (3, 4))
        for name in ("fftshift", "ifftshift"):
            yield from (Call(f"fft.{name}", (x,), {"axes": a}) for a in (None, 0, (0, -1)))


FAMILIES = (unary, binary, reductions, creation, manipulation, sorting, linear_algebra, transforms)


# Comparison --------------------------------------------------------------------------------------

def _ours(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return onp.asarray(x)
    return type(x)(map(_ours, x)) if type(x) in (list, tuple) else x


def _sorted(x: np.ndarray, *, axis: int = -1, descending: bool = False, **_: Any) -> np.ndarray:
    return np.take_along_axis(x, _argsorted(x, axis=axis, descending=descending), axis)


def _argsorted(x: np.ndarray, *, axis: int = -1, descending: bool = False, **_: Any) -> np.ndarray:
    """Stable in both directions: equal elements stay in order."""
    if not descending:
        return np.argsort(x, axis=axis, stable=True)
    turned = np.argsort(np.flip(x, axis), axis=axis, stable=True)
    return x.shape[axis] - 1 - np.flip(turned, axis)


# What NumPy has no parameter for; tuples that the standard calls lists.
TWINS = {"sort": _sorted, "argsort": _argsorted}
SEQUENCES = ("broadcast_arrays", "meshgrid")


def _called(module: Any, call: Call, convert: Callable[[Any], Any]) -> Any:
    args = tuple(map(convert, call.args))
    kwargs = {k: convert(v) for k, v in call.kwargs.items()}
    try:
        if call.name.startswith("op."):
            return getattr(args[0], call.name[3:])(*args[1:])
        twin = TWINS.get(call.name) if module is np else None
        return (twin or resolve(module, call.name))(*args, **kwargs)
    except Exception as error:
        return error


def difference(call: Call) -> str | None:
    """What `olympus.numpy` does otherwise than NumPy, in words; None if nothing."""
    with warnings.catch_warnings(), olympus.enable_x64(True):
        warnings.simplefilter("ignore")
        expected, got = _called(np, call, lambda x: x), _called(onp, call, _ours)
        if isinstance(expected, Exception) or isinstance(got, Exception):
            return _error_difference(expected, got)
        return _difference(call, expected, got)


def _error_difference(expected: Any, got: Any) -> str | None:
    if not isinstance(expected, Exception):
        return f"raises {type(got).__name__}: {got}"
    if not isinstance(got, Exception):
        return f"accepts it; NumPy: {type(expected).__name__}: {expected}"
    expects_index, refused = isinstance(expected, IndexError), (ValueError, TypeError)
    if not isinstance(got, IndexError if expects_index else refused):
        return f"raises {type(got).__name__}, not {type(expected).__name__}"
    return None


def _difference(call: Call, expected: Any, got: Any) -> str | None:
    if call.name in SEQUENCES and isinstance(got, list):
        got = tuple(got)
    if isinstance(expected, (tuple, list)):
        return _tuple_difference(call, expected, got)
    if not isinstance(got, olympus.Array):
        return None if got == expected else f"gives {got!r}, not {expected!r}"
    if got.weak_type and any(isinstance(x, np.ndarray) for x in call.args):
        return "the result is weakly typed"
    expected = np.asarray(expected)
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return f"{got.dtype}{list(got.shape)}, not {expected.dtype}{list(expected.shape)}"
    if call.name.startswith("empty"):
        return None
    if call.name.startswith("unique_values"):
        expected = np.sort(expected)
    return _value_difference(np.asarray(got), expected)


def _value_difference(got: np.ndarray, expected: np.ndarray) -> str | None:
    if expected.dtype.kind not in "fc":
        same = np.array_equal(got, expected)
    else:
        step = float(np.finfo(expected.dtype).eps)
        finite = np.abs(expected[np.isfinite(expected)])
        scale = finite.max() if finite.size else 1.0
        same = np.allclose(got, expected, rtol=500 * step, atol=500 * step * scale, equal_nan=True)
    return None if same else f"{got.tolist()}, not {expected.tolist()}"[:300]


def _tuple_difference(call: Call, expected: Any, got: Any) -> str | None:
    if not isinstance(got, tuple) or len(got) != len(expected):
        return f"gives a {type(got).__name__}, not a tuple of {len(expected)}"
    fields = getattr(expected, "_fields", None)
    if getattr(got, "_fields", None) != fields:
        return f"fields {getattr(got, '_fields', None)}, not {fields}"
    if not all(isinstance(g, olympus.Array) for g in got):
        return None if tuple(got) == tuple(expected) else f"{got}, not {expected}"
    types = [(g.dtype, g.shape) for g in got]
    if types != [(e.dtype, e.shape) for e in map(np.asarray, expected)]:
        return f"{types}, not {[(e.dtype, e.shape) for e in expected]}"
    factors = call.name.removeprefix("linalg.")
    if factors not in ("svd", "qr", "eigh"):
        pairs = zip(got, expected, strict=True)
        return next(filter(None, (_difference(call, e, g) for g, e in pairs)), None)
    # The factors are unique up to signs, their product is unique.
    u, s, *v = map(np.asarray, got)
    if factors == "svd":
        k = s.shape[-1]
        product = (u[..., :k] * s[..., None, :]) @ v[0][..., :k, :]
    else:
        product = u @ s if factors == "qr" else (s * u[..., None, :]) @ np.conj(
            np.swapaxes(s, -1, -2))
    return _value_difference(product, call.args[0])


# Sentences of the standard that NumPy does not decide --------------------------------------------

def _raises(kind: type[Exception], call: Callable[[], Any]) -> bool:
    try:
        call()
    except kind:
        return True
    except Exception:
        return False
    return False


LAWS: dict[str, Callable[[], bool]] = {
    "the fields of finfo are floats of Python's, and say their dtype as NumPy's do": lambda: all(
        isinstance(x := getattr(onp.finfo(given), field), float)
        and x.dtype == onp.finfo(given).dtype for given in (*INEXACT, onp.ones(2, "float32"),
                                                              onp.ones(2, "complex128"))
        for field in ("eps", "max", "min", "smallest_normal")),
    "finfo says bits and dtype, that of the parts of complex numbers": lambda: all(
        type(onp.finfo(d).bits) is int and onp.finfo(d).bits == np.finfo(d).bits
        and onp.finfo(d).dtype == np.finfo(d).dtype for d in INEXACT),
    "the fields of iinfo are Python's ints": lambda: all(
        type(getattr(onp.iinfo(given), field)) is int for given in (*INTEGERS, onp.ones(2, "int8"))
        for field in ("bits", "max", "min")),
    "iinfo says its dtype": lambda: all(onp.iinfo(d).dtype == d for d in INTEGERS),
    "isdtype knows every kind": lambda: all(
        onp.isdtype(np.dtype(d), kind) == np.isdtype(np.dtype(d), kind) for d in ALL
        for kind in ("bool", "signed integer", "unsigned integer", "integral", "real floating",
                     "complex floating", "numeric", np.dtype("int8"), ("bool", "integral"),
                     (np.dtype("float32"), "bool"))),
    "can_cast follows the table of promotion": lambda: all(
        onp.can_cast(np.dtype(a), np.dtype(b)) == np.can_cast(np.dtype(a), np.dtype(b))
        and onp.can_cast(onp.zeros(1, a), np.dtype(b)) == np.can_cast(np.dtype(a), np.dtype(b))
        for a in ALL for b in ALL if _mix(a, b)),
    "result_type follows the table of promotion": lambda: all(
        onp.result_type(np.dtype(a), np.dtype(b)) == onp.result_type(
            onp.zeros(1, a), onp.zeros(1, b)) == np.result_type(np.dtype(a), np.dtype(b))
        for a in ALL for b in ALL if _mix(a, b)),
    "result_type of arrays and scalars is the array's": lambda: all(
        onp.result_type(onp.zeros(1, d), s) == np.result_type(np.zeros(1, d), s)
        for d in ALL for s in _scalars(d)),
    "constants are floats": lambda: all(type(getattr(onp, n)) is float
                                        for n in ("e", "inf", "nan", "pi"))
    and onp.newaxis is None,
    "zero-dimensional arrays convert to Python's scalars": lambda: all(
        type(kind(onp.asarray(kind(2), d))) is kind for kind, d in (
            (bool, "bool"), (int, "int8"), (int, "uint64"), (float, "float32"),
            (complex, "complex64"))) and type(onp.asarray(3, "int16").__index__()) is int,
    "int() of inf is an OverflowError": lambda: _raises(OverflowError,
                                                        lambda: int(onp.asarray(np.inf))),
    "int() of NaN is a ValueError": lambda: _raises(ValueError, lambda: int(onp.asarray(np.nan))),
    "float() of a complex array is a TypeError": lambda: _raises(
        TypeError, lambda: float(onp.asarray(1j))),
    "__index__ of a float array is a TypeError": lambda: _raises(
        TypeError, lambda: onp.asarray(1.0).__index__()),
    "asarray(copy=False) copies nothing": lambda: _raises(
        ValueError, lambda: onp.asarray(np.arange(4)[::2], copy=False)) and _raises(
        ValueError, lambda: onp.asarray(onp.arange(4), dtype="int8", copy=False)),
    "astype(copy=False) of the same dtype is the array": lambda: (
        lambda x: onp.astype(x, x.dtype, copy=False) is x)(onp.arange(3)),
    "reshape(copy=True) copies": lambda: (lambda x: onp.reshape(
        x, (3, 1), copy=True).unsafe_buffer_pointer() != x.unsafe_buffer_pointer())(onp.arange(3)),
    "tanh of infinity is one": lambda: all(
        onp.tanh(onp.asarray([np.inf, -np.inf] * n, d)).tolist() == [1, -1] * n
        for d in FLOATS for n in (1, 9)),
    "arrays say their device and go to one": lambda: (
        lambda x: x.to_device(x.device).device == x.device and onp.zeros(
            2, device=x.device).device == x.device and onp.zeros_like(
                x, device=x.device).device == x.device)(onp.arange(3)),
    "str of arrays and dtypes": lambda: str(onp.asarray(3)) == "3",
    "index-returning functions give the default index type": lambda: all(
        x.dtype == onp.__array_namespace_info__().default_dtypes()["indexing"] for x in (
            onp.argmax(onp.arange(3)), onp.argsort(onp.arange(3)), *onp.nonzero(onp.arange(3)),
            onp.searchsorted(onp.arange(3), 1), onp.count_nonzero(onp.arange(3)),
            onp.unique_all(onp.arange(3)).indices, onp.unique_counts(onp.arange(3)).counts,
            onp.unique_inverse(onp.arange(3)).inverse_indices)),
    "an index out of bounds is an IndexError": lambda: _raises(
        IndexError, lambda: onp.arange(3)[5]) and _raises(
        IndexError, lambda: onp.expand_dims(onp.arange(3), axis=4)),
    "the modules have what the standard lists": lambda: all(
        hasattr(onp, n) for n in (*ALL, "linalg", "fft", "e", "inf", "nan", "newaxis", "pi",
                                  "__array_api_version__", "__array_namespace_info__")),
}


# Signatures --------------------------------------------------------------------------------------

def signature_differences() -> Iterator[tuple[str, str]]:
    """(name, what differs) of each line of the table of signatures."""
    for line in SIGNATURES.read_text(encoding="utf-8").splitlines():
        name, _, params = line.partition("(")
        scope: dict[str, Any] = {}
        exec(f"def standard({params}: pass", scope)
        wanted = inspect.signature(scope["standard"]).parameters
        try:
            function = resolve(onp, name)
        except AttributeError:
            yield name, "is missing"
            continue
        for what in _mismatches(wanted, inspect.signature(function).parameters):
            yield name, what


def _mismatches(wanted: Any, given: Any) -> Iterator[str]:
    kinds = inspect.Parameter
    places = [p for p in given.values()
              if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    var = any(p.kind is kinds.VAR_POSITIONAL for p in given.values())
    for i, p in enumerate(wanted.values()):
        own = given.get(p.name)
        if p.kind is kinds.VAR_POSITIONAL:
            if not var:
                yield f"no *{p.name}"
        elif p.kind is kinds.POSITIONAL_ONLY:
            if i >= len(places) and not var:
                yield f"no place for {p.name}"
        elif own is None:
            yield f"no {p.name}"
        elif own.kind not in (p.kind, kinds.POSITIONAL_OR_KEYWORD):
            yield f"{p.name} is {own.kind.description}"
        elif own.default is kinds.empty and p.default is not kinds.empty:
            yield f"{p.name}: no default, not {p.default}"
        elif p.kind is kinds.POSITIONAL_OR_KEYWORD and places.index(own) != i:
            yield f"{p.name} is parameter {places.index(own)}, not {i}"


def calls(seed: int = 0, share: tuple[int, int] = (0, 1), names: Any = ()) -> Iterator[Call]:
    """All calls of a seed, or those whose number is `share[0]` modulo `share[1]`."""
    found = itertools.chain.from_iterable(family(Values(seed)) for family in FAMILIES)
    for number, call in enumerate(found):
        if number % share[1] == share[0] and (not names or call.name in names):
            yield call


def broken_laws() -> Iterator[str]:
    """The laws that do not hold."""
    with olympus.enable_x64(True):
        for says, holds in LAWS.items():
            try:
                if not holds():
                    yield says
            except Exception as error:
                yield f"{says}: {type(error).__name__}: {error}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", default="0/1")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    first, of = map(int, options.share.split("/"))
    found: list[tuple[str, str]] = list(signature_differences())
    found += [("law", says) for says in broken_laws()]
    done = 0
    for call in calls(options.seed, (first, of), options.names):
        done += 1
        what = difference(call)
        if what:
            found.append((str(call), what))
    for name, what in found:
        print(f"{name}: {what}")
    print(f"{done} calls and {len(LAWS)} laws compared, {len(found)} differences")
    return bool(found)


if __name__ == "__main__":
    raise SystemExit(main())
