#!/usr/bin/env bash
# Version:   jax and jaxlib 0.10.2, CPU.
# Behaviour: with asynchronous dispatch on (the default), the call of a jitted loop of 200 million
#            short steps returns when the loop has ended. XLA runs a program in the caller's thread
#            if its cost analysis counts few floating-point operations, and counts a loop's body
#            once, however often it runs.
# Expected:  the call returns at once, as it does for products of matrices that take as long;
#            `block_until_ready` waits.
# Seen:      of a loop's time nearly all is spent in the call; of the products' next to nothing.
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


def share_in_call(fun, small, large):
    """The part of the time to a result that passes before the call returns."""
    fun(small).block_until_ready()
    begin = time.perf_counter()
    result = fun(large)
    returned = time.perf_counter() - begin
    result.block_until_ready()
    return returned / (time.perf_counter() - begin)


@jax.jit
def steps(n):
    return jax.lax.fori_loop(0, n, lambda i, x: x * 1.0000001, 1.0)


@jax.jit
def products(n):
    x = jnp.ones((400, 400)) / 400
    return jax.lax.fori_loop(0, n, lambda i, y: y @ x, x)


loop, matrices = share_in_call(steps, 10, 200_000_000), share_in_call(products, 1, 500)
print(f"in the call: {loop:.2f} of the loop's time, {matrices:.2f} of the products'")
assert loop > 0.9
assert matrices < 0.3
PYTHON
echo "as described"
