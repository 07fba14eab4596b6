"""Abstract values: a program's knowledge of an array before it runs.

`ShapedArray` is interned: equal avals are one object, so `x.aval is y.aval` is the fast test for
"no promotion needed". Interning is an optimisation only; `==` and `hash` stay structural.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, TypeAlias, cast
from weakref import WeakValueDictionary

import numpy as np

from ..base.config import remove_size_one_mesh_axis_from_type
from ..base.typing import DimSize, DTypeLike, Shape, Value
from ..base.util import ByKey, lazy_imports, memoize
from . import dtypes
from .layout import AUTO, Format
from .memory import Space
from .mesh import NO_MESH, AbstractMesh, ManualAxisType, Mesh, get_abstract_mesh
from .shape import canonical_shape, floor_div, prod, static_int
from .sharding import (
    Entry, NamedSharding, NoMeshError, PartitionSpec, Sharding, ShardingLike, axes_of,
    over_mesh_around, sharding_in_types, space_of,
)

with lazy_imports(__name__):       # where there are references
    from . import refs as _refs

_EMPTY: frozenset[str] = frozenset()
_NOT_MANUAL = ManualAxisType()


class AbstractValue:
    """Base of all avals: arrays, typed keys, references, tokens and types of users.

    >>> import olympus
    >>> isinstance(olympus.typeof(1.0), olympus.core.AbstractValue)
    True
    """

    __slots__ = ("__weakref__",)
    tagged: Any = False
    is_array = False    # whether its values are arrays: only these have a shape and a dtype
    is_high = False     # whether its values are objects of a user's class: see `types.hi`
    has_axes = False    # whether its values have a shape: arrays, and references to them
    mutable = False     # whether its values are references, whose contents operations replace
    #: What traced values of this type do in another way than arrays; of references
    methods: ClassVar[dict[str, Callable[..., object]]] = {}

    def attribute_of(self, tracer: Value, name: str) -> Value:
        """The attribute of a traced value that its class lacks."""
        raise AttributeError(f"a traced value of type {self} has no attribute {name!r}")

    def to_tangent_aval(self) -> AbstractValue:
        """The aval of a tangent of such a value."""
        raise NotImplementedError(type(self).__name__)

    def to_ct_aval(self) -> AbstractValue:
        """The aval of a cotangent of such a value."""
        return self.to_cotangent_aval()

    def to_cotangent_aval(self) -> AbstractValue:
        return self.to_tangent_aval()

    def normalize(self) -> AbstractValue:
        """The type that values have in programs: without weak types."""
        return self

    def vspace_add(self, x: Value, y: Value) -> Value:
        """The sum of two tangents of this type."""
        return x + y

    # A value of any type has parts, a row of values whose types devices know: as a rule itself.
    def lo_ty(self) -> list[AbstractValue]:
        """The types of the parts of a value."""
        return [self]

    def lower_val(self, value: Value, /) -> list[Value]:
        """The parts of a value."""
        return [value]

    def raise_val(self, *parts: Value) -> Value:
        """The value of these parts."""
        part, = parts
        return part

    def str_short(self, short_dtypes: bool = False) -> str:
        """The text that printed programs and messages show."""
        return type(self).__name__


#: The classes of avals of references, and of users' types, once there are any: until then no pass
#: looks for them.
MUTABLE: list[type[AbstractValue]] = []
HIGH: list[type[AbstractValue]] = []


class ShapedArray(AbstractValue):
    """Shape, dtype and weak type of an array, with sharding, varying axes and memory space if set.

    Args:
      shape: sequence of non-negative ints.
      dtype: anything that names a dtype.
      weak_type: whether the dtype gives way to any other in promotion, as a Python scalar's does.
      sharding: how it is spread over a mesh.
      manual_axis_type: a `ManualAxisType`, the manual axes of a mesh along which it varies.
      memory_space: in which memory of its device it is.

    >>> import olympus
    >>> aval = olympus.core.ShapedArray((2, 3), "float32")
    >>> aval, aval.size
    (ShapedArray(float32[2,3]), 6)
    """

    __slots__ = ("shape", "dtype", "weak_type", "_sharding", "vma", "_memory_space", "tagged",
                 "ndim", "size", "_tangent")
    is_array = has_axes = True

    shape: tuple[int, ...]
    dtype: np.dtype
    weak_type: bool
    _sharding: NamedSharding | None     # None: of no mesh
    vma: frozenset[str]
    _memory_space: Space | None         # None: the device's
    tagged: bool                        # whether any of those three says something
    ndim: int
    size: int
    _tangent: ShapedArray | None        # `to_tangent_aval`, once asked for

    def __new__(cls, shape: Shape, dtype: DTypeLike, weak_type: bool = False, *,
                sharding: Sharding | None = None,
                manual_axis_type: ManualAxisType = _NOT_MANUAL,
                memory_space: Space = Space.Device) -> ShapedArray:
        return make_aval(canonical_shape(shape), dtypes.as_dtype(dtype), bool(weak_type),
                         sharding, _varying("ShapedArray", manual_axis_type), memory_space)

    def update(self, **changes: Any) -> ShapedArray:
        """The aval with the named fields changed: the one way to derive an aval from another.

        Another shape needs another sharding: none unless given.
        """
        get = changes.get
        if "manual_axis_type" in changes:
            changes["vma"] = _varying("ShapedArray", changes["manual_axis_type"])
        sharding = get("sharding", None if "shape" in changes else self._sharding)
        return make_aval(get("shape", self.shape), get("dtype", self.dtype),
                         get("weak_type", self.weak_type), sharding,
                         get("vma", self.vma), get("memory_space", self._memory_space))

    def at(self, sharding: Sharding | None) -> ShapedArray:
        """The aval of an array that has a sharding: in the memory that it says."""
        return make_aval(self.shape, self.dtype, self.weak_type, sharding, self.vma,
                         space_of(sharding))

    def with_axis(self, axis: int, size: DimSize, entry: Entry = None) -> ShapedArray:
        """The aval with one axis more, which is cut along `entry` where that is explicit."""
        shape = (*self.shape[:axis], size, *self.shape[axis:])
        if entry is not None and not (self.explicit and set(axes_of(entry)) <= set(
                self.sharding.mesh.explicit_axes)):
            entry = None
        return make_aval(shape, self.dtype, self.weak_type, self._sharding and _respecified(
            self._sharding, lambda p: (*p[:axis], entry, *p[axis:])), self.vma, self._memory_space)

    def without_axis(self, axis: int, size: DimSize | None = None) -> ShapedArray:
        """The aval without one axis, of size `size`."""
        if not self.tagged:
            return _without_axis(self, axis)
        shape = (*self.shape[:axis], *self.shape[axis + 1:])
        return make_aval(shape, self.dtype, self.weak_type, self._sharding and _respecified(
            self._sharding, lambda p: (*p[:axis], *p[axis + 1:])), self.vma, self._memory_space)

    @property
    def sharded(self) -> bool:
        """Whether the array is spread over a mesh."""
        return self._sharding is not None

    @property
    def explicit(self) -> bool:
        """Whether the type says how the array is cut."""
        return self._sharding is not None and bool(self._sharding.mesh.explicit_axes)

    @property
    def sharding(self) -> NamedSharding:
        """How the array is spread over a mesh, as far as types say it.

        The mesh is abstract; it has no axes for an array of one device. XLA decides along those
        that are not explicit.
        """
        return self._sharding or NamedSharding(NO_MESH, PartitionSpec(*[None] * self.ndim))

    # Types of users define these, too; their axis is a `MappingSpec`.
    def inc_rank(self, size: DimSize, spec: int | None) -> ShapedArray:
        """The type of an array of `size` such values along axis `spec`; None: of one for all."""
        return self if spec is None else self.with_axis(spec, size)

    def dec_rank(self, size: DimSize, spec: int | None) -> ShapedArray:
        """The type of one of the `size` values along axis `spec`; None: all are one."""
        return self if spec is None else self.without_axis(spec)

    def leading_axis_spec(self) -> int:
        """The axis along which loops take their rows."""
        return 0

    def shard(self, mesh: AbstractMesh | Mesh, manual_axes: frozenset[str], check_vma: bool,
              spec: PartitionSpec) -> ShapedArray:
        """The type of the part that a device has of an array cut as `spec` says."""
        vma = self.vma.union(*map(axes_of, spec)) if check_vma else self.vma
        return self.update(vma=vma, shape=tuple([
            floor_div(n, prod([mesh.shape[name] for name in axes_of(entry)]))
            for n, entry in zip(self.shape, (*spec, *[None] * self.ndim), strict=False)]))

    def unshard(self, mesh: AbstractMesh | Mesh, check_vma: bool, spec: PartitionSpec
                ) -> ShapedArray:
        """The type of the whole array whose parts on devices have this type."""
        outer = mesh.abstract_mesh
        return self.update(
            vma=self.vma - set(mesh.axis_names), shape=tuple([
                n * prod([mesh.shape[name] for name in axes_of(entry)])
                for n, entry in zip(self.shape, (*spec, *[None] * self.ndim), strict=False)]),
            sharding=NamedSharding(outer, spec) if outer.explicit_axes else None)

    def agrees(self, other: ShapedArray) -> bool:
        """Whether two types say the same of meshes and memory; along no explicit axis there is
        nothing said."""
        mine, its = self._sharding, other._sharding
        return self.vma == other.vma and self.sums == other.sums and (
            self._memory_space is other._memory_space) and (
            mine is its or mine is None or its is None or mine == its
            or not (mine.mesh.explicit_axes or its.mesh.explicit_axes))

    @property
    def sums(self) -> tuple[frozenset[str], frozenset[str]]:
        """Along which axes the value is unreduced, and along which reduced."""
        if self._sharding is None:
            return _EMPTY, _EMPTY
        return self._sharding.spec.unreduced, self._sharding.spec.reduced

    @property
    def manual_axis_type(self) -> ManualAxisType:
        """Along which manual axes of a mesh the value varies, is unreduced, or is reduced."""
        manual = self.sharding.mesh.manual_axes
        unreduced, reduced = [names.intersection(manual) for names in self.sums]
        return ManualAxisType(varying=self.vma, unreduced=unreduced, reduced=reduced)

    mat = manual_axis_type

    @property
    def memory_space(self) -> Space:
        """In which memory of its device the array is."""
        return self._memory_space or Space.Device

    def strong(self) -> ShapedArray:
        """The aval without weak type."""
        return self.update(weak_type=False) if self.weak_type else self

    normalize = strong

    def to_tangent_aval(self) -> ShapedArray:
        """Same shape; dtype float0 where derivatives do not exist."""
        tangent = self._tangent
        if tangent is None:
            tangent = self._tangent = self.update(dtype=dtypes.tangent_dtype(self.dtype))
        return tangent

    def to_cotangent_aval(self) -> ShapedArray:
        """The type of a cotangent: a tangent's, in which unreduced and reduced change places."""
        tangent = self.to_tangent_aval()
        if self._sharding is None:
            return tangent
        return tangent.update(sharding=self._sharding.of_cotangent())

    def str_short(self, short_dtypes: bool = False) -> str:
        name = dtypes.short_name(self.dtype) if short_dtypes else dtypes.long_name(self.dtype)
        if not self.tagged:
            return f"{name}[{','.join(map(str, self.shape))}]"
        dims = ",".join([f"{n}{_axes_text(e)}" for n, e in
                         zip(self.shape, self.sharding.spec, strict=True)])
        space = "" if self._memory_space is None else f"<{self._memory_space.name.lower()}>"
        spec = self.sharding.spec
        axes = ", ".join([f"{letter}:{_names_text(sorted(map(str, names)))}" for letter, names in
                          (("V", self.vma), ("U", spec.unreduced), ("R", spec.reduced)) if names])
        return f"{name}{space}[{dims}]" + (f"{{{axes}}}" if axes else "")

    def __str__(self) -> str:
        return self.str_short()

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short()}{weak})"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"len(): {self} given; len() of unsized object; an axis is required; "
                            "use x.size, or x[None].")
        return static_int(self.shape[0], "len()", "size")

    def _key(self) -> tuple:
        return (self.shape, self.dtype, self.weak_type, self._sharding, self.vma,
                self._memory_space)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return type(other) is ShapedArray and self._key() == other._key()

    # Equal avals are one object, so identity is a hash; a structural one costs a Python frame per
    # look-up on the hot path. Two equal objects (a race of threads) would only miss a memo.
    __hash__ = object.__hash__

    def __reduce__(self) -> tuple:
        return make_aval, self._key()


