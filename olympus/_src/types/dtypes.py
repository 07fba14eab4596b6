"""The one dtype table, the promotion lattice and the scalar types of `olympus.numpy`.

A dtype here is a `np.dtype` (NumPy's own or ml_dtypes') or an `ExtendedDType` such as `key<fry>`.
Promotion is the join in a lattice whose starred nodes `i* f* c*` stand for the weakly typed
dtypes of Python scalars: they give way to every strong dtype of their kind or a higher one.

    bool - i* -+- u8 - u16 - u32 - u64 -+
               |    \\     \\     \\       +- f* -+- bf16 -+- f32 -+- f64 -+
               +- i8 - i16 - i32 - i64 -+      +- f16 --+        +- c64 -+- c128
               +- i1 i2 i4 u1 u2 u4            +- c* ------------+
                                               +- f4 f6 f8 (each alone)
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar, Final, SupportsFloat, TypeGuard

import ml_dtypes
import numpy as np

from ..base import config, source
from ..base.errors import TypePromotionError
from ..base.typing import Array, ArrayLike, DType, DTypeLike, DTypeToCheckers

finfo = ml_dtypes.finfo
iinfo = ml_dtypes.iinfo


class extended(np.generic):
    """Abstract scalar type of every dtype that NumPy does not know.

    It is for `issubdtype` and is never an element's type itself.

    >>> import olympus
    >>> from olympus import dtypes
    >>> dtypes.issubdtype(olympus.random.key(0).dtype, dtypes.extended)
    True
    """


class prng_key(extended):
    """Abstract scalar type of typed random keys.

    >>> import olympus
    >>> from olympus import dtypes
    >>> dtypes.issubdtype(olympus.random.key(0).dtype, dtypes.prng_key)
    True
    """


class ExtendedDType(DTypeToCheckers):
    """Base of the dtypes that exist only in Olympus; instances are hashable and compare by value.

    A subclass gives `type` (a subclass of `extended`), `name` (as printed: `key<fry>`), `itemsize`
    (bytes of one element) and the physical form of one element, `physical_shape` and
    `physical_dtype`: an array of shape `s` is stored as `physical_dtype[*s, *physical_shape]`, from
    which `of_physical` makes it.
    """

    __slots__ = ()
    kind: ClassVar[str] = "V"       # as NumPy's dtypes of no number
    type: Any
    name: str
    itemsize: int
    physical_shape: tuple[int, ...]
    physical_dtype: np.dtype
    of_physical: Callable[[Any], Any]

    def __repr__(self) -> str:
        return self.name


float0: Final = np.dtype([("float0", np.void, 0)])

# --- the table --------------------------------------------------------------------------------

# (names, kind, bits of one element); the order is the order in which messages list dtypes.
_ROWS: Final = (
    (("bool",), "b", (8,)),
    (("uint1", "uint2", "uint4", "uint8", "uint16", "uint32", "uint64"), "u",
     (1, 2, 4, 8, 16, 32, 64)),
    (("int1", "int2", "int4", "int8", "int16", "int32", "int64"), "i", (1, 2, 4, 8, 16, 32, 64)),
    (("float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"), "f", (4, 6, 6)),
    (("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
      "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"), "f", (8,) * 8),
    (("bfloat16", "float16", "float32", "float64"), "f", (16, 16, 32, 64)),
    (("complex64", "complex128"), "c", (64, 128)),
)


def _kinds_and_bits() -> dict[np.dtype, tuple[str, int]]:
    """dtype -> (kind, bits)."""
    table = {}
    for names, kind, bits in _ROWS:
        for name, width in zip(names, bits, strict=True):
            scalar = getattr(ml_dtypes, name, None) or np.dtype(name).type
            table[np.dtype(scalar)] = (kind, width)
    return table


_TABLE: Final = _kinds_and_bits()
_DTYPE: Final = {dtype.name: dtype for dtype in _TABLE}


def numeric_dtypes() -> list[np.dtype]:
    """All dtypes of numbers and booleans that arrays may have."""
    return list(_TABLE)


_KIND: Final[dict[Any, str]] = {d: k for d, (k, _) in _TABLE.items()} | {float0: "float0"}
_INTERNED: Final = {d: d for d in _KIND}
_WIDE: Final[dict[Any, np.dtype]] = {
    d: _DTYPE["float32"] for d, (k, bits) in _TABLE.items() if k == "f" and bits < 32}
_SHORT: Final[dict[Any, str]] = {
    d: d.name.replace("uint", "u").replace("int", "i").replace("float", "f").replace("complex", "c")
    for d in _TABLE} | {float0: "float0"}
_LONG: Final[dict[Any, str]] = {d: d.name for d in _TABLE} | {float0: "float0"}
_NARROW: Final = {_DTYPE[a]: _DTYPE[b] for a, b in (
    ("int64", "int32"), ("uint64", "uint32"), ("float64", "float32"), ("complex128", "complex64"))}
_PARENT: Final = {"b": np.generic, "i": np.signedinteger, "u": np.unsignedinteger,
                  "f": np.floating, "c": np.complexfloating, "float0": np.void}
_PYTHON: Final[dict[type, np.dtype]] = {
    bool: _DTYPE["bool"], int: _DTYPE["int64"], float: _DTYPE["float64"],
    complex: _DTYPE["complex128"]}
_PYTHON_OF_KIND: Final = {"b": bool, "i": int, "u": int, "f": float, "c": complex}

# --- from anything to a dtype -----------------------------------------------------------------

# Memos hold only spellings of dtypes in the table, so they stay small.
_AS_DTYPE: dict[Any, Any] = {}
_CANONICAL: dict[bool, dict[Any, Any]] = {False: {}, True: {}}


def as_dtype(dtype: Any) -> DType:
    """The dtype that any spelling names (`"f4"`, `float`, `np.float32`, `jnp.float32`), as it is.

    The x64 switch does not matter here; the byte order becomes native. Raises TypeError for what
    names no dtype or a dtype that arrays cannot hold (object, str, datetime …).
    """
    try:
        known = _AS_DTYPE.get(dtype)
    except TypeError:
        raise TypeError(f"dtype: a value of type {type(dtype).__name__} given;\n  a dtype or its "
                        "name is required; pass for example x.dtype.") from None
    if known is not None:
        return known
    if isinstance(dtype, ExtendedDType):
        return dtype
    if isinstance(getattr(dtype, "dtype", None), ExtendedDType):
        return dtype.dtype
    try:
        native = np.dtype(dtype)
    except (TypeError, ValueError):
        raise TypeError(f"dtype: {dtype!r} given; data type not understood;\n  a dtype or its name "
                        "is required; pass for example x.dtype.") from None
    if not native.isnative:
        native = native.newbyteorder("=")
    native = _INTERNED.get(native)
    if native is None:
        wide = np.dtype(dtype).kind in "fc"
        raise TypeError(f"dtype: {np.dtype(dtype)} given;\n  arrays hold only "
                        + ("floats of up to 64 bits; use float64 or complex128." if wide else
                           "numbers, booleans and keys; convert the data to a numeric dtype first."
                           ))
    _AS_DTYPE[dtype] = native
    return native


def canonical_dtype(dtype: DTypeLike | None) -> DType:
    """The dtype that arrays really have: 64-bit dtypes become 32-bit ones while x64 is off.

    >>> canonical_dtype("float64"), canonical_dtype(int)
    (dtype('float32'), dtype('int32'))
    """
    x64 = config.enable_x64.value
    try:
        return _CANONICAL[x64][dtype]
    except (KeyError, TypeError):  # TypeError: unhashable, which as_dtype explains
        pass
    canonical = as_dtype(dtype)
    if not x64:
        canonical = _NARROW.get(canonical, canonical)
    if canonical in _KIND:
        _CANONICAL[x64][dtype] = canonical
    return canonical


def canonicalize_dtype(dtype: DTypeLike | None, allow_extended_dtype: bool = False) -> DType:
    """The dtype that arrays asked for with `dtype` have: 64-bit ones are narrowed while x64 is off.

    Args:
      dtype: a dtype, a scalar type, or a name.
      allow_extended_dtype: whether dtypes that NumPy does not know, such as `key<fry>`, pass; they
        are a ValueError otherwise.
    Returns: A `numpy.dtype`, or the extended dtype.

    >>> dtypes.canonicalize_dtype("float64"), dtypes.canonicalize_dtype(int)
    (dtype('float32'), dtype('int32'))
    """
    canonical = canonical_dtype(dtype)
    if not allow_extended_dtype and isinstance(canonical, ExtendedDType):
        raise ValueError(f"canonicalize_dtype: {canonical} given; a dtype that NumPy knows is "
                         "required; pass allow_extended_dtype=True to let extended dtypes through.")
    return canonical


def requested_dtype(name: str, dtype: DTypeLike | None, allow_extended_dtype: bool = False
                    ) -> DType:
    """`canonicalize_dtype` for a dtype that the caller of `name` gave.

    Warns where a 64-bit dtype is narrowed because x64 is off; Python's `int`, `float` and `complex`
    say a kind, not a width.
    """
    try:
        canonical = canonicalize_dtype(dtype, allow_extended_dtype)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None
    if canonical is dtype or (isinstance(dtype, type) and dtype in _PYTHON):
        return canonical
    asked = as_dtype(dtype)
    if asked != canonical and config.explicit_x64_dtypes.value == "error":
        raise ValueError(f"{name}: dtype {asked} given, which is not available while x64 is off; "
                         f"set olympus_enable_x64, or ask for {canonical}.")
    if asked != canonical:
        source.warn(f"{name}: Explicitly requested dtype {asked} is not available while x64 is "
                    f"off, and will be truncated to dtype {canonical}; enable 64-bit dtypes with "
                    f"config.update('olympus_enable_x64', True) or OLYMPUS_ENABLE_X64=1, or ask "
                    f"for {canonical}.")
    return canonical


def python_scalar_dtype(kind: type) -> np.dtype:
    """The dtype of a Python scalar type at the current x64 setting: `float -> float32`."""
    return canonical_dtype(_PYTHON[kind])


def default_int() -> np.dtype:
    """int32, or int64 with x64 on."""
    return canonical_dtype(_DTYPE["int64"])


def default_float() -> np.dtype:
    """float32, or float64 with x64 on."""
    return canonical_dtype(_DTYPE["float64"])


def scalar_type_of(x: object) -> type:
    """The Python scalar type (bool, int, float or complex) of an array, scalar or dtype.

    Args: x: array, number, dtype or name.
    Returns: A type. TypeError for dtypes that are not numeric.

    >>> dtypes.scalar_type_of("bfloat16"), dtypes.scalar_type_of(True)
    (<class 'float'>, <class 'bool'>)
    """
    kind = scalar_kind(_typed(x)[0])
    if kind not in _PYTHON_OF_KIND:
        raise TypeError(f"scalar_type_of: dtype {long_name(_typed(x)[0])} given; a numeric or "
                        "boolean dtype is required.")
    return _PYTHON_OF_KIND[kind]


# --- names and predicates ---------------------------------------------------------------------

def short_name(dtype: DTypeLike) -> str:
    """The dtype as programs print it: `f32`, `i32`, `bool`, `bf16`, `f8_e4m3fn`, `key<fry>`."""
    return _SHORT.get(dtype) or str(getattr(dtype, "name", dtype))


def long_name(dtype: DTypeLike) -> str:
    """The dtype as messages print it: `float32`, `bool`, `key<fry>`, `float0`."""
    return _LONG.get(dtype) or str(getattr(dtype, "name", dtype))


def printed_names() -> dict[str, DType]:
    """Every dtype but keys', by its short and by its long name."""
    return {name: dtype for table in (_SHORT, _LONG) for dtype, name in table.items()}


