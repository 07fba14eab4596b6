#!/usr/bin/env bash
# Version:   jax and jaxlib 0.10.2, CPU.
# Behaviour: lax.max(lax.clamp(low, x, high), low) is below low with jit, where low is above high:
#            the maximum is dropped, as if bounds were always in order.
# Expected:  StableHLO's clamp is min(max(x, low), high) for any bounds, so here it is high, and the
#            maximum with low is low, as without jit. It is at least low in any case.
# Seen:      -8 with jit, 0 without.
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
from jax import lax


def f(low, x, high):
    return lax.max(lax.clamp(low, x, high), low)


args = jnp.int32(0), jnp.int32(5), jnp.int32(-8)
print(f(*args), jax.jit(f)(*args))
assert f(*args) == 0
assert jax.jit(f)(*args) == -8
PYTHON
echo "as described"
