"""orthax: polynomials of several families evaluated, fitted, multiplied; rules and roots."""

import jax
import jax.numpy as jnp
import orthax


def main():
    x = jnp.linspace(-1, 1, 9)
    c = jnp.array([1.0, -0.5, 0.25, 2.0])
    rule, weights = orthax.legendre.leggauss(6)
    jacobi = orthax.recurrence.Jacobi(0.5, 1.5)
    return {
        "values": orthax.legendre.legval(x, c), "plane": orthax.chebyshev.chebval2d(x, x, c[None]),
        "slopes": jax.vmap(jax.grad(orthax.chebyshev.chebval), (0, None))(x, c),
        "fit": orthax.chebyshev.chebfit(x, jnp.exp(x), 5),
        "product": orthax.hermite.hermmul(c, c), "derivative": orthax.laguerre.lagder(c),
        "integral": orthax.legendre.legint(c), "rule": rule, "weights": weights,
        "roots": jnp.sort(orthax.chebyshev.chebroots(jnp.array([0.1, -1.0, 0.2, 1.0])).real),
        "jacobi": orthax.orthval(x, c, jacobi), "norm": orthax.orthnorm(3, jacobi),
        "power": orthax.polynomial.polypow(c, 3, maxpower=3)}
