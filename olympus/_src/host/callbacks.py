"""Calls from programs into Python: pure_callback, io_callback and debug.callback.

Each is a primitive whose params hold the host function on flat NumPy arrays. Evaluated outside any
transformation it is called directly; in a compiled program it is a custom call that names the
function by its position in the module's list.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, NoReturn

import numpy as np

from ..base import lib
from ..base.docstrings import described_like
from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, IrType, IrValue, Params, PyTree
from ..base.util import ByKey, name_of
from ..control.bodies import check_callable, flatten, structure_error
from ..control.elements import map_mapped, unrolled
from ..core import effects, reuse, tags
from ..core.primitive import Axis, Builder, Cotangent, Primitive, Tangent
from ..core.trace import typeof, valid_olympustype
from ..devices import devices
from ..devices.array import stored
from ..interpreters.batching import to_axis
from ..lax.shape import expand_dims
from ..runtime.eager import argument_array
from ..types import dtypes
from ..types.avals import Aval, ShapedArray, make_aval, physical_aval
from ..types.sharding import PartitionSpec, ShardingLike
from ..types.tree import tree_flatten, tree_leaves, tree_map, tree_unflatten
from ..types.tree_registry import PyTreeDef


class FlatCallback(ByKey):
    """A user's function as one of flat NumPy arrays, which it gets as arrays of the CPU; equal if
    function and structure are."""

    __slots__ = ("callback_func", "in_tree", "static")

    def __init__(self, callback_func: Callable[..., PyTree], in_tree: PyTreeDef,
                 static: tuple[tuple[int, object], ...] = ()) -> None:
        self.callback_func, self.in_tree, self.static = callback_func, in_tree, static

    def _key(self) -> tuple:
        # By identity: static arguments are any objects, hashable or not; `static` keeps them alive.
        return (self.callback_func, self.in_tree, tuple((i, id(x)) for i, x in self.static))

    def __repr__(self) -> str:
        return f"FlatCallback({name_of(self.callback_func)})"

    def __call__(self, *arrays: object) -> PyTree:
        # On the CPU: the program that calls may hold the other device until this returns.
        cpu = devices.local_devices(backend="cpu")[0]
        leaves: list[object] = [lib.device_put(make_aval(x.shape, x.dtype), x, cpu, committed=False)
                  for x in map(np.asarray, arrays)]
        # In ascending order: each insertion finds its final place.
        for i, x in self.static:
            leaves.insert(i, x)
        args, kwargs = tree_unflatten(self.in_tree, leaves)
        return self.callback_func(*args, **kwargs)


class HostCall(Primitive, abstract=True):
    """Calls `params["callback"]` with the operands as NumPy arrays."""

    multiple_results = foreign = True
    memory = staticmethod(tags.in_memory_inferred)

    result_avals = Primitive.inferred   # not memoised: the callback would be kept alive

    def infer(self, *avals: ShapedArray, result_avals: Sequence[ShapedArray] = (),
              **params: Hashable) -> list[ShapedArray]:
        return list(result_avals)

    def impl(self, *args: PyTree, **params: Hashable) -> object:
        """Call at once: a compiled program would be kept, and the callback with it."""
        # Programs that were started before may still have ordered callbacks to make.
        if any(e.ordered for e in self.effects((), params)):
            effects.wait_for_ordered()
        values = [lib.to_numpy(stored(a)) for a in args]    # keys as their data
        try:
            out = self.host(params)(*values)
        except Exception as error:      # the class that a compiled program would raise
            raise lib.runtime_error(error) from error.__cause__
        return list(map(argument_array, out))

    def host(self, params: Params) -> Callable[..., tuple[np.ndarray, ...]]:
        """The function of NumPy arrays that runs on the host, its results checked."""
        name, callback, avals = self.name, params["callback"], params.get("result_avals", ())

        def call(*arrays: object) -> tuple[np.ndarray, ...]:
            return checked_results(name, callback, avals, callback(*arrays))

        return call

    def lower(self, b: Builder, *xs: IrValue, **params: Any) -> Sequence[IrValue]:
        effects, manual = self.effects((), params), b.module.places.manual

        def call(*xs: IrValue) -> list[IrValue]:
            return self.emit(b, xs, params, bool(effects))

        if not effects or manual is None or manual.all_manual:
            return call(*xs)
        # Among devices that differ only along XLA's axes of the mesh, the first makes the call.
        rest = [n for n in manual.mesh.axis_names if n not in manual.names]
        types = [b.type(a) for a in b.avals_out]
        return b.manual_computation(
            manual.mesh, rest, xs, [PartitionSpec()] * len(xs), [PartitionSpec()] * len(types),
            [x.type for x in xs], types, lambda *xs: _on_one(b, rest, lambda: call(*xs), types))

    def emit(self, b: Builder, xs: Sequence[IrValue], params: Params, has_side_effect: bool
             ) -> list[IrValue]:
        """Emit the call. Ordered ones pass a token from each to the next through the module."""
        out, token, _ = emit_python_callback(
            b, self.host(params), b.take_token() if b.ordered else None, xs, b.avals_in,
            b.avals_out, has_side_effect=has_side_effect, returns_token=b.ordered,
            partitioned=params.get("partitioned", False))
        if b.ordered:
            b.block.token = token
        return out

    def transpose(self, cts: Sequence[Tangent], *args: PyTree, **params: Hashable
                  ) -> Sequence[Cotangent]:
        raise ValueError(f"{self.name}: transposed; Python code has no transpose; wrap "
                         "the call in a function with custom_vjp.")


def emit_python_callback(ctx: Builder, callback: Callable[..., tuple[np.ndarray, ...]],
                         token: IrValue | None, operands: Sequence[IrValue],
                         operand_avals: Sequence[Aval], result_avals: Sequence[Aval], *,
                         has_side_effect: bool, returns_token: bool = True,
                         partitioned: bool = False, sharding: ShardingLike = None
                         ) -> tuple[list[IrValue], IrValue | None, None]:
    """Write a call of a Python function into the module that is being lowered.

    Args:
      ctx: the first argument of a lowering rule.
      callback: takes NumPy arrays and returns a tuple of them.
      token: the token of the ordered effects before it, or None.
      operands, operand_avals, result_avals: MLIR values, and types.
      has_side_effect: whether it must be called even if nothing reads its results.
      returns_token: whether a token is wanted, for the ordered effects behind it.
      partitioned: on several devices, each makes the call with its parts of the operands, if the
        call has no results. Otherwise, and with a token, one makes it with the whole operands.
      sharding: accepted, without effect.

    Returns:
      The results, the token or None, and None: the module keeps the function alive.

    >>> import numpy as np
    >>> from olympus.extend.core import Primitive
    >>> def lower(ctx, x):
    ...     outs, _, _ = mlir.emit_python_callback(
    ...         ctx, lambda x: (np.flip(x),), None, [x], ctx.avals_in, ctx.avals_out,
    ...         has_side_effect=False, returns_token=False)
    ...     return outs
    >>> p = Primitive("flipped")
    >>> _ = p.def_abstract_eval(lambda x: x)
    >>> mlir.register_lowering(p, lower)
    >>> print(olympus.jit(p.bind)(np.arange(3)))
    [2 1 0]
    """
    if partitioned and result_avals:
        raise ValueError("emit_python_callback: Partitioned callback not supported with return "
                         f"values: {len(result_avals)} given; pass partitioned=False.")
    if ctx.platform == "tpu":
        if partitioned:
            raise NotImplementedError(
                "emit_python_callback: partitioned=True given on tpu, where a program sends whole "
                "arrays to the host; partitioned=False is required.")
        out, token = _by_transfers(ctx, callback, token, operands, operand_avals, result_avals)
        return out, token if returns_token else None, None
    # A token is an operand and a result of the call, also for Python.
    host = lib.HostFunction(callback if token is None else _pass_token(callback))
    # The list goes with the executable, which keeps the functions alive; the call names its place.
    index = len(ctx.module.host_callbacks)
    ctx.module.host_callbacks.append(host)
    attributes = {"backend_config": ctx.attr(f"{{index = {index} : ui64}}"),
                  "has_side_effect": ctx.attr("true" if has_side_effect else "false")}
    types = [ctx.type(a) for a in result_avals]
    each = partitioned and token is None
    target = lib.python_callback_target(ctx.platform, each)
    # Without layouts XLA has results in the order that their readers want: `qr` reads columns.
    rows = [[range(physical_aval(a).ndim)[::-1] for a in avals]
            for avals in (operand_avals, result_avals)]
    if token is None:
        return ctx.custom_call(target, operands, types, attributes, on_host=True,
                               layouts=(rows[0], rows[1])), None, None
    token, *out = ctx.custom_call(target, [token, *operands], [token.type, *types], attributes,
                                  on_host=True, layouts=(((), *rows[0]), ((), *rows[1])))
    return out, token if returns_token else None, None


def _by_transfers(b: Builder, callback: Callable[..., tuple[np.ndarray, ...]],
                  token: IrValue | None, operands: Sequence[IrValue],
                  operand_avals: Sequence[Aval], result_avals: Sequence[Aval]
                  ) -> tuple[list[IrValue], IrValue]:
    """A call by a program that cannot call Python: it sends operands to the host, and receives the
    results. At least one array each way: the first starts the call, the second ends it.
    """
    module, mark = b.module, make_aval((), dtypes.as_dtype("float32"))
    avals_in, avals_out = [[physical_aval(a) for a in avals]
                           for avals in (operand_avals, result_avals)]
    whole = [a for a in avals_out if 0 not in a.shape]      # empty arrays cannot be received
    sent, received = avals_in or [mark], whole or [mark]
    # Channel 1 belongs to collectives.
    start = 2 + sum(len(h.transfers.sent) + len(h.transfers.received)
                    for h in module.host_callbacks if h.transfers is not None)
    channels = range(start, start + len(sent) + len(received))

    def call(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        outs = callback(*(arrays if avals_in else ()))
        nonempty = [x for x, a in zip(outs, avals_out, strict=True) if 0 not in a.shape]
        return tuple(nonempty) if whole else (np.zeros((), np.float32),)

    # The function lives as long as the list, which goes with the executable.
    module.host_callbacks.append(lib.HostFunction(call, lib.Transfers(
        [(a.dtype, a.shape) for a in sent], [(a.dtype, a.shape) for a in received],
        channels[:len(sent)], channels[len(sent):])))

    def transfer(name: str, kind: int, channel: int, xs: Sequence[IrValue],
                 types: Sequence[IrType]) -> Sequence[IrValue]:
        op = b.ops(name, xs, {
            "channel_handle": b.attr(f"#stablehlo.channel_handle<handle = {channel}, "
                                     f"type = {kind}>"),
            "is_host_transfer": b.attr("true"),
            "mhlo.frontend_attributes": b.attr(
                '{_xla_host_transfer_handler_name = "pjrt_rendezvous", '
                f'_xla_host_transfer_rendezvous = "{channel}"}}')}, types)
        if module.places.manual is None:
            module.calls.host.append(op)
        return op.results

    token = token or b.new_token()
    for x, channel in zip(operands or [b.full(mark, 0)], channels, strict=False):
        (token,) = transfer("stablehlo.send", 2, channel, [x, token], [token.type])
    transferred = []
    for aval, channel in zip(received, channels[len(sent):], strict=True):
        x, token = transfer("stablehlo.recv", 3, channel, [token], [b.type(aval), token.type])
        transferred.append(x)
    answers = iter(transferred)
    return [b.full(a, 0) if 0 in a.shape else next(answers) for a in avals_out], token


def _on_one(b: Builder, names: Sequence[Hashable], call: Callable[[], list[IrValue]],
            types: Sequence[IrType]) -> list[IrValue]:
    """The results, on all devices along axes of a mesh, of a call that the first of them makes."""
    # The other devices give zeros, so the sum over all is the result of the first.
    def nothing() -> list[IrValue]:
        return [b.full(a, False) for a in b.avals_out]

    index = make_aval((), dtypes.as_dtype("int32"))
    positions = [b.position(name) for name in names]
    place = functools.reduce(lambda x, y: b.op("stablehlo.add", [x, y], None, index), positions)
    # The sum of positions is 0 on the first device only; any index but 0 takes the last branch.
    outs = b.case(place, [call, nothing], types)
    return [b.all_reduce("stablehlo.add", x, a, names)
            for x, a in zip(outs, map(physical_aval, b.avals_out), strict=True)]


def _pass_token(host: Callable[..., tuple]) -> Callable[..., tuple]:
    return lambda token, *arrays: (token, *host(*arrays))


def checked_results(what: str, callback: FlatCallback, avals: Sequence[ShapedArray], out: object
                    ) -> tuple[np.ndarray, ...]:
    """The callback's results as arrays of the promised types; TypeError if they differ."""
    results = []
    name = name_of(callback.callback_func)
    for i, (x, aval) in enumerate(zip(tree_leaves(out), avals, strict=True)):
        x = np.asarray(x)
        if x.shape != aval.shape or dtypes.canonicalize_dtype(x.dtype) != aval.dtype:
            own_aval = make_aval(x.shape, dtypes.canonicalize_dtype(x.dtype))
            raise TypeError(f"{what}: {name} returned {own_aval} as result {i}; {aval} was "
                            "promised by result_shape_dtypes; return that, or change the promise.")
        # Floats lose digits, as everywhere without x64; integers would change their value.
        narrow = x.astype(aval.dtype, copy=False)
        if x.dtype != narrow.dtype and x.dtype.kind in "iu" and (x != narrow).any():
            raise OverflowError(
                f"{what}: {name} returned {x.dtype} as result {i}, with values that {aval} does "
                "not hold; 32-bit numbers are required where 64-bit types are off; turn on "
                "olympus_enable_x64, or return others.")
        results.append(narrow)
    return tuple(results)


