"""Matrix products by kernels: of two matrices, and of groups of rows with a matrix each.

    matmul   x y                                       blocks of x y, summed over blocks of k
    gmm      rows of group g of lhs times rhs[g]        a step for each pair (block of rows, group)
    tgmm     out[g] = the product over group g's rows   the same steps, summed for each group

The rows of a group follow one another, so that there are at most as many pairs as blocks and groups
together. Method: Gale et al. 2022, MegaBlocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..base.docstrings import complete_docstrings
from ..base.typing import Array, DTypeLike, PyTree, Reference
from ..custom.vjp import custom_vjp
from ..jit.jit import jit
from ..kernels.call import pallas_call
from ..kernels.control import cdiv, when
from ..kernels.grid import num_programs, program_id
from ..kernels.specs import BlockSpec, MemorySpace, PrefetchScalarGridSpec
from ..lax.creation import broadcasted_iota
from ..numpy.conditions import clip
from ..numpy.creation import zeros
from ..numpy.grids import arange
from ..numpy.products import dot
from ..numpy.reductions import cumsum
from ..numpy.selection import where
from ..numpy.sorting import searchsorted
from ..types.avals import make_aval
from ..types.dtypes import as_dtype, is_integer
from ..types.shape import floor_div, mod

_F32, _I32 = as_dtype("float32"), as_dtype("int32")
Tiling: TypeAlias = "tuple[int, int, int] | Callable[[int, int, int], tuple[int, int, int]] | None"


@partial(jit, static_argnames=("block_shape", "block_k", "debug", "out_dtype"))
def matmul(x: Array, y: Array, *, block_shape: tuple[int, int], block_k: int = 256,
           out_dtype: DTypeLike | None = None, debug: bool = False) -> Array:
    """x y by a kernel of blocks, under `pltpu.force_tpu_interpret_mode()`.

    Args:
      x, y: [m, k], [k, n].
      block_shape: of the product's blocks, which divide m and n.
      block_k: divides k.
      out_dtype: of the product; the operands' by default.
      debug: has no effect.
    Returns: [m, n].

    >>> from olympus.experimental.pallas.ops.tpu.matmul import matmul
    >>> with pltpu.force_tpu_interpret_mode():
    ...     print(matmul(onp.ones((4, 4)), onp.ones((4, 2)), block_shape=(2, 2), block_k=2)[0])
    [4. 4.]
    """
    if out_dtype is None:
        if x.dtype != y.dtype:
            raise TypeError(f"matmul: x {x.aval} and y {y.aval} given: Cannot deduce output dtype "
                            "for different input dtypes; pass out_dtype.")
        out_dtype = x.dtype
    (m, k), n = x.shape, y.shape[1]
    sizes = (m, block_shape[0]), (n, block_shape[1]), (k, block_k)
    if any(mod(size, block) for size, block in sizes):
        raise ValueError(f"matmul: x {x.aval} and y {y.aval} given in blocks of {block_shape} and "
                         f"{block_k} along k; sizes that they divide are required.")
    sums = _I32 if is_integer(x.dtype) else _F32

    def kernel(x: Reference, y: Reference, out: Reference, total: Reference) -> None:
        @when(program_id(2) == 0)
        def _() -> None:
            total[...] = zeros(total.shape, sums)

        total[...] += dot(x[...], y[...], preferred_element_type=sums)

        @when(program_id(2) == num_programs(2) - 1)
        def _() -> None:
            out[...] = total[...].astype(out.dtype)

    rows, columns = block_shape
    return pallas_call(
        kernel, make_aval((m, n), as_dtype(out_dtype)),
        grid=tuple([floor_div(size, block) for size, block in sizes]),
        in_specs=[BlockSpec((rows, block_k), lambda i, j, k: (i, k)),
                  BlockSpec((block_k, columns), lambda i, j, k: (k, j))],
        out_specs=BlockSpec(block_shape, lambda i, j, k: (i, j)),
        scratch_shapes=[MemorySpace.ANY(block_shape, sums)])(x, y)


# Groups ------------------------------------------------------------------------------------------

class _Steps(NamedTuple):
    """The pairs (block of rows, group) that share rows, in order; spare steps repeat the last.

    group, block: int32[steps]. first, last: int32[steps], the group's range of rows, empty for
    spare steps.
    """

    group: Any
    block: Any
    first: Any
    last: Any


def _steps(sizes: Array, rows: int, by: int, offset: Array | None, groups: int) -> _Steps:
    """The steps of `groups` groups from `offset` on, in blocks of `by` rows."""
    number = arange(sizes.shape[0], dtype=_I32)
    ends = cumsum(sizes, dtype=_I32)
    starts = ends - sizes
    first = 0 if offset is None else offset
    here = (number >= first) & (number < first + groups) & (sizes > 0)
    count = where(here, floor_div(ends - 1, by) - floor_div(starts, by) + 1, 0)
    after = cumsum(count, dtype=_I32)
    step = arange(cdiv(rows, by) + sizes.shape[0], dtype=_I32)
    real = clip(step, 0, after[-1] - 1)
    group = clip(searchsorted(after, real, side="right"), 0, sizes.shape[0] - 1).astype(_I32)
    block = floor_div(starts[group], by) + real - (after - count)[group]
    spare = step >= after[-1]
    return _Steps(group, clip(block, 0, None), where(spare, 0, starts[group]),
                  where(spare, 0, ends[group]))


def _check(name: str, lhs: Array, rhs: Array, sizes: Array, offset: Array | None, ndim: int
           ) -> None:
    for what, x, n in (("lhs", lhs, 2), ("rhs", rhs, ndim), ("group_sizes", sizes, 1)):
        if x.ndim != n:
            raise ValueError(f"{name}: {what} {x.aval} given: Expected {n}-tensor for '{what}' but "
                             f"got {x.ndim}-tensor.")
    if sizes.dtype != _I32:
        raise ValueError(f"{name}: group_sizes {sizes.aval} given: Expected 32-bit integer "
                         "'group_sizes'; convert them with astype.")
    if offset is not None and offset.shape:
        raise ValueError(f"{name}: group_offset {offset.aval} given: group_offset must be a "
                         "()-shaped array.")


def _tiles(name: str, tiling: Tiling, *sizes: int) -> tuple[int, int, int]:
    tiles = tiling(*sizes) if callable(tiling) else tiling
    if tiles is None:
        raise ValueError(f"{name}: No tuned tiling found for (m, k, n) = {sizes}; pass three ints.")
    return tiles


def _inside(shape: tuple[int, int], axis: int, block: Array, limit: int) -> Array:
    """Which elements of a block are before the array's end along an axis."""
    return broadcasted_iota(_I32, shape, axis) + block * shape[axis] < limit


