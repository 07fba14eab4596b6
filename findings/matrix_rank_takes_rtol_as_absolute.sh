#!/usr/bin/env bash
# Version:   jax 0.10.2, CPU.
# Behaviour: jnp.linalg.matrix_rank compares the singular values with rtol itself. Its docstring,
#            NumPy's and the array API standard's say: with rtol times the largest singular value.
#            So the rank of a matrix changes with its unit.
# Expected:  diag(4, 1), scaled or not, has rank 1 at rtol=0.5, as in NumPy.
# Seen:      2; and 0 once the matrix is divided by 16.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -q --disable-pip-version-check --no-compile \
  jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6 \
  ml_dtypes==0.6.0 scipy==1.17.1 opt_einsum==3.4.0
cd "$work"
export JAX_PLATFORMS=cpu
"$work/venv/bin/python" -I - <<'PYTHON'
import jax.numpy as jnp
import numpy as np

x = np.diag(np.array([4, 1], np.float32))
ranks = [int(jnp.linalg.matrix_rank(scale * x, rtol=0.5)) for scale in (1, 1 / 16)]
theirs = [int(np.linalg.matrix_rank(scale * x, rtol=0.5)) for scale in (1, 1 / 16)]
print("jax", ranks, "numpy", theirs)
assert ranks == [2, 0] and theirs == [1, 1]
PYTHON
echo "as described"
