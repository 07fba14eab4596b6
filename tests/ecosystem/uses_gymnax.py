"""gymnax: a linear policy in cart pole, whose episodes are scanned, mapped and improved."""

import gymnax
import jax
import jax.numpy as jnp


def main():
    env, env_params = gymnax.make("CartPole-v1")

    def episode(key, weights):
        reset, key = jax.random.split(key)
        observation, state = env.reset(reset, env_params)

        def step(carry, key):
            observation, state, running, total = carry
            action = (observation @ weights > 0).astype(jnp.int32)
            observation, state, reward, done, *_ = env.step(key, state, action, env_params)
            return (observation, state, running * (1 - done), total + running * reward), reward

        start = (observation, state, jnp.array(1.), jnp.array(0.))
        (_, _, _, total), _ = jax.lax.scan(step, start, jax.random.split(key, 100))
        return total

    @jax.jit
    @jax.vmap
    def score(key, weights):
        return jax.vmap(episode, in_axes=(0, None))(jax.random.split(key, 4), weights).mean()

    weights, best = jnp.zeros(4), []
    for key in jax.random.split(jax.random.key(0), 3):
        proposal, run = jax.random.split(key)
        candidates = weights + jax.random.normal(proposal, (8, 4))
        scores = score(jax.random.split(run, 8), candidates)
        weights = candidates[jnp.argmax(scores)]
        best.append(scores)
    observation, _ = env.reset(jax.random.key(1), env_params)
    space = env.action_space(env_params)
    return {"scores": best, "weights": weights, "observation": observation,
            "actions": space.n, "pendulum": gymnax.make("Pendulum-v1")[0].reset(
                jax.random.key(2))[0]}
