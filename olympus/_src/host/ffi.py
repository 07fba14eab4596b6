"""Calls of foreign functions: handlers of XLA's FFI, in C++ or any language that can make one.

    ffi_call("rms_norm", out)(x, eps=…)  ─►  ffi_call_p  ─►  stablehlo.custom_call  ─►  the handler

A program may be traced and lowered without the target, for another machine say; `runtime.foreign`
looks for it before XLA compiles, and names a handler's refusal.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from ..base import lib
from ..base.docstrings import described_like
from ..base.source import api_boundary, filter_traceback
from ..base.typing import (
    Array, ArrayLike, DimSize, IrAttribute, IrOperation, IrType, IrValue, Params, PyTree,
)
from ..base.util import memoize
from ..core import tags
from ..core.effects import Effect, IOEffect
from ..core.ir import OlympusprEqn
from ..core.primitive import Axis, Builder, Cotangent, Primitive, Tangent
from ..core.trace import ctx, typeof, valid_olympustype
from ..lax.ffi_attributes import NO_ATTRIBUTES, Attributes
from ..lowering.attributes import keyed_attr, value_attr
from ..runtime.eager import BASE, check_deleted, operation_call
from ..types import dtypes
from ..types.avals import Aval, ShapedArray, abstract_token, make_aval, physical_aval
from ..types.layout import Layout
from ..types.shape import canonical_shape, definitely_equal
from .callbacks import VMAP_METHODS, call_elements

LayoutLike: TypeAlias = Sequence[int] | Layout | None
Order: TypeAlias = tuple[int, ...]      # the axes of an array, the innermost first
Aliases: TypeAlias = tuple[tuple[int, int], ...]        # (operand, result that takes its buffer)
_METHODS = (*VMAP_METHODS, "legacy_vectorized")
_STAGES = ("instantiate", "prepare", "initialize", "execute")
_ARRAYS = frozenset((lib.ArrayImpl,))
_NEWEST = 4     # the version of custom calls of XLA's typed FFI
_USUAL = {"attributes": NO_ATTRIBUTES, "custom_call_api_version": _NEWEST,
          "has_side_effect": False, "input_output_aliases": (), "legacy_backend_config": None,
          "num_batch_dims": 0, "vmap_method": None}


class FfiEffect(IOEffect):
    """A foreign function with side effects runs."""

    __slots__ = ()
    name = "FFI"


_effect = FfiEffect()


class FfiCall(Primitive):
    """params: target_name, result_avals, attributes, vmap_method, has_side_effect, input_layouts
    and output_layouts (orders), input_output_aliases, custom_call_api_version,
    legacy_backend_config, num_batch_dims: how many leading axes vmap has added."""

    multiple_results = True
    memory = staticmethod(tags.in_memory_inferred)

    def infer(self, *avals: Aval, result_avals: Sequence[Aval], **params: Hashable) -> list[Aval]:
        return list(result_avals)

    def effects(self, avals: Sequence[ShapedArray], params: Params) -> frozenset[Effect]:
        return frozenset((_effect,) if params["has_side_effect"] else ())

    def spread(self, operands: Sequence[tags.Operand], outs: Sequence[Aval], params: Params
               ) -> list[tags.Entries]:
        """Sharded by `result_shape_dtypes`, and along axes that vmap added like the operands."""
        added, entries_of_outs = range(params["num_batch_dims"]), []
        for a in params["result_avals"]:
            entries = list(a.sharding.spec.partitions) if isinstance(a, ShapedArray) else []
            for k in added[:len(entries)]:
                axes = [x.entries[k] for x in operands if k < len(x.shape)
                        and definitely_equal(x.shape[k], a.shape[k])]
                entries[k] = entries[k] or next(filter(None, axes), None)
            entries_of_outs.append(tuple(entries))
        return entries_of_outs

    def shown(self, eqn: OlympusprEqn) -> Params:
        """The params that differ from their default, without the types of results."""
        rows = {"input_layouts": _orders("ffi_call", "input", None, [v.aval for v in eqn.invars]),
                "output_layouts": _orders("ffi_call", "output", None, eqn.params["result_avals"])}
        usual = {**_USUAL, **rows, "result_avals": eqn.params["result_avals"]}
        return {k: v for k, v in eqn.params.items() if k not in usual or v != usual[k]}

    def lower(self, b: Builder, *xs: IrValue, target_name: str, attributes: Attributes,
              has_side_effect: bool, input_layouts: Sequence[Order],
              output_layouts: Sequence[Order], input_output_aliases: Aliases,
              custom_call_api_version: int, legacy_backend_config: str | None,
              num_batch_dims: int, **params: Hashable) -> Sequence[IrValue]:
        marks = _partitioned(b, num_batch_dims) if lib.is_batch_partitionable(target_name) else {}
        config: IrAttribute | None = None
        if custom_call_api_version >= _NEWEST:
            config = keyed_attr(attributes, attributes.values)
        elif legacy_backend_config is not None:
            config = value_attr(legacy_backend_config)
        return _emit(
            b, target_name, xs, config, attributes,
            (input_layouts, output_layouts), dict(input_output_aliases), has_side_effect,
            custom_call_api_version, marks)

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Tangent], **params: Hashable
            ) -> NoReturn:
        raise _without_derivative(params)

    def transpose(self, cts: Sequence[Tangent], *args: Array, **params: Hashable
                  ) -> Sequence[Cotangent]:
        raise _without_derivative(params)

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], *,
             vmap_method: str | None, result_avals: Sequence[Aval],
             input_layouts: Sequence[Order], output_layouts: Sequence[Order],
             input_output_aliases: Aliases, num_batch_dims: int, **params: Hashable
             ) -> tuple[Sequence[Array], Sequence[int | None]]:
        # Tokens have no axes.
        widened = [isinstance(a, ShapedArray) for a in result_avals]
        taken = [d is not None or vmap_method != "legacy_vectorized" and typeof(x)
                 is not abstract_token for x, d in zip(args, dims, strict=True)]
        wide = tuple([a.with_axis(0, axis.size, axis.mesh_axis) if isinstance(a, ShapedArray) else a
                      for a in result_avals])

        def call(avals: Sequence[Aval], ins: Sequence[Order], outs: Sequence[Order], added: int
                 ) -> Callable[..., list[Array]]:
            return lambda *xs: self.bind(
                *xs, result_avals=avals, input_layouts=ins, output_layouts=outs,
                num_batch_dims=added, vmap_method=vmap_method,
                input_output_aliases=input_output_aliases, **params)

        # An operand that gives its buffer to a result has all elements, like the result.
        outs = call_elements(
            self, axis.size, args, dims, vmap_method,
            call(result_avals, input_layouts, output_layouts, num_batch_dims),
            call(wide, _within(input_layouts, taken), _within(output_layouts, widened),
                 num_batch_dims + 1), {i for i, _ in input_output_aliases})
        return outs, [0 if w else None for w in widened]


ffi_call_p = FfiCall("ffi_call")


def _within(orders: Sequence[Order], widened: Sequence[bool]) -> tuple[Order, ...]:
    """The orders of arrays with a new leading axis, the slowest, where they get one."""
    return tuple([(*[axis + 1 for axis in order], 0) if w else order
                  for order, w in zip(orders, widened, strict=True)])


def _partitioned(b: Builder, added: int) -> dict[str, IrAttribute]:
    """The attribute by which XLA may cut a call along those axes of vmap that all operands and
    results have.
    """
    operands, results = [list(map(_shape, avals)) for avals in (b.avals_in, b.avals_out)]
    shapes = [*operands, *results]
    count = 0
    while count < added and all(count < len(shape) and definitely_equal(
            shape[count], shapes[0][count]) for shape in shapes):
        count += 1
    return b.batch_marks(operands, results, count) if count else {}


def _without_derivative(params: Params) -> ValueError:
    target = params["target_name"]
    return ValueError(f"ffi_call: The FFI call to `{target}` cannot be differentiated: its code "
                      "has no derivative that Olympus knows; give one with olympus.custom_jvp or "
                      "olympus.custom_vjp, by a second target for example.")


def _emit(b: Builder, target: str, xs: Sequence[IrValue], config: IrAttribute | None,
          attributes: Attributes, layouts: tuple[Sequence[Order], Sequence[Order]] | None,
          aliases: Mapping[int, int], has_side_effect: bool, api_version: int,
          more: Mapping[str, IrAttribute], types: Sequence[IrType] | None = None
          ) -> list[IrValue]:
    """Emit the custom call of a foreign function, and note that the module needs its target."""
    b.module.calls.note(target, lib.TYPED if api_version >= _NEWEST else lib.UNTYPED,
                        attributes.kinds, b.avals_in, b.avals_out, b.source)
    extra = {"api_version": b.attr(f"{api_version} : i32"),
             "has_side_effect": b.attr("true" if has_side_effect else "false"), **more}
    if config is not None:
        extra["backend_config"] = config
    return b.custom_call(
        target, xs, [b.type(a) for a in b.avals_out] if types is None else types, extra,
        layouts=layouts, aliases=[aliases.get(i) for i in range(len(xs))] if aliases else None,
        shapes=list(map(_shape, b.avals_out)) if types is None else ())


def _shape(aval: Aval) -> tuple[DimSize, ...]:
    """The shape of a value's array on the device; of a token ()."""
    return physical_aval(aval).shape if isinstance(aval, ShapedArray) else ()


