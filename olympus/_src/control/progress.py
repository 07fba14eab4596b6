"""Progress bars of loops: `scan(..., progress="label")`, `fori_loop(..., progress=True)`.

The loop's body calls the host about fifty times in all. The backward pass of reverse mode shows a
bar of its own, through a linear identity in the carry whose transpose makes the call.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.util import lazy_module
from ..core.primitive import Axis, Linear, Primitive
from ..core.trace import literal, typeof
from ..interpreters.batching import to_axis
from ..lax import elementwise as ew
from ..lax.reduce import reduce_max
from ..types.dtypes import scalar_kind
from ..types.tree import tree_flatten, tree_unflatten
from .callbacks import DebugCallback, FlatCallback, flat_callback
from .cond import cond

__all__ = ["Bar", "report"]

UPDATES = 50

_tqdm: Any = lazy_module("tqdm.auto")


class Bar:
    """The bar of one loop on the host: with tqdm if it is installed, else a line of text.

    Args:
      label: what is shown in front.
    """

    def __init__(self, label: str) -> None:
        self.label = label
        self.shown: Any = None
        self.lock = threading.Lock()
        self.use_tqdm = importlib.util.find_spec("tqdm") is not None

    def __call__(self, done: Any, total: Any) -> None:
        """Show that `done` of `total` iterations are done; the last one ends the bar."""
        done, total = int(np.max(done)), int(np.max(total))
        with self.lock:
            if self.use_tqdm:
                if self.shown is None:
                    self.shown = _tqdm.tqdm(total=total, desc=self.label)
                self.shown.update(max(done - self.shown.n, 0))
            else:
                self.shown = f"\r{self.label}: {100 * done // max(total, 1):3d}% {done}/{total}"
                sys.stderr.write(self.shown + ("\n" if done >= total else ""))
                sys.stderr.flush()
            if done >= total:
                if self.use_tqdm:
                    self.shown.close()
                self.shown = None


class Tick(DebugCallback):
    """params: as of debug_callback. Under vmap there is one call for the whole batch."""

    def vmap(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], **params: Any
             ) -> Any:
        self.bind(*[x if d is None else reduce_max(x, (d,)) for x, d in zip(args, dims)], **params)
        return [], []


class Backward(Primitive):
    """The operand `x`; its transpose calls `callback` with the operands (done, total)."""

    def infer(self, x: Any, done: Any, total: Any, *, callback: FlatCallback) -> Any:
        return x

    def lower(self, b: Any, x: Any, *_: Any, callback: FlatCallback) -> Any:
        return x

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, callback: FlatCallback
            ) -> Any:
        return primals[0], self.bind(tangents[0], *primals[1:], callback=callback)

    def transpose(self, ct: Any, x: Any, done: Any, total: Any, *, callback: FlatCallback
                  ) -> list[Any]:
        _tick(callback, done, total)
        return [ct if type(x) is Linear else None, None, None]

    def vmap(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], *,
             callback: FlatCallback) -> Any:
        count = [x if d is None else reduce_max(x, (d,)) for x, d in zip(args[1:], dims[1:])]
        return self.bind(to_axis(args[0], dims[0], 0, axis.size), *count, callback=callback), 0


tick_p = Tick("progress")
backward_p = Backward("progress_backward")


def _tick(callback: FlatCallback, done: Any, total: Any) -> None:
    """Call the host if `done` is the last iteration or one in `total / UPDATES`."""
    def one(x: int) -> Any:
        aval = typeof(done)
        return literal(x, aval.dtype, aval.weak_type)

    every = ew.max(ew.div(total, one(UPDATES)), one(1))
    due = ew.bitwise_or(ew.eq(done, total), ew.eq(ew.rem(done, every), one(0)))

    def call() -> tuple:
        tick_p.bind(done, total, callback=callback, ordered=False, partitioned=False)
        return ()

    cond(due, call, tuple)


def report(label: str) -> Callable[[Any, Any, Any], Any]:
    """A function `(carry, index, total) -> carry` for loop bodies, which shows progress.

    The index counts from 0; the first floating-point leaf of the carry brings the backward pass.
    """
    flat, back = (flat_callback(Bar(text), (0, 0), {})[0] for text in (label, f"{label} backward"))

    def body(carry: Any, index: Any, total: Any) -> Any:
        aval = typeof(index)
        done = ew.add(index, literal(1, aval.dtype, aval.weak_type))
        _tick(flat, done, total)
        leaves, tree = tree_flatten(carry)
        for i, x in enumerate(leaves):
            if scalar_kind(typeof(x).dtype) in "fc":
                # Backwards, the iteration at `index` is the last but `index`.
                leaves[i] = backward_p.bind(x, ew.sub(total, index), total, callback=back)
                break
        return tree_unflatten(tree, leaves)

    return body
