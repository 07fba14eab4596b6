#!/usr/bin/env bash
# Version:   jax and jaxlib 0.10.2, CPU.
# Behaviour: the gradient of a bfloat16 bias added to a (32, 32, 8) array is a sum of 1024 ones that
#            is accumulated in bfloat16: it stops at 256, where adding one no longer changes it.
#            The forward sum of the same ones, by jnp.sum, is right.
# Expected:  1024, which bfloat16 holds exactly; jnp.sum accumulates in float32 for this reason, and
#            the transpose of a broadcast is the same sum.
# Seen:      256 in each of the 8 places, with and without jit; jnp.sum gives 1024.
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


def loss(bias):
    layer = jnp.ones((32, 32, 8), jnp.bfloat16) + bias
    return layer.astype(jnp.float32).sum()


bias = jnp.zeros(8, jnp.bfloat16)
gradient = jax.grad(loss)(bias)
total = jnp.ones((32, 32), jnp.bfloat16).sum()
print(gradient, jax.jit(jax.grad(loss))(bias), total)
assert (gradient == 256).all()
assert (jax.jit(jax.grad(loss))(bias) == 256).all()
assert total == 1024
PYTHON
echo "as described"
