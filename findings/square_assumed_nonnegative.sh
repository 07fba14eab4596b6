#!/usr/bin/env bash
# Version:   jax and jaxlib 0.10.2, CPU.
# Behaviour: one jitted function returns x * x and x * x < 0 for an int32, and the two contradict
#            each other once the square wraps round: the comparison is taken for False beforehand.
# Expected:  integer arithmetic wraps, so a test of a wrapped result tells what the result is; this
#            is how a program would look for an overflow.
# Seen:      -1794967296 and False; without jit the comparison is True.
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
import numpy as np


def square(x):
    return x * x, x * x < 0


x = jax.numpy.int32(50000)
print(square(x), jax.jit(square)(x))
value, negative = jax.jit(square)(x)
assert value == np.int32(50000 * 50000 - 2**32)
assert value < 0 and not negative
assert square(x)[1]
PYTHON
echo "as described"
