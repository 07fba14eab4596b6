#!/usr/bin/env bash
# Version:   jax and jaxlib 0.10.2, CPU.
# Behaviour: a compiled loop that writes one element of a vector in each step takes time in
#            proportion to the square of the length in bfloat16, as if each step converted the whole
#            vector. In uint16, float16 and float32 the update is in place.
# Expected:  the time of float16, which has as many bits and no arithmetic of its own either; the
#            loop moves elements and computes nothing.
# Seen:      16,384 elements: 0.08 ms in uint16, 0.06 in float16 and float32, 223 ms in bfloat16;
#            four times as long for twice as many.
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
import time

import jax
import jax.numpy as jnp
from jax import lax


def reverse(x):
    n = x.shape[0]

    def step(i, out):
        return lax.dynamic_update_slice(out, lax.dynamic_slice(x, (i,), (1,)), (n - 1 - i,))

    return lax.fori_loop(0, n, step, jnp.zeros(n, x.dtype))


def seconds(dtype, n):
    x = jnp.ones(n, dtype)
    f = jax.jit(reverse)
    f(x).block_until_ready()
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        f(x).block_until_ready()
        best = min(best, time.process_time() - start)
    return best


narrow = {n: seconds(jnp.bfloat16, n) for n in (8192, 16384)}
half = seconds(jnp.float16, 16384)
print(narrow, half)
assert narrow[16384] > 50 * half
assert narrow[16384] > 2.5 * narrow[8192]
PYTHON
echo "as described"
