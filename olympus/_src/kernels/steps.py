"""The loop over a grid: a scan whose carry has the grid's indices, which count like an odometer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ..base.typing import Array, ArrayLike, PyTree
from ..control_flow.scan import scan
from ..control_flow.while_loop import while_loop
from ..core.trace import literal
from ..lax.arithmetic import mul
from ..lax.comparison import eq, lt, select
from ..lax.convert import convert_element_type
from ..lax.families import add
from ..lax.shape import as_array
from ..types.shape import SymbolicDim, exceeds, known_less, prod
from .specs import INT32

Size: TypeAlias = "int | ArrayLike"


def over_grid(step: Callable[..., list[Array]], size: Sequence[Size], state: Sequence[Array]
               ) -> Sequence[Array]:
    """Carry `state` through `step(ids, state)` for each place of a grid, in order."""
    zero = literal(0, INT32)
    static = [n for n in size if isinstance(n, (int, SymbolicDim))]
    if len(static) == len(size):
        steps = prod(static)
        if exceeds(steps, 2**31 - 1):
            raise ValueError(f"pallas_call: the grid {tuple(size)} given, {steps} steps; fewer "
                             "than 2**31 are required; make larger blocks.")
        if known_less(steps, 2):       # without a loop there is nothing that XLA may not fuse
            return step([zero] * len(size), state) if steps else state

        def counted(carry: PyTree, _: None) -> tuple[PyTree, None]:
            ids, state = carry
            return (_next(ids, size), step(_of_axes(ids, size), state)), None

        (_, state), _ = scan(counted, (_start(size), list(state)), None, length=steps)
        return state
    total: Any = literal(1, INT32)
    for n in size:
        total = mul(total, as_index(n))

    def body(carry: PyTree) -> PyTree:
        i, ids, state = carry
        return add(i, literal(1, INT32)), _next(ids, size), step(_of_axes(ids, size), state)

    init = as_array(zero), _start(size), list(state)
    return while_loop(lambda carry: lt(carry[0], total), body, init)[2]


# The grid's indices count like an odometer; axes of one place have none.

def _start(size: Sequence[Size]) -> list[Array]:
    return [as_array(literal(0, INT32)) for n in size if _counts(n)]


def _counts(n: Size) -> bool:
    return not isinstance(n, int) or n != 1


def _of_axes(ids: Sequence[Array], size: Sequence[Size]) -> list[Array]:
    given = iter(ids)
    return [next(given) if _counts(n) else literal(0, INT32) for n in size]


def _next(ids: Sequence[Array], size: Sequence[Size]) -> list[Array]:
    sizes = [as_index(n) for n in size if _counts(n)]
    found, one = [], literal(1, INT32)
    more: Any = one     # 1 where the axis behind begins again
    for k in reversed(range(len(sizes))):
        bumped = add(ids[k], more)
        if k:       # the first axis never begins again
            full = eq(bumped, sizes[k])
            bumped = select(full, as_array(literal(0, INT32)), bumped)
            more = convert_element_type(full, INT32)
        found.append(bumped)
    return found[::-1]


def as_index(n: Size) -> Array:
    return literal(n, INT32) if isinstance(n, int) else convert_element_type(n, INT32)
