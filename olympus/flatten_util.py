"""Pytrees of arrays as vectors."""

from ._src.base.util import publish as _publish
from ._src.arrays.flatten_util import ravel_pytree

__all__ = ["ravel_pytree"]

_publish(__name__)