# Checks before anything is recorded --------------------------------------------------------------


def promised_avals(what: str, results: Sequence[object]) -> tuple[Aval, ...]:
    """The types of promised results, with the dtypes that are asked for, x64 or not."""
    avals: list[Aval] = []
    for i, x in enumerate(results):
        if x is abstract_token:
            avals.append(abstract_token)
            continue
        result: Any = x
        if not hasattr(result, "shape") or not hasattr(result, "dtype"):
            raise ValueError(f"{what}: All elements of result_shape_dtypes must have 'shape' and "
                             f"'dtype' attributes. Got {x!r} at position {i}; pass an olympus."
                             "ShapeDtypeStruct for each result.")
        dtype = dtypes.as_dtype(result.dtype)
        # Types of arrays and traced values have a sharding.
        aval = getattr(x, "aval", x) if not isinstance(x, ShapedArray) else x
        if not isinstance(aval, ShapedArray):
            try:
                shape = tuple(result.shape)
            except TypeError:
                raise TypeError(f"{what}: result {i} of shape {result.shape!r:.60} given; a tuple "
                                "of ints is required, (3,) for 3 elements.") from None
            aval = make_aval(canonical_shape(shape), dtype,
                             bool(getattr(result, "weak_type", False)),
                             getattr(result, "sharding", None))
        avals.append(aval.update(dtype=dtype, vma=frozenset()))     # they vary as the operands do
    return tuple(avals)


