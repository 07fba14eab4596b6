"""vmap of what each element does for itself: one element after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..base.typing import Array, ArrayLike
from ..core.context import ThreadState, ctx
from ..core.ir import ClosedOlympuspr
from ..core.staging import stage
from ..core.trace import typeof
from ..interpreters.batching import to_axis
from ..lax.shape import expand_dims
from ..lax.slicing import concatenate, index_in_dim
from .scan_primitive import scan_p

__all__ = ["map_mapped", "per_element", "unrolled"]


def per_element(program: ClosedOlympuspr) -> bool:
    """Whether a program has effects that under vmap each element has for itself."""
    return any(e.per_element for e in program.effects)


def map_mapped(fun: Callable[..., list[Any]], size: int, args: Sequence[ArrayLike],
               dims: Sequence[int | None]) -> list[Array]:
    """Call `fun` for one element after the other and stack its results: a loop in programs."""
    # With nothing traced each element is simply run. Where there is none, no run tells the types of
    # the results; staging does.
    if ctx.trace is ThreadState.trace and size:
        return unrolled(fun, size, args, dims)
    fixed = [x for x, d in zip(args, dims, strict=True) if d is None]
    mapped = [to_axis(x, d, 0, size) for x, d in zip(args, dims, strict=True) if d is not None]

    def body(*xs: Array) -> list[Any]:
        consts, elements = iter(xs[:len(fixed)]), iter(xs[len(fixed):])
        return fun(*[next(consts if d is None else elements) for d in dims])

    # What is not mapped is a const of the loop, what is mapped its xs; there is no carry.
    slices = [typeof(x).without_axis(0) for x in mapped]
    return scan_p.bind(*fixed, *mapped, olympuspr=stage(body, [*map(typeof, fixed), *slices]),
                       length=size, reverse=False, unroll=1, num_consts=len(fixed), num_carry=0)


def unrolled(fun: Callable[..., list[Any]], size: int, args: Sequence[ArrayLike],
             dims: Sequence[int | None]) -> list[Array]:
    """`map_mapped`, written out."""
    if not size:
        return map_mapped(fun, size, args, dims)
    rows = [fun(*[x if d is None else index_in_dim(x, i, d, keepdims=False)
                  for x, d in zip(args, dims, strict=True)]) for i in range(size)]
    return [concatenate([expand_dims(x, (0,)) for x in column], 0)
            for column in zip(*rows, strict=True)]
