"""Equinox: a module around layers with dropout and norms, trained by filtered functions."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax


class Network(eqx.Module):
    layers: list
    norm: eqx.nn.LayerNorm
    dropout: eqx.nn.Dropout
    scale: jax.Array
    activation: callable = eqx.field(static=True)

    def __init__(self, key):
        first, second = jax.random.split(key)
        self.layers = [eqx.nn.Linear(4, 16, key=first), eqx.nn.Linear(16, 2, key=second)]
        self.norm = eqx.nn.LayerNorm(16)
        self.dropout = eqx.nn.Dropout(0.1)
        self.scale = jnp.array(2.0)
        self.activation = jax.nn.silu

    def __call__(self, x, key=None):
        hidden = self.norm(self.activation(self.layers[0](x)))
        return self.scale * self.layers[1](self.dropout(hidden, key=key, inference=key is None))


@eqx.filter_value_and_grad
def loss(model, x, y, key):
    logits = jax.vmap(model)(x, jax.random.split(key, len(x)))
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


def main():
    keys = jax.random.split(jax.random.PRNGKey(0), 3)
    model = Network(keys[0])
    x = jax.random.normal(keys[1], (32, 4))
    y = (x[:, 0] * x[:, 1] > 0).astype(int)
    optimizer = optax.adam(1e-2)
    state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))

    @eqx.filter_jit
    def step(model, state, key):
        value, grads = loss(model, x, y, key)
        updates, state = optimizer.update(grads, state, model)
        return eqx.apply_updates(model, updates), state, value

    losses = []
    for key in jax.random.split(keys[2], 15):
        model, state, value = step(model, state, key)
        losses.append(value)
    frozen = eqx.tree_at(lambda m: m.scale, model, replace=jnp.array(1.0))
    ensemble = eqx.filter_vmap(Network)(keys)
    votes = eqx.filter_vmap(lambda m, x: jax.vmap(m)(x), in_axes=(eqx.if_array(0), None))
    return {"losses": losses[::3], "outputs": jax.vmap(frozen)(x[:3]),
            "votes": votes(ensemble, x[:2]), "equal": bool(eqx.tree_equal(model, frozen))}