def alias_pairs(what: str, pairs: Mapping[int, int] | None) -> Aliases:
    """`input_output_aliases` as pairs in order; TypeError unless it is a dict of ints."""
    if pairs is None:
        return ()
    if not isinstance(pairs, Mapping) or not all(
            isinstance(n, (int, np.integer)) and not isinstance(n, bool)
            for pair in pairs.items() for n in pair):
        raise TypeError(f"{what}: input_output_aliases={pairs!r:.60} given; a dict from places of "
                        "operands to places of results, both ints, is required: {0: 0}.")
    return tuple(sorted([(int(i), int(o)) for i, o in pairs.items()]))


def read_aliases(what: str, pairs: Aliases, operands: Sequence[Aval], results: Sequence[Aval]
                 ) -> Aliases:
    """The pairs of `alias_pairs`; ValueError unless types agree, one to one."""
    aliases: dict[int, int] = {}
    for i, o in pairs:
        said = f"{what}: input_output_aliases contains the mapping '{i}:{o}' "
        for kind, place, count in (("input", i, len(operands)), ("output", o, len(results))):
            if not 0 <= place < count:
                raise ValueError(f"{said}with {kind} index {place} outside the range [0, {count})"
                                 "; count flat operands and results from 0.")
        have, want = operands[i], results[o]
        alike = isinstance(have, ShapedArray) and isinstance(want, ShapedArray) and (
            have.dtype == want.dtype and definitely_equal(have.shape, want.shape))
        if not alike:
            raise ValueError(f"{said}referring to an input with abstract value {have} and an "
                             f"output with a different abstract value {want}; one shape and dtype "
                             "is required, as they share a buffer.")
        if o in aliases.values():
            raise ValueError(f"{said}and another one to output {o}; one input for each output is "
                             "required, as each has one buffer.")
        aliases[i] = o
    return tuple(aliases.items())


def _orders(what: str, kind: str, layouts: Sequence[LayoutLike] | None, avals: Sequence[Aval],
            from_innermost: bool = False) -> tuple[Order, ...]:
    """The order of the axes of each array; None is by rows."""
    if layouts is None:
        layouts = [None] * len(avals)
    if len(layouts) != len(avals):
        raise ValueError(f"{what}: The number of {kind}s ({len(avals)}) must equal the number of "
                         f"{kind} layouts ({len(layouts)}); None stands for one by rows.")
    orders = []
    for i, (layout, aval) in enumerate(zip(layouts, avals, strict=True)):
        axes = range(len(_shape(aval)))
        said = f"{what}: the layout {layout} of {kind} {i}, {aval}, given; "
        if isinstance(layout, Layout):
            if layout.tiling is not None:
                raise ValueError(f"{said}The FFI does not support layouts with tiling; leave "
                                 "tiling out.")
            order = layout.major_to_minor[::-1]
        elif layout is None:
            order = tuple(reversed(axes))
        elif isinstance(layout, (list, tuple)):
            order = tuple(layout) if from_innermost else tuple(layout[::-1])
        else:
            raise TypeError(f"{said}a Layout, a sequence of axes, or None is required.")
        if set(order) != set(axes) or len(order) != len(axes):
            raise ValueError(f"{said}a permutation of its {len(axes)} axes is required, the "
                             f"{'innermost' if from_innermost else 'outermost'} first.")
        orders.append(tuple(map(int, order)))
    return tuple(orders)


