#!/usr/bin/env bash
# Version:   jax and jaxlib 0.10.2, CPU.
# Behaviour: `lax.ragged_dot` multiplies each row by the matrix of its group. On CPUs and GPUs it is
#            one dense product: each row stands once for each group, as zeros where it is of another,
#            and all are added. 0 times NaN is NaN.
# Expected:  a NaN or an infinity in the matrix of a group is seen in this group's rows alone, and in
#            none if the group is empty: an expert of a mixture that no token chose.
# Seen:      one NaN in the matrix of an empty group makes a whole column of the result NaN.
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
import jax.numpy as jnp
import numpy as np
from jax import lax

rows, sizes = jnp.ones((4, 3)), jnp.array([2, 2, 0])
matrices = np.ones((3, 3, 2), np.float32)
matrices[2, 0, 1] = np.nan                              # of the empty group
out = np.asarray(lax.ragged_dot(rows, jnp.asarray(matrices), sizes))
one_by_one = np.concatenate([rows[:2] @ matrices[0], rows[2:] @ matrices[1]])
print("ragged_dot:", out.tolist())
print("group by group:", one_by_one.tolist())
assert np.isnan(out[:, 1]).all() and np.isfinite(out[:, 0]).all()
assert np.isfinite(one_by_one).all()
PYTHON
echo "as described"