def _varying(what: str, axes: ManualAxisType | None) -> frozenset[str]:
    """The axes that values of a type vary along."""
    if axes is None:
        return _EMPTY
    if axes.unreduced or axes.reduced:
        raise ValueError(f"{what}: {axes} given; only varying axes are known of a manual mesh; "
                         "name unreduced axes in a PartitionSpec.")
    return axes.varying


def _respecified(sharding: NamedSharding, change: Callable[[tuple[Entry, ...]], Sequence[Entry]]
                 ) -> NamedSharding:
    spec = sharding.spec
    return sharding.update(spec=spec.update(partitions=change(spec.partitions)))


def _axes_text(entry: object) -> str:
    names = axes_of(entry)
    return f"@{_names_text(names)}" if names else ""


def _names_text(names: Sequence[str]) -> str:
    return str(names[0]) if len(names) == 1 else f"({','.join(map(str, names))})"


_table: WeakValueDictionary[tuple, ShapedArray] = WeakValueDictionary()
_references = vars(_table)["data"]       # `_table.get` reads it, in a frame that costs more
# Types that a trace drops are made again by the next one, at seven times a look-up's cost.
_recent: deque[ShapedArray] = deque(maxlen=1024)


def make_aval(shape: tuple[int, ...], dtype: np.dtype, weak_type: bool = False,
              sharding: object = None, vma: frozenset[str] = _EMPTY,
              memory_space: Space | None = None) -> ShapedArray:
    """The interned aval of fields that are canonical already (the constructor canonicalises)."""
    if sharding is not None:
        sharding = sharding_in_types(sharding, len(shape))
    if memory_space is Space.Device:
        memory_space = None
    if vma and remove_size_one_mesh_axis_from_type.value:
        sizes = (get_abstract_mesh() if sharding is None else sharding.mesh).shape
        vma = frozenset([n for n in vma if sizes.get(n) != 1])
    key = (shape, dtype, weak_type, sharding, vma, memory_space)
    weak = _references.get(key)
    aval = None if weak is None else weak()
    if aval is not None:
        return aval
    if sharding is not None:
        sharding.check_compatible_aval(shape)
    self = object.__new__(ShapedArray)
    self.shape, self.dtype, self.weak_type = shape, dtype, weak_type
    self._sharding, self.vma, self._memory_space = sharding, vma, memory_space
    self.tagged = sharding is not None or bool(vma) or memory_space is not None
    self.ndim, self.size = len(shape), prod(shape)
    self._tangent = None
    if not self.tagged and type(self.size) is int:      # others hold meshes and scopes
        _recent.append(self)
    return _table.setdefault(key, self)


