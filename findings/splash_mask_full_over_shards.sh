#!/usr/bin/env bash
# Version:   jax and jaxlib 0.10.2, CPU; jax.experimental.pallas.ops.tpu.splash_attention.
# Behaviour: process_mask of a mask that excludes nothing raises where the queries are split over
#            two shards: "need at least one array to concatenate". A causal mask passes, and so does
#            the full one in one shard.
# Expected:  full blocks throughout, as in one shard: attention without a mask is the simplest case,
#            and the number of shards is about placement.
# Seen:      ValueError from the concatenation of tables of partial blocks, of which a full mask has
#            none.
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
import numpy as np
from jax.experimental.pallas.ops.tpu.splash_attention import (
    splash_attention_mask as masks,
    splash_attention_mask_info as info,
)


def blocks(mask, shards):
    found, _ = info.process_mask(masks.MultiHeadMask([mask]), (4, 4), q_seq_shards=shards)
    return np.asarray(found.block_mask)


full, causal = masks.FullMask((16, 16)), masks.CausalMask((16, 16))
whole = blocks(full, 1)
print(None if whole is None else whole.tolist())
print(blocks(causal, 2).shape)
try:
    blocks(full, 2)
except ValueError as error:
    print(error)
    assert "need at least one array to concatenate" in str(error)
else:
    raise AssertionError("process_mask accepts a full mask over two shards")
PYTHON
echo "as described"
