"""Distrax: a mixture, a flow fitted by likelihood, divergences, a hidden Markov model."""

import distrax
import jax
import jax.numpy as jnp
import optax


def flow(params):
    bijector = distrax.Chain([distrax.ScalarAffine(params["shift"], log_scale=params["scale"]),
                              distrax.Tanh(), distrax.ScalarAffine(0., 0.5)])
    return distrax.Transformed(distrax.Normal(0., 1.), bijector)


def main():
    mixture = distrax.MixtureSameFamily(
        distrax.Categorical(probs=jnp.array([0.3, 0.7])),
        distrax.MultivariateNormalDiag(jnp.array([[-1., 0.], [1., 2.]]), jnp.ones((2, 2)) / 2))
    samples, log_probs = mixture.sample_and_log_prob(seed=jax.random.key(0), sample_shape=(5,))

    data = 0.7 + 1.5 * jnp.tanh(0.5 * jax.random.normal(jax.random.key(1), (200,)))
    params = {"shift": jnp.array(0.5), "scale": jnp.array(1.0)}
    optimizer = optax.adam(5e-2)
    state = optimizer.init(params)

    @jax.jit
    def step(params, state):
        value, grads = jax.value_and_grad(lambda p: -flow(p).log_prob(data).mean())(params)
        updates, state = optimizer.update(grads, state)
        return optax.apply_updates(params, updates), state, value

    losses = []
    for _ in range(20):
        params, state, value = step(params, state)
        losses.append(value)
    model = distrax.HMM(
        init_dist=distrax.Categorical(probs=jnp.array([0.5, 0.5])),
        trans_dist=distrax.Categorical(probs=jnp.array([[0.9, 0.1], [0.2, 0.8]])),
        obs_dist=distrax.Normal(jnp.array([0., 3.]), jnp.ones(2)))
    observed = jnp.array([0.1, -0.2, 2.8, 3.1, 0.3])
    return {"samples": samples, "log probs": log_probs, "losses": losses[::4],
            "divergence": distrax.Normal(0., 1.).kl_divergence(distrax.Normal(1., 2.)),
            "entropy": distrax.Categorical(logits=jnp.arange(4.)).entropy(),
            "path": model.viterbi(observed), "beliefs": model.forward(observed)[0]}