class _Promised(NamedTuple):
    """The arguments of `ffi_call`."""

    target_name: str
    result_avals: tuple[Aval, ...]
    has_side_effect: bool
    vmap_method: str | None
    input_layouts: tuple[LayoutLike, ...] | None
    output_layouts: tuple[LayoutLike, ...] | None
    input_output_aliases: Aliases
    custom_call_api_version: int
    legacy_backend_config: str | None


class _Promise:
    """Arguments of `ffi_call` with their hash."""

    __slots__ = ("given", "hash")

    def __init__(self, promised: _Promised) -> None:
        self.given, self.hash = promised, hash(promised)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return self is other or isinstance(other, _Promise) and self.given == other.given


@memoize(1024)
def _params(made: _Promise, avals: tuple[Aval, ...], attributes: Attributes
            ) -> tuple[Params, Callable[..., list[Array]]]:
    """The params of a call on operands of these types, and the program of an eager call."""
    promise = made.given
    if attributes.values and promise.custom_call_api_version < _NEWEST:
        raise ValueError("ffi_call: The use of ffi_call attributes requires a custom call API "
                         f"version of at least {_NEWEST}; got api_version="
                         f"{promise.custom_call_api_version}; pass legacy_backend_config.")
    outs = promise.result_avals
    ins = _orders("ffi_call", "input", promise.input_layouts, avals)
    orders = _orders("ffi_call", "output", promise.output_layouts, outs)
    aliases = read_aliases("ffi_call", promise.input_output_aliases, avals, outs)
    for i, o in aliases:
        if ins[i] != orders[o]:
            raise ValueError(
                f"ffi_call: input_output_aliases contains the mapping '{i}:{o}' referring to an "
                f"input with layout {ins[i][::-1]} and an output with a different layout "
                f"{orders[o][::-1]}; one layout is required, as they share a buffer.")
    params = {**promise._asdict(), "input_layouts": ins, "output_layouts": orders,
              "input_output_aliases": aliases, "attributes": attributes, "num_batch_dims": 0}
    return params, operation_call(ffi_call_p, params)


def _hashable(what: str, layouts: Sequence[LayoutLike] | None) -> tuple[LayoutLike, ...] | None:
    if layouts is None:
        return None
    if not isinstance(layouts, (list, tuple)):
        raise TypeError(f"ffi_call: {what}={layouts!r:.60} given; a list is required, of a layout "
                        "or None for each array.")
    for x in layouts:
        if not (x is None or isinstance(x, Layout) or isinstance(x, (list, tuple)) and all(
                isinstance(axis, (int, np.integer)) for axis in x)):
            raise TypeError(f"ffi_call: {what}={layouts!r:.60} given; for each array a Layout, a "
                            f"sequence of axes, or None is required, not {x!r:.60}.")
    return tuple([tuple(x) if isinstance(x, list) else x for x in layouts])


def _avals_of(args: tuple[ArrayLike, ...]) -> tuple[Aval, ...]:
    """The types of operands; TypeError for an operand that is no array."""
    try:
        return tuple(map(typeof, args))
    except TypeError:
        i, x = next((i, x) for i, x in enumerate(args) if not valid_olympustype(x))
        raise TypeError(f"ffi_call: argument {i} is {x!r:.60} of type {type(x).__name__}; an array "
                        "is required, by position; pass the leaves of a tree one by one, and "
                        "values known at compile time by name, as attributes.") from None


# Calls --------------------------------------------------------------------------------------------


