"""Running a function with every operation watched: one trace for all observers of values.

A `WatchTrace` evaluates each operation and shows it to an observer, with the user's line that it
comes from. Jitted functions and loops run in Python (`disable_jit`), so that operations in them
are seen each time; transformations that the function applies stand above, so that the operations of
derivatives and of vmap are seen as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

import numpy as np

from ..base import source
from ..base.config import jit_disabled
from ..base.typing import Array, ArrayLike, Params, PyTree
from ..control.manual_trace import step_through
from ..control.remat import checkpoint_p
from ..control.shard_map import manual_of
from ..core.evaluate import evaluate
from ..core.ir import ClosedOlympuspr, Literal, OlympusprEqn
from ..core.primitive import Higher, Primitive
from ..core.trace import Trace, Tracer, check_usable, ctx, enter, leave, typeof
from ..lax.collectives.reductions import pvary_p
from ..lax.shape import broadcast_in_dim_p, reshape_p, squeeze_p
from ..numpy.creation import asarray
from ..types import dtypes
from ..types.tree import tree_flatten, tree_unflatten


class Operation:
    """One time that an operation ran.

    Attributes:
      primitive, params: what ran.
      operands: its operands: watched values, arrays or literals.
      source: the line it comes from.
      time: how often this operation of this line had run before: the iteration, in a loop.
      results: its results.
      transposed: the equation that a backward pass ran it for, or None.
    """

    __slots__ = ("primitive", "params", "operands", "source", "time", "results", "transposed")

    def __init__(self, primitive: Primitive, params: Params, operands: Sequence[Array],
                 line: source.Source | None, time: int, results: Sequence[Array]) -> None:
        self.primitive, self.params, self.operands = primitive, params, operands
        self.source, self.time, self.results = line, time, results
        self.transposed = ctx.transposed

    @property
    def name(self) -> str:
        """The primitive's name; of a step within a `shard_map`, the name of what devices do."""
        if self.primitive.per_device:
            return next((str(eqn.primitive) for eqn in self.params["olympuspr"].eqns
                         if eqn.primitive not in _OF_PARTS), str(self.primitive))
        return str(self.primitive)

    @property
    def line(self) -> str:
        """The file and line, and the code there."""
        return source.summarize(self.source)

    def __str__(self) -> str:
        again = f", time {self.time + 1}" if self.time else ""
        return f"{self.name} at {self.line}{again}"


# Operations that take a part out of the whole array, cast it and put it back.
_OF_PARTS = frozenset((broadcast_in_dim_p, pvary_p, reshape_p, squeeze_p))


class Observer(Protocol):
    """An observer of operations, which keeps notes beside each value: `WatchTracer._beside`."""

    def given(self, _: int, x: Array, /) -> object:
        """The notes kept beside an argument, by its leaf number."""
        ...

    def saw(self, operation: Operation, /) -> Sequence[object]:
        """The notes to keep beside each result."""
        ...


class WatchTracer(Tracer):
    """A live value, with the operation that made it and the observer's record of it."""

    __slots__ = ("_value", "_made", "_beside")
    _beside: Any     # of the observer's own type

    def __init__(self, trace: WatchTrace, value: Array, made: Operation | None, beside: object
                 ) -> None:
        self._trace, self.aval = trace, typeof(value)
        self._value, self._made, self._beside = value, made, beside

    def _known_value(self) -> Array | None:
        return self._value._known_value() if isinstance(self._value, Tracer) else self._value


class WatchTrace(Trace):
    """Evaluates each operation, and shows it to the observer."""

    __slots__ = ("observer", "times", "source")
    parent: Trace

    def __init__(self, parent: Trace, observer: Observer) -> None:
        super().__init__(parent)
        self.watched, self.observer = True, observer
        self.times: Counter[Hashable] = Counter()
        self.source: source.Source | None = None    # the line of a program's equation that is run

    def process(self, prim: Primitive, args: tuple, params: Params) -> object:
        if isinstance(prim, Higher) and (prim.called or prim is checkpoint_p):
            body, = prim.bodies(params)
            return self.run(body, args)
        if prim.per_device and len({eqn.source for eqn in params["olympuspr"].eqns}) > 1:
            def run(body: ClosedOlympuspr, *parts: Array) -> list[Any]:
                return self.run(body, parts)

            outs = step_through(run, manual_of(params), args, params)
            if outs is not None:
                return outs
        values = []
        for a in args:
            if isinstance(a, Tracer) and not (type(a) is WatchTracer and a._trace is self):
                check_usable(a)
            values.append(a._value if type(a) is WatchTracer else a)
        ctx.trace = self.parent
        try:
            results = self.parent.process(prim, tuple(values), params)
            outs = list(results) if prim.multiple_results else [results]
            line = self.source or source.user_frame()
            key = prim, line
            operation = Operation(prim, params, args, line, self.times[key], outs)
            self.times[key] += 1
            beside = self.observer.saw(operation)
        finally:
            ctx.trace = self
        tracers = [WatchTracer(self, *made) for made in zip(
            outs, [operation] * len(outs), beside, strict=True)]
        return tracers if prim.multiple_results else tracers[0]

    def process_custom(self, prim: Primitive, fun: Callable, rules: object, args: tuple,
                       params: Params) -> object:
        return fun(*args)

    def run(self, closed: ClosedOlympuspr, args: Sequence[Array]) -> list[ArrayLike]:
        """Run a program, each operation under its own line."""
        def step(eqn: OlympusprEqn, ins: list[Array]) -> object:
            outer = self.source
            if eqn.source is not source.CALLERS:
                self.source = eqn.source or outer
            try:
                return eqn.primitive.bind(*ins, **eqn.params)
            finally:
                self.source = outer

        return evaluate(closed.olympuspr, closed.consts, args, step)


def watched(fun: Callable[..., PyTree], args: Sequence[PyTree], kwargs: dict[str, PyTree],
            observer: Observer) -> PyTree:
    """Call the function with every operation shown to the observer; its result, as arrays."""
    trace = WatchTrace(ctx.trace, observer)
    leaves, tree = tree_flatten((tuple(args), kwargs))
    tracers = [WatchTracer(trace, x, None, observer.given(i, x))
               if dtypes.is_numeric(typeof(x).dtype) else x
               for i, x in enumerate(map(asarray, leaves))]
    given, named = tree_unflatten(tree, tracers)
    outer = enter(trace)
    try:
        with jit_disabled(True):
            return fun(*given, **named)
    finally:
        leave(outer)
        trace.alive = False


def host(x: Array | None) -> np.ndarray:
    """The value of an operand as a NumPy array."""
    while isinstance(x, Tracer):
        x = x._known_value() if not isinstance(x, WatchTracer) else x._value
    return x.value() if type(x) is Literal else np.asarray(x)
