#!/usr/bin/env bash
# Version:   jax and jaxlib 0.10.2, CPU.
# Behaviour: a buffer that `buffer_callback` hands to a function as an argument says
#            `writeable=False`, and NumPy's view of it is writable all the same: an assignment in the
#            function changes the caller's immutable array.
# Expected:  numpy.asarray(buffer).flags.writeable is False, and the assignment a ValueError.
# Seen:      `x`, made by jnp.arange(4.), is [7. 7. 7. 7.] after the call.
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
import numpy as np
from jax.experimental.buffer_callback import buffer_callback


def host(ctx, out, x):
    flags.append(x.writeable)
    view = np.asarray(x)
    view[...] = 7
    np.asarray(out)[...] = 0


flags = []
x = jnp.arange(4.0)
call = buffer_callback(host, jax.ShapeDtypeStruct((4,), jnp.float32))
jax.block_until_ready(jax.jit(call)(x))
print(flags, x)
assert flags == [False]
assert x.tolist() == [7.0] * 4
PYTHON
echo "as described"
