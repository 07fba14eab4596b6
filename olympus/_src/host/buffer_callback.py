"""buffer_callback: Python functions that write the results of a program into its buffers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NoReturn

import numpy as np

from ..base import lib
from ..base.source import api_boundary, filter_traceback
from ..base.typing import Array, IrValue, Params, PyTree
from ..base.util import ByKey, name_of
from ..control.bodies import check_callable, flatten
from ..core.effects import Effect, IOEffect
from ..core.primitive import Axis, Builder, Tangent
from ..lax.convert import convert_element_type
from ..lowering.attributes import value_attr
from ..runtime.eager import operation_call
from ..types import dtypes
from ..types.avals import Aval, ShapedArray, physical_aval
from ..types.tree import tree_flatten, tree_unflatten
from ..types.tree_registry import PyTreeDef
from .callbacks import VMAP_METHODS, HostCall, call_elements
from .ffi import Aliases, alias_pairs, promised_avals, read_aliases

Buffer, ExecutionContext, ExecutionStage = lib.Buffer, lib.ExecutionContext, lib.ExecutionStage


class BufferCallbackEffect(IOEffect):
    """A callback on buffers, which has side effects, runs."""

    __slots__ = ()
    name = "BufferCallback"


_effect = BufferCallbackEffect()


class FlatBufferCallback(ByKey):
    """A user's function as one of flat buffers, operands before results; equal if function and
    structures are."""

    #: `programs` belong to calls outside of programs, by params: they go with the function.
    __slots__ = ("callback_func", "in_tree", "out_tree", "programs")

    def __init__(self, callback_func: Callable[..., None], in_tree: PyTreeDef, out_tree: PyTreeDef
                 ) -> None:
        self.callback_func, self.in_tree, self.out_tree = callback_func, in_tree, out_tree
        self.programs: dict[Hashable, Callable[..., list[Array]]] = {}

    def _key(self) -> tuple:
        return self.callback_func, self.in_tree, self.out_tree

    def __repr__(self) -> str:
        return f"FlatBufferCallback({name_of(self.callback_func)})"

    def host(self) -> Callable[..., tuple[()]]:
        """The function that XLA calls. It holds no programs, which would hold it."""
        fun, in_tree, out_tree = self.callback_func, self.in_tree, self.out_tree

        def call(context: object, *buffers: object) -> tuple[()]:
            args, kwargs = tree_unflatten(in_tree, buffers[:in_tree.num_leaves])
            returned: object = fun(context, tree_unflatten(out_tree, buffers[in_tree.num_leaves:]),
                                   *args, **kwargs)
            if returned is not None:
                raise ValueError(
                    f"buffer_callback: {name_of(fun)} returned {returned!r:.60}; buffer_callback "
                    "callback must not return any values; write results into the buffers that are "
                    "its second argument.")
            return ()

        return call


class BufferCallback(HostCall):
    """params: callback, result_avals, vmap_method, has_side_effect, input_output_aliases,
    command_buffer_compatible."""

    def effects(self, avals: Sequence[ShapedArray], params: Params) -> frozenset[Effect]:
        return frozenset((_effect,) if params["has_side_effect"] else ())

    def impl(self, *args: Array, callback: FlatBufferCallback, **params: Hashable) -> list[Array]:
        programs, key = callback.programs, (*params.items(),)
        if key not in programs:
            programs[key] = operation_call(self, {"callback": callback, **params})
        return programs[key](*args)

    def emit(self, b: Builder, xs: Sequence[IrValue], params: Params, has_side_effect: bool
             ) -> list[IrValue]:
        target = lib.buffer_callback_target(b.platform, params["command_buffer_compatible"])
        if target is None:
            raise ValueError(f"buffer_callback: lowered for {b.platform}; `buffer_callback` not "
                             f"supported on {b.platform} backend; cpu or gpu is required.")
        # The list goes with the executable, as other callbacks' do.
        hosts = b.module.host_callbacks
        hosts.append(lib.HostFunction(params["callback"].host()))
        over, types = dict(params["input_output_aliases"]), [b.type(a) for a in b.avals_out]
        ins, outs = [[range(physical_aval(a).ndim)[::-1] for a in avals]
                     for avals in (b.avals_in, b.avals_out)]
        return b.custom_call(
            target, xs, types, {"has_side_effect": value_attr(has_side_effect)},
            config={"index": np.uint64(len(hosts) - 1)}, layouts=(ins, outs),
            aliases=[over.get(i) for i in range(len(xs))] if over else None)

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Tangent], **params: Hashable
            ) -> NoReturn:
        raise ValueError("buffer_callback: Buffer callbacks do not support JVP: Python code has no "
                         "derivative; wrap the call in a function with custom_jvp or custom_vjp.")

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], *,
             vmap_method: str | None, result_avals: Sequence[ShapedArray],
             input_output_aliases: Aliases, **params: Hashable
             ) -> tuple[Sequence[Array], Sequence[int | None]]:
        def call(avals: Sequence[ShapedArray]) -> Callable[..., list[Array]]:
            return lambda *xs: self.bind(*xs, result_avals=avals, vmap_method=vmap_method,
                                         input_output_aliases=input_output_aliases, **params)

        wide = tuple([a.with_axis(0, axis.size, axis.mesh_axis) for a in result_avals])
        outs = call_elements(self, axis.size, args, dims, vmap_method, call(result_avals),
                             call(wide), {i for i, _ in input_output_aliases})
        return outs, [0] * len(outs)


buffer_callback_p = BufferCallback("buffer_callback")
# XLA packs elements of less than a byte, but describes its buffers as one byte an element: a
# callback would write beyond their ends. The wider types have all values of the packed ones.
_UNPACKED = {dtypes.as_dtype(name): dtypes.as_dtype(wide) for name, wide in (
    ("int2", "int8"), ("int4", "int8"), ("uint2", "uint8"), ("uint4", "uint8"),
    ("float4_e2m1fn", "float8_e4m3fn"))}
_METHODS = (*VMAP_METHODS, "legacy_vectorized")


@api_boundary
def buffer_callback(callback: Callable[..., None], result_shape_dtypes: PyTree, *,
                    has_side_effect: bool = False, vmap_method: str | None = None,
                    input_output_aliases: dict[int, int] | None = None,
                    command_buffer_compatible: bool = False) -> Callable[..., PyTree]:
    """A function of arrays that calls Python with the program's own buffers, without a copy.

    Args:
      callback: called as `callback(ctx, out, *args, **kwargs)`: an `ExecutionContext` (the stage,
        and a GPU's stream), `Buffer`s to write the results into, as `result_shape_dtypes` has them,
        and the arguments as buffers. `numpy.asarray` views a buffer on the CPU,
        `__cuda_array_interface__` describes one on a GPU, DLPack both. Never write to
        arguments: they may be arrays of the caller's, although NumPy's views permit it. No view
        may outlive the callback, which returns None. Elements of 2 or 4 bits have 8 in buffers:
        int4 arrives as int8, float4_e2m1fn as float8_e4m3fn.
      result_shape_dtypes: pytree of objects with shape and dtype.
      has_side_effect: whether it is called although nothing reads its results.
      vmap_method: as for `ffi_call`.
      input_output_aliases: from the number of a flat operand to the number of the flat result that
        takes its buffer.
      command_buffer_compatible: whether a GPU may record the work that the callback starts, and
        repeat the recorded work without another call.

    Returns:
      A function of pytrees of arrays, as the callback takes them, that returns a pytree of arrays.

    With several devices each calls it with whole arrays, in `shard_map` with its own parts.

    >>> import numpy as np
    >>> def add_one(ctx, out, x):
    ...     np.add(np.asarray(x), 1, out=np.asarray(out))
    >>> x = onp.arange(3)
    >>> f = buffer_callback.buffer_callback(add_one, olympus.ShapeDtypeStruct((3,), x.dtype))
    >>> print(f(x), olympus.jit(f)(x))
    [1 2 3] [1 2 3]
    """
    check_callable("buffer_callback", callback=callback)
    if vmap_method is not None and vmap_method not in _METHODS:
        raise ValueError("buffer_callback: vmap_method must be one of the allowed methods "
                         f"{[*_METHODS, None]}, but got: {vmap_method}")
    pairs = alias_pairs("buffer_callback", input_output_aliases)
    leaves, out_tree = tree_flatten(result_shape_dtypes)
    promised: Any = promised_avals("buffer_callback", leaves)
    unpacked = tuple([a.update(dtype=_UNPACKED.get(a.dtype, a.dtype)) for a in promised])
    known: dict[PyTreeDef, FlatBufferCallback] = {}

    def call(*args: PyTree, **kwargs: PyTree) -> PyTree:
        try:
            flat, avals, in_tree = flatten("buffer_callback", (args, kwargs))
            passed: Sequence[Aval] = avals
            aliases = read_aliases("buffer_callback", pairs, passed, promised)
            if in_tree not in known:
                known[in_tree] = FlatBufferCallback(callback, in_tree, out_tree)
            operands = [convert_element_type(x, _UNPACKED[a.dtype]) if a.dtype in _UNPACKED else x
                        for x, a in zip(flat, avals, strict=True)]
            outs = buffer_callback_p.bind(
                *operands, callback=known[in_tree], result_avals=unpacked, vmap_method=vmap_method,
                has_side_effect=bool(has_side_effect), input_output_aliases=aliases,
                command_buffer_compatible=bool(command_buffer_compatible))
            return tree_unflatten(out_tree, [
                convert_element_type(y, a.dtype) if a.dtype in _UNPACKED else y
                for y, a in zip(outs, promised, strict=True)])
        except Exception as error:
            filter_traceback(error)
            raise

    return call
