"""lyapax: Lyapunov exponents by tangent vectors and QR decompositions along a trajectory."""

import jax.numpy as jnp
import lyapax

TOLERANCES = {"lorenz": 0.02, "dimension": 0.02}    # a chaotic trajectory amplifies a last bit


def main():
    def spiral(state):
        x, y = state
        return jnp.array([-0.1 * x - 2 * y, 2 * x - 0.3 * y])

    def lorenz(state):
        x, y, z = state
        return jnp.array([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])

    linear = lyapax.lyapunov_spectrum(
        lyapax.ode_problem(spiral, jnp.array([1.0, 0.5]), dt=0.01), n_steps=200, renorm_every=5)
    chaotic = lyapax.lyapunov_spectrum(
        lyapax.ode_problem(lorenz, jnp.array([1.0, 1.0, 20.0]), dt=0.01), n_steps=200,
        renorm_every=10)
    return {"linear": linear.exponents, "history": linear.history[::10],
            "lorenz": chaotic.exponents,
            "dimension": lyapax.kaplan_yorke_dimension(linear.exponents)}
