#!/usr/bin/env bash
# Version:   jax 0.10.2.
# Behaviour: a custom_vjp function whose value does not depend on its argument, as a term that only
#            adds a gradient: mapped over three elements and then differentiated, each element gets
#            the cotangents of all three, added up.
# Expected:  the gradient of a sum over vmap(f) is vmap of the gradient of f, as the rule is written
#            for one element: 1 for each.
# Seen:      [3. 3. 3.] for grad of vmap, [1. 1. 1.] for vmap of grad.
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


@jax.custom_vjp
def push(x):
    return 0.0


push.defvjp(lambda x: (0.0, None), lambda _, cotangent: (cotangent,))

x = jnp.arange(3.0)
together = jax.grad(lambda v: jax.vmap(push)(v).sum())(x)
apart = jax.vmap(jax.grad(push))(x)
print(together, apart)
assert together.tolist() == [3, 3, 3]
assert apart.tolist() == [1, 1, 1]
PYTHON
echo "as described"
