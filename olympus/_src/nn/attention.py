"""Attention: products of queries with keys, normalised, as weights of values.

Products, the normalisation and its statistics are float32 at least. A query that may look at
nothing gets zeros, so that no row is NaN and no gradient passes there.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, Literal as Exactly

from ..base.typing import Array, ArrayLike
from ..custom.jvp import custom_jvp
from ..jit.fused import fused
from ..lax.creation import broadcasted_iota, iota
from ..lax.reduce import reduce_max
from ..lax.shape import broadcast_in_dim, expand_dims, reshape, transpose
from ..numpy import arithmetic as uf, elementary as el, reductions
from ..numpy.einsum import einsum
from ..numpy.logic import logical_and
from ..numpy.manipulation import astype
from ..numpy.promote import array_args, convert, promote_dtypes
from ..numpy.selection import where
from ..types import dtypes
from ..types.shape import definitely_equal, entries, floor_div, is_static, mod, static_int


@functools.partial(custom_jvp, nondiff_argnums=(2, 3))
def _normalized(logits: Array, seen: Array | None, infinite: bool, empty: bool
                ) -> tuple[Array, Array]:
    """(softmax along the last axis of what is seen, logsumexp).

    infinite: whether rows that are all -inf get 0 and -inf, too; empty: whether rows may see
    nothing. XLA computes a guard of extrema by itself on TPUs, and reads the logits once more.
    """
    if seen is not None:
        logits = where(seen, logits, float(dtypes.finfo(logits.dtype).min))
    top = reduce_max(logits, (logits.ndim - 1,))
    if infinite:
        top = where(uf.equal(top, -math.inf), 0, top)
    weights = el.exp(uf.subtract(logits, _add_last_axis(top, logits)))
    if seen is not None:
        weights = where(seen, weights, 0)
    total = reductions.sum(weights, -1)     # at least exp(0), if a row sees something
    least = uf.maximum(total, 1) if empty else total
    shares = uf.multiply(weights, _add_last_axis(uf.reciprocal(least), logits))
    return shares, uf.add(el.log(total), top)


@_normalized.defjvp
def _normalized_jvp(infinite: bool, empty: bool, primals: Sequence[Array],
                    tangents: Sequence[Array]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    weights, lse = _normalized(*primals, infinite, empty)
    along = uf.multiply(weights, tangents[0])
    mean = reductions.sum(along, -1)
    below = _add_last_axis(uf.negative(mean), weights)
    return (weights, lse), (uf.add(along, uf.multiply(weights, below)), mean)


def _add_last_axis(x: Array, like: Array) -> Array:
    """An array without the last axis, along that axis."""
    return broadcast_in_dim(x, like.shape, range(like.ndim - 1))


def _visible(shape: Sequence[int], mask: ArrayLike | None, is_causal: bool, window: Any,
             lengths: Any) -> Any:
    """Which keys a query looks at, bool of a shape that broadcasts to [B, N, T, S]; None is all."""
    masks = [] if mask is None else [mask]
    left, right = window or (None, None)
    if is_causal:
        right = 0 if right is None else min(right, 0)
    if right is not None or left is not None:
        (t, s) = shape[-2:]
        ahead = uf.subtract(broadcasted_iota("int32", (1, 1, t, s), 3),
                            broadcasted_iota("int32", (1, 1, t, s), 2))
        if right is not None:
            masks.append(uf.less_equal(ahead, right))
        if left is not None:
            masks.append(uf.greater_equal(ahead, -left))
    for length, axis, others in zip(lengths, (2, 3), ((1, 3), (1, 2))):
        if length is not None:
            place = iota(length.dtype, shape[axis])
            masks.append(expand_dims(uf.less(place[None, :], length[:, None]), others))
    return functools.reduce(logical_and, masks) if masks else None


def _in_groups(x: Array, heads: tuple[int, int]) -> Array:
    """An array that broadcasts to [B, N, T, S], as one that does to [B, K, N / K, T, S]."""
    batch, n, *others = (1,) * (4 - x.ndim) + x.shape
    return reshape(x, (batch, *((1, 1) if definitely_equal(n, 1) else heads), *others))


def _scale(size: int) -> Any:
    """1 / sqrt(size); an array where the size is symbolic."""
    return 1 / math.sqrt(size or 1) if is_static((size,)) else el.sqrt(1 / size)


@fused(static=("is_causal", "window", "return_residual"))
def _attention(query: Any, key: Any, value: Any, bias: Any, mask: Any, scale: ArrayLike,
               lengths: Any, *, is_causal: bool, window: Any, return_residual: bool) -> Any:
    """Attention of checked [B, T, N, H] queries to [B, S, K, H] keys and values."""
    b, t, n, h = query.shape
    s, k = key.shape[1:3]
    wide = dtypes.wide_dtype(query.dtype)
    grouped = not definitely_equal(n, k)
    heads = (b, t, k, floor_div(n, k), h)
    subscripts = ("btkgh,bskh->bkgts", "bkgts,bskh->btkgh") if grouped else (
        "btnh,bsnh->bnts", "bnts,bsnh->btnh")
    queries = reshape(query, heads) if grouped else query
    logits = einsum(subscripts[0], queries, key, preferred_element_type=wide)
    logits = uf.multiply(logits, convert(scale, wide))
    seen = _visible((b, n, t, s), mask, is_causal, window, lengths)
    if grouped:     # to merge the axes of heads, XLA would transpose the logits
        bias, seen = (x if x is None else _in_groups(x, heads[2:4]) for x in (bias, seen))
    if bias is not None:
        logits = uf.add(logits, astype(bias, wide))
    # By `is_causal` alone each query looks at the first key.
    limited = any(x is not None for x in (mask, window, *lengths))
    if seen is not None and not limited:
        logits, seen = where(seen, logits, -math.inf), None
    infinite = bias is not None
    empty = limited or infinite or not is_static((s,)) or not s
    weights, lse = _normalized(logits, seen, infinite, empty)
    # In half precision as the values are; 8 bits would be too few.
    narrow = wide if dtypes.itemsize_bits(value.dtype) < 16 else value.dtype
    out = astype(einsum(subscripts[1], astype(weights, narrow), astype(value, narrow),
                        preferred_element_type=wide), query.dtype)
    if grouped:
        out, lse = reshape(out, query.shape), reshape(lse, (b, n, t))
    return (out, astype(transpose(lse, (0, 2, 1)), query.dtype)) if return_residual else out


def _fail(what: str, x: Any, required: str) -> None:
    raise ValueError(f"dot_product_attention: {what} {x.aval} given;\n  {required} is required;\n  "
                     "see the table of shapes in its documentation.")


def _check_broadcasts(name: str, x: Array, shape: tuple[object, ...], kinds: str,
                      required: str) -> None:
    """ValueError unless an array broadcasts to a shape and its dtype has one of the kinds."""
    fits = len(x.shape) <= len(shape) and all(
        definitely_equal(n, 1) or definitely_equal(n, m)
        for n, m in zip(x.shape[::-1], shape[::-1]))
    if not fits or dtypes.scalar_kind(x.dtype) not in kinds:
        _fail(name, x, f"{required}, of a shape that broadcasts to {shape},")


def _window_sizes(window: object) -> tuple[int, int] | None:
    if window is None:
        return None
    sizes = entries(window) if not isinstance(window, int) else (window, window)
    if len(sizes) != 2:
        raise ValueError(f"dot_product_attention: local_window_size {window!r} given; an int or a "
                         "pair (before, after) is required.")
    before, after = [static_int(n, "dot_product_attention", "local_window_size") for n in sizes]
    return before, after


def dot_product_attention(query: ArrayLike, key: ArrayLike, value: ArrayLike,
                          bias: ArrayLike | None = None, mask: ArrayLike | None = None, *,
                          scale: float | None = None, is_causal: bool = False,
                          query_seq_lengths: ArrayLike | None = None,
                          key_value_seq_lengths: ArrayLike | None = None,
                          local_window_size: int | tuple[int, int] | None = None,
                          implementation: Exactly["xla", "cudnn"] | None = None,
                          return_residual: bool = False) -> Array | tuple[Array, Array]:
    """softmax(scale * query keyᵀ + bias) value, for each of several heads.

    Vaswani et al., "Attention is all you need" (2017). With B sequences, T queries, S keys, N heads
    of H numbers, and K heads of keys and values, N a multiple of K: each serves N / K heads
    (grouped queries, Ainslie et al. 2023; with K = 1, one for all).

    Args:
      query: [B, T, N, H], or [T, N, H] of one sequence; floating, integers become floats.
      key, value: [B, S, K, H], or [S, K, H], of the dtype of the query.
      bias: added to the scaled products, broadcasts to [B, N, T, S].
      mask: bool, broadcasts to [B, N, T, S]; where it is True a query looks at a key.
      scale: a number, 1 / sqrt(H) if None.
      is_causal: query t looks at keys up to the t-th only.
      query_seq_lengths, key_value_seq_lengths: integers [B], how long each sequence is; positions
        beyond look at nothing and are not looked at.
      local_window_size: (a, b), static: query t looks at keys t - a … t + b only; an int is both.
      implementation: None and "xla" are the same, products with all logits in memory; "cudnn" is a
        RuntimeError, since no kernel of it is bound.
      return_residual: whether to return logsumexp of the logits too.
    Returns: An array shaped and typed as `query`; with `return_residual`, a pair with one of shape
      [B, T, N]. A query that looks at nothing gets zeros, and -inf; its gradients are zeros.

    Products are accumulated and normalised in float32 at least. ValueError for shapes and dtypes
    that do not fit.

    >>> q, k = onp.zeros((2, 1, 1)), onp.zeros((3, 1, 1))
    >>> v = onp.array([3., 6., 9.]).reshape(3, 1, 1)
    >>> print(nn.dot_product_attention(q, k, v, is_causal=True)[:, 0, 0])
    [3.  4.5]
    """
    if implementation == "cudnn":
        raise RuntimeError("dot_product_attention: implementation 'cudnn' given; cuDNN's kernels "
                           "are not bound by this version; pass 'xla' or None.")
    if implementation not in (None, "xla"):
        raise ValueError(f"dot_product_attention: implementation {implementation!r} given; None, "
                         "'xla' or 'cudnn' is required.")
    operands = array_args("dot_product_attention", query, key, value)
    names = ("query", "key", "value")
    for name, x in zip(names, operands):
        if len(x.shape) not in (3, 4) or len(x.shape) != len(operands[0].shape):
            _fail(name, x, "query, key and value of equal rank, 4, or 3 of one sequence,")
        if x.dtype != operands[0].dtype or dtypes.scalar_kind(x.dtype) not in "fiub":
            _fail(name, x, "real numbers of the dtype of the query")
    alone = len(operands[0].shape) == 3
    query, key, value = [expand_dims(x, (0,)) if alone else x for x in
                         promote_dtypes("dot_product_attention", *operands, inexact=True)]
    b, t, n, h = query.shape
    s, k = key.shape[1:3]
    for name, x in (("key", key), ("value", value)):
        if not all(map(definitely_equal, x.shape, (b, s, k, h))):
            _fail(name, x, f"shape {(b, s, k, h)}")
    if definitely_equal(k, 0) or not definitely_equal(mod(n, k), 0):
        _fail("query", query, f"a multiple of {k} heads, those of the key,")
    if bias is not None:
        (bias,) = array_args("dot_product_attention", bias)
        _check_broadcasts("bias", bias, (b, n, t, s), "fiu", "real numbers")
    if mask is not None:
        (mask,) = array_args("dot_product_attention", mask)
        _check_broadcasts("mask", mask, (b, n, t, s), "b", "bool")
    lengths = [x if x is None else array_args("dot_product_attention", x)[0]
               for x in (query_seq_lengths, key_value_seq_lengths)]
    for name, x in zip(("query_seq_lengths", "key_value_seq_lengths"), lengths):
        if x is not None and (dtypes.scalar_kind(x.dtype) not in "iu" or x.shape != (b,)):
            _fail(name, x, f"an integer dtype and shape {(b,)}")
    out = _attention(query, key, value, bias, mask, _scale(h) if scale is None else scale,
                     tuple(lengths), is_causal=bool(is_causal),
                     window=_window_sizes(local_window_size), return_residual=bool(return_residual))
    if not alone:
        return out
    return (out[0][0], out[1][0]) if return_residual else out[0]
