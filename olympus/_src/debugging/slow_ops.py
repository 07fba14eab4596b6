"""Operations far below the machine's speed, and how to write them for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np

from ..arrays.device import block_until_ready
from ..base.config import jit_disabled
from ..base.markup import columns
from ..base.typing import Array, PyTree
from ..base.util import real_number, short_number
from ..core.ir import Literal, OlympusprEqn, Var
from ..core.trace import ctx, typeof
from ..jit.cost_table import operation_cost
from ..lax import arithmetic
from ..lax.contract import dot
from ..numpy.creation import ones
from ..types import dtypes
from ..types.avals import ShapedArray
from .watch import Operation, WatchTracer, watched

_TIMED = 3      # the runs of an operation of one line that are timed; further runs are counted
_REPEATS = 5    # of each
_SHARE = 0.01   # the least share of all time for an operation in the report
_OFTEN = 16     # the number of runs from which a line counts as in a loop
_SMALL = 1e5    # floating-point operations below which a product is mostly a call


class SlowOp(NamedTuple):
    """An operation of one line that takes much longer than its bytes and flops need.

    Attributes:
      operation: the name of the primitive.
      line: the place and the code.
      runs: how often it ran.
      seconds: what one run takes by itself, without the call.
      bound: what one run would take at the machine's speed for bytes and flops.
      remedy: how to write it instead; empty where no way is known.

    >>> import olympus
    >>> olympus.debug.SlowOp("sort", "f.py:1:0 (f)", 1, 0.2, 0.01, "").times_slower
    20.0
    """

    operation: str
    line: str
    runs: int
    seconds: float
    bound: float
    remedy: str

    @property
    def times_slower(self) -> float:
        """How many times longer it takes than the machine's speed allows."""
        return self.seconds / self.bound


class SlowOps(NamedTuple):
    """The report of `olympus.debug.slow_ops`: the operations that lose most, and the machine.

    Attributes:
      operations: those that lose most time first.
      bytes_per_second: the machine's reads and writes in a sum of two large arrays.
      flops_per_second: its operations in a product of matrices.

    >>> import olympus
    >>> str(olympus.debug.SlowOps([], 1e10, 1e11))
    "no operation is far below the machine's 10 GB/s and 100 Gflop/s"
    """

    operations: Sequence[SlowOp]
    bytes_per_second: float
    flops_per_second: float

    @property
    def _machine(self) -> str:
        return (f"the machine's {short_number(self.bytes_per_second, 'B/s')} and "
                f"{short_number(self.flops_per_second, 'flop/s')}")

    def _rows(self) -> list[list[str]]:
        return [[f"{1e3 * op.seconds:.3g} ms", f"{op.times_slower:.3g}x", str(op.runs),
                 f"{op.operation} at {op.line}"] for op in self.operations]

    def __str__(self) -> str:
        if not self.operations:
            return f"no operation is far below {self._machine}"
        lines = [f"below {self._machine}:"]
        for op, (seconds, slower, runs, what) in zip(self.operations, self._rows(), strict=True):
            lines.append(f"{what}\n  {runs} × {seconds}, {slower} its bound")
            lines += [f"  {op.remedy}"] if op.remedy else []
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [[*row[:3], f"{row[3]} {op.remedy and f'— {op.remedy}'}"]
                for op, row in zip(self.operations, self._rows(), strict=True)]
        return columns(["a run", "bound", "runs", f"below {self._machine}"], rows)


class _Machine(NamedTuple):
    """The machine's speed, and the time of a call of an almost empty operation."""

    bytes_per_second: float
    flops_per_second: float
    call: float

    @classmethod
    def measured(cls) -> _Machine:
        long, square, one = ones(1 << 22, np.float32), ones((768, 768), np.float32), ones(1)
        with jit_disabled(True):    # called as watched operations are called
            return cls(3 * long.nbytes / _least(lambda: arithmetic.add(long, long)),
                       2 * 768 ** 3 / _least(lambda: dot(square, square)),
                       _least(lambda: arithmetic.neg_p.bind(one), 20))


def _least(run: Callable[[], PyTree], repeats: int = _REPEATS) -> float:
    """The seconds of the fastest of several runs, after one that compiles."""
    block_until_ready(run())
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        block_until_ready(run())
        seconds.append(time.perf_counter() - start)
    return min(seconds)


