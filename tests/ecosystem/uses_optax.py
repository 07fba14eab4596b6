"""Optax: a regression by a chain of transformations, a schedule, and a masked second optimizer."""

import jax
import jax.numpy as jnp
import optax


def predict(params, x):
    hidden = jax.nn.gelu(x @ params["w1"] + params["b1"])
    return hidden @ params["w2"] + params["b2"]


def loss(params, x, y):
    return optax.huber_loss(predict(params, x), y).mean()


def main():
    keys = jax.random.split(jax.random.key(0), 4)
    params = {"w1": jax.random.normal(keys[0], (3, 16)) / 3, "b1": jnp.zeros(16),
              "w2": jax.random.normal(keys[1], (16, 1)) / 4, "b2": jnp.zeros(1)}
    x = jax.random.normal(keys[2], (64, 3))
    y = jnp.sin(x).sum(-1, keepdims=True)
    schedule = optax.warmup_cosine_decay_schedule(0., 3e-2, 5, 30, 1e-3)
    weights = jax.tree.map(lambda p: p.ndim == 2, params)
    optimizer = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.scale_by_adam(),
        optax.masked(optax.add_decayed_weights(1e-3), weights),
        optax.scale_by_learning_rate(schedule))
    state = optimizer.init(params)

    @jax.jit
    def step(params, state):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    losses = []
    for _ in range(30):
        params, state, value = step(params, state)
        losses.append(value)
    logits = predict(params, x) * jnp.array([1., 0., -1.])
    labels = jnp.arange(64) % 3
    return {"losses": losses[::5], "norm": optax.global_norm(params),
            "cross entropy":
                optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(),
            "rates": jax.vmap(schedule)(jnp.arange(0, 30, 6))}
