"""The equations of a function that are compiled by formulas of Olympus's own."""

from __future__ import annotations

from collections.abc import Callable

from ..base.typing import PyTree
from ..lowering.kernel_report import KernelReport
from .jit import jit


def kernels(fun: Callable[..., PyTree], /, *args: PyTree, **kwargs: PyTree) -> KernelReport:
    """The operations that `jit` compiles by kernels of Olympus, by line of the source.

    On one CPU, XLA does these slowly; `olympus_kernels="off"` leaves them to it. Nothing is
    compiled or run.

    Args:
      fun: a function; a jitted one is taken with its own options.
      *args, **kwargs: arguments for it: arrays, or anything with shape and dtype.
    Returns: A report: `lines`, each with `where`, `operation`, `type`, `kernel`, `why` and `count`,
      and `reason`, why there can be none; `print` shows it.

    >>> report = olympus.debug.kernels(lambda x: onp.argmax(x) + 1, onp.ones(20_000))
    >>> [(line.operation, line.type, line.kernel) for line in report.lines]
    [('argmax', 'float32[20000]', 'maximum of chunks, then its place')]
    """
    # "auto", whatever `olympus_kernels` says: the caller asks for it.
    lower = getattr(fun, "lower", None) or jit(fun, kernels="auto").lower
    return lower(*args, **kwargs)._context.kernel_report
