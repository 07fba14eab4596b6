"""Functions of SciPy on arrays. Its modules are imported when they are first named."""

import typing as _typing

from .._src.base.util import submodules as _submodules

__all__ = []

if _typing.TYPE_CHECKING:      # imported when they are first named
    from . import (
        cluster as cluster, fft as fft, integrate as integrate, interpolate as interpolate,
        linalg as linalg, ndimage as ndimage, optimize as optimize, signal as signal,
        sparse as sparse, spatial as spatial, special as special, stats as stats,
    )
else:       # a checker would take any name for an object
    __getattr__, __dir__ = _submodules(__name__)
