"""approx_max_k and approx_min_k: the k best elements, or a few more where that is faster.

The result is exact (recall 1) but on TPUs, whose XLA has the search of Chern et al. Sizes
follow "TPU-KNN" (2022): elements fall into groups of a tile's width, each keeping its best; with
the recall asked for follows how many groups there must be.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

from ..base.docstrings import described_like
from ..base.typing import Array, ArrayLike, IrValue, Params
from ..base.util import real_number
from ..core import tags
from ..core.primitive import Axis, Builder, Primitive, Tangent, Zero
from ..core.staging import stage
from ..core.trace import typeof
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from ..types.shape import canonical_axis, extent, is_static, known_less, static_int
from .bits import bitwise_and, bitwise_or
from .comparison import eq, gt, lt, ne
from .creation import broadcasted_iota
from .indexing import take_along
from .reduce import check_kind
from .shape import move_axis
from .slicing import slice_in_dim
from .sort import sort, top_k

INT32 = dtypes.as_dtype("int32")


def kept_size(size: int, rank: int, k: int, recall: float, override: int) -> int:
    """How many elements an approximate search of `size` elements leaves to sort.

    >>> kept_size(3000, 1, 10, 0.95, -1)
    2048
    """
    tile = 1024 if rank == 1 else 128
    searched = size if override < 0 else override
    if size <= tile or (k > 1 and recall >= 1):
        return size
    if k == 1:
        return tile
    wanted = max(int((1 - k) / math.log(recall)), tile)     # for this recall
    halvings = max((searched // wanted).bit_length() - 1, 0)
    if not halvings:
        return size
    halvings = min(halvings, (size // tile - 1).bit_length())
    return math.ceil(math.ceil(size / tile) / 2**halvings) * tile


class ApproxTopK(Primitive):
    """The `size` best elements along an axis, best first, and their indices."""

    spread = staticmethod(tags.along("reduction_dimension"))
    multiple_results = True
    transpose = None

    def infer(self, x: ShapedArray, *, reduction_dimension: int, size: int, **params: Hashable
              ) -> list[ShapedArray]:
        check_kind("approx_top_k", x, "f")
        d = reduction_dimension
        shape = (*x.shape[:d], size, *x.shape[d + 1:])
        return [make_aval(shape, x.dtype, x.weak_type), make_aval(shape, INT32)]

    def lower(self, b: Builder, x: IrValue, *, reduction_dimension: int, is_max_k: bool, size: int,
              **params: bool | float) -> list[IrValue]:
        # XLA:GPU has a faster kernel for `top_k`.
        by_xla = b.platform == "tpu" or b.platform in ("gpu", "rocm") and not is_max_k
        if by_xla and is_static((*b.avals_in[0].shape, size)):
            return _by_xla(b, x, reduction_dimension, is_max_k, params)

        def best(x: ArrayLike) -> Sequence[Array]:
            if is_max_k:
                return top_k(x, size, axis=reduction_dimension)
            indices = broadcasted_iota(INT32, typeof(x).shape, reduction_dimension)
            return [slice_in_dim(y, 0, size, 1, reduction_dimension)
                    for y in sort((x, indices), reduction_dimension)]
        return b.inline(best, x)

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], *, reduction_dimension: int,
            **params: Hashable) -> tuple[Sequence[Array], Sequence[Tangent]]:
        values, indices = self.bind(*primals, reduction_dimension=reduction_dimension, **params)
        return [values, indices], [take_along(tangents[0], indices, reduction_dimension),
                                   Zero(typeof(indices).to_tangent_aval())]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int], *,
             reduction_dimension: int, **params: Hashable) -> tuple[list[Array], list[int | None]]:
        return self.bind(move_axis(args[0], dims[0], 0),
                         reduction_dimension=reduction_dimension + 1, **params), [0, 0]


def _by_xla(b: Builder, x: IrValue, axis: int, is_max_k: bool, params: Params) -> list[IrValue]:
    """XLA's search: approximate on a TPU, exact (`is_fallback`) on a GPU."""
    aval, numbered = b.avals_in[0], b.avals_in[0].update(dtype=INT32)
    better, (known, unknown) = (gt, (ne, eq)) if is_max_k else (lt, (eq, ne))

    def comes_first(x: Array, y: Array, i: Array, j: Array) -> list[Array]:
        # NaN counts as largest.
        return [bitwise_or(better(x, y), bitwise_and(known(x, x), unknown(y, y)))]

    scalar, place = make_aval((), aval.dtype), make_aval((), INT32)
    symbol, _ = b.function(stage(comes_first, [scalar, scalar, place, place]), "comes_first")
    worst = float("-inf") if is_max_k else float("nan")
    config = {
        "reduction_dim": f"{axis} : i64",
        "recall_target": f"{float(params['recall_target'])!r} : f32",
        "aggregate_to_topk": str(params["aggregate_to_topk"]).lower(),
        "top_k": f"{params['k']} : i64",
        "reduction_input_size_override": f"{params['reduction_input_size_override']} : i64",
        **({} if b.platform == "tpu" else {"is_fallback": "true"})}
    numbers = b.op("stablehlo.iota", [], {"iota_dimension": b.attr(f"{axis} : i64")}, numbered)
    return b.custom_call(
        "ApproxTopK", [x, numbers, b.scalar(worst, aval.dtype), b.scalar(-1, INT32)],
        [b.type(a) for a in b.avals_out], {
            "api_version": b.attr("1 : i32"),
            "called_computations": b.attr(f"[@{symbol}]"),
            "mhlo.backend_config": b.attr(
                "{" + ", ".join(f"{name} = {text}" for name, text in config.items()) + "}")})