def scalar_kind(dtype: DTypeLike | None) -> str:
    """`b`, `i`, `u`, `f`, `c`, `key`, `float0` or `extended`; unlike `dtype.kind` it knows bf16."""
    kind = _KIND.get(dtype)
    if kind is None:
        dtype = as_dtype(dtype)
        if isinstance(dtype, ExtendedDType):
            return "key" if issubclass(dtype.type, prng_key) else "extended"
        kind = _KIND[dtype]
    return kind


def is_bool(dtype: DTypeLike) -> bool:
    """Whether the dtype is bool."""
    return scalar_kind(dtype) == "b"


def is_integer(dtype: DTypeLike) -> bool:
    """Whether the dtype is a signed or unsigned integer (bool is not)."""
    return scalar_kind(dtype) in ("i", "u")


def is_floating(dtype: DTypeLike) -> bool:
    """Whether the dtype is a real floating type, ml_dtypes' included."""
    return scalar_kind(dtype) == "f"


def wide_dtype(dtype: DType) -> DType:
    """The dtype that a sum is accumulated in: float32 for narrower floats."""
    return _WIDE.get(dtype, dtype)


def is_complex(dtype: DTypeLike) -> bool:
    """Whether the dtype is complex."""
    return scalar_kind(dtype) == "c"