@api_boundary
def ffi_call(target_name: str, result_shape_dtypes: object, *, has_side_effect: bool = False,
             vmap_method: str | None = None,
             input_layouts: Sequence[LayoutLike] | None = None,
             output_layouts: LayoutLike | Sequence[LayoutLike] = None,
             input_output_aliases: dict[int, int] | None = None,
             custom_call_api_version: int = 4, legacy_backend_config: str | None = None
             ) -> Callable[..., PyTree]:
    """A function of arrays that calls a foreign function: a handler of XLA's FFI.

    Args:
      target_name: the name that it is registered by (`register_ffi_target`). It is looked for when
        a program is compiled, so programs can be lowered and exported without.
      result_shape_dtypes: an object with shape and dtype, or a list or tuple of them; 64-bit dtypes
        stay 64-bit, also without x64. `olympus.core.abstract_token` stands for a token.
      has_side_effect: whether it is called although nothing reads its results.
      vmap_method: what vmap does. "sequential" and "sequential_unrolled" call it per element;
        "expand_dims" and "broadcast_all" call it once, with a leading axis of size 1 or repeated on
        operands that are not mapped.
      input_layouts, output_layouts: for each array a sequence of its axes, the outermost (slowest)
        first, a `Layout`, or None for by rows. XLA copies arrays that lie otherwise.
      input_output_aliases: from the number of an operand to the number of the result that takes its
        buffer: the handler gets one buffer for both.
      custom_call_api_version: 4 for handlers of the typed API; 1 to 3 for XLA's earlier ones.
      legacy_backend_config: the text that earlier ones get in place of attributes.
    Returns: A function of arrays, by position, and attributes, by name: bools, ints (int64), floats
      (float64), str, NumPy numbers and arrays (their dtypes), rows of numbers, and dicts of these.
      It returns an array, or a list or tuple of arrays.

    Derivatives are those that `custom_jvp` and `custom_vjp` give.

    >>> import numpy as np
    >>> x = onp.array([[4.0, 2.0], [2.0, 5.0]])
    >>> cholesky = ffi.ffi_call("lapack_spotrf_ffi", (
    ...     olympus.ShapeDtypeStruct((2, 2), "float32"), olympus.ShapeDtypeStruct((), "int32")))
    >>> y, info = cholesky(x, uplo=np.uint8(ord("L")))      # LAPACK counts by columns
    >>> print(onp.triu(y), info)
    [[2. 1.]
     [0. 2.]] 0
    """
    if not isinstance(target_name, str) or not target_name:
        raise TypeError(f"ffi_call: target_name={target_name!r} given; a str that is not empty is "
                        "required, the name given to register_ffi_target.")
    _check_text("ffi_call: target_name", target_name)
    if vmap_method is not None and vmap_method not in _METHODS:
        raise ValueError("ffi_call: vmap_method must be one of the allowed methods "
                         f"{[*_METHODS, None]}, but got: {vmap_method}")
    several = isinstance(result_shape_dtypes, (list, tuple))
    results: Any = result_shape_dtypes if several else [result_shape_dtypes]
    outs: Any = output_layouts if several or output_layouts is None else [output_layouts]
    version = custom_call_api_version
    if type(version) is not int or not 1 <= version <= _NEWEST:
        raise ValueError(f"ffi_call: custom_call_api_version={version!r} given; 4 is required, or "
                         "1 to 3 for targets of the earlier API.")
    if legacy_backend_config is not None and version >= _NEWEST:
        raise ValueError("ffi_call: The use of the legacy_backend_config parameter requires "
                         f"custom_call_api_version < {_NEWEST}; got {version}; pass attributes by "
                         "name instead.")
    promise = _Promise(_Promised(
        target_name, promised_avals("ffi_call", results), bool(has_side_effect), vmap_method,
        _hashable("input_layouts", input_layouts), _hashable("output_layouts", outs),
        alias_pairs("ffi_call", input_output_aliases), version, legacy_backend_config))
    returned: Any = list if several else None
    if isinstance(result_shape_dtypes, tuple):
        returned = tuple

    def call(*args: ArrayLike, **attributes: object) -> PyTree:
        try:
            avals = _avals_of(args)
            named = Attributes(attributes) if attributes else NO_ATTRIBUTES
            params, alone = _params(promise, avals, named)
            # An eager call skips `bind`, which would look up the program by all params.
            if ctx.trace is BASE and {*map(type, args)} <= _ARRAYS:
                try:
                    outs = alone(*args)
                except (TypeError, ValueError, lib.XlaRuntimeError):
                    check_deleted("ffi_call", args)
                    raise
            else:
                outs = ffi_call_p.bind(*args, **params)
        except Exception as error:
            filter_traceback(error)
            raise
        return outs[0] if returned is None else returned(outs)

    return call


