#!/usr/bin/env bash
# Version:   jax and jaxlib 0.10.2, CPU (seen on an x86-64 with AVX-512, and limited to AVX2 too).
# Behaviour: exp of a large number returned by itself is inf, but inside a larger jitted expression
#            it is a number close to the greatest float32: the overflow is not seen further on.
# Expected:  exp(100) overflows float32, so exp(100) - 3e38 is inf, as without jit.
# Seen:      6.7579245e+37 with jit in each of 8 places, inf without; the same at 1e6.
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


def shifted(x):
    return jnp.exp(x) - 3e38


for value in (100.0, 1e6):
    x = jnp.full(8, value, jnp.float32)
    print(value, jax.jit(shifted)(x), shifted(x), jax.jit(jnp.exp)(x))
    assert np.isfinite(jax.jit(shifted)(x)).all()
    assert np.isposinf(shifted(x)).all()
    assert np.isposinf(jax.jit(jnp.exp)(x)).all()
PYTHON
echo "as described"
