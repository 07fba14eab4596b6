"""Shadow precision: which operations amplify the error of rounding, by line of the user's source.

Each operation runs twice: at the dtypes of the program, and beside it at a wider one, on the wider
results of the operations before. The relative error of a value is

    |x - x_wide| / |x_wide|         (2-norms over the elements)

and an operation amplifies by its result's error over the largest error of its operands, or over the
unit roundoff where that is more: Higham, Accuracy and Stability of Numerical Algorithms, ch. 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..base import source
from ..base.config import enable_x64
from ..base.typing import Array, DType, DTypeLike, Params, PyTree
from ..core.primitive import Primitive
from ..core.trace import ctx, typeof
from ..numpy.creation import asarray
from ..types import dtypes
from ..types.tree import tree_leaves
from .watch import Operation, WatchTracer, host, watched


class Amplification(NamedTuple):
    """How much one operation of one line amplified the relative error.

    Attributes:
      factor: the largest amplification.
      error: the relative error of the result then.
      operation: the name of the primitive.
      line: the place and the code.
      time: which run of the operation that was, from 0: the iteration, in a loop.
      runs: how often it ran.

    >>> import olympus
    >>> report = olympus.debug.precision(lambda x: (1 + x) - 1, 1e-6)
    >>> worst = report.operations[0]
    >>> worst.operation, worst.time, worst.runs, worst.factor > 1e3
    ('sub', 0, 1, True)
    """

    factor: float
    error: float
    operation: str
    line: str
    time: int
    runs: int


class Precision(NamedTuple):
    """The report of `olympus.debug.precision`: errors of results, and operations by amplification.

    Attributes:
      errors: the relative error of each leaf of the result.
      operations: the worst first.
      against: the wider dtype.

    >>> import olympus
    >>> report = olympus.debug.precision(lambda x: x * 2, 1.0)
    >>> report.errors, report.against
    ([0.0], 'float64')
    """

    errors: Sequence[float]
    operations: Sequence[Amplification]
    against: str

    def __str__(self) -> str:
        worst = ", ".join(f"{e:.1e}" for e in self.errors)
        lines = [f"relative error of the results against {self.against}: {worst}",
                 "amplifies   error     operation"]
        for op in self.operations[:10]:
            again = f" (run {op.time + 1} of {op.runs})" if op.runs > 1 else ""
            lines.append(f"{op.factor:9.2g}   {op.error:.1e}   {op.operation} at {op.line}{again}")
        return "\n".join(lines)


class _Shadows:
    """Keeps each value at the wider dtype."""

    def __init__(self, wide: DType) -> None:
        self.wide = wide
        self.found: dict[tuple[str, source.Source | None], list[Any]] = {}

    def widened(self, dtype: DTypeLike) -> DTypeLike:
        """The dtype in the wider run: real and complex ones become wide, others stay."""
        if not dtypes.is_inexact(dtype):
            return dtype
        dtype = np.dtype(dtype)
        wide = np.result_type(self.wide, np.complex64) if dtype.kind == "c" else self.wide
        return wide if dtype.itemsize < wide.itemsize else dtype

    def given(self, _: int, x: Array) -> Array:
        return self.as_wide(x)

    def as_wide(self, x: Array) -> Array:
        if not dtypes.is_numeric(typeof(x).dtype):      # keys
            return x._value if type(x) is WatchTracer else x
        value = host(x)
        with enable_x64(True):
            return asarray(value.astype(self.widened(value.dtype)))

    def shadow(self, x: Array) -> Array:
        return x._beside if type(x) is WatchTracer else self.as_wide(x)

    def saw(self, operation: Operation) -> list[Array]:
        ins = [self.shadow(x) for x in operation.operands]
        outs = self.again(operation.primitive, operation.params, ins, operation.results)
        errors = [_error(x, y) for x, y in zip(operation.results, outs, strict=True)]
        before = max([_error(x, y) for x, y in zip(operation.operands, ins, strict=True)],
                     default=0.0)
        inexact = [x.dtype for x in operation.results if dtypes.is_inexact(x.dtype)]
        if inexact:
            unit = float(dtypes.finfo(inexact[0]).eps) / 2
            self.note(operation, max(errors) / max(before, unit), max(errors))
        return outs

    def again(self, prim: Primitive, params: Params, ins: Sequence[Array], outs: Sequence[Array]
              ) -> list[Array]:
        """The operation on wide operands; where it has no such form, its own results, widened."""
        if prim.bodies(params):     # whose types are the program's
            return [self.as_wide(x) for x in outs]
        wide = {name: self.widened(value) if _is_dtype(value) else value
                for name, value in params.items()}
        with enable_x64(True):
            try:
                results = ctx.trace.process(prim, tuple(ins), wide)
            except (TypeError, ValueError, NotImplementedError):
                return [self.as_wide(x) for x in outs]
        results = list(results) if prim.multiple_results else [results]
        if any(x.shape != y.shape or x.dtype != self.widened(y.dtype)
               for x, y in zip(results, outs, strict=True)):
            return [self.as_wide(x) for x in outs]
        return results

    def note(self, operation: Operation, factor: float, error: float) -> None:
        key = operation.name, operation.source
        best = self.found.setdefault(key, [-1.0, 0.0, operation.line, 0, 0])
        best[4] += 1
        if factor > best[0]:
            best[:4] = factor, error, operation.line, operation.time


def _is_dtype(value: object) -> bool:
    return isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(
        value, np.generic))


def _error(x: Array, y: Array) -> float:
    """The relative error of `x`, where both are finite; 0 for other dtypes than numbers."""
    if not dtypes.is_inexact(y.dtype) or not y.size:
        return 0.0
    a, b = host(x), np.asarray(y)
    kind = np.complex128 if b.dtype.kind == "c" else np.float64
    a, b = a.astype(kind), b.astype(kind)
    ok = np.isfinite(a) & np.isfinite(b)
    if not ok.all():
        if (np.isfinite(a) != np.isfinite(b)).any():
            return np.inf
        a, b = a[ok], b[ok]
    size = np.linalg.norm(b.ravel())
    return float(np.linalg.norm((a - b).ravel()) / size) if size else float(bool((a != b).any()))


def precision(fun: Callable[..., PyTree], *args: PyTree, against: str = "float64", **kwargs: PyTree
              ) -> Precision:
    """Rank a function's operations by how much they amplify the relative error of rounding.

    The function runs once, operation by operation, and each operation runs at a wider dtype beside
    it. Loops and jitted functions run in Python; derivatives that the function takes are seen, too.

    Args:
      fun: a function of pytrees of arrays.
      *args, **kwargs: its arguments, at the dtypes that are to be judged (float32, bfloat16 …).
      against: the wider dtype.
    Returns: A `Precision`: data, and as text a table by line. Errors are relative, in the 2-norm.

    Raises TypeError for a dtype that is not a floating one.

    >>> def spread(x):
    ...     return (x ** 2).mean() - x.mean() ** 2
    >>> report = olympus.debug.precision(spread, 1000 + onp.linspace(0., 1., 50))
    >>> report.operations[0].operation, report.operations[0].factor > 1e4
    ('sub', True)
    """
    wide = dtypes.as_dtype(against)
    if wide.kind != "f":
        raise TypeError(f"precision: against={against!r} given; a floating dtype is required.")
    shadows = _Shadows(wide)
    out = watched(fun, args, kwargs, shadows)
    errors = [_error(x, x._beside) if type(x) is WatchTracer else 0.0
              for x in tree_leaves(out)]
    rows = [Amplification(factor, error, name, line, time, runs)
            for (name, _), (factor, error, line, time, runs) in shadows.found.items()]
    return Precision(errors, sorted(rows, key=lambda row: -row.factor), against)
