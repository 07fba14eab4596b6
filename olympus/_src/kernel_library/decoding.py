"""Attention of one query in each row, as a model decodes: by kernels, and references.

Query heads may share the heads of keys and values: of g query heads to one, heads i g … i g + g - 1
read head i.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from ..base.docstrings import complete_docstrings
from ..base.typing import Array, ArrayLike, PyTree
from ..host.debug import print as debug_print
from ..jit.jit import jit
from ..nn.activations import softmax
from ..numpy.creation import zeros
from ..numpy.einsum import einsum
from ..numpy.elementary import exp
from ..numpy.grids import arange
from ..numpy.manipulation import broadcast_to, expand_dims
from ..numpy.selection import where
from ..types.shape import floor_div, mod
from .attention_kernel import Blocks, Inputs, Masks, Options, attention
from .logits import DEFAULT_MASK_VALUE, capped
from .pages import by_pages

_F32 = np.float32


# Kernels -----------------------------------------------------------------------------------------

_STATIC = ("sm_scale", "block_h", "block_k", "k_splits", "num_warps", "num_stages", "grid",
           "interpret", "debug", "return_residuals", "normalize_output")


@partial(jit, static_argnames=_STATIC)
def gqa(q: Array, k: Array, v: Array, start_idx: ArrayLike | None = None,
        kv_seq_len: ArrayLike | None = None, sm_scale: float | None = None, block_h: int = 16,
        block_k: int = 128, k_splits: int = 16, num_warps: int | None = None, num_stages: int = 2,
        grid: Sequence[int] | None = None, interpret: bool = False, debug: bool = False,
        return_residuals: bool = False, normalize_output: bool = True) -> PyTree:
    """`gqa_reference` by a kernel.

    Args:
      q: [batch, heads, dim].
      k, v: [batch, keys, kv_heads, dim], where kv_heads divides heads.
      block_k: how many keys a block has, if that divides them; else their common divisor.

    >>> from olympus.experimental.pallas.ops.gpu import decode_attention
    >>> q, kv = onp.ones((1, 4, 8)), onp.ones((1, 16, 2, 8))
    >>> decode_attention.gqa(q, kv, kv, interpret=True).shape
    (1, 4, 8)
    """
    if not (normalize_output or return_residuals):
        raise NotImplementedError("gqa: normalize_output=False given without return_residuals; "
                                  "the sums to divide by are among the residuals; pass "
                                  "return_residuals=True.")
    (batch, heads, dim), (keys, kv_heads) = q.shape, k.shape[1:3]
    if mod(heads, kv_heads):
        raise ValueError(f"gqa: q {q.aval} and k {k.aval} given; heads of keys that divide the "
                         "heads of queries are required.")
    queries = floor_div(heads, kv_heads)
    ids: tuple[Array | None, Array | None] = (None, None)
    if not (start_idx is None and kv_seq_len is None):      # keys outside are another segment
        hidden = _outside(batch, keys, start_idx, kv_seq_len)
        ids = zeros((batch, queries), bool), hidden
    options = Options(Blocks(queries, math.gcd(keys, block_k)), residuals=True,
                      scale=1 / math.sqrt(dim) if sm_scale is None else sm_scale,
                      interpret=interpret)
    out, lse, top = attention(
        Inputs(q.reshape(batch, kv_heads, queries, dim), k.swapaxes(1, 2), v.swapaxes(1, 2), None,
               *ids), Masks(), options)
    total = exp(lse - top)
    if not normalize_output:
        out = (out * total[..., None]).astype(q.dtype)
    pair = total.reshape(batch, heads), top.reshape(batch, heads)
    out = out.reshape(batch, heads, -1)
    return (out, pair) if return_residuals else out


@partial(jit, static_argnames=_STATIC)
def mqa(q: Array, k: Array, v: Array, start_idx: ArrayLike | None = None,
        kv_seq_len: ArrayLike | None = None, sm_scale: float | None = None, block_h: int = 16,
        block_k: int = 256, k_splits: int = 16, num_warps: int | None = None, num_stages: int = 2,
        grid: Sequence[int] | None = None, interpret: bool = False, debug: bool = False,
        return_residuals: bool = False, normalize_output: bool = True) -> PyTree:
    """`gqa` of one head of keys and values, [batch, keys, dim].

    Args: block_k: as for `gqa`.

    >>> from olympus.experimental.pallas.ops.gpu import decode_attention
    >>> q, kv = onp.ones((1, 4, 8)), onp.ones((1, 16, 8))
    >>> decode_attention.mqa(q, kv, kv, interpret=True).shape
    (1, 4, 8)
    """
    return gqa(q, k[:, :, None], v[:, :, None], start_idx, kv_seq_len, sm_scale, block_k=block_k,
               interpret=interpret, return_residuals=return_residuals,
               normalize_output=normalize_output)


@partial(jit, static_argnames=(
    "block_h", "pages_per_compute_block", "k_splits", "num_warps", "num_stages", "interpret",
    "debug", "mask_value", "attn_logits_soft_cap"))
def paged_attention(
        q: Array, k_pages: Array, v_pages: Array, block_tables: Array, lengths: Array | None,
        k_scales_pages: Array | None = None, v_scales_pages: Array | None = None, *,
        block_h: int = 16, pages_per_compute_block: int = 8, k_splits: int = 16, num_warps: int = 8,
        num_stages: int = 2, interpret: bool = False, debug: bool = False,
        mask_value: float = DEFAULT_MASK_VALUE, attn_logits_soft_cap: float | None = None) -> Array:
    """Attention of one query in each row to keys in pages, by a kernel.

    Args:
      q: [batch, heads, dim].
      block_tables: int32[batch, pages of a row], the numbers of each row's pages.
      lengths: int32[batch], how many keys each row has; None is all.
      k_pages, v_pages: [kv_heads, pages, size, dim], where kv_heads divides heads.
      k_scales_pages, v_scales_pages: factors of the keys and values, [kv_heads, pages, size].
      pages_per_compute_block: has no effect in interpret mode.
      mask_value: the logit of the keys that a row does not read.

    >>> from olympus.experimental.pallas.ops.gpu import paged_attention
    >>> q, pages = onp.ones((1, 4, 8)), onp.ones((2, 3, 16, 8))
    >>> table = onp.array([[2, 0]])
    >>> paged_attention.paged_attention(q, pages, pages, table, onp.array([20]),
    ...                                 interpret=True).shape
    (1, 4, 8)
    """
    return by_pages("paged_attention", q, k_pages, v_pages, (k_scales_pages, v_scales_pages),
                  block_tables, lengths, 1.0, mask_value, attn_logits_soft_cap, interpret)


# References --------------------------------------------------------------------------------------

def _outside(batch: int, keys: int, start_idx: ArrayLike | None, kv_seq_len: ArrayLike | None
             ) -> Array:
    """Which keys are outside of each row's range, bool[batch, keys]."""
    start = broadcast_to(0 if start_idx is None else start_idx, (batch,))
    stop = broadcast_to(keys if kv_seq_len is None else kv_seq_len, (batch,))
    place = arange(keys)
    return (place < start[:, None]) | (place >= stop[:, None])


