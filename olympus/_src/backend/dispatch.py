"""Evaluation: the base trace, which compiles each operation once and runs it.

An operation with given params has one C++ pjit object; it finds the executable for the operands'
types by itself, so an eager call costs one dict hit above C++.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base import errors, lib, source
from ..base.config import debug_infs, debug_nans, default_device, enable_x64
from ..base.util import Memo, bit_key
from ..core.ir import Literal
from ..core.primitive import Primitive
from ..core.staging import stage
from ..core.trace import SCALAR_TYPES, Trace, Tracer, check_usable, install_base_trace, typeof
from ..types import dtypes
from ..types.avals import ShapeDtypeStruct
from ..types.sharding import NamedSharding, device_tuple
from ..types.tree_registry import dispatch_registry
from . import devices
from .array import array_from_numpy, literal_array
from .compile import Placement, compile_program

KEY_TYPES: set[type] = set()    # filled by `random.keys`: array classes that hold an array

__all__ = ["BASE", "EvalTrace", "apply_primitive", "argument_array", "check_nans",
           "placement_of", "python_array", "sharding_of"]

ArrayImpl = lib.ArrayImpl
_numbers: Memo = Memo(4096)


def argument_array(x: Any) -> Any:
    """Any value that operations take as a device array (or a key array, which holds one)."""
    kind = type(x)
    if kind is ArrayImpl or kind in KEY_TYPES:
        return x
    if kind is Literal:
        return literal_array(x)
    if isinstance(x, Tracer):
        check_usable(x)
        raise errors.UnexpectedTracerError(
            f"leaked tracer: {x!r} is used where its transformation is not the current one; a "
            "traced value may be used only by the function that is traced; return it instead.")
    if kind in SCALAR_TYPES:
        return array_from_numpy(np.asarray(x, dtypes.python_scalar_dtype(kind)), kind is not bool)
    typeof(x)   # raises the teaching error for what is no array
    if hasattr(x, "__olympus_array__"):
        return argument_array(x.__olympus_array__())
    return array_from_numpy(np.asarray(x))


def python_array(x: Any) -> Any:
    """The weakly typed array of a Python int or float; itself if it does not fit.

    C++ puts Python numbers on the device in each call (4 us); here the last few thousand are kept.
    """
    key = type(x), x or repr(x), enable_x64.value, default_device.value     # 0.0 and -0.0 are equal
    found = _numbers.get(key)
    if found is None:
        dtype = dtypes.python_scalar_dtype(type(x))
        if type(x) is int and not np.iinfo(dtype).min <= x <= np.iinfo(dtype).max:
            return x
        found = _numbers[key] = array_from_numpy(np.asarray(x, dtype), weak_type=True)
    return found


def sharding_of(x: Any) -> Any:
    """Where an argument must stay: its sharding, or None if it may go anywhere."""
    if type(x) in KEY_TYPES:
        x = x._base_array
    if type(x) is ArrayImpl:
        return x._sharding if x._committed else None
    return x.sharding if type(x) is ShapeDtypeStruct else None


def placement_of(shardings: Sequence[Any], default: Any = None) -> Placement:
    """Where a program runs whose arguments must stay where these shardings say."""
    found: tuple[Any, ...] = ()
    for s in shardings:
        if s is not None:
            where = (s._device,) if type(s) is lib.SingleDeviceSharding else device_tuple(s)
            if found and found is not where and set(found) != set(where):
                raise ValueError(
                    f"jit: arguments are committed to {_places(found)} and {_places(where)}; one "
                    "set of devices is required; move them with device_put.")
            found = found or where
    if not found:
        committed = default is not None
        return Placement((default if committed else devices.default_device(),), committed)
    meshes = tuple([s if type(s) is NamedSharding and s.mesh.device_tuple == found else None
                    for s in shardings])
    return Placement(found, True, meshes if any(meshes) else ())


def _places(where: tuple[Any, ...]) -> str:
    return str(where[0]) if len(where) == 1 else str(where)


def _eager(prim: Primitive, params: dict[str, Any]) -> Any:
    """The C++ callable of an operation with given params."""
    def run(*args: Any) -> Any:
        return miss(*args)[0]       # disable_jit is about functions; an operation is still compiled

    def miss(*args: Any) -> tuple[Any, Any, bool]:
        values = list(map(argument_array, args))
        placement = placement_of(list(map(sharding_of, values)))
        avals = [typeof(v) for v in values]
        several = prim.multiple_results

        def program(*xs: Any) -> list[Any]:
            out = prim.bind(*xs, **params)
            return list(out) if several else [out]

        executable = compile_program(stage(program, avals), prim.name, placement)
        leaves = dispatch_registry.flatten(values)[0]
        outs = wrap_keys(executable(leaves), executable.out_avals)
        result = outs if several else outs[0]
        return result, executable.fastpath(dispatch_registry.flatten(result)[1], leaves), False

    return lib.pjit(prim.name, run, miss, [], [], object(), dispatch_registry, shard_fallback)


def check_deleted(name: str, args: Any) -> None:
    """Raise DonatedArgumentError if an operand is an array that was deleted or donated."""
    for i, x in enumerate(args):
        if type(x) is ArrayImpl and x.is_deleted():
            raise errors.DonatedArgumentError(
                f"{name}: operand {i} is an array {x.aval} that has been deleted, by delete() or "
                f"because it was donated, at {source.summarize(source.user_frame())}; it may not "
                "be used again; use the result of the call that it was donated to.") from None


def shard_fallback(*args: Any) -> Any:
    """C++ asks for an argument that it cannot place itself; programs of one device never do."""
    return argument_array(args[0])


def wrap_keys(outs: list[Any], avals: list[Any]) -> list[Any]:
    """Result arrays: of extended dtypes in the class of the dtype, of float0 as NumPy arrays."""
    return [_wrap(x, a.dtype) if hasattr(a, "dtype") else x for x, a in zip(outs, avals)]


def _wrap(x: Any, dtype: Any) -> Any:
    if isinstance(dtype, dtypes.ExtendedDType):
        return dtype.wrap(x)
    return np.zeros(x.shape, dtype) if dtypes.is_float0(dtype) else x


_by_params: Memo = Memo(16384)
_applied: Memo = Memo(1024)


class EvalTrace(Trace):
    """Compiles (on the first call) and runs."""

    __slots__ = ()

    def process(self, prim: Primitive, args: tuple, params: dict[str, Any]) -> Any:
        for a in args:
            if type(a) is not ArrayImpl:
                args = tuple(map(argument_array, args))
                break
        if params:
            bodies = () if prim.programs == () else prim.bodies(params)
            cache = bodies[0].cache if bodies else _by_params
            key = (prim, *params.items())
        else:
            cache, key = _by_params, prim
        call = cache.get(key)
        if call is None:
            if prim.impl is not None:
                return prim.impl(*args, **params)
            call = cache[key] = _eager(prim, params)
        try:
            out = call(*args)
        except (ValueError, lib.XlaRuntimeError):
            check_deleted(prim.name, args)
            raise
        if debug_nans.value or debug_infs.value:
            check_nans(prim.name, out if prim.multiple_results else [out])
        return out

    def process_custom(self, prim: Any, fun: Callable, rules: Any, args: tuple,
                       params: dict[str, Any]) -> Any:
        return fun(*args)


def apply_primitive(prim: Any, *args: Any, **params: Any) -> Any:
    """Compile the operation and run it: `impl` of a primitive that has a lowering rule."""
    key = (prim, tuple([(name, bit_key(value)) for name, value in params.items()]))
    call = _applied.get(key)
    if call is None:
        call = _applied[key] = _eager(prim, params)
    return call(*map(argument_array, args))


def check_nans(name: str, outs: Any) -> None:
    """Raise FloatingPointError if a result has a NaN (or an infinity, if so configured)."""
    nans, infs = debug_nans.value, debug_infs.value
    for x in outs:
        if type(x) is not ArrayImpl or not dtypes.is_inexact(x.dtype) or not (nans or infs):
            continue
        value = lib.to_numpy(x)
        if nans and np.isnan(value).any():
            raise FloatingPointError(f"{name}: the result {x.aval} has a NaN, and debug_nans is "
                                     "on; look at the operands at this line.")
        if infs and np.isinf(value).any():
            raise FloatingPointError(f"{name}: the result {x.aval} has an infinity, and debug_infs "
                                     "is on; look at the operands at this line.")


BASE = EvalTrace()
install_base_trace(BASE)
