"""The operation where two runs part: two functions, dtypes, devices, or releases of jaxlib."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..base.typing import Array, PyTree
from ..core.trace import typeof
from ..types import dtypes
from .watch import Operation, host, watched


class Step(NamedTuple):
    """One result of one operation, as a `Recording` has it.

    >>> import olympus
    >>> step, = olympus.debug.record(olympus.lax.sin, 0.0).steps
    >>> step.operation, step.time, float(step.value)
    ('sin', 0, 0.0)
    """

    operation: str
    line: str
    time: int       # how often it had run before on that line
    value: np.ndarray


class Recording(NamedTuple):
    """The results of each operation of one run, in order; `save` it to compare in another process.

    >>> import os, tempfile
    >>> import olympus
    >>> run = olympus.debug.record(lambda x: olympus.numpy.sin(x) * 2, 1.0)
    >>> [step.operation for step in run.steps]
    ['sin', 'mul']
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "run.npz")
    ...     run.save(path)
    ...     again = olympus.debug.Recording.load(path)
    >>> olympus.debug.bisect(run, again) is None
    True
    """

    steps: Sequence[Step]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the run to a file of NumPy's `npz` format."""
        header = np.array(json.dumps([step[:3] for step in self.steps]))
        values = [_plain(step.value) for step in self.steps]
        np.savez_compressed(path, header, *values)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Recording:
        """Read what `save` wrote. Raises what `numpy.load` does for other files."""
        with np.load(path, allow_pickle=False) as archive:
            header = json.loads(str(archive["arr_0"]))
            return cls([Step(operation, line, time, archive[f"arr_{i}"])
                        for i, (operation, line, time) in enumerate(header, 1)])


class Parting(NamedTuple):
    """The first operation at which two runs differ by more than the tolerance.

    Attributes:
      operation: the name of the primitive.
      lines: where it is written, in the first run and in the second.
      time: how often it had run before on that line: the iteration, in a loop.
      error: the relative error between the two results, in the 2-norm.
      index: the element that differs most.
      values: that element in both.

    >>> import olympus
    >>> print(str(olympus.debug.bisect(olympus.lax.sin, olympus.lax.sin, 1.0)))
    None
    >>> parting = olympus.debug.bisect(lambda x: x + 1, lambda x: x + 2, 1.0)
    >>> parting.operation, parting.index, parting.values
    ('add', (), (2.0, 3.0))
    """

    operation: str
    lines: tuple[str, str]
    time: int
    error: float
    index: tuple[int, ...]
    values: tuple[Any, Any]

    def __str__(self) -> str:
        again = f", run {self.time + 1}" if self.time else ""
        return (f"{self.operation}{again} parts by {self.error:.1e} at element {list(self.index)}: "
                f"{self.values[0]} and {self.values[1]}\n  first:  {self.lines[0]}\n"
                f"  second: {self.lines[1]}")


class _Recorder:
    def __init__(self) -> None:
        self.steps: list[Step] = []

    def given(self, _: int, x: Array) -> None:
        return None

    def saw(self, op: Operation) -> list[None]:
        self.steps += [Step(op.name, op.line, op.time, np.array(host(x)))
                       for x in op.results if dtypes.is_numeric(typeof(x).dtype)]
        return [None] * len(op.results)


def record(fun: Callable[..., PyTree], *args: PyTree, **kwargs: PyTree) -> Recording:
    """Run a function operation by operation, and keep every result, on the host.

    Args:
      fun: a function of pytrees of arrays.
      *args, **kwargs: its arguments.
    Returns: A `Recording`, for `bisect`.

    >>> len(olympus.debug.record(lambda x: x + 1 + 1, 1.0).steps)
    2
    """
    recorder = _Recorder()
    watched(fun, args, kwargs, recorder)
    return Recording(recorder.steps)


def bisect(first: Callable[..., PyTree] | Recording, second: Callable[..., PyTree] | Recording,
           *args: PyTree, tolerance: float | None = None, **kwargs: PyTree) -> Parting | None:
    """Find the first operation at which two runs give different results.

    Operations are paired in order, by primitive and shape; operations of only one run are skipped.

    Args:
      first, second: functions of pytrees of arrays, or `Recording`s of runs: of another device,
        dtype, or release of jaxlib.
      *args, **kwargs: the arguments of the functions.
      tolerance: the relative error (2-norm) that is no difference; None: 100 units in the last
        place of the coarser dtype.
    Returns: A `Parting`; None if all results agree. An operation that sums in another order already
      differs by rounding: hence the tolerance.

    >>> def old(x):
    ...     return onp.sqrt(x + 1.0) * 2
    >>> def new(x):
    ...     return onp.sqrt(x + 1.5) * 2
    >>> parting = olympus.debug.bisect(old, new, 3.0)
    >>> parting.operation, parting.values
    ('add', (4.0, 4.5))
    """
    a, b = [run.steps if isinstance(run, Recording) else record(run, *args, **kwargs).steps
            for run in (first, second)]
    for x, y in _matching_steps(a, b):
        error = _difference(x.value, y.value)
        unit = max([float(dtypes.finfo(v.dtype).eps) for v in (x.value, y.value)
                    if dtypes.is_inexact(v.dtype)], default=0.0)
        if error > (100 * unit if tolerance is None else tolerance):
            return _parting(x, y, error)
    return None


def _matching_steps(a: Sequence[Step], b: Sequence[Step]) -> list[tuple[Step, Step]]:
    kinds = [[(step.operation, step.value.shape) for step in steps] for steps in (a, b)]
    if kinds[0] == kinds[1]:
        return list(zip(a, b))
    blocks = difflib.SequenceMatcher(None, *kinds, autojunk=False).get_matching_blocks()
    return [(a[i + k], b[j + k]) for i, j, n in blocks for k in range(n)]


def _plain(x: np.ndarray) -> np.ndarray:
    """An array of a dtype that NumPy has itself: bfloat16 and its like as float32."""
    return x if x.dtype.isbuiltin == 1 else x.astype(np.float32)


def _difference(x: np.ndarray, y: np.ndarray) -> float:
    """The relative error in the 2-norm; infinite where one is finite and the other is not."""
    kind = np.complex128 if "c" in (x.dtype.kind, y.dtype.kind) else np.float64
    a, b = _plain(x).astype(kind), _plain(y).astype(kind)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if same.all():
        return 0.0
    if not (np.isfinite(a[~same]).all() and np.isfinite(b[~same]).all()):
        return np.inf
    size = np.linalg.norm(np.where(np.isfinite(b), b, 0).ravel())
    return float(np.linalg.norm((a[~same] - b[~same]).ravel()) / size) if size else np.inf


def _parting(x: Step, y: Step, error: float) -> Parting:
    kind = np.complex128 if "c" in (x.value.dtype.kind, y.value.dtype.kind) else np.float64
    gap = np.abs(_plain(x.value).astype(kind) - _plain(y.value).astype(kind))
    index = np.unravel_index(np.argmax(np.where(np.isnan(gap), np.inf, gap)), gap.shape)
    where = tuple(int(i) for i in index)
    return Parting(x.operation, (x.line, y.line), x.time, error, where,
                   (_plain(x.value)[where].item(), _plain(y.value)[where].item()))
