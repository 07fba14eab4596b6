"""MLIR types, attributes and locations of the one context, cached: each costs microseconds.

A context keeps everything that was ever made in it, large constants too. So it is a cache with a
bound in bytes: beyond that, the next module gets a new context.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..base import source
from ..base.lib import mlir
from ..base.typing import DimSize, DType, IrAttribute, IrType, IrValue, StaticScalar
from ..base.util import Memo, known_cache, lazy_imports
from ..types import dtypes
from ..types.avals import AbstractToken, Aval, physical_aval
from ..types.shape import SymbolicDim

# An operation's attributes: MLIR's, and ints and tuples with symbolic sizes, which become operands.
Attributes: TypeAlias = dict[str, Any]
Number: TypeAlias = StaticScalar | SymbolicDim
# The contracted axes of both operands of `dot_general`, and the batch axes of both.
DotNumbers: TypeAlias = tuple[tuple[Sequence[int], Sequence[int]],
                              tuple[Sequence[int], Sequence[int]]]
Body: TypeAlias = Callable[..., Sequence[IrValue]]      # a region: arguments -> results

with lazy_imports(__name__):
    import json

# Objects of the present context, by their meaning. `renew` clears them with the context: an object
# of an old context must not get into a module of a new one.
_types: Memo = Memo(65536)
_attrs: Memo = Memo(65536)
_locations: Memo = Memo(65536)
_recipes: Memo = Memo(65536)      # of `recipes.py`
# Look-ups without a frame, for the hot path of lowering. A location's key is its name and, with a
# line, the id and offset of the line's code; the entry has the line, too.
known_type, known_location, known_recipe = _types.get, _locations.get, _recipes.get
keep_recipe = _recipes.__setitem__
_ITEM = 1024        # about the bytes of a type, attribute or location, with its key
_MOST_BYTES = 32 << 20


class _Grown:
    """The size of the context in bytes, and the number of modules that are being made in it."""

    __slots__ = ("bytes", "modules", "lock", "__weakref__")

    def __init__(self) -> None:
        # Bytes are added without the lock: a lost addition delays the next context a little.
        self.bytes = self.modules = 0
        self.lock = threading.Lock()
        known_cache(self)

    def cache_clear(self) -> None:
        """Give the context up, at once or when the modules in it are finished."""
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
    """About the bytes in the present context."""
    return _grown.bytes


@contextlib.contextmanager
def module_context() -> Iterator[None]:
    """The MLIR context in which a module is made: the last one, until it has grown too large."""
    with _grown.lock:
        # Between modules only: an unfinished module belongs to its context.
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
    ir_type = _types.get(dtype)
    if ir_type is None:
        name = dtype.name
        if name not in _ELEMENTS:
            raise TypeError(f"lowering: an array of dtype {name} given; XLA has no arrays of it; "
                            "convert to a wider dtype.")
        ir_type = _types[dtype] = mlir.ir.Type.parse(_ELEMENTS[name], mlir.context())
    return ir_type


def tensor_type(aval: Aval) -> IrType:
    """The MLIR type of an aval; for keys and other extended dtypes, of the physical aval."""
    ir_type = _types.get(aval)
    if ir_type is None:
        if isinstance(aval, AbstractToken):
            ir_type = mlir.ir.Type.parse("!stablehlo.token", mlir.context())
        else:
            physical = physical_aval(aval)
            element = element_type(physical.dtype)
            known = [n for n in physical.shape if isinstance(n, int) and n]
            # XLA ends the process where an array's bytes, at least one for an element, overflow.
            width = max(dtypes.itemsize_bits(physical.dtype) // 8, 1)
            if math.prod(known) * width >= 1 << 63:
                raise ValueError(f"compile: an array {aval} given; arrays of fewer than 2**63 "
                                 "bytes are required; compute it in parts.")
            unknown = mlir.ir.ShapedType.get_dynamic_size()
            with mlir.context():
                ir_type = mlir.ir.RankedTensorType.get(
                    [unknown if isinstance(n, SymbolicDim) else n for n in physical.shape],
                    element, None, mlir.ir.Location.unknown())
        _grown.bytes += _ITEM
        _types[aval] = ir_type
    return ir_type


def quoted_name(name: object) -> str:
    """The name of a mesh axis as MLIR text."""
    return json.dumps(str(name))


def attr(text: str) -> IrAttribute:
    """The attribute of MLIR text."""
    attribute = _attrs.get(text)
    if attribute is None:
        _grown.bytes += _ITEM
        try:
            attribute = mlir.ir.Attribute.parse(text, mlir.context())
        except mlir.ir.MLIRError:
            raise _too_large(text) from None
        _attrs[text] = attribute
    return attribute


def dot_numbers(numbers: DotNumbers) -> IrAttribute:
    """The attribute of `lax.dot_general`'s dimension numbers."""
    attribute = _attrs.get(numbers)
    if attribute is None:
        (lc, rc), (lb, rb) = numbers
        attribute = _attrs[numbers] = attr(
            f"#stablehlo.dot<lhs_batching_dimensions = {list(lb)}, rhs_batching_dimensions = "
            f"{list(rb)}, lhs_contracting_dimensions = {list(lc)}, rhs_contracting_dimensions = "
            f"{list(rc)}>")
    return attribute