@memoize(1024)
def _without_axis(aval: ShapedArray, axis: int) -> ShapedArray:
    return make_aval((*aval.shape[:axis], *aval.shape[axis + 1:]), aval.dtype, aval.weak_type)


def is_float0(aval: Aval) -> bool:
    """Whether this is the aval of tangents of values without derivative."""
    return aval.is_array and aval.dtype == dtypes.float0


def matches(actual: Aval, required: Aval) -> bool:
    """Whether values of a type may stand where another is required: weak types and tags may differ.
    """
    if actual is required:
        return True
    if not (actual.is_array and required.is_array):
        return actual == required or actual.normalize() == required.normalize()
    return actual.shape == required.shape and actual.dtype == required.dtype


def has_tangent(aval: Aval) -> bool:
    """Whether values of this aval can have a derivative: floats and complex numbers can."""
    return not is_float0(aval.to_tangent_aval())


def physical_aval(aval: Any) -> ShapedArray:
    """The aval of the array that a device holds for a value: of another dtype for some."""
    if not aval.is_array:
        return aval.physical
    dtype = aval.dtype
    if not isinstance(dtype, dtypes.ExtendedDType):
        return aval if dtype != dtypes.float0 else make_aval(aval.shape, dtypes.as_dtype(bool))
    return make_aval((*aval.shape, *dtype.physical_shape), dtype.physical_dtype,
                     memory_space=getattr(aval, "memory_space", None))