approx_top_k_p = ApproxTopK("approx_top_k")


def approx_max_k(operand: ArrayLike, k: int, reduction_dimension: int = -1,
                 recall_target: float = 0.95, reduction_input_size_override: int = -1,
                 aggregate_to_topk: bool = True) -> list[Array]:
    """The k largest elements along an axis and their indices; the search may be approximate.

    It is exact on CPU and GPU, and XLA's approximate search on TPU. NaN counts as largest.

    Args:
      operand: array of a floating dtype.
      k: how many; from 1 to the axis's size.
      reduction_dimension: the axis to search.
      recall_target: the share of the k largest that must be found on average, in (0, 1].
      reduction_input_size_override: the size of the whole search, at least the axis's size, if
        this array is one shard of it; -1 if it is not.
      aggregate_to_topk: whether to return k elements, or as many as an approximate search would
        leave to sort: a multiple of a tile's width, at least k.
    Returns: [values, indices], best first along the axis; the indices int32.

    Raises TypeError for dtypes that are not floating, ValueError for k, axis or recall out of
    bounds.

    >>> values, indices = lax.approx_max_k(onp.array([1., 3., 2.]), 2)
    >>> print(values, indices)
    [3. 2.] [1 2]
    """
    return _search("approx_max_k", True, operand, k, reduction_dimension, recall_target,
                   reduction_input_size_override, aggregate_to_topk)


@described_like(approx_max_k)
def approx_min_k(operand: ArrayLike, k: int, reduction_dimension: int = -1,
                 recall_target: float = 0.95, reduction_input_size_override: int = -1,
                 aggregate_to_topk: bool = True) -> list[Array]:
    """The k smallest elements along an axis and their indices; the search may be approximate.

    It is exact on CPU and GPU, and XLA's approximate search on TPU. NaN counts as largest, so it
    comes last.

    Returns: [values, indices], smallest first along the axis; the indices int32.

    >>> values, indices = lax.approx_min_k(onp.array([3., 1., 2.]), 2)
    >>> print(values, indices)
    [1. 2.] [1 2]
    """
    return _search("approx_min_k", False, operand, k, reduction_dimension, recall_target,
                   reduction_input_size_override, aggregate_to_topk)


def _search(name: str, is_max_k: bool, x: ArrayLike, k: int, axis: int, recall: float,
            override: int, aggregate: bool) -> list[Array]:
    aval = typeof(x)
    check_kind(name, aval, "f")
    axis = canonical_axis(axis, aval.ndim, name)
    size = aval.shape[axis]
    k = extent(k, name, "k")
    override = static_int(override, name, "reduction_input_size_override")
    recall = real_number(recall, f"{name}: recall_target")
    if known_less(k, 1) or known_less(size, k):
        raise ValueError(f"{name}: operand {aval}, k {k}, axis {axis} given; 1 <= k <= {size} is "
                         "required; k is at most the axis's size.")
    if not 0 < recall <= 1:
        raise ValueError(f"{name}: recall_target {recall} given; a number in (0, 1] is required.")
    if override != -1 and known_less(override, size):
        raise ValueError(f"{name}: reduction_input_size_override {override} given for an axis of "
                         f"{size}; -1 or at least the axis's size is required.")
    if not aggregate and not is_static((size, k)):
        raise NotImplementedError(
            f"{name}: aggregate_to_topk=False given for an axis of {size} and k {k}; how many "
            "elements remain depends on their numbers; leave it out, or give them as numbers.")
    out_n = k if aggregate else kept_size(size, aval.ndim, k, recall, override)
    return list(approx_top_k_p.bind(
        x, k=k, reduction_dimension=axis, recall_target=recall, is_max_k=is_max_k,
        reduction_input_size_override=int(override), aggregate_to_topk=bool(aggregate), size=out_n))
