#!/usr/bin/env bash
# Version:   jax 0.10.2, CPU.
# Behaviour: polygamma, and so the gradient of digamma and the second derivative of gammaln, are
#            another function from -8 downwards, while digamma itself is right there. Nothing is
#            NaN and nothing warns: the series is one for positive arguments, and starts nine terms
#            above x.
# Expected:  The trigamma function is a sum of squares: between poles it is at least about 9.7 below
#            -7, and the slope of digamma.
# Seen:      6.79 at -8.5, 2.9e12 at -10.5, and less than 0 at -20.5.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -q --disable-pip-version-check --no-compile \
  jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6 \
  ml_dtypes==0.6.0 scipy==1.17.1 opt_einsum==3.4.0
cd "$work"
export JAX_PLATFORMS=cpu
"$work/venv/bin/python" -I - <<'PYTHON'
import jax
from jax.scipy import special
from scipy.special import polygamma

for x in (-7.5, -8.5, -10.5, -20.5):
    slope, second = float(jax.grad(special.digamma)(x)), float(special.polygamma(1, x))
    step = float(special.digamma(x + 0.01) - special.digamma(x - 0.01)) / 0.02
    right = float(polygamma(1, x))
    print(x, "jax", slope, second, "difference of digamma", step, "scipy", right)
    assert abs(step - right) < 0.02 and slope == second
    assert (abs(slope - right) < 1e-4) == (x == -7.5)
    assert (slope > 1e12) == (x == -10.5) and (slope < 0) == (x == -20.5)
PYTHON
echo "as described"
