#!/usr/bin/env bash
# Version:   jax and jaxlib 0.10.2, CPU.
# Behaviour: under jit, two multiplications by constants become one by their product, even where
#            float32 cannot hold the product: 1e20 * 1e20 is inf, and 0 * inf is nan.
# Expected:  a multiplication of 0 by finite numbers is 0, and the compiled function agrees with the
#            same lines run without jit.
# Seen:      0.0 without jit, nan with it; for 1e-30, 1e10 without and inf with it.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -q --disable-pip-version-check --no-compile \
  jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6 \
  ml_dtypes==0.6.0 scipy==1.17.1 opt_einsum==3.4.0
cd "$work"
unset XLA_FLAGS JAX_ENABLE_X64
export JAX_PLATFORMS=cpu
"$work/venv/bin/python" -I - <<'PYTHON'
import jax
import jax.numpy as jnp
import numpy as np


def scale(x):
    return x * 1e20 * 1e20


zero, small = jnp.float32(0), jnp.float32(1e-30)
print(scale(zero), jax.jit(scale)(zero), scale(small), jax.jit(scale)(small))
assert scale(zero) == 0
assert np.isnan(jax.jit(scale)(zero))
np.testing.assert_allclose(scale(small), 1e10, rtol=1e-5)
assert jax.jit(scale)(small) == np.inf
PYTHON
echo "as described"
