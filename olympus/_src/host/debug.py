"""debug.print: print values of a running program."""

from __future__ import annotations

import builtins
import logging
import string
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.errors import FormatError
from ..base.typing import Array, PyTree
from .callbacks import DebugCallback, debug_callback, flat_callback, with_options

_print: Callable[..., None] = builtins.print     # which ours hides below
_LOGGER = logging.getLogger("olympus.debug")
_LOGGER.setLevel(logging.INFO)      # requested output is not silenced by the root's WARNING

callback = debug_callback


class _Format:
    """Prints `fmt` with the values filled in; equal if the text and NumPy's options are equal."""

    __slots__ = ("fmt", "use_logging", "options")

    def __init__(self, fmt: str, use_logging: bool) -> None:
        self.fmt, self.use_logging = fmt, use_logging
        # NumPy's options at the call: the program prints in another thread, which has its own.
        self.options = np.get_printoptions()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Format) and (self.fmt, self.use_logging, self.options) == (
            other.fmt, other.use_logging, other.options)

    def __hash__(self) -> int:
        return hash((self.fmt, self.use_logging))       # the options are a dict, without a hash

    def __call__(self, *args: PyTree, **kwargs: PyTree) -> None:
        with np.printoptions(**self.options):
            text = self.fmt.format(*args, **kwargs)
        if not any(name is not None for _, name, _, _ in string.Formatter().parse(self.fmt)):
            text = " ".join(map(str, (text, *args, *kwargs.values())))      # an unchecked format
        if self.use_logging:
            _LOGGER.info(text)
        else:
            _print(text)


class DebugPrint(DebugCallback):
    """params: fmt, callback, ordered, partitioned."""


debug_print_p = DebugPrint("debug_print")


def print(fmt: str | None = None, *args: PyTree, ordered: bool = False, partitioned: bool = False,
          skip_format_check: bool = False, _use_logging: bool = False, **kwargs: PyTree
          ) -> Callable[..., None] | None:
    """Print values when the program runs, also under jit, vmap (once per element), grad and scan.

    Args:
      fmt: a format string as for `str.format`, e.g. "x = {x}"; not an f-string, which is filled in
        while tracing.
      *args, **kwargs: the values.
      ordered: keep the order of ordered prints within a program.
      partitioned: in a program of several devices, print the part of each (with `ordered`, the
        whole).
      skip_format_check: do not check `fmt` against the arguments. If it has no field,
        they follow it.

    Returns:
      None; without `fmt`, this function with the given options.

    >>> olympus.debug.print("x = {x}, y = {}", 2, x=1.5)
    x = 1.5, y = 2
    """
    options = {"ordered": bool(ordered), "partitioned": bool(partitioned),
               "skip_format_check": skip_format_check, "use_logging": _use_logging}
    return with_options("debug.print", _print_values, options, fmt, args, kwargs)


def _print_values(options: dict[str, bool], fmt: str, /, *args: Array, **kwargs: PyTree) -> None:
    if not isinstance(fmt, str):
        raise TypeError(f"debug.print: fmt is {fmt!r}; a str is required; write "
                        "debug.print('{}', value).")
    if not options["skip_format_check"]:
        _check_format(fmt, args, kwargs)
    flat, leaves = flat_callback(_Format(fmt, options["use_logging"]), args, kwargs)
    debug_print_p.bind(*leaves, fmt=fmt, callback=flat, ordered=options["ordered"],
                       partitioned=options["partitioned"])


def log(fmt: str | None = None, *args: PyTree, ordered: bool = False, partitioned: bool = False,
        skip_format_check: bool = False, _use_logging: bool = True, **kwargs: PyTree
        ) -> Callable[..., None] | None:
    """Log values from a program, to the logger "olympus.debug" at the level INFO.

    That is the logger's own level: a level of "olympus", or of the root, does not silence it.

    Args:
      fmt: a format string for `str.format`, as `print` takes it.
      *args, **kwargs: pytrees for the placeholders of `fmt`.
      ordered, partitioned: as for `callback`.
      skip_format_check: whether to trace without trying `fmt`.

    Returns:
      None; without `fmt`, this function with the given options.

    >>> olympus.debug.log("x is {x}", x=olympus.numpy.arange(2))     # seen where logging is set up
    """
    return print(fmt, *args, ordered=ordered, partitioned=partitioned,
                 skip_format_check=skip_format_check, _use_logging=_use_logging, **kwargs)


def _check_format(fmt: str, args: tuple, kwargs: dict[str, PyTree]) -> None:
    """ValueError unless the fields of `fmt` and the arguments are the same."""
    used: set[Any] = set()
    automatic = 0
    # A field's format may have fields itself, "{x:{width}}": numbered after it, as Python does.
    for _, field, _, _ in (inner for outer in string.Formatter().parse(fmt)
                           for inner in (outer, *string.Formatter().parse(outer[2] or ""))):
        if field is None:
            continue
        name = field.split(".")[0].split("[")[0]
        if name == "":
            name, automatic = str(automatic), automatic + 1
        # Positions are ints, names are texts, as in `given`.
        used.add(int(name) if name.isdigit() else name)
    arguments = {*range(len(args)), *kwargs}
    if missing := used - arguments:
        raise FormatError(
            f"debug.print: the format {fmt!r} names {sorted(map(str, missing))}; an argument is "
            "required for each field; pass it, or double the braces.")
    if more := arguments - used:
        what = "keyword" if any(type(name) is str for name in more) else "positional"
        raise ValueError(f"debug.print: Unused {what} arguments: {sorted(map(str, more))} given, "
                         f"for which the format {fmt!r} has no field; add one. You may be passing "
                         "an f-string, which is filled in while tracing; pass a plain string.")
