"""exponax: Burgers' and the Kuramoto-Sivashinsky equation by Fourier spectra, differentiated."""

import exponax as ex
import jax
import jax.numpy as jnp


def main():
    burgers = ex.stepper.Burgers(1, 1.0, 32, 0.01, diffusivity=0.02)
    flame = ex.stepper.KuramotoSivashinskyConservative(
        num_spatial_dims=1, domain_extent=30.0, num_points=48, dt=0.1)
    start = ex.ic.RandomTruncatedFourierSeries(num_spatial_dims=1, cutoff=4)(
        num_points=48, key=jax.random.PRNGKey(0))
    wave = jnp.sin(2 * jnp.pi * jnp.arange(32) / 32)[None]

    def energy(u):
        return jnp.mean(ex.repeat(burgers, 10)(u) ** 2)

    plane = ex.stepper.Diffusion(2, 1.0, 8, 0.01, diffusivity=0.1)
    return {"burgers": ex.rollout(burgers, 20, include_init=True)(wave)[::5, 0, ::4],
            "gradient": jax.grad(energy)(wave)[0, ::4],
            "flame": ex.rollout(flame, 30)(start)[-1, 0, ::6],
            "plane": plane(jax.random.normal(jax.random.PRNGKey(1), (1, 8, 8)))[0, ::3, ::3],
            "jacobian": jax.jacfwd(burgers)(wave)[0, 3, 0, ::6],
            "derivative": ex.derivative(wave, 1.0)[0, ::4]}
