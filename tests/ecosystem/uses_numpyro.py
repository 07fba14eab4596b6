"""NumPyro: eight schools by NUTS, and a logistic regression by stochastic variational inference."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal
from numpyro.infer.reparam import TransformReparam

# Chains part at the last bit: means of other draws.
TOLERANCES = {"mu": 0.2, "tau": 0.2, "theta": 0.2}
EFFECTS = jnp.array([28., 8., -3., 7., -1., 1., 18., 12.])
ERRORS = jnp.array([15., 10., 16., 11., 9., 11., 10., 18.])


def schools():
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("schools", 8), numpyro.handlers.reparam(
            config={"theta": TransformReparam()}):
        theta = numpyro.sample("theta", dist.TransformedDistribution(
            dist.Normal(0., 1.), dist.transforms.AffineTransform(mu, tau)))
        numpyro.sample("effect", dist.Normal(theta, ERRORS), obs=EFFECTS)


def logistic(x, y=None):
    w = numpyro.sample("w", dist.Normal(jnp.zeros(x.shape[1]), 1.).to_event(1))
    b = numpyro.sample("b", dist.Normal(0., 1.))
    with numpyro.plate("rows", len(x)):
        return numpyro.sample("y", dist.Bernoulli(logits=x @ w + b), obs=y)


def main():
    mcmc = MCMC(NUTS(schools), num_warmup=300, num_samples=500, progress_bar=False)
    mcmc.run(jax.random.key(0), extra_fields=("diverging",))
    samples = mcmc.get_samples()

    keys = jax.random.split(jax.random.key(1), 4)
    x = jax.random.normal(keys[0], (60, 3))
    y = (x @ jnp.array([1., -2., 0.5]) > 0).astype(float)
    guide = AutoNormal(logistic)
    svi = SVI(logistic, guide, numpyro.optim.Adam(0.05), Trace_ELBO(num_particles=2))
    result = svi.run(keys[1], 50, x, y, progress_bar=False)
    predicted = Predictive(logistic, guide=guide, params=result.params, num_samples=4)(keys[2], x)
    return {"mu": samples["mu"].mean(), "tau": samples["tau"].mean(),
            "theta": samples["theta"].mean(0), "losses": result.losses[::10],
            "w": guide.median(result.params)["w"], "predicted": predicted["y"].shape}
