#!/usr/bin/env bash
# Version:   optax 0.2.8 with jax and jaxlib 0.10.2, CPU.
# Behaviour: clip_by_global_norm squares gradients in their own type. The squares of 300 and 400 are
#            infinite in float16, so the norm is, and the gradient divided by it is 0.
# Expected:  [0.6, 0.8], the gradient of norm 500 scaled to norm 1: every number of it is in range.
# Seen:      [0, 0], so a step in training does nothing, and no NaN says so.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -q --disable-pip-version-check --no-compile \
  optax==0.2.8 jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6 \
  ml_dtypes==0.6.0 scipy==1.17.1 opt_einsum==3.4.0
cd "$work"
unset XLA_FLAGS JAX_ENABLE_X64
export JAX_PLATFORMS=cpu
"$work/venv/bin/python" -I - <<'PYTHON'
import jax.numpy as jnp
import numpy as np
import optax

clip = optax.clip_by_global_norm(1.0)


def clipped(dtype):
    gradient = jnp.array([300.0, 400.0], dtype)
    return np.asarray(clip.update(gradient, clip.init(gradient))[0], np.float32)


print(clipped(jnp.float16), clipped(jnp.float32), clipped(jnp.bfloat16))
np.testing.assert_allclose(clipped(jnp.float32), [0.6, 0.8], rtol=1e-6)
np.testing.assert_allclose(clipped(jnp.bfloat16), [0.6, 0.8], rtol=1e-2)
assert clipped(jnp.float16).tolist() == [0.0, 0.0]
PYTHON
echo "as described"