class PureCallback(HostCall):
    """params: callback, result_avals, sharding, vmap_method."""

    makes_nan = False

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], **params: Hashable
            ) -> NoReturn:
        raise ValueError("pure_callback: Pure callbacks do not support JVP: Python code has no "
                         "derivative; wrap the call in a function with custom_jvp or custom_vjp.")

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], *,
             vmap_method: str | None, result_avals: Sequence[ShapedArray], **params: Hashable
             ) -> tuple[Sequence[Array], Sequence[int | None]]:
        def call(avals: Sequence[ShapedArray]) -> Callable[..., list[Array]]:
            return lambda *xs: self.bind(*xs, result_avals=avals, vmap_method=vmap_method, **params)

        # One call for the batch has to return the leading axis.
        wide = tuple([a.update(shape=(axis.size, *a.shape)) for a in result_avals])
        outs = call_elements(self, axis.size, args, dims, vmap_method, call(result_avals),
                             call(wide))
        return outs, [0] * len(outs)


VMAP_METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all")


def call_elements(prim: Primitive, size: int, args: Sequence[Array], dims: Sequence[int | None],
                  vmap_method: str | None, one: Callable[..., list[Array]],
                  at_once: Callable[..., list[Array]], whole: Collection[int] = ()) -> list[Array]:
    """The results under vmap, mapped along axis 0, of a call that is opaque to XLA.

    Args:
      prim: the primitive of the call.
      size: how many elements there are.
      args, dims: the operands, and the axes along which they are mapped.
      vmap_method: as users give it.
      one: makes the call for one element.
      at_once: makes the call for all elements, with operands that have a leading axis.
      whole: operands whose leading axis has all elements, for each method.
    """
    if vmap_method in ("sequential", "sequential_unrolled"):
        return (map_mapped if vmap_method == "sequential" else unrolled)(one, size, args, dims)
    if vmap_method is None:
        raise ValueError(
            f"{prim.name}: vmap is only supported for the {prim.name} primitive when vmap_method "
            f"is one of {', '.join(VMAP_METHODS)}. Got vmap_method=None; pass 'sequential', which "
            "calls the function per element, or 'expand_dims' if it takes leading axes.")
    operands = []
    for i, (x, d) in enumerate(zip(args, dims, strict=True)):
        if d is not None or vmap_method == "broadcast_all" or i in whole:
            operands.append(to_axis(x, d, 0, size))
        else:
            operands.append(expand_dims(x, (0,)) if vmap_method == "expand_dims" else x)
    return at_once(*operands)


