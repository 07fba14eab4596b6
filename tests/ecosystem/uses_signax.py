"""signax: signatures of paths, their logarithms and gradients, streamed and combined."""

import jax
import jax.numpy as jnp
import signax


def main():
    keys = jax.random.split(jax.random.key(0), 2)
    paths = jnp.cumsum(jax.random.normal(keys[0], (4, 9, 3)), axis=1)
    levels = signax.signature(paths[0], depth=3)
    streamed = signax.signature(paths[0], depth=2, stream=True)
    halves = [signax.signature(p, depth=3, flatten=False) for p in (paths[0, :5], paths[0, 4:])]
    joined = signax.signature_combine(*halves)
    return {"levels": jnp.concatenate([levels.reshape(-1)]), "streamed": streamed,
            "joined": [j.reshape(-1) for j in joined], "log": signax.logsignature(paths, depth=3),
            "gradient": jax.grad(lambda p: jnp.sum(signax.signature(p, depth=4) ** 2))(paths[1])}
