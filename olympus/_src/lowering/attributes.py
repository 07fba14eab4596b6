"""MLIR types, attributes and locations of the one context, cached: each costs microseconds.

A context keeps all that was ever made in it, large constants too. It is a cache like others, with a
bound in bytes: where it is passed, the next module is made in a new one.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..base import source
from ..base.lib import mlir
from ..base.typing import DimSize, DType, IrAttribute, IrType, IrValue, StaticScalar
from ..base.util import Memo, known_cache, lazy_module
from ..types import dtypes
from ..types.avals import AbstractToken, Aval, physical_aval
from ..types.shape import SymbolicDim

# An operation's attributes: MLIR's, and where sizes are symbolic ints and tuples, which become
# operands.
Attributes: TypeAlias = dict[str, Any]
Number: TypeAlias = StaticScalar | SymbolicDim
# The contracted axes of both operands of `dot_general`, and the batch axes of both.
DotNumbers: TypeAlias = tuple[tuple[Sequence[int], Sequence[int]],
                              tuple[Sequence[int], Sequence[int]]]
Body: TypeAlias = Callable[..., Sequence[IrValue]]      # of a region: from its arguments

_json: Any = lazy_module("json")
# Objects of the present context, by their meaning. They are cleared at the latest when it is given
# up (`renew`): an object of an old context must not get into a module of a new one.
_types: Memo = Memo(65536)
_attrs: Memo = Memo(65536)
_locations: Memo = Memo(65536)
_recipes: Memo = Memo(65536)      # as `recipes` makes them
# Look-ups without a frame, for the hot path of lowering. A location's key is its name
# and, if it is at a line, the id and offset of that line's code; beside it is the line.
known_type, known_location, known_recipe = _types.get, _locations.get, _recipes.get
keep_recipe = _recipes.__setitem__
_ITEM = 1024        # bytes of a type, attribute or location with what leads to it, about
_MOST_BYTES = 32 << 20


class _Grown:
    """How much the context holds, and how many modules are being made in it."""

    __slots__ = ("bytes", "modules", "lock", "__weakref__")

    def __init__(self) -> None:
        # Bytes are added without the lock: a lost addition puts the next context off a little.
        self.bytes = self.modules = 0
        self.lock = threading.Lock()
        known_cache(self)

    def cache_clear(self) -> None:
        """Give the context up; where modules are being made in it, once they are."""
        with self.lock:
            if self.modules:
                self.bytes = _MOST_BYTES + 1
            elif self.bytes:
                self.renew()

    def renew(self) -> None:
        """Let the next module be made in a new context."""
        for memo in (_types, _attrs, _locations, _recipes):
            memo.cache_clear()
        mlir.renew_context()
        self.bytes = 0


_grown = _Grown()


def context_bytes() -> int:
    """How much the present context holds, about."""
    return _grown.bytes


@contextlib.contextmanager
def module_context() -> Iterator[None]:
    """The MLIR context in which a module is made: the last one, until it has grown too large."""
    with _grown.lock:
        # Between modules only: an unfinished module belongs to the context it was begun in.
        if not _grown.modules and _grown.bytes > _MOST_BYTES:
            _grown.renew()
        _grown.modules += 1
    try:
        with mlir.context(), mlir.ir.Location.unknown():
            yield
    finally:
        with _grown.lock:
            _grown.modules -= 1

_ELEMENTS = {
    "bool": "i1", "int2": "i2", "int4": "i4", "int8": "i8", "int16": "i16", "int32": "i32",
    "int64": "i64", "uint2": "ui2", "uint4": "ui4", "uint8": "ui8", "uint16": "ui16",
    "uint32": "ui32", "uint64": "ui64", "float16": "f16", "bfloat16": "bf16", "float32": "f32",
    "float64": "f64", "complex64": "complex<f32>", "complex128": "complex<f64>",
    "float8_e4m3fn": "f8E4M3FN", "float8_e5m2": "f8E5M2", "float8_e4m3": "f8E4M3",
    "float8_e3m4": "f8E3M4", "float8_e4m3b11fnuz": "f8E4M3B11FNUZ",
    "float8_e4m3fnuz": "f8E4M3FNUZ", "float8_e5m2fnuz": "f8E5M2FNUZ",
    "float8_e8m0fnu": "f8E8M0FNU", "float4_e2m1fn": "f4E2M1FN",
}


def element_type(dtype: DType) -> IrType:
    """The MLIR element type of a dtype."""
    found = _types.get(dtype)
    if found is None:
        name = dtype.name
        if name not in _ELEMENTS:
            raise TypeError(f"lowering: an array of dtype {name} given; XLA has no arrays of it; "
                            "convert to a wider dtype.")
        found = _types[dtype] = mlir.ir.Type.parse(_ELEMENTS[name], mlir.context())
    return found


def tensor_type(aval: Aval) -> IrType:
    """The MLIR type of an aval; of a typed key or other extended dtype, its physical type."""
    found = _types.get(aval)
    if found is None:
        if isinstance(aval, AbstractToken):
            found = mlir.ir.Type.parse("!stablehlo.token", mlir.context())
        else:
            physical = physical_aval(aval)
            element = element_type(physical.dtype)
            unknown = mlir.ir.ShapedType.get_dynamic_size()
            try:
                with mlir.context():
                    found = mlir.ir.RankedTensorType.get(
                        [unknown if isinstance(n, SymbolicDim) else n for n in physical.shape],
                        element, None, mlir.ir.Location.unknown())
            except TypeError:       # a size that C++ has no integer for
                raise ValueError(f"compile: an array {aval} given; sizes below 2**63 are required."
                                 ) from None
        _grown.bytes += _ITEM
        _types[aval] = found
    return found


def quoted_name(name: object) -> str:
    """The name of an axis of a mesh, as MLIR text has it."""
    return _json.dumps(str(name))


def attr(text: str) -> IrAttribute:
    """The attribute that MLIR text spells."""
    found = _attrs.get(text)
    if found is None:
        _grown.bytes += _ITEM
        try:
            found = mlir.ir.Attribute.parse(text, mlir.context())
        except mlir.ir.MLIRError:
            raise _too_large(text) from None
        _attrs[text] = found
    return found


def dot_numbers(numbers: DotNumbers) -> IrAttribute:
    """The attribute of `dot_general`'s dimension numbers, as lax writes them."""
    found = _attrs.get(numbers)
    if found is None:
        (lc, rc), (lb, rb) = numbers
        found = _attrs[numbers] = attr(f"#stablehlo.dot<lhs_batching_dimensions = {list(lb)}, "
                                       f"rhs_batching_dimensions = {list(rb)}, "
                                       f"lhs_contracting_dimensions = {list(lc)}, "
                                       f"rhs_contracting_dimensions = {list(rc)}>")
    return found