def _rows(steps: PyTree, at: Array, shape: tuple[int, int], axis: int) -> Array:
    """Which elements of a block are of rows of the step's group."""
    row = broadcasted_iota(_I32, shape, axis) + steps.block[at] * shape[axis]
    return (row >= steps.first[at]) & (row < steps.last[at])


@partial(jit, static_argnames=("preferred_element_type", "tiling", "transpose_rhs", "interpret"))
def _gmm(lhs: Array, rhs: Array, group_sizes: Array, preferred_element_type: DTypeLike,
         tiling: Tiling, group_offset: Array | None, existing_out: Array | None,
         transpose_rhs: bool, interpret: bool) -> Array:
    _check("gmm", lhs, rhs, group_sizes, group_offset, 3)
    (m, k), n = lhs.shape, rhs.shape[1 if transpose_rhs else 2]
    dtype = as_dtype(preferred_element_type)
    if existing_out is not None and existing_out.dtype != dtype:
        raise ValueError(f"gmm: existing_out {existing_out.aval} and preferred_element_type "
                         f"{dtype} given: Existing output dtype must match preferred_element_type.")
    tm, tk, tn = _tiles("gmm", tiling, m, k, n)
    offset = 0 if group_offset is None else group_offset
    steps = _steps(group_sizes, m, tm, group_offset, rhs.shape[0])
    of_rhs = (tn, tk) if transpose_rhs else (tk, tn)

    def kernel(steps: PyTree, offset: Reference, lhs: Reference, rhs: Reference, old: Reference,
               out: Reference, total: Reference) -> None:
        at, block = program_id(1), program_id(2)

        @when(block == 0)
        def _() -> None:
            total[...] = zeros(total.shape, _F32)

        x, y = lhs[...].astype(_F32), rhs[...].astype(_F32)
        if mod(k, tk):
            x = where(_inside((tm, tk), 1, block, k), x, 0)
            y = where(_inside(of_rhs, 1 if transpose_rhs else 0, block, k), y, 0)
        total[...] += dot(x, y.T if transpose_rhs else y)

        @when(block == num_programs(2) - 1)
        def _() -> None:
            out[...] = where(_rows(steps, at, (tm, tn), 0), total[...].astype(out.dtype), out[...])

    def of_group(j: Array, s: Array, i: Array, steps: PyTree, offset: Reference) -> PyTree:
        group = clip(steps.group[s] - offset[...], 0, rhs.shape[0] - 1)
        return (group, j, i) if transpose_rhs else (group, i, j)

    of_out = BlockSpec((tm, tn), lambda j, s, i, steps, _: (steps.block[s], j))
    old = zeros((m, n), dtype) if existing_out is None else existing_out
    return pallas_call(
        kernel, make_aval((m, n), dtype), grid_spec=PrefetchScalarGridSpec(
            2, (cdiv(n, tn), steps.group.shape[0], cdiv(k, tk)),
            [BlockSpec((tm, tk), lambda j, s, i, steps, _: (steps.block[s], i)),
             BlockSpec((None, *of_rhs), of_group), of_out],
            of_out, [MemorySpace.ANY((tm, tn), _F32)]),
        input_output_aliases={7: 0}, interpret=interpret, name="gmm",
    )(steps, arange(1, dtype=_I32)[0] + offset, lhs, rhs, old)


