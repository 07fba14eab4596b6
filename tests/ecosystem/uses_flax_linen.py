"""Flax linen: a convolutional network with batch norm and dropout, and a train state of Optax."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training import train_state


class Network(nn.Module):
    classes: int

    @nn.compact
    def __call__(self, x, train):
        x = nn.Conv(4, (3, 3), use_bias=False)(x)
        x = nn.BatchNorm(use_running_average=not train)(x)
        x = nn.avg_pool(nn.relu(x), (2, 2), strides=(2, 2))
        x = nn.Dense(16)(x.reshape(len(x), -1))
        x = nn.Dropout(0.2, deterministic=not train)(nn.gelu(x))
        return nn.Dense(self.classes)(x)


class State(train_state.TrainState):
    batch_stats: dict


@jax.jit
def step(state, x, y, key):
    def loss(params):
        logits, updated = state.apply_fn(
            {"params": params, "batch_stats": state.batch_stats}, x, train=True,
            rngs={"dropout": key}, mutable=["batch_stats"])
        losses = optax.softmax_cross_entropy(logits, jax.nn.one_hot(y, 3))
        return losses.mean(), updated["batch_stats"]

    (value, stats), grads = jax.value_and_grad(loss, has_aux=True)(state.params)
    return state.apply_gradients(grads=grads).replace(batch_stats=stats), value


def main():
    keys = jax.random.split(jax.random.key(1), 3)
    x = jax.random.uniform(keys[0], (12, 8, 8, 1))
    y = jnp.argmax(x[:, :3, 0, 0], -1)
    network = Network(classes=3)
    variables = network.init(keys[1], x, train=False)
    state = State.create(apply_fn=network.apply, params=variables["params"],
                         batch_stats=variables["batch_stats"], tx=optax.sgd(0.1, momentum=0.9))
    losses = []
    for i in range(10):
        state, value = step(state, x, y, jax.random.fold_in(keys[2], i))
        losses.append(value)
    logits = network.apply({"params": state.params, "batch_stats": state.batch_stats}, x[:2],
                           train=False)
    shapes = {name: list(p["kernel"].shape) for name, p in state.params.items() if "kernel" in p}
    return {"losses": losses[::2], "mean": state.batch_stats["BatchNorm_0"]["mean"],
            "logits": logits, "kernels": sorted(shapes.values())}
