"""Does every public function say what is wrong with a bad argument? A sweep of calls.

Each function gets a legal call, from the names of its parameters or from `OWN`; then each argument
in turn, and the first entry of each that is a sequence, is replaced by each value of `BAD`. What
comes out is

    taken       no exception
    refused     an error that Olympus or NumPy raises on purpose
    defect      one that an inner expression raises ("'NoneType' object is not iterable"), one of a
                class that says nothing to a user (AssertionError, KeyError), one raised while
                another was handled, which Python shows first, or one whose message does not begin
                with the name of an operation: of olympus.numpy, of the function called

On purpose is what a `raise` of the package raises. Calls are traced, not compiled, but for those of
`--eager`.

    PYTHONPATH=. python tools/bad_input.py [--taken] [--eager] [--share 1/7] [name ...]
"""

from __future__ import annotations

import argparse
import ast
import collections
import contextlib
import decimal
import fractions
import functools
import inspect
import io
import itertools
import pathlib
import re
import signal
import sys
import traceback
import warnings
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import olympus
import olympus.lax
import olympus.nn
import olympus.numpy as onp
import olympus.random
import olympus.scipy
from olympus._src.base.config import traceback_filtering

MODULES = {"numpy": onp, "numpy.linalg": onp.linalg, "numpy.fft": onp.fft, "lax": olympus.lax,
           "lax.linalg": olympus.lax.linalg, "nn": olympus.nn, "random": olympus.random,
           "nn.initializers": olympus.nn.initializers, "olympus": olympus, "image": olympus.image,
           **{f"scipy.{name}": functools.reduce(getattr, name.split("."), olympus.scipy)
              for name in ("cluster.vq", "fft", "integrate", "optimize", "sparse.linalg",
                           "linalg", "ndimage", "signal", "signal.windows", "special",
                           "interpolate", "stats")}}
PACKAGE = str(pathlib.Path(olympus.__file__).parent)
# Files, what stays after the call, and what computes at once.
SKIPPED = frozenset("""
    load loadtxt genfromtxt fromfile fromiter set_printoptions publish block_until_ready
    clear_caches live_arrays effects_barrier solve_ivp
""".split())    # noqa: SIM905


class Thing:
    """No value of any kind."""

    def __repr__(self) -> str:
        return "<thing>"


class Foreign:
    """What another library's array may look like from outside."""

    shape, dtype, ndim, size = (2,), "their float", 1, 2

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise RuntimeError("the array is on another device")

    def __repr__(self) -> str:
        return "<foreign>"


def _add(*xs: Any) -> Any:
    return xs[0] if xs else 0.0


BAD: dict[str, Any] = {
    "None": None, "text": "ab", "bytes": b"ab", "dict": {"a": 1}, "set": {1}, "function": _add,
    "class": Thing, "nan": float("nan"), "inf": float("inf"), "-1": -1, "10**30": 10**30,
    "1.5": 1.5, "1j": 1j, "True": True, "object": Thing(), "ragged": [[1.0], [2.0, 3.0]],
    "empty": [], "objects": np.array([None, 1], object), "datetime": np.datetime64("2020-01-01"),
    "strings": np.array(["a", "b"]), "list": [1.0, 2.0], "key": olympus.random.key(0),
    "spec": olympus.ShapeDtypeStruct((3,), np.float32), "memoryview": memoryview(b"ab"),
    "fraction": fractions.Fraction(1, 3), "decimal": decimal.Decimal("0.5"), "foreign": Foreign(),
    "cyclic": [1.0],
}
BAD["cyclic"].append(BAD["cyclic"])