def is_inexact(dtype: DTypeLike) -> bool:
    """Whether the dtype is floating or complex, so that derivatives exist."""
    return scalar_kind(dtype) in ("f", "c")


def is_numeric(dtype: DTypeLike) -> bool:
    """Whether the dtype is an integer, floating or complex one."""
    return scalar_kind(dtype) in ("i", "u", "f", "c")


def is_key(dtype: DTypeLike | None) -> bool:
    """Whether the dtype is one of typed random keys."""
    return scalar_kind(dtype) == "key"


def is_extended(dtype: object) -> TypeGuard[ExtendedDType]:
    """Whether the dtype exists only in Olympus."""
    return isinstance(dtype, ExtendedDType)


def is_float0(dtype: DTypeLike) -> bool:
    """Whether the dtype is float0, the dtype of derivatives of integers and booleans."""
    return dtype == float0


def itemsize_bits(dtype: DTypeLike | None) -> int:
    """Bits of one element: 4 for int4, 32 for float32. Raises ValueError for extended and float0.

    Args: dtype: a dtype, a scalar type, or a name.
    Returns: An int; 8 for bool.

    >>> itemsize_bits("float32")
    32
    """
    if dtype is None:
        raise ValueError("itemsize_bits: None given; a dtype is required.")
    canonical = as_dtype(dtype)
    if canonical not in _TABLE:
        raise ValueError(f"itemsize_bits: {long_name(canonical)} given; a numeric or boolean dtype "
                         "is required.")
    return _TABLE[canonical][1]