def _hide(logits: Array, start_idx: ArrayLike | None, kv_seq_len: ArrayLike | None) -> Array:
    """Logits [batch, …, keys], lowered outside each row's range of keys."""
    if start_idx is None and kv_seq_len is None:
        return logits
    outside = _outside(logits.shape[0], logits.shape[-1], start_idx, kv_seq_len)
    outside = expand_dims(outside, tuple(range(1, logits.ndim - 1)))
    return logits + where(outside, 0.7 * float(np.finfo(_F32).min), 0)


def _decoded(q: Array, k: Array, v: Array, start_idx: ArrayLike | None,
             kv_seq_len: ArrayLike | None, sm_scale: float | None, normalize: bool
             ) -> tuple[Array, Array, Array]:
    """(out, sums, largest logits) of q [batch, kv_heads, group, dim], k and v [batch, keys,
    kv_heads, dim]."""
    scale = 1 / math.sqrt(q.shape[-1]) if sm_scale is None else sm_scale
    logits = einsum("bkgd,bskd->bkgs", q.astype(_F32), k.astype(_F32)) * scale
    logits = _hide(logits, start_idx, kv_seq_len)
    top = logits.max(-1)
    weights = exp(logits - top[..., None])
    total = weights.sum(-1)
    if normalize:
        weights = weights / total[..., None]
    return einsum("bkgs,bskd->bkgd", weights, v).astype(q.dtype), total, top


