"""Attributes of foreign calls: which values XLA hands to a handler, and how they are compared."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from ..base.util import bit_key
from ..core.trace import valid_olympustype

# XLA hands on no others: 16-bit floats, complex numbers and rows of bools it refuses.
_NUMBERS = frozenset(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                      "float32", "float64"))
_ALLOWED = ("a bool, an int, a float, a str, a NumPy number or array of "
            "integers, float32 or float64, a row of such numbers, or a dict of these is required")


class Attributes:
    """The attributes of a call by name: equal if their types and bits are.

    `values` has each as `lowering.attributes.value_attr` takes it: numbers of NumPy that Python has
    as well are Python's.
    """

    __slots__ = ("values", "key", "hash")
    is_value = True     # see `core.identity`

    def __init__(self, named: Mapping[str, object]) -> None:
        try:
            self.values = _read_all("", named)
            self.key = _key(self.values)
        except RecursionError:
            raise ValueError(f"ffi_call: attributes {', '.join(named)} given, one of which has "
                             "itself in it, or is nested deeper than Python recurses; a flat dict "
                             "is required.") from None
        self.hash = hash(self.key)

    @property
    def kinds(self) -> tuple[tuple[str, str], ...]:
        """(name, dtype or kind of value) of each, for messages."""
        return tuple([(name, _kind_of(value)) for name, value in self.values.items()])

    def __eq__(self, other: object) -> bool:
        return self is other or type(other) is Attributes and self.key == other.key

    def __hash__(self) -> int:
        return self.hash

    def __repr__(self) -> str:
        return repr(self.values)


def _kind_of(value: object) -> str:
    """What an attribute is to a handler: its dtype, "array of" a dtype, "str" or "dict"."""
    if isinstance(value, np.ndarray):
        return f"array of {value.dtype}"
    if isinstance(value, np.generic):
        return str(value.dtype)
    return {int: "int64", float: "float64"}.get(type(value), type(value).__name__)


def _read_all(path: str, named: Mapping[str, object]) -> dict[str, object]:
    """The attributes of a dictionary, in the order of their names."""
    for name in named:
        if not isinstance(name, str) or not name:
            raise TypeError(f"ffi_call: the attribute name {name!r} given{_at(path)}; a str that "
                            "is not empty is required; name it as the handler does.")
        _check_text(path or name, name)
    return {name: _read(f"{path}.{name}" if path else name, value)
            for name, value in sorted(named.items())}


def _at(path: str) -> str:
    return f" in {path}" if path else ""


def _check_text(path: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"ffi_call: attribute {path} with the text {text!r} given, which has no "
                         "UTF-8 form; text without lone surrogates is required; encode it, and "
                         "pass numpy.frombuffer(data, numpy.uint8).") from None


def _read(path: str, value: object) -> object:
    """A value as a handler can have it; TypeError that names the attribute for any other."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, int):
        if not -1 << 63 <= value < 1 << 63:
            raise ValueError(f"ffi_call: attribute {path}={value} given; an int of 64 bits is "
                             "required; numpy.uint64 has those below 2**64, a str any.")
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, str):
        _check_text(path, value)
        return str(value)
    if isinstance(value, Mapping):
        return _read_all(path, value)
    if isinstance(value, (list, tuple)):
        value = _row(path, value)
    if isinstance(value, (np.generic, np.ndarray)) and value.dtype.name in _NUMBERS:
        if isinstance(value, np.generic):
            return int(value) if value.dtype.name == "int64" else value
        native = np.array(value, value.dtype.newbyteorder("="), order="C")
        native.flags.writeable = False
        return native
    raise TypeError(f"ffi_call: attribute {path}={value!r:.60} of type {type(value).__name__}"
                    f"{_dtype_of(value)} given; {_ALLOWED}; {_instead(value)}.")


def _row(path: str, values: Sequence[object]) -> np.ndarray:
    """A list or tuple of numbers of one type, or of Python's ints and floats, as an array."""
    kinds: list[type] = list(dict.fromkeys(map(type, values)))
    plain = {*kinds} <= {int, float}
    if not values or not (plain or len(kinds) == 1 and issubclass(kinds[0], np.number)):
        why = "it has no dtype" if not values else "not all are numbers of one type"
        raise TypeError(f"ffi_call: attribute {path}={values!r:.60} given: {why}; {_ALLOWED}; "
                        "pass a NumPy array, which names its dtype, or a dict.")
    try:
        return np.asarray(values, (np.float64 if float in kinds else np.int64) if plain else None)
    except OverflowError:
        raise ValueError(f"ffi_call: attribute {path}={values!r:.60} given; ints of 64 bits are "
                         "required; pass an array of numpy.uint64.") from None


def _dtype_of(value: object) -> str:
    dtype = getattr(value, "dtype", None)
    return "" if dtype is None else f" and dtype {dtype}"


def _instead(value: object) -> str:
    """What to do about a value that no handler can have."""
    if isinstance(value, (np.ndarray, np.generic)):
        return "convert it with astype, or pass it by position: as an operand"
    if valid_olympustype(value) and not isinstance(value, complex):
        return ("attributes are known when the program is compiled; pass an array by position, as "
                "an operand, or as numpy.asarray(x) outside of transformations")
    if isinstance(value, (bytes, bytearray)):
        return "pass numpy.frombuffer(data, numpy.uint8)"
    if value is None:
        return "leave out what is not there"
    return "pass its parts by names of their own"


def _key(value: object) -> Hashable:
    """A key under which values of the same type and bits are equal."""
    if isinstance(value, dict):
        return dict, tuple([(name, _key(v)) for name, v in value.items()])
    if isinstance(value, np.ndarray):
        return np.ndarray, value.dtype.name, value.shape, value.tobytes()
    return bit_key(value)


NO_ATTRIBUTES = Attributes({})