class _Row:
    """The measurements of an operation of one line on operands of some types."""

    def __init__(self, op: Operation, bound: float, flops: float) -> None:
        self.primitive, self.params = op.primitive, op.params
        self.name, self.line = op.name, op.line
        self.avals = list(map(typeof, op.operands))
        self.bound, self.flops = bound, flops
        self.runs = 0
        self.seconds = np.inf   # of the fastest run that was timed

    @property
    def small_and_frequent(self) -> bool:
        """Whether it is a product in a loop that is mostly a call."""
        sums = self.primitive.summed_axes(self.params) is not None
        return sums and self.runs >= _OFTEN and self.flops < _SMALL

    def as_slow_op(self) -> SlowOp:
        remedy = self.primitive.remedy(self.avals, self.params) or (
            self.small_and_frequent and _FEWER or "")
        return SlowOp(self.name, self.line, self.runs, self.seconds, self.bound, remedy)


_FEWER = ("a small product in each step of a loop: take those that do not depend on the carry as "
          "one product before or behind it, and several chains at a time with vmap")


class _Stopwatch:
    """Times the first runs of each operation of each line."""

    def __init__(self, machine: _Machine) -> None:
        self.machine = machine
        self.rows: dict[Hashable, _Row] = {}

    def given(self, _: int, x: Array) -> None:
        return None

    def saw(self, operation: Operation) -> list[None]:
        avals = tuple(map(typeof, operation.operands))
        key = operation.primitive, operation.source, avals
        row = self.rows.get(key)
        if row is None:
            row = self.rows[key] = _Row(operation, *self.bound(operation, avals))
        row.runs += 1
        if row.runs <= _TIMED and not operation.primitive.effects(avals, operation.params):
            row.seconds = min(row.seconds, self.timed(operation))
        return [None] * len(operation.results)

    def timed(self, operation: Operation) -> float:
        """Seconds of one run without the call; the trace that evaluates is the current one now."""
        values = tuple([x._value if type(x) is WatchTracer else x for x in operation.operands])
        whole = _least(lambda: ctx.trace.process(operation.primitive, values, operation.params))
        return max(whole - self.machine.call, 0.0)

    def bound(self, operation: Operation, avals: Sequence[ShapedArray]) -> tuple[float, float]:
        """The seconds that its bytes or flops take at the machine's speed, and the flops."""
        ins = [x if isinstance(x, Literal) else Var(a)
               for x, a in zip(operation.operands, avals, strict=True)]
        results = list(map(typeof, operation.results))
        cost = operation_cost(OlympusprEqn(operation.primitive, ins, list(map(Var, results)),
                                           operation.params, ctx=ctx.scope))
        moved = sum(a.size * a.dtype.itemsize for a in (*avals, *results)
                    if dtypes.is_numeric(a.dtype))
        return max(cost.flops / self.machine.flops_per_second,
                   max(moved, 1) / self.machine.bytes_per_second), cost.flops

    def report(self, factor: float) -> SlowOps:
        """The operations far slower than their bounds that take a share of time that counts."""
        rows = [row for row in self.rows.values() if np.isfinite(row.seconds)]
        share = _SHARE * sum(row.seconds * row.runs for row in rows)
        slow = [row.as_slow_op() for row in rows if row.small_and_frequent or (
            row.seconds > max(factor * row.bound, self.machine.call)
            and row.seconds * row.runs >= share)]
        return SlowOps(sorted(slow, key=lambda op: (op.bound - op.seconds) * op.runs),
                       self.machine.bytes_per_second, self.machine.flops_per_second)


def slow_ops(fun: Callable[..., PyTree], *args: PyTree, factor: float = 10.0, **kwargs: PyTree
             ) -> SlowOps:
    """Find the operations that are far below the machine's speed, with replacements.

    The function runs once, operation by operation, loops and jitted functions in Python. The first
    runs of each operation of each line are timed, the least of a few repeats counts, and that is
    held against the time of its bytes and flops at the machine's speed, which is measured before
    in a sum of two large arrays and a product of two matrices. What XLA fuses takes less in a
    program than alone: the report says where to look. Small products that a line computes many
    times are reported, too.

    Args:
      fun: a function of pytrees of arrays.
      *args, **kwargs: its arguments, of the sizes that matter.
      factor: how many times slower than its bound an operation must be to be reported.
    Returns: A `SlowOps`: data, and text with remedies where one is known on a CPU; what loses most
      time first. Operations with effects are not timed.

    ValueError for a factor that is not above 1.

    >>> report = olympus.debug.slow_ops(lambda x: onp.sort(x) * 2, onp.ones(1000))
    >>> {op.operation for op in report.operations} <= {"sort", "mul"}
    True
    """
    if not real_number(factor, "slow_ops: factor") > 1:
        raise ValueError(f"slow_ops: factor={factor!r} given; a number above 1 is required.")
    watch = _Stopwatch(_Machine.measured())
    watched(fun, args, kwargs, watch)
    return watch.report(factor)
