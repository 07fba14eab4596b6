#!/usr/bin/env bash
# Version:   jax and jaxlib 0.10.2, CPU.
# Behaviour: under jit the logarithm of a float power is y * log(|x|) or the like, whatever the
#            power's sign: log((-2) ** 3), the logarithm of -8, comes out as the logarithm of 8.
# Expected:  nan, as without jit and as in NumPy.
# Seen:      2.0794415 with jit, nan without.
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


def log_power(x, y):
    return jnp.log(x**y)


x, y = jnp.float32(-2), jnp.float32(3)
print(x**y, log_power(x, y), jax.jit(log_power)(x, y))
assert x**y == -8
assert np.isnan(log_power(x, y))
np.testing.assert_allclose(jax.jit(log_power)(x, y), np.log(8), rtol=1e-6)
PYTHON
echo "as described"
