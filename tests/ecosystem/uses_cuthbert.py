"""cuthbert: a Kalman filter and smoother, in order and by an associative scan; the likelihood."""

from typing import NamedTuple

import cuthbert
import jax
import jax.numpy as jnp
from cuthbert.gaussian import kalman


class Step(NamedTuple):
    time: jax.Array
    seen: jax.Array


def main():
    seen = jnp.cumsum(jax.random.normal(jax.random.key(0), (13, 1)), axis=0)
    inputs = Step(jnp.arange(13), seen)
    turn = jnp.array([[1.0, 0.5], [0.0, 1.0]])

    def dynamics(step):
        return turn, jnp.zeros(2), 0.3 * jnp.eye(2)

    def model(noise):
        return kalman.build_filter(
            jnp.zeros(2), jnp.eye(2), dynamics,
            lambda step: (jnp.array([[1.0, 0.0]]), jnp.zeros(1), noise * jnp.eye(1), step.seen))

    def run(noise, parallel=False):
        return cuthbert.filter(
            model(noise), inputs, model(noise).init_prepare(key=None), parallel=parallel)

    def likelihood(noise):
        return run(noise).log_normalizing_constant[-1]

    one = run(0.5)
    smooth = cuthbert.smoother(kalman.build_smoother(dynamics), one, inputs)
    return {"means": one.mean, "covariance": one.chol_cov[-1] @ one.chol_cov[-1].T,
            "parallel": run(0.5, parallel=True).mean, "smooth": smooth.mean,
            "likelihood": jax.jit(likelihood)(0.5), "gradient": jax.grad(likelihood)(0.5)}