F = np.arange(9, dtype=np.float32).reshape(3, 3) / 8 + np.eye(3, dtype=np.float32)
I = np.array([2, 0, 1], np.int32)
KEY = np.array([0, 7], np.uint32)
OPERANDS = (F, F[0], I, I > 0, F.astype(np.complex64), np.arange(9, dtype=np.uint8).reshape(3, 3))
# Legal values of parameters that are no operands.
LEGAL: dict[str, Any] = {
    "axis": 0, "axes": (0,), "keepdims": False, "dtype": np.float32, "shape": (3, 3), "size": 3,
    "out": None, "where": None, "n": 2, "k": 1, "num": 4, "num_classes": 3, "N": 3, "M": 3,
    "dimensions": (0,), "dimension": 0, "new_sizes": (9,), "sizes": (3,), "permutation": (1, 0),
    "source": 0, "destination": 1, "axis1": 0, "axis2": 1, "indices_or_sections": 3, "reps": (2,),
    "pad_width": 1, "mode": None, "norm": None, "offset": 0, "dims": (3, 3), "key": KEY, "d": 2,
    "sharding": None, "out_sharding": None, "device": None, "precision": None, "decimals": 1,
    "new_dtype": np.float32, "preferred_element_type": None, "accuracy": None, "index_dtype":
    np.int32, "start": 0, "stop": 3, "subscripts": "ij->i", "deg": 1, "length": 5, "casting":
    "safe", "from_": np.int8, "to": np.int16, "kind": None, "stable": True, "order": None, "m": 2,
    "shift": 1, "kth": 1, "ord": None, "method": None, "minlength": 0, "total_repeat_length": 4,
    "repeats": 2, "obj": 0, "choices": [I, I], "func1d": _add, "func": _add, "fun": _add,
    "f": _add, "pyfunc": _add, "body_fun": lambda i, x: x, "data": 3, "seed": 0, "impl": None,
    "num_keys": 1,
    "limit_indices": (2, 2), "start_indices": (0, 0), "strides": (1, 1), "start_index": 0,
    "limit_index": 2, "stride": 1, "slice_size": 1, "slice_sizes": (1, 1), "padding_config":
    ((0, 1, 0), (0, 0, 0)), "dimension_numbers": (((1,), (0,)), ((), ())), "fft_type": "fft",
    "fft_lengths": (3,), "window_dimensions": (1, 1), "window_strides": (1, 1), "padding": "VALID",
    "broadcast_dimensions": (0, 1), "operands": (F, F), "arrays": (F, F), "tup": (F, F), "arys":
    (F, F), "keys": (I, I), "sorter": I, "args": (F,), "s": (3, 3), "bins": 3, "newshape": (9,),
    "exponent_bits": 5, "mantissa_bits": 3, "rounding_method": 0, "low": 0, "high": 2, "minval": 0,
    "maxval": 3, "in_axes": 0, "out_axes": 0, "argnums": 0, "static_argnums": None, "xi": (I, I),
    "static_argnames": None, "donate_argnums": None, "donate_argnames": None, "has_aux": False,
    "a_min": 0, "a_max": 1, "UPLO": "L", "condlist": [I > 0], "choicelist": [I], "shapes":
    ((3,), (1,)), "function": _add, "axis_name": "i", "axis_size": 3, "lower": 0.0, "upper": 1.0,
    "unroll": 1, "stop_dimension": 1, "start_dimension": 0, "split_axis": 0, "concat_axis": 0,
    "permutation_size": 3, "rank": 2, "arg1": np.int8, "arg2": np.int16, "config": None,
    "device_set": None, "ndim": 2, "ndmin": 0, "count": 1, "buffer": b"abcdefgh", "batch_size":
    None, "backend": None, "in_shardings": None, "out_shardings": None, "p": 0.5,
    "bitorder": "big", "beta": 3.0,
}


class Call(NamedTuple):
    name: str
    fun: Any
    arguments: dict[str, Any]       # by parameter; of `*args` a tuple, of `**kwargs` a dict

    def run(self, eager: bool = False) -> None:
        """Calls it, its program traced only; what it prints and warns of is dropped."""
        bound = inspect.BoundArguments(signature(self.fun), self.arguments)    # type: ignore
        with warnings.catch_warnings(), np.errstate(all="ignore"), \
                contextlib.redirect_stdout(io.StringIO()), traceback_filtering("off"):
            warnings.simplefilter("ignore")
            run = functools.partial(self.fun, *bound.args, **bound.kwargs)
            if self.name.startswith("olympus."):
                made = run()
                if self.name in CALLED:
                    made(*CALLED[self.name])
            elif self.name in COLLECTIVES:
                mapped = olympus.vmap(lambda _: leaves(run()), axis_name="i")
                mapped(I) if eager else olympus.eval_shape(mapped, I)
            elif eager or self.name in AT_ONCE:
                olympus.block_until_ready(leaves(run()))    # else a later call waits
            else:
                olympus.eval_shape(lambda: leaves(run()))


def leaves(out: Any) -> list[Any]:
    return [x for x in olympus.tree.leaves(out) if hasattr(x, "aval")]


@functools.cache
def signature(fun: Any) -> inspect.Signature:
    return inspect.signature(fun)


# Arguments of functions whose parameters' names do not tell; the others are by `LEGAL`.
PLACES, lax = np.array([[0], [2]], np.int32), olympus.lax
GATHER = lax.GatherDimensionNumbers((1,), (0,), (0,))
SCATTER = lax.ScatterDimensionNumbers((1,), (0,), (0,))
PUT = {"operand": F, "scatter_indices": PLACES, "updates": F[:2], "dimension_numbers": SCATTER}
WINDOW = {"operand": F, "window_dimensions": (2, 2), "window_strides": (1, 1),
          "padding": "VALID"}
