#!/usr/bin/env bash
# Version:   jax and jaxlib 0.10.2, CPU.
# Behaviour: x + 0.0, which turns -0 into 0 (as programs do on purpose before they divide by x, or
#            print it), is dropped by jit, so that 1 / (x + 0.0) is -inf.
# Expected:  IEEE 754: -0 + 0 is 0, as without jit and in NumPy; the quotient is inf.
# Seen:      [-0. 0.] and [-inf inf] with jit, [0. 0.] and [inf inf] without.
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


def f(x):
    return x + 0.0, 1 / (x + 0.0)


x = jnp.array([-0.0, 0.0])
print(f(x), jax.jit(f)(x))
total, quotient = map(np.asarray, f(x))
assert not np.signbit(total).any() and np.isposinf(quotient).all()
total, quotient = map(np.asarray, jax.jit(f)(x))
assert np.signbit(total).tolist() == [True, False]
assert quotient.tolist() == [-np.inf, np.inf]
PYTHON
echo "as described"
