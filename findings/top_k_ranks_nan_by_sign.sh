#!/usr/bin/env bash
# Version:   jax and jaxlib 0.10.2, CPU (x86-64, where 0 / 0 gives a NaN whose sign bit is set).
# Behaviour: lax.top_k puts a NaN written as jnp.nan above all numbers and one computed as 0 / 0
#            below them, though both print as nan. jnp.sort puts the two in the same place.
# Expected:  one rank for every NaN, as in jnp.sort and jnp.argmax.
# Seen:      top 2 of [1, nan, 2]: [nan, 2] for the written NaN, [2, 1] for the computed one.
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
from jax import lax

written = jnp.array([1.0, jnp.nan, 2.0])
computed = jnp.array([1.0, 0.0, 2.0]) / jnp.array([1.0, 0.0, 1.0])
np.testing.assert_array_equal(written, computed)
print(lax.top_k(written, 2)[0], lax.top_k(computed, 2)[0])
np.testing.assert_array_equal(lax.top_k(written, 2)[0], [np.nan, 2])
np.testing.assert_array_equal(lax.top_k(computed, 2)[0], [2, 1])
np.testing.assert_array_equal(jnp.sort(written), [1, 2, np.nan])
np.testing.assert_array_equal(jnp.sort(computed), [1, 2, np.nan])
PYTHON
echo "as described"
