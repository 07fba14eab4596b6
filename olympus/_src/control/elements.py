"""vmap of programs that each element runs for itself: one after the other, or all at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..base.typing import Array, ArrayLike, Params
from ..core.context import ThreadState, ctx
from ..core.ir import ClosedOlympuspr
from ..core.primitive import Axis
from ..core.staging import stage
from ..core.trace import typeof
from ..interpreters.batching import batch_program, to_axis
from ..interpreters.checks import Checks, check_p, check_program, first_run, looked_for, looking
from ..interpreters.dce import dce_closed
from ..lax.barriers import stop_gradient
from ..lax.comparison import select, select_n
from ..lax.indexing import GatherDimensionNumbers, gather
from ..lax.shape import broadcast_in_dim, expand_dims, zeros_of
from ..lax.sharding import as_typed
from ..lax.slicing import concatenate, dynamic_index_in_dim, index_in_dim
from ..types.shape import is_static
from .call import Call
from .scan_primitive import scan_p


class Unchecked(Call):
    """A call of a program that is checked already."""

    looked_into = False

    def checked(self, checks: Checks, args: Sequence[Array], params: Params) -> None:
        """None: no further checks are made."""


unchecked_call_p = Unchecked("unchecked_call")


def per_element(program: ClosedOlympuspr) -> bool:
    """Whether a program has effects that under vmap happen for each element."""
    return any(e.per_element for e in program.effects)


def map_mapped(fun: Callable[..., list[Array]], size: int, args: Sequence[ArrayLike],
               dims: Sequence[int | None]) -> list[Array]:
    """Call `fun` for one element after the other, and stack the results; in a program by a scan."""
    # Evaluated, `fun` runs for each element. Without elements, only staging gives the types of the
    # results.
    if ctx.trace is ThreadState.trace and size:
        return unrolled(fun, size, args, dims)
    fixed = [x for x, d in zip(args, dims, strict=True) if d is None]
    mapped = [to_axis(x, d, 0, size) for x, d in zip(args, dims, strict=True) if d is not None]

    def body(*xs: Array) -> list[Array]:
        consts, elements = iter(xs[:len(fixed)]), iter(xs[len(fixed):])
        return fun(*[next(consts if d is None else elements) for d in dims])

    # Unmapped operands are consts of the scan, mapped ones its xs; there is no carry.
    slices = [typeof(x).without_axis(0) for x in mapped]
    return scan_p.bind(*fixed, *mapped, olympuspr=stage(body, [*map(typeof, fixed), *slices]),
                       length=size, reverse=False, unroll=1, num_consts=len(fixed), num_carry=0)


def unrolled(fun: Callable[..., list[Array]], size: int, args: Sequence[ArrayLike],
             dims: Sequence[int | None]) -> list[Array]:
    """`map_mapped` without a loop: `fun` is called for each element."""
    if not size:
        return map_mapped(fun, size, args, dims)
    rows = [fun(*[x if d is None else index_in_dim(x, i, d, keepdims=False)
                  for x, d in zip(args, dims, strict=True)]) for i in range(size)]
    return [concatenate([expand_dims(x, (0,)) for x in column], 0)
            for column in zip(*rows, strict=True)]


def put_one(here: Array, one: Array, x: ArrayLike, dim: int) -> Array:
    """`x` with slice `one` in place of the slices that are not `here`, without its derivative."""
    aval = typeof(x)
    shape = aval.shape
    others = [i for i in range(len(shape)) if i != dim]
    if aval.tagged and aval.explicit or not is_static(shape):
        whole = x
        if aval.tagged and aval.sharding.spec[dim] is not None:
            whole = as_typed(x, aval.without_axis(dim).with_axis(dim, shape[dim]))
        stand_in = dynamic_index_in_dim(whole, one, dim, keepdims=False)
    else:
        # Where devices share the elements, a gather sends the slice; all would go to each for a
        # dynamic slice.
        numbers = GatherDimensionNumbers(tuple(range(len(others))), (dim,), (dim,))
        stand_in = gather(x, broadcast_in_dim(one, (1,), ()), numbers, tuple(
            [1 if i == dim else n for i, n in enumerate(shape)]))
    # The results of a stand-in are dropped; its cotangents (perhaps NaN) must not reach the element
    # whose copy it is.
    stand_in = stop_gradient(stand_in)
    return select_n(as_typed(broadcast_in_dim(here, shape, (dim,)), aval),
                    as_typed(broadcast_in_dim(stand_in, shape, others), aval), x)


def replaces_others() -> bool:
    """Whether masked-out elements must not trigger checks."""
    return looking()


def check_elements(axis: Axis, here: Array, args: Sequence[ArrayLike], dims: Sequence[int | None],
                   program: ClosedOlympuspr) -> None:
    """Record the failure of the first element that is `here` and fails, if checks will be made.

    The program that computes the results cannot tell which element failed, because in it active
    elements stand in for the others.
    """
    body = check_program(program, looked_for.value)
    if body is None:
        return
    results = len(body.program.outvars) - 2
    failure, _ = dce_closed(body.program, [True, True, *[False] * results])
    kinds = looked_for.swap_local(frozenset())      # this program has its checks already
    try:
        failure, out_dims = batch_program(failure, axis, dims)
    finally:
        looked_for.set_local(kinds)
    outs = unchecked_call_p.bind(*map(stop_gradient, args), olympuspr=failure, name="checks")
    code, words = [to_axis(x, d, 0, axis.size) for x, d in zip(outs, out_dims, strict=True)]
    code = select(here, code, zeros_of(typeof(code)))
    first, sites = first_run("element {} of a vmap", (axis.size,), [code, words], body.sites)
    check_p.bind(*first, sites=sites, debug=False)
