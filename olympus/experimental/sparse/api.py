"""Sparse arrays made of nothing, and `todense`: names only."""

from ..._src.base.util import publish as _publish
from ..._src.sparse.making import empty, eye, todense, todense_p

__all__ = ["empty", "eye", "todense", "todense_p"]

_publish(__name__)
