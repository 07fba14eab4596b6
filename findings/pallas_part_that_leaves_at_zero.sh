#!/usr/bin/env bash
# Version:   jax and jaxlib 0.10.2, CPU, interpret mode of Pallas.
# Behaviour: `ref.at[pl.ds(start, size)]` of a part that leaves its array is refused where `start` is
#            1 or more, and made where `start` is 0: the check is skipped for a start that is falsy.
# Expected:  one answer for both: both parts leave the array.
# Seen:      8 elements of an array of 5 from place 0: a part of shape (8,); from place 1:
#            ValueError "Out of bound slice".
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
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def size_of_part(start):
    def kernel(x, out):
        out[...] = jnp.full((), x.at[pl.ds(start, 8)].shape[0])

    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((), jnp.int32),
                          interpret=True)(jnp.arange(5.0))


print(size_of_part(0))
assert size_of_part(0) == 8
for start in (1, 3):
    try:
        size_of_part(start)
    except ValueError as error:
        print(error)
        assert "Out of bound slice" in str(error)
    else:
        raise AssertionError(start)
PYTHON
echo "as described"
