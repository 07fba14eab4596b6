#!/usr/bin/env bash
# Version:   jax and jaxlib 0.10.2, libtpu 0.0.42.1, compiled for a TPU v5e that is not here.
# Behaviour: `lax.ragged_dot` has a rule for vmap, and the mapped function runs on CPUs. For a TPU it
#            becomes a ragged product with a batch axis, for which libtpu has no kernel. One of shared
#            matrices by `ragged_dot_general` runs on CPUs, too; for a TPU the conversion from CHLO
#            infers a shape with an axis of groups.
# Expected:  a program that runs on CPUs compiles for TPUs, if slower than the kernel.
# Seen:      vmap(ragged_dot): "Failed to create RaggedConvSpec"; shared matrices: "inferred shape … is
#            incompatible with return type".
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
export TPU_ACCELERATOR_TYPE=v5litepod-4 ALLOW_MULTIPLE_LIBTPU_LOAD=1
"$work/venv/bin/python" -I - <<'PYTHON'
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import topologies

place = jax.sharding.SingleDeviceSharding(
    topologies.get_topology_desc("v5e:2x2", "tpu").devices[0])


def compiled(fun, *shapes):
    args = [jax.ShapeDtypeStruct(s, "int32" if s[-1] == 4 else "float32", sharding=place)
            for s in shapes]
    try:
        jax.jit(fun).lower(*args).compile()
    except Exception as error:
        return str(error)
    return "compiles"


def on_cpu(fun, *shapes):
    args = [jnp.ones(s, "int32" if s[-1] == 4 else "float32") for s in shapes]
    return jax.jit(fun)(*args).shape


one = (256, 128), (4, 128, 128), (4,)
each = (3, 256, 128), (3, 4, 128, 128), (3, 4)
shared = (3, 256, 128), (4, 128, 128), (3, 4)
numbers = lax.RaggedDotDimensionNumbers((((2,), (1,)), ((), ())), (1,), (0,))


def of_shared(rows, matrices, sizes):
    return lax.ragged_dot_general(rows, matrices, sizes, numbers)


print("CPU:", on_cpu(jax.vmap(lax.ragged_dot), *each), on_cpu(of_shared, *shared))
assert compiled(lax.ragged_dot, *one) == "compiles"
for fun, shapes, message in ((jax.vmap(lax.ragged_dot), each, "Failed to create RaggedConvSpec"),
                             (of_shared, shared, "is incompatible with return type")):
    said = compiled(fun, *shapes)
    print("TPU:", " ".join(said.split())[:160])
    assert message in said
PYTHON
echo "as described"