def scalar_aval(kind: type) -> ShapedArray:
    """The weakly typed aval of a Python scalar type, at the current x64 setting."""
    return make_aval((), dtypes.python_scalar_dtype(kind), kind is not bool)


def memory_kind(aval: object) -> str | None:
    """The kind of memory that a type names; None: the devices' own."""
    space = getattr(aval, "_memory_space", None)
    return None if space is None else space.value


class TokenType(dtypes.ExtendedDType):
    """The dtype of tokens: on a device, an array without elements."""

    __slots__ = ()
    type, name, itemsize = dtypes.extended, "token", 0
    physical_shape, physical_dtype = (0,), dtypes.as_dtype(bool)

    def wrap(self, array: object) -> Token:
        """A token around the array that the device holds."""
        return Token(array)


class MappingSpec:
    """How `vmap` maps a value of a user's type, as an axis' number does for an array.

    Subclass it, with `==` and `hash`; the type's `inc_rank` and `dec_rank` interpret it.

    >>> from olympus.experimental import hiolympus
    >>> class Parts(hiolympus.MappingSpec):
    ...     pass
    >>> isinstance(Parts(), hiolympus.MappingSpec)
    True
    """

    __slots__ = ()


class AbstractToken(AbstractValue):
    """A value without data that orders side effects. Rank 0 for whoever asks.

    >>> import olympus
    >>> olympus.core.abstract_token.shape, olympus.core.abstract_token.str_short()
    ((), 'Tok')
    """

    __slots__ = ()
    shape: tuple[int, ...] = ()
    dtype: Any = TokenType()
    weak_type, ndim, size, sharding, sharded = False, 0, 1, None, False
    vma: frozenset[str] = frozenset()
    memory_space = Space.Device
    physical = make_aval((0,), TokenType.physical_dtype)

    def update(self, **changes: object) -> AbstractToken:
        return self

    strong = update

    def to_tangent_aval(self) -> ShapedArray:
        return make_aval((), dtypes.float0)

    def str_short(self, short_dtypes: bool = False) -> str:
        return "Tok"

    def __reduce__(self) -> tuple:
        return _the_token, ()       # there is one


