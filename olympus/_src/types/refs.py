"""The type of references: places whose content, an array or a value of a user's type, operations
replace.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from operator import attrgetter
from typing import Any, ClassVar
from weakref import WeakValueDictionary

from ..base.typing import DimSize, MappedAxis, Reference
from .avals import MUTABLE, AbstractValue, Aval, ShapedArray, is_float0
from .sharding import Entry, Sharding


def _inner(name: str, doc: str) -> property:
    return property(attrgetter(f"inner.{name}"), doc=doc)


class RefAval(AbstractValue):
    """The aval of a reference; `inner` is the aval of its content.

    Args:
      inner_aval: the aval of the content.

    >>> import olympus
    >>> olympus.ref.AbstractRef(olympus.typeof(1.0)) is olympus.typeof(olympus.new_ref(1.0))
    True
    """

    __slots__ = ("inner",)
    inner: ShapedArray
    mutable = has_axes = True
    #: What traced references do as references and not as arrays; set by `numpy.refs`.
    methods: ClassVar[dict[str, Callable[..., object]]] = {}

    shape = _inner("shape", "The content's shape.")
    dtype = _inner("dtype", "The content's dtype.")
    weak_type = _inner("weak_type", "Whether the content's dtype is weak.")
    ndim = _inner("ndim", "The content's number of axes.")
    size = _inner("size", "The content's number of elements.")
    tagged = _inner("tagged", "Whether the content's type has tags.")
    vma = _inner("vma", "The axes of a mesh along which the content varies.")
    sums = _inner("sums", "The axes along which the content is unreduced, and reduced.")
    sharding = _inner("sharding", "How the content is spread over a mesh.")
    sharded = _inner("sharded", "Whether the content is spread over a mesh.")
    explicit = _inner("explicit", "Whether the type says how the content is cut.")
    memory_space = _inner("memory_space", "The memory of the device that the content is in.")
    manual_axis_type = _inner("manual_axis_type", "The content's manual axes.")

    def __new__(cls, inner_aval: ShapedArray) -> RefAval:
        if not isinstance(inner_aval, AbstractValue) or inner_aval.mutable:
            raise TypeError(f"AbstractRef: {inner_aval!r:.60} given; the type of a content is "
                            "required, such as olympus.typeof(x).")
        return ref_aval(inner_aval.strong() if inner_aval.is_array else inner_aval)

    def attribute_of(self, tracer: Reference, name: str) -> Reference:
        """The method of a traced reference."""
        if name in self.methods:
            return functools.partial(self.methods[name], tracer)
        raise AttributeError(f"a traced reference {self} has no attribute {name!r}; write "
                             f"ref[...].{name} for one of its content.")

    @property
    def inner_aval(self) -> ShapedArray:
        """The content's aval, by JAX's name."""
        return self.inner

    def update(self, **changes: object) -> RefAval:
        """The aval of a reference to an array of the changed type."""
        return ref_aval(self.inner.update(**changes))

    def strong(self) -> RefAval:
        """The aval without weak type."""
        return ref_aval(self.inner.strong())

    def at(self, sharding: Sharding | None) -> RefAval:
        """The aval of a reference whose content has a sharding."""
        return ref_aval(self.inner.at(sharding))

    def with_axis(self, axis: int, size: DimSize, entry: Entry = None) -> RefAval:
        """The aval of a reference to an array with one axis more."""
        return ref_aval(self.inner.with_axis(axis, size, entry))

    def without_axis(self, axis: int, size: DimSize | None = None) -> RefAval:
        """The aval of a reference to one slice of the content."""
        return ref_aval(self.inner.without_axis(axis, size))

    def leading_axis_spec(self) -> MappedAxis:
        """How rows of the content are mapped: an array's along its first axis."""
        return self.inner.leading_axis_spec() if self.inner.is_high else 0

    def to_tangent_aval(self) -> RefAval | ShapedArray:
        """A reference to the tangent; float0 where there is none."""
        return _of_tangent(self.inner.to_tangent_aval())

    def to_cotangent_aval(self) -> RefAval | ShapedArray:
        """A reference to the cotangent; float0 where there is none."""
        return _of_tangent(self.inner.to_cotangent_aval())

    def agrees(self, other: Aval | RefAval) -> bool:
        """Whether two types say the same of meshes and memory."""
        return type(other) is RefAval and self.inner.agrees(other.inner)

    def str_short(self, short_dtypes: bool = False) -> str:
        return f"Ref{{{self.inner.str_short(short_dtypes)}}}"

    def __len__(self) -> int:
        return len(self.inner)

    def __str__(self) -> str:
        return self.str_short()

    __repr__ = __str__

    def __reduce__(self) -> tuple[object, ...]:
        return ref_aval, (self.inner,)


_table: WeakValueDictionary[ShapedArray, RefAval] = WeakValueDictionary()


def ref_aval(content: ShapedArray) -> RefAval:
    """The one aval of references to arrays of a type."""
    aval = _table.get(content)
    if aval is None:
        aval = object.__new__(RefAval)
        aval.inner = content
        aval = _table.setdefault(content, aval)
    return aval


def _of_tangent(tangent: ShapedArray) -> RefAval | ShapedArray:
    return tangent if is_float0(tangent) else ref_aval(tangent)


def inner(aval: object) -> ShapedArray:
    """The content's aval of a reference's, any other as it is."""
    ref_type: Any = aval
    return ref_type.inner if type(aval) is RefAval else ref_type


MUTABLE.append(RefAval)
