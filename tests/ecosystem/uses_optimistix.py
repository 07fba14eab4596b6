"""Optimistix: roots, fixed points, least squares and minima, and a gradient through a root."""

import jax
import jax.numpy as jnp
import optimistix as optx

TOLERANCES = {"simplex": 1e-3}     # it ends where the values are near, not the points


def main():
    def residuals(params, data):
        x, y = data
        return y - params["a"] * jnp.exp(-params["b"] * x)

    x = jnp.linspace(0., 2., 12)
    data = (x, 2.5 * jnp.exp(-1.3 * x) + 0.01 * jnp.sin(40 * x))
    start = {"a": jnp.array(1.), "b": jnp.array(1.)}
    fitted = optx.least_squares(residuals, optx.LevenbergMarquardt(1e-5, 1e-5), start, data)
    dogleg = optx.least_squares(residuals, optx.Dogleg(1e-5, 1e-5), start, data)

    def rosenbrock(y, args):
        return jnp.sum(100 * (y[1:] - y[:-1] ** 2) ** 2 + (1 - y[:-1]) ** 2)

    minimum = optx.minimise(rosenbrock, optx.BFGS(1e-5, 1e-5), jnp.zeros(2), max_steps=200)
    simplex = optx.minimise(rosenbrock, optx.NelderMead(1e-4, 1e-4), jnp.zeros(2), max_steps=500,
                            throw=False)

    def root(c):
        return optx.root_find(lambda y, c: jnp.tanh(y) + y - c, optx.Newton(1e-5, 1e-5),
                              jnp.zeros(()), c).value

    fixed = optx.fixed_point(lambda y, args: jnp.cos(y), optx.FixedPointIteration(1e-5, 1e-5),
                             jnp.array(1.))
    bisected = optx.root_find(lambda y, args: y**3 - 2, optx.Bisection(1e-5, 1e-5), jnp.array(1.),
                              options={"lower": 0., "upper": 2.})
    return {"fitted": fitted.value, "dogleg": dogleg.value, "minimum": minimum.value,
            "simplex": simplex.value, "fixed point": fixed.value, "bisected": bisected.value,
            "root": root(1.5), "its gradient": jax.grad(root)(1.5),
            "gradients": jax.jit(jax.vmap(jax.grad(root)))(jnp.arange(3.))}
