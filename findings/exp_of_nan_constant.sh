#!/usr/bin/env bash
# Version:   jax and jaxlib 0.10.2, CPU.
# Behaviour: a jitted function that multiplies its argument by a closed-over array of NaN and takes
#            the exponential returns numbers, other ones in each process: what was in memory. LLVM's
#            code for the kernel stores a poison value.
# Expected:  NaN in each element, as without jit, and as the product alone has it with jit.
# Seen:      [2.8e-45 0 -4.4e-16 3.1e-41 0 0 1.1e-43 0] in one process, zeros in another.
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

missing = np.full(8, np.nan, np.float32)


def f(x):
    return jnp.exp(x * missing)


x = jnp.ones(8)
print(f(x), jax.jit(f)(x))
assert np.isnan(f(x)).all()
assert np.isnan(jax.jit(lambda x: x * missing)(x)).all()
assert not np.isnan(jax.jit(f)(x)).all()
PYTHON
echo "as described"