def build_ffi_lowering_function(
        call_target_name: str, *, operand_layouts: Sequence[LayoutLike] | None = None,
        result_layouts: Sequence[LayoutLike] | None = None,
        backend_config: Mapping[str, IrAttribute] | str | None = None,
        skip_ffi_layout_processing: bool = False, **lowering_args: object
        ) -> Callable[..., IrOperation]:
    """A function for lowering rules that emits the call of a foreign function.

    Args:
      call_target_name: the name that it is registered by.
      operand_layouts, result_layouts: for each array a sequence of its axes, the *innermost* first
        (as XLA has it, and unlike `ffi_call`), a `Layout`, or None for by rows.
      backend_config: MLIR attributes by name, besides the rule's params; of the earlier API a text.
      skip_ffi_layout_processing: whether XLA chooses the layouts.
      **lowering_args: `has_side_effect`, `operand_output_aliases` (a dict), `api_version` (4),
        `result_types`, and `extra_attributes` (MLIR attributes of the operation by name).
    Returns: A function of (the rule's first argument, MLIR values, and attributes by name, as of
      `ffi_call`) that returns the MLIR operation.

    >>> from olympus.extend.core import Primitive
    >>> import numpy as np
    >>> from olympus.interpreters import mlir
    >>> call = ffi.build_ffi_lowering_function("lapack_spotrf_ffi")
    >>> p = Primitive("potrf")
    >>> p.multiple_results = True
    >>> _ = p.def_abstract_eval(lambda x, uplo: [x, olympus.core.ShapedArray((), "int32")])
    >>> mlir.register_lowering(p, lambda ctx, x, **params: call(ctx, x, **params).results)
    >>> print(olympus.jit(lambda x: p.bind(x, uplo=np.uint8(ord("U"))))(4.0 * onp.eye(2))[0])
    [[2. 0.]
     [0. 2.]]
    """
    options: dict[str, Any] = dict(lowering_args)
    version = options.pop("api_version", _NEWEST)
    side_effect = options.pop("has_side_effect", False)
    types, more = options.pop("result_types", None), options.pop("extra_attributes", None) or {}
    aliases = alias_pairs(call_target_name, options.pop("operand_output_aliases", None))
    if options:
        raise TypeError(f"build_ffi_lowering_function: arguments {', '.join(options)} given; "
                        "has_side_effect, operand_output_aliases, api_version, result_types and "
                        "extra_attributes are there; pass others as extra_attributes.")
    typed = version >= _NEWEST
    if typed and not (backend_config is None or isinstance(backend_config, Mapping)):
        raise ValueError("build_ffi_lowering_function: When api_version >= 4, backend_config must "
                         f"be a dictionary; {backend_config!r:.60} given.")

    def emit(ctx: Builder, *operands: IrValue, **params: object) -> IrOperation:
        attributes = Attributes(params) if params else NO_ATTRIBUTES
        if params and not typed:
            raise ValueError("build_ffi_lowering_function: The use of ffi_call attributes requires "
                             f"a custom call API version of at least 4; got api_version={version}"
                             "; pass backend_config, a text.")
        config: IrAttribute | None = None
        if typed:
            entries = dict(backend_config) if isinstance(backend_config, Mapping) else {}
            entries |= {name: value_attr(value) for name, value in attributes.values.items()}
            config = lib.mlir.ir.DictAttr.get(entries, lib.mlir.context())
        elif backend_config is not None:
            config = value_attr(backend_config)
        layouts = None if skip_ffi_layout_processing else (
            _orders(call_target_name, "operand", operand_layouts, ctx.avals_in, True),
            _orders(call_target_name, "result", result_layouts, ctx.avals_out, True))
        read_aliases(call_target_name, aliases, ctx.avals_in, ctx.avals_out)
        outs = _emit(ctx, call_target_name, operands, config, attributes, layouts, dict(aliases),
                     side_effect, version, more, types)
        # A call without results is the last operation of its block.
        last: Any = outs[0].owner if outs else ctx.block.ip.block.operations[-1]
        return last

    return emit


@described_like(build_ffi_lowering_function)
def ffi_lowering(call_target_name: str, *, operand_layouts: Sequence[LayoutLike] | None = None,
                 result_layouts: Sequence[LayoutLike] | None = None,
                 backend_config: Mapping[str, IrAttribute] | str | None = None,
                 skip_ffi_layout_processing: bool = False, **lowering_args: object
                 ) -> Callable[..., Sequence[IrValue]]:
    """The lowering rule of a primitive that is a foreign function; its params are attributes.

    Returns: A rule for `olympus.interpreters.mlir.register_lowering`.

    >>> import numpy as np
    >>> from olympus.extend.core import Primitive
    >>> from olympus.interpreters import mlir
    >>> p = Primitive("potrf")
    >>> p.multiple_results = True
    >>> _ = p.def_abstract_eval(lambda x, uplo: [x, olympus.core.ShapedArray((), "int32")])
    >>> mlir.register_lowering(p, ffi.ffi_lowering("lapack_spotrf_ffi"), platform="cpu")
    >>> print(olympus.jit(lambda x: p.bind(x, uplo=np.uint8(ord("U"))))(4.0 * onp.eye(2))[0])
    [[2. 0.]
     [0. 2.]]
    """
    emit = build_ffi_lowering_function(
        call_target_name, operand_layouts=operand_layouts, result_layouts=result_layouts,
        backend_config=backend_config, skip_ffi_layout_processing=skip_ffi_layout_processing,
        **lowering_args)

    def rule(ctx: Builder, *operands: IrValue, **params: object) -> Sequence[IrValue]:
        return list(emit(ctx, *operands, **params).results)

    return rule


