"""Does a function mean the same however it is called? A seeded sweep over the public functions.

Each case is a function with arguments that its parameters' names call for: arrays of random shapes
and dtypes, Python numbers, NumPy scalars and arrays, lists. It is called

    eager       as a user at the prompt calls it
    jit         its arrays traced, everything else a constant
    traced      its numbers and NumPy values traced too (not of lax, which promotes numbers only)
    vmap        over one element, along a new first axis of its arrays
    jit(vmap)   both

and each must give the same tree of results, with the same shapes, dtypes, weak types and values, or
an error of the same class. Only what needs a value that is traced may refuse it.

    PYTHONPATH=. python tools/mode_sweep.py [--cases 20] [--seed 0] [name ...]
"""

import argparse
import collections
import contextlib
import functools
import inspect
import sys
import time
import warnings
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import olympus
import olympus.lax
import olympus.nn
import olympus.numpy as onp
import olympus.scipy
from olympus import errors

MODULES = {"numpy": onp, "numpy.linalg": onp.linalg, "numpy.fft": onp.fft, "lax": olympus.lax,
           "lax.linalg": olympus.lax.linalg, "nn": olympus.nn,
           **{f"scipy.{name}": functools.reduce(getattr, name.split("."), olympus.scipy)
              for name in ("cluster.vq", "fft", "integrate", "linalg", "ndimage", "signal",
                           "special", "stats")}}
MODES = ("jit", "traced", "vmap", "jit(vmap)")
# Functions that read values, files or functions, return no array, or have no values to compare.
SKIPPED = frozenset("""
    save savez load fromfile frombuffer fromfunction fromiter fromstring from_dlpack printoptions
    get_printoptions set_printoptions vectorize frompyfunc ufunc apply_along_axis apply_over_axes
    piecewise einsum_path isdtype issubdtype can_cast promote_types result_type iinfo finfo dtype
    array_repr array_str array2string empty empty_like broadcast_shapes isscalar iterable ndim shape
    size iscomplexobj isrealobj place put put_along_axis rng_uniform create_token after_all eigvals
    padtype_to_pads common_type min_scalar_type format_float_positional format_float_scientific
    eig
""".split())   # noqa: SIM905
PROGRAMS = frozenset("""
    f fn fun func body_fun cond_fun true_fun false_fun computation solve matvec pyfunc decomposition
    function branches per_platform axis_name dimension_numbers elems
""".split())   # noqa: SIM905

S = [(), (1,), (3,), (2, 3), (3, 3), (1, 3), (0,), (2, 0), (2, 1, 3)]
DTYPES = ["bool", "int8", "uint8", "int16", "int32", "uint32", "float16", "bfloat16", "float32",
          "float32", "float32", "complex64", "int4", "float8_e4m3fn"]
