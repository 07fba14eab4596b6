"""Evaluation: the base trace, which compiles each operation once and runs it.

An operation with given params has one C++ pjit object; it finds the executable for the operands'
types by itself, so an eager call costs one dict hit above C++.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..base import lib
from ..base.util import Memo, bit_key
from ..core.primitive import Primitive
from ..core.staging import stage
from ..core.trace import Trace, install_base_trace, typeof
from ..types.avals import ShapeDtypeStruct
from ..types.sharding import NamedSharding, device_tuple
from ..types.tree_registry import dispatch_registry
from . import devices
from .array import stored
from .compile import Placement, compile_program
from .eager import argument_array, check_deleted, run_program, shard_fallback

__all__ = ["BASE", "EvalTrace", "apply_primitive", "memory_of", "placement_of", "sharding_of"]

ArrayImpl = lib.ArrayImpl


def sharding_of(x: Any) -> Any:
    """Where an argument must stay: its sharding, or None if it may go anywhere."""
    x = stored(x)
    if type(x) is ArrayImpl:
        return x._sharding if x._committed else None
    return x.sharding if type(x) is ShapeDtypeStruct else None


def memory_of(x: Any) -> str | None:
    """The kind of memory that an argument is in, None for its device's own."""
    x = stored(x)
    sharding = x.sharding if type(x) in (ArrayImpl, ShapeDtypeStruct) else None
    kind = None if sharding is None else sharding._memory_kind
    return None if kind is None or kind == sharding.default_memory_kind else kind


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

        closed = stage(program, avals)
        executable = compile_program(closed, prim.name, placement)
        leaves = list(map(stored, values))
        outs = run_program(executable, leaves, prim.name, closed if prim.programs != () else None)
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
            return call(*args)
        except (ValueError, lib.XlaRuntimeError):
            check_deleted(prim.name, args)
            raise

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


BASE = EvalTrace()
install_base_trace(BASE)
