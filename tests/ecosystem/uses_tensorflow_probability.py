"""TensorFlow Probability: a joint distribution, Hamiltonian Monte Carlo, a Gaussian process."""

import jax
import jax.numpy as jnp
from tensorflow_probability.substrates import jax as tfp

tfb, tfd, tfk = tfp.bijectors, tfp.distributions, tfp.math.psd_kernels

# Chains part at the last bit: means of other draws.
TOLERANCES = {"mean": 0.1, "scale": 0.1}


def main():
    model = tfd.JointDistributionSequential([
        tfd.Normal(0., 2.),
        tfd.Gamma(2., 1.),
        lambda scale, mean: tfd.Independent(tfd.Normal(mean * jnp.ones(10), scale), 1)])
    data = jnp.linspace(0., 2., 10)
    keys = jax.random.split(jax.random.key(0), 3)

    def log_density(mean, log_scale):
        return model.log_prob(mean, jnp.exp(log_scale), data) + log_scale

    kernel = tfp.mcmc.DualAveragingStepSizeAdaptation(
        tfp.mcmc.HamiltonianMonteCarlo(log_density, num_leapfrog_steps=5, step_size=0.2), 150)

    @jax.jit
    def chain(key):
        return tfp.mcmc.sample_chain(
            400, current_state=[jnp.array(0.), jnp.array(0.)], kernel=kernel,
            num_burnin_steps=200, trace_fn=None, seed=key)

    means, log_scales = chain(keys[0])
    process = tfd.GaussianProcessRegressionModel(
        tfk.ExponentiatedQuadratic(1., 0.5), index_points=jnp.linspace(0., 1., 4)[:, None],
        observation_index_points=jnp.array([[0.], [0.5], [1.]]),
        observations=jnp.array([0., 1., 0.]), observation_noise_variance=1e-2)
    bijector = tfb.Chain([tfb.Softplus(), tfb.Shift(1.), tfb.Scale(2.)])
    wishart = tfd.WishartTriL(5., jnp.eye(2))
    return {"mean": means.mean(), "scale": jnp.exp(log_scales).mean(),
            "regression": process.mean(), "deviation": process.stddev(),
            "bijector": bijector.forward(jnp.arange(3.)),
            "log det": bijector.forward_log_det_jacobian(jnp.arange(3.)),
            "wishart": wishart.log_prob(jnp.array([[2., .5], [.5, 1.]])),
            "quantiles": tfd.StudentT(3., 0., 1.).quantile(jnp.array([.1, .5, .9])),
            "normals": tfd.Normal(0., 1.).sample(3, seed=keys[1]),
            "divergence": tfd.kl_divergence(tfd.Beta(2., 3.), tfd.Beta(1., 1.))}
