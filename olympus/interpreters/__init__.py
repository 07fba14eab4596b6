"""What outsiders extend: the interpreters that read the rules of primitives."""

from . import ad

__all__ = ["ad"]
