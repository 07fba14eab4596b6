#!/usr/bin/env bash
# Version:   jax and jaxlib 0.10.2, CPU.
# Behaviour: atan2 of two float32 numbers below the least normal one is NaN, with and without jit;
#            so are jnp.angle and the imaginary part of jnp.log for such complex64 numbers. In
#            float64 the angle of two equal numbers there is pi / 2.
# Expected:  XLA:CPU takes subnormal operands for zero, as its other functions do: 0, the angle of
#            two zeros. Or pi / 4, as NumPy gives. Never NaN, and not pi / 2.
# Seen:      NaN for arctan2(1e-40, 1e-40), angle and log; 1.57 for arctan2(1e-310, 1e-310).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -q --disable-pip-version-check --no-compile \
  jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6 \
  ml_dtypes==0.6.0 scipy==1.17.1 opt_einsum==3.4.0
cd "$work"
unset XLA_FLAGS
export JAX_PLATFORMS=cpu JAX_ENABLE_X64=1
"$work/venv/bin/python" -I - <<'PYTHON'
import jax
import jax.numpy as jnp
import numpy as np

small = np.full(4, 1e-40, np.float32)
tiny = np.full(4, 1e-310)
both = (small + 1j * small).astype(np.complex64)
angle, wide = jnp.arctan2(small, small), jnp.arctan2(tiny, tiny)
print(angle, jax.jit(jnp.arctan2)(small, small), np.arctan2(small, small))
print(jnp.angle(both), jnp.log(both), wide, np.arctan2(tiny, tiny))
assert jnp.isnan(angle).all() and jnp.isnan(jax.jit(jnp.arctan2)(small, small)).all()
assert jnp.isnan(jnp.angle(both)).all() and jnp.isnan(jnp.log(both).imag).all()
assert np.allclose(wide, np.pi / 2)
assert np.allclose(np.arctan2(small, small), np.pi / 4)
PYTHON
echo "as described"
