#!/usr/bin/env bash
# Version:   jax and jaxlib 0.10.2, libtpu 0.0.42.1, compiled for a TPU v5e that is not here.
# Behaviour: `lax.ragged_dot` gives 0 in rows behind the last group on CPUs. On TPUs it is one kernel
#            of libtpu, which chooses between the product and what its output held before, and visits
#            the blocks of rows that have a group. Nothing writes the other rows.
# Expected:  0 in these rows on each platform.
# Seen:      read in the kernel, not run: `arith.select %mask, %product, %loaded`, where %loaded is
#            the output's memory, and no other instruction of the program writes the result.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -q --disable-pip-version-check --no-compile \
  jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6 \
  ml_dtypes==0.6.0 scipy==1.17.1 opt_einsum==3.4.0 libtpu==0.0.42.1
cd "$work"
unset XLA_FLAGS JAX_ENABLE_X64
export JAX_PLATFORMS=cpu TPU_SKIP_MDS_QUERY=1 TPU_WORKER_HOSTNAMES=localhost
export TPU_ACCELERATOR_TYPE=v5litepod-4
"$work/venv/bin/python" -I - <<'PYTHON'
import base64
import re

import jax
import jax.numpy as jnp
from jax.experimental import topologies

rows, weights, sizes = jnp.ones((256, 64)), jnp.ones((4, 64, 128)), jnp.array([1, 1, 1, 1])
on_cpu = jax.lax.ragged_dot(rows, weights, sizes)
print("CPU:", on_cpu[:6, 0])
assert (on_cpu[4:] == 0).all()

place = jax.sharding.SingleDeviceSharding(
    topologies.get_topology_desc("v5e:2x2", "tpu").devices[0])
args = [jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place) for x in (rows, weights, sizes)]
text = jax.jit(jax.lax.ragged_dot).lower(*args).compile().as_text()
root = re.search(r"ROOT %([\w.-]+) = \S+ (\S+)\(", text)
print("TPU: the result is that of", *root.groups())
assert root[2] == "custom-call" and " fusion(" not in text
found = re.search(rf'%{re.escape(root[1])} = [^\n]*"body":"([^"]+)"', text)
kernel = base64.b64decode(found[1]).decode()
loaded, chosen, stored = re.search(
    r"(%\d+) = vector.load %arg9.*\n.*?= (arith.select %\d+, %\d+, (%\d+)).*\n"
    r".*vector.store %\d+, %arg9", kernel).groups()
print("the kernel stores", chosen, "where", loaded, "is what the output held")
assert loaded == stored and kernel.count("vector.store") == 1
PYTHON
echo "as described"