def issubdtype(a: Any, b: DTypeLike | None) -> bool:
    """Whether dtype or abstract type `a` is `b` or below it; `np.issubdtype` with every dtype.

    Args: a, b: dtypes, scalar types, abstract ones among them, or names.

    >>> import numpy as np
    >>> issubdtype("bfloat16", np.floating), issubdtype("int32", np.inexact)
    (True, False)
    """
    if isinstance(a, type) and issubclass(a, extended):
        return isinstance(b, type) and issubclass(a, b)
    left = a if _is_abstract(a) else _any_dtype(a)
    if isinstance(b, type) and issubclass(b, np.generic) and _is_abstract(b):
        if isinstance(left, type):
            return issubclass(left, b)
        return issubclass(_PARENT[_KIND[left]] if left in _KIND else left.type, b)
    return not isinstance(left, type) and left == _any_dtype(b)


def _any_dtype(dtype: Any) -> DType:
    """`as_dtype`, where NumPy's dtypes that arrays cannot hold (object, str …) may be asked for."""
    try:
        return as_dtype(dtype)
    except TypeError as error:
        try:
            return np.dtype(dtype)
        except Exception:
            raise error from None


_ABSTRACT: Final = frozenset((
    np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact,
    np.floating, np.complexfloating, np.flexible, np.character, np.void))


def _is_abstract(t: object) -> bool:
    return isinstance(t, type) and (t in _ABSTRACT or issubclass(t, extended))


_LETTERS: Final = {
    "bool": ("b",), "signed integer": ("i",), "unsigned integer": ("u",), "integral": ("i", "u"),
    "real floating": ("f",), "complex floating": ("c",), "numeric": ("i", "u", "f", "c")}


def isdtype(dtype: DTypeLike, kind: str | DTypeLike | tuple[str | DTypeLike, ...]) -> bool:
    """Whether a dtype belongs to a kind, as the array API standard names kinds.

    Args:
      dtype: a dtype or its name.
      kind: a dtype, or one of "bool", "signed integer", "unsigned integer", "integral", "real
        floating", "complex floating" and "numeric", or a tuple of these.
    Returns: A Python bool. Unknown kinds are a ValueError, abstract types such as `np.floating` a
      TypeError.

    >>> onp.isdtype("bfloat16", "real floating"), onp.isdtype("int8", ("bool", "unsigned integer"))
    (True, False)
    """
    own = _any_dtype(dtype)
    return any(_is_of_kind(own, k) for k in (kind if isinstance(kind, tuple) else (kind,)))


def _is_of_kind(dtype: DTypeLike, kind: object) -> bool:
    if isinstance(kind, str):
        if kind in _LETTERS:
            return dtype in _KIND and scalar_kind(dtype) in _LETTERS[kind]
        try:
            return dtype == as_dtype(kind)
        except TypeError:
            raise ValueError(f"isdtype: kind {kind!r} given; one of "
                             f"{', '.join(map(repr, _LETTERS))} or a dtype is required.") from None
    if _is_abstract(kind) or not isinstance(kind, (type, np.dtype, ExtendedDType)):
        raise TypeError(f"isdtype: kind {kind!r} given; a dtype, a string or a tuple of these is "
                        "required; use issubdtype for abstract types.")
    return dtype == _any_dtype(kind)


