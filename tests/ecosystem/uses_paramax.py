"""paramax: parameters under constraints, normalised and frozen ones, trained by Optax."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
import paramax


class Model(eqx.Module):
    scale: paramax.AbstractUnwrappable
    shift: jax.Array
    layer: eqx.nn.Linear

    def __call__(self, x):
        return self.layer(x) * self.scale + self.shift


def main():
    keys = jax.random.split(jax.random.key(0), 2)
    layer = eqx.nn.Linear(3, 2, key=keys[0])
    layer = eqx.tree_at(lambda l: l.weight, layer, replace_fn=paramax.WeightNormalization)
    layer = eqx.tree_at(lambda l: l.bias, layer, replace_fn=paramax.non_trainable)
    model = Model(paramax.Parameterize(jnp.exp, jnp.zeros(2)), jnp.ones(2), layer)
    x = jax.random.normal(keys[1], (8, 3))
    optimizer = optax.adam(0.1)

    def loss(parameters, static):
        fitted = paramax.unwrap(eqx.combine(parameters, static))
        return jnp.mean((jax.vmap(fitted)(x) - jnp.cos(x[:, :2])) ** 2)

    parameters, static = eqx.partition(
        model, eqx.is_inexact_array, is_leaf=lambda x: isinstance(x, paramax.NonTrainable))
    state = optimizer.init(parameters)

    @jax.jit
    def step(parameters, state):
        value, gradient = jax.value_and_grad(loss)(parameters, static)
        updates, state = optimizer.update(gradient, state)
        return optax.apply_updates(parameters, updates), state, value

    losses = []
    for _ in range(5):
        parameters, state, value = step(parameters, state)
        losses.append(value)
    fitted = paramax.unwrap(eqx.combine(parameters, static))
    return {"losses": jnp.stack(losses), "scale": fitted.scale, "weight": fitted.layer.weight,
            "frozen": fitted.layer.bias - layer.bias.tree}
