"""Attention of [batch, heads, length, dim] with a bias, segments and a causal rule."""

from __future__ import annotations

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
from .logits import DEFAULT_MASK_VALUE, SegmentIds, causal_rule, same_segment

_F32 = np.float32

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
