#!/usr/bin/env bash
# Version:   jax and jaxlib 0.10.2, CPU, four host devices.
# Behaviour: a jitted `x.at[i].add(x[3:6])` of a vector that is sharded along one axis of a 2x2 mesh
#            adds to element 0 as well, which `i` does not name; so does the gradient of
#            `(x[i] * y[3:6]).sum()` in x.
# Expected:  the numbers of one device: sharding changes no result.
# Seen:      element 0 is 8 in place of 1, its gradient 12 in place of 0. Two devices cannot share
#            three updates equally; the last one has an index 0 and a number too much.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -q --disable-pip-version-check --no-compile \
  jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6 \
  ml_dtypes==0.6.0 scipy==1.17.1 opt_einsum==3.4.0
cd "$work"
unset JAX_ENABLE_X64
export JAX_PLATFORMS=cpu XLA_FLAGS=--xla_force_host_platform_device_count=4
"$work/venv/bin/python" -I - <<'PYTHON'
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))
i = np.array([1, 9, 3])
x = jnp.arange(1.0, 17.0)
rows = jnp.arange(32.0).reshape(16, 2)


def put(array):
    return jax.device_put(array, NamedSharding(mesh, PartitionSpec("y")))


added = jax.jit(lambda x: x.at[i].add(x[3:6]))
slope = jax.jit(jax.grad(lambda x, y: (x[i] * y[3:6]).sum()))
print(added(x)[:2], added(put(x))[:2])
print(slope(rows, rows)[0], slope(put(rows), put(rows))[0])
assert added(x)[0] == 1 and added(put(x))[0] == 8
assert slope(rows, rows)[0, 0] == 0 and slope(put(rows), put(rows))[0, 0] == 12
PYTHON
echo "as described"
