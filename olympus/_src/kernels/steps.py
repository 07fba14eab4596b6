"""The loop over a grid: a scan whose carry has the grid's indices, which count like an odometer."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..base.typing import Array, ArrayLike, PyTree
from ..control_flow.scan import scan
from ..control_flow.while_loop import while_loop
from ..core.trace import literal
from ..host.callbacks import io_callback
from ..lax.arithmetic import div, mul
from ..lax.bits import bitwise_and
from ..lax.comparison import eq, lt, select
from ..lax.convert import convert_element_type
from ..lax.families import add
from ..lax.shape import as_array
from ..numpy.creation import asarray
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
        if known_less(steps, 2):       # XLA can fuse one step with others
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
    # Reverse mode keeps 16 states, and computes the others again.
    return while_loop(lambda carry: lt(carry[0], total), body, init, checkpoints=16)[2]


class Steps:
    """How `InterpretParams` change the steps of a grid: their order, their cores, one memory.

    orders: for each axis its indices in the order of the steps, None for their own.
    one_memory: whether an input and its alias are one memory.
    shared: the sizes of the first axes, whose places several cores share; per_core: how many of
      these places each core has, 0 if there is one core. The cores run one after the other.
    """

    __slots__ = ("orders", "recorder", "one_memory", "shared", "per_core")

    def __init__(self, orders: Sequence[np.ndarray | None] = (),
                 recorder: Callable[..., object] | None = None, one_memory: bool = False,
                 shared: Sequence[int] = (), per_core: int = 0) -> None:
        self.orders, self.recorder, self.one_memory = orders, recorder, one_memory
        self.shared, self.per_core = shared, per_core

    @classmethod
    def of(cls, how: object, compiler_params: object, size: Sequence[Size]) -> Steps:
        """The steps for `interpret=how`: axes that are parallel are shuffled, if it has a seed."""
        seed, orders = getattr(how, "random_seed", None), ()
        kinds = getattr(compiler_params, "dimension_semantics", None) or ()
        parallel = [isinstance(n, int) and getattr(kind, "value", kind) == "parallel"
                    for n, kind in zip(size, kinds, strict=False)]
        if seed is not None and parallel:
            rng = np.random.default_rng(seed)
            orders = [rng.permutation(n).astype(INT32) if flag and n != 1 else None
                      for n, flag in zip(size, parallel, strict=False)]
        shared: list[Any] = [n for n, _ in itertools.takewhile(
            lambda pair: pair[1], zip(size, parallel, strict=False))]
        cores = getattr(how, "num_cores_or_threads", 1)
        return cls(orders, getattr(how, "grid_point_recorder", None),
                   hasattr(how, "dma_execution_mode"), shared,
                   -(-prod(shared) // cores) if cores > 1 else 0)

    def at(self, ids: Sequence[Array]) -> tuple[Sequence[Array], Array | None]:
        """The place in the grid of the loop's step `ids`, and whether it is a core's first step, or
        None if there is one core."""
        place: Any = literal(0, INT32)
        for i, n in zip(ids, self.shared, strict=False):
            place = add(mul(place, literal(n, INT32)), i)
        per, first = literal(self.per_core, INT32), None
        core = div(place, per) if self.per_core else literal(0, INT32)
        if self.per_core:
            first = eq(as_array(place), mul(core, per))
            for i in ids[len(self.shared):]:
                first = bitwise_and(first, eq(as_array(i), literal(0, INT32)))
        ids = [i if order is None else asarray(order)[i]
               for i, order in itertools.zip_longest(ids, self.orders)]
        if self.recorder is not None:
            io_callback(self._record, None, core, *ids, ordered=True)
        return ids, first

    def _record(self, core: np.ndarray, *ids: np.ndarray) -> None:
        assert self.recorder is not None
        self.recorder(tuple([INT32.type(i) for i in ids]), INT32.type(core))


# The grid's indices count like an odometer; axes of size 1 have no index.

def _start(size: Sequence[Size]) -> list[Array]:
    return [as_array(literal(0, INT32)) for n in size if _counts(n)]


def _counts(n: Size) -> bool:
    return not isinstance(n, int) or n != 1


def _of_axes(ids: Sequence[Array], size: Sequence[Size]) -> list[Array]:
    rest = iter(ids)
    return [next(rest) if _counts(n) else literal(0, INT32) for n in size]


def _next(ids: Sequence[Array], size: Sequence[Size]) -> list[Array]:
    sizes = [as_index(n) for n in size if _counts(n)]
    following, one = [], literal(1, INT32)
    more: Any = one     # 1 where the next axis starts again
    for k in reversed(range(len(sizes))):
        bumped = add(ids[k], more)
        if k:       # the first axis never starts again
            full = eq(bumped, sizes[k])
            bumped = select(full, as_array(literal(0, INT32)), bumped)
            more = convert_element_type(full, INT32)
        following.append(bumped)
    return following[::-1]


def as_index(n: Size) -> Array:
    return literal(n, INT32) if isinstance(n, int) else convert_element_type(n, INT32)
