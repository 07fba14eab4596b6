"""Attention of sequences with any number of queries each to keys in pages, by a kernel.

The queries of all sequences stand one behind the other, so that a block of queries may belong to
several. For each block of queries the grid runs through the pages of each sequence, and skips
pages that none of the queries looks at.

Keys and values take turns along one axis of the pages: the head 2 h is the keys' head h, 2 h + 1
the values'.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ..base.docstrings import complete_docstrings
from ..base.typing import Array, Reference
from ..jit.jit import jit
from ..kernels.call import pallas_call
from ..kernels.control import cdiv, when
from ..kernels.grid import num_programs, program_id
from ..kernels.specs import BlockSpec, PrefetchScalarGridSpec
from ..lax.creation import broadcasted_iota
from ..nn.activations import softmax
from ..numpy.creation import asarray
from ..numpy.einsum import einsum
from ..numpy.joining import concatenate, repeat
from ..numpy.products import dot
from ..numpy.selection import where
from ..types.shape import definitely_equal, floor_div, less, mod
from .attention_kernel import Running
from .logits import DEFAULT_MASK_VALUE, capped

_F32 = np.float32


def static_validate_inputs(
        q: Array, kv_pages: Array, kv_lens: Array, page_indices: Array, cu_q_lens: Array,
        num_seqs: Array, *, sm_scale: float | None = None, sliding_window: int | None = None,
        soft_cap: float | None = None, mask_value: float | None = None,
        k_scale: float | None = None, v_scale: float | None = None,
        num_kv_pages_per_block: int | None = None, num_queries_per_block: int | None = None,
        vmem_limit_bytes: int | None = None) -> None:
    """ValueError for shapes, dtypes and options that do not fit.

    >>> from olympus.experimental.pallas.ops.tpu import ragged_paged_attention as ragged
    >>> ragged.static_validate_inputs.__name__
    'static_validate_inputs'
    """
    name = "ragged_paged_attention"
    if q.ndim != 3 or kv_pages.ndim != 4 or mod(kv_pages.shape[2], 2):
        raise ValueError(f"{name}: q {q.aval} and kv_pages {kv_pages.aval} given; [tokens, heads, "
                         "dim] and [pages, size, 2 kv_heads, dim] are required.")
    kv_heads = floor_div(kv_pages.shape[2], 2)
    if not definitely_equal(q.shape[2], kv_pages.shape[3]) or mod(q.shape[1], kv_heads):
        raise ValueError(f"{name}: q {q.aval} and kv_pages {kv_pages.aval} given; one dim, and "
                         "heads of keys that divide the heads of q, are required.")
    seqs = page_indices.shape[0]
    for what, x, shape in (("kv_lens", kv_lens, (seqs,)), ("cu_q_lens", cu_q_lens, (seqs + 1,)),
                           ("num_seqs", num_seqs, (1,)),
                           ("page_indices", page_indices, page_indices.shape[:2])):
        if x.shape != shape or x.dtype != np.int32:
            raise ValueError(f"{name}: {what} {x.aval} given; int32{list(shape)} is required, "
                             "where page_indices has a row for each sequence.")
    pages = page_indices.shape[1]
    for what, number, most in (("num_kv_pages_per_block", num_kv_pages_per_block, pages),
                               ("num_queries_per_block", num_queries_per_block, None),
                               ("vmem_limit_bytes", vmem_limit_bytes, None),
                               ("sliding_window", sliding_window, None)):
        if number is not None and not 0 < number <= (number if most is None else most):
            raise ValueError(f"{name}: {what}={number} given; a number from 1"
                             f"{'' if most is None else f' to {most}'} is required.")
    if soft_cap == 0:
        raise ValueError(f"{name}: soft_cap=0 given; it must not be 0, logits are divided by it.")


def dynamic_validate_inputs(
        q: Array, kv_pages: Array, kv_lens: Array, page_indices: Array, cu_q_lens: Array,
        num_seqs: Array, **options: float | None) -> None:
    """ValueError for shapes, dtypes and options that do not fit, and for lengths that do not.

    Args: **options: as for `ragged_paged_attention`.

    >>> from olympus.experimental.pallas.ops.tpu import ragged_paged_attention as ragged
    >>> ragged.dynamic_validate_inputs.__name__
    'dynamic_validate_inputs'
    """
    arrays = q, kv_pages, kv_lens, page_indices, cu_q_lens, num_seqs
    static_validate_inputs(*arrays, **options)      # pyright: ignore[reportArgumentType]
    name, seqs = "ragged_paged_attention", int(num_seqs[0])
    tokens, (most, pages) = len(q), page_indices.shape
    if less(most, seqs):
        raise ValueError(f"{name}: num_seqs is {seqs}; at most {most}, the rows of page_indices, "
                         "is required.")
    starts, keys = np.asarray(cu_q_lens)[:seqs + 1], np.asarray(kv_lens)[:seqs]
    if starts[-1] > tokens:
        raise ValueError(f"{name}: cu_q_lens ends at {starts[-1]}; q has {tokens} tokens.")
    room = pages * kv_pages.shape[1]
    for i in range(seqs):
        queries = starts[i + 1] - starts[i]
        if queries > keys[i] or keys[i] > room:
            raise ValueError(f"{name}: sequence {i} has {queries} queries and {keys[i]} keys; at "
                             f"least as many keys, and at most {room}, what its pages hold, are "
                             "required.")


def get_tuned_block_sizes(q_dtype: np.dtype, kv_dtype: np.dtype, num_q_heads_per_blk: int,
                          num_kv_heads_per_blk: int, head_dim: int, page_size: int,
                          max_num_batched_tokens: int, pages_per_seq: int) -> tuple[int, int]:
    """The default numbers of pages and of queries in a block.

    Args:
      q_dtype, kv_dtype, num_q_heads_per_blk, num_kv_heads_per_blk, head_dim, page_size: of the
        arrays; in interpret mode they do not count.
      max_num_batched_tokens: how many queries there are.
      pages_per_seq: how many pages a sequence has.
    Returns: Two ints.

    >>> from olympus.experimental.pallas.ops.tpu import ragged_paged_attention as ragged
    >>> ragged.get_tuned_block_sizes(onp.float32, onp.float32, 8, 8, 128, 16, 1000, 4)
    (1, 64)
    """
    return 1, min(max_num_batched_tokens, 64)


def _scaled(x: Array, scale: float | None, dtype: np.dtype) -> Array:
    return x if scale is None else (x.astype(_F32) * scale).astype(dtype)


@partial(jit, static_argnames=(
    "sm_scale", "mask_value", "num_kv_pages_per_block", "num_queries_per_block",
    "vmem_limit_bytes", "sliding_window", "soft_cap", "k_scale", "v_scale"))
def ragged_paged_attention(
        q: Array, kv_pages: Array, kv_lens: Array, page_indices: Array, cu_q_lens: Array,
        num_seqs: Array, *, sm_scale: float = 1.0, sliding_window: int | None = None,
        soft_cap: float | None = None, mask_value: float | None = DEFAULT_MASK_VALUE,
        k_scale: float | None = None, v_scale: float | None = None,
        num_kv_pages_per_block: int | None = None, num_queries_per_block: int | None = None,
        vmem_limit_bytes: int | None = None) -> Array:
    """Causal attention of sequences with any number of queries to keys in pages, by a kernel.

    The last query of a sequence stands at its last key. It runs under
    `pltpu.force_tpu_interpret_mode()`.

    Returns: An array like q, with 0 for tokens of no sequence.

    >>> from olympus.experimental.pallas.ops.tpu import ragged_paged_attention as ragged
    >>> q, pages = onp.ones((3, 2, 8)), onp.ones((4, 16, 2, 8))     # two queries, and one
    >>> ints = [onp.array(x) for x in ([20, 5], [[0, 3], [2, 0]], [0, 2, 3], [2])]
    >>> with pltpu.force_tpu_interpret_mode():
    ...     ragged.ragged_paged_attention(q, pages, *ints).shape
    (3, 2, 8)
    """
    static_validate_inputs(
        q, kv_pages, kv_lens, page_indices, cu_q_lens, num_seqs, sliding_window=sliding_window,
        soft_cap=soft_cap, num_kv_pages_per_block=num_kv_pages_per_block,
        num_queries_per_block=num_queries_per_block, vmem_limit_bytes=vmem_limit_bytes)
    (tokens, heads, dim), (_, size, both, _) = q.shape, kv_pages.shape
    kv_heads, low = floor_div(both, 2), DEFAULT_MASK_VALUE if mask_value is None else mask_value
    group, (seqs, pages) = floor_div(heads, kv_heads), page_indices.shape
    block = num_queries_per_block or get_tuned_block_sizes(
        q.dtype, kv_pages.dtype, heads, kv_heads, dim, size, tokens, pages)[1]

    def kernel(table: Reference, lengths: Reference, starts: Reference, count: Reference,
               q: Reference, kv: Reference, out: Reference, *scratch: Reference) -> None:
        running = Running(*scratch)
        token, s, first = program_id(1) * block, program_id(2), program_id(3) * size

        @when((s == 0) & (first == 0))
        def _() -> None:
            running.start(DEFAULT_MASK_VALUE)

        start, end, keys = starts[s], starts[s + 1], lengths[s]
        past = keys - (end - start) - start     # a token's number, less its place among the keys
        looks = (s < count[0]) & (start < token + block) & (end > token) & (
            first < keys) & (first <= past + token + block - 1)

        @when(looks)
        def _() -> None:
            # Beyond the last key the page may hold anything, beyond the last query the block has
            # NaN; 0 keeps both out of products, and of cotangents.
            held = first + broadcasted_iota(np.int32, (size, dim), 0) < keys
            k, v = [where(held, _scaled(x, scale, q.dtype).astype(_F32), 0.)
                    for x, scale in ((kv[:, 0], k_scale), (kv[:, 1], v_scale))]
            rows = q[...].astype(_F32).reshape(block * group, dim)
            number = token + floor_div(broadcasted_iota(np.int32, rows.shape, 0), group)
            rows = where((number >= start) & (number < end), rows, 0.)
            logits = capped(dot(rows, k.T) * sm_scale, soft_cap)
            number = token + floor_div(broadcasted_iota(np.int32, logits.shape, 0), group)
            column = first + broadcasted_iota(np.int32, logits.shape, 1)
            hidden = number + past < column
            if sliding_window is not None:
                hidden |= number + past - sliding_window >= column
            own = (number >= start) & (number < end)
            running.add(where(own, logits + where(hidden, low, 0.), -np.inf), v)

        @when((s == seqs - 1) & (program_id(3) == num_programs(3) - 1))
        def _() -> None:
            out[...] = running.result.astype(out.dtype).reshape(out.shape)

    of_queries = BlockSpec((block, None, group, dim), lambda h, i, s, j, *_: (i, h, 0, 0))
    of_pages = BlockSpec((None, size, 2, dim), lambda h, i, s, j, table, lengths, *_: (
        where(j * size < lengths[s], table[s, j], 0), 0, h, 0))
    grouped = q.reshape(tokens, kv_heads, group, dim)
    return pallas_call(
        kernel, grouped.aval.strong(), grid_spec=PrefetchScalarGridSpec(
            4, (kv_heads, cdiv(tokens, block), seqs, pages), [of_queries, of_pages], of_queries,
            Running.types(block * group, dim)),
        name="ragged_paged_attention",
    )(page_indices, kv_lens, cu_q_lens, num_seqs, grouped, kv_pages).reshape(q.shape)


def ref_ragged_paged_attention(
        queries: Array, kv_pages: Array, kv_lens: Array, page_indices: Array, cu_q_lens: Array,
        num_seqs: Array, *, sm_scale: float = 1.0, sliding_window: int | None = None,
        soft_cap: float | None = None, mask_value: float | None = DEFAULT_MASK_VALUE,
        k_scale: float | None = None, v_scale: float | None = None) -> Array:
    """`ragged_paged_attention` of whole arrays, sequence by sequence; lengths must be known.

    Args: queries: [tokens, heads, dim], the queries of all sequences.
    Returns: An array of the tokens of all sequences, without those of none.

    >>> from olympus.experimental.pallas.ops.tpu import ragged_paged_attention as ragged
    >>> q, pages = onp.ones((3, 2, 8)), onp.ones((4, 16, 2, 8))
    >>> ints = [onp.array(x) for x in ([20, 5], [[0, 3], [2, 0]], [0, 2, 3], [2])]
    >>> ragged.ref_ragged_paged_attention(q, pages, *ints).shape
    (3, 2, 8)
    """
    static_validate_inputs(queries, kv_pages, kv_lens, page_indices, cu_q_lens, num_seqs,
                           sliding_window=sliding_window, soft_cap=soft_cap)
    low, outs = DEFAULT_MASK_VALUE if mask_value is None else mask_value, []
    kv_heads = floor_div(kv_pages.shape[2], 2)
    lengths, table, starts, (count,) = map(np.asarray, (kv_lens, page_indices, cu_q_lens, num_seqs))
    for i in range(count):
        start, end, keys = starts[i], starts[i + 1], lengths[i]
        q, both = queries[start:end], kv_pages[table[i]].reshape(
            -1, kv_heads, 2, kv_pages.shape[3])[:keys]
        k, v = [repeat(_scaled(x, scale, q.dtype), floor_div(q.shape[1], kv_heads), 1)
                for x, scale in ((both[:, :, 0], k_scale), (both[:, :, 1], v_scale))]
        logits = capped(einsum("qhd,khd->hqk", q, k, preferred_element_type=_F32) * sm_scale,
                        soft_cap)
        row = keys - q.shape[0] + broadcasted_iota(np.int32, logits.shape, 1)
        column = broadcasted_iota(np.int32, logits.shape, 2)
        hidden = row < column
        if sliding_window is not None:
            hidden |= row - sliding_window >= column
        weights = softmax(logits + where(hidden, low, 0.), -1).astype(v.dtype)
        outs.append(einsum("hqk,khd->qhd", weights, v).astype(queries.dtype))
    return concatenate(outs, 0) if outs else asarray(queries)[:0]


complete_docstrings(globals(), {
    "q": "[tokens, heads, dim], the queries of all sequences.",
    "kv_pages": "[pages, size, 2 kv_heads, dim], keys and values by turns.",
    "kv_lens": "int32[sequences], how many keys each has.",
    "page_indices": "int32[sequences, pages of one], the numbers of its pages.",
    "cu_q_lens": "int32[sequences + 1], where the queries of each begin, and the end.",
    "num_seqs": "int32[1], how many of the sequences there are; the others are not looked at.",
    "sm_scale": "the factor of the products.",
    "sliding_window": "how many keys a query looks at, its own the last.",
    "soft_cap": "logits are cap tanh(logits / cap).",
    "mask_value": "what is added to the logits of masked keys; None is about -2.4e38.",
    "k_scale, v_scale": "factors of keys and values, which are then rounded to the dtype of q.",
    "num_queries_per_block": "how many queries a block has; None is up to 64.",
    "num_kv_pages_per_block, vmem_limit_bytes": "are checked, and have no effect in interpret mode",
})