INTS = [0, 1, 2, -1, 3, 7, 100, 300, -200, 2**31 - 1, 2**31, 2**40]
NUMBERS = [*INTS, True, False, 0.0, -0.0, 1.5, -2.5, 1e30, float("inf"), float("nan"), 2 - 1j]
AXES = [0, -1, None, (0,), 1]
# Values of parameters that are no operands, by name; `STATIC`'s under a function's own name go
# first.
STATIC: dict[str, list[Any]] = {
    "axis": AXES, "axes": [(0,), (0, 1), None, 0, (-1,), (1, 0)], "keepdims": [True, False],
    "dtype": [None, "float32", "int32", "int8", float, int], "out": [None],
    "out_sharding": [None], "precision": [None, "highest"], "preferred_element_type": [None],
    "device": [None], "mode": [None, "clip", "wrap", "fill"], "shape": [(3,), (2, 3), 3, ()],
    "size": [3, None], "norm": [None, "ortho"], "accuracy": [None], "k": [0, 1, 2],
    "unique_indices": [False], "indices_are_sorted": [False], "order": [None], "method": [None],
    "s": [None, (3,), (2, 2)], "n": [1, 3, None], "copy": [None, True],
    "indices_or_sections": [1, 3, [1]], "offset": [0, 1], "dimensions": [(0,), (2, 3), (1, 0)],
    "reverse": [True, False], "overwrite_input": [False], "symmetrize_input": [True, False],
    "equal_nan": [True, False], "num": [5, 3], "endpoint": [True, False], "ddof": [0, 1],
    "unroll": [1], "num_classes": [3], "ord": [None, 1, 2, "fro", np.inf],
    "assume_unique": [False], "hermitian": [False, True], "full_matrices": [True, False],
    "lower": [True, False], "kth": [1, 0], "kind": [None], "stable": [True, False],
    "descending": [True, False], "decimals": [0, 1, -1, 2], "length": [5], "axis1": [0, 1],
    "axis2": [1, 0], "subscripts": ["ij->i", "i,i->i", "ij,jk", "..."], "optimize": [True],
    "N": [3, 2], "M": [3, None], "sparse": [False], "source": [0, -1], "destination": [-1, 0],
    "promote_integers": [True, False], "correction": [0, 1], "reps": [2, (2, 1)],
    "sorted": [True], "m": [None, 3], "UPLO": ["L", "U"], "compute_uv": [True, False],
    "d": [1.0, 2], "index_dtype": ["int32"], "new_dtype": ["float32", "int32", "int8", "uint8"],
    "sizes": [(2,), (1, 2)], "dimension": [0, 1], "slice_sizes": [(1,), (1, 2)], "ndmin": [0, 2],
    "batch_size": [None], "sharding": [None], "deg": [True, False], "returned": [False, True],
    "minlength": [0, 4], "axisa": [-1], "axisb": [-1], "axisc": [-1], "right": [True, False],
    "edge_order": [1], "invert": [True, False], "retstep": [True, False], "indexing": ["ij", "xy"],
    "pad_width": [1, (1, 2), ((0, 1),)], "dims": [(3, 4)], "total_repeat_length": [None, 7],
    "new_shape": [(4,), (2, 2)], "start": [0, 1, 2], "side": ["left", "right"],
    "return_index": [True, False], "return_inverse": [True, False], "return_counts": [False, True],
    "increasing": [True, False], "start_dimension": [0], "stop_dimension": [None, 1],
    "broadcast_dimensions": [(0,), (1,), ()], "rank": [2, 3], "slice_size": [1, 2],
    "exponent_bits": [5], "mantissa_bits": [3], "new_sizes": [(3,), (6,), (1, 3)],
    "rounding_method": [0, 1], "is_stable": [True], "num_keys": [1],
    "limit_indices": [(1,), (2, 3)], "strides": [None], "start_index": [0, 1],
    "limit_index": [1, 2], "stride": [1],
    "padding_config": [[(1, 0, 0)], [(0, 1, 0), (1, 0, 1)]], "permutation": [(0,), (1, 0)],
    "split_axis": [0], "approximate": [True, False], "newshape": [(3,)], "unpermuted": [None],
    "recall_target": [0.9], "reduction_dimension": [-1], "aggregate_to_topk": [True],
    "reduction_input_size_override": [-1], "interpolation": [None], "rowvar": [True, False],
    "bias": [False], "density": [None], "allow_negative_indices": [True], "unit": [1],
    "left_side": [True], "transpose_a": [False], "conjugate_a": [False], "unit_diagonal": [False],
    "fft_type": ["fft", "ifft"], "fft_lengths": [(3,)], "window_strides": [(1,), (1, 1)],
    "window_dimensions": [(2,), (1, 2)], "padding": ["VALID", "SAME"], "base_dilation": [None],
    "window_dilation": [None], "algorithm": [None], "ind": [1], "numpy_resid": [False],
    "use_magma": [None], "pivoting": [False], "subset_by_index": [None], "implementation": [None],
    "max_iterations": [None], "sort_eigenvalues": [True], "upper": [True, False], "obj": [0, 1],
    "wrap_negative_indices": [True], "include_initial": [True, False], "fill_values": [0],
    "include_initial_": [False], "casting": ["unsafe"], "return_indices": [False, True],
    "axis_size": [3], "nd": [2],
    "window": ["hann", "boxcar", ("kaiser", 3.0)], "nperseg": [None, 2], "noverlap": [None],
    "fs": [1.0, 2.0], "nfft": [None], "scaling": ["density"], "detrend": ["constant", False],
    "return_onesided": [True], "numtaps": [5], "cutoff": [0.3], "width": [0.1, None],
    "pass_zero": [True, False], "window_length": [3, 5], "polyorder": [1, 2], "deriv": [0, 1],
    "pos": [None], "use": ["conv"], "w0": [0.3], "Q": [2.0], "worN": [4], "Nx": [4],
    "in1_len": [3], "in2_len": [2], "nan_policy": ["propagate"], "alternative": ["two-sided"],
    "center": [np.mean], "equal_var": [True, False], "moment": [1, 2], "type": [1, 2, 3],
    "check_finite": [False, True], "overwrite_a": [False], "overwrite_b": [False],
    "eigvals_only": [True], "select": ["a"], "subset_by_value": [None], "trans": [0, 1],
    "assume_a": ["gen", "pos"], "sigma": [1.0, 0.5], "truncate": [4.0], "size_": [3],
    "cval": [0.0], "origin": [0], "footprint": [None], "output": [None], "prefilter": [True],
    "angle": [30.0], "zoom": [2.0], "reshape": [False], "dx": [1.0, 0.5], "initial": [None],
    "workers": [None], "nu": [0, 1], "scale": [None], "orthogonalize": [None],
}
OWN: dict[str, dict[str, list[Any]]] = {
    "numpy.arange": {"start": INTS[:6], "stop": [5, None], "step": [1, 2]},
    "numpy.pad": {"mode": ["constant", "edge", "wrap"], "kwargs": [None]},
    "numpy.quantile": {"method": ["linear", "lower"]},
    "numpy.round": {"decimals": [0, 1, -1, 2]},
    "nn.one_hot": {"axis": [-1, 0], "dtype": ["float32", "int32"]},
    **{f"scipy.ndimage.{name}": {"mode": ["reflect", "nearest"], "order": [1, 0]} for name in (
        "affine_transform", "map_coordinates", "rotate", "shift", "zoom")},
    **{f"scipy.signal.{name}": {"mode": ["full", "same", "valid"]} for name in (
        "convolve", "correlate", "convolve2d", "correlate2d", "fftconvolve", "oaconvolve",
        "correlation_lags")},
    **{f"scipy.signal.{name}": {"Wn": [0.3], "rp": [1.0], "rs": [20.0], "btype": ["low"]}
       for name in ("butter", "cheby1", "cheby2")},
    "scipy.fft.next_fast_len": {"target": [7, 11]}, "scipy.fft.prev_fast_len": {"target": [7]},
    "scipy.signal.detrend": {"type": ["linear", "constant"]},
    "scipy.signal.hilbert": {"N": [None, 4]},
    "scipy.linalg.dft": {"n": [3], "scale": [None, "sqrtn"]},
    "scipy.linalg.schur": {"output": ["real", "complex"]},
    "scipy.linalg.qr": {"mode": ["full", "economic", "r"]},
    "scipy.special.lpmn": {"n": [2]}, "scipy.special.bernoulli": {"n": [3]},
}
SEQUENCES = {"arrays", "tup", "operands", "choices", "condlist", "choicelist", "keys"}
VARIADIC = {"arys", "args", "xi", "varargs"}
# Refusals of traced values: the value is needed.
NEEDS_VALUE = (errors.ConcretizationTypeError, errors.TracerArrayConversionError,
               errors.TracerIntegerConversionError, errors.TracerBoolConversionError,
               errors.NonConcreteBooleanIndexError)