@partial(jit, static_argnames=("preferred_element_type", "tiling", "num_actual_groups",
                               "interpret"))
def tgmm(lhs: Array, rhs: Array, group_sizes: Array,
         preferred_element_type: DTypeLike = np.float32, tiling: Tiling = (128, 128, 128),
         group_offset: Array | None = None, num_actual_groups: int | None = None,
         existing_out: Array | None = None, interpret: bool = False) -> Array:
    """out[g] = lhs[:, rows of group g] rhs[rows of group g], by a kernel.

    Args:
      lhs, rhs: [k, m], [m, n]; group g has the rows that follow those of the groups before it.
      num_actual_groups: how many groups there are from `group_offset` on.
      existing_out: is added to the result.
    Returns: [num_actual_groups, k, n].

    >>> from olympus.experimental.pallas.ops.tpu import megablox
    >>> x = onp.ones((4, 1))
    >>> sizes = onp.array([1, 3], onp.int32)
    >>> print(megablox.tgmm(x.T, x, sizes, tiling=(2, 1, 1), interpret=True).ravel())
    [1. 3.]
    """
    _check("tgmm", lhs, rhs, group_sizes, group_offset, 2)
    (k, m), n = lhs.shape, rhs.shape[1]
    groups = group_sizes.shape[0] if num_actual_groups is None else num_actual_groups
    tm, tk, tn = _tiles("tgmm", tiling, m, k, n)
    dtype = as_dtype(preferred_element_type)
    offset = 0 if group_offset is None else group_offset
    steps = _steps(group_sizes, m, tm, group_offset, groups)

    def kernel(steps: PyTree, offset: Reference, lhs: Reference, rhs: Reference, old: Reference,
               out: Reference, total: Reference) -> None:
        at = program_id(2)

        @when((at == 0) | (steps.group[at] != steps.group[clip(at - 1, 0, None)]))
        def _() -> None:
            total[...] = zeros(total.shape, _F32)

        x = where(_rows(steps, at, (tk, tm), 1), lhs[...].astype(_F32), 0)
        y = where(_rows(steps, at, (tm, tn), 0), rhs[...].astype(_F32), 0)
        total[...] += dot(x, y)
        out[...] = total[...].astype(out.dtype)

    of_out = BlockSpec((None, tk, tn), lambda i, j, s, steps, offset: (
        clip(steps.group[s] - offset[...], 0, groups - 1), i, j))
    # Blocks of groups without rows are not visited, and stay 0.
    product = pallas_call(
        kernel, make_aval((groups, k, n), dtype), grid_spec=PrefetchScalarGridSpec(
            2, (cdiv(k, tk), cdiv(n, tn), steps.group.shape[0]),
            [BlockSpec((tk, tm), lambda i, j, s, steps, _: (i, steps.block[s])),
             BlockSpec((tm, tn), lambda i, j, s, steps, _: (steps.block[s], j)), of_out],
            of_out, [MemorySpace.ANY((tk, tn), _F32)]),
        input_output_aliases={7: 0}, interpret=interpret, name="tgmm",
    )(steps, arange(1, dtype=_I32)[0] + offset, lhs, rhs, zeros((groups, k, n), dtype))
    return product if existing_out is None else product + existing_out


