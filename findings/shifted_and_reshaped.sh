#!/usr/bin/env bash
# Version:   jax and jaxlib 0.10.2, CPU.
# Behaviour: a compiled function that shifts the elements of a computed array by `at[1:].set`, and
#            adds an axis to the result, repeats the first element in all places.
# Expected:  the reshape changes no number; without it, and eagerly, the elements are shifted.
# Seen:      [1, 1, 1, 1, 1, 1, 1, 1] in place of [1, 1, 2, 3, 4, 5, 6, 7], and a running sum in
#            place of sums of neighbours for `at[1:].add` (openxla/xla#49176).
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
import jax
import jax.numpy as jnp


def shifted(x):
    y = x + 1
    return y.at[1:].set(y[:-1])


def added(x):
    y = x + 1
    return y.at[1:].add(y[:-1])


x = jnp.arange(8)
for f in (shifted, added):
    plain, reshaped = jax.jit(f)(x), jax.jit(lambda x: f(x)[None])(x)[0]
    print(f.__name__, plain, reshaped)
    assert (plain == f(x)).all()
    assert (reshaped != f(x)).any()
PYTHON
echo "as described"