def i64s(values: Iterable[DimSize]) -> Any:
    """An array attribute of 64-bit integers; the tuple of them where one is symbolic.

    What takes it as an operand then is in `dims.DYNAMIC`.
    """
    key = tuple(values)
    found = _attrs.get(key)
    if found is None:
        if any(isinstance(v, SymbolicDim) for v in key):
            return key
        _grown.bytes += _ITEM
        try:
            found = mlir.ir.DenseI64ArrayAttr.get(list(key), mlir.context())
        except TypeError:
            raise _too_large(str(key)) from None
        _attrs[key] = found
    return found


def pairs(values: Sequence[Sequence[DimSize]]) -> Any:
    """An array attribute of pairs of integers; the tuple of them where one is symbolic."""
    if any(isinstance(v, SymbolicDim) for pair in values for v in pair):
        return tuple([tuple(pair) for pair in values])
    # Without elements it is `dense<>`: MLIR takes no empty list for a tensor of rank 2.
    shown = [list(map(int, pair)) for pair in values]
    return attr(f"dense<{shown or ''}> : tensor<{len(shown)}x2xi64>")


def _too_large(text: str) -> ValueError:
    """The error for a param that the compiler refuses: only a user's int can be too large."""
    return ValueError(f"compile: the param {text} given; ints that 64 bits hold are required, of "
                      "counts of bits 32.")


def call_layouts(orders: Sequence[Sequence[int]]) -> IrAttribute:
    """Layouts of a custom call's arrays: of each, its axes from the innermost one."""
    return attr("[" + ", ".join([f"dense<{list(order) if order else ''}> : "
                                 f"tensor<{len(order)}xindex>" for order in orders]) + "]")


def call_aliases(aliases: Sequence[int | None], results: int) -> IrAttribute:
    """Which result of a custom call (of `results`) overwrites each operand."""
    return attr("[" + ", ".join([
        "#stablehlo.output_operand_alias<output_tuple_indices = "
        f"{[out] if results > 1 else []}, operand_index = {i}, operand_tuple_indices = []>"
        for i, out in enumerate(aliases) if out is not None]) + "]")


