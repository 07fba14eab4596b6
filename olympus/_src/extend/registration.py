"""Lowering rules of outsiders: registered per primitive, written against MLIR's Python bindings.

    register_lowering(p, lambda ctx, x, y: [hlo.add(x, y)])     # any platform
    register_lowering(p, lower_fun(f, multiple_results=False))  # f in terms of olympus.lax

A rule gets the lowering builder as `ctx` (`avals_in`, `avals_out`, `platform`), MLIR values as
operands and the equation's params; the insertion point and location of MLIR are set around it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..base.docstrings import described_like
from ..base.lib import mlir
from ..base.typing import Array, ArrayLike, DTypeLike, IrAttribute, IrModule, IrType, IrValue, T
from ..core.ir import ClosedOlympuspr
from ..core.primitive import Primitive
from ..core.staging import stage
from ..core.trace import typeof
from ..devices.devices import PLATFORMS
from ..interpreters.passes import arrays_only
from ..lowering.attributes import constant_attr, element_type, tensor_type, value_attr
from ..lowering.builder import Builder
from ..lowering.linking import fresh_symbols, link
from ..lowering.registered import Rule, flatten_ir_values
from ..types import dtypes
from ..types.avals import AbstractToken, Aval, ShapedArray

ir = mlir.ir        # this loads MLIR: nothing imports this module but its façade
Value = ir.Value
LoweringRule = Callable[..., Any]
Lowered = Mapping[tuple[int, ShapedArray], IrValue]     # constants, by (id, aval)
_GPU = ("gpu", "cuda", "rocm")
# By the class of a type, what gives the MLIR types of its values.
ir_type_handlers: dict[type, Callable[..., object]] = {
    ShapedArray: tensor_type, AbstractToken: tensor_type}


def register_lowering(prim: Primitive, rule: LoweringRule, platform: str | None = None,
                      inline: bool = True, cacheable: bool = True) -> None:
    """Lower a primitive by `rule(ctx, *values, **params)`, which returns MLIR values.

    Args:
      prim: the primitive.
      rule: returns a value, or a sequence of values, one per result.
      platform: "cpu", "gpu" or "tpu" for a rule of that platform only; by default for all others.
      inline, cacheable: accepted; rules are always emitted in place, once per equation.

    >>> from olympus.extend.core import Primitive
    >>> from olympus.extend.mlir.dialects import stablehlo as hlo
    >>> p = Primitive("twice")
    >>> _ = p.def_abstract_eval(lambda x: x)
    >>> mlir.register_lowering(p, lambda ctx, x: [hlo.add(x, x)])
    >>> print(olympus.jit(p.bind)(2.5))
    5.0
    """
    if platform is not None and platform not in PLATFORMS:
        raise NotImplementedError(
            f"register_lowering: Registering an MLIR lowering rule for primitive {prim} for an "
            f"unknown platform {platform}. Known platforms are: {', '.join(PLATFORMS)}.")
    stored = Rule(prim, rule)
    Primitive.lowerings += 1
    if platform is None:
        prim.lower = stored
    else:
        names = _GPU if platform in _GPU else (platform,)
        prim.platform_rules = {**prim.platform_rules, **dict.fromkeys(names, stored)}


def lower_with_sharding_in_types(ctx: Builder, op: IrValue, aval: ShapedArray) -> IrValue:
    """A value of a lowering rule, sharded as its type says.

    Args:
      ctx: the first argument of the rule.
      op: the value.
      aval: its type.
    Returns: The value; another one where the type names axes of a mesh.

    >>> from olympus.extend.core import Primitive
    >>> p = Primitive("twice_as_typed")
    >>> _ = p.def_abstract_eval(lambda x: x)
    >>> olympus.interpreters.mlir.register_lowering(p, lambda ctx, x: [
    ...     mlir.lower_with_sharding_in_types(ctx, mlir.dialects.stablehlo.add(x, x),
    ...                                       ctx.avals_out[0])])
    >>> print(olympus.jit(p.bind)(2.5))
    5.0
    """
    return ctx.spread(op, aval)


def lower_fun(fun: Callable[..., Array | Sequence[Array]], multiple_results: bool = True
              ) -> LoweringRule:
    """The lowering rule that traces `fun(*arrays, **params)` and emits its operations.

    Args:
      fun: a function of arrays in terms of other operations.
      multiple_results: whether it returns a sequence of arrays instead of one.

    >>> from olympus.extend.core import Primitive
    >>> p = Primitive("scaled")
    >>> _ = p.def_abstract_eval(lambda x, by: x)
    >>> mlir.register_lowering(p, mlir.lower_fun(lambda x, by: x * by, multiple_results=False))
    >>> print(olympus.jit(lambda x: p.bind(x, by=3))(2))
    6
    """
    def rule(ctx: Builder, *xs: IrValue, **params: Hashable) -> Sequence[IrValue]:
        def flat(*args: Array) -> list[Any]:
            out: Any = fun(*args, **params)
            return list(out) if multiple_results else [out]

        return ctx.call_inline(arrays_only(stage(flat, ctx.avals_in)), xs)

    return rule


# Types and attributes


def make_ir_context() -> ir.Context:
    """The MLIR context, which has every dialect; there is one in a process.

    >>> mlir.make_ir_context() is mlir.make_ir_context()
    True
    """
    return mlir.context()


def aval_to_ir_types(ctx: object, aval: Aval) -> tuple[IrType, ...]:
    """The MLIR types of an aval, one for each value that it lowers to.

    Args:
      ctx: accepted; there is one MLIR context.
      aval: an array's aval.
    Returns: A tuple of one MLIR tensor type.

    >>> len(mlir.aval_to_ir_types(None, olympus.typeof(1.0)))
    1
    """
    handler = ir_type_handlers.get(type(aval))
    if handler is None:
        raise TypeError(f"aval_to_ir_types: {aval!r} of type {type(aval).__name__} given; a type "
                        "of arrays is required, or one that has a handler in ir_type_handlers; "
                        "values of users' types are their parts (`lo_ty`) where they are lowered.")
    return tuple(flatten_ir_types(handler(aval)))


@described_like(aval_to_ir_types)
def aval_to_ir_type(ctx: object, aval: Aval) -> IrType:
    """The MLIR type of an aval; of an extended dtype its physical type.

    >>> print(mlir.aval_to_ir_type(None, olympus.core.ShapedArray((2, 3), "float32")))
    tensor<2x3xf32>
    """
    types = aval_to_ir_types(ctx, aval)
    if len(types) != 1:
        raise ValueError(f"aval_to_ir_type: {aval} given, whose values are {len(types)} MLIR "
                         "values; call aval_to_ir_types.")
    return types[0]


def dtype_to_ir_type(dtype: DTypeLike) -> IrType:
    """The MLIR element type of a dtype.

    Args: dtype: anything that names a dtype.

    >>> print(mlir.dtype_to_ir_type("bfloat16"))
    bf16
    """
    return element_type(dtypes.as_dtype(dtype))


def token_type(*args: ir.Context, **kwargs: ir.Context) -> IrType:
    """The MLIR type of tokens, which order side effects; in the process's context by default.

    Args: *args, **kwargs: `context`, by position or name.

    >>> print(mlir.token_type())
    !stablehlo.token
    """
    return mlir.hlo.TokenType.get(*(args or [kwargs.get("context") or mlir.context()]))


def i32_attr(i: int) -> IrAttribute:
    """An MLIR integer attribute of 32 bits.

    Args: i: an int of 32 bits.

    >>> print(mlir.i32_attr(3))
    3 : i32
    """
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32, mlir.context()), i)


@described_like(i32_attr)
def i64_attr(i: int) -> IrAttribute:
    """An MLIR integer attribute of 64 bits.

    Args: i: an int of 64 bits.

    >>> print(mlir.i64_attr(3))
    3 : i64
    """
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64, mlir.context()), i)


def dense_int_array(*args: Any, **kwargs: Any) -> IrAttribute:
    """An MLIR array of 64-bit integers, `array<i64: …>`, of a sequence (and a context).

    Args: *args, **kwargs: a sequence of ints; `context`, by default the process's.

    >>> print(mlir.dense_int_array([1, 2]))
    array<i64: 1, 2>
    """
    return ir.DenseI64ArrayAttr.get(*args, **{"context": mlir.context(), **kwargs})


def dense_int_elements(xs: Sequence[int]) -> IrAttribute:
    """An MLIR tensor of 64-bit integers: `dense<…> : tensor<nxi64>`.

    Args: xs: ints.

    >>> print(mlir.dense_int_elements([1, 2]))
    dense<[1, 2]> : tensor<2xi64>
    """
    return constant_attr(np.asarray(xs, np.int64))


def ir_attribute(val: object) -> IrAttribute:
    """An MLIR attribute of a Python or NumPy value: bool, int, float, string, array, list or dict.

    Args: val: the value.
    Returns: An MLIR attribute; of Python ints and floats one of 64 bits.

    >>> print(mlir.ir_attribute([True, 2, "three"]))
    [true, 2, "three"]
    """
    if isinstance(val, (list, tuple)):
        return ir.ArrayAttr.get([ir_attribute(v) for v in val], mlir.context())
    return value_attr(val)


def ir_constants(val: ArrayLike, *, const_lowering: Lowered | None = None,
                 aval: ShapedArray | None = None) -> list[IrValue]:
    """`ir_constant` as a list: one MLIR value for each that the constant lowers to.

    Args:
      val: a NumPy array or a number.
      const_lowering, aval: as for `ir_constant`.

    >>> import numpy as np
    >>> from olympus.extend.core import Primitive
    >>> p = Primitive("eight")
    >>> _ = p.def_abstract_eval(lambda: olympus.core.ShapedArray((), "int32"))
    >>> mlir.register_lowering(p, lambda ctx: mlir.ir_constants(np.int32(8)))
    >>> print(olympus.jit(p.bind)())
    8
    """
    return [ir_constant(val, const_lowering=const_lowering, aval=aval)]


def ir_constant(val: ArrayLike, *, const_lowering: Lowered | None = None,
                aval: ShapedArray | None = None) -> IrValue:
    """Emit a constant where the lowering rule is; its type is the aval's, by default the value's.

    Args:
      val: a NumPy array or a number.
      const_lowering: MLIR values of constants that are lowered already, by `(id, aval)`.
      aval: the constant's type.

    >>> import numpy as np
    >>> from olympus.extend.core import Primitive
    >>> p = Primitive("seven")
    >>> _ = p.def_abstract_eval(lambda: olympus.core.ShapedArray((), "float32"))
    >>> mlir.register_lowering(p, lambda ctx: [mlir.ir_constant(np.float32(7))])
    >>> print(olympus.jit(p.bind)())
    7.0
    """
    handler = next(filter(None, map(_constant_handlers.get, type(val).__mro__)), None)
    if handler is not None:
        return handler(val, aval)
    aval = typeof(val) if aval is None else aval
    chosen = (const_lowering or {}).get((id(val), aval))
    if chosen is not None:
        return chosen
    value = np.asarray(val).astype(aval.dtype)
    return ir.Operation.create("stablehlo.constant", [tensor_type(aval)], [],
                                    {"value": constant_attr(value)}).result


_constant_handlers: dict[type, Callable[..., IrValue]] = {}


def register_constant_handler(type_: type, handler_fun: Callable[..., IrValue]) -> None:
    """Let `ir_constant` take values of a class.

    Args:
      type_: the class.
      handler_fun: `handler(value, aval)`, which emits it and returns the MLIR value; `aval` as it
        is given to `ir_constant`.

    >>> import numpy as np
    >>> from olympus.extend.core import Primitive
    >>> class Dozen:
    ...     pass
    >>> mlir.register_constant_handler(
    ...     Dozen, lambda dozen, aval: mlir.ir_constant(np.int32(12), aval=aval))
    >>> p = Primitive("dozen")
    >>> _ = p.def_abstract_eval(lambda: olympus.core.ShapedArray((), "int32"))
    >>> mlir.register_lowering(p, lambda ctx: [mlir.ir_constant(Dozen())])
    >>> print(olympus.jit(p.bind)())
    12
    """
    _constant_handlers[type_] = handler_fun


# Values and modules


def unflatten_ir_values_like_types(xs: Iterable[T], ys: Sequence[object]
                                   ) -> list[T | tuple[T, ...]]:
    """MLIR values in the structure of types: what `flatten_ir_values` undid.

    Args:
      xs: values.
      ys: types, or sequences of types.
    Returns: A list with a value, or a tuple of values, for each of `ys`.

    >>> mlir.unflatten_ir_values_like_types("xyz", [int, (int, int)])       # any objects do
    ['x', ('y', 'z')]
    """
    rest = iter(xs)
    return [tuple([next(rest) for _ in y]) if isinstance(y, (tuple, list)) else next(rest)
            for y in ys]


def core_call_lowering(ctx: Builder, *args: IrValue, name: str, backend: str | None = None,
                       inline_olympus_late: bool = False, call_olympuspr: ClosedOlympuspr,
                       **params: object) -> Sequence[IrValue]:
    """The lowering rule of a primitive that calls a program.

    Args:
      ctx: the rule's context. *args: the values.
      name: the name of the function in the module.
      backend, **params: accepted.
      inline_olympus_late: whether the program's operations are emitted in place of a call.
      call_olympuspr: the program.

    >>> from olympus.extend.core import Primitive
    >>> body = olympus.make_olympuspr(lambda x: x + 1)(1.0)
    >>> p = Primitive("called")
    >>> p.multiple_results = True
    >>> _ = p.def_abstract_eval(lambda x: [x])
    >>> mlir.register_lowering(p, lambda ctx, x: mlir.core_call_lowering(
    ...     ctx, x, name="body", call_olympuspr=body))
    >>> print(olympus.jit(p.bind)(2.5)[0])
    3.5
    """
    if inline_olympus_late:
        return ctx.call_inline(call_olympuspr, args)
    return ctx.call(call_olympuspr, args, name)


def merge_mlir_modules(dst_module: IrModule, sym_name: str, src_module: IrModule,
                       dst_symtab: object = None) -> str:
    """Move the functions of a module into another.

    Args:
      dst_module: where they go; its own entries keep their names.
      sym_name: the new name of the other's main function, if that is free.
      src_module: the other one, of the same MLIR context; nothing remains in it.
      dst_symtab: accepted.
    Returns: What its main function is called now.

    >>> from olympus.extend import mlir as m
    >>> from olympus.interpreters import mlir
    >>> text = olympus.jit(lambda x: x + 1).lower(1.0).as_text()
    >>> with mlir.make_ir_context():
    ...     first, second = m.ir.Module.parse(text), m.ir.Module.parse(text)
    >>> mlir.merge_mlir_modules(first, "plus", second)
    'plus'
    """
    if dst_module.context != src_module.context:
        raise ValueError("merge_mlir_modules: modules of two contexts given; one is required; "
                         "parse the other module in the first one's context.")
    symbol = fresh_symbols()
    for op in dst_module.body.operations:
        symbol(mlir.ir.StringAttr(op.attributes["sym_name"]).value)
    with dst_module.context:
        return link(dst_module, symbol, src_module, sym_name).symbol


def flatten_ir_types(xs: Any) -> list[Any]:
    """MLIR types in a flat list, as `flatten_ir_values`.

    Args: xs: a type, or a sequence of types and sequences.

    >>> i8, f32 = map(mlir.dtype_to_ir_type, ("int8", "float32"))
    >>> print(*mlir.flatten_ir_types([i8, (f32, i8)]))
    i8 f32 i8
    """
    return flatten_ir_values(xs)


def module_to_string(module: Any, enable_debug_info: bool | None = None) -> str:
    """A module as text; with source locations if `enable_debug_info`.

    Args:
      module: an MLIR module.
      enable_debug_info: whether locations are printed; None: they are not.

    >>> with mlir.make_ir_context():
    ...     print(mlir.module_to_string(mlir.ir.Module.parse("module @m {}")).split())
    ['module', '@m', '{', '}']
    """
    return module.operation.get_asm(enable_debug_info=bool(enable_debug_info))


@described_like(module_to_string)
def module_to_bytecode(module: IrModule) -> bytes:
    """A module as MLIR bytecode, which other versions need not be able to read.

    >>> with mlir.make_ir_context():
    ...     mlir.module_to_bytecode(mlir.ir.Module.parse("module {}"))[:4]
    b'ML\xefR'
    """
    return mlir.bytecode(module)
