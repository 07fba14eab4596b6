"""Flax nnx: an object with state (batch norm, dropout, a counter), trained in place."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx


class Count(nnx.Variable):
    pass


class Network(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(3, 16, use_bias=False, rngs=rngs)
        self.norm = nnx.BatchNorm(16, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)
        self.second = nnx.Linear(16, 1, rngs=rngs)
        self.calls = Count(jnp.array(0))

    def __call__(self, x):
        self.calls[...] += 1
        return self.second(self.dropout(nnx.relu(self.norm(self.first(x)))))


@nnx.jit
def step(model, optimizer, x, y):
    def loss(model):
        return jnp.mean((model(x) - y) ** 2)

    value, grads = nnx.value_and_grad(loss)(model)
    optimizer.update(model, grads)
    return value


def main():
    model = Network(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
    x = jax.random.normal(jax.random.key(1), (32, 3))
    y = jnp.prod(x, -1, keepdims=True)
    losses = [step(model, optimizer, x, y) for _ in range(10)]
    model.eval()
    graph, params, rest = nnx.split(model, nnx.Param, ...)
    merged = nnx.merge(graph, jax.tree.map(lambda p: p / 2, params), rest)
    return {"losses": losses[::2], "calls": model.calls[...], "mean": model.norm.mean[...],
            "outputs": model(x[:3]), "halved": merged(x[:3])}
