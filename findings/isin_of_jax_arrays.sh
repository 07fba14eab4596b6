#!/usr/bin/env bash
# Version:   pandas 3.1.1, jax and jaxlib 0.10.2.
# Behaviour: `Series.isin(values)` finds a few of 1,000 values, if `values` is a JAX array.
# Expected:  all of them, as with the NumPy array or the list of the same values, or an error: a
#            Series can be made of, compared with and indexed by the same array.
# Seen:      1000 for NumPy and for the list, 1 to 3 for JAX, without a word.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -q --disable-pip-version-check --no-compile \
  jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6 \
  ml_dtypes==0.6.0 scipy==1.17.1 opt_einsum==3.4.0 pandas==3.1.1
cd "$work"
unset XLA_FLAGS JAX_ENABLE_X64
export JAX_PLATFORMS=cpu
"$work/venv/bin/python" -I - <<'PYTHON'
import jax.numpy as jnp
import numpy as np
import pandas as pd

series, values = pd.Series(range(1000)), np.arange(1000)
array = jnp.asarray(values)
numpy, listed, jax = series.isin(values), series.isin(array.tolist()), series.isin(array)
print(numpy.sum(), listed.sum(), jax.sum())
assert numpy.all() and listed.all() and (series == array).all()
assert series.iloc[array[:3]].tolist() == [0, 1, 2]
assert jax.sum() < 100
PYTHON
echo "as described"
