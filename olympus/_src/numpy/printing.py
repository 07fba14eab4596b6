"""Arrays and numbers as text, by NumPy's own formatting and its print options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.docstrings import described_like
from ..base.typing import Array, ArrayLike
from ..base.util import by_numpy
from ..jit.fused import named
from .creation import asarray


def set_printoptions(*args: Any, **kwargs: Any) -> None:
    """Set NumPy's options of printing, which arrays here follow too, for the process.

    Args: args, kwargs: as for `numpy.set_printoptions`: precision, threshold, edgeitems, linewidth,
        suppress, nanstr, infstr, formatter, sign, floatmode and legacy.

    >>> with onp.printoptions():    # what is set inside is undone behind
    ...     onp.set_printoptions(precision=2)
    ...     print(onp.array([1.2345]))
    [1.23]
    """
    np.set_printoptions(*args, **kwargs)


def _print_with(write: Callable[..., str], x: Array, max_line_width: int | None,
                precision: int | None, suppress_small: bool | None) -> str:
    options = {"linewidth": max_line_width, "precision": precision, "suppress": suppress_small}
    with np.printoptions(**{k: v for k, v in options.items() if v is not None}):
        return write(x)


@named
def array_repr(arr: ArrayLike, max_line_width: int | None = None, precision: int | None = None,
               suppress_small: bool | None = None) -> str:
    """The `repr` of an array: its values, dtype and weak type.

    Args:
      arr: an array; a traced one is described by its type.
      max_line_width: columns after which lines break; the print option "linewidth" unless given.
      precision: digits of floats; the print option of that name unless given.
      suppress_small: whether tiny numbers are printed as 0; the option "suppress" unless given.

    Where NumPy writes `array`, this writes `Array`; empty arrays show their shape.

    >>> print(onp.array_repr(onp.array([1.2345, 6.]), precision=2))
    Array([1.23, 6.  ], dtype=float32)
    """
    return by_numpy("array_repr", _print_with, repr, asarray(arr), max_line_width, precision,
                    suppress_small)


@named
def array_str(a: ArrayLike, max_line_width: int | None = None, precision: int | None = None,
              suppress_small: bool | None = None) -> str:
    """The `str` of an array: its values alone.

    Args:
      a: an array; a traced one is described by its type.
      max_line_width, precision, suppress_small: as in `array_repr`.

    >>> print(onp.array_str(onp.arange(4)))
    [0 1 2 3]
    """
    return by_numpy("array_str", _print_with, str, asarray(a), max_line_width, precision,
                    suppress_small)


@named
@described_like(array_str)
def array2string(a: ArrayLike, max_line_width: int | None = None, precision: int | None = None,
                 suppress_small: bool | None = None, separator: str = " ", prefix: str = "",
                 **options: object) -> str:
    """The values of an array as text.

    Args:
      a: an array, which must not be traced.
      separator: what stands between elements.
      prefix: the text that the caller will print before; its width indents the lines that follow.
      options: the others of `numpy.array2string`: formatter, threshold, edgeitems, sign, floatmode,
        suffix and legacy.

    >>> print(onp.array2string(onp.arange(4), separator=", "))
    [0, 1, 2, 3]
    """
    return by_numpy("array2string", np.array2string, np.asarray(asarray(a)), max_line_width,
                    precision, suppress_small, separator, prefix, **options)


def _numpy_scalar(x: ArrayLike) -> ArrayLike:
    """A NumPy scalar of an array's own precision; Python numbers stay."""
    return np.asarray(x)[()] if isinstance(x, Array) else x


@named
def format_float_positional(x: ArrayLike, *args: object, **kwargs: object) -> str:
    """A real number in decimal digits, without an exponent.

    Args:
      x: a scalar, which must not be traced.
      args, kwargs: as for `numpy.format_float_positional`: precision, unique, fractional, trim …

    >>> onp.format_float_positional(onp.float32(0.1))
    '0.1'
    """
    return by_numpy("format_float_positional", np.format_float_positional, _numpy_scalar(x), *args,
                    **kwargs)


@named
@described_like(format_float_positional)
def format_float_scientific(x: ArrayLike, *args: object, **kwargs: object) -> str:
    """A real number in decimal digits with an exponent.

    Args:
      args, kwargs: as for `numpy.format_float_scientific`: precision, unique, trim, exp_digits …

    >>> onp.format_float_scientific(onp.float32(1234))
    '1.234e+03'
    """
    return by_numpy("format_float_scientific", np.format_float_scientific, _numpy_scalar(x), *args,
                    **kwargs)
