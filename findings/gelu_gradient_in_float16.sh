#!/usr/bin/env bash
# Version:   jax 0.10.2 (jaxlib 0.10.2, CPU).
# Behaviour: jax.nn.gelu of float16 is right for all numbers, but its gradient is NaN from 148 on,
#            and below -148: 3x² times the other factors is infinite, and the slope of tanh 0.
# Expected:  1 and 0, as with approximate=False; nothing in 148 is near float16's largest, 65504.
# Seen:      1 at 100, NaN at 148, 300 and -300; the values there are 148, 300 and -0.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -q --disable-pip-version-check --no-compile \
  jax==0.10.2 jaxlib==0.10.2
cd "$work"
"$work/venv/bin/python" -I - <<'PYTHON'
import jax
import jax.numpy as jnp
import numpy as np

x = jnp.array([100, 148, 300, -300], jnp.float16)
value = jax.nn.gelu(x)
slope = jax.vmap(jax.grad(jax.nn.gelu))(x)
exact = jax.vmap(jax.grad(lambda x: jax.nn.gelu(x, approximate=False)))(x)
print(value, slope, exact)
np.testing.assert_array_equal(value, [100, 148, 300, 0])
np.testing.assert_array_equal(exact, [1, 1, 1, 0])
np.testing.assert_array_equal(slope, [1, np.nan, np.nan, np.nan])
PYTHON
echo "as described"