@partial(jit, static_argnames=("sm_scale", "return_residuals", "normalize_output"))
def gqa_reference(q: Array, k: Array, v: Array, start_idx: ArrayLike | None = None,
                  kv_seq_len: ArrayLike | None = None, sm_scale: float | None = None,
                  return_residuals: bool = False, normalize_output: bool = True) -> PyTree:
    """Attention of one query in each row to a range of keys; query heads share heads of keys.

    Args:
      q: [batch, heads, dim].
      k, v: [batch, keys, kv_heads, dim], where kv_heads divides heads.

    >>> from olympus.experimental.pallas.ops.gpu import decode_attention
    >>> q, kv = onp.ones((1, 4, 8)), onp.ones((1, 16, 2, 8))
    >>> decode_attention.gqa_reference(q, kv, kv).shape
    (1, 4, 8)
    """
    batch, heads, dim = q.shape
    if mod(heads, k.shape[2]):
        raise ValueError(f"gqa_reference: q {q.aval} and k {k.aval} given; heads of keys that "
                         "divide the heads of queries are required.")
    out, total, top = _decoded(q.reshape(batch, k.shape[2], -1, dim), k, v, start_idx, kv_seq_len,
                               sm_scale, normalize_output)
    out = out.reshape(q.shape)
    pair = total.reshape(batch, heads), top.reshape(batch, heads)
    return (out, pair) if return_residuals else out


@partial(jit, static_argnames=("sm_scale", "return_residuals", "normalize_output"))
def mqa_reference(q: Array, k: Array, v: Array, start_idx: ArrayLike | None = None,
                  kv_seq_len: ArrayLike | None = None, sm_scale: float | None = None,
                  return_residuals: bool = False, normalize_output: bool = True) -> PyTree:
    """`gqa_reference` of one head of keys and values, [batch, keys, dim].

    >>> from olympus.experimental.pallas.ops.gpu import decode_attention
    >>> q, kv = onp.ones((1, 4, 8)), onp.ones((1, 16, 8))
    >>> decode_attention.mqa_reference(q, kv, kv).shape
    (1, 4, 8)
    """
    out, total, top = _decoded(q[:, None], k[:, :, None], v[:, :, None], start_idx, kv_seq_len,
                               sm_scale, normalize_output)
    return (out[:, 0], (total[:, 0], top[:, 0])) if return_residuals else out[:, 0]


@partial(jit, static_argnames=("sm_scale",))
def mha_reference(q: Array, k: Array, v: Array, start_idx: ArrayLike | None = None,
                         kv_seq_len: ArrayLike | None = None, sm_scale: float | None = None
                         ) -> Array:
    """Attention of one query in each row: q [batch, heads, dim], k and v [batch, keys, heads, dim].

    >>> from olympus.experimental.pallas.ops.gpu import decode_attention
    >>> q, kv = onp.ones((1, 4, 8)), onp.ones((1, 16, 4, 8))
    >>> decode_attention.mha_reference(q, kv, kv).shape
    (1, 4, 8)
    """
    scale = 1 / math.sqrt(q.shape[-1]) if sm_scale is None else sm_scale
    logits = _hide(einsum("bnd,bsnd->bns", q, k).astype(_F32), start_idx, kv_seq_len)
    return einsum("bns,bsnd->bnd", softmax(logits * scale).astype(q.dtype), v)


