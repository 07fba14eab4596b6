"""Which operation takes which dtype: tests/data/dtype_table.txt, made and compared from here.

    PYTHONPATH=. python tools/dtype_table.py > tests/data/dtype_table.txt
    PYTHONPATH=. python tools/dtype_table.py operation …

A line is `operation: runs D… | refused D…: message | …`, dtypes abbreviated. We refuse what
StableHLO would take for one of these reasons: XLA's compiler aborts (`NEVER_COMPILED`); booleans
are no numbers (add, mul, reduce_prod, scatter_add, scatter_mul: use or, and); complex numbers have
no order (comparisons, clamp, argmax); real numbers have no parts (real).
"""

from __future__ import annotations

import re
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import olympus
from olympus import jit, lax, numpy as onp

DTYPES = {
    "b": "bool", "i2": "int2", "i4": "int4", "i8": "int8", "i16": "int16", "i32": "int32",
    "i64": "int64", "u2": "uint2", "u4": "uint4", "u8": "uint8", "u16": "uint16", "u32": "uint32",
    "u64": "uint64", "e2m1": "float4_e2m1fn", "e3m4": "float8_e3m4", "e4m3": "float8_e4m3",
    "e4m3b11": "float8_e4m3b11fnuz", "e4m3fn": "float8_e4m3fn", "e4m3nuz": "float8_e4m3fnuz",
    "e5m2": "float8_e5m2", "e5m2nuz": "float8_e5m2fnuz", "e8m0": "float8_e8m0fnu",
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "c64": "complex64",
    "c128": "complex128"}
NAMES_ONLY = ("int1", "uint1", "float6_e2m3fn", "float6_e3m2fn")    # no arrays in jaxlib 0.10.2
# What XLA's CPU compiler aborts on (jaxlib 0.10.2). These are traced and lowered, which must refuse
# them, and never compiled: should a check of ours be lost, the table differs and nothing else.
NEVER_COMPILED = {
    "concatenate": "i2 u2", "rem": "c64 c128",
    "rng_uniform": "b i2 i4 i8 i16 u2 u4 u8 u16 e2m1 e3m4 e4m3 e4m3b11 e4m3fn e4m3nuz e5m2 e5m2nuz "
                   "e8m0 c64 c128"}

UNARY = [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bessel_i0e", "bessel_i1e",
    "bitwise_not", "cbrt", "ceil", "clz", "conj", "cos", "cosh", "digamma", "erf", "erf_inv",
    "erfc", "exp", "exp2", "expm1", "floor", "imag", "is_finite", "lgamma", "log", "log1p",
    "log2", "logistic", "neg", "population_count", "real", "reciprocal", "round", "rsqrt",
    "sign", "sin", "sinh", "sqrt", "square", "stop_gradient", "tan", "tanh",
]
BINARY = [
    "add", "atan2", "bitwise_and", "bitwise_or", "bitwise_xor", "complex", "div", "eq", "ge",
    "gt", "igamma", "igammac", "le", "lt", "max", "min", "mul", "ne", "nextafter", "polygamma",
    "pow", "rem", "shift_left", "shift_right_arithmetic", "shift_right_logical", "sub", "zeta",
]
REDUCE = [
    "reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_and", "reduce_or",
    "reduce_xor",
]
SCAN = ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"]
INDEX = lax.GatherDimensionNumbers((), (0,), (0,))
SPOTS = lax.ScatterDimensionNumbers((), (0,), (0,))