def value_attr(value: object) -> IrAttribute:
    """A value of Python's or NumPy's as an attribute.

    bool is i1, int i64, float f64, a number of NumPy's its dtype, str a string, an array dense
    elements, a mapping of names to such values a dictionary.
    """
    ir = mlir.ir
    if isinstance(value, (bool, np.bool_)):
        return attr("true" if value else "false")
    if isinstance(value, int):
        return attr(f"{int(value)} : i64")
    if isinstance(value, float) and not isinstance(value, np.generic):
        value = np.float64(value)
    if isinstance(value, np.generic):
        kind = _ELEMENTS.get(value.dtype.name)
        if kind is not None and value.dtype.kind != "c":
            # Floats by their bits: MLIR's text of NaN has no payload.
            bits = f"0x{value.tobytes()[::-1].hex()}"
            return attr(f"{int(value) if value.dtype.kind in 'iu' else bits} : {kind}")
    if isinstance(value, str):
        return ir.StringAttr.get(value, mlir.context())
    if isinstance(value, np.ndarray):
        return constant_attr(value)
    if isinstance(value, Mapping):
        return ir.DictAttr.get({k: value_attr(v) for k, v in value.items()}, mlir.context())
    raise TypeError(f"ir_attribute: {value!r} of type {type(value).__name__} given; a bool, "
                    "number, string, NumPy array, or dict of those is required.")


def keyed_attr(key: Hashable, value: object) -> IrAttribute:
    """`value_attr` of a value that a hashable key stands for."""
    found = _attrs.get(key)
    if found is None:
        _grown.bytes += _ITEM
        found = _attrs[key] = value_attr(value)
    return found


def constant_attr(array: Any) -> IrAttribute:
    """A dense elements attribute with the array's values; a splat where all are the same bits."""
    ir = mlir.ir
    if dtypes.is_float0(array.dtype):
        array = np.zeros(array.shape, np.bool_)
    shape, dtype = array.shape, array.dtype
    array = np.ascontiguousarray(array)
    kind = element_type(dtype)
    _grown.bytes += array.nbytes
    with mlir.context():
        if dtype == np.bool_:
            if array.size and (array.all() or not array.any()):
                value = ir.BoolAttr.get(bool(array.flat[0]))
                return ir.DenseElementsAttr.get_splat(ir.RankedTensorType.get(shape, kind), value)
            array = array.view(np.uint8)  # i1 is read from a whole byte each
        if dtype.name in ("int4", "uint4", "int2", "uint2", "float4_e2m1fn"):
            # ml_dtypes keeps a byte for each of these, which MLIR reads as one of `kind`.
            view = array.view(np.int8)
            return ir.DenseElementsAttr.get(view, type=kind, shape=shape)
        # Python's buffers have no letter for bfloat16 and 8-bit floats: their bits are handed over.
        if dtype.kind not in "biufc":
            array = array.view(f"u{dtype.itemsize}")
        return ir.DenseElementsAttr.get(array, type=kind, shape=shape)


def number_attr(key: tuple[type, object, DType], value: StaticScalar) -> IrAttribute:
    """The dense attribute of one number; `key` is as `Builder.scalar` makes it."""
    # It tells all numbers of Python apart but those that are NaN; NumPy's by their bits.
    exact = isinstance(value, np.generic) or (
        key[0] in (bool, int, float, complex) and value == value)
    found = _attrs.get(key) if exact else None
    if found is None:
        dtype = np.dtype(np.bool_) if dtypes.is_float0(key[2]) else key[2]
        found = constant_attr(np.asarray(value, dtype))
        if exact:
            _grown.bytes += _ITEM
            _attrs[key] = found
    return found


def location(name: str, line: source.Source | None) -> mlir.ir.Location:
    """A named location, at the user's line if `line` (code, offset) is given."""
    # By the code's id, as a code object hashes its constants anew each time; the entry keeps it.
    key = (name, None) if line is None else (name, id(line[0]), line[1])
    found = _locations.get(key)
    if found is None:
        ir = mlir.ir
        with mlir.context():
            child = ir.Location.unknown()
            if line is not None and line is not source.CALLERS:
                at = source.location(line)
                child = ir.Location.name(
                    at.function, childLoc=ir.Location.file(at.file, at.line, at.column))
            found = ir.Location.name(name, childLoc=child) if name else child
        _grown.bytes += _ITEM
        found = _locations[key] = found, line
    return found[0]
