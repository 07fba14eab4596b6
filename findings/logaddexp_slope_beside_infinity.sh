#!/usr/bin/env bash
# Version:   jax 0.10.2 (jaxlib 0.10.2, CPU).
# Behaviour: logaddexp(inf, y) is inf, whatever y is. Its derivative in y is exp(y), finite and as
#            large as one likes; that of logaddexp2 is 2**y. At (-inf, -inf) both are NaN.
# Expected:  0, the weight that y has beside infinity, and the limit of logaddexp(x, y) as x grows;
#            or NaN. A descent step in y of 4.9e8, where y changes nothing, is neither.
# Seen:      .05, 148.4 and 4.85e8 for y = -3, 5 and 20; 0 for x = 100 and y = 5.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -q --disable-pip-version-check --no-compile \
  jax==0.10.2 jaxlib==0.10.2
cd "$work"
"$work/venv/bin/python" -I - <<'PYTHON'
import jax
import jax.numpy as jnp
import numpy as np

slope = jax.grad(jnp.logaddexp, argnums=1)
slope2 = jax.grad(jnp.logaddexp2, argnums=1)
infinity = np.float32(np.inf)
for y in np.float32([-3, 5, 20]):
    print(y, jnp.logaddexp(infinity, y), slope(infinity, y), slope2(infinity, y))
    np.testing.assert_allclose(slope(infinity, y), np.exp(y), rtol=1e-5)
    np.testing.assert_allclose(slope2(infinity, y), np.exp2(y), rtol=1e-5)
    np.testing.assert_allclose(jax.jit(jax.vmap(slope))(infinity[None], y[None]), np.exp(y)[None],
                               rtol=1e-5)
assert slope(np.float32(100), np.float32(5)) < 1e-30
assert np.isnan(slope(-infinity, -infinity))
PYTHON
echo "as described"
