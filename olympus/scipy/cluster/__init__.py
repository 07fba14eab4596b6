"""Clustering. Its module is imported when it is first named."""

from ..._src.base.util import submodule as _submodule

__all__ = []


def __getattr__(name: str) -> object:
    """A module of this package."""
    return _submodule(__name__, name)
