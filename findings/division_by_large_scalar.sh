#!/usr/bin/env bash
# Version:   jax and jaxlib 0.10.2, CPU.
# Behaviour: dividing a float32 array by a large scalar gives zeros, with and without jit; dividing
#            by an array of the same numbers gives the right quotients. It looks as if the scalar is
#            replaced by its reciprocal, which is subnormal above about 8.5e37 and flushed to zero.
# Expected:  0.882 for 3e38 / 3.4e38, however the divisor is held: all the numbers are normal.
# Seen:      [0. 0.] for the scalar, [0.88235295 0.88235295] for the array.
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

x = jnp.full(2, 3e38, jnp.float32)
by_scalar = np.asarray(x / 3.4e38)
by_array = np.asarray(x / jnp.full(2, 3.4e38, jnp.float32))
print(by_scalar, by_array)
assert (by_scalar == 0).all()
np.testing.assert_allclose(by_array, 3 / 3.4, rtol=1e-6)
PYTHON
echo "as described"
