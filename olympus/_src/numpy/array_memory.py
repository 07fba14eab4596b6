"""Attributes of NumPy's arrays that speak of memory: read-only views, and refusals of what writes.

A program sees no memory. For an array with values these attributes describe the NumPy array over
them, which is contiguous and read-only.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ..base.source import api_boundary
from ..base.typing import Array
from ..base.util import by_numpy
from ..types.shape import prod


def _strides(self: Array) -> tuple[int, ...]:
    """The bytes from one element to the next along each axis, the last axis fastest."""
    shape, dtype = self.aval.shape, self.aval.dtype
    if 0 in shape:
        return np.empty(shape, dtype).strides
    return tuple([dtype.itemsize * prod(shape[i + 1:]) for i in range(len(shape))])


def _dump(self: Array, file: Any) -> None:
    """Write the pickled array to a file.

    Args:
      file: a path, or a file that is open for bytes.
    """
    if hasattr(file, "write"):
        pickle.dump(self, file)
        return
    with open(file, "wb") as opened:
        pickle.dump(self, opened)


def _dumps(self: Array) -> bytes:
    """The pickled array.

    Returns:
      Bytes that `pickle.loads` makes the array of.

    >>> import olympus.numpy as onp
    >>> import pickle
    >>> print(pickle.loads(onp.array([1, 2]).dumps()))
    [1 2]
    """
    return pickle.dumps(self)


def _tofile(self: Array, fid: object, sep: str = "", format: str = "%s") -> None:
    """Write the elements to a file.

    Args:
      fid: a path, or a file that is open.
      sep: what stands between elements written as text; without it their bytes are written.
      format: how an element is written as text.
    """
    by_numpy("ndarray.tofile", np.asarray(self).tofile, fid, sep, format)


def _refusing(name: str, instead: str) -> Callable[..., NoReturn]:
    @api_boundary
    def method(self: Array, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError(f"{name}: called on {self.aval}; arrays are immutable; use {instead}.")
    method.__name__, method.__doc__ = name, f"Refused: arrays are immutable; use {instead}."
    return method


METHODS: dict[str, Callable[..., Any]] = {
    "dump": _dump, "dumps": _dumps, "tofile": _tofile,
    "fill": _refusing("fill", "olympus.numpy.full_like(x, value)"),
    "itemset": _refusing("itemset", "x.at[index].set(value)"),
    "partition": _refusing("partition", "olympus.numpy.partition(x, kth)"),
    "put": _refusing("put", "olympus.numpy.put(x, indices, values, inplace=False)"),
    "resize": _refusing("resize", "olympus.numpy.resize(x, shape)"),
    "setfield": _refusing("setfield", "x.view(dtype) and x.at[index].set(value)"),
    "setflags": _refusing("setflags", "np.array(x) for a NumPy array that can be written to"),
}

PROPERTIES: dict[str, property] = {
    "base": property(lambda self: None, doc="None: no array is a view of another."),
    "ctypes": property(lambda self: np.asarray(self).ctypes,
                       doc="What NumPy tells ctypes of the memory that holds the elements."),
    "data": property(lambda self: np.asarray(self).data,
                     doc="The memory that holds the elements, read-only."),
    "flags": property(lambda self: np.asarray(self).flags,
                      doc="NumPy's flags of the elements: contiguous, aligned, not writeable."),
    "strides": property(_strides, doc=_strides.__doc__),
}
