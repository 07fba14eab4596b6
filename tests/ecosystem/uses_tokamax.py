"""tokamax: splash attention in interpret mode, with sparse masks, segments and its gradients."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import tpu as pltpu
from tokamax._src.ops.experimental.tpu.splash_attention import (
    base, splash_attention_kernel as splash, splash_attention_mask as masks,
)

CONFIG = splash.SplashConfig(
    block_q=128, block_kv=128, block_kv_compute=128, block_q_dkv=128, block_kv_dkv=128,
    block_kv_dkv_compute=128, interpret=pltpu.InterpretParams())


def main():
    draw = np.random.RandomState(0)
    length, heads, width = 384, 2, 128
    q, k, v, weights = jnp.asarray(.2 * draw.randn(4, heads, length, width), jnp.float32)
    ids = jnp.repeat(jnp.arange(3, dtype=jnp.int32), jnp.array([100, 156, 128]),
                     total_repeat_length=length)
    segments = base.SegmentIds(ids, ids)
    shape = length, length

    def whole(mask, segments):
        """Attention by the whole matrix of scores."""
        seen = jnp.asarray(mask[:, :])
        if segments is not None:
            seen = seen & (segments.q[:, None] == segments.kv)

        def attend(q, k, v):
            scores = jnp.where(seen, jnp.einsum("hqd,hkd->hqk", q, k), -jnp.inf)
            return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(scores), v)
        return attend

    def outputs(attend):
        out = attend(q, k, v)
        slopes = jax.grad(lambda *xs: (attend(*xs) * weights).sum(), (0, 1, 2))(q, k, v)
        return out, *slopes

    found, exact = {}, []
    for name, mask, ids, cap in (
            ("causal", masks.CausalMask(shape), segments, None),
            ("local", masks.LocalMask(shape, (64, 0), 0), None, None),
            ("full", masks.FullMask(shape), segments, 20.)):
        config = dataclasses.replace(CONFIG, attn_logits_soft_cap=cap)
        kernel = splash.make_splash_mha_single_device(mask, config=config)
        xs = outputs(lambda *xs, kernel=kernel, ids=ids: kernel(*xs, segment_ids=ids))
        found[name] = [x[:, ::64, ::32] for x in xs]
        if cap is None:
            exact += [bool(jnp.allclose(x, y, atol=1e-4)) for x, y in zip(
                xs, outputs(whole(mask, ids)), strict=True)]
    return {**found, "exact": exact}