IMAGE, KERNEL = np.ones((1, 2, 5, 5), np.float32), np.ones((3, 2, 2, 2), np.float32)
RAGGED = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
HEADS = np.ones((3, 2, 4), np.float32)
SQUARE, TIMES = F + F.T, np.arange(40, dtype=np.float32) / 8
SECTION = np.array([[1, 2, 1, 1, 0.5, 0.25]], np.float32)
CPU = olympus.devices()[0]
DEVICE = olympus.sharding.SingleDeviceSharding(olympus.devices()[0])
OWN: dict[str, dict[str, Any]] = {
    "olympus.check": {"pred": True, "msg": "said", "fmt_args": ()},
    "olympus.make_array_from_callback": {"shape": (3, 3), "sharding": DEVICE,
                                         "data_callback": lambda index: F[index]},
    "olympus.make_array_from_single_device_arrays": {
        "shape": (3, 3), "sharding": DEVICE, "arrays": [olympus.numpy.asarray(F)]},
    "olympus.make_array_from_process_local_data": {"sharding": DEVICE, "local_data": F},
    "lax.after_all": {"operands": (lax.create_token(),)},
    "numpy.geomspace": {"start": 1, "stop": 3},
    "lax.composite": {"decomposition": _add, "name": "bad.input"},
    "lax.conv_general_dilated_local": {
        "lhs": IMAGE, "rhs": np.ones((3, 8, 4, 4), np.float32), "window_strides": (1, 1),
        "padding": "VALID", "filter_shape": (2, 2)},
    "lax.conv_general_permutations": {"dimension_numbers": ("NCHW", "OIHW", "NCHW")},
    **{f"lax.{f}_shape_tuple": {
        "lhs_shape": (1, 2, 5), "rhs_shape": (3, 2, 2), "window_strides": (1,), "padding": "SAME",
        "dimension_numbers": ("NCH", "OIH", "NCH")} for f in ("conv_general", "conv_transpose")},
    "lax.conv_transpose_shape_tuple": {
        "lhs_shape": (1, 2, 5), "rhs_shape": (2, 3, 2), "window_strides": (1,), "padding": "SAME",
        "dimension_numbers": ("NCH", "IOH", "NCH")},
    "lax.custom_linear_solve": {"matvec": lambda x: 2 * x, "b": F[0], "solve": lambda _, b: b / 2},
    "lax.custom_root": {"f": lambda x: x - 1, "initial_guess": np.float32(2), "solve":
                        lambda f, x: x - f(x), "tangent_solve": lambda g, y: y / g(1.0)},
    "lax.pcast": {"x": F, "to": "varying"},
    "lax.platform_dependent": {"args": (F,), "default": _add},
    "lax.ppermute": {"x": F, "perm": ((0, 1), (1, 2), (2, 0))},
    "lax.pshuffle": {"x": F, "perm": (1, 2, 0)},
    "lax.psum_scatter_start": {"args": (F, "i")},
    "lax.ragged_all_to_all": {"operand": F, "output": F, **{f"{way}_{what}": np.ones(3, np.int32)
                              for way, what in (("input", "offsets"), ("send", "sizes"),
                                                ("output", "offsets"), ("recv", "sizes"))}},
    "lax.ragged_dot_general": {"lhs": F, "rhs": F[None], "group_sizes": np.array([3], np.int32),
                               "ragged_dot_dimension_numbers": RAGGED},
    "lax.random_gamma_grad": {"args": (F, F)},
    "lax.reduce_window_shape_tuple": {"operand_shape": (3, 3), "window_dimensions": (2, 2),
                                      "window_strides": (1, 1), "padding": "VALID"},
    "lax.scatter_apply": {"operand": F, "scatter_indices": PLACES, "func": lambda x: x + 1,
                          "dimension_numbers": SCATTER, "update_shape": (2, 3)},
    "lax.with_sharding_constraint": {"x": F, "shardings":
                                     olympus.sharding.SingleDeviceSharding(CPU)},
    "nn.dot_product_attention": dict.fromkeys(("query", "key", "value"), HEADS),
    "nn.get_scaled_dot_general_config": {"mode": "nvfp4"},
    "nn.scaled_matmul": {"lhs": F[None], "rhs": F[None], "lhs_scales": F[None, :, :1],
                         "rhs_scales": F[None, :, :1]},
    "numpy.linalg.tensorinv": {"a": F, "ind": 1},
    "numpy.frompyfunc": {"func": _add, "nin": 2, "nout": 1},
    "olympus.default_device": {"new_val": CPU},
    "olympus.default_matmul_precision": {"new_val": "highest"},
    "olympus.default_prng_impl": {"new_val": "rbg"},
    "olympus.reshard": {"xs": F, "out_shardings": olympus.NamedSharding(
        olympus.sharding.Mesh([CPU], "i", olympus.sharding.AxisType.Explicit), olympus.P())},
    "olympus.legacy_prng_key": {"new_val": "warn"},
    "olympus.make_mesh": {"axis_sizes": (1,), "axis_names": ("i",)},
    "olympus.named_scope": {"name": "ab"},
    "olympus.numpy_dtype_promotion": {"new_val": "strict"},
    "olympus.numpy_rank_promotion": {"new_val": "warn"},
    "random.multinomial": {"n": 5, "p": F[0]},
    "olympus.pure_callback": {"callback": lambda x: np.sin(x), "args": (F,),
                              "result_shape_dtypes": olympus.ShapeDtypeStruct((3, 3), np.float32)},
    "olympus.array_garbage_collection_guard": {"new_val": "log"},
    **{f"olympus.transfer_guard{way}": {"new_val": "log"} for way in (
        "", "_device_to_device", "_device_to_host", "_host_to_device")},
    "lax.gather": {"operand": F, "start_indices": PLACES, "dimension_numbers": GATHER,
                   "slice_sizes": (1, 3)},
    **{f"lax.scatter{s}": PUT for s in ("", "_add", "_mul", "_min", "_max", "_sub")},
    "lax.reduce_window": {**WINDOW, "init_value": 0.0, "computation": lax.add},
    "lax.reduce": {"operands": F, "init_values": np.float32(0), "computation": lax.add,
                   "dimensions": (0,)},
    "lax.conv": {"lhs": IMAGE, "rhs": KERNEL, "window_strides": (1, 1), "padding": "SAME"},
    "lax.conv_general_dilated": {"lhs": IMAGE, "rhs": KERNEL, "window_strides": (1, 1),
                                 "padding": "SAME", "dimension_numbers": None},
    "lax.cond": {"pred": True, "true_fun": lambda x: x, "false_fun": lambda x: x,
                 "operands": (F,)},
    "lax.switch": {"index": 0, "branches": (lambda x: x, lambda x: x), "operands": (F,)},
    "lax.scan": {"f": lambda c, x: (c, x), "init": np.float32(0), "xs": F},
    "lax.while_loop": {"cond_fun": lambda x: True, "body_fun": lambda x: x,
                       "init_val": 0},
    "lax.fori_loop": {"lower": 0, "upper": 3, "body_fun": lambda i, x: x, "init_val": 0.0},
    "lax.associative_scan": {"fn": lax.add, "elems": F},
    "lax.map": {"f": lambda x: x, "xs": F},
    "lax.select_n": {"which": I > 0, "cases": (I, I)},
    "lax.dynamic_update_slice": {"operand": F, "update": F, "start_indices": (0, 0)},
    "lax.pad": {"operand": F, "padding_value": np.float32(0),
                "padding_config": ((0, 1, 0), (0, 0, 0))},
    "lax.split": {"operand": F, "sizes": (1, 2), "axis": 0},
    "lax.convert_element_type": {"operand": F, "new_dtype": np.int32},
    "lax.bitcast_convert_type": {"operand": F, "new_dtype": np.int32},
    "lax.reshape": {"operand": F, "new_sizes": (9,), "dimensions": None},
    "lax.fft": {"x": F.astype(np.complex64), "fft_type": "fft", "fft_lengths": (3,)},
    "lax.squeeze": {"array": F[None], "dimensions": (0,)},
    "lax.expand_dims": {"array": F, "dimensions": (0,)},
    "lax.top_k": {"operand": F, "k": 2, "axis": -1},
    "lax.rng_bit_generator": {"key": np.arange(4, dtype=np.uint32), "shape": (3,)},
    "numpy.linspace": {"start": 0.0, "stop": 1.0, "num": 3, "axis": 0},
    "numpy.pad": {"array": F, "pad_width": ((1, 1), (0, 2)), "mode": "constant"},
    "numpy.tensordot": {"a": F, "b": F, "axes": ((1,), (0,))},
    "numpy.transpose": {"a": F, "axes": (1, 0)},
    "numpy.einsum": {"subscripts": "ij,jk->ik", "operands": (F, F)},
    "numpy.einsum_path": {"subscripts": "ij,jk->ik", "operands": (F, F)},
    "numpy.choose": {"a": np.array([0, 1, 1]), "choices": [I, I], "mode": "clip"},
    "numpy.searchsorted": {"a": F[0], "v": F[1], "side": "left", "sorter": I},
    "numpy.ravel_multi_index": {"multi_index": (I, I), "dims": (3, 3), "mode": "clip"},
    "numpy.unravel_index": {"indices": I, "shape": (3, 3)},
    "numpy.linalg.multi_dot": {"arrays": [F, F, F]},
    "numpy.linalg.tensorsolve": {"a": F, "b": F[0], "axes": (1,)},
    "numpy.bincount": {"x": I, "length": 3},
    "numpy.repeat": {"a": F, "repeats": I, "axis": 0, "total_repeat_length": 4},
    "numpy.squeeze": {"a": F[None], "axis": (0,)},
    "numpy.isdtype": {"dtype": np.float32, "kind": "bool"},
    "numpy.quantile": {"a": F, "q": 0.5, "axis": 0, "method": "linear"},
    "numpy.percentile": {"a": F, "q": 50, "axis": 0, "method": "linear"},
    "numpy.gradient": {"f": F, "varargs": (1.0,), "axis": 0},
    "random.split": {"key": KEY, "num": 3}, "random.key": {"seed": 0},
    "random.choice": {"key": KEY, "a": I, "shape": (2,), "p": np.ones(3, np.float32) / 3},
    "random.categorical": {"key": KEY, "logits": F, "axis": -1, "shape": (3,)},
    "numpy.clip": {"arr": F, "min": 0.0, "max": 1.0}, "numpy.block": {"arrays": [F, F]},
    "numpy.digitize": {"x": F, "bins": F[0]}, "numpy.polyval": {"p": F[0], "x": F},
    **{f"numpy.{f}": {"ar": F[0], "ar1": I, "ar2": I, "x": I, "size": 3} for f in (
        "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values",
        "intersect1d", "setdiff1d", "setxor1d", "union1d")},
    **{f"numpy.{f}": {"m": F, "k": 0, "axes": (0, 1)} for f in (
        "tril", "triu", "rot90", "fliplr", "flipud")},
    "numpy.isneginf": {"x": F, "out": None}, "numpy.isposinf": {"x": F, "out": None},
    "numpy.ix_": {"args": (I, I)}, "numpy.dsplit": {"ary": F[None]},
    "numpy.piecewise": {"x": F, "condlist": [F > 0], "funclist": [1.0]},
    "numpy.put_along_axis": {"arr": F, "indices": F.astype(int) * 0, "values": 1.0, "axis": 0,
                             "inplace": False},
    "numpy.put": {"a": F, "ind": I, "v": 1.0, "inplace": False},
    "numpy.place": {"arr": F, "mask": F > 0, "vals": F[0], "inplace": False},
    "numpy.copyto": {"dst": F, "src": 1.0, "casting": "same_kind", "inplace": False},
    "numpy.putmask": {"a": F, "mask": F > 0, "values": F, "inplace": False},
    "numpy.fill_diagonal": {"a": F, "val": 1.0, "inplace": False},
    "numpy.mask_indices": {"n": 3, "mask_func": onp.triu, "size": 3},
    **{f"numpy.format_float_{how}": {"x": 1.5, "args": ()} for how in ("positional", "scientific")},
    "numpy.fromstring": {"string": "1 2", "count": -1, "sep": " "},
    "numpy.roots": {"p": F[0], "strip_zeros": False}, "numpy.unwrap": {"p": F, "period": 3.0},
    "lax.full": {"shape": (3,), "fill_value": 1.0}, "lax.full_like": {"x": F, "fill_value": 1},
    "lax.integer_pow": {"x": F, "y": 2}, "lax.sort_key_val": {"keys": I, "values": I},
    "lax.index_in_dim": {"operand": F, "index": 0},
    "lax.dynamic_index_in_dim": {"operand": F, "index": 0},
    "lax.dynamic_update_index_in_dim": {"operand": F, "update": F[0], "index": 0, "axis": 0},
    "lax.index_take": {"src": F, "idxs": (I,), "axes": (0,)},
    "lax.rng_uniform": {"a": 0.0, "b": 1.0, "shape": (3,)},
    "lax.conv_transpose": {"lhs": np.ones((1, 5, 2), np.float32), "rhs":
                           np.ones((3, 2, 4), np.float32), "strides": (2,), "padding": "SAME"},
    "lax.conv_with_general_padding": {
        "lhs": IMAGE, "rhs": KERNEL, "window_strides": (1, 1), "padding": ((0, 0), (1, 1)),
        "lhs_dilation": (1, 1), "rhs_dilation": (1, 1)},
    "lax.conv_general_dilated_patches": {
        "lhs": IMAGE, "filter_shape": (2, 2), "window_strides": (1, 1), "padding": "VALID"},
    "lax.conv_shape_tuple": {"lhs_shape": (1, 2, 5), "rhs_shape": (3, 2, 2), "strides": (1,),
                             "pads": "SAME"},
    "lax.padtype_to_pads": {"in_shape": (5,), "window_shape": (2,), "window_strides": (1,),
                            "padding": "SAME"},
    "lax.conv_dimension_numbers": {"lhs_shape": (1, 2, 5), "rhs_shape": (3, 2, 2),
                                   "dimension_numbers": None},
    "lax.ragged_dot": {"lhs": F, "rhs": F[None], "group_sizes": np.array([3], np.int32)},
    "lax.linalg.householder_product": {"a": F, "taus": F[0]},
    "lax.linalg.ormqr": {"a": F, "taus": F[0], "c": F},
    "lax.linalg.cholesky_update": {"r_matrix": F, "w_vector": F[0]},
    "lax.linalg.tridiagonal_solve": {"dl": F[0], "d": F[0], "du": F[0], "b": F},
    "nn.glu": {"x": F[:, :2], "axis": -1},
    "nn.initializers.variance_scaling": {"scale": 1.0, "mode": "fan_in", "distribution":
                                         "normal"},
    "random.key_data": {"keys": olympus.random.key(0)},
    "random.key_impl": {"keys": olympus.random.key(0)},
    **{f"scipy.sparse.linalg.{f}": {"A": F + F.T, "b": F[0]} for f in ("bicgstab", "cg", "gmres")},
    "scipy.fft.next_fast_len": {"target": 5}, "scipy.fft.prev_fast_len": {"target": 5},
    "scipy.linalg.cho_solve": {"c_and_lower": (F, True), "b": F},
    "scipy.linalg.cho_solve_banded": {"cb_and_lower": (F, True), "b": F},
    "scipy.linalg.lu_solve": {"lu_and_piv": (F, I), "b": F},
    "scipy.linalg.solve_banded": {"l_and_u": (1, 1), "ab": F, "b": F},
    **{f"scipy.linalg.{f}_tridiagonal": {"d": F[0], "e": F[0, :2], "eigvals_only": True}
       for f in ("eigh", "eigvalsh")},
    "scipy.linalg.fractional_matrix_power": {"A": F, "t": 2},
    "scipy.linalg.leslie": {"f": F[0], "s": F[0, :2]},
    **{f"scipy.ndimage.{f}": {"input": F, "sigma": 1.0} for f in (
        "gaussian_filter", "gaussian_filter1d", "gaussian_gradient_magnitude",
        "gaussian_laplace")},
    **{f"scipy.ndimage.{f}_filter": {"input": F, "size": 3, "rank": 1}
       for f in ("maximum", "minimum", "median", "rank")},
    "scipy.ndimage.map_coordinates": {"input": F, "coordinates": [F[0], F[1]], "order": 1},
    "scipy.ndimage.rotate": {"input": F, "angle": 30.0, "reshape": False},
    "scipy.ndimage.zoom": {"input": F, "zoom": 2.0},
    **{f"scipy.signal.{f}": {"N": 2, "Wn": 0.3, "rp": 1.0, "rs": 20.0}
       for f in ("butter", "cheby1", "cheby2")},
    "scipy.signal.correlation_lags": {"in1_len": 4, "in2_len": 3},
    "scipy.signal.decimate": {"x": TIMES, "q": 2}, "scipy.signal.detrend": {"data": F},
    "scipy.signal.filtfilt": {"b": SECTION[0, :3], "a": SECTION[0, 3:], "x": TIMES},
    "scipy.signal.firwin": {"numtaps": 5, "cutoff": 0.3},
    "scipy.signal.get_window": {"window": "hann", "Nx": 5},
    "scipy.signal.kaiser_atten": {"numtaps": 5, "width": 0.1},
    "scipy.signal.kaiser_beta": {"a": 30.0},
    **{f"scipy.signal.windows.{f}": {"M": 5, **rest} for f, rest in {
        "gaussian": {"std": 2.0}, "general_cosine": {"a": [0.5, 0.5]},
        "general_gaussian": {"p": 1.5, "sig": 2.0}, "general_hamming": {"alpha": 0.6}}.items()},
    "scipy.signal.windows.get_window": {"window": ("exponential", None, 2.0), "Nx": 5},
    "scipy.signal.kaiserord": {"ripple": 30.0, "width": 0.1},
    "scipy.signal.savgol_coeffs": {"window_length": 5, "polyorder": 2},
    "scipy.signal.savgol_filter": {"x": TIMES, "window_length": 5, "polyorder": 2},
    **{f"scipy.signal.{f}": {"sos": SECTION, "x": TIMES}
       for f in ("sos2tf", "sosfilt", "sosfilt_zi", "sosfiltfilt", "sosfreqz")},
    "scipy.special.bessel_jn": {"z": F, "v": 2},
    "scipy.special.lpmn_values": {"m": 3, "n": 3, "z": F[0], "is_normalized": True},
    "image.resize": {"image": F, "shape": (5, 5), "method": "linear"},
    "image.scale_and_translate": {"image": F, "shape": (5, 5), "spatial_dims": (0, 1), "scale":
                                  F[0, :2], "translation": F[0, :2], "method": "linear"},
    "scipy.optimize.minimize": {"fun": lambda x: x @ x, "x0": F[0], "method": "BFGS"},
    "scipy.integrate.quad": {"f": lambda x: x * x, "a": 0.0, "b": 1.0},
    "scipy.integrate.fixed_quad": {"func": lambda x: x * x, "a": 0.0, "b": 1.0},
    "scipy.integrate.odeint": {"func": lambda y, t: -y, "y0": F[0], "t": F[0]},
    "random.triangular": {"key": KEY, "left": 0.0, "mode": 0.5, "right": 1.0, "shape": ()},
    "random.weibull_min": {"key": KEY, "scale": 1.0, "concentration": 1.0},
    "random.wrap_key_data": {"key_bits_array": KEY},
    "nn.softmax": {"x": F, "axis": -1, "where": F > 0},
    "nn.one_hot": {"x": I, "num_classes": 3, "axis": -1},
    "olympus.device_put": {"x": F}, "olympus.eval_shape": {"fun": _add, "args": (F,)},
    "olympus.jit": {"fun": _add},
    "olympus.jvp": {"fun": _add, "primals": (F,), "tangents": (F,)},
    "olympus.linear_transpose": {"fun": _add, "primals": (F,)},
    "olympus.config.update": {"name": "olympus_log_compiles", "val": False},
    "olympus.empty_ref": {"ty": olympus.typeof(F)},
    "olympus.free_ref": {"ref": "a new one"}, "olympus.freeze": {"ref": "a new one"},
}

