#!/usr/bin/env bash
# Version:   jax and jaxlib 0.10.2, CPU, interpret mode of Pallas.
# Behaviour: `megablox.gmm(lhs, rhs, sizes, ..., existing_out)` overwrites every row of `existing_out`
#            that belongs to a group. Its gradient with respect to `existing_out` is the cotangent
#            in these rows, too.
# Expected:  0 in rows that are overwritten, since the result does not depend on them.
# Seen:      all rows in one group: the sum of the result is 512 for `existing_out` of zeros and of
#            ones, and its gradient is 1 everywhere.
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
from jax.experimental.pallas.ops.tpu.megablox import gmm

rows, weights = jnp.ones((8, 8)), jnp.ones((1, 8, 8))
sizes = jnp.array([8], jnp.int32)


def total(existing):
    return gmm(rows, weights, sizes, jnp.float32, (8, 8, 8), None, existing, interpret=True).sum()


at_zeros, at_ones = total(jnp.zeros((8, 8))), total(jnp.ones((8, 8)))
gradient = jax.grad(total)(jnp.zeros((8, 8)))
print(at_zeros, at_ones, gradient[0])
assert at_zeros == at_ones == 512
assert (gradient == 1).all()
PYTHON
echo "as described"
