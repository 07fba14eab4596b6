"""`jax.experimental.hijax`: Flax's nnx defines types and operations of it at import."""

from __future__ import annotations

from typing import Any

from ....core.primitive import Linear, Zero
from ....extend.tables import instantiate_zeros, is_undefined_primal
from ....types.avals import AbstractValue
from ...stand_ins import planned

__all__ = ["AbstractValue", "HiPrimitive", "UndefinedPrimal", "Zero", "aval_method",
           "aval_property", "control_flow_allowed_effects", "instantiate_zeros",
           "is_undefined_primal", "register_hitype"]

UndefinedPrimal = Linear
_MISSING = "types of users (hijax)"


class HiPrimitive:
    """An operation on types of users: it can be defined, not bound."""

    def __init__(self, name: str) -> None:
        self.name = name

    bind = property(lambda self: planned(__name__, _MISSING, "HiPrimitive")("HiPrimitive").bind)


class aval_method:
    """A method that types of users give their tracers."""

    def __init__(self, fun: Any) -> None:
        self.fun = fun


class aval_property:
    """A property that types of users give their tracers."""

    def __init__(self, fget: Any) -> None:
        self.fget = fget


class control_flow_allowed_effects:
    """The effects that may be in loops and branches: those of types of users are in no program."""

    @staticmethod
    def add_type(kind: type) -> None:
        """Allow effects of a class."""


def register_hitype(kind: type, make: object) -> None:
    """Take note of a type of users: its values are refused as any that is no array."""


__getattr__ = planned(
    __name__, _MISSING, "AvalMutableQDD AvalQDD HiPrim HiType LojaxPrimitive MutableHiType "
    "MappingSpec QDD ShapedArray Ty VJPHiPrimitive jaxpr_as_fun register_hijax_type")