class IoCallback(HostCall):
    """params: callback, ordered, result_avals, sharding."""

    makes_nan = False

    def effects(self, avals: Sequence[ShapedArray], params: Params) -> frozenset[effects.Effect]:
        return frozenset((effects.ordered_io_effect if params["ordered"] else effects.io_effect,))

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], **params: Hashable
            ) -> NoReturn:
        raise ValueError("io_callback: IO callbacks do not support JVP: Python code has no "
                         "derivative; apply stop_gradient to its operands, or use custom_jvp.")

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], **params: Hashable
             ) -> tuple[Sequence[Array], Sequence[int | None]]:
        if params["ordered"]:
            raise ValueError("io_callback: Cannot `vmap` ordered IO callback: elements have no "
                             "order; use lax.map or lax.scan, or ordered=False.")
        out = map_mapped(lambda *xs: self.bind(*xs, **params), axis.size, args, dims)
        return out, [0] * len(out)


class DebugCallback(HostCall):
    """params: callback, ordered, partitioned. No results."""

    cells = staticmethod(reuse.read)    # printing is no use of a key
    transpose = None  # pyright: ignore[reportAssignmentType]

    def effects(self, avals: Sequence[ShapedArray], params: Params) -> frozenset[effects.Effect]:
        return frozenset((effects.ordered_debug_effect if params["ordered"]
                          else effects.debug_effect,))

    def host(self, params: Params) -> Callable[..., tuple[np.ndarray, ...]]:
        callback = params["callback"]

        def call(*arrays: object) -> tuple[np.ndarray, ...]:
            callback(*arrays)
            return ()

        return call

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], **params: Hashable
            ) -> tuple[list[Array], list[Tangent]]:
        # Called once, with the primal values: the user's function has no tangents.
        return self.bind(*primals, **params), []

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], **params: Hashable
             ) -> tuple[Sequence[Array], Sequence[int | None]]:
        map_mapped(lambda *xs: self.bind(*xs, **params), axis.size, args, dims)
        return [], []


