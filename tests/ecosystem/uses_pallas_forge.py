"""pallas-forge: kernels for TPUs of a matrix product, a norm with residual, gated linear units."""

import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import tpu as pltpu
from pallas_forge.kernels import fused_rmsnorm_residual, fused_swiglu, tiled_matmul
from pallas_forge.kernels.swiglu import fused_geglu


def main():
    draw = np.random.RandomState(0)
    x, w, y = [jnp.asarray(draw.randn(*shape), jnp.float32)
               for shape in ((100, 200), (200, 150), (64, 128))]
    scale, gate, up = [jnp.asarray(draw.randn(*shape), jnp.float32)
                       for shape in ((128,), (128, 256), (128, 256))]
    with pltpu.force_tpu_interpret_mode():
        product = tiled_matmul(x, w, block_m=32, block_k=64, block_n=64)
        norm = fused_rmsnorm_residual(y, y[::-1], scale)
        units = [f(y, gate, up) for f in (fused_swiglu, fused_geglu)]
    return {"product": product[::9, ::9], "exact": bool(jnp.allclose(product, x @ w, atol=1e-3)),
            "norm": [n[::9, ::9] for n in (norm if isinstance(norm, tuple) else [norm])],
            "units": [u[::9, ::9] for u in units]}