# What takes the names of axes, and so runs below a vmap over one.
COLLECTIVES = frozenset(f"lax.{name}" for name in """
    all_gather all_to_all axis_index axis_size pbroadcast pcast pmax pmean pmin ppermute pshuffle
    psum psum_scatter psum_scatter_start pswapaxes ragged_all_to_all
""".split())    # noqa: SIM905
# Functions whose result's shape depends on values.
AT_ONCE = frozenset(f"scipy.linalg.{name}" for name in ("null_space", "orth", "subspace_angles"))
# What the functions that transformations make are called with.
CALLED: dict[str, tuple[Any, ...]] = {
    **{f"olympus.{name}": (np.float32(1),) for name in """
        checkpoint grad hessian jacfwd jacobian jacrev jit
        make_olympuspr named_call remat value_and_grad""".split()},     # noqa: SIM905
    "olympus.vmap": (I,),
}


def _update(name: str, val: Any) -> None:
    """`config.update`, undone where it was done."""
    olympus.config.update(name, val)
    olympus.config.update("olympus_log_compiles", False)


def _ending(fun: Any) -> Any:
    """A function after which a reference cannot be used: it gets a new one each time."""
    @functools.wraps(fun)
    def call(ref: Any) -> Any:
        return fun(olympus.new_ref(F) if ref == "a new one" else ref)
    return call