# Registration -------------------------------------------------------------------------------------


def _name(what: str, name: object) -> None:
    if not isinstance(name, str) or not name:
        raise TypeError(f"{what}: name={name!r} given; a str that is not empty is required.")
    _check_text(f"{what}: name", name)


def _check_text(what: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{what}={text!r} given, which has no UTF-8 form; text without lone "
                         "surrogates is required.") from None


def _platform(what: str, platform: str) -> str:
    name = lib.call_platform(platform) if isinstance(platform, str) else None
    if name is None:
        raise ValueError(f"{what}: platform={platform!r} given; 'cpu', 'gpu' ('CUDA'), 'rocm' or "
                         "'tpu' is required.")
    return name


def _check_capsules(what: str, parts: Mapping[str, object], names: Collection[str], needed: str,
                    right: str) -> None:
    """TypeError unless PyCapsules are given by these names; one is needed.

    right: of the memory that they point to, "x" for code: XLA would end the process.
    """
    for name, capsule in parts.items():
        if name not in names:
            raise ValueError(f"{what}: the key {name!r} given; one of {', '.join(names)} is "
                             "required.")
        if type(capsule).__name__ != "PyCapsule":
            raise TypeError(f"{what}: {name} is {capsule!r:.60} of type {type(capsule).__name__}; "
                            "a PyCapsule is required; wrap a function of ctypes with "
                            "olympus.ffi.pycapsule.")
        rights = lib.memory_rights(capsule)
        if rights is not None and right not in rights:
            raise ValueError(f"{what}: {name} is {capsule!r:.60}, which points to no "
                             f"{'function' if right == 'x' else 'memory of this process'}; the "
                             "PyCapsule of a library's own function or object is required; wrap it "
                             "with olympus.ffi.pycapsule.")
    if needed not in parts:
        raise ValueError(f"{what}: {', '.join(parts) or 'nothing'} given; {needed!r} is required; "
                         "add it to the dict.")


@api_boundary
def register_ffi_target(name: str, fn: object, platform: str = "cpu", api_version: int = 1,
                        **kwargs: object) -> None:
    """Make a foreign function callable by `ffi_call`, under a name.

    Args:
      name: what calls name it by; one for each function, as long as the process lives.
      fn: a PyCapsule of a handler (see `pycapsule`), or a dict of such by the names of stages:
        "execute", and if it has them "instantiate", "prepare" and "initialize".
      platform: "cpu", "gpu", "rocm" or "tpu".
      api_version: 1 for handlers of the typed API, which XLA's headers declare; 0 for functions of
        the earlier one.
      **kwargs: further options for jaxlib's own function.

    Registering the same function again does nothing. ValueError for another one under a name that
    is taken, and for what XLA refuses: a handler built with headers of another version, or before
    the type of its state is registered.

    >>> import ctypes
    >>> library = ctypes.cdll.LoadLibrary("librms_norm.so")       # doctest: +SKIP
    >>> ffi.register_ffi_target("rms_norm", ffi.pycapsule(library.RmsNorm))   # doctest: +SKIP
    >>> ffi.register_ffi_target("rms_norm", print)
    Traceback (most recent call last):
    TypeError: register_ffi_target: execute is <built-in function print> of type
      builtin_function_or_method; a PyCapsule is required; wrap a function of ctypes with
      olympus.ffi.pycapsule.
    """
    _name("register_ffi_target", name)
    where = _platform("register_ffi_target", platform)
    if api_version not in (lib.TYPED, lib.UNTYPED):
        raise ValueError(f"register_ffi_target: api_version={api_version!r} given; 1 is required, "
                         "or 0 for functions of XLA's earlier API.")
    handlers = fn if isinstance(fn, dict) else {"execute": fn}
    _check_capsules("register_ffi_target", handlers, _STAGES, "execute", "x")
    known = lib.registered_calls(name).get(where, {}).get(api_version)
    if known is not None:
        if known != {stage: lib.capsule_address(c) for stage, c in handlers.items()}:
            raise ValueError(f"register_ffi_target: {name!r} given, under which another function "
                             f"is registered for {where}; a name of its own is required for each.")
        return
    try:
        lib.register_custom_call(name, fn, where, api_version, **kwargs)
    except lib.XlaRuntimeError as error:
        raise ValueError(f"register_ffi_target: {name!r} given, which XLA refuses: {error}; a "
                         "handler for this jaxlib's headers (olympus.ffi.include_dir()) under a "
                         "free name is required, after the types of its state.") from None