_CASTINGS: Final = ("no", "equiv", "safe", "same_kind", "unsafe")


def check_casting(name: str, casting: object) -> Any:
    """The casting rule; ValueError, in the name of the function, for anything else."""
    if not isinstance(casting, str) or casting not in _CASTINGS:
        raise ValueError(f"{name}: casting {casting!r} given; one of {', '.join(_CASTINGS)} is "
                         "required.")
    return casting


def can_cast(from_: ArrayLike | DTypeLike, to: DTypeLike, casting: str = "safe") -> bool:
    """Whether a casting rule allows the conversion of one dtype to another.

    Args:
      from_: a dtype or its name, or an array, whose dtype alone counts.
      to: a dtype or its name.
      casting: "no", "equiv", "safe" (no value is lost), "same_kind" (float64 to float32 too) or
        "unsafe" (always); others are a ValueError.

    >>> onp.can_cast("int8", "float16"), onp.can_cast("float32", "int32", "same_kind")
    (True, False)
    """
    rule = check_casting("can_cast", casting)
    own = from_ if isinstance(from_, (type, str)) else getattr(from_, "dtype", from_)
    own, to = as_dtype(own), as_dtype(to)
    if is_extended(own) or is_extended(to):
        return own == to
    if rule == "same_kind" and "V" in (own.kind, to.kind):   # NumPy knows no kind of bfloat16
        return "buifc".index(scalar_kind(own)) <= "buifc".index(scalar_kind(to))
    return np.can_cast(own, to, rule)


