#!/usr/bin/env bash
# Version:   jax 0.11.2 with jax-cuda13-plugin 0.11.2, on an NVIDIA H200.
# Behaviour: the product of two bfloat16 numbers in float32, converted to float16, is NaN where one
#            factor is beyond the range of float16: LLVM multiplies in float16, since bfloat16 has
#            fewer digits. It has a wider range. Quotients and differences are alike.
# Expected:  1e30 * 1e-30 is 1, as on CPUs.
# Seen:      nan.
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

x, y = jnp.bfloat16(1e30), jnp.bfloat16(1e-30)
product = jax.jit(lambda x, y: (x.astype("float32") * y.astype("float32")).astype("float16"))
stepwise = (x.astype("float32") * y.astype("float32")).astype("float16")
print(stepwise, product(x, y))
assert abs(stepwise - 1) < 0.01
assert jnp.isnan(product(x, y))
PYTHON
echo "as described"