class Case(NamedTuple):
    """A call: `leaves` are the operands, in the places that `build` puts them."""

    name: str
    fun: Any
    leaves: list[Any]
    build: Any      # operands -> (args, kwargs)

    def call(self, leaves: list[Any]) -> Any:
        args, kwargs = self.build(leaves)
        return self.fun(*args, **kwargs)

    def __str__(self) -> str:
        args, kwargs = self.build([_shown(x) for x in self.leaves])
        given = [*map(str, args), *(f"{k}={v!r}" for k, v in kwargs.items())]
        return f"{self.name}({', '.join(given)})"


class _Text(str):
    __repr__ = str.__str__


def _shown(x: Any) -> Any:
    if isinstance(x, (onp.ndarray, np.ndarray, np.generic)):
        where = "onp" if isinstance(x, onp.ndarray) else "np"
        return _Text(f"{where}.asarray({np.asarray(x).tolist()}, {str(x.dtype)!r})")
    return _Text(repr(x))


def functions() -> dict[str, Any]:
    """Public functions of arrays by name, each once."""
    found: dict[str, Any] = {}
    for prefix, module in MODULES.items():
        for name in sorted(dir(module)):
            fun = getattr(module, name)
            if (name.startswith("_") or name in SKIPPED or not callable(fun)
                    or isinstance(fun, (type, type(onp.float32)))):
                continue
            with contextlib.suppress(TypeError, ValueError):
                parameters = inspect.signature(fun).parameters
                if not PROGRAMS & set(parameters) and parameters:
                    found[f"{prefix}.{name}"] = fun
    return found


