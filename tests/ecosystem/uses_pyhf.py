"""pyhf with its backend of JAX: a counting experiment fitted, its curvature."""

import jax
import jax.numpy as jnp
import pyhf


def main():
    pyhf.set_backend("jax", precision="64b")
    model = pyhf.simplemodels.correlated_background(
        signal=[12.0, 11.0, 5.0], bkg=[50.0, 52.0, 48.0], bkg_up=[45.0, 57.0, 55.0],
        bkg_down=[55.0, 47.0, 44.0])
    data = [61.0, 60.0, 52.0, *model.config.auxdata]
    best, likelihood = pyhf.infer.mle.fit(data, model, return_fitted_val=True)
    start = jnp.asarray(model.config.suggested_init())
    curve = jax.jit(jax.hessian(lambda p: model.logpdf(p, jnp.asarray(data))[0]))(start)
    result = {"best": best, "likelihood": likelihood, "curve": curve,
              "rates": model.expected_data(start)}
    jax.config.update("jax_enable_x64", False)     # pyhf has set it, for the whole process
    return result