def _the_token() -> AbstractToken:
    return abstract_token


abstract_token = AbstractToken()
# What says ShapedArray of values in general (`typeof`, variables) has tokens' avals, too; these
# have the attributes that are asked for there.
Aval: TypeAlias = ShapedArray | AbstractToken


class Token:
    """A token that a program returned; `_base_array` is its form on the device.

    >>> import olympus
    >>> token = olympus.jit(olympus.lax.create_token)()
    >>> type(token.block_until_ready()).__name__
    'Token'
    """

    __slots__ = ("_base_array", "__weakref__")
    aval = abstract_token
    dtype = abstract_token.dtype

    def __init__(self, buf: Any) -> None:
        self._base_array = buf

    def block_until_ready(self) -> Token:
        """Wait until the program that made the token has run; return it."""
        self._base_array.block_until_ready()
        return self


def check_truth(aval: ShapedArray) -> None:
    """ValueError for an array that is neither true nor false."""
    if aval.size == 0:
        raise ValueError(f"bool(): {aval} given. The truth value of an empty array is ambiguous; "
                         "use x.size > 0.")
    if aval.size != 1:
        raise ValueError(f"bool(): {aval} given. The truth value of an array with more than one "
                         "element is ambiguous.\n  Use a.any() or a.all().")


def check_scalar(what: str, aval: ShapedArray) -> None:
    """TypeError for an array that has axes."""
    if aval.shape:
        raise TypeError(f"{what}(): {aval} given. Only scalar arrays can be converted to Python "
                        "scalars;\n  use x.item() or x[0].")


def check_index(aval: ShapedArray) -> None:
    """TypeError for anything but an integer scalar."""
    if aval.shape or not dtypes.is_integer(aval.dtype):
        raise TypeError(f"__index__(): {aval} given. Only integer scalar arrays can be converted "
                        "to a scalar index; use x.astype(int), or x.item() of one element.")


