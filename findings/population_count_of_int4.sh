#!/usr/bin/env bash
# Version:   jax and jaxlib 0.10.2, CPU.
# Behaviour: lax.population_count counts the bits of a negative int4 as if it had eight of them, and
#            the count wraps round in int4: -1 has -8 set bits, -8 has 5.
# Expected:  4 for -1 and 1 for -8, as for the uint4 with the same bits (15 and 8).
# Seen:      [-8  5] for int4 [-1, -8]; [4 1] for uint4 [15, 8].
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
from jax import lax

signed = lax.population_count(jnp.array([-1, -8], jnp.int4))
unsigned = lax.population_count(jnp.array([15, 8], jnp.uint4))
print(signed, unsigned)
assert signed.astype(int).tolist() == [-8, 5]
assert unsigned.astype(int).tolist() == [4, 1]
PYTHON
echo "as described"
