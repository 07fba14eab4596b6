"""asdex: sparsity of Jacobians and Hessians found in programs, and their coloured derivatives."""

import asdex
import jax
import jax.numpy as jnp


def brusselator(state):
    """The rates of two species that react and diffuse along a rod."""
    u, v = state
    u, v = jnp.pad(u, 1, constant_values=1.0), jnp.pad(v, 1, constant_values=3.0)
    diffused = [0.02 * (w[2:] - 2 * w[1:-1] + w[:-2]) * 121 for w in (u, v)]
    u, v = u[1:-1], v[1:-1]
    return jnp.stack([1 + u**2 * v - 4 * u + diffused[0], 3 * u - u**2 * v + diffused[1]])


def energy(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def main():
    state = jax.random.uniform(jax.random.key(0), (2, 10))
    x = jnp.linspace(-1, 1, 12)
    flat = lambda s: brusselator(s.reshape(2, 10)).reshape(-1)
    rates = jax.jit(asdex.jacobian(flat, jnp.zeros(20)))(state.reshape(-1))
    curvature = jax.jit(asdex.hessian(energy, jnp.zeros(12)))(x)
    step = jnp.linalg.solve(curvature.todense(), -jax.grad(energy)(x))
    pattern = asdex.jacobian_sparsity(flat, jnp.zeros(20))
    return {"rates": rates.todense(), "curvature": curvature.todense(), "step": step,
            "product": rates @ jnp.ones(20), "stored": [int(rates.nse), int(curvature.nse)],
            "pattern": pattern.todense().tolist()}


TOLERANCES = {"step": 1e-3}
