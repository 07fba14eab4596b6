#!/usr/bin/env bash
# Version:   jax and jaxlib 0.10.2, CPU (seen on an x86-64 with AVX-512, and limited to AVX2 too).
# Behaviour: the maximum of 10,000 float32 numbers, one of them NaN, is a number; the maximum of 20
#            of them around the NaN is NaN. The minimum does the same.
# Expected:  NaN in both cases, as in NumPy: whether a NaN shows must not hang on an array's length.
# Seen:      max 1.0 and min 0.0 of the long array, nan and nan of its slice.
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
import jax.numpy as jnp
import numpy as np

x = np.linspace(0, 1, 10_000).astype(np.float32)
x[5000] = np.nan
part = x[4990:5010]
print(jnp.max(x), jnp.min(x), jnp.max(part), jnp.min(part), np.max(x))
assert jnp.max(x) == 1 and jnp.min(x) == 0
assert np.isnan(jnp.max(part)) and np.isnan(jnp.min(part))
assert np.isnan(np.max(x))
PYTHON
echo "as described"
