"""matfree: traces, diagonals, log-determinants and functions of matrices by products alone."""

import jax
import jax.numpy as jnp
from matfree import decomp, funm, stochtrace


def main():
    a = jnp.sin(jnp.arange(64.0)).reshape(8, 8)
    a = a @ a.T / 8 + jnp.eye(8)
    like = jnp.ones(8)
    sampler = stochtrace.sampler_signs(like, num=20)
    trace = stochtrace.estimator_monte_carlo(stochtrace.monte_carlo_trace(), sampler=sampler)
    diagonal = stochtrace.estimator_monte_carlo(stochtrace.monte_carlo_diagonal(), sampler=sampler)
    tridiag = decomp.tridiag_sym(6)
    logdet = stochtrace.estimator_monte_carlo(
        funm.monte_carlo_funm_sym_logdet(tridiag), sampler=sampler)

    def product(v, *p):
        return a @ v

    key = jax.random.key(1)
    return {"trace": trace(product, key), "diagonal": diagonal(product, key),
            "logdet": logdet(product, key),
            "gradient": jax.grad(lambda s: trace(lambda v: s * (a @ v), key))(2.0)}
