"""interpax: splines of one and two dimensions, periodic and monotone, and their derivatives."""

import interpax
import jax
import jax.numpy as jnp


@jax.jit
def results(at):
    x, y = jnp.linspace(0, 2, 12), jnp.linspace(0, 1, 9)
    f = jnp.sin(3 * x)
    g = f[:, None] * jnp.cos(y)
    methods = "nearest", "linear", "cubic2", "akima", "monotonic"
    return {method: interpax.interp1d(2 * at, x, f, method=method) for method in methods} | {
        "plane": interpax.interp2d(2 * at, at, x, y, g, method="cubic"),
        "derivative": interpax.interp1d(2 * at, x, f, derivative=1, method="cubic"),
        "periodic": interpax.interp1d(5 * at, x, f, period=2.0, method="cubic"),
        "outside": interpax.interp1d(jnp.array([-0.5, 2.5]), x, f, method="linear", extrap=True),
        "fourier": interpax.fft_interp1d(f, 30),
        "gradient": jax.grad(lambda f: jnp.sum(interpax.interp1d(
            2 * at, x, f, method="monotonic") ** 2))(f)}


def main():
    at = jax.random.uniform(jax.random.key(0), (15,), minval=0.05, maxval=0.95)
    x = jnp.linspace(0, 2, 12)
    natural = interpax.CubicSpline(x, jnp.sin(3 * x), bc_type="natural")
    return results(at) | {"natural": natural(2 * at, 1)}