def _array(rng: np.random.Generator, shape: tuple, dtype: str) -> np.ndarray:
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    kind = "f" if dtype.kind == "V" and "float" in dtype.name else dtype.kind
    if "int4" in dtype.name:
        return rng.integers(-7, 8, shape).astype(dtype)
    if kind == "b":
        return rng.random(shape) < 0.5
    if kind in "iu":
        small = rng.random() < 0.7
        low, high = (0, 3) if small else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        return rng.integers(low, high, shape, endpoint=True).astype(dtype)
    x = rng.choice([-2.5, -1.0, -0.25, 0.0, 0.25, 0.5, 1.0, 2.0, 3.0], shape)
    return (x + 1j * rng.choice([-1.0, 0.0, 0.5], shape) if kind == "c" else x).astype(dtype)


def _operand(rng: np.random.Generator, shape: tuple, dtype: str) -> Any:
    kind = rng.choice(["array", "number", "numpy", "scalar", "list"], p=[.55, .2, .1, .1, .05])
    if kind == "number":
        return NUMBERS[rng.integers(len(NUMBERS))]
    if kind == "scalar":
        return _array(rng, (), dtype)[()]
    if kind == "list":
        return [[1, 2, 3], [0.5, 1.5], [[1, 0], [2, 1]], [True, False], []][rng.integers(5)]
    value = _array(rng, shape, dtype)
    return value if kind == "numpy" else onp.asarray(value)


def _given(place: tuple, values: list[Any]) -> Any:
    """The argument at a place, from the leaves."""
    if place[0] == "is":
        return place[1]
    return values[place[1]] if place[0] == "leaf" else list(values[place[1]:place[2]])