Fun = Callable[[Any], Any]
OPERATIONS: dict[str, Fun] = {
    **{name: getattr(lax, name) for name in UNARY},
    **{name: lambda x, name=name: getattr(lax, name)(x, x) for name in BINARY},
    **{name: lambda x, name=name: getattr(lax, name)(x, (0,)) for name in REDUCE},
    **{name: lambda x, name=name: getattr(lax, name)(x, 0) for name in SCAN},
    "argmax": lambda x: lax.argmax(x, 0, "int32"),
    "argmin": lambda x: lax.argmin(x, 0, "int32"),
    "betainc": lambda x: lax.betainc(x, x, x),
    "bitcast_convert_type": lambda x: lax.bitcast_convert_type(x, x.dtype),
    "broadcast_in_dim": lambda x: lax.broadcast_in_dim(x, (2, 2), (1,)),
    "clamp": lambda x: lax.clamp(x, x, x),
    "concatenate": lambda x: lax.concatenate([x, x], 0),
    "conv": lambda x: lax.conv(x.reshape(1, 1, 2), x.reshape(1, 1, 2), (1,), "SAME"),
    "convert_to_bool": lambda x: lax.convert_element_type(x, bool),
    "convert_to_float32": lambda x: lax.convert_element_type(x, "float32"),
    "convert_to_int8": lambda x: lax.convert_element_type(x, "int8"),
    "convert_to_complex64": lambda x: lax.convert_element_type(x, "complex64"),
    "copy": lax.copy_p.bind,
    "dot": lambda x: lax.dot(x, x),
    "dynamic_slice": lambda x: lax.dynamic_slice(x, (1,), (1,)),
    "dynamic_update_slice": lambda x: lax.dynamic_update_slice(x, x[:1], (1,)),
    "fft": lambda x: lax.fft(x, "fft", 2),
    "full_like": lambda x: lax.full_like(x, 1),
    "gather": lambda x: lax.gather(x, onp.ones((2, 1), int), INDEX, (1,)),
    "integer_pow": lambda x: lax.integer_pow(x, 3),
    "iota": lambda x: lax.iota(x.dtype, 2),
    "optimization_barrier": lax.optimization_barrier,
    "pad": lambda x: lax.pad(x, x[0], [(1, 0, 1)]),
    "reduce_precision": lambda x: lax.reduce_precision(x, 3, 2),
    "reshape": lambda x: lax.reshape(x, (2, 1)),
    "rev": lambda x: lax.rev(x, (0,)),
    "rfft": lambda x: lax.fft(x, "rfft", 2),
    "rng_uniform": lambda x: lax.rng_uniform(x[0], x[1], (2,)),
    "scatter": lambda x: lax.scatter(x, onp.ones((2, 1), int), x, SPOTS),
    "scatter_add": lambda x: lax.scatter_add(x, onp.ones((2, 1), int), x, SPOTS),
    "scatter_max": lambda x: lax.scatter_max(x, onp.ones((2, 1), int), x, SPOTS),
    "scatter_mul": lambda x: lax.scatter_mul(x, onp.ones((2, 1), int), x, SPOTS),
    "select_n": lambda x: lax.select_n(onp.array([True, False]), x, x),
    "slice": lambda x: lax.slice(x, (1,), (2,)),
    "sort": lambda x: lax.sort(x),
    "split": lambda x: lax.split(x, (1, 1)),
    "squeeze": lambda x: lax.squeeze(x.reshape(1, 2), (0,)),
    "tile": lambda x: lax.tile(x, (2,)),
    "top_k": lambda x: lax.top_k(x, 1),
    "transpose": lambda x: lax.transpose(x.reshape(1, 2), (1, 0)),
}


def example(dtype: str) -> Any:
    """A shape of two elements: tracing needs no values."""
    return olympus.ShapeDtypeStruct((2,), dtype)


def message(error: Exception) -> str:
    """The part of an error that holds for every dtype it is raised for."""
    text = " ".join(str(error).split())
    if isinstance(error, (TypeError, ValueError, NotImplementedError)) and ";" in text:
        parts = [p.strip() for p in text.split(";")]
        return next((p for p in parts[1:] if "required" in p or "accepted" in p), parts[-1])
    text = str(error).split("\n")[0]
    text = re.sub(r"\S+\.py:\d+:\d+: error: ", "", text)
    text = re.sub(r"tensor<\S*>|[SU]\d in |: %.*|\(external\S*", "…", text)
    return f"{type(error).__name__} {text}".strip()


def attempt(fun: Fun, keys: Sequence[str]) -> str:
    """Trace, compile and run for these dtypes in one program; "" if that works, else why not."""
    try:
        args = [onp.ones(2, DTYPES.get(k, k)) for k in keys]
        jit(lambda xs: [fun(x) for x in xs])(args)
    except Exception as error:
        return message(error)
    return ""


def refusal(fun: Fun, key: str, lowered: bool = False) -> str:
    """Why tracing, or also lowering, refuses the dtype; "" if it does not."""
    try:
        if lowered:
            jit(fun).lower(example(DTYPES[key]))
        else:
            olympus.make_olympuspr(fun)(example(DTYPES[key]))
    except Exception as error:
        return message(error)
    return ""


def outcome(name: str) -> dict[str, str]:
    """Per dtype "" or the reason of the refusal; one compiled program for all that run."""
    fun, never = OPERATIONS[name], NEVER_COMPILED.get(name, "").split()
    found = {key: refusal(fun, key, key in never) for key in DTYPES}
    left = [key for key, why in found.items() if not why and key not in never]
    if attempt(fun, left):
        found.update((key, attempt(fun, [key])) for key in left)
    return found


def line(name: str, found: dict[str, str]) -> str:
    """The table's line of an operation."""
    groups: dict[str, list[str]] = {"": []}
    for key, why in found.items():
        groups.setdefault(why, []).append(key)
    runs = " ".join(groups.pop("")) or "nothing"
    refused = [f"refused {' '.join(keys)}: {why}" for why, keys in groups.items()]
    return f"{name}: " + " | ".join([f"runs {runs}", *refused])


def share(part: int, parts: int) -> list[str]:
    """The operations of one of several shares, which is the same on every machine."""
    return [name for name in sorted(OPERATIONS) if zlib.crc32(name.encode()) % parts == part]


def table(names: Sequence[str]) -> Iterator[str]:
    """The lines of these operations; 64-bit dtypes must be enabled."""
    for dtype in NAMES_ONLY if "abs" in names else ():
        yield f"no arrays of {dtype}: {attempt(lax.copy_p.bind, [dtype])}"
    for name in names:
        yield line(name, outcome(name))


def main(args: list[str]) -> None:
    with olympus.enable_x64(True):
        for text in table(args or sorted(OPERATIONS)):
            print(text, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
