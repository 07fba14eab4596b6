#!/usr/bin/env bash
# Version:   jax 0.11.2 with jax-cuda13-plugin 0.11.2, on an NVIDIA H200.
# Behaviour: minus the least int16 is 32768 to what reads it in the same kernel: a comparison, a
#            quotient, a shift, a conversion to int32. int8 and int32 wrap as they should.
# Expected:  -32768, as NumPy and the same function on a CPU give, and as the kernel stores it.
# Seen:      32768 as int32, and -2 < -x is true.
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

x = np.array([-32768], np.int16)
minus, wide = jax.jit(lambda x: (-x, (-x).astype(jnp.int32)))(x)
less = jax.jit(lambda y, x: y < -x)(np.array([-2], np.int16), x)
alone = jax.jit(lambda x: (-x).astype(jnp.int32))(x)
print(minus, wide, alone, less)
assert minus[0] == -32768 and (-x).astype(np.int32)[0] == -32768
assert alone[0] == 32768 and bool(less[0])
PYTHON
echo "as described"
