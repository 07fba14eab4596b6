"""Attention of [batch, heads, length, dim] with a bias, segments and a causal rule."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import numpy as np

from ..base.config import default_matmul_precision
from ..base.docstrings import complete_docstrings
from ..base.typing import Array, PyTree
from ..custom.vjp import custom_vjp
from ..jit.jit import jit
from ..numpy.einsum import einsum
from ..numpy.elementary import exp
from ..numpy.selection import where
from ..types.shape import minimum
from .attention_kernel import Blocks, Inputs, Masks, Options, attention, causal_masks, check_heads
from .logits import DEFAULT_MASK_VALUE, SegmentIds, causal_rule, same_segment

_F32 = np.float32


@dataclasses.dataclass(frozen=True)
class BlockSizes:
    """The sizes of the blocks of `flash_attention`: of its kernel, and of those of its cotangents.

    A kernel for TPUs moves blocks of the size `…_major` and computes with parts of them; here it
    computes with whole blocks. Without the sizes of `…_dkv` and `…_dq` there is no derivative.

    >>> from olympus.experimental.pallas.ops.tpu import flash_attention as flash
    >>> flash.BlockSizes(block_q=128, block_k_major=256, block_k=128, block_b=1).has_backward_blocks
    False
    """

    block_q: int
    block_k_major: int
    block_k: int
    block_b: int
    block_q_major_dkv: int | None = None
    block_k_major_dkv: int | None = None
    block_k_dkv: int | None = None
    block_q_dkv: int | None = None
    block_k_major_dq: int | None = None
    block_k_dq: int | None = None
    block_q_dq: int | None = None

    def __post_init__(self) -> None:
        for axis, suffix in (("k", ""), ("q", "_dkv"), ("k", "_dkv"), ("k", "_dq")):
            names = f"block_{axis}_major{suffix}", f"block_{axis}{suffix}"
            major, minor = [getattr(self, name) for name in names]
            if major is not None and minor is not None and (minor > major or major % minor):
                raise ValueError(f"BlockSizes: {names[1]}={minor} should be smaller than and should"
                                 f" divide {names[0]}={major}.")

    @property
    def has_backward_blocks(self) -> bool:
        """Whether the block sizes for the kernels of cotangents are given."""
        return None not in (self.block_q_major_dkv, self.block_k_major_dkv, self.block_k_dkv,
                            self.block_q_dkv, self.block_k_major_dq, self.block_k_dq,
                            self.block_q_dq)

    @classmethod
    def get_default(cls, batch_size: int, num_heads: int, q_seq_len: int, kv_len: int,
                    d_model: int) -> BlockSizes:
        """Blocks of 128 queries and 128 keys, whatever the shapes are."""
        return cls(128, 128, 128, 1, 128, 128, 128, 128, 128, 128, 128)


@partial(jit, static_argnames=("causal", "sm_scale", "block_sizes", "debug"))
def flash_attention(q: Array, k: Array, v: Array, ab: Array | None = None,
                    segment_ids: SegmentIds | None = None, *, causal: bool = False,
                    sm_scale: float = 1.0, block_sizes: BlockSizes | None = None,
                    debug: bool = False) -> Array:
    """Attention of [batch, heads, length, dim] by kernels, which keep no weights.

    Args:
      block_sizes: sizes of blocks, which divide the lengths; 128 by default, or the whole length
        where that is smaller.
      debug: has no effect.

    Raises:
      ValueError: shapes that do not fit, blocks that do not divide; outside of
        `pltpu.force_tpu_interpret_mode()`, which interprets the kernels.

    >>> from olympus.experimental.pallas.ops.tpu import flash_attention as flash
    >>> x = onp.array([[1., 0.], [0., 1.]])[None, None]
    >>> with pltpu.force_tpu_interpret_mode():
    ...     print(flash.flash_attention(x, x, x, causal=True)[0, 0])
    [[1.         0.        ]
     [0.26894143 0.7310586 ]]
    """
    check_heads("flash_attention", q, k, v)
    batch, heads, queries, _ = q.shape
    keys = k.shape[2]
    for what, x, shape in (
            ("ab", ab, (batch, heads, queries, keys)),
            ("segment_ids.q", segment_ids and segment_ids.q, (batch, queries)),
            ("segment_ids.kv", segment_ids and segment_ids.kv, (batch, keys))):
        if x is not None and x.shape != shape:
            raise ValueError(f"flash_attention: {what} of shape {x.shape} given for q {q.aval} and "
                             f"k {k.aval}: shape mismatch: expected {shape}.")
    sizes = block_sizes or BlockSizes.get_default(batch, heads, queries, keys, q.shape[3])

    def blocks(q_name: str, k_name: str) -> Blocks | None:
        chosen = [getattr(sizes, name) for name in (q_name, k_name)]
        if None in chosen:
            return None
        return Blocks(minimum(chosen[0], queries), minimum(chosen[1], keys))

    forward = blocks("block_q", "block_k_major")
    assert forward is not None
    options = Options(forward, blocks("block_q_dq", "block_k_major_dq"),
                      blocks("block_q_major_dkv", "block_k_major_dkv"), sm_scale)
    masks, options = causal_masks(queries, keys, options) if causal else (Masks(), options)
    ids = (None, None) if segment_ids is None else segment_ids
    return attention(Inputs(q, k, v, ab, *ids), masks, options)


def _flash_logits(q: Array, k: Array, ab: Array | None, segment_ids: SegmentIds | None,
                  causal: bool, mask_value: float, sm_scale: float) -> Array:
    logits = einsum("bhqc,bhkc->bhqk", q, k)
    if ab is not None:
        logits = logits + ab
    logits = logits * sm_scale
    seen: Any = True
    if segment_ids is not None:
        seen = same_segment(segment_ids)[:, None]
    if causal:
        seen = seen & causal_rule(q.shape[2], k.shape[2])
    if seen is not True:
        logits = logits + where(seen, 0.0, mask_value)
    return logits


def mha_reference_no_custom_vjp(q: Array, k: Array, v: Array, ab: Array | None = None,
                          segment_ids: SegmentIds | None = None, *, causal: bool = False,
                          mask_value: float = DEFAULT_MASK_VALUE, sm_scale: float = 1.0,
                          save_residuals: bool = False) -> PyTree:
    """Attention of [batch, heads, length, dim], whose derivatives are the plain formula's.

    Args:
      q, k, v: queries, keys and values.
      save_residuals: also return the sums and the largest logits, [batch, heads, queries] each.

    >>> from olympus.experimental.pallas.ops.tpu import flash_attention as flash
    >>> x = onp.array([[1., 0.], [0., 1.]])[None, None]
    >>> print(flash.mha_reference_no_custom_vjp(x, x, x, causal=True)[0, 0])
    [[1.         0.        ]
     [0.26894143 0.7310586 ]]
    """
    logits = _flash_logits(q, k, ab, segment_ids, causal, mask_value, sm_scale)
    top = logits.max(-1)
    weights = exp(logits - top[..., None])
    total = weights.sum(-1)
    out = einsum("bhqk,bhkc->bhqc", weights / total[..., None], v)
    return (out, total, top) if save_residuals else out


@partial(jit, static_argnames=("causal", "mask_value", "sm_scale"))
def mha_reference_bwd(q: Array, k: Array, v: Array, ab: Array | None,
                        segment_ids: SegmentIds | None, o: Array, l: Array, m: Array, do: Array,
                        causal: bool = False, mask_value: float = DEFAULT_MASK_VALUE,
                        sm_scale: float = 1.0) -> PyTree:
    """Cotangents (q, k, v, ab) of `mha_reference` from its output, sums, largest logits and `do`.

    Args:
      o, l, m: the output, the sums and the largest logits of the forward pass.
      do: the cotangent of the output.

    Raises:
      NotImplementedError: an `sm_scale` other than 1.

    >>> from olympus.experimental.pallas.ops.tpu import flash_attention as flash
    >>> x = onp.array([[1., 0.], [0., 1.]])[None, None]
    >>> o, l, m = flash.mha_reference_no_custom_vjp(x, x, x, save_residuals=True)
    >>> dq, dk, dv, dab = flash.mha_reference_bwd(x, x, x, None, None, o, l, m, onp.ones_like(o))
    >>> print(dv[0, 0])
    [[1. 1.]
     [1. 1.]]
    """
    if sm_scale != 1.0:
        raise NotImplementedError(f"mha_reference_bwd: sm_scale {sm_scale} given; 1 is required; "
                                  "multiply q by it.")
    logits = _flash_logits(q.astype(_F32), k.astype(_F32), ab, segment_ids, causal, mask_value, 1.0)
    p = exp(logits - m[..., None]) / l[..., None]
    do = do.astype(_F32)
    dp = einsum("bhqd,bhkd->bhqk", do, v.astype(_F32))
    dz = (dp - (o.astype(_F32) * do).sum(-1, keepdims=True)) * p
    return (einsum("bhqk,bhkd->bhqd", dz, k.astype(_F32)).astype(q.dtype),
            einsum("bhqk,bhqd->bhkd", dz, q.astype(_F32)).astype(k.dtype),
            einsum("bhqk,bhqd->bhkd", p, do).astype(v.dtype), None if ab is None else dz)


@partial(custom_vjp, nondiff_argnums=(5, 6, 7))
def _flash(q: Array, k: Array, v: Array, ab: Array | None, segment_ids: SegmentIds | None,
           causal: bool, mask_value: float, sm_scale: float) -> Array:
    return mha_reference_no_custom_vjp(q, k, v, ab, segment_ids, causal=causal, sm_scale=sm_scale,
                                       mask_value=mask_value)


def _flash_fwd(q: Array, k: Array, v: Array, ab: Array | None, segment_ids: SegmentIds | None,
               causal: bool, mask_value: float, sm_scale: float) -> PyTree:
    out, total, top = mha_reference_no_custom_vjp(
        q, k, v, ab, segment_ids, causal=causal, mask_value=mask_value, sm_scale=sm_scale,
        save_residuals=True)
    return out, (q, k, v, ab, segment_ids, out, total, top)


def _flash_bwd(causal: bool, mask_value: float, sm_scale: float, residuals: PyTree, ct: Array
               ) -> PyTree:
    q, k, v, ab, segment_ids, out, total, top = residuals
    dq, dk, dv, dab = mha_reference_bwd(q, k, v, ab, segment_ids, out, total, top, ct,
                                          causal=causal, mask_value=mask_value, sm_scale=sm_scale)
    return dq, dk, dv, dab, None


_flash.defvjp(_flash_fwd, _flash_bwd)


@partial(jit, static_argnames=("causal", "mask_value", "sm_scale"))
def mha_reference(q: Array, k: Array, v: Array, ab: Array | None,
                    segment_ids: SegmentIds | None = None, causal: bool = False,
                    mask_value: float = DEFAULT_MASK_VALUE, sm_scale: float = 1.0) -> Array:
    """`mha_reference_no_custom_vjp` with the cotangents of `mha_reference_bwd`.

    On TPUs its products are bfloat16's.

    >>> from olympus.experimental.pallas.ops.tpu import flash_attention as flash
    >>> x = onp.ones((1, 1, 4, 8))
    >>> flash.mha_reference(x, x, x, None).shape
    (1, 1, 4, 8)
    """
    with default_matmul_precision("bfloat16"):
        return _flash(q, k, v, ab, segment_ids, causal, mask_value, sm_scale)


complete_docstrings(globals(), {
    "q, k, v": "queries, keys and values, [batch, heads, length, dim].",
    "ab": "added to the logits, [batch, heads, queries, keys], or None.",
    "segment_ids": "the segments of queries and keys, [batch, length] each, or None.",
    "causal": "whether query i looks only at keys up to i.",
    "mask_value": "added to the logits of keys that a query does not look at.",
    "sm_scale": "the factor of the logits.",
}, returns="An array [batch, heads, length, dim], or a tuple of arrays.")
