"""Types of users, as far as libraries define them at import."""

from __future__ import annotations

from .stand_ins import stand_in

__all__ = ["HiPrimitive", "aval_method", "aval_property", "control_flow_allowed_effects",
           "register_hitype"]


class HiPrimitive:
    """An operation on types of users: it can be defined, not bound."""

    def __init__(self, name: str) -> None:
        self.name = name

    bind = property(lambda self: stand_in(
        "jax.experimental.hijax", "HiPrimitive", "types of users (hijax)").bind)


class aval_method:
    """A method that types of users give their tracers."""

    def __init__(self, fun: object) -> None:
        self.fun = fun


class aval_property:
    """A property that types of users give their tracers."""

    def __init__(self, fget: object) -> None:
        self.fget = fget


class control_flow_allowed_effects:
    """The effects that may be in loops and branches: those of types of users are in no program."""

    @staticmethod
    def add_type(kind: type) -> None:
        """Allow effects of a class."""


def register_hitype(kind: type, make: object) -> None:
    """Take note of a type of users: its values are refused as any that is no array."""
