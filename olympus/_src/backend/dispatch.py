"""Evaluation: the base trace, which compiles each operation once and runs it.

An operation with given params has one C++ pjit object; it finds the executable for the operands'
types by itself, so an eager call costs one dict hit above C++.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base import lib
from ..base.config import debug_infs, debug_nans
from ..base.util import Memo, bit_key
from ..core.primitive import Primitive
from ..core.staging import stage
from ..core.trace import Trace, install_base_trace, typeof
from ..types import dtypes
from ..types.avals import ShapeDtypeStruct
from ..types.sharding import NamedSharding, device_tuple
from ..types.tree_registry import dispatch_registry
from . import devices
from .array import stored
from .compile import Placement, compile_program
from .eager import argument_array, check_deleted, shard_fallback, wrap_results

__all__ = ["BASE", "EvalTrace", "apply_primitive", "check_nans", "placement_of", "sharding_of"]

ArrayImpl = lib.ArrayImpl


def sharding_of(x: Any) -> Any:
    """Where an argument must stay: its sharding, or None if it may go anywhere."""
    x = stored(x)
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
        outs = wrap_results(executable(leaves), executable.out_avals)
        result = outs if several else outs[0]
        return result, executable.fastpath(dispatch_registry.flatten(result)[1], leaves), False

    return lib.pjit(prim.name, run, miss, [], [], object(), dispatch_registry, shard_fallback)


_programs: Memo = Memo(16384)


class EvalTrace(Trace):
    """Compiles (on the first call) and runs."""

    __slots__ = ()

    def process(self, prim: Primitive, args: tuple, params: dict[str, Any]) -> Any:
        for a in args:
            if type(a) is not ArrayImpl:
                args = tuple(map(argument_array, args))
                break
        if prim.impl is not None:
            return prim.impl(*args, **params)
        if params:
            bodies = () if prim.programs == () else prim.bodies(params)
            cache = bodies[0].cache if bodies else _programs
            key = (prim, bit_key(tuple(params.items()))) if prim.open else (prim, *params.items())
        else:
            cache, key = _programs, prim
        call = cache.get(key)
        if call is None:
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
    key = prim, bit_key(tuple(params.items()))
    call = _programs.get(key)
    if call is None:
        call = _programs[key] = _eager(prim, params)
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
