"""Haiku: a recurrent network with state, and layers under `transform_with_state`."""

import haiku as hk
import jax
import jax.numpy as jnp
import optax


def network(x, is_training):
    core = hk.DeepRNN([hk.LSTM(8), hk.Linear(1, with_bias=False)])
    outputs, _ = hk.dynamic_unroll(core, x, core.initial_state(x.shape[1]))
    outputs = hk.BatchNorm(True, True, 0.9)(outputs, is_training)
    steps = hk.get_state("steps", (), jnp.int32, init=jnp.zeros)
    hk.set_state("steps", steps + 1)
    gain = hk.get_parameter("gain", (1,), init=hk.initializers.Constant(0.5))
    if is_training:
        outputs = hk.dropout(hk.next_rng_key(), 0.1, outputs)
    return gain * outputs


def main():
    model = hk.transform_with_state(network)
    time = jnp.arange(12.)[:, None, None] + jnp.arange(4.)[None, :, None]
    x, y = jnp.sin(time), jnp.sin(time + 1)
    keys = hk.PRNGSequence(42)
    params, state = model.init(next(keys), x, is_training=True)
    optimizer = optax.adam(2e-2)
    moments = optimizer.init(params)

    @jax.jit
    def step(params, state, moments, key):
        def loss(params):
            outputs, new_state = model.apply(params, state, key, x, is_training=True)
            return jnp.mean((outputs - y) ** 2), new_state

        (value, new_state), grads = jax.value_and_grad(loss, has_aux=True)(params)
        updates, new_moments = optimizer.update(grads, moments)
        return optax.apply_updates(params, updates), new_state, new_moments, value

    losses = []
    for _ in range(12):
        params, state, moments, value = step(params, state, moments, next(keys))
        losses.append(value)
    outputs, _ = model.apply(params, state, None, x, is_training=False)
    return {"losses": losses[::3], "outputs": outputs[:3, 0, 0], "size": hk.data_structures.
            tree_size(params), "steps": state["~"]["steps"]}
