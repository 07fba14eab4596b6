#!/usr/bin/env bash
# Version:   scipy 1.17.1 with SCIPY_ARRAY_API=1, jax and jaxlib 0.10.2.
# Behaviour: `scipy.stats.iqr(x)` of a two-dimensional JAX array takes the range of each row; of the
#            NumPy array with the same values it is one number, as documented for `axis=None`.
# Expected:  one number for both: the default of `axis` is None, all elements.
# Seen:      1.5 for NumPy, four times 0.27 for JAX; with `axis=None` written down no difference
#            is made either.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -q --disable-pip-version-check --no-compile \
  jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6 \
  ml_dtypes==0.6.0 scipy==1.17.1 opt_einsum==3.4.0
cd "$work"
unset XLA_FLAGS JAX_ENABLE_X64
export JAX_PLATFORMS=cpu SCIPY_ARRAY_API=1
"$work/venv/bin/python" -I - <<'PYTHON'
import jax.numpy as jnp
import numpy as np
from scipy import stats

rows = np.linspace(-1, 2, 12, dtype="float32").reshape(4, 3)
numpy, jax, written = stats.iqr(rows), stats.iqr(jnp.asarray(rows)), stats.iqr(
    jnp.asarray(rows), axis=None)
print(numpy, jax, written)
assert np.shape(numpy) == () and np.isclose(numpy, 1.5)
assert jax.shape == (4,) and written.shape == (4,)
PYTHON
echo "as described"