def functions() -> Iterator[tuple[str, Any]]:
    """Public functions, by name."""
    for prefix, module in MODULES.items():
        for name in sorted(dir(module)):
            fun = getattr(module, name)
            if (name.startswith("_") or name in SKIPPED or inspect.isclass(fun)
                    or not callable(fun) or getattr(np, name, None) is fun):    # NumPy's own words
                continue
            with contextlib.suppress(TypeError, ValueError):
                if signature(fun).parameters:
                    yield f"{prefix}.{name}", (
                        _ending(fun) if fun in (olympus.free_ref, olympus.freeze) else fun)
    yield "olympus.config.update", _update


def legal_call(name: str, fun: Any) -> Call | None:
    """A call that is accepted; None where none is found."""
    given = OWN.get(name, {})
    for x in OPERANDS:
        arguments = {}
        for p in signature(fun).parameters.values():
            if p.kind is p.VAR_KEYWORD:
                continue
            if p.name in given:
                value = given[p.name]
            elif p.default is not p.empty:
                value = p.default
            elif p.kind is p.VAR_POSITIONAL and p.annotation in (None, "None"):
                value = ()      # of ufuncs, whose further operands may only be None
            elif p.kind is p.VAR_POSITIONAL:
                value = LEGAL.get(p.name, (x,))
            else:
                value = LEGAL.get(p.name, x)
            arguments[p.name] = value
        call = Call(name, fun, arguments)
        with contextlib.suppress(Exception):
            call.run()
            return call
    return None


