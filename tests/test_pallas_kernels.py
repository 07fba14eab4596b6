"""Kernels of `experimental.pallas.ops` beside the plain references and NumPy's formulas."""

from typing import Any

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import nn
from olympus.experimental.pallas import tpu as pltpu
from olympus.experimental.pallas.ops.gpu import (
    attention as gpu_attention, decode_attention, layer_norm, paged_attention as gpu_pages,
    rms_norm,
)
from olympus.experimental.pallas.ops.gpu.softmax import softmax
from olympus.experimental.pallas.ops.tpu import (
    flash_attention as flash, megablox, ragged_paged_attention as ragged,
    splash_attention as splash,
)
from olympus.experimental.pallas.ops.tpu.matmul import matmul
from olympus.experimental.pallas.ops.tpu.paged_attention import (
    paged_attention, quantization_utils, util,
)

F32 = np.float32
MHA: Any = gpu_attention.mha
BY_PAGES: Any = gpu_pages.paged_attention
PAGED: Any = paged_attention
GROUPED: Any = util.grouped_query_attention_reference
R = np.random.RandomState(0)


def draw(*shape: int) -> Any:
    return R.randn(*shape).astype(F32)


def near(found: Any, want: Any, tolerance: float = 3e-5) -> None:
    for x, y in zip(olympus.tree.leaves(found), olympus.tree.leaves(want), strict=True):
        assert x.shape == y.shape and x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


def with_grad(f: Any, *xs: Any) -> Any:
    """The value, and the gradient of the sum of squares by all arguments."""
    def loss(*xs: Any) -> Any:
        out = f(*xs).astype(F32)
        return (out * out).sum(), out
    grads, out = olympus.grad(loss, tuple(range(len(xs))), has_aux=True)(*xs)
    return out, grads


# Attention ---------------------------------------------------------------------------------------

