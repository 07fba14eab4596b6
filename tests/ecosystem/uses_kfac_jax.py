"""kfac-jax: a network's layers found and trained by K-FAC, and its curvature's blocks."""

import jax
import jax.numpy as jnp
import kfac_jax
from kfac_jax import tag_graph_matcher


def evaluated(eqn, values):
    params = eqn.primitive.get_bind_params(eqn.params)
    out = eqn.primitive.bind(*values, **params)
    return out if isinstance(out, list) else [out]


# kfac-jax 0.0.8 unpacks `get_bind_params` as it was before JAX 0.10.
tag_graph_matcher.eval_jaxpr_eqn = evaluated


def predictions(params, x):
    for layer in params[:-1]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def loss(params, batch):
    x, y = batch
    logits = predictions(params, x)
    kfac_jax.register_softmax_cross_entropy_loss(logits, y)
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=1))


def main():
    keys = jax.random.split(jax.random.key(0), 6)
    sizes = [(4, 8), (8, 6), (6, 3)]
    params = [{"w": jax.random.normal(k, s) / s[0] ** 0.5, "b": jnp.zeros(s[1])}
              for k, s in zip(keys, sizes, strict=False)]
    x = jax.random.normal(keys[3], (64, 4))
    batch = x, jnp.argmax(x[:, :3] * jnp.array([1.0, -2.0, 0.5]), axis=1)
    optimizer = kfac_jax.Optimizer(
        jax.value_and_grad(loss), l2_reg=1e-3, use_adaptive_learning_rate=True,
        use_adaptive_momentum=True, use_adaptive_damping=True, initial_damping=1.0,
        num_burnin_steps=0, multi_device=False)
    state = optimizer.init(params, keys[4], batch)
    losses = []
    for i in range(6):
        params, state, stats = optimizer.step(
            params, state, jax.random.fold_in(keys[5], i), batch=batch, global_step_int=i)
        losses.append(stats["loss"])
    curvature = kfac_jax.ImplicitExactCurvature(loss)
    vector = jax.tree.map(jnp.ones_like, params)
    return {"losses": jnp.stack(losses), "damping": stats["damping"], "params": params[0],
            "blocks": len(state.estimator_state.blocks_states),
            "tags": [str(eqn.primitive) for eqn in jax.make_jaxpr(loss)(params, batch).eqns
                     if "tag" in str(eqn.primitive)],
            "fisher": curvature.multiply_fisher((params, batch), vector)[1]}
