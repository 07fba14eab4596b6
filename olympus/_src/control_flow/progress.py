"""Progress bars of loops: `scan(..., progress="label")`, `fori_loop(..., progress=True)`.

The loop's body calls the host about fifty times in all. The backward pass of reverse mode shows a
bar of its own, through a linear identity in the carry whose transpose makes the call.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from ..base.typing import Array, ArrayLike, IrValue, Params, PyTree
from ..base.util import lazy_imports, wraps
from ..core.effects import DebugEffect, Effect
from ..core.ir import Literal
from ..core.primitive import Axis, Builder, Cotangent, Linear, Primitive, Tangent
from ..core.trace import literal, typeof
from ..host.callbacks import DebugCallback, FlatCallback, flat_callback
from ..interpreters.batching import to_axis
from ..lax import arithmetic
from ..lax.arithmetic import div, rem, sub
from ..lax.bits import bitwise_or
from ..lax.comparison import eq
from ..lax.families import add
from ..lax.reduce import reduce_max
from ..types.avals import ShapedArray
from ..types.dtypes import scalar_kind
from ..types.tree import tree_flatten, tree_unflatten
from .branches import cond

UPDATES = 50    # calls of the host for one loop, about

with lazy_imports(__name__):
    from tqdm import auto as _tqdm


class Bar:
    """The bar of one loop on the host: with tqdm if it is installed, else a line of text.

    Args:
      label: the text in front.
      each: how many iterations one step stands for; the last may be shorter.
      length: the number of iterations; None: the number of steps.
    """

    def __init__(self, label: str, each: int = 1, length: int | None = None) -> None:
        self.label, self.each, self.length = label, each, length
        self.shown: Any = None
        self.lock = threading.Lock()    # the backend calls from threads of its own
        self.use_tqdm = importlib.util.find_spec("tqdm") is not None

    def __call__(self, done: ArrayLike, total: ArrayLike) -> None:
        """Show that `done` of `total` iterations are done; the last one ends the bar."""
        done, total = int(np.max(done)), int(np.max(total))
        if self.length is not None:
            done, total = min(done * self.each, self.length), self.length
        with self.lock:
            if self.use_tqdm:
                if self.shown is None:
                    self.shown = _tqdm.tqdm(total=total, desc=self.label)
                # Calls without an order may overtake one another: a bar does not go back.
                self.shown.update(max(done - self.shown.n, 0))
            else:
                self.shown = f"\r{self.label}: {100 * done // max(total, 1):3d}% {done}/{total}"
                sys.stderr.write(self.shown + ("\n" if done >= total else ""))
                sys.stderr.flush()
            if done >= total:
                if self.use_tqdm:
                    self.shown.close()
                self.shown = None       # a loop that runs again shows another bar


class BatchEffect(DebugEffect):
    """A debugging callback runs, under vmap once for the whole batch."""

    __slots__ = ()
    # So that loops and branches around it are not run for one element after the other.
    per_element = False
    name = "Batch"


class DueTick(DebugCallback):
    """params: as of debug_callback."""

    def effects(self, avals: Sequence[ShapedArray], params: Params) -> frozenset[Effect]:
        return frozenset((BatchEffect(),))


class Tick(DueTick):
    """params: as of debug_callback. Calls the host if `done` is the last or one in total / UPDATES.

    Under vmap there is one call for the whole batch.
    """

    def host(self, params: Params) -> Callable[..., tuple[np.ndarray, ...]]:
        show = super().host(params)

        # Evaluated at once there is no program to decide: the call does.
        def call(done: np.ndarray, total: np.ndarray) -> tuple[np.ndarray, ...]:
            due = done == total or done % max(total // UPDATES, 1) == 0
            return show(done, total) if due else ()

        return call

    def lower(self, b: Builder, *xs: IrValue, **params: Hashable) -> list[IrValue]:
        b.traced(functools.partial(self._when_due, **params), xs, b.avals_in)
        return []

    # In the program: iterations that are not due do not wait for Python.
    def _when_due(self, done: Array, total: Array, **params: Hashable) -> list[Array]:
        def one(x: int) -> Literal:
            aval = typeof(done)
            return literal(x, aval.dtype, aval.weak_type)

        def call() -> tuple:
            due_p.bind(done, total, **params)
            return ()

        every = arithmetic.max(div(total, one(UPDATES)), one(1))
        due = bitwise_or(eq(done, total), eq(rem(done, every), one(0)))
        cond(due, call, tuple)
        return []

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], **params: Hashable
             ) -> tuple[list[Array], list[int | None]]:
        # Elements of a batch share the bar, which shows the furthest.
        self.bind(*[x if d is None else reduce_max(x, (d,))
                    for x, d in zip(args, dims, strict=True)], **params)
        return [], []


class Backward(Primitive):
    """The operand `x`; its transpose calls `callback` with the operands (done, total)."""

    def infer(self, x: ShapedArray, done: ShapedArray, total: ShapedArray, *, callback: FlatCallback
              ) -> ShapedArray:
        return x

    def lower(self, b: Builder, x: IrValue, *_: IrValue, callback: FlatCallback) -> IrValue:
        return x

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], *, callback: FlatCallback
            ) -> tuple[Array, Tangent]:
        # Only the tangent goes through it: the forward pass is as without.
        return primals[0], self.bind(tangents[0], *primals[1:], callback=callback)

    def transpose(self, ct: Array, x: Linear, done: Array, total: Array, *, callback: FlatCallback
                  ) -> list[Cotangent]:
        _tick(callback, done, total)
        return [ct if type(x) is Linear else None, None, None]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], *,
             callback: FlatCallback) -> tuple[Array, int]:
        count = [x if d is None else reduce_max(x, (d,))
                 for x, d in zip(args[1:], dims[1:], strict=True)]
        return self.bind(to_axis(args[0], dims[0], 0, axis.size), *count, callback=callback), 0


due_p = DueTick("progress_due")
tick_p = Tick("progress")
backward_p = Backward("progress_backward")


def _tick(callback: FlatCallback, done: Array, total: Array) -> None:
    tick_p.bind(done, total, callback=callback, ordered=False, partitioned=False)


def report(label: str, each: int = 1, length: int | None = None
           ) -> Callable[[PyTree, Array, Array], PyTree]:
    """A function `(carry, index, total) -> carry` for loop bodies, which shows progress.

    The index counts from 0; the first floating-point leaf of the carry brings the backward pass.
    """
    # (0, 0) has the structure of a call's operands, done and total.
    flat, back = (flat_callback(Bar(text, each, length), (0, 0), {})[0]
                  for text in (label, f"{label} backward"))

    def body(carry: PyTree, index: Array, total: Array) -> PyTree:
        aval = typeof(index)
        done = add(index, literal(1, aval.dtype, aval.weak_type))
        _tick(flat, done, total)
        leaves, tree = tree_flatten(carry)
        for i, x in enumerate(leaves):
            if scalar_kind(typeof(x).dtype) in "fc":
                # Backwards, the iteration at `index` is the last but `index`.
                leaves[i] = backward_p.bind(x, sub(total, index), total, callback=back)
                break       # one leaf makes one call in each iteration
        return tree_unflatten(tree, leaves)

    return body


def shown_scan(f: Callable[..., PyTree], label: str, total: Array) -> Callable[..., PyTree]:
    """A scan's function that shows progress; its x is the pair (x, iteration)."""
    show = report(label)

    def body(carry: PyTree, x: tuple[PyTree, Array]) -> tuple[PyTree, PyTree]:
        carry, y = f(carry, x[0])
        return show(carry, x[1], total), y

    return wraps(f)(body)


def shown_stretches(run: Callable[..., list[Array]], label: str, rounds: int, stretch: int,
                    length: int, num_carry: int
                    ) -> tuple[Callable[..., list[Array]],
                               Callable[[list[Array], Array], list[Array]]]:
    """A stretch of a scan that takes its number as one operand more, and returns it at the end.

    It shows progress; so does the second function, `(results, number) -> results`.
    """
    tick, total = report(label, stretch, length), literal(rounds, np.dtype(np.int32), False)

    def show(out: list[Array], index: Array) -> list[Array]:
        return [*tick(out[:num_carry], index, total), *out[num_carry:]]

    return lambda *args: [*show(run(*args[:-1]), args[-1]), args[-1]], show


def shown_fori(f: Callable[..., PyTree], label: str, lower: Array, upper: Array
               ) -> Callable[..., PyTree]:
    """A fori_loop's function that shows progress."""
    show, total = report(label), sub(upper, lower)

    def body(i: Array, val: PyTree) -> PyTree:
        return show(f(i, val), sub(i, lower), total)

    return wraps(f)(body)