def i64s(values: Iterable[DimSize]) -> Any:
    """An array attribute of 64-bit integers; the tuple itself if one is symbolic.

    `dimensions.DYNAMIC` has the operations that take such a tuple as an operand.
    """
    key = tuple(values)
    attribute = _attrs.get(key)
    if attribute is None:
        if any(isinstance(v, SymbolicDim) for v in key):
            return key
        _grown.bytes += _ITEM
        try:
            attribute = mlir.ir.DenseI64ArrayAttr.get(list(key), mlir.context())
        except TypeError:
            raise _too_large(str(key)) from None
        _attrs[key] = attribute
    return attribute


def pairs(values: Sequence[Sequence[DimSize]]) -> Any:
    """An array attribute of pairs of integers; the tuple itself if one is symbolic."""
    if any(isinstance(v, SymbolicDim) for pair in values for v in pair):
        return tuple([tuple(pair) for pair in values])
    # `dense<>` without elements: MLIR takes no empty list for a tensor of rank 2.
    shown = [list(map(int, pair)) for pair in values]
    return attr(f"dense<{shown or ''}> : tensor<{len(shown)}x2xi64>")


def _too_large(text: str) -> ValueError:
    """The error for a param that the compiler refuses, which must be a user's int."""
    return ValueError(f"compile: the param {text} given; ints that 64 bits hold are required, of "
                      "counts of bits 32.")


def call_layouts(orders: Sequence[Sequence[int]]) -> IrAttribute:
    """The layouts of a custom call's arrays; each is a list of axes, the innermost first."""
    return attr("[" + ", ".join([f"dense<{list(order) if order else ''}> : "
                                 f"tensor<{len(order)}xindex>" for order in orders]) + "]")


def call_aliases(aliases: Sequence[int | None], results: int) -> IrAttribute:
    """Per operand of a custom call, the result that overwrites it; `results` is their number."""
    return attr("[" + ", ".join([
        "#stablehlo.output_operand_alias<output_tuple_indices = "
        f"{[out] if results > 1 else []}, operand_index = {i}, operand_tuple_indices = []>"
        for i, out in enumerate(aliases) if out is not None]) + "]")


def value_attr(value: object) -> IrAttribute:
    """The attribute of a Python or NumPy value.

    bool is i1, int is i64, float is f64, NumPy's numbers have their dtype, str is a string, an
    array is dense elements, and a mapping of names to such values is a dictionary.
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
    """`value_attr`, kept under a hashable key."""
    attribute = _attrs.get(key)
    if attribute is None:
        _grown.bytes += _ITEM
        attribute = _attrs[key] = value_attr(value)
    return attribute


def constant_attr(array: Any) -> IrAttribute:
    """The dense elements attribute of an array; a splat if all elements have the same bits."""
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
            array = array.view(np.uint8)  # MLIR reads each i1 from a byte
        if dtype.name in ("int4", "uint4", "int2", "uint2", "float4_e2m1fn"):
            # ml_dtypes has a byte for each element, which MLIR reads as one of `kind`.
            view = array.view(np.int8)
            return ir.DenseElementsAttr.get(view, type=kind, shape=shape)
        # Python's buffers have no letter for bfloat16 and 8-bit floats: pass their bits.
        if dtype.kind not in "biufc":
            array = array.view(f"u{dtype.itemsize}")
        return ir.DenseElementsAttr.get(array, type=kind, shape=shape)


def number_attr(key: tuple[type, object, DType], value: StaticScalar) -> IrAttribute:
    """The dense attribute of one number; `key` is from `Builder.scalar`."""
    # Keys of different numbers differ, except for Python's NaNs; NumPy's have their bits.
    exact = isinstance(value, np.generic) or (
        key[0] in (bool, int, float, complex) and value == value)
    attribute = _attrs.get(key) if exact else None
    if attribute is None:
        dtype = np.dtype(np.bool_) if dtypes.is_float0(key[2]) else key[2]
        attribute = constant_attr(np.asarray(value, dtype))
        if exact:
            _grown.bytes += _ITEM
            _attrs[key] = attribute
    return attribute


def location(name: str, line: source.Source | None) -> mlir.ir.Location:
    """A named location, at the user's `line` (code, offset), if given."""
    # The code's id is the key, because hashing a code object hashes its constants; the entry keeps
    # the code alive.
    key = (name, None) if line is None else (name, id(line[0]), line[1])
    located = _locations.get(key)
    if located is None:
        ir = mlir.ir
        with mlir.context():
            child = ir.Location.unknown()
            if line is not None and line is not source.CALLERS:
                at = source.location(line)
                child = ir.Location.name(
                    at.function, childLoc=ir.Location.file(at.file, at.line, at.column))
            located = ir.Location.name(name, childLoc=child) if name else child
        _grown.bytes += _ITEM
        located = _locations[key] = located, line
    return located[0]
