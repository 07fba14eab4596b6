#!/usr/bin/env bash
# Version:   scipy 1.17.1.
# Behaviour: scipy.ndimage.gaussian_laplace takes one boundary mode for each axis, but computes the
#            first term with the first mode along both axes, and the second term with the second.
# Expected:  every term smooths and differentiates along an axis with that axis's mode, as
#            gaussian_filter does with the same pair of modes.
# Seen:      equal to the mixed terms; 7.28 at most from the sum with one mode an axis.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -q --disable-pip-version-check --no-compile \
  scipy==1.17.1 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" -I - <<'PYTHON'
import numpy as np
from scipy import ndimage

x = np.arange(20.0).reshape(4, 5) ** 2
modes = ("nearest", "wrap")


def second(axis, mode):
    return ndimage.gaussian_filter(x, 1.0, [2 * (axis == 0), 2 * (axis == 1)], mode=mode)


got = ndimage.gaussian_laplace(x, 1.0, mode=modes)
by_axis = second(0, modes) + second(1, modes)
by_term = second(0, modes[0]) + second(1, modes[1])
print(abs(got - by_axis).max(), abs(got - by_term).max())
assert abs(got - by_axis).max() > 1
np.testing.assert_allclose(got, by_term)
PYTHON
echo "as described"
