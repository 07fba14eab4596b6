"""Types of users: a value of one is an object of the user's class, and a row of parts.

    object  ── lower_val ─►  parts, arrays of the types `lo_ty`  ── raise_val ─►  object

Programs record operations on such values as they are; the pass `interpreters.parts` puts their
parts in their place before a program is lowered. Everything else that a transformation asks of such
a value is a method of its type, and needed only where that transformation meets one.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, NamedTuple, NoReturn, TypeAlias

from ..base.typing import DimSize, MappedAxis, PyTree, Value
from .avals import HIGH, AbstractValue, MappingSpec
from .mesh import AbstractMesh, Mesh
from .sharding import PartitionSpec, Sharding

AnyMesh: TypeAlias = Mesh | AbstractMesh


class NotAnArrayError(TypeError, AttributeError):
    """What an operation on arrays is told that asks a value of a user's type for its dtype."""


def _needed(aval: object, method: str, use: str) -> NoReturn:
    name = type(aval).__name__
    raise NotImplementedError(f"{use} requires {name} to implement the `{method}` method: {aval} "
                              f"given, whose type has none; define it in class {name}.")


_OF_ARRAYS = frozenset(("shape", "dtype", "ndim", "size", "itemsize"))


class HiType(AbstractValue):
    """The base of types of users: subclass it, and register the class of values.

    A type is immutable, with `==` and `hash` (a frozen dataclass has both): equal types share
    programs. `lo_ty`, `lower_val` and `raise_val` give the arrays of a value; a method that is
    missing is named where it is needed.

    >>> from dataclasses import dataclass
    >>> from olympus.experimental import hiolympus
    >>> @dataclass
    ... class Interval:
    ...     low: object
    ...     high: object
    >>> @dataclass(frozen=True)
    ... class IntervalType(hiolympus.HiType):
    ...     of: olympus.core.ShapedArray
    ...     def lo_ty(self):
    ...         return [self.of, self.of]
    ...     def lower_val(self, interval):
    ...         return [interval.low, interval.high]
    ...     def raise_val(self, low, high):
    ...         return Interval(low, high)
    >>> hiolympus.register_hitype(Interval, lambda x: IntervalType(olympus.typeof(x.low)))
    >>> olympus.jit(lambda x: x)(Interval(*onp.arange(2)))
    Interval(low=Array(0, dtype=int32), high=Array(1, dtype=int32))
    """

    __slots__ = ()
    is_high = True
    has_qdd = False         # whether a value's content may change its type: never here
    # Passes' further questions, answered as for a type without mesh, memory or dtype.
    weak_type, explicit, sharded = False, False, False
    vma: Any = frozenset()
    memory_space, _memory_space, _sharding = None, None, None

    def __eq__(self, other: object) -> bool:
        _needed(self, "__eq__", "type equality")

    def __hash__(self) -> int:
        name = type(self).__name__
        raise NotImplementedError(f"type equality requires {name} to implement the `__hash__` "
                                  "method; make it a frozen dataclass, or define __eq__ and "
                                  "__hash__.")

    def str_short(self, short_dtypes: bool = False) -> str:
        """The text that printed programs and messages show."""
        return str(self)

    def attribute_of(self, tracer: Value, name: str) -> Value:
        """The attribute of a traced value: an `aval_method` or `aval_property` of its type, or
        the type's own attribute of this name.
        """
        attribute = getattr(type(self), name, None)
        if isinstance(attribute, aval_property):
            return attribute.fget(tracer)
        if isinstance(attribute, aval_method):
            return functools.partial(attribute.fun, tracer)
        attribute = getattr(self, name, self)
        if attribute is not self and not callable(attribute):
            return attribute
        if name in _OF_ARRAYS:
            self.__getattr__(name)
        raise AttributeError(f"a traced value of type {self} has no attribute {name!r}; give its "
                             f"type, class {type(self).__name__}, an aval_property or aval_method "
                             "of this name.")

    def __getattr__(self, name: str) -> NoReturn:
        if name not in _OF_ARRAYS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise NotAnArrayError(
            f"a value of type {self} given; an array is required, since the operation asks for "
            f"its {name} and knows nothing of the type {type(self).__name__}; convert the value, "
            "or define an operation on it as an olympus.experimental.hiolympus.HiPrim.")

    def strong(self) -> HiType:
        """The type itself: only types of arrays can be weak."""
        return self

    def update(self, **changes: object) -> HiType:
        """The type itself, which has no fields that a pass may change."""
        return self

    # What values are made of

    def lo_ty(self) -> list[AbstractValue]:
        """The types of the parts of a value: `ShapedArray`s, or types of users."""
        _needed(self, "lo_ty", "lowering (e.g. under jit)")

    def lower_val(self, value: Value, /) -> list[Value]:
        """The parts of a value, of the types `lo_ty`."""
        _needed(self, "lower_val", "lowering values (e.g. under jit)")

    def raise_val(self, *parts: Value) -> Value:
        """The value of these parts."""
        _needed(self, "raise_val", "raising lowered values (e.g. under jit)")

    # Derivatives

    def to_tangent_aval(self) -> AbstractValue:
        """The type of a tangent: of this kind, of another one, or of an array."""
        _needed(self, "to_tangent_aval", "autodiff")

    def to_ct_aval(self) -> AbstractValue:
        """The type of a cotangent; unless overridden, a tangent's."""
        return self.to_tangent_aval()

    def to_cotangent_aval(self) -> AbstractValue:
        return self.to_ct_aval()

    def vspace_zero(self) -> Value:
        """The zero of a type of tangents."""
        _needed(self, "vspace_zero", "use as a tangent/cotangent type")

    def vspace_add(self, x: Value, y: Value) -> Value:
        """The sum of two values of a type of tangents."""
        _needed(self, "vspace_add", "use as a tangent/cotangent type")

    # vmap and loops. None as a spec: all elements share one value.

    def inc_rank(self, size: DimSize | None, spec: MappedAxis) -> HiType:
        """The type of `size` such values together, mapped as `spec` says."""
        _needed(self, "inc_rank", "vmap")

    def dec_rank(self, size: DimSize | None, spec: MappedAxis) -> HiType:
        """The type of one of `size` values that are mapped as `spec` says."""
        _needed(self, "dec_rank", "vmap")

    def leading_axis_spec(self) -> MappingSpec:
        """How the rows of a loop are mapped: every part has them along its first axis."""
        _needed(self, "leading_axis_spec", "scan")

    # The questions that passes ask of arrays' types; their axis is a `spec` here.
    def with_axis(self, axis: MappedAxis, size: DimSize, entry: object = None) -> HiType:
        return self.inc_rank(size, axis)

    def without_axis(self, axis: MappedAxis, size: DimSize | None = None) -> HiType:
        return self.dec_rank(size, axis)

    # shard_map

    def shard(self, mesh: AnyMesh, manual_axes: frozenset[str], check_vma: bool, spec: HiPspec
              ) -> HiType:
        """The type of the part that a device has of a value spread as `spec` says."""
        _needed(self, "shard", "shard_map")

    def unshard(self, mesh: AnyMesh, check_vma: bool, spec: HiPspec) -> HiType:
        """The type of the whole value whose parts on devices have this type."""
        _needed(self, "unshard", "shard_map")

    def nospec(self, mesh: AnyMesh, check_vma: bool, all_names: tuple[str, ...]) -> HiPspec:
        """How a residual is spread, which differs from device to device."""
        _needed(self, "nospec", "autodiff through shard_map")

    def reshard(self, sharding: Sharding) -> HiType:
        """The type of a value that was moved to another sharding."""
        _needed(self, "reshard", "reshard")


