"""Padding of arrays whose last blocks leave them.

Padding holds NaN, so that a kernel that uses it gives NaN. Derivatives use it in correct kernels,
too: the cotangent of an output's padding is 0, and 0 * NaN is NaN, which sums into the cotangents
of other operands. So differentiated kernels run on padding that repeats the elements at the ends of
the array: where the kernel has finite derivatives, 0 times them is 0. Padding of integers and bools
stays, so that masks and segments leave out the same elements with derivatives and without.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ..base.typing import Array
from ..core.evaluate import bind, evaluate
from ..core.ir import ClosedOlympuspr, OlympusprEqn, derived
from ..core.primitive import Cotangent, Linear, Tangent
from ..core.staging import stage
from ..core.trace import typeof
from ..lax.shape import broadcast_in_dim
from ..lax.slicing import Pad, concatenate, pad_p, slice_in_dim
from ..types.avals import has_tangent
from ..types.shape import definitely_equal

PaddingConfig: TypeAlias = "tuple[tuple[int, int, int], ...]"


class PadBlocks(Pad):
    """Pads an array to whole blocks with NaN, or the least integer."""

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], *,
            padding_config: PaddingConfig) -> tuple[Array, Tangent]:
        _, tangent = pad_p.jvp(primals, tangents, padding_config=padding_config)
        return self.bind(*primals, padding_config=padding_config), tangent

    def transpose(self, ct: Array, x: Linear, value: Array | Linear, *,
                  padding_config: PaddingConfig) -> list[Cotangent]:
        return pad_p.transpose(ct, x, value, padding_config=padding_config)


pad_blocks_p = PadBlocks("pad_blocks")


def repeat_ends(x: Array, config: PaddingConfig) -> Array:
    """The array with padding that repeats its first and last elements along each axis."""
    for axis, (low, high, _) in enumerate(config):
        n = typeof(x).shape[axis]
        parts = [*_repeated(x, axis, 0, low), x, *_repeated(x, axis, n - 1, high)]
        x = concatenate(parts, axis) if len(parts) > 1 else x
    return x


def _repeated(x: Array, axis: int, place: int, count: int) -> list[Array]:
    """The elements at a place of an axis, `count` times; nothing for 0."""
    if definitely_equal(count, 0):
        return []
    shape = list(typeof(x).shape)
    shape[axis] = count
    line = slice_in_dim(x, place, place + 1, axis=axis)
    return [broadcast_in_dim(line, shape, range(len(shape)))]


@derived
def with_ends_repeated(closed: ClosedOlympuspr) -> ClosedOlympuspr:
    """The program of a loop over a grid, with padding that derivatives may use."""
    pr = closed.olympuspr
    if not any(_replaced(eqn) for eqn in pr.eqns):
        return closed

    def step(eqn: OlympusprEqn, ins: list[Array]) -> object:
        if _replaced(eqn):
            return repeat_ends(ins[0], eqn.params["padding_config"])
        return bind(eqn, ins)

    return stage(lambda *xs: evaluate(pr, closed.consts, xs, step), closed.in_avals, pr.debug_info)


def _replaced(eqn: OlympusprEqn) -> bool:
    """Whether an equation pads a differentiable array that is not empty."""
    return eqn.primitive is pad_blocks_p and has_tangent(eqn.invars[0].aval) and not any(
        definitely_equal(n, 0) for n in eqn.invars[0].aval.shape)