def converted(value: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """NumPy data at a dtype as devices convert it: floats saturate at the limits of integers."""
    if is_extended(dtype):
        raise TypeError(f"convert_element_type: {dtype} given; a numeric or boolean dtype is "
                        "required; read the integers behind keys with random.key_data.")
    if value.dtype.kind not in "fV" or scalar_kind(value.dtype) != "f" or not is_integer(dtype):
        return value.astype(dtype)
    limits = iinfo(dtype)
    # The first float beyond is a power of two, and exact; the last integer may not be one.
    with np.errstate(invalid="ignore"):
        integers = value.astype(dtype)
    integers = np.where(value >= float(int(limits.max) + 1), dtype.type(limits.max), integers)
    integers = np.where(value <= float(limits.min), dtype.type(limits.min), integers)
    return np.where(value != value, dtype.type(0), integers)


@functools.lru_cache(64)
def integer_range(dtype: DType) -> tuple[int, int]:
    """The smallest and the largest integer of a dtype; `iinfo` computes them in each call."""
    limits = iinfo(dtype)
    return int(limits.min), int(limits.max)


def fits(number: int, dtype: np.dtype) -> bool:
    """Whether an integer dtype holds the number."""
    low, high = integer_range(dtype)
    return low <= number <= high


# --- related dtypes ---------------------------------------------------------------------------

class Limit(float):
    """A number of `finfo`: a Python float, so weakly typed, with NumPy's `dtype` and `astype`."""

    __slots__ = ("dtype",)
    dtype: np.dtype

    def __new__(cls, value: SupportsFloat, dtype: np.dtype) -> Limit:
        made = super().__new__(cls, value)
        made.dtype = dtype
        return made

    def __reduce__(self) -> tuple[type[Limit], tuple[float, DType]]:
        return Limit, (float(self), self.dtype)

    def astype(self, dtype: DTypeLike) -> Any:
        """The scalar of another dtype."""
        return np.asarray(float(self)).astype(as_dtype(dtype))[()]


def to_inexact_dtype(dtype: DTypeLike) -> np.dtype:
    """The dtype itself if floating or complex; float64 for 64-bit integers, else float32."""
    canonical = canonical_dtype(dtype)
    if is_inexact(canonical):
        return canonical
    return _DTYPE["float64" if itemsize_bits(canonical) == 64 else "float32"]


def to_real_dtype(dtype: DTypeLike) -> np.dtype:
    """The dtype of the real part: `complex64 -> float32`; the dtype itself if not complex.

    The dtype of an array stays: an array made with x64 on may be used while it is off.
    """
    whole = dtype if isinstance(dtype, np.dtype) else canonical_dtype(dtype)
    return _REAL.get(whole, whole)


def to_complex_dtype(dtype: DTypeLike) -> np.dtype:
    """The complex dtype of functions such as fft: `float32 -> complex64`, also for integers.

    An array's is not narrowed, as by `to_real_dtype`.
    """
    of_array = isinstance(dtype, np.dtype)
    inexact = dtype if of_array and is_inexact(dtype) else to_inexact_dtype(dtype)
    if is_complex(inexact):
        return inexact
    return _DTYPE["complex128" if itemsize_bits(inexact) == 64 else "complex64"]


_REAL: Final[dict[Any, Any]] = {
    _DTYPE["complex64"]: _DTYPE["float32"],
    _DTYPE["complex128"]: _DTYPE["float64"]}


def tangent_dtype(dtype: DType) -> DType:
    """The dtype of derivatives: the dtype itself if inexact, otherwise float0."""
    return dtype if scalar_kind(dtype) in ("f", "c") else float0


# --- promotion --------------------------------------------------------------------------------

_SMALL_FLOATS: Final = tuple(d.name for d, (k, n) in _TABLE.items() if k == "f" and n < 16)
_SMALL_INTS: Final = tuple(d.name for d, (k, n) in _TABLE.items() if k in "iu" and n < 8)

# node -> the nodes directly above it; the picture is in the module docstring.
_ABOVE: Final[dict[str, tuple[str, ...]]] = {
    "bool": ("i*",),
    "i*": ("uint8", "int8", *_SMALL_INTS),
    "uint8": ("uint16", "int16"), "uint16": ("uint32", "int32"), "uint32": ("uint64", "int64"),
    "uint64": ("f*",),
    "int8": ("int16",), "int16": ("int32",), "int32": ("int64",), "int64": ("f*",),
    "f*": ("c*", "bfloat16", "float16", *_SMALL_FLOATS),
    "bfloat16": ("float32",), "float16": ("float32",), "float32": ("float64", "complex64"),
    "float64": ("complex128",), "c*": ("complex64",), "complex64": ("complex128",),
    "complex128": (),
}
# Strict promotion mixes only Python scalars with strong dtypes, and bool with nothing.
_ABOVE_STRICT: Final[dict[str, tuple[str, ...]]] = {
    "i*": ("f*", *(d.name for d, (k, _) in _TABLE.items() if k in "iu")),
    "f*": ("c*", *(d.name for d, (k, _) in _TABLE.items() if k == "f")),
    "c*": ("complex64", "complex128"),
}
_STAR: Final = {"i": "i*", "u": "i*", "f": "f*", "c": "c*"}
_UNSTAR: Final = {"i*": "int64", "f*": "float64", "c*": "complex128"}
_WIDEST: Final = {"i": "int64", "u": "uint64", "f": "float64", "c": "complex128"}


def _upper_bounds(above: dict[str, tuple[str, ...]]) -> dict[str, frozenset[str]]:
    """node -> itself and everything above it."""
    bounds: dict[str, frozenset[str]] = {}

    def visit(node: str) -> frozenset[str]:
        if node not in bounds:
            bounds[node] = frozenset({node}).union(*map(visit, above.get(node, ())))
        return bounds[node]

    for node in (*above, *_DTYPE):
        visit(node)
    return bounds


_BOUNDS: Final = {"standard": _upper_bounds(_ABOVE), "strict": _upper_bounds(_ABOVE_STRICT)}
Typed = tuple[DType, bool]      # a dtype, and whether the type is weak
_PROMOTED: dict[tuple, Typed] = {}


def promote_types(a: DType, b: DType, weak_a: bool = False, weak_b: bool = False) -> Typed:
    """The dtype and weak type of a result of operands with dtypes `a` and `b`.

    `a` and `b` are dtypes (not their names). Raises TypePromotionError, a ValueError, where the
    lattice has no join, and in strict mode where two strong dtypes differ.

    >>> promote_types(np.dtype("int32"), np.dtype("float16"))
    (dtype('float16'), False)
    """
    key = (a, b, weak_a, weak_b, config.enable_x64.value, config.numpy_dtype_promotion.value)
    promoted = _PROMOTED.get(key)
    if promoted is None:
        promoted = promote_many(((a, weak_a), (b, weak_b)))
        if a in _KIND and b in _KIND:
            _PROMOTED[key] = promoted
    return promoted


def promote_many(typed: tuple[Typed, ...], mode: str | None = None) -> Typed:
    """The dtype and weak type of a result of operands given as (dtype, weak type) pairs.

    `mode` None is the user's option; dtypes that no user mixes are joined by "standard".
    """
    pairs = {(canonical_dtype(dtype), weak and not is_bool(dtype)): None for dtype, weak in typed}
    dtypes = {dtype for dtype, _ in pairs}
    if not dtypes <= _TABLE.keys():
        if len(dtypes) == 1:
            return next(iter(dtypes)), False
        message = _promotion_message(tuple(pairs), "nothing")
        raise (TypeError if float0 in dtypes else TypePromotionError)(message)
    if len(pairs) == 1 and not next(iter(pairs))[1]:
        return next(iter(dtypes)), False
    rules: str = mode or config.numpy_dtype_promotion.value
    all_weak = all(weak for _, weak in pairs)
    if all_weak and rules == "standard":
        nodes = {dtype.name for dtype in dtypes}
    else:
        nodes = {_STAR[_KIND[dtype]] if weak else dtype.name for dtype, weak in pairs}
    node = _join(nodes, _BOUNDS[rules])
    if node is None:
        raise TypePromotionError(_promotion_message(tuple(pairs), rules))
    promoted = _DTYPE[_UNSTAR.get(node, node)]
    if all_weak:
        promoted = _DTYPE[_WIDEST[_KIND[promoted]]]
    return canonical_dtype(promoted), all_weak or node in _UNSTAR


def _join(nodes: set[str], bounds: dict[str, frozenset[str]]) -> str | None:
    """The least node above all of `nodes`, or None."""
    common = frozenset.intersection(*(bounds[node] for node in nodes))
    for node in common:
        if bounds[node] == common:
            return node
    return None


def _promotion_message(pairs: tuple[Typed, ...], mode: str) -> str:
    names = ", ".join(f"a Python {scalar_type_of(d).__name__}" if w else long_name(d)
                      for d, w in pairs)
    kinds = {scalar_kind(dtype) for dtype, _ in pairs}
    narrow = sorted(d.name for d, _ in pairs if d in _TABLE and _TABLE[d][1] < 16
                    and (d.name in _SMALL_INTS or d.name in _SMALL_FLOATS))
    if "float0" in kinds:
        need = ("float0s do not support any operations by design, because they stand for "
                "derivatives that there are none of")
        remedy = "make zeros of it with np.zeros_like(x, dtype=float)"
    elif kinds & {"key", "extended"}:
        need = "keys never mix with another dtype"
        remedy = "operate on operands of the same dtype"
    elif mode == "strict":
        need = ("operands of one dtype are required, or Python scalars of its kind, because "
                "olympus_numpy_dtype_promotion is 'strict'")
        remedy = "cast with x.astype(...), or set the option to 'standard'"
    else:
        need = f"{', '.join(narrow)} has no implicit promotion, so that none happens unnoticed"
        remedy = "cast the operands to the dtype you want, for example x.astype('float32')"
    return f"dtype promotion: {names} given; {need}; {remedy}."


def _typed(x: object) -> Typed:
    """(dtype, weak type) of an array, tracer, aval, scalar, dtype or name of one."""
    python = _PYTHON.get(type(x))
    if python is not None:
        return python, python is not _PYTHON[bool]
    if isinstance(x, type):
        return as_dtype(x), x in _PYTHON and x is not bool
    if isinstance(x, (str, np.dtype, ExtendedDType)) or x is None:
        return as_dtype(x), False
    typed = getattr(x, "aval", x)
    if not hasattr(typed, "dtype"):     # others' arrays may have a method of that name
        typed = x
    dtype = getattr(typed, "dtype", None)
    if dtype is None or (type(x) is Limit):
        python = next((d for base, d in _PYTHON.items() if isinstance(x, base)), None)
        if python is not None:      # of an IntEnum and its like
            return python, True
        raise TypeError(f"dtype: {type(x).__name__} given; an array, a scalar or a dtype is "
                        "required; convert lists with olympus.numpy.asarray.")
    return as_dtype(dtype), bool(getattr(typed, "weak_type", False))


def result_type(*args: object, return_weak_type_flag: bool = False) -> Any:
    """The dtype that operands promote to; with the flag, the pair (dtype, weak type).

    Operands are arrays, scalars, dtypes or their names; `int`, `float` and `complex` count as
    weakly typed. Raises ValueError without operands, TypePromotionError where there is no join.

    Args:
      *args: the operands.
      return_weak_type_flag: whether to return the pair.
    Returns: A dtype, narrowed to 32 bits while x64 is off, or a pair of it and a bool.

    >>> import numpy as np
    >>> result_type(1, np.float16), result_type("int8", "uint8"), result_type(1.0)
    (dtype('float16'), dtype('int16'), dtype('float32'))
    """
    if not args:
        raise ValueError("result_type: nothing given; at least one array or dtype is required.")
    typed = tuple(map(_typed, args))
    if len(typed) == 2:  # memoised
        (a, weak_a), (b, weak_b) = typed
        promoted = promote_types(a, b, weak_a, weak_b)
    else:
        promoted = promote_many(typed)
    return promoted if return_weak_type_flag else promoted[0]


# --- scalar types -----------------------------------------------------------------------------

class ScalarType(type):
    """The class of `olympus.numpy.float32` and its kin, which make arrays when called.

    They stand for NumPy's scalar types: they equal and hash like those, and NumPy's scalars are
    their instances; a call makes an `Array`. `np.dtype` takes them. The numpy layer sets the
    constructor (`set_scalar_constructor`). A subclass makes the same arrays, and may have names for
    some of them.
    """

    dtype: np.dtype
    construct: ClassVar[Callable[[Any, np.dtype], Array] | None] = None

    def __call__(self, x: Any = 0) -> Array:
        if ScalarType.construct is None:
            raise TypeError(f"{self.__name__}: called; array constructors need olympus.numpy; "
                            "import it first.")
        return ScalarType.construct(x, self.dtype)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ScalarType):
            return self.dtype == other.dtype
        return self.dtype == other if isinstance(other, np.dtype) else other is self.dtype.type

    def __hash__(self) -> int:
        return hash(self.dtype.type)

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, self.dtype.type)

    def __repr__(self) -> str:
        return f"{self.__module__}.{self.__qualname__}"


