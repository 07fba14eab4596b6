#!/usr/bin/env bash
# Version:   jax and jaxlib 0.10.2, CPU.
# Behaviour: jit of prod(x * c) over eight float32 elements is NaN where every factor is 1: the
#            compiler multiplies the elements apart from the powers of the constant, 0 times
#            infinity. The sum of the same elements is right.
# Expected:  1, as NumPy has it, or jnp.prod(x * c) evaluated an operation at a time: no order of
#            the rounded factors leaves the range of the format.
# Seen:      nan under jit for x = 1e-20 and c = 1e20; 1 without jit; 8 for the sum under jit.
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

x, c = jnp.full(8, 1e-20, jnp.float32), np.float32(1e20)
compiled = jax.jit(lambda x: jnp.prod(x * c))(x)
eager = jnp.prod(x * c)
total = jax.jit(lambda x: jnp.sum(x * c))(x)
print(compiled, eager, total, np.prod(np.asarray(x) * c))
assert np.isnan(compiled)
np.testing.assert_allclose(eager, 1, rtol=1e-5)
np.testing.assert_allclose(total, 8, rtol=1e-5)
PYTHON
echo "as described"
