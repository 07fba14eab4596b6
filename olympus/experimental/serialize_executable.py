"""Compiled functions as bytes: names only."""

from .._src.base.util import publish as _publish
from .._src.jit.packed import deserialize_and_load, serialize

__all__ = ["deserialize_and_load", "serialize"]

_publish(__name__)
