#!/usr/bin/env bash
# Version:   jax 0.11.2 with jax-cuda13-plugin 0.11.2, on an NVIDIA H200.
# Behaviour: the running maximum of the absolute values of integers is the one of the values
#            themselves: the kernel loses abs in front of max, for int16, int32 and int64, also by
#            reduce_window and associative_scan. Floats are right, and so is max alone.
# Expected:  0 2 3 3, as abs by itself and then cummax give.
# Seen:      0 2 2 2.
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

x = np.array([0, 2, -3, -2], np.int32)
together = np.asarray(jax.jit(lambda x: jax.lax.cummax(jnp.abs(x)))(x))
apart = np.asarray(jax.jit(jax.lax.cummax)(jax.jit(jnp.abs)(x)))
print(together, apart)
assert apart.tolist() == [0, 2, 3, 3]
assert together.tolist() == [0, 2, 2, 2]
PYTHON
echo "as described"