class MutableHiType(HiType):
    """A type whose values are references; what its values hold has no type of its own here.

    >>> from olympus.experimental import hiolympus
    >>> issubclass(hiolympus.MutableHiType, hiolympus.HiType)
    True
    """

    __slots__ = ()


class HiPspec:
    """How `shard_map` shards a value of a user's type, as a `PartitionSpec` does for an array.

    >>> from olympus.experimental import hiolympus
    >>> class Rows(hiolympus.HiPspec):
    ...     def to_lo(self):
    ...         return (olympus.P("x", None), olympus.P("x"))
    >>> len(Rows().to_lo())
    2
    """

    reduced: frozenset[str] = frozenset()   # the axes along which a part is, as a PartitionSpec has

    def to_lo(self) -> tuple[PartitionSpec, ...]:
        """The spec of each part."""
        _needed(self, "to_lo", "shard_map")

    def to_tangent_spec(self) -> PyTree:
        """The spec of a tangent; unless overridden, the same."""
        return self

    def to_ct_spec(self) -> PyTree:
        """The spec of a cotangent; unless overridden, a tangent's."""
        return self.to_tangent_spec()

    def of_cotangent(self) -> PyTree:
        return self.to_ct_spec()        # as a PartitionSpec is asked


class aval_method(NamedTuple):
    """A function that traced values of a user's type have as a method: an attribute of the type.

    Args: fun: a function of the traced value and the arguments of a call.

    >>> from olympus.experimental import hiolympus
    >>> hiolympus.aval_method(abs).fun(-2)
    2
    """

    fun: Any


class aval_property(NamedTuple):
    """A function that traced values of a user's type have as a property: an attribute of the type.

    Args: fget: a function of the traced value.

    >>> from olympus.experimental import hiolympus
    >>> hiolympus.aval_property(abs).fget(-2)
    2
    """

    fget: Any


class AvalQDD(NamedTuple):
    """A type, and the type of its value's content at some point of a program.

    Args:
      aval: the type.
      qdd: the type of the content.

    >>> from olympus.experimental import hiolympus
    >>> hiolympus.AvalQDD(olympus.typeof(1.0), None).qdd
    """

    aval: Any
    qdd: Any


class AvalMutableQDD(NamedTuple):
    """A type, and the place of the type of its value's content.

    Args:
      aval: the type.
      mutable_qdd: the place.

    >>> from olympus.experimental import hiolympus
    >>> hiolympus.AvalMutableQDD(olympus.typeof(1.0), None).mutable_qdd
    """

    aval: Any
    mutable_qdd: Any


class AllowedEffects:
    """Which effects may be in loops and branches, or be lowered: here all may."""

    def add_type(self, kind: type) -> None:
        """Allow effects of a class."""

    def contains(self, kind: type) -> bool:
        """Whether effects of a class are allowed."""
        return True

    def filter_in(self, effects: Iterable[object]) -> list[object]:
        """Those that are allowed."""
        return [*effects]

    def filter_not_in(self, effects: Iterable[object]) -> list[object]:
        """Those that are not."""
        return []


control_flow_allowed_effects = AllowedEffects()
HIGH.append(HiType)
