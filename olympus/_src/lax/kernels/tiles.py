"""Whole arrays repeated along axes."""

from __future__ import annotations

from ...base.typing import IrValue
from ...core.kernels import Kernel
from ...core.primitive import Builder
from ...types import dtypes
from ...types.avals import make_aval
from ...types.memory import Space
from ..shape import Dims, interleaved, tile_p

# Found with tools/kernel_table.py: more elements repay the 15 ms that a kernel of XLA's more, a
# copy, takes to compile.
LEAST = 1 << 16


def _is_within(b: Builder, x: IrValue, *, reps: Dims) -> bool:
    """Whether not only whole blocks of rows are repeated."""
    aval, out = b.avals_in[0], b.avals_out[0]
    return (out.size >= LEAST and (aval.ndim == 1 or max(reps[1:]) > 1)
            and dtypes.scalar_kind(aval.dtype) in "biufc" and aval.memory_space is Space.Device)


def _is_result(b: Builder, x: IrValue, *, reps: Dims) -> bool:
    """Whether the program returns it: XLA fuses others with what reads them, as fast."""
    program = b.module.alone
    return program is not None and b.eqn.outvars[0] in program.olympuspr.outvars


def _in_two_steps(b: Builder, x: IrValue, *, reps: Dims) -> IrValue:
    aval = b.avals_in[0]
    pairs = make_aval(interleaved(reps, aval.shape), aval.dtype)
    x = b.hold(b.broadcast(x, pairs, range(1, 2 * aval.ndim, 2)), pairs)
    return b.op("stablehlo.reshape", [x], None, b.avals_out[0])


KERNELS = {tile_p: (Kernel("repeats in memory before they are joined", "XLA divides the place of "
                           "each element", _is_within, _in_two_steps, 0.3, suits=_is_result),)}
