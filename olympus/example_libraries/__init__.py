"""Small libraries written with Olympus, to be read: `optimizers` and `stax`."""

from .._src.base.util import submodules as _submodules

__all__ = []

__getattr__, __dir__ = _submodules(__name__)