class ShapeDtypeStruct(ByKey):
    """Shape and dtype of an array that need not exist: an argument for tracing and lowering.

    Args:
      shape: ints.
      dtype: a dtype or its name.
      sharding: where the array would be, or the `Format` that it would have; None for anywhere. A
        `PartitionSpec` is over the mesh of `set_mesh` where `sharding` is read.
      weak_type: whether its dtype gives way to others, as a Python number's.
      manual_axis_type: a `ManualAxisType`, the manual axes of a mesh along which it varies.
      is_ref: whether it is a mutable reference.

    >>> import olympus
    >>> olympus.ShapeDtypeStruct((2, 3), "float32")
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    __slots__ = ("shape", "dtype", "_sharding", "layout", "weak_type", "vma", "is_ref",
                 "__weakref__")

    def __init__(self, shape: Iterable[DimSize], dtype: DTypeLike, *,
                 sharding: ShardingLike | Format = None, weak_type: bool = False,
                 manual_axis_type: ManualAxisType | None = None, is_ref: bool = False) -> None:
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified; pass one, e.g. "
                             "'float32'.")
        if not isinstance(shape, Iterable):
            raise TypeError(f"ShapeDtypeStruct: shape={shape!r} given: {type(shape).__name__!r} "
                            "object is not iterable; a tuple of ints is required.")
        self.shape, self.dtype = canonical_shape(shape), dtypes.as_dtype(dtype)
        self.layout = None
        if not (sharding is None or isinstance(sharding, (Sharding, PartitionSpec, Format))):
            raise ValueError("ShapeDtypeStruct: sharding should be an instance of "
                             "`olympus.sharding.Sharding`, `olympus.sharding.PartitionSpec` or "
                             f"`olympus.experimental.layout.Format`; got {sharding!r} of type "
                             f"{type(sharding).__name__}.")
        if isinstance(sharding, Format):
            if sharding.layout is AUTO:
                raise TypeError(f"ShapeDtypeStruct: {sharding} given; `Layout.AUTO` cannot be used "
                                "in place of a device-local layout in a `ShapeDtypeStruct`: an "
                                "array's layout is required; leave it out.")
            sharding, self.layout = sharding.sharding, sharding.layout
        self._sharding, self.weak_type = sharding, weak_type
        self.vma = _varying("ShapeDtypeStruct", manual_axis_type)
        self.is_ref = is_ref

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """Shape, dtype and weak type of an array or a Python number, and where an array is bound.

        TypeError for a value without shape or dtype.
        """
        if type(x) in (bool, int, float, complex):
            x = scalar_aval(type(x))
        if not (hasattr(x, "shape") and hasattr(x, "dtype")):
            raise TypeError(f"ShapeDtypeStruct.like: {x!r:.60} of type {type(x).__name__} given; "
                            "something with a shape and a dtype is required; use eval_shape for "
                            "trees.")
        said = x.aval if hasattr(x, "_trace") else x    # of a traced value, its type says where
        there = getattr(said, "committed", True) and getattr(said, "explicit", True)
        sharding = getattr(said, "sharding", None) if there else None
        return cls(x.shape, x.dtype, sharding=sharding, weak_type=getattr(x, "weak_type", False))

    @classmethod
    def of_type(cls, aval: Aval) -> Aval | ShapeDtypeStruct:
        """The struct of a type; of a user's the type itself, which has no shape."""
        return aval if aval.is_high else cls.like(aval)

    @property
    def sharding(self) -> Sharding | None:
        """Where the array would be; None for anywhere. TypeError for a spec without a mesh."""
        if not isinstance(self._sharding, PartitionSpec):
            return self._sharding
        try:
            return over_mesh_around("ShapeDtypeStruct", self._sharding)
        except NoMeshError as error:
            raise TypeError(f"{error} When specifying PartitionSpec to `ShapeDtypeStruct`, the "
                            "context mesh cannot be empty.") from None

    @property
    def format(self) -> Format:
        """Layout and sharding; None each where anything will do."""
        return Format(self.layout, self.sharding)

    @property
    def manual_axis_type(self) -> ManualAxisType | None:
        """Along which manual axes of a mesh the value varies; None if it does not."""
        return ManualAxisType(varying=self.vma) if self.vma else None

    @property
    def aval(self) -> ShapedArray:
        dtype = dtypes.canonical_dtype(self.dtype)
        aval = make_aval(self.shape, dtype, self.weak_type, self.sharding, self.vma,
                         space_of(self.sharding))
        return cast(ShapedArray, _refs.ref_aval(aval)) if self.is_ref else aval

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        raise TypeError(f"an operation: {self} given. A ShapeDtypeStruct does not have a value; an "
                        "array is required; pass one, or trace with this as an argument.")

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """A copy with the named fields changed."""
        where = self._sharding if self.layout is None else self.format
        if self.layout is not None and not isinstance(changes.get("sharding", where), Format):
            raise ValueError(f"updating ShapeDtypeStruct {self}: sharding={changes['sharding']} "
                             "given; it has a layout, so that a Format is required.")
        fields = {"shape": self.shape, "dtype": self.dtype, "sharding": where,
                  "weak_type": self.weak_type, "manual_axis_type": self.manual_axis_type,
                  "is_ref": self.is_ref}
        return ShapeDtypeStruct(**{**fields, **changes})

    __len__ = ShapedArray.__len__

    def __repr__(self) -> str:
        extra = "" if self._sharding is None else f", sharding={self._sharding}"
        extra += "" if self.layout is None else f", format={self.layout}"
        extra += ", weak_type=True" if self.weak_type else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={dtypes.long_name(self.dtype)}{extra})"

    def _key(self) -> tuple:
        return (self.shape, self.dtype, self.sharding, self.layout, self.weak_type, self.vma,
                self.is_ref)
