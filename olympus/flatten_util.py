"""Pytrees of arrays as vectors."""

from ._src.base.util import publish
from ._src.transforms.flatten_util import ravel_pytree

__all__ = ["ravel_pytree"]

publish(__name__)