pure_callback_p = PureCallback("pure_callback")
io_callback_p = IoCallback("io_callback")
debug_callback_p = DebugCallback("debug_callback")


def _results(what: str, result_shape_dtypes: PyTree
             ) -> tuple[tuple[ShapedArray, ...], PyTreeDef]:
    """Avals and structure of the promised results."""
    leaves, tree = tree_flatten(result_shape_dtypes)
    avals = []
    for x in leaves:
        if not hasattr(x, "shape") or not hasattr(x, "dtype"):
            raise TypeError(f"{what}: result_shape_dtypes has a leaf {x!r}; objects with shape and "
                            "dtype are required; use olympus.ShapeDtypeStruct.")
        avals.append(make_aval(tuple(x.shape), dtypes.canonicalize_dtype(x.dtype)))
    return tuple(avals), tree


class _Structured(ByKey):
    """A callback whose results must have as many leaves as a given structure."""

    __slots__ = ("what", "fun", "tree")

    def __init__(self, what: str, fun: Callable[..., PyTree], tree: PyTreeDef) -> None:
        self.what, self.fun, self.tree = what, fun, tree

    @property
    def __name__(self) -> str:
        return name_of(self.fun)

    # Each call makes a new function; calls of one user's function must have equal params.
    def _key(self) -> tuple:
        return self.fun, self.tree

    def __call__(self, *args: PyTree, **kwargs: PyTree) -> list[Array]:
        leaves, tree = tree_flatten(self.fun(*args, **kwargs))
        if tree.num_leaves != self.tree.num_leaves:
            raise structure_error(self.what, self.tree, tree,
                                  f"{name_of(self.fun)} returned another structure than "
                                  "result_shape_dtypes promises")
        return leaves