def bad_calls(call: Call) -> Iterator[tuple[str, Call]]:
    """(the fault, call)."""
    for p in signature(call.fun).parameters.values():
        if p.kind is p.VAR_KEYWORD or p.name == "_dot_general":    # a program
            continue
        value = call.arguments[p.name]
        for label, bad in BAD.items():
            if p.kind is p.VAR_POSITIONAL:
                if value:
                    yield f"{p.name}[0]={label}", _with(call, p.name, (bad, *value[1:]))
                continue
            yield f"{p.name}={label}", _with(call, p.name, bad)
            if type(value) in (tuple, list) and value:
                yield f"{p.name}[0]={label}", _with(call, p.name, type(value)([bad, *value[1:]]))


def _with(call: Call, name: str, value: Any) -> Call:
    return call._replace(arguments={**call.arguments, name: value})


@functools.cache
def _raises(path: str) -> frozenset[int]:
    """The lines of a module that `raise` statements take."""
    tree = ast.parse(pathlib.Path(path).read_text())
    return frozenset(itertools.chain.from_iterable(
        range(node.lineno, node.end_lineno + 1) for node in ast.walk(tree)
        if isinstance(node, ast.Raise) and node.end_lineno))


PURPOSE = (TypeError, ValueError, IndexError, OverflowError, NotImplementedError, RuntimeError,
           BufferError, AttributeError, NameError)      # by `raise` statements only