def scalar_type(name: str) -> ScalarType:
    """The class that stands for a dtype in `olympus.numpy`."""
    dtype = _DTYPE[name]
    return ScalarType(name, (), {
        "__module__": "olympus.numpy", "__slots__": (), "dtype": dtype,
        "__doc__": f"The dtype {name}; `{name}(x)` makes an array of it.\n\n"
                   f">>> import olympus.numpy as onp\n>>> onp.dtype(onp.{name})\n{dtype!r}\n"})


def set_scalar_constructor(construct: Callable[[Any, np.dtype], Array]) -> None:
    """Say what calling a scalar type does: `construct(x, dtype)` makes the array."""
    ScalarType.construct = staticmethod(construct)


bool_ = scalar_type("bool")
uint1 = scalar_type("uint1")
uint2 = scalar_type("uint2")
uint4 = scalar_type("uint4")
uint8 = scalar_type("uint8")
uint16 = scalar_type("uint16")
uint32 = scalar_type("uint32")
uint64 = scalar_type("uint64")
int1 = scalar_type("int1")
int2 = scalar_type("int2")
int4 = scalar_type("int4")
int8 = scalar_type("int8")
int16 = scalar_type("int16")
int32 = scalar_type("int32")
int64 = scalar_type("int64")
float4_e2m1fn = scalar_type("float4_e2m1fn")
float6_e2m3fn = scalar_type("float6_e2m3fn")
float6_e3m2fn = scalar_type("float6_e3m2fn")
float8_e3m4 = scalar_type("float8_e3m4")
float8_e4m3 = scalar_type("float8_e4m3")
float8_e4m3b11fnuz = scalar_type("float8_e4m3b11fnuz")
float8_e4m3fn = scalar_type("float8_e4m3fn")
float8_e4m3fnuz = scalar_type("float8_e4m3fnuz")
float8_e5m2 = scalar_type("float8_e5m2")
float8_e5m2fnuz = scalar_type("float8_e5m2fnuz")
float8_e8m0fnu = scalar_type("float8_e8m0fnu")
bfloat16 = scalar_type("bfloat16")
float16 = scalar_type("float16")
float32 = scalar_type("float32")
float64 = scalar_type("float64")
complex64 = scalar_type("complex64")
complex128 = scalar_type("complex128")

single, double, float_ = float32, float64, float64
csingle, cdouble, complex_ = complex64, complex128, complex128
int_, uint = int64, uint64
