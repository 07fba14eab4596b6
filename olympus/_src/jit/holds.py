"""Values that a compiled function computes once, though many of its kernels read them."""

from __future__ import annotations

from collections.abc import Callable

from ..base.typing import PyTree
from ..lowering.hold_report import HoldReport
from .jit import jit


def holds(fun: Callable[..., PyTree], /, *args: PyTree, **kwargs: PyTree) -> HoldReport:
    """The values that `jit` makes XLA:CPU compute once, by line of the source.

    XLA would compute each again in every kernel that reads it. Nothing is compiled or run.

    Args:
      fun: a function; a jitted one is taken with its own options.
      *args, **kwargs: arguments for it: arrays, or anything with shape and dtype.
    Returns: A report: `lines`, each with `where`, `operation`, `type`, `count` and `saves`, the
      operations that need not be done again, and `reason`, why nothing is held, or not more;
      `print` shows it.

    >>> def f(x):
    ...     for _ in range(12):
    ...         x = onp.concatenate([x[1:] * x[:-1], x[:1]])
    ...     return x
    >>> report = olympus.debug.holds(f, onp.ones(100))
    >>> [(line.operation, line.type) for line in report.lines]
    [('concatenate', 'float32[100]')]
    """
    # "auto", whatever `olympus_hold` says: the caller asks for it.
    lower = getattr(fun, "lower", None) or jit(fun, hold="auto").lower
    return lower(*args, **kwargs)._context.hold_report
