"""The NaN doctor: the operation that made the first NaN, its operands, and a better formula."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..base import source
from ..base.typing import Array, PyTree
from ..core.trace import typeof
from ..runtime.nans import ADVICE, element
from ..types import dtypes
from .watch import Operation, WatchTracer, host, watched

_SHOWN = 8      # operations of the provenance that the text names


class NanFound(NamedTuple):
    """The origin of a NaN: its operation, line, element and operands.

    Attributes:
      operation: the primitive that made it from operands without NaN.
      line: the user's line.
      forward: for an operation of a backward pass, the line of the operation that is transposed.
      time: how often the operation had run on that line before: the iteration, in a loop.
      index: the first element that is NaN.
      operands: the operands' elements there.
      advice: what to write instead, where that is known.
      history: the operations that the operands come from, nearest first, with their values there.

    >>> import olympus
    >>> found = olympus.debug.find_nan(lambda x: olympus.numpy.sqrt(x - 2.0), 1.0)
    >>> found.operation, found.operands, found.forward
    ('sqrt', [-1.0], None)
    """

    operation: str
    line: str
    forward: str | None
    time: int
    index: tuple[int, ...]
    operands: Sequence[Any]
    advice: str
    history: Sequence[str]

    def __str__(self) -> str:
        lines = [f"{self.operation} makes a NaN at {self.line}"]
        if self.forward:
            lines.append(f"  in the backward pass, for {self.forward}")
        if self.time:
            lines.append(f"  in run {self.time + 1} of the operation on that line")
        lines.append(f"  element {list(self.index)}; the operands there are "
                     f"{', '.join(map(str, self.operands))}")
        if self.advice:
            lines.append(f"  {self.advice}")
        if self.history:
            lines += ["  They come from", *[f"    {line}" for line in self.history]]
        return "\n".join(lines)


class _Found(Exception):
    """Carries the operation, and the index of the NaN, out of the function."""

    def __init__(self, operation: Operation, index: tuple[int, ...]) -> None:
        super().__init__()
        self.operation, self.index = operation, index


class _Looking:
    """Stops at the first operation that makes a NaN, or an infinity."""

    def __init__(self, infs: bool) -> None:
        self.test: Callable[[np.ndarray], np.ndarray] = (
            (lambda x: ~np.isfinite(x)) if infs else np.isnan)

    def given(self, _: int, x: Array) -> None:
        return None

    def wrong(self, x: Array) -> np.ndarray | None:
        if not dtypes.is_inexact(typeof(x).dtype):
            return None
        mask = self.test(np.asarray(host(x), np.complex128 if typeof(x).dtype.kind == "c" else
                                    np.float64))
        return mask if mask.any() else None

    def saw(self, operation: Operation) -> list[None]:
        for x in operation.results:
            mask = self.wrong(x)
            if mask is not None and all(self.wrong(a) is None for a in operation.operands):
                index = tuple(int(i) for i in np.argwhere(mask)[0])
                raise _Found(operation, index)
        return [None] * len(operation.results)


def find_nan(fun: Callable[..., PyTree], *args: PyTree, infs: bool = False, **kwargs: PyTree
             ) -> NanFound | None:
    """Run a function operation by operation, and say where its first NaN comes from.

    Loops and jitted functions run in Python, so that the iteration is known; derivatives that the
    function takes are looked at, too: pass `olympus.grad(loss)`.

    Args:
      fun: a function of pytrees of arrays.
      *args, **kwargs: its arguments.
      infs: whether an infinity is looked for as well.
    Returns: A `NanFound`, which prints as a report; None if no operation makes a NaN of operands
      without one.

    >>> def loss(x):
    ...     return onp.where(x > 0, onp.log(x), 0.0).sum()
    >>> found = olympus.debug.find_nan(olympus.grad(loss), onp.array([1.0, 0.0]))
    >>> found.operation, found.index, "onp.where(ok, f(safe), other)" in str(found)
    ('div', (1,), True)
    """
    try:
        watched(fun, args, kwargs, _Looking(infs))
    except _Found as found:
        return _report(found.operation, found.index)
    return None


def _report(op: Operation, index: tuple[int, ...]) -> NanFound:
    values = [element(host(x), typeof(x), index) for x in op.operands]
    forward = None if op.transposed is None else (
        f"{op.transposed.primitive} at {source.summarize(op.transposed.source)}")
    zero = any(type(x) is WatchTracer and x._made is not None and x._made.transposed is not None
               and value == 0 for x, value in zip(op.operands, values, strict=True))
    return NanFound(op.name, op.line, forward, op.time, index, values,
                    ADVICE if forward and zero else "", _history(op, index))


def _history(op: Operation, index: tuple[int, ...]) -> list[str]:
    """The operations that operands come from, nearest first."""
    lines, left, seen = [], list(op.operands), set()
    while left and len(lines) < _SHOWN:
        x = left.pop(0)
        if type(x) is not WatchTracer or x._made is None or id(x._made) in seen:
            continue
        seen.add(id(x._made))
        lines.append(f"{element(host(x), x.aval, index)} = {x._made}")
        left += x._made.operands
    return lines
