"""quadax: adaptive quadrature, singular and over infinite intervals, cubature, derivatives."""

import jax
import jax.numpy as jnp
import quadax


def main():
    def bump(t, c):
        return t * jnp.log(c + t)

    def area(c):
        return quadax.quadgk(bump, [0.0, 1.0], args=(c,), epsabs=1e-5, epsrel=1e-5)[0]

    tail, info = quadax.quadgk(lambda t: jnp.exp(-t * t), [-jnp.inf, jnp.inf], epsrel=1e-5)
    x = jnp.linspace(0, 2, 41)
    return {
        "area": jax.vmap(area)(jnp.array([1.0, 2.0, 3.0])), "gradient": jax.grad(area)(1.5),
        "forward": jax.jacfwd(area)(1.5), "tail": tail, "status": int(info.status),
        "chebyshev": quadax.quadcc(jnp.sin, [0.0, 3.0], epsrel=1e-5)[0],
        "singular": quadax.quadts(lambda t: 1 / jnp.sqrt(t), [0.0, 1.0], epsrel=1e-3)[0],
        "romberg": quadax.romberg(jnp.cos, [0.0, 1.0], epsrel=1e-5)[0],
        "simpson": quadax.simpson(jnp.sin(x), x=x),
        "running": quadax.cumulative_trapezoid(jnp.sin(x), x=x, initial=0)[::10]}
