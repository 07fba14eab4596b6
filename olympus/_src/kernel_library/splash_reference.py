"""References of splash attention: the formula of attention with a static mask, plainly.

Query heads may share the heads of keys and values (grouped-query attention): of g query heads to
one, heads i g … i g + g - 1 read head i.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ..base.docstrings import complete_docstrings
from ..base.typing import Array, PyTree
from ..custom.vjp import custom_vjp
from ..jit.jit import jit
from ..mapping.vmap import vmap
from ..numpy.arithmetic import maximum, square
from ..numpy.creation import array
from ..numpy.einsum import einsum
from ..numpy.elementary import exp, log
from ..numpy.selection import where
from ..numpy.trigonometry import tanh
from ..types.shape import definitely_equal, mod
from .logits import DEFAULT_MASK_VALUE, SegmentIds, capped, same_segment
from .masks import BoolArray, Mask

_F32 = np.float32

def _splash(mask: Array, q: Array, k: Array, v: Array, segment_ids: SegmentIds | None,
            sinks: Array | None, mask_value: float, save_residuals: bool, custom_type: str,
            attn_logits_soft_cap: float | None) -> PyTree:
    """Attention of one head, (out, (logsumexp,)) with residuals."""
    logits = einsum("sd,td->st", q.astype(_F32), k.astype(_F32))
    if segment_ids is not None:
        mask = mask & same_segment(segment_ids)
    logits = where(mask, capped(logits, attn_logits_soft_cap), mask_value)
    top = logits.max(-1)
    if sinks is not None:
        sinks = sinks.astype(_F32)
        top = maximum(top, sinks)
    weights = exp(logits - top[:, None])
    total = weights.sum(-1)
    if sinks is not None:
        total = total + exp(sinks - top)
    out = einsum("st,td->sd", weights / total[:, None], v.astype(_F32))
    return (out, (top + log(total),)) if save_residuals else out


def attention_reference(mask: Array, q: Array, k: Array, v: Array, segment_ids: SegmentIds | None,
                        sinks: Array | None = None, *, mask_value: float = DEFAULT_MASK_VALUE,
                        save_residuals: bool = False, custom_type: str = "flash",
                        attn_logits_soft_cap: float | None = None) -> PyTree:
    """Attention of one head, written plainly; derivatives are the plain formula's.

    Args:
      mask: bool[queries, keys], which keys a query looks at.
      q, k, v: [queries, dim], [keys, dim], [keys, dim].
      segment_ids: the segments of queries and keys, or None.
      sinks: a scalar, the logit of a key with value 0 that every query looks at, or None.
      mask_value: the logit of a key that a query does not look at.
      save_residuals: also return the logarithm of the sum of exponentials.
      custom_type: has no effect here; see `attention_reference_custom`.
      attn_logits_soft_cap: logits are cap tanh(logits / cap).
    Returns: float32[queries, dim]; with residuals a pair of it and a tuple of float32[queries].

    >>> from olympus.experimental.pallas.ops.tpu.splash_attention import (
    ...     splash_attention_kernel as splash)
    >>> x = onp.array([[1., 0.], [0., 1.]])
    >>> print(splash.attention_reference(onp.array([[True, False], [True, True]]), x, x, x, None))
    [[1.         0.        ]
     [0.26894143 0.7310586 ]]
    """
    return _splash(mask, q, k, v, segment_ids, sinks, mask_value, save_residuals, custom_type,
                   attn_logits_soft_cap)


_custom = custom_vjp(_splash, nondiff_argnames=("mask_value", "save_residuals", "custom_type",
                                                "attn_logits_soft_cap"))


def _splash_fwd(mask: Array, q: Array, k: Array, v: Array, segment_ids: SegmentIds | None,
                sinks: Array | None, mask_value: float, save_residuals: bool, custom_type: str,
                attn_logits_soft_cap: float | None) -> PyTree:
    if save_residuals:
        raise NotImplementedError("attention_reference_custom: save_residuals=True has no "
                                  "derivative. Higher-order AD not supported; use "
                                  "attention_reference.")
    out, (lse,) = _splash(mask, q, k, v, segment_ids, sinks, mask_value, True, custom_type,
                          attn_logits_soft_cap)
    return out, (mask, q, k, v, segment_ids, sinks, out, lse)


def _splash_bwd(mask_value: float, save_residuals: bool, custom_type: str,
                attn_logits_soft_cap: float | None, residuals: PyTree, ct: Array) -> PyTree:
    """With weights p and logits z: dz = p (dp - sum(p dp)), where sum(p dp) = sum(out ct)."""
    mask, q, k, v, segment_ids, sinks, out, lse = residuals
    raw = einsum("sd,td->st", q, k, preferred_element_type=_F32)
    if segment_ids is not None:
        mask = mask & same_segment(segment_ids)
    p = exp(where(mask, capped(raw, attn_logits_soft_cap), mask_value) - lse[:, None])
    ct = ct.astype(_F32)
    dp = einsum("sd,td->st", ct, v.astype(_F32))
    if custom_type == "flash":
        mean = (out.astype(_F32) * ct).sum(-1, keepdims=True)
    else:
        mean = (dp * p).sum(-1, keepdims=True)
    dz = (dp - mean) * p
    if attn_logits_soft_cap is not None:
        dz = dz * (1 - square(tanh(raw / attn_logits_soft_cap)))
    dq = einsum("st,td->sd", dz, k.astype(_F32)).astype(q.dtype)
    dk = einsum("st,sd->td", dz, q.astype(_F32)).astype(k.dtype)
    dv = einsum("st,sd->td", p, ct).astype(v.dtype)
    dsinks = None
    if sinks is not None:       # the weight of the sink, whose value is 0
        share = exp(sinks.astype(_F32) - lse)[:, None]
        dsinks = -(share * ct * out).sum().astype(sinks.dtype)
    return None, dq, dk, dv, None, dsinks


_custom.defvjp(_splash_fwd, _splash_bwd)


def attention_reference_custom(mask: Array, q: Array, k: Array, v: Array,
                               segment_ids: SegmentIds | None, sinks: Array | None = None, *,
                               mask_value: float = DEFAULT_MASK_VALUE,
                               save_residuals: bool = False, custom_type: str = "flash",
                               attn_logits_soft_cap: float | None = None) -> PyTree:
    """`attention_reference` with the cotangents that kernels compute, which keep no weights.

    Args:
      custom_type: how the mean of the weights' cotangents is summed: "flash" over the head's
        dimension, as kernels do, "vanilla" over the keys. The two differ in rounding.
      others: as for `attention_reference`.
      mask: bool[queries, keys].
      q, k, v: queries, keys and values, [length, dim].

    >>> from olympus.experimental.pallas.ops.tpu.splash_attention import (
    ...     splash_attention_kernel as splash)
    >>> x = onp.array([[1., 0.], [0., 1.]])
    >>> loss = lambda v: splash.attention_reference_custom(onp.tri(2) > 0, x, x, v, None).sum()
    >>> print(olympus.grad(loss)(x))
    [[1.2689414 1.2689414]
     [0.7310586 0.7310586]]
    """
    return _custom(mask, q, k, v, segment_ids, sinks, mask_value, save_residuals, custom_type,
                   attn_logits_soft_cap)


def _of_heads(x: Array | None, kv_heads: int) -> Array | None:
    """[heads, …] as [kv_heads, heads of each, …]."""
    return x if x is None else x.reshape(kv_heads, -1, *x.shape[1:])


def make_attention_reference(mask: Mask | BoolArray, is_mqa: bool, backward_impl: str = "vanilla",
                             **params: object) -> Callable[..., PyTree]:
    """Return attention of several heads with a static mask, a compiled function of q, k and v.

    Args:
      mask: a mask or an array, bool[heads, queries, keys].
      is_mqa: whether all heads read one head of keys and values ([keys, dim]); else those are
        [kv_heads, keys, dim], where kv_heads divides the heads.
      backward_impl: "vanilla" differentiates the formula; "custom" and "custom_vanilla" have the
        cotangents of `attention_reference_custom`, of type "flash" and "vanilla".
      params: more arguments of the reference.
    Returns: A function of (q, k, v, segment_ids=None, sinks=None) with the options `mask_value`,
      `save_residuals` and `attn_logits_soft_cap`; `sinks` are [heads].

    Raises:
      ValueError: heads that the heads of keys do not divide.

    >>> from olympus.experimental.pallas.ops.tpu import splash_attention as splash
    >>> mask = splash.MultiHeadMask([splash.CausalMask((4, 4)) for _ in range(2)])
    >>> x = onp.ones((2, 4, 8))
    >>> splash.make_masked_mha_reference(mask)(x, x, x).shape
    (2, 4, 8)
    """
    kinds = {"custom": partial(attention_reference_custom, custom_type="flash"),
             "custom_vanilla": partial(attention_reference_custom, custom_type="vanilla")}
    attend = kinds.get(backward_impl, attention_reference)

    @partial(jit, static_argnames=("mask_value", "save_residuals", "attn_logits_soft_cap"))
    def reference(mask: Array, q: Array, k: Array, v: Array, segment_ids: SegmentIds | None = None,
                  sinks: Array | None = None, *, mask_value: float = DEFAULT_MASK_VALUE,
                  save_residuals: bool = False, attn_logits_soft_cap: float | None = None
                  ) -> PyTree:
        one = partial(attend, mask_value=mask_value, save_residuals=save_residuals,
                      attn_logits_soft_cap=attn_logits_soft_cap, **params)
        of_queries = vmap(one, (0, 0, None, None, None, 0))
        if is_mqa:
            return of_queries(mask, q, k, v, segment_ids, sinks)
        heads, kv_heads = q.shape[0], k.shape[0]
        if mod(heads, kv_heads) or not definitely_equal(v.shape[0], kv_heads):
            raise ValueError(f"make_masked_mha_reference: q {q.aval}, k {k.aval} and v {v.aval} "
                             "given; as many heads of values as of keys are required, which divide "
                             "the heads of queries.")
        of_groups = vmap(of_queries, (0, 0, 0, 0, None, 0))
        out = of_groups(_of_heads(mask, kv_heads), _of_heads(q, kv_heads), k, v, segment_ids,
                        _of_heads(sinks, kv_heads))
        if not save_residuals:
            return out.reshape(q.shape[0], *out.shape[2:])
        out, (lse,) = out
        return out.reshape(heads, *out.shape[2:]), (lse.reshape(heads, -1),)

    return partial(reference, array(mask[:, :, :]))


make_masked_mha_reference = partial(make_attention_reference, is_mqa=False)
make_masked_mqa_reference = partial(make_attention_reference, is_mqa=True)


complete_docstrings(globals(), {}, returns="An array [queries, dim], perhaps with the residuals.")
