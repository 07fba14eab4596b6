"""tinygp: Gaussian processes dense and quasiseparable, conditioned, with a kernel of its own."""

import jax
import jax.numpy as jnp
from tinygp import GaussianProcess, kernels, transforms


class Spectral(kernels.Kernel):
    weight: jax.Array
    frequency: jax.Array

    def evaluate(self, x, y):
        return jnp.sum(self.weight * jnp.cos(self.frequency * (x - y)))


@jax.jit
def results(keys):
    x = jnp.sort(jax.random.uniform(keys[0], (30,), maxval=10.0))
    y = jnp.sin(x) + 0.1 * jax.random.normal(keys[1], (30,))
    at = jnp.linspace(0, 10, 7)

    def loss(theta):
        kernel = theta["amplitude"] * kernels.Matern52(theta["scale"])
        return -GaussianProcess(kernel, x, diag=theta["noise"], mean=0.1).log_probability(y)

    theta = {"amplitude": 1.1, "scale": 1.3, "noise": 0.1}
    line = GaussianProcess(1.2 * kernels.quasisep.Matern32(1.3), x, diag=0.1)
    found = line.condition(y, at)
    points = jax.random.normal(keys[2], (6, 2))
    plane = transforms.Linear(
        jnp.array([1.0, 0.5]), kernels.ExpSquared() + 0.1 * kernels.Polynomial(order=2))
    own = GaussianProcess(Spectral(jnp.array([1.0, 0.5]), jnp.array([0.7, 1.9])), x, diag=0.1)
    return {"loss": loss(theta), "gradient": jax.grad(loss)(theta), "mean": found.gp.mean,
            "variance": found.gp.variance, "likelihood": found.log_probability,
            "sample": own.sample(keys[0], shape=(2,))[:, ::8], "plane": plane(points, points),
            "own": own.log_probability(y)}


def main():
    return results(jax.random.split(jax.random.key(0), 3))
