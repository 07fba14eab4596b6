"""Arrays from files, text and iterators: NumPy reads, the result is put on the device."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, DTypeLike
from ..base.util import by_numpy
from ..types import dtypes
from .creation import asarray, check_layout

_BFLOAT16 = dtypes.as_dtype("bfloat16")


def _host_dtype(name: str, dtype: DTypeLike) -> np.dtype:
    """The dtype to read at; that the array will be narrower is warned of."""
    dtypes.requested_dtype(name, dtype)
    return np.dtype(dtypes.as_dtype(dtype))


@api_boundary
def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """The array in a file that `save` wrote; of one that `savez` wrote, a mapping of names.

    Args:
      file: a path, or a binary file that is open.
      args, kwargs: as for `numpy.load`: mmap_mode, allow_pickle …
    Returns: An array, narrowed to 32 bits unless x64 is on. NumPy stores bfloat16 as two bytes of
      no type, which are read as bfloat16 again. The arrays in the mapping are NumPy's.

    >>> import io
    >>> file = io.BytesIO()
    >>> onp.save(file, onp.arange(3))
    >>> _ = file.seek(0)
    >>> onp.load(file)
    Array([0, 1, 2], dtype=int32)
    """
    array = np.load(file, *args, **kwargs)
    if not isinstance(array, np.ndarray):
        return array
    return asarray(array.view(_BFLOAT16) if array.dtype == np.dtype("V2") else array)


@api_boundary
def fromfile(*args: object, **kwargs: object) -> Array:
    """The numbers of a file as a vector: `fromfile(file, dtype=float, count=-1, sep="", offset=0)`.

    Args:
      file: a path, or a file that is open.
      dtype: of the numbers in the file; `float` is float64, narrowed to 32 bits unless x64 is on.
      count: how many to read; all if -1.
      sep: what stands between numbers written as text; without it the file is binary.
      offset: bytes to skip, of a binary file.

    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     np.arange(3, dtype=np.int16).tofile(file.name)
    ...     print(onp.fromfile(file.name, "int16"))
    [0 1 2]
    """
    return asarray(by_numpy("fromfile", _fromfile, *args, **kwargs))


def _fromfile(file: Any, dtype: DTypeLike = float, count: int = -1, sep: str = "", offset: int = 0
              ) -> np.ndarray:
    return np.fromfile(file, _host_dtype("fromfile", dtype), count, sep, offset)


@api_boundary
def fromiter(*args: object, **kwargs: object) -> Array:
    """The numbers that an iterable gives as a vector: `fromiter(iter, dtype, count=-1)`.

    Args:
      iter: an iterable of numbers.
      dtype: of the result.
      count: how many to read; all if -1.
    Returns: A vector of the given dtype.

    >>> print(onp.fromiter((x * x for x in range(4)), int))
    [0 1 4 9]
    """
    return asarray(by_numpy("fromiter", _fromiter, *args, **kwargs))


def _fromiter(iter: Iterable[object], dtype: DTypeLike, count: int = -1) -> np.ndarray:
    return np.fromiter(iter, np.dtype(dtypes.requested_dtype("fromiter", dtype)), count)


@api_boundary
def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """The numbers written in a text as a vector.

    Args:
      string: the text.
      dtype: of the numbers.
      count: how many to read; all if -1.
      sep: what stands between them.
    Returns: A vector of the given dtype.

    >>> print(onp.fromstring("1, 2, 3", int, sep=","))
    [1 2 3]
    """
    array = by_numpy("fromstring", np.fromstring, string, _host_dtype("fromstring", dtype),
                     count, sep=sep)
    return asarray(array)


@api_boundary
def loadtxt(fname: object, dtype: DTypeLike = float, *, like: ArrayLike | None = None,
            **options: object) -> Array:
    """The numbers of a text file, a row per line.

    Args:
      fname: a path, a file that is open, or an iterable of lines.
      dtype: of the numbers.
      like: None or an array of olympus; it has no effect.
      options: the others of `numpy.loadtxt`: comments, delimiter, converters, skiprows, usecols,
        unpack, ndmin, encoding, max_rows and quotechar.
    Returns: A matrix, or a vector for one line or column, a scalar for one number; with `unpack`
      transposed.

    >>> print(onp.loadtxt(["1 2", "3 4"]))
    [[1. 2.]
     [3. 4.]]
    """
    check_layout("loadtxt", None, like)
    return asarray(by_numpy("loadtxt", np.loadtxt, fname, _host_dtype("loadtxt", dtype), **options))


@api_boundary
def genfromtxt(fname: object, dtype: DTypeLike = float, *, like: ArrayLike | None = None,
               **options: object) -> Array:
    """The numbers of a text file in which some may be missing, a row per line.

    Args:
      fname: a path, a file that is open, or an iterable of lines.
      dtype: one dtype for all numbers; there are no records.
      like: None or an array of olympus; it has no effect.
      options: the others of `numpy.genfromtxt`: delimiter, missing_values, filling_values …
    Returns: A matrix, or a vector for one line or column; NaN where a number is missing.

    >>> print(onp.genfromtxt(["1,2", "3,"], delimiter=","))
    [[ 1.  2.]
     [ 3. nan]]
    """
    check_layout("genfromtxt", None, like)
    dtype = _host_dtype("genfromtxt", dtype)
    return asarray(by_numpy("genfromtxt", np.genfromtxt, fname, dtype, **options))
