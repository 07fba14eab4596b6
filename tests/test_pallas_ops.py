"""Masks and references of `experimental.pallas.ops` beside NumPy's formulas, entry by entry."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus.experimental.pallas.ops.gpu import (
    attention as gpu_attention, decode_attention, layer_norm,
    paged_attention as gpu_paged_attention, rms_norm,
)
from olympus.experimental.pallas.ops.tpu import flash_attention, splash_attention as splash
from olympus.experimental.pallas.ops.tpu.paged_attention import quantization_utils, util
from olympus.experimental.pallas.ops.tpu.splash_attention import (
    splash_attention_kernel, splash_attention_mask, splash_attention_mask_info,
)

N, M = 16, 32


def dense(rule: Any) -> Any:
    return np.array([[bool(rule(i, j)) for j in range(M)] for i in range(N)])


RANDOM = np.random.RandomState(0).rand(N, M) > .95
MASKS = {
    "causal": (splash.CausalMask((N, M)), dense(lambda i, j: j <= i)),
    "offset": (splash.CausalMask((N, M), 3), dense(lambda i, j: j <= i + 3)),
    "local": (splash.LocalMask((N, M), (5, 2), 1), dense(lambda i, j: -5 <= j - i - 1 <= 2)),
    "right": (splash.LocalMask((N, M), (None, 4), 0), dense(lambda i, j: j - i <= 4)),
    "unlimited": (splash.LocalMask((N, M), (None, None), 0), dense(lambda i, j: True)),
    "full": (splash.FullMask((N, M)), dense(lambda i, j: True)),
    "chunked": (splash_attention_mask.ChunkedCausalMask((N, M), 4),
                dense(lambda i, j: j <= i and j // 4 == i // 4)),
    "numpy": (splash.NumpyMask(RANDOM), RANDOM),
    "and": (splash.CausalMask((N, M)) & splash.NumpyMask(RANDOM),
            dense(lambda i, j: j <= i and RANDOM[i, j])),
    "or": (splash.CausalMask((N, M)) | splash.NumpyMask(RANDOM),
           dense(lambda i, j: j <= i or RANDOM[i, j])),
}


@pytest.mark.parametrize("name", MASKS)
def test_a_block_of_a_mask_is_the_block_of_its_rule(name: str) -> None:
    mask, want = MASKS[name]
    assert mask.shape == (N, M)
    for rows, columns in itertools.product((slice(0, 4), slice(8, 16), slice(None)), repeat=2):
        np.testing.assert_array_equal(mask[rows, columns], want[rows, columns])
    with pytest.raises(NotImplementedError, match="Conversion to bool"):
        bool(mask)


def test_masks_are_equal_and_hashed_by_content() -> None:
    made = [(splash.CausalMask((4, 4)), splash.CausalMask((4, 4)), splash.CausalMask((4, 4), 1)),
            (splash.FullMask((4, 4)), splash.FullMask((4, 4)), splash.FullMask((4, 8))),
            (splash.NumpyMask(np.eye(4) > 0), splash.NumpyMask(np.eye(4) > 0),
             splash.NumpyMask(np.eye(4) > 2))]
    for one, same, other in made:
        assert one == same and hash(one) == hash(same) and one != other
        assert (one & same) == (same & one) != (one | same)
        assert splash.MultiHeadMask((one, same)) == splash.MultiHeadMask([same, one])


def test_masks_of_other_shapes_are_refused() -> None:
    square = splash.CausalMask((4, 4))
    with pytest.raises(ValueError, match="Invalid shape for other"):
        _ = square | splash.FullMask((4, 8))
    with pytest.raises(ValueError, match="Unexpected mask shape"):
        splash.MultiHeadMask([square, splash.FullMask((4, 8))])
    with pytest.raises(ValueError, match="Nesting"):
        splash.MultiHeadMask([splash.MultiHeadMask([square])])
    with pytest.raises(ValueError, match="boolean"):
        splash.NumpyMask(np.eye(4))     # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="Shard count squared"):
        splash.CausalMask((6, 4), shard_count=2)
    with pytest.raises(ValueError, match="q_block_size=3 should divide"):
        splash_attention_mask_info.process_mask(splash.MultiHeadMask([square]), (3, 4))


def walk(info: Any, mask: Any, block: tuple[int, int], is_dkv: bool, rule: Any) -> Any:
    """The dense mask that a kernel sees: block by block, skipping what is empty."""
    heads, rows, columns = info.block_mask.shape
    seen = np.zeros((heads, N, M), bool)
    for h, r, c in np.ndindex(heads, rows, columns):
        kind = info.block_mask[h, r, c]
        if kind == 0:
            continue
        q, kv = (info.data_next[h, r, c], c) if is_dkv else (r, info.data_next[h, r, c])
        at = np.s_[h, q * block[0]:(q + 1) * block[0], kv * block[1]:(kv + 1) * block[1]]
        if kind == 2:
            seen[at] = True
        elif rule is not None:
            seen[at] = rule(*np.ogrid[at[1], at[2]])
        else:
            part = info.partial_mask_blocks[info.mask_next[h, r, c]]
            seen[at] = part.T if is_dkv else part
    return seen


@pytest.mark.parametrize("shrink", [True, False])
@pytest.mark.parametrize("is_dkv", [True, False])
def test_the_blocks_that_a_kernel_visits_are_the_mask(is_dkv: bool, shrink: bool) -> None:
    process = (splash_attention_mask_info.process_mask_dkv if is_dkv
               else splash_attention_mask_info.process_mask)
    for names in ("causal",), ("numpy", "numpy"), ("local", "or", "full"), ("full",), ("chunked",):
        masks = [MASKS[name] for name in names]
        block = (4, 8)
        info, rule = process(splash.MultiHeadMask([mask for mask, _ in masks]), block,
                             shrink_grid=shrink)
        seen = walk(info, masks, block, is_dkv, rule)
        want = np.stack([want for _, want in masks])
        np.testing.assert_array_equal(seen, want[:1] if len(set(names)) == 1 else want)
        if shrink and len(set(names)) == 1:
            blocks = want[0].reshape(4, 4, 4, 8).any((1, 3))
            assert info.block_mask.shape[1 if is_dkv else 2] == blocks.sum(
                0 if is_dkv else 1).max()
        assert info.block_mask.dtype == info.data_next.dtype == np.int8


def test_shards_of_queries_count_their_own_blocks() -> None:
    mask = splash.MultiHeadMask([MASKS["causal"][0]])
    info, _ = splash_attention_mask_info.process_mask_dkv(mask, (4, 8), q_seq_shards=2,
                                                          shrink_grid=False)
    visited = info.block_mask[0] != 0
    np.testing.assert_array_equal(info.data_next[0][visited],
                                  (np.arange(4) % 2)[:, None].repeat(4, 1)[visited])


@pytest.mark.parametrize("is_dkv", [True, False])
def test_blocks_of_a_mask_that_is_an_array(is_dkv: bool) -> None:
    process = (splash_attention_mask_info.process_dynamic_mask_dkv if is_dkv
               else splash_attention_mask_info.process_dynamic_mask)
    want = np.stack([MASKS[name][1] for name in ("causal", "numpy", "full")])
    info, rule = process(onp.array(want), (4, 8))
    flat = np.asarray(info.partial_mask_blocks)
    one = info._replace(partial_mask_blocks=flat.reshape(-1, *flat.shape[3:]),
                        **{name: np.asarray(getattr(info, name))
                           for name in ("block_mask", "data_next", "mask_next")})
    assert info.is_dynamic_mask and rule is None
    np.testing.assert_array_equal(walk(one, None, (4, 8), is_dkv, None), want)
    with pytest.raises(ValueError, match="Expected a bool mask"):
        process(onp.ones((1, 8, 8)), (4, 8))


# Attention ---------------------------------------------------------------------------------------

def by_hand(q: Any, k: Any, v: Any, seen: Any, scale: float = 1.0, cap: float | None = None,
            sink: Any = None, bias: Any = 0.0) -> Any:
    """(out, logsumexp) of one head, in float64 row by row."""
    out, lse = [], []
    for i, row in enumerate(np.asarray(q, np.float64)):
        z = (np.asarray(k, np.float64) @ row + np.broadcast_to(bias, seen.shape)[i]) * scale
        z = (cap * np.tanh(z / cap) if cap else z)[seen[i]]
        e = np.exp(z)
        total = e.sum() + (0 if sink is None else math.exp(sink))
        out.append(e / total @ np.asarray(v, np.float64)[seen[i]])
        lse.append(math.log(total))
    return np.stack(out), np.array(lse)


R = np.random.RandomState(1)


def draw(*shape: int) -> Any:
    return R.randn(*shape).astype(np.float32)


Q, K, V, SINKS = draw(4, N, 8), draw(2, M, 8), draw(2, M, 8), draw(4)
IDS = np.arange(N) // 7, np.arange(M) // 7


@pytest.mark.parametrize(("cap", "segments", "sinks"), [(None, False, None), (2.0, True, SINKS)])
def test_splash_references(cap: Any, segments: bool, sinks: Any) -> None:
    names = ("causal", "causal", "right", "full")
    mask = splash.MultiHeadMask([MASKS[name][0] for name in names])
    ids = splash.SegmentIds(*map(onp.array, IDS)) if segments else None
    plain = splash.make_masked_mha_reference(mask)
    out, (lse,) = plain(Q, K, V, ids, sinks, save_residuals=True, attn_logits_soft_cap=cap)
    for h, name in enumerate(names):
        seen = MASKS[name][1] & (IDS[0][:, None] == IDS[1] if segments else True)
        want = by_hand(Q[h], K[h // 2], V[h // 2], seen, cap=cap,
                       sink=None if sinks is None else sinks[h])
        np.testing.assert_allclose(out[h], want[0], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(lse[h], want[1], rtol=1e-5, atol=1e-5)

    def loss(attend: Any) -> Any:
        return lambda *x: (attend(*x[:3], ids, *x[3:], attn_logits_soft_cap=cap) ** 2).sum()

    x = (Q, K, V) if sinks is None else (Q, K, V, sinks)
    argnums = tuple(range(len(x)))
    want = olympus.grad(loss(plain), argnums)(*x)
    for impl in "custom", "custom_vanilla":
        attend = splash.make_masked_mha_reference(mask, backward_impl=impl)
        for got, right in zip(olympus.grad(loss(attend), argnums)(*x), want, strict=True):
            np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-4)


def test_splash_reference_of_one_head_of_keys() -> None:
    mask = splash.MultiHeadMask([MASKS["offset"][0]] * 4)
    out = splash.make_masked_mqa_reference(mask)(Q, K[0], V[0])
    for h in range(4):
        np.testing.assert_allclose(out[h], by_hand(Q[h], K[0], V[0], MASKS["offset"][1])[0],
                                   rtol=1e-5, atol=1e-5)
    with pytest.raises(NotImplementedError, match="Higher-order"):
        olympus.grad(lambda q: splash_attention_kernel.attention_reference_custom(
            MASKS["offset"][1], q, K[0], V[0], None, save_residuals=True)[0].sum())(Q[0])
    with pytest.raises(ValueError, match="divide the heads of queries"):
        splash.make_masked_mha_reference(mask)(Q, Q[:3], Q[:3])


@pytest.mark.parametrize(("causal", "segments"), [(False, False), (True, True)])
def test_flash_and_gpu_references(segments: bool, causal: bool) -> None:
    q, k, v = (draw(1, 2, N, 8) for _ in range(3))
    ab = draw(1, 2, N, N)
    ids = onp.array(IDS[0])[None]
    seen = np.tri(N) > 0 if causal else np.ones((N, N), bool)
    seen = seen & (IDS[0][:, None] == IDS[0] if segments else True)
    flash_ids = flash_attention.SegmentIds(ids, ids) if segments else None
    out = flash_attention.mha_reference(q, k, v, ab, flash_ids, causal=causal)
    gpu = gpu_attention.mha_reference(*(x.swapaxes(1, 2) for x in (q, k, v)),
                                      ids if segments else None, 0.5, causal)
    for h in range(2):
        x = q[0, h], k[0, h], v[0, h], seen
        np.testing.assert_allclose(out[0, h], by_hand(*x, bias=ab[0, h])[0], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(gpu[0, :, h], by_hand(*x, 0.5)[0], rtol=1e-5, atol=1e-5)

    def loss(attend: Any) -> Any:
        return lambda *x: (attend(*x, flash_ids, causal=causal) ** 2).sum()

    got, want = (olympus.grad(loss(attend), (0, 1, 2, 3))(q, k, v, ab) for attend in (
        flash_attention.mha_reference, flash_attention.mha_reference_no_custom_vjp))
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-4)


def test_references_of_one_query_in_each_row() -> None:
    q, k, v = draw(3, 4, 8), draw(3, N, 2, 8), draw(3, N, 2, 8)
    start, stop = onp.array([0, 3, 5]), onp.array([16, 9, 7])
    decoded = decode_attention.gqa_reference(q, k, v, start, stop)
    paged = gpu_paged_attention.paged_attention_reference(q, k, v, stop, attn_logits_soft_cap=1.5)
    grouped = util.grouped_query_attention_reference(q, k.swapaxes(1, 2), v.swapaxes(1, 2), stop,
                                                     1.5)
    each = decode_attention.mha_reference(q, k.repeat(2, 2), v.repeat(2, 2), start, stop)
    one = decode_attention.mqa_reference(q, k[:, :, 0], v[:, :, 0], start, stop)
    place = np.arange(N)
    for b, h in np.ndindex(3, 4):
        x = q[b, h][None], k[b, :, h // 2], v[b, :, h // 2]
        first = (place < stop[b])[None]
        seen, scale = first & (place >= start[b]), 1 / math.sqrt(8)
        for got, want in ((decoded, by_hand(*x, seen, scale)), (each, by_hand(*x, seen, scale)),
                          (one, by_hand(x[0], k[b, :, 0], v[b, :, 0], seen, scale)),
                          (paged, by_hand(*x, first, cap=1.5)),
                          (grouped, by_hand(*x, first, cap=1.5))):
            np.testing.assert_allclose(got[b, h], want[0][0], rtol=1e-5, atol=1e-5)


def test_norms_and_int8() -> None:
    x, w, b = R.randn(2, 3, 8), R.randn(8), R.randn(8)
    y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * w + b
    np.testing.assert_allclose(layer_norm.layer_norm_reference(*map(onp.array, (x, w, b))), y,
                               rtol=1e-4, atol=1e-4)
    y = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w + b
    np.testing.assert_allclose(rms_norm.rms_norm_reference(*map(onp.array, (x, w, b))), y,
                               rtol=1e-4, atol=1e-4)
    back = quantization_utils.unquantize_from_int8(
        quantization_utils.quantize_to_int8(onp.array(x)), onp.float32)
    assert np.all(abs(back - x) <= abs(x).max(-1, keepdims=True) / 127)
