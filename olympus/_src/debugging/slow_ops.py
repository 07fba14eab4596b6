"""Operations far below what the machine does, and how to write them for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..base import source
from ..base.markup import columns
from ..base.util import short_number
from ..core.ir import Literal, OlympusprEqn, Var
from ..core.trace import ctx, typeof
from ..jit.cost_table import operation_cost
from ..lax import arithmetic
from ..lax.contract import dot
from ..numpy.creation import ones
from ..types import dtypes
from .watch import Operation, WatchTracer, watched

__all__ = ["SlowOp", "SlowOps", "slow_ops"]

_TIMED = 3              # runs of an operation of one line that are timed; more are counted
_REPEATS = 3            # of each; the least counts
_LEAST = 2e-5           # seconds over a call's own: what is shorter cannot be told from noise
_OFTEN = 16             # runs of one line from which it stands in a loop
_SMALL = 1e5            # floating-point operations below which a product is mostly a call


class SlowOp(NamedTuple):
    """An operation of one line that takes much longer than its bytes and flops do.

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
      bytes_per_second: what the machine reads and writes in a sum of two large arrays.
      flops_per_second: what it does in a product of matrices.

    >>> import olympus
    >>> print(olympus.debug.SlowOps([], 1e10, 1e11))
    no operation is far below the machine's 10 GB/s and 100 Gflop/s
    """

    operations: Sequence[SlowOp]
    bytes_per_second: float
    flops_per_second: float

    @property
    def _machine(self) -> str:
        return (f"the machine's {short_number(self.bytes_per_second, 'B/s')} and "
                f"{short_number(self.flops_per_second, 'flop/s')}")

    def _rows(self) -> list[list[str]]:
        return [[f"{short_number(1e6 * op.seconds)} us", f"{op.times_slower:.0f}x", str(op.runs),
                 f"{op.operation} at {op.line}"] for op in self.operations]

    def __str__(self) -> str:
        if not self.operations:
            return f"no operation is far below {self._machine}"
        lines = [f"below {self._machine}:"]
        for op, (seconds, slower, runs, what) in zip(self.operations, self._rows(), strict=True):
            lines.append(f"{what}\n  {seconds} a run, {slower} the bound, {runs} runs")
            lines += [f"  {op.remedy}"] if op.remedy else []
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [[*row[:3], f"{row[3]} {op.remedy and f'— {op.remedy}'}"]
                for op, row in zip(self.operations, self._rows(), strict=True)]
        return columns(["a run", "bound", "runs", f"below {self._machine}"], rows)


class _Machine(NamedTuple):
    """How fast it is, and what a call of an operation takes that does next to nothing."""

    bytes_per_second: float
    flops_per_second: float
    call: float

    @classmethod
    def measured(cls) -> _Machine:
        long, square, one = ones(1 << 22, np.float32), ones((768, 768), np.float32), ones(1)
        return cls(3 * long.nbytes / _least(lambda: arithmetic.add(long, long)),
                   2 * 768 ** 3 / _least(lambda: dot(square, square)),
                   _least(lambda: arithmetic.neg(one), 10))


def _least(run: Callable[[], Any], repeats: int = _REPEATS) -> float:
    """The seconds of the fastest of several runs, after one that compiles."""
    _wait(run())
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        _wait(run())
        found.append(time.perf_counter() - start)
    return min(found)


def _wait(result: Any) -> None:
    for x in result if isinstance(result, (list, tuple)) else [result]:
        if hasattr(x, "block_until_ready"):
            x.block_until_ready()


class _Row:
    """What is known of an operation of one line."""

    def __init__(self, operation: Operation) -> None:
        self.operation, self.runs, self.bound = operation, 0, 0.0
        self.seconds: list[float] = []


class _Stopwatch:
    """Times the first runs of each operation of each line."""

    def __init__(self, machine: _Machine) -> None:
        self.machine = machine
        self.rows: dict[Any, _Row] = {}

    def given(self, _: int, x: Any) -> None:
        return None

    def saw(self, operation: Operation) -> list[None]:
        avals = [typeof(x) for x in operation.operands]
        key = operation.primitive, operation.source, tuple(avals)
        row = self.rows.setdefault(key, _Row(operation))
        row.runs += 1
        effects = operation.primitive.effects(avals, operation.params)
        if row.runs <= _TIMED and not effects:
            if not row.bound:
                row.bound = self.bound(operation, avals)
            row.seconds.append(self.timed(operation))
        return [None] * len(operation.results)

    def timed(self, operation: Operation) -> float:
        """Seconds of one run without the call; the trace around is the current one now."""
        values = tuple([x.value if type(x) is WatchTracer else x for x in operation.operands])
        whole = _least(lambda: ctx.trace.process(operation.primitive, values, operation.params))
        return max(whole - self.machine.call, 0.0)

    def bound(self, operation: Operation, avals: Sequence[Any]) -> float:
        """Seconds that the operation's bytes or flops take at the machine's speed."""
        ins = [x if isinstance(x, Literal) else Var(a)
               for x, a in zip(operation.operands, avals, strict=True)]
        cost = operation_cost(OlympusprEqn(operation.primitive, ins, [
            Var(typeof(x)) for x in operation.results], operation.params))
        moved = sum([a.size * a.dtype.itemsize for a in [*avals, *map(typeof, operation.results)]
                     if dtypes.is_numeric(a.dtype)])
        return max((cost.flops + cost.transcendentals) / self.machine.flops_per_second,
                   max(moved, 1) / self.machine.bytes_per_second)


def _remedy(operation: Operation, runs: int) -> str:
    """How to write an operation that is slow; empty where no way is known."""
    name, params = operation.primitive.name, operation.params
    often = runs >= _OFTEN
    x = typeof(operation.operands[0]) if operation.operands else None
    for told, advice in (
            (often and name.startswith(("scatter", "dynamic_update_slice")),
             "a write of a few elements in each step: return them from the body of scan, and write "
             "all at once behind it"),
            (name.startswith("scatter"),
             "a CPU writes one index after the other: sort indices once and pass "
             "indices_are_sorted=True, unique_indices=True where they are, or sum by a product "
             "with one_hot(indices)"),
            (often and name in ("gather", "dynamic_slice"),
             "a read of a few elements in each step: take all of them before the loop, and pass "
             "them as xs of scan"),
            (name == "dot_general" and x is not None and x.dtype.kind in "iub",
             "products of integers have no fast kernel: compute in float32 where results are below "
             "2**24"),
            (_narrow(x), "half precision is emulated on a CPU: compute in float32, store in half"),
            (often and name == "dot_general",
             "a small product in each step: take what does not depend on the carry out of the "
             "loop as one product, or do several at a time with vmap"),
            (name == "conv_general_dilated" and params.get("feature_group_count", 1) > 1,
             "a convolution by groups runs group by group: for small windows add shifted copies, "
             "each times its weight"),
            (name == "sort" and x is not None and x.shape[params["dimension"]] <= 64,
             "a sort of many short rows: compare with minimum and maximum of slices, or "
             "lax.top_k where a few are wanted"),
            (name == "sort", "lax.top_k where only the largest are wanted; max, min or median need "
                             "no whole sort"),
            (name.startswith("cum"), "a CPU takes log(n) passes: cumsum along the last axis of a "
                                     "product with a triangle of ones, in blocks, takes one"),
            (name == "fft", "sizes that are products of 2, 3 and 5 are fast: pad to the next one")):
        if told:
            return advice
    return ""


def _narrow(aval: Any) -> bool:
    return aval is not None and aval.dtype in (np.float16, dtypes.bfloat16)


def slow_ops(fun: Callable[..., Any], *args: Any, factor: float = 8.0, **kwargs: Any) -> SlowOps:
    """Find the operations that are far below what the machine does, with a remedy where one is known.

    The function runs once, operation by operation, loops and jitted functions in Python. The first
    runs of each operation of each line are timed, with the least of a few repeats, and held against
    the time that its bytes and its flops take in a large sum and a large product of matrices on this
    machine, both measured before. What XLA fuses costs less within a program than alone; so a report
    says where to look. Small products, reads and writes that a line does many times are told, too:
    each is mostly a call.

    Args:
      fun: a function of pytrees of arrays.
      *args, **kwargs: its arguments, of the sizes that matter.
      factor: how many times slower than the bound an operation is that is told.

    Returns:
      A `SlowOps`: data, and as text what to do, the operations that lose most time first.

    ValueError for a factor that is not above 1.

    >>> import olympus
    >>> import olympus.numpy as onp
    >>> def mean_by_group(values, group):
    ...     return onp.zeros(10).at[group].add(values)
    >>> values, group = onp.ones(100_000), onp.arange(100_000) % 10
    >>> report = olympus.debug.slow_ops(mean_by_group, values, group)
    >>> report.operations[0].operation
    'scatter-add'
    """
    if not factor > 1:
        raise ValueError(f"slow_ops: factor={factor!r} given; a number above 1 is required.")
    watch = _Stopwatch(_Machine.measured())
    watched(fun, args, kwargs, watch)
    found = [op for row in watch.rows.values() if (op := _judged(row, factor)) is not None]
    return SlowOps(sorted(found, key=lambda op: (op.bound - op.seconds) * op.runs),
                   *watch.machine[:2])


def _judged(row: _Row, factor: float) -> SlowOp | None:
    """The operation, if it is far slower than its bound or small and frequent."""
    if not row.seconds:
        return None
    op, seconds = row.operation, min(row.seconds)
    remedy = _remedy(op, row.runs)
    slow = seconds > max(factor * row.bound, _LEAST)
    if not slow and not (row.runs >= _OFTEN and remedy and _frequent(op)):
        return None
    return SlowOp(op.primitive.name, source.summarize(op.source), row.runs, seconds, row.bound,
                  remedy)


def _frequent(operation: Operation) -> bool:
    """Whether an operation of a loop is one whose call costs more than its work."""
    name = operation.primitive.name
    out, = operation.results[:1]
    if name == "dot_general":
        contracted, _ = operation.params["dimension_numbers"][0]
        shape = typeof(operation.operands[0]).shape
        return 2 * out.size * int(np.prod([shape[i] for i in contracted])) < _SMALL
    return name.startswith(("scatter", "dynamic_update_slice", "gather", "dynamic_slice")) and (
        typeof(operation.operands[-1 if name.startswith("scatter") else 1]).size * 64
        < max(out.size, 64))
