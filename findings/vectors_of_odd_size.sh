#!/usr/bin/env bash
# Version:   jax 0.10.2 (jaxlib 0.10.2, CPU), x86 with AVX2 or AVX-512.
# Behaviour: arcsinh, sinh, erf_inv and lgamma of a vector of 1,000,001 floats take 6 to 12 times as
#            long as of 1,000,000: XLA compiles the loop without vector instructions where the size
#            is odd. Sizes of twice an odd number are as fast as multiples of 8.
# Expected:  the same time and one millionth: the last elements by themselves, as compilers do.
# Seen:      arcsinh 1.6 and 15.7 ms of CPU time, sinh 1.3 and 10.6, lgamma 4.6 and 28.9.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -q --disable-pip-version-check --no-compile \
  jax==0.10.2 jaxlib==0.10.2
cd "$work"
"$work/venv/bin/python" -I - <<'PYTHON'
import time

import jax
import jax.numpy as jnp


def milliseconds(fun, n):
    x = jnp.linspace(-0.9, 0.9, n, dtype=jnp.float32)
    run = jax.jit(fun)
    run(x).block_until_ready()
    times = []
    for _ in range(9):
        begin = time.process_time()
        run(x).block_until_ready()
        times.append(1e3 * (time.process_time() - begin))
    return min(times)


for fun in jnp.arcsinh, jnp.sinh, jax.lax.erf_inv, jax.lax.lgamma:
    even, odd, twice_odd = (milliseconds(fun, n) for n in (1_000_000, 1_000_001, 1_000_002))
    print(f"{fun.__name__}: {even:.2f}, {odd:.2f} and {twice_odd:.2f} ms")
    assert odd > 3 * even and odd > 3 * twice_odd
PYTHON
echo "as described"
