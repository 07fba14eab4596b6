"""jaxopt: minimisers with and without constraints, and gradients through their solutions."""

import jax
import jax.numpy as jnp
import jaxopt


def ridge(w, strength, data):
    x, y = data
    return jnp.mean((x @ w - y) ** 2) + strength * jnp.sum(w**2)


def main():
    keys = jax.random.split(jax.random.PRNGKey(0), 2)
    x = jax.random.normal(keys[0], (20, 4))
    y = x @ jnp.array([1., -2., 0., 3.]) + 0.1 * jax.random.normal(keys[1], (20,))
    data, start = (x, y), jnp.zeros(4)
    lbfgs = jaxopt.LBFGS(ridge, maxiter=50, tol=1e-5)
    descent = jaxopt.GradientDescent(ridge, maxiter=200, tol=1e-5)

    def validation(strength):
        return jnp.mean((x @ descent.run(start, strength, data).params - y) ** 2)

    projected = jaxopt.ProjectedGradient(lambda w, data: ridge(w, 0., data),
                                         jaxopt.projection.projection_simplex, maxiter=100)
    newton = jaxopt.LevenbergMarquardt(lambda w: x @ w - y, maxiter=20)
    quadratic = jaxopt.OSQP(tol=1e-4)
    program = quadratic.run(params_obj=(jnp.eye(2), jnp.array([-1., -2.])),
                            params_eq=(jnp.ones((1, 2)), jnp.ones(1))).params.primal
    root = jaxopt.Bisection(lambda z, a: z**3 - a, 0., 3., maxiter=40)
    return {"lbfgs": lbfgs.run(start, 0.1, data).params,
            "hypergradient": jax.grad(validation)(0.1),
            "simplex": projected.run(jnp.full(4, .25), 1., data).params,
            "least squares": newton.run(start).params, "quadratic program": program,
            "root": root.run(None, 2.).params,
            "its gradient": jax.grad(lambda a: root.run(None, a).params)(2.)}