VAGUE = (RecursionError, UnicodeError)
# Python's and NumPy's own words that name the fault of the argument itself.
CLEAR = re.compile("truth value|inhomogeneous shape|object is not callable|"
                   r"Thing\(\) takes no arguments|contains itself|on another device|"
                   r"takes \d positional arguments? but")


class HangError(Exception):
    """A call took more than `PATIENCE` seconds of the processor."""


PATIENCE = 10


def _hang(*_: Any) -> None:
    raise HangError(f"no answer in {PATIENCE} seconds of the processor")


def defect(error: BaseException) -> str:
    """What is wrong with an error; empty if nothing is."""
    text = " ".join(str(error).split())
    frames = list(traceback.extract_tb(error.__traceback__))
    inner = frames[-1]
    place = f"{inner.filename.removeprefix(PACKAGE)}:{inner.lineno}"
    shown = f"{type(error).__name__}: {text[:110]}  [{place}]"
    if CLEAR.search(text) or inner.filename == __file__ and inner.name in ("<lambda>", "_add"):
        return ""       # of the argument itself, or from the user's function
    if error.__context__ is not None and not error.__suppress_context__:
        return f"{shown} while handling {type(error.__context__).__name__}"
    if not isinstance(error, PURPOSE) or isinstance(error, VAGUE):
        return shown
    if not inner.filename.startswith(PACKAGE):
        return shown
    if inner.lineno not in _raises(inner.filename):
        return shown
    return "" if re.match(r"[-/\w.()\[\]'\" ]+:|Incompatible shapes", text) else shown



