"""BlackJAX: a regression's posterior by NUTS with window adaptation, and by Langevin dynamics."""

import blackjax
import jax
import jax.numpy as jnp

# Chains part at the last bit: means of other draws.
TOLERANCES = {"slope": 0.05, "offset": 0.05, "scale": 0.1, "rate": 0.1}


def main():
    keys = jax.random.split(jax.random.key(0), 4)
    x = jnp.linspace(-1., 1., 30)
    y = 2. * x + 1. + 0.3 * jax.random.normal(keys[0], (30,))

    def log_density(position):
        residual = y - position["slope"] * x - position["offset"]
        scale = jnp.exp(position["log scale"])
        prior = sum(p**2 for p in position.values()) / 50
        return -0.5 * jnp.sum((residual / scale) ** 2) - 30 * position["log scale"] - prior

    start = {"slope": jnp.array(0.), "offset": jnp.array(0.), "log scale": jnp.array(0.)}
    warmup = blackjax.window_adaptation(blackjax.nuts, log_density)
    (state, parameters), _ = warmup.run(keys[1], start, num_steps=300)
    kernel = blackjax.nuts(log_density, **parameters)

    @jax.jit
    def chain(key, state):
        def step(state, key):
            state, info = kernel.step(key, state)
            return state, (state.position, info.acceptance_rate)
        return jax.lax.scan(step, state, jax.random.split(key, 500))[1]

    positions, rates = chain(keys[2], state)
    langevin = blackjax.mala(log_density, 5e-3)
    moving = langevin.init(start)
    path = []
    for key in jax.random.split(keys[3], 5):
        moving, _ = jax.jit(langevin.step)(key, moving)
        path.append(moving.logdensity)
    return {"slope": positions["slope"].mean(), "offset": positions["offset"].mean(),
            "scale": jnp.exp(positions["log scale"]).mean(), "rate": rates.mean(),
            "path": path}
