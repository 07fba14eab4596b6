"""Attention of one query in each row to keys and values in pages, by a kernel.

A table says which pages a row has. The grid runs through the pages of each row, and the index maps
of keys and values read the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ..base.typing import Array, PyTree, Reference
from ..jit.jit import jit
from ..kernels.call import pallas_call
from ..kernels.control import when
from ..kernels.grid import num_programs, program_id
from ..kernels.specs import BlockSpec, PrefetchScalarGridSpec
from ..lax.creation import broadcasted_iota
from ..numpy.manipulation import broadcast_to
from ..numpy.products import dot
from ..numpy.selection import where
from ..types.shape import definitely_equal, floor_div, mod
from .attention_kernel import Running
from .logits import DEFAULT_MASK_VALUE, capped
from .quantization import MAX_INT8, QuantizedTensor

_F32 = np.float32


def by_pages(name: str, q: Array, k: Array, v: Array, factors: Sequence[Array | None], table: Array,
             lengths: Array | None, scale: float, mask_value: float, cap: float | None,
             interpret: bool) -> Array:
    """Attention of q [batch, heads, dim] to pages [kv_heads, pages, size, dim] by a kernel.

    factors: of the keys and values, [kv_heads, pages, size]; None is 1.
    """
    batch, heads, dim = q.shape
    fit = k.ndim == v.ndim == 4 and all(map(definitely_equal, k.shape, v.shape))
    if not (fit and definitely_equal(k.shape[3], dim)) or mod(heads, k.shape[0]):
        raise ValueError(f"{name}: q {q.aval}, k_pages {k.aval} and v_pages {v.aval} given: pages "
                         "must have the same shape, [kv_heads, pages, size, dim] with the dim of "
                         "q, and kv_heads that divide the heads of q.")
    if table.shape[:-1] != (batch,):
        raise ValueError(f"{name}: pages of rows {table.aval} given for q {q.aval}: both must have "
                         "the same batch size.")
    kv_heads, _, size, _ = k.shape
    if lengths is None:
        lengths = broadcast_to(np.int32(table.shape[1] * size), (batch,))
    if lengths.shape != (batch,) or lengths.dtype != np.int32:
        raise ValueError(f"{name}: lengths {lengths.aval} given for q {q.aval}: the dtype must be "
                         "int32, the shape (batch,).")
    rows = floor_div(heads, kv_heads)

    def kernel(table: Reference, lengths: Reference, q: Reference, k: Reference, v: Reference,
               factors: PyTree, out: Reference, *scratch: Reference) -> None:
        running = Running(*scratch)
        first = program_id(2) * size

        @when(first == 0)
        def _() -> None:
            running.start(mask_value)

        @when(first < lengths[program_id(0)])
        def _() -> None:
            keys, values = [x[...].astype(_F32) if f is None else x[...] * f[...][:, None]
                            for x, f in zip((k, v), factors, strict=True)]
            logits = capped(dot(q[...].astype(_F32), keys.T) * scale, cap)
            place = first + broadcasted_iota(np.int32, logits.shape, 1)
            running.add(where(place < lengths[program_id(0)], logits, mask_value), values)

        @when(program_id(2) == num_programs(2) - 1)
        def _() -> None:
            out[...] = running.result.astype(out.dtype)

    of_queries = BlockSpec((None, None, rows, dim), lambda b, h, j, *_: (b, h, 0, 0))
    of_pages = BlockSpec((None, None, size, dim), lambda b, h, j, table, _: (h, table[b, j], 0, 0))
    of_factors = BlockSpec((None, None, size), lambda b, h, j, table, _: (h, table[b, j], 0))
    grouped = q.reshape(batch, kv_heads, rows, dim)
    return pallas_call(
        kernel, grouped.aval.strong(), grid_spec=PrefetchScalarGridSpec(
            2, (batch, kv_heads, table.shape[1]),
            [of_queries, of_pages, of_pages, [f if f is None else of_factors for f in factors]],
            of_queries, Running.types(rows, dim)),
        interpret=interpret, name=name,
    )(table, lengths, grouped, k, v, list(factors)).reshape(q.shape)


@partial(jit, static_argnames=("pages_per_compute_block", "attn_logits_soft_cap", "mask_value",
                               "megacore_mode", "inline_seq_dim"))
def paged_attention(q: Array, k_pages: PyTree, v_pages: PyTree, lengths: Array,
                    page_indices: Array, *, mask_value: float = DEFAULT_MASK_VALUE,
                    attn_logits_soft_cap: float | None = None, pages_per_compute_block: int,
                    megacore_mode: str | None = None, inline_seq_dim: bool = True) -> Array:
    """Attention of one query in each row to keys in pages, by a kernel.

    It runs under `pltpu.force_tpu_interpret_mode()`.

    Args:
      q: [batch, heads, dim].
      k_pages, v_pages: [kv_heads, pages, size, dim], or `QuantizedTensor`s of them.
      lengths: int32[batch], how many keys each row has.
      page_indices: int32[batch, pages of a row], the numbers of each row's pages.
      pages_per_compute_block: divides the pages of a row.
      mask_value: the logit of the keys that a row does not read.
      attn_logits_soft_cap: logits are cap tanh(logits / cap).
      megacore_mode, inline_seq_dim: have no effect in interpret mode.
    Returns: An array [batch, heads, dim].

    >>> from olympus.experimental.pallas.ops.tpu.paged_attention import paged_attention
    >>> q, pages = onp.ones((1, 4, 8)), onp.ones((2, 3, 16, 8))
    >>> with pltpu.force_tpu_interpret_mode():
    ...     out = paged_attention(q, pages, pages, onp.array([20]), onp.array([[2, 0]]),
    ...                           pages_per_compute_block=1)
    >>> out.shape
    (1, 4, 8)
    """
    if mod(page_indices.shape[-1], pages_per_compute_block):
        raise ValueError(f"paged_attention: pages_per_compute_block {pages_per_compute_block} "
                         f"given for {page_indices.shape[-1]} pages of a row; a divisor is "
                         "required.")
    k, v = [x.weight if isinstance(x, QuantizedTensor) else x for x in (k_pages, v_pages)]
    factors = [x.scales[..., 0].astype(_F32) / MAX_INT8 if isinstance(x, QuantizedTensor) else None
               for x in (k_pages, v_pages)]
    return by_pages("paged_attention", q, k, v, factors, page_indices, lengths, 1.0, mask_value,
                    attn_logits_soft_cap, False)