def misnamed(name: str, error: BaseException) -> str:
    """The message of a function of olympus.numpy, if it begins with another one's name."""
    if not name.startswith("numpy."):
        return ""
    public = name.removeprefix("numpy.")
    fun = functools.reduce(getattr, public.split("."), onp)
    names = {public, public.rpartition(".")[2], getattr(fun, "__name__", public), "device_put"}
    if public in ("can_cast", "isdtype", "issubdtype", "promote_types", "result_type"):
        names.add("dtype")
    if public in ("ndim", "shape", "size"):
        names.add("typeof")
    text = " ".join(str(error).split())
    if CLEAR.search(text) or re.split(r"[:( ]", text)[0] in names:
        return ""
    return f"says another's name: {text[:110]}"


def outcome(call: Call, eager: bool = False) -> str:
    """"taken", "refused" or what is wrong."""
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    try:
        call.run(eager)
    except Exception as error:
        return defect(error) or misnamed(call.name, error) or "refused"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return "taken"


def chosen(call: Call, what: str, share: tuple[int, int]) -> bool:
    """Whether a call is in the `share[0]`-th of `share[1]` parts, by its name."""
    return zlib.crc32(f"{call.name}({what})".encode()) % share[1] == share[0] % share[1]


def sweep(names: list[str], share: tuple[int, int] = (0, 1), eager: bool = False
          ) -> Iterator[tuple[str, str, str]]:
    """(function, the fault, outcome)."""
    for name, fun in functions():
        if names and not any(part in name for part in names):
            continue
        call = legal_call(name, fun)
        if call is None:
            yield name, "", "no legal call"
            continue
        for what, bad in bad_calls(call):
            if chosen(bad, what, share):
                yield name, what, outcome(bad, eager)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of names")
    parser.add_argument("--taken", action="store_true", help="list the calls that are accepted")
    parser.add_argument("--eager", action="store_true", help="compile and run what is accepted")
    parser.add_argument("--share", default="0/1", help="which part of how many")
    options = parser.parse_args()
    signal.signal(signal.SIGPROF, _hang)
    part, parts = map(int, options.share.split("/"))
    counts: collections.Counter[str] = collections.Counter()
    for name, what, found in sweep(options.names, (part, parts), options.eager):
        kind = found if found in ("taken", "refused", "no legal call") else "defects"
        counts[kind] += 1
        if kind in ("defects", "no legal call") or options.taken and kind == "taken":
            print(f"{name}({what}): {found}", flush=True)
    print(", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())))
    return int(bool(counts["defects"]))


if __name__ == "__main__":
    sys.exit(main())
