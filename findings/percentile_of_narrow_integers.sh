#!/usr/bin/env bash
# Version:   numpy 2.4.6.
# Behaviour: np.percentile and np.quantile subtract neighbours in the array's integer type, where
#            the difference wraps, and interpolate by that (with a warning of overflow where one
#            quantile is asked for, with none where several are).
# Expected:  the median of -128 and 127 is -0.5, as np.median has it; a quantile lies between the
#            least and the greatest element.
# Seen:      127.5 for the median; -26384 for a quartile of the int16 -20000 and 20000, below both.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -q --disable-pip-version-check --no-compile numpy==2.4.6
cd "$work"
"$work/venv/bin/python" -I - <<'PYTHON'
import numpy as np

x = np.array([-128, 127], np.int8)
print(np.percentile(x, 50), np.median(x))
assert np.median(x) == -0.5
assert np.percentile(x, 50) == 127.5
y = np.array([-20_000, 20_000], np.int16)
print(np.quantile(y, [0.25, 0.75]), np.quantile(y.astype(float), [0.25, 0.75]))
assert np.quantile(y, 0.25) < y.min()
assert np.quantile(y.astype(float), [0.25, 0.75]).tolist() == [-10_000, 10_000]
PYTHON
echo "as described"
