#!/usr/bin/env bash
# Version:   ml_dtypes 0.6.0 with numpy 2.4.6.
# Behaviour: under the rule "same_kind", NumPy lets complex64 go to bfloat16, which drops the
#            imaginary part, and does not let bfloat16 go to float16.
# Expected:  as between NumPy's own types: complex to real is no cast of the same kind, and one
#            float type to another is.
# Seen:      True for complex64 to bfloat16 (False to float32), False for bfloat16 to float16 (True
#            from float32).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -q --disable-pip-version-check --no-compile \
  ml_dtypes==0.6.0 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" -I - <<'PYTHON'
import ml_dtypes
import numpy as np

pairs = [("complex64", ml_dtypes.bfloat16), ("complex64", "float32")]
pairs += [(ml_dtypes.bfloat16, "float16"), ("float32", "float16")]
seen = [np.can_cast(source, target, "same_kind") for source, target in pairs]
print(seen)
assert seen == [True, False, False, True]
PYTHON
echo "as described"