@partial(jit, static_argnames=("mask_value", "attn_logits_soft_cap"))
def paged_attention_reference(q: Array, k: Array, v: Array, lengths: Array | None, *,
                              mask_value: float = DEFAULT_MASK_VALUE,
                              attn_logits_soft_cap: float | None = None) -> Array:
    """Attention of one query in each row to its first keys, without pages.

    Args:
      q: [batch, heads, dim].
      k, v: [batch, keys, kv_heads, dim], where kv_heads divides heads.
      lengths: int32[batch], how many keys each row has; None is all.
      mask_value: the logit of the other keys.

    >>> from olympus.experimental.pallas.ops.gpu import paged_attention
    >>> q, kv = onp.ones((1, 4, 8)), onp.ones((1, 16, 2, 8))
    >>> paged_attention.paged_attention_reference(q, kv, kv, onp.array([3])).shape
    (1, 4, 8)
    """
    batch, _, dim = q.shape
    grouped = q.reshape(batch, k.shape[2], -1, dim)
    logits = einsum("bkgd,bskd->bkgs", grouped, k, preferred_element_type=_F32)
    logits = capped(logits, attn_logits_soft_cap)
    if lengths is not None:
        seen = arange(k.shape[1]) < lengths[:, None]
        logits = where(seen[:, None, None], logits, mask_value)
    out = einsum("bkgs,bskd->bkgd", softmax(logits), v.astype(_F32), preferred_element_type=_F32)
    return out.astype(q.dtype).reshape(q.shape)


def grouped_query_attention_reference(
        queries: Array, k_pages: Array, v_pages: Array, seq_lens: Array,
        soft_cap: float | None = None, debug: bool = False) -> Array:
    """Attention of one query in each row: q [batch, heads, dim], k and v [batch, kv_heads, keys,
    dim]; row i reads the first seq_lens[i].

    Args:
      soft_cap: logits are cap tanh(logits / cap); None and 0 leave them.
      debug: print the logits and the weights.
      queries: [batch, heads, dim].
      k_pages, v_pages: keys and values, [batch, kv_heads, keys, dim].
      seq_lens: int32[batch], the number of keys that each row reads.

    >>> from olympus.experimental.pallas.ops.tpu.paged_attention import util
    >>> q, kv = onp.ones((1, 4, 8)), onp.ones((1, 2, 16, 8))
    >>> util.grouped_query_attention_reference(q, kv, kv, onp.array([3])).shape
    (1, 4, 8)
    """
    batch, heads, dim = queries.shape
    if k_pages.shape != v_pages.shape or k_pages.shape[::3] != (batch, dim) or (
            mod(heads, k_pages.shape[1])):
        raise ValueError(f"grouped_query_attention_reference: queries {queries.aval}, keys "
                         f"{k_pages.aval} and values {v_pages.aval} given; [batch, heads, dim] and "
                         "twice [batch, kv_heads, keys, dim] are required, where kv_heads divides "
                         "heads.")
    grouped = queries.reshape(batch, k_pages.shape[1], -1, dim).astype(_F32)
    logits = capped(einsum("bhgd,bhtd->bhgt", grouped, k_pages.astype(_F32)), soft_cap or None)
    seen = arange(k_pages.shape[2]) < seq_lens[:, None]
    logits = logits + where(seen, 0.0, DEFAULT_MASK_VALUE)[:, None, None]
    weights = softmax(logits).astype(v_pages.dtype)
    if debug:
        debug_print("logits: {}\nweights: {}", logits, weights)
    return einsum("bhgt,bhtd->bhgd", weights, v_pages).reshape(queries.shape)


complete_docstrings(globals(), {
    "q": "queries, [batch, heads, dim].",
    "k, v": "keys and values, for each head of keys, or for all heads.",
    "start_idx, kv_seq_len": "integers [batch], where the range of keys begins and ends, or None.",
    "sm_scale": "the factor of the logits; 1 / sqrt(dim) by default.",
    "return_residuals": "also return (sums, largest logits), [batch, heads] each.",
    "normalize_output": "whether weights are divided by their sum.",
    "interpret": "run the kernel as a compiled loop; nothing else can be done with it here.",
    "attn_logits_soft_cap": "logits are cap tanh(logits / cap).",
    "block_h": "has no effect in interpret mode.",
    "k_splits": "has no effect in interpret mode.",
    "num_warps": "has no effect in interpret mode.",
    "num_stages": "has no effect in interpret mode.",
    "grid": "has no effect in interpret mode.",
    "debug": "has no effect in interpret mode.",
}, returns="An array [batch, heads, dim], with the residuals if they are asked for.")