@api_boundary
def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Let XLA cut calls of a target along the axes that vmap adds, where arrays are spread so.

    Each device then calls it with its own elements. Otherwise it is called with whole arrays,
    wherever they are; calls in `shard_map` belong to one device anyway.

    Args: name: the target's.

    >>> ffi.register_ffi_target_as_batch_partitionable("rms_norm")
    """
    _name("register_ffi_target_as_batch_partitionable", name)
    if not lib.is_batch_partitionable(name):
        lib.register_batch_partitionable(name)


@api_boundary
def register_ffi_type(name: str, type_registration: object, platform: str = "cpu") -> None:
    """Give XLA a type of C++ that handlers keep as their state; before the handlers themselves.

    Args:
      name: a name of its own.
      type_registration: a dict of PyCapsules: "type_id" of the type's `ffi::TypeId`, and
        "type_info" of its `ffi::TypeInfo`, which XLA needs to delete a state.
      platform: "cpu", "gpu", "rocm" or "tpu".

    >>> library = ctypes.cdll.LoadLibrary("libcounter.so")        # doctest: +SKIP
    >>> ffi.register_ffi_type("Counter", {                        # doctest: +SKIP
    ...     "type_id": ffi.pycapsule(library.CounterId()),
    ...     "type_info": ffi.pycapsule(library.CounterInfo())})
    >>> ffi.register_ffi_type("Counter", {})
    Traceback (most recent call last):
    ValueError: register_ffi_type: nothing given; 'type_id' is required; add it to the dict.
    """
    _name("register_ffi_type", name)
    where = _platform("register_ffi_type", platform)
    if not isinstance(type_registration, dict):
        raise TypeError(f"register_ffi_type: {type_registration!r:.60} given; a dict with "
                        "'type_id' and 'type_info', PyCapsules, is required.")
    _check_capsules("register_ffi_type", type_registration, ("type_id", "type_info"), "type_id",
                    "r")
    try:
        lib.register_custom_type(name, type_registration, where)
    except lib.XlaRuntimeError as error:
        raise ValueError(f"register_ffi_type: {name!r} given, which XLA refuses: {error}; a name "
                         "and an id of its own are required.") from None


@api_boundary
def register_ffi_type_id(name: str, obj: object, platform: str = "cpu") -> None:
    """Refused: a type needs its functions as well, which `register_ffi_type` takes.

    Args: name, obj, platform: as of `register_ffi_type`; `obj` was its id alone.

    ValueError, as in JAX: no jaxlib that Olympus runs on knows types by their ids alone.

    >>> ffi.register_ffi_type_id("Counter", None)
    Traceback (most recent call last):
    ValueError: register_ffi_type_id: the id of 'Counter' alone given; this jaxlib needs the type's
      functions, too; use olympus.ffi.register_ffi_type with "type_id" and "type_info".
    """
    raise ValueError(f"register_ffi_type_id: the id of {name!r} alone given; this jaxlib needs the "
                     "type's functions, too; use olympus.ffi.register_ffi_type with \"type_id\" "
                     "and \"type_info\".")


@api_boundary
def pycapsule(funcptr: object) -> object:
    """A PyCapsule of a function of `ctypes`, as `register_ffi_target` takes it.

    Args:
      funcptr: a function of a library that `ctypes` has loaded, a `ctypes` pointer, or an address.
    Returns: A PyCapsule without a name. What it points to lives as long as the process.

    >>> import ctypes
    >>> type(ffi.pycapsule(ctypes.pythonapi.Py_GetVersion)).__name__
    'PyCapsule'
    """
    # `ctypes` has no public names for the classes of its functions and pointers.
    pointers: Any = (int, ctypes.c_void_p, type(ctypes.pythonapi.Py_GetVersion).__base__,
                     ctypes.POINTER(ctypes.c_char).__base__)
    if not funcptr or isinstance(funcptr, bool) or not isinstance(funcptr, pointers):
        raise TypeError(f"pycapsule: {funcptr!r:.60} of type {type(funcptr).__name__} given; a "
                        "function of a library loaded with ctypes, or an address that is not 0, is "
                        "required.")
    return lib.pycapsule(funcptr)


def include_dir() -> str:
    """The folder of XLA's headers, for the compiler of a foreign function.

    Returns: A path; `xla/ffi/api/ffi.h` is in it.

    >>> import os
    >>> sorted(os.listdir(os.path.join(ffi.include_dir(), "xla", "ffi", "api")))[:2]
    ['api.h', 'c_api.h']
    """
    return lib.include_dir()