def _call(prim: HostCall, callback: Callable[..., PyTree], result_shape_dtypes: PyTree,
          args: tuple, kwargs: dict[str, PyTree], **params: Hashable) -> PyTree:
    check_callable(prim.name, callback=callback)
    leaves, _, in_tree = flatten(prim.name, (args, kwargs))
    avals, out_tree = _results(prim.name, result_shape_dtypes)
    flat = FlatCallback(_Structured(prim.name, callback, out_tree), in_tree)
    return tree_unflatten(out_tree, prim.bind(*leaves, callback=flat, result_avals=avals,
                                              sharding=params.pop("sharding"), **params))


@api_boundary
def pure_callback(callback: Callable[..., PyTree], result_shape_dtypes: PyTree, *args: PyTree,
                  sharding: ShardingLike = None, vmap_method: str | None = None, **kwargs: PyTree
                 ) -> PyTree:
    """Call a Python function without side effects from a program.

    It may run any number of times, or never if its result is not used.

    Args:
      callback: a function of pytrees of arrays.
      result_shape_dtypes: pytree of objects with shape and dtype; the callback returns one array
        for each, in any structure.
      *args, **kwargs: pytrees of arrays for the callback.
      vmap_method: under vmap, "sequential" and "sequential_unrolled" call it per element;
        "expand_dims" and "broadcast_all" call it once, with a leading axis of size 1 or repeated on
        arguments that are not mapped.

    Returns:
      A pytree of arrays as `result_shape_dtypes` say.

    >>> import numpy, olympus
    >>> f = olympus.jit(lambda x: olympus.pure_callback(lambda v: numpy.sqrt(v), x, x))
    >>> print(f(9.0))
    3.0
    """
    if vmap_method is not None and vmap_method not in VMAP_METHODS:
        raise ValueError("pure_callback: vmap_method must be one of the allowed methods "
                         f"{[*VMAP_METHODS, None]}, but got: {vmap_method}")
    return _call(pure_callback_p, callback, _as_structs(result_shape_dtypes), args, kwargs,
                 sharding=sharding, vmap_method=vmap_method)