@partial(custom_vjp, nondiff_argnums=(3, 4, 7, 8))
def gmm(lhs: Array, rhs: Array, group_sizes: Array,
        preferred_element_type: DTypeLike = np.float32, tiling: Tiling = (128, 128, 128),
        group_offset: Array | None = None, existing_out: Array | None = None,
        transpose_rhs: bool = False, interpret: bool = False) -> Array:
    """The rows of each group of `lhs` times the group's own matrix, by a kernel.

    Args:
      lhs: [m, k]; group g has the rows that follow those of the groups before it.
      rhs: [groups, k, n], the matrices from `group_offset` on.
      existing_out: [m, n], the rows of other groups; 0 if it is left out.
      transpose_rhs: whether `rhs` is [groups, n, k].
    Returns: [m, n].

    >>> from olympus.experimental.pallas.ops.tpu import megablox
    >>> rhs = onp.array([10., 20.]).reshape(2, 1, 1)
    >>> sizes = onp.array([1, 3], onp.int32)
    >>> print(megablox.gmm(onp.ones((4, 1)), rhs, sizes, tiling=(2, 1, 1), interpret=True).ravel())
    [10. 20. 20. 20.]
    """
    return _gmm(lhs, rhs, group_sizes, preferred_element_type, tiling, group_offset, existing_out,
                transpose_rhs, interpret)


def _gmm_fwd(lhs: Array, rhs: Array, group_sizes: Array, preferred_element_type: DTypeLike,
             tiling: Tiling, group_offset: Array | None, existing_out: Array | None,
             transpose_rhs: bool, interpret: bool) -> PyTree:
    out = _gmm(lhs, rhs, group_sizes, preferred_element_type, tiling, group_offset, existing_out,
               transpose_rhs, interpret)
    return out, (lhs, rhs, group_sizes, group_offset, existing_out)


def _gmm_bwd(preferred_element_type: DTypeLike, tiling: Tiling, transpose_rhs: bool,
             interpret: bool, residuals: PyTree, ct: Array) -> Sequence[PyTree]:
    lhs, rhs, sizes, offset, old = residuals
    dlhs = _gmm(ct, rhs, sizes, lhs.dtype, tiling, offset, None, not transpose_rhs, interpret)
    drhs = tgmm(lhs.T, ct, sizes, rhs.dtype, tiling, offset, rhs.shape[0], interpret=interpret)
    dold = None
    if old is not None:     # the group's remaining rows
        first = 0 if offset is None else offset
        ends, row = cumsum(sizes), arange(lhs.shape[0])
        group = searchsorted(ends, row, side="right")
        others = (group < first) | (group >= first + rhs.shape[0]) | (row >= ends[-1])
        dold = where(others[:, None], ct, 0)
    return dlhs, drhs.swapaxes(1, 2) if transpose_rhs else drhs, None, None, dold


gmm.defvjp(_gmm_fwd, _gmm_bwd)

complete_docstrings(globals(), {
    "group_sizes": "int32[groups], how many rows each group has.",
    "preferred_element_type": "the dtype of the result.",
    "tiling": "the sizes of blocks along m, k and n, or a function that finds them.",
    "group_offset": "the number of the first group, int32[], where groups are spread over devices.",
    "interpret": "run the kernel as a compiled loop; nothing else can be done with it here.",
})
