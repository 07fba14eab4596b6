#!/usr/bin/env bash
# Version:   numcodecs 0.16.6, numpy 2.4.6.
# Behaviour: BitRound, which Zarr and xarray use to keep few bits of a float, adds half a unit to
#            the bits of the whole number. Where a NaN's mantissa is all ones, this carries into the
#            exponent and the sign, and gives a zero. Such are CUDA's canonical NaN (0x7FFFFFFF)
#            and the one of bytes 0xFF in files; NumPy's (0x7FC00000) stays NaN.
# Expected:  a missing number stays missing, whatever its payload: rounding NaN gives NaN.
# Seen:      -0 and 0, for float32 and float64, for every number of bits that are kept.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -q --disable-pip-version-check --no-compile \
  numcodecs==0.16.6 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" -I -W error - <<'PYTHON'
import numpy as np
from numcodecs import BitRound

for dtype, bits in ((np.float32, 23), (np.float64, 52)):
    kind = np.dtype(f"u{dtype().itemsize}")
    ones = np.array(-1).astype(kind)
    values = np.array([ones >> kind.type(1), ones], kind).view(dtype)
    values = np.concatenate([values, dtype([np.nan, np.inf, 1.75])])
    assert np.isnan(values).tolist() == [True, True, True, False, False]
    for kept in range(2, bits):
        codec = BitRound(kept)
        found = np.asarray(codec.decode(codec.encode(values))).view(dtype)
        if kept == 8:
            print(dtype.__name__, values, "->", found)
        assert found[:2].tolist() == [0, 0] and np.signbit(found[:2]).tolist() == [True, False]
        assert np.isnan(found[2]) and found[3:].tolist() == [np.inf, 1.75]
PYTHON
echo "as described"
