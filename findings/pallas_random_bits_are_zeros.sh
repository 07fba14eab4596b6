#!/usr/bin/env bash
# Version:   jax and jaxlib 0.10.2, CPU.
# Behaviour: a Pallas TPU kernel that seeds its generator and draws bits (`pltpu.prng_seed`,
#            `pltpu.prng_random_bits`) runs with `interpret=pltpu.InterpretParams()`, the mode that
#            simulates a TPU, and every bit it draws is 0, for each seed. A dropout mask that is
#            tested in this mode keeps all elements or none. With `interpret=True` the same kernel is
#            refused.
# Expected:  random bits that depend on the seed, or the refusal in both modes.
# Seen:      1024 zeros for the seeds 3 and 4; NotImplementedError with `interpret=True`.
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
from jax.experimental.pallas import tpu as pltpu


def bits(seed, interpret):
    def kernel(out):
        pltpu.prng_seed(seed)
        out[...] = pltpu.prng_random_bits((8, 128))
    shape = jax.ShapeDtypeStruct((8, 128), jnp.int32)
    return pl.pallas_call(kernel, shape, interpret=interpret)()


for seed in (3, 4):
    drawn = bits(seed, pltpu.InterpretParams())
    print(seed, drawn[0, :4], jnp.count_nonzero(drawn))
    assert not drawn.any()
try:
    bits(3, True)
except NotImplementedError as error:
    print(type(error).__name__, str(error)[:60])
else:
    raise AssertionError("interpret=True drew bits")
PYTHON
echo "as described"
