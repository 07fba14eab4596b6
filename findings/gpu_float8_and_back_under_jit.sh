#!/usr/bin/env bash
# Version:   jax 0.11.2 with jax-cuda13-plugin 0.11.2, on an NVIDIA H200.
# Behaviour: under jit a conversion to float8, float16 or bfloat16 and back is no operation: XLA
#            drops the pair (xla_allow_excess_precision is on by default; on CPUs it keeps it). So
#            simulated quantisation does nothing, and 70000 survives float16.
# Expected:  1.1 becomes 1.125 in float8_e4m3fn, 70000 infinite in float16, as without jit.
# Seen:      1.1 and 70000.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python=${GPU_PYTHON:-$work/venv/bin/python}    # one that has the packages, in place of 3 GB
if [ -z "${GPU_PYTHON:-}" ]; then
  python3.12 -m venv "$work/venv"
  "$python" -m pip install -q --disable-pip-version-check --no-compile "jax[cuda13]==0.11.2"
fi
cd "$work"
"$python" -I - <<'PYTHON'
import sys

import jax
import jax.numpy as jnp
import numpy as np

if jax.default_backend() != "gpu":
    sys.exit("not run: it needs an NVIDIA GPU (seen on an H200)")


def quantise(x, dtype):
    return x.astype(dtype).astype(jnp.float32)


for number, dtype, alone in (1.1, "float8_e4m3fn", 1.125), (7e4, "float16", np.inf):
    x = jnp.float32(number)
    stepwise, jitted = quantise(x, dtype), jax.jit(quantise, static_argnums=1)(x, dtype)
    print(dtype, stepwise, jitted)
    assert stepwise == alone and jitted == x
PYTHON
echo "as described"
