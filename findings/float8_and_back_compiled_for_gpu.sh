#!/usr/bin/env bash
# Version:   jax 0.10.2 with jax-cuda13-plugin and jax-cuda13-pjrt 0.10.2; compiled for an H100, on
#            any machine. Run on an H200, jax 0.11.2 gave 1.1 for 1.1 and 70000 for 70000.
# Behaviour: a conversion to float8, float16 or bfloat16 and back is no operation in programs for
#            GPUs: XLA drops the pair (xla_allow_excess_precision is on by default). So simulated
#            quantisation does nothing under jit, and 70000 survives float16.
# Expected:  two conversions, as the same program has them on CPUs, and as they act one by one.
# Seen:      none; the program returns its argument.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -q --disable-pip-version-check --no-compile \
  jax==0.10.2 jaxlib==0.10.2
"$work/venv/bin/python" -m pip install -q --disable-pip-version-check --no-compile --no-deps \
  jax-cuda13-plugin==0.10.2 jax-cuda13-pjrt==0.10.2
cd "$work"
JAX_PLATFORMS=cpu "$work/venv/bin/python" -I - <<'PYTHON'
import jax
import jax.numpy as jnp
from jax.experimental import topologies
from jax_plugins import xla_cuda13

xla_cuda13._check_cuda_versions = lambda **_: None      # it looks for CUDA's libraries
H100 = """gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152
  shared_memory_per_core: 233472 threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: 3352320000000 l2_cache_size: 52428800 clock_rate_ghz: 1.98
  device_memory_size: 84942979072 shared_memory_per_block_optin: 232448
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
  cuda_compute_capability { major: 9 }
}
platform_name: "CUDA"
"""
gpus = topologies.get_topology_desc("", "cuda", target_config=H100, topology="1x1x1").devices
for dtype in "float8_e4m3fn", "float16", "bfloat16":
    def quantise(x):
        return x.astype(dtype).astype(jnp.float32)

    texts = []
    for device in gpus[0], jax.devices("cpu")[0]:
        where = jax.sharding.SingleDeviceSharding(device)
        x = jax.ShapeDtypeStruct((8,), jnp.float32, sharding=where)
        texts.append(jax.jit(quantise).lower(x).compile().as_text().count(" convert("))
    print(f"{dtype}: {texts[0]} conversions on the GPU, {texts[1]} on the CPU")
    assert texts == [0, 2]
PYTHON
echo "as described"
