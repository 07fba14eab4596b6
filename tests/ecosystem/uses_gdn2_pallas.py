"""gdn2-pallas: linear attention with a gated delta rule by kernels for TPUs, and its gradient."""

import jax
import jax.numpy as jnp
import numpy as np
from atomic_ops import KAGGLE_SMALL, gdn2_chunked_wy_reference, gdn2_pallas_forward_trainable
from jax.experimental.pallas import tpu as pltpu


def main():
    draw = np.random.RandomState(0)
    q, k, v, w, b = jnp.asarray(.3 * draw.randn(5, 1, 128, 2, 128), jnp.float32)
    decay = jnp.asarray(-.1 * abs(draw.randn(1, 128, 2, 128)), jnp.float32)
    state = jnp.zeros((1, 2, 128, 128))

    def attend(q, k, v):
        out, _ = gdn2_pallas_forward_trainable(
            q, k, v, w, jax.nn.sigmoid(b), decay, 128 ** -.5, h0=state, config=KAGGLE_SMALL)
        return out

    with pltpu.force_tpu_interpret_mode():
        out = attend(q, k, v)
        grads = jax.grad(lambda *x: (attend(*x) ** 2).sum(), (0, 1, 2))(q, k, v)
    plain, _ = gdn2_chunked_wy_reference(q, k, v, decay, jax.nn.sigmoid(b), w, 128 ** -.5, 128,
                                         wy_eps=KAGGLE_SMALL.wy_eps)
    return {"out": out[0, ::16, :, ::16], "plain": bool(jnp.allclose(out, plain, atol=1e-3)),
            "gradients": [g[0, ::16, :, ::16] for g in grads]}