@described_like(pure_callback)
@api_boundary
def io_callback(callback: Callable[..., PyTree], result_shape_dtypes: PyTree, *args: PyTree,
                sharding: ShardingLike = None, ordered: bool = False, **kwargs: PyTree) -> PyTree:
    """Call a Python function with side effects from a program, each time that it is reached.

    Args:
      ordered: keep the order of ordered callbacks within a program; not under vmap.

    >>> from olympus.experimental import io_callback
    >>> seen = []
    >>> def keep(v):
    ...     seen.append(float(v))
    ...     return v
    >>> olympus.jit(lambda x: io_callback(keep, x, x) + 1)(1.0), seen
    (Array(2., dtype=float32), [1.0])
    """
    return _call(io_callback_p, callback, _as_structs(result_shape_dtypes), args, kwargs,
                 sharding=sharding, ordered=ordered)


def _as_structs(tree: PyTree) -> PyTree:
    """Promised results; a Python scalar stands for its type."""
    return tree_map(lambda x: typeof(x) if not hasattr(x, "dtype") and isinstance(
        x, (bool, int, float, complex)) else x, tree)


@api_boundary
def debug_callback(callback: Callable[..., object] | None = None, *args: PyTree,
                   ordered: bool = False, partitioned: bool = False, **kwargs: PyTree
                   ) -> Callable[..., None] | None:
    """Call a Python function for its effect, also where derivatives are computed.

    Args:
      callback: a function of pytrees of arrays; its result is ignored. Arguments that are no
        arrays reach it as they are.
      ordered: keep the order of ordered callbacks within a program.
      partitioned: in a program of several devices, call it on each, with the parts that the device
        has (with `ordered` once, with the whole arrays).

    Returns:
      None; without `callback`, this function with the given options.

    >>> import olympus
    >>> f = olympus.jit(lambda x: olympus.debug.callback(lambda v: print("x is", v), x))
    >>> f(2.0); olympus.effects_barrier()
    x is 2.0
    """
    options = {"ordered": bool(ordered), "partitioned": bool(partitioned)}
    return with_options("debug.callback", _debug_callback, options, callback, args, kwargs)


def _debug_callback(options: dict[str, bool], callback: Callable[..., object], /, *args: PyTree,
                    **kwargs: PyTree) -> None:
    check_callable("debug.callback", callback=callback)
    flat, leaves = flat_callback(callback, args, kwargs)
    debug_callback_p.bind(*leaves, callback=flat, **options)


def with_options(what: str, fun: Callable[..., None], options: dict[str, bool], first: object,
                 args: tuple, kwargs: dict[str, PyTree]) -> Callable[..., None] | None:
    """Call `fun(options, first, *args, **kwargs)`; with options alone, return a function that does,
    and whose keyword arguments may have any name.
    """
    call = functools.partial(fun, options)
    if first is not None:
        return call(first, *args, **kwargs)
    if args or kwargs:
        raise TypeError(f"{what}: arguments {args} {kwargs} given without the first; that one is "
                        "required too, or options alone.")
    return call


def flat_callback(callback: Callable[..., PyTree], args: tuple, kwargs: dict[str, PyTree]
                  ) -> tuple[FlatCallback, list[ArrayLike]]:
    """The flat callback and its array operands; other arguments are part of the callback."""
    leaves, tree = tree_flatten((args, kwargs))
    static = tuple((i, x) for i, x in enumerate(leaves) if not valid_olympustype(x))
    return FlatCallback(callback, tree, static), [x for x in leaves if valid_olympustype(x)]