def case(name: str, fun: Any, number: int, seed: int = 0) -> Case:
    """The `number`-th call of a function."""
    rng = np.random.default_rng([zlib.crc32(name.encode()), number, seed])
    shape = S[rng.integers(len(S))]
    dtypes = [DTYPES[rng.integers(len(DTYPES))]]
    leaves: list[Any] = []
    args: list[Any] = []        # places: ("leaf", i), ("leaves", i, j) or ("is", value)
    kwargs: dict[str, Any] = {}

    def operand() -> int:
        other = rng.random() < 0.3
        if other:
            dtypes.append(DTYPES[rng.integers(len(DTYPES))])
        leaves.append(_operand(rng, S[rng.integers(len(S))] if rng.random() < 0.15 else shape,
                               dtypes[-1] if other else dtypes[0]))
        return len(leaves) - 1

    for p in inspect.signature(fun).parameters.values():
        static = OWN.get(name, {}).get(p.name) or STATIC.get(p.name)
        required = p.default is p.empty
        if p.kind is p.VAR_KEYWORD:
            continue
        if p.kind is p.VAR_POSITIONAL or p.name in SEQUENCES:
            start = len(leaves)
            for _ in range(rng.integers(1, 4)):
                operand()
            if p.kind is p.VAR_POSITIONAL:
                args += [("leaf", i) for i in range(start, len(leaves))]
            else:
                args.append(("leaves", start, len(leaves)))
            continue
        if not required and rng.random() < (0.75 if static else 0.9):
            if p.kind is p.POSITIONAL_ONLY:
                break
            continue
        if static:
            place: tuple = ("is", static[rng.integers(len(static))])
        elif not required and type(p.default) in (bool, str):
            continue
        else:
            place = ("leaf", operand())
        if p.kind is p.POSITIONAL_ONLY or (required and p.kind is not p.KEYWORD_ONLY):
            args.append(place)
        else:
            kwargs[p.name] = place

    def build(values: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        return ([_given(p, values) for p in args],
                {k: _given(p, values) for k, p in kwargs.items()})

    return Case(name, fun, leaves, build)


# Calling ----------------------------------------------------------------------------------------

def _run(case: Case, mode: str) -> Any:
    """(structure, leaves), or the exception."""
    traced = [i for i, x in enumerate(case.leaves) if isinstance(x, onp.ndarray) or (
        mode == "traced" and isinstance(x, (np.ndarray, np.generic, bool, int, float, complex))
        and not (type(x) is int and abs(x) >= 2**31))]

    def call(*arrays: Any) -> Any:
        leaves = list(case.leaves)
        for i, x in zip(traced, arrays, strict=True):
            leaves[i] = x
        out = case.call(leaves)
        if any(type(x) is olympus.extend.core.Literal for x in olympus.tree.leaves(out)):
            raise AssertionError("a literal is given to the user")
        return out

    arrays = [case.leaves[i] for i in traced]
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            if mode == "eager":
                out = call(*arrays)
            elif mode in ("jit", "traced"):
                out = olympus.jit(call)(*arrays)
            elif not arrays:
                return None
            else:
                mapped = olympus.vmap(call)
                mapped = olympus.jit(mapped) if mode == "jit(vmap)" else mapped
                out = mapped(*[onp.expand_dims(x, 0) for x in arrays])
                out = olympus.tree.map(lambda x: x[0], out)
    except Exception as error:
        return error
    leaves, tree = olympus.tree.flatten(out)
    return tree, leaves


def _aval(x: Any) -> str:
    if isinstance(x, onp.ndarray):
        return str(x.aval) + (" weak" if x.weak_type else "")
    if isinstance(x, (bool, int, float, complex, np.ndarray, np.generic, str, type(None))):
        return f"{type(x).__name__}"
    return f"{type(x).__module__}.{type(x).__name__}"


def _differ(a: Any, b: Any) -> str:
    """How two results differ; empty if they do not."""
    if not isinstance(a, Exception) and any(type(x) is int and abs(x) >= 2**31 for x in a[1]):
        return ""       # handed through eagerly, no result of a program
    if isinstance(a, Exception) or isinstance(b, Exception):
        if isinstance(b, NEEDS_VALUE) or isinstance(a, NEEDS_VALUE):
            return ""
        if isinstance(a, Exception) and isinstance(b, Exception):
            same = isinstance(a, type(b)) or isinstance(b, type(a))
            return "" if same else f"{_error(a)} / {_error(b)}"
        return " / ".join(_error(x) if isinstance(x, Exception) else "a result" for x in (a, b))
    (tree_a, xs), (tree_b, ys) = a, b
    if tree_a != tree_b:
        return f"{tree_a} / {tree_b}"
    for x, y in zip(xs, ys, strict=True):
        python = type(x) in (bool, int, float, complex)     # jit makes arrays of them
        if not python and _aval(x) != _aval(y):
            return f"{_aval(x)} / {_aval(y)}"
        if not isinstance(x, (onp.ndarray, np.ndarray, np.generic, bool, int, float, complex)):
            continue
        if olympus.numpy.issubdtype(getattr(x, "dtype", np.dtype(int)), olympus.dtypes.prng_key):
            continue
        x, y = (np.asarray(v, getattr(y, "dtype", None) if python else None) for v in (x, y))
        if not _close(x, y):
            return f"{x.tolist()} / {y.tolist()}"
    return ""


def _error(x: Exception) -> str:
    text = (str(x).splitlines() or [""])[0]
    return f"{type(x).__name__}: {text[:150]}"


def _close(a: np.ndarray, b: np.ndarray) -> bool:
    if a.dtype.kind in "biu" or "int" in a.dtype.name:
        return bool(np.array_equal(a, b))
    try:
        eps = float(ml_dtypes.finfo(a.dtype).eps)
    except ValueError:
        return True
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        x, y = a.astype(wide), b.astype(wide)
        finite = np.abs(np.where(np.isfinite(x), x, 0)).max(initial=0.0)
        return bool(np.allclose(x, y, rtol=64 * eps, atol=64 * eps * max(1e-30, float(finite)),
                                equal_nan=True))


def check(c: Case, modes: Sequence[str] = MODES) -> list[tuple[str, str]]:
    """(mode, how it differs from the eager call) for each mode that does."""
    eager = _run(c, "eager")
    found = []
    if not isinstance(eager, Exception):
        strange = [_aval(x) for x in eager[1] if "_src" in _aval(x) and "Array" not in _aval(x)]
        if strange:
            found.append(("eager", f"{strange[0]} is given to the user"))
    for mode in modes:
        # What is wrong with a number may be right with an array; lax promotes numbers only.
        if mode == "traced" and (isinstance(eager, Exception) or c.name.startswith("lax.")):
            continue
        other = _run(c, mode)
        if other is not None:
            text = _differ(eager, other)
            if text:
                found.append((mode, text))
    return found


def main() -> None:
    """Sweep and print what differs, by function."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of names")
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--errors", action="store_true", help="count what eager calls raise")
    options = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    raised: collections.Counter[str] = collections.Counter()
    start = time.perf_counter()
    for name, fun in functions().items():
        if options.names and not any(part in name for part in options.names):
            continue
        for i in range(options.first, options.first + options.cases):
            c = case(name, fun, i, options.seed)
            counts["cases"] += 1
            if options.errors and isinstance(e := _run(c, "eager"), Exception):
                raised[f"{name}: {_error(e)}"[:150]] += 1
            for mode, text in check(c):
                counts["differences"] += 1
                print(f"{c}  #{i}\n    {mode}: {text}", flush=True)
    for text, n in raised.most_common():
        print(n, text)
    print(f"{counts['cases']} cases, {counts['differences']} differences, "
          f"{time.perf_counter() - start:.0f} s")
    sys.exit(bool(counts["differences"]))


if __name__ == "__main__":
    main()
