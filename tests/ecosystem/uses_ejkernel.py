"""ejKernel: kernels for TPUs: attention to pages, grouped products, a gated delta rule."""

import jax
import jax.numpy as jnp
import numpy as np
from ejkernel.kernels._pallas.tpu.gated_delta_rule import gated_delta_rule
from ejkernel.kernels._pallas.tpu.grouped_matmul import grouped_matmul
from ejkernel.kernels._pallas.tpu.page_attention import page_attention
from jax.experimental.pallas import tpu as pltpu


def main():
    draw = np.random.RandomState(0)

    def normal(*shape):
        return jnp.asarray(draw.randn(*shape), jnp.float32)

    q, pages = normal(2, 8, 128), normal(2, 2, 16, 16, 128)
    table = jnp.asarray(draw.permutation(16).reshape(2, 8), jnp.int32)
    rows, experts = normal(128, 64), normal(4, 64, 32)
    sizes = jnp.array([30, 50, 0, 48], jnp.int32)
    key, value, query = .3 * normal(3, 1, 128, 2, 64)
    beta, decay = jax.nn.sigmoid(normal(1, 128, 2)), -.1 * abs(normal(1, 128, 2))
    with pltpu.force_tpu_interpret_mode():
        paged = page_attention(q, *pages, jnp.array([40, 128], jnp.int32), table,
                               pages_per_compute_block=4)
        product = grouped_matmul(rows, experts, sizes, jnp.float32, (32, 32, 32), interpret=True)
        delta, state = gated_delta_rule(query, key, value, beta, decay)
    each = jnp.concatenate([r @ w for r, w in zip(
        jnp.split(rows, np.cumsum(sizes)[:-1]), experts, strict=True)])
    return {"paged": paged[..., ::16], "product": product[::9, ::9],
            "exact": bool(jnp.allclose(product, each, atol=1e-3)),
            "delta": delta[0, ::16, :, ::16], "state": state[0, :, ::16, ::16]}
