#!/usr/bin/env bash
# Version:   jax and jaxlib 0.10.2, CPU.
# Behaviour: a jitted function sorts x to y, runs a `fori_loop` that exchanges its two carries, which
#            are both y at first, and adds the first result to the second one, reversed.
# Expected:  y + y[::-1], as without jit: 50 at both ends.
# Seen:      the second half is wrong (105 at the end). The loop changes nothing, so XLA takes both
#            results for y and keeps them in one memory; the sum is written over it in place, and its
#            second half reads numbers of the first.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -q --disable-pip-version-check --no-compile \
  jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6 \
  ml_dtypes==0.6.0 scipy==1.17.1 opt_einsum==3.4.0
cd "$work"
unset JAX_ENABLE_X64
export JAX_PLATFORMS=cpu
"$work/venv/bin/python" -I - <<'PYTHON'
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def f(x, n):
    y = jnp.sort(x)
    a, b = lax.fori_loop(0, n, lambda i, c: (c[1], c[0]), (y, y))
    return a + b[::-1]


x = jnp.arange(64.0) * 5 % 61 - 5
right, seen = np.asarray(f(x, 3)), np.asarray(jax.jit(f)(x, 3))
print(right[[0, -1]], seen[[0, -1]])
assert (right == np.sort(x) + np.sort(x)[::-1]).all()
assert (seen[:32] == right[:32]).all() and (seen[32:] != right[32:]).all()
PYTHON
echo "as described"