SIZES = flash.BlockSizes(16, 16, 8, 1, 16, 8, 8, 8, 24, 8, 8)
IDS = onp.array(np.arange(32)[None] // 13), onp.array(np.arange(48)[None] // 13)


@pytest.mark.parametrize(("causal", "bias", "segments"), [
    (False, False, False), (True, False, True), (True, True, False)])
def test_flash_attention(causal: bool, bias: bool, segments: bool) -> None:
    xs = [draw(1, 2, 32, 8), draw(1, 2, 48, 8), draw(1, 2, 48, 8)]
    xs += [draw(1, 2, 32, 48)] if bias else []
    ids = flash.SegmentIds(*IDS) if segments else None

    def one(f: Any, **options: Any) -> Any:
        return lambda q, k, v, ab=None: f(q, k, v, ab, ids, causal=causal, **options)

    with pltpu.force_tpu_interpret_mode():
        found = with_grad(one(flash.flash_attention, sm_scale=.5, block_sizes=SIZES), *xs)
    near(found, with_grad(one(flash.mha_reference_no_custom_vjp, sm_scale=.5), *xs))


@pytest.mark.parametrize("causal", [False, True])
def test_mha(causal: bool) -> None:
    xs: Any = [draw(2, 32, 2, 8) for _ in range(3)]
    sizes = gpu_attention.BlockSizes(16, 8, 8, 16, 16, 16)
    ids = onp.array([[0] * 20 + [1] * 12, [0] * 32])

    def one(f: Any, **options: Any) -> Any:
        return lambda *x: f(*x, ids, .3, causal, **options)

    near(with_grad(one(gpu_attention.mha, block_sizes=sizes, interpret=True), *xs),
         with_grad(one(gpu_attention.mha_reference), *xs))
    out, lse = MHA(*xs, None, block_sizes=sizes, interpret=True,
                                 return_residuals=True)
    near(lse, nn.logsumexp(onp.einsum("bqhc,bkhc->bhqk", *xs[:2]), -1))
    near(out, gpu_attention.mha_reference(xs[0], xs[1], xs[2], None))


ODD = np.random.RandomState(3).rand(32, 48) > .9
ODD[:, 5] = True
HEADS = {
    "causal": [splash.CausalMask((32, 48))] * 4,
    "two": [splash.LocalMask((32, 48), (4, 3), 1)] * 2 + [splash.FullMask((32, 48))] * 2,
    "read": [splash.NumpyMask(ODD)] * 4,
}


@pytest.mark.parametrize(("name", "fused", "cap", "sinks"), [
    ("causal", False, None, False), ("two", True, 2.0, True), ("read", False, None, True),
    ("causal", True, 1.5, False)])
def test_splash_attention(name: str, fused: bool, cap: Any, sinks: bool) -> None:
    mask = splash.MultiHeadMask(HEADS[name])
    sizes = splash.BlockSizes(8, 16, None, 16, 8, None, None if fused else 8,
                              None if fused else 24, fused)
    kernel = splash.make_splash_mha_single_device(mask, block_sizes=sizes, interpret=True,
                                                  attn_logits_soft_cap=cap)
    ids = splash.SegmentIds(IDS[0][0], IDS[1][0])
    plain = splash.make_masked_mha_reference(mask)
    xs = [draw(4, 32, 8), draw(2, 48, 8), draw(2, 48, 4), *([draw(4)] if sinks else [])]
    found = with_grad(lambda q, k, v, s=None: kernel(q, k, v, ids, s), *xs)
    near(found, with_grad(lambda q, k, v, s=None: plain(
        q, k, v, ids, s, attn_logits_soft_cap=cap), *xs))


def test_splash_attention_is_a_pytree_of_its_mask() -> None:
    """It is an argument of jit, mapped, of one head of keys, and made of a traced mask."""
    mask = splash.MultiHeadMask(HEADS["causal"])
    sizes = splash.BlockSizes(8, 16)
    kernel = splash.make_splash_mqa_single_device(mask, block_sizes=sizes, interpret=True)
    x = [draw(3, 4, 32, 8), draw(3, 48, 8), draw(3, 48, 8)]
    want = olympus.vmap(splash.make_masked_mqa_reference(mask))(*x)
    near(olympus.jit(lambda f, *x: olympus.vmap(f)(*x))(kernel, *x), want)

    @olympus.jit
    def traced(mask: Any, q: Any, k: Any, v: Any) -> Any:
        f = splash.make_splash_mqa_single_device(mask, block_sizes=sizes, interpret=True,
                                                 save_residuals=True)
        leaves, tree = olympus.tree.flatten(f)
        return olympus.tree.unflatten(tree, leaves)(q, k, v)
    out, (lse,) = traced(onp.array(mask[:, :, :]), *[y[0] for y in x])
    near(out, want[0])
    assert lse.shape == (4, 32)
    with pytest.raises(NotImplementedError, match="set all of them in BlockSizes"):
        olympus.grad(lambda q: kernel(q, x[1][0], x[2][0]).sum())(x[0][0])


def test_decoding() -> None:
    q, k, v = draw(2, 6, 8), draw(2, 40, 3, 8), draw(2, 40, 3, 8)
    start, stop = onp.array([0, 7]), onp.array([33, 9])
    for options in {}, {"return_residuals": True, "normalize_output": False, "sm_scale": .7}:
        near(decode_attention.gqa(q, k, v, start, stop, block_k=8, interpret=True, **options),
             decode_attention.gqa_reference(q, k, v, start, stop, **options))
    near(decode_attention.mqa(q, k[:, :, 0], v[:, :, 0], interpret=True),
         decode_attention.mqa_reference(q, k[:, :, 0], v[:, :, 0]))
    with pytest.raises(NotImplementedError, match="pass return_residuals=True"):
        decode_attention.gqa(q, k, v, normalize_output=False, interpret=True)


def test_pages() -> None:
    q = draw(2, 6, 8)
    pages: Any = [draw(3, 9, 4, 8) for _ in range(2)]
    table, lengths = onp.array([[1, 5, 0], [8, 3, 2]]), onp.array([11, 4])
    rows: Any = [p[:, table].swapaxes(0, 1).reshape(2, 3, 12, 8) for p in pages]
    want = GROUPED(q, *rows, lengths, 2.0)
    near(BY_PAGES(q, *pages, table, lengths, attn_logits_soft_cap=2.0,
                                   interpret=True), want)
    scales: Any = [abs(draw(3, 9, 4)) for _ in range(2)]
    scaled = BY_PAGES(q, *pages, table, None, *scales, interpret=True)
    larger: Any = [p * s[..., None] for p, s in zip(pages, scales, strict=True)]
    near(scaled, BY_PAGES(q, *larger, table, None, interpret=True))
    with pltpu.force_tpu_interpret_mode():
        near(PAGED(q, *pages, lengths, table, attn_logits_soft_cap=2.0,
                             pages_per_compute_block=3), want)
        small: Any = [quantization_utils.quantize_to_int8(onp.array(p)) for p in pages]
        back: Any = [quantization_utils.unquantize_from_int8(p, F32) for p in small]
        near(PAGED(q, *small, lengths, table, pages_per_compute_block=1),
             PAGED(q, *back, lengths, table, pages_per_compute_block=1))
        with pytest.raises(ValueError, match="a divisor is required"):
            PAGED(q, *pages, lengths, table, pages_per_compute_block=2)


# Products and norms ------------------------------------------------------------------------------

@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("sizes", [(5, 0, 11, 4), (0, 0, 20, 0), (3, 2, 1, 0)])
def test_products_of_groups(sizes: Any, transposed: bool) -> None:
    x, w = draw(20, 6), draw(4, 6, 10)
    ends = np.cumsum(sizes)
    group = np.searchsorted(ends, np.arange(20), side="right")
    member = onp.array(group[:, None] == np.arange(4)).astype(F32)
    counts = onp.array(sizes, np.int32)

    def run(x: Any, w: Any) -> Any:
        return megablox.gmm(x, w.swapaxes(1, 2) if transposed else w, counts, F32, (8, 4, 4), None,
                            None, transposed, True)

    near(with_grad(run, x, w),
         with_grad(lambda x, w: onp.einsum("mg,mk,gkn->mn", member, x, w), x, w))


def test_groups_of_one_shard_and_other_rows() -> None:
    x, w, old = draw(20, 6), draw(2, 6, 10), draw(20, 10)
    counts, first = onp.array([5, 4, 8, 3], np.int32), onp.array(1, np.int32)
    mine = (np.arange(20) >= 5) & (np.arange(20) < 17)

    def run(x: Any, w: Any, old: Any) -> Any:
        return megablox.gmm(x, w, counts, F32, lambda m, k, n: (4, k, n), first, old,
                            interpret=True)

    rows = np.where(np.arange(20) < 9, 0, 1)
    near(with_grad(run, x, w, old), with_grad(lambda x, w, old: onp.where(
        mine[:, None], onp.einsum("mk,mkn->mn", x, w[rows]), old), x, w, old))
    near(megablox.tgmm(x.T, old, counts, F32, (4, 4, 4), first, 2, onp.ones((2, 6, 10)), True),
         onp.stack([1 + x[5:9].T @ old[5:9], 1 + x[9:17].T @ old[9:17]]))
    for message, run_wrong in (
            ("32-bit integer", lambda: megablox.gmm(x, w, counts.astype(F32), interpret=True)),
            ("No tuned tiling", lambda: megablox.gmm(x, w, counts, F32, None, first,
                                                     interpret=True)),
            ("Expected 3-tensor", lambda: megablox.gmm(x, x, counts, interpret=True))):
        with pytest.raises(ValueError, match=message):
            run_wrong()


@pytest.mark.parametrize("dtype", [F32, np.int8])
def test_matmul(dtype: Any) -> None:
    x, y = (5 * draw(8, 12)).astype(dtype), (5 * draw(12, 6)).astype(dtype)
    out = np.int32 if dtype == np.int8 else F32
    with pltpu.force_tpu_interpret_mode():
        near(matmul(x, y, block_shape=(4, 3), block_k=6, out_dtype=out), x.astype(out) @ y)
        with pytest.raises(ValueError, match="sizes that they divide"):
            matmul(x, y, block_shape=(3, 3), block_k=6)


@pytest.mark.parametrize(("kernel", "plain"), [
    (layer_norm.layer_norm, layer_norm.layer_norm_reference),
    (rms_norm.rms_norm, rms_norm.rms_norm_reference)])
def test_norms(kernel: Any, plain: Any) -> None:
    x, w, b = draw(3, 50, 24), draw(24), draw(24)
    near(with_grad(lambda *x: kernel(*x, interpret=True), x, w, b), with_grad(plain, x, w, b), 1e-4)


@pytest.mark.parametrize("dtype", [F32, onp.bfloat16])
@pytest.mark.parametrize("shape", [(5,), (2, 3, 33), (0, 4)])
def test_softmax(shape: Any, dtype: Any) -> None:
    x = onp.array(draw(*shape), dtype)
    near(softmax(x, interpret=True), nn.softmax(x.astype(F32)).astype(dtype))
    with pytest.raises(NotImplementedError, match="the last one is required"):
        softmax(onp.ones((2, 2)), axis=0, interpret=True)


def ragged_oracle(q: Any, pages: Any, lengths: Any, table: Any, starts: Any, count: int,
                  scale: float = 1., window: Any = None, cap: Any = None) -> Any:
    """In float64: the last query of each sequence stands at its last key."""
    q, pages = np.asarray(q, np.float64), np.asarray(pages, np.float64)
    out, group = np.zeros(q.shape), q.shape[1] // (pages.shape[2] // 2)
    for s in range(count):
        both = pages[table[s]].reshape(-1, *pages.shape[2:])[:lengths[s]]
        for t in range(starts[s], starts[s + 1]):
            last = lengths[s] - (starts[s + 1] - t)
            seen = slice(0 if window is None else max(0, last - window + 1), last + 1)
            for h in range(q.shape[1]):
                k, v = both[seen, h // group * 2], both[seen, h // group * 2 + 1]
                logits = k @ q[t, h] * scale
                logits = logits if cap is None else cap * np.tanh(logits / cap)
                weights = np.exp(logits - logits.max())
                out[t, h] = weights @ v / weights.sum()
    return out


@pytest.mark.parametrize("options, oracle", [
    ({}, {}), ({"num_queries_per_block": 4, "sm_scale": .3}, {"scale": .3}),
    ({"sliding_window": 3, "soft_cap": 2., "num_queries_per_block": 3, "mask_value": None},
     {"window": 3, "cap": 2.})])
def test_ragged_pages(options: Any, oracle: Any) -> None:
    q, pages = draw(13, 6, 8), np.array(draw(11, 4, 4, 8))
    table = np.array([[3, 7, 1], [0, 4, 9], [2, 5, 6], [100, -7, 4]], np.int32)
    lengths, starts, count = np.array([9, 4, 12, 77], np.int32), np.array(
        [0, 5, 6, 11, 50], np.int32), 3
    want = ragged_oracle(q, pages, lengths, table, starts, count, **oracle)
    pages[1, 1:] = np.nan       # behind the last key of the first sequence
    args = [onp.array(x) for x in (q, pages, lengths, table, starts, np.array([count], np.int32))]
    with pltpu.force_tpu_interpret_mode():
        found = ragged.ragged_paged_attention(*args, **options)
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=2e-6)
        plain = {k: v for k, v in options.items() if k != "num_queries_per_block"}
        reference = ragged.ref_ragged_paged_attention

        def slope(f: Any, options: Any) -> Any:
            loss = lambda q, pages: (f(q, pages, *args[2:], **options)[:11] ** 2).sum()
            return olympus.jit(olympus.grad(loss, (0, 1)))(*args[:2])
        near(slope(ragged.ragged_paged_attention, options), slope(reference, plain))
    found = olympus.jit(lambda q, pages: reference(q, pages, *args[2:], **plain))(*args[:2])
    np.testing.assert_allclose(found, want[:11], rtol=1e-5, atol=2e-6)


def test_ragged_pages_in_fewer_bits_and_mistakes() -> None:
    q = onp.array(draw(6, 2, 8)).astype(onp.bfloat16)
    pages = onp.array(draw(3, 4, 2, 8) * 30).astype(onp.int8)
    ints = [onp.array(x, onp.int32) for x in ([7, 4], [[2, 0], [1, 1]], [0, 2, 6], [2])]
    scales = {"k_scale": .02, "v_scale": .5}
    with pltpu.force_tpu_interpret_mode():
        found = ragged.ragged_paged_attention(q, pages, *ints, **scales)
    want = olympus.jit(lambda: ragged.ref_ragged_paged_attention(q, pages, *ints, **scales))()
    np.testing.assert_allclose(found.astype(F32), want.astype(F32), rtol=.02, atol=.05)
    ragged.dynamic_validate_inputs(q, pages, *ints)
    for change, match in (
            ({1: pages[:, :, :1]}, r"2 kv_heads"), ({0: q[:, :, :4]}, "one dim"),
            ({2: ints[0][:1]}, r"kv_lens int32\[1\] given; int32\[2\]"),
            ({4: ints[2].astype(F32)}, "cu_q_lens float32"), ({5: ints[3] + 1}, "num_seqs is 3"),
            ({4: ints[2] + 1}, "cu_q_lens ends at 7"), ({2: ints[0] - 1}, "4 queries and 3 keys"),
            ({2: ints[0] + 2}, "and 9 keys; .*at most 8")):
        args = [change.get(i, x) for i, x in enumerate((q, pages, *ints))]
        with pytest.raises(ValueError, match="(?s)" + match):
            ragged.dynamic_validate_inputs(*args)
    for options in {"sliding_window": 0}, {"soft_cap": 0.}, {"num_kv_pages_per_block": 3}:
        with pytest.raises(ValueError, match=f"{next(iter(options))}="):
            ragged.static_validate_inputs(q, pages, *ints, **options)
