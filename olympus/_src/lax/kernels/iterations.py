"""Iterations of elements by blocks that stay in the nearest cache, each until its own elements end.

XLA:CPU (0.10.2, 0.12.0.1) would pass over whole arrays in each step, as often as the slowest
element needs: for each array of the state, and once more to ask whether any element goes on. It
compiles a loop over blocks as one function (`base.lib.executables.SMALL_LOOP`); larger blocks, or
more steps at once, are too large for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...base import config
from ...base.typing import Array, IrValue
from ...core.kernels import Kernel
from ...core.primitive import Builder
from ...core.trace import typeof
from ...types import dtypes
from ...types.avals import make_aval
from ..bits import bitwise_and, bitwise_or
from ..comparison import lt, select
from ..families import add
from ..shape import reshape
from ..slicing import slice_in_dim
from ..special.series import Step, iterate_p
from .blocks import INT32, MOST
from .reductions import tree

# The elements of a block, and up to how many states it takes two steps before it asks whether to go
# on: the fastest of 8 to 512 elements and 1, 2 and 4 steps for incomplete gamma and beta functions,
# J, K, Shi and Chi of 100,000 numbers.
BLOCK, FEW_STATES = 64, 3


def _fits(b: Builder, *xs: IrValue, **params: Any) -> bool:
    return b.avals_in[0].size <= MOST


def _any(active: Array) -> Array:
    """Whether an element of a block holds."""
    while (n := typeof(active).size) > 1:
        width = max(n // 8, 1)
        active = tree(bitwise_or, [slice_in_dim(active, i, i + width) for i in range(0, n, width)])
    return reshape(active, ())


def _by_blocks(b: Builder, *xs: IrValue, step: Step, states: int, limit: int) -> list[IrValue]:
    size = b.avals_in[0].size
    flat, parts = ([make_aval((n,), a.dtype) for a in b.avals_in] for n in (size, BLOCK))
    count = make_aval((), dtypes.to_real_dtype(flat[1].dtype))
    whole = [b.op("stablehlo.reshape", [x], None, a) for x, a in zip(xs, flat, strict=True)]
    at_once = 2 if states <= FEW_STATES and limit % 2 == 0 else 1

    def go_on(i: Array, active: Array) -> list[Array]:
        return [bitwise_and(_any(active), lt(i, float(limit)))]

    def steps(i: Array, active: Array, *values: Array) -> Sequence[Array]:
        state, constants = values[:states], values[states:]
        for _ in range(at_once):
            again, new = step(i, state, constants)
            state = [select(active, n, s) for n, s in zip(new, state, strict=True)]
            i, active = add(i, 1.0), bitwise_and(active, again)
        return [i, active, *state]

    def block(k: IrValue, outs: Sequence[IrValue]) -> list[IrValue]:
        number = make_aval((), INT32)
        start = b.op("stablehlo.multiply", [k, b.scalar(BLOCK, INT32)], None, number)
        # The last block begins earlier if it would be shorter.
        start = b.op("stablehlo.minimum", [start, b.scalar(size - BLOCK, INT32)], None, number)
        width = {"slice_sizes": b.i64s((BLOCK,))}
        active, *values = (b.op("stablehlo.dynamic_slice", [x, start], width, a)
                           for x, a in zip(whole, parts, strict=True))
        ends = b.while_loop(
            [b.constant(0.0, count), active, *values[:states]],
            lambda i, active, *_: b.traced(go_on, [i, active], [count, parts[0]])[0],
            lambda *read: b.traced(steps, [*read, *values[states:]], [count, *parts]))[2:]
        return [b.op("stablehlo.dynamic_update_slice", [out, end, start], None, a)
                for out, end, a in zip(outs, ends, flat[1:], strict=False)]

    with config.enable_x64(dtypes.finfo(count.dtype).bits == 64):
        outs = b.counted_loop(-(-size // BLOCK), whole[1:1 + states], block)
    return [b.op("stablehlo.reshape", [x], None, a) for x, a in zip(outs, b.avals_out, strict=True)]


KERNELS = {iterate_p: (Kernel(
    "iteration by blocks", "XLA passes over whole arrays in each step", _fits, _by_blocks),)}
