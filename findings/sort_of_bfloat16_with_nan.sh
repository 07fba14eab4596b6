#!/usr/bin/env bash
# Version:   ml_dtypes 0.6.0 with numpy 2.4.6.
# Behaviour: np.sort compares bfloat16 by <, which is false beside a NaN, so one NaN leaves other
#            numbers out of order, and np.median takes a number for the NaN that it looks for last.
# Expected:  NaN last and the others in order, as for float16; a median of NaN.
# Seen:      [3 nan 1] unsorted and a median of 1 for bfloat16; [1 3 nan] and NaN for float16.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -q --disable-pip-version-check --no-compile \
  ml_dtypes==0.6.0 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" -I - <<'PYTHON'
import warnings

import ml_dtypes
import numpy as np

warnings.simplefilter("ignore")      # NumPy's about invalid values
seen = {}
for dtype in (np.float16, ml_dtypes.bfloat16):
    ordered = np.sort(np.array([3, np.nan, 1], dtype)).astype(float)
    middle = float(np.median(np.array([np.nan, 1, 2], dtype)))
    print(np.dtype(dtype), ordered, middle)
    seen[np.dtype(dtype).name] = ordered, middle
np.testing.assert_array_equal(seen["float16"][0], [1, 3, np.nan])
assert np.isnan(seen["float16"][1])
np.testing.assert_array_equal(seen["bfloat16"][0], [3, np.nan, 1])
assert seen["bfloat16"][1] == 1
PYTHON
echo "as described"
