"""finitediffx: differences of arrays and of functions, of several orders and accuracies."""

import finitediffx as fdx
import jax
import jax.numpy as jnp

TOLERANCES = {"curl": 1e-3}     # differences of differences that nearly cancel


def main():
    x = jnp.linspace(0.0, 2.0, 24)
    grid = jnp.sin(x[:, None]) * jnp.cos(x[None, :])
    step = float(x[1] - x[0])
    return {"slopes": fdx.difference(jnp.sin(x), axis=0, step_size=step, accuracy=4),
            "second": fdx.difference(grid, axis=1, step_size=step, derivative=2),
            "gradient": fdx.gradient(grid, step_size=(step, step), accuracy=2),
            "laplacian": fdx.laplacian(grid, step_size=(step, step), accuracy=2),
            "curl": fdx.curl(jnp.stack([grid, grid.T]), step_size=(step, step), accuracy=2),
            "hessian": fdx.hessian(grid, step_size=(step, step), accuracy=2),
            "of a function": fdx.fgrad(lambda x: jnp.sum(x**3), step_size=1e-2)(x[:5]),
            "jitted": jax.jit(lambda v: fdx.difference(v, axis=0, step_size=step))(grid)}
