"""Orbax: checkpoints of a training's state, kept by a manager and restored into like trees."""

import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import optax
import orbax.checkpoint as ocp


def main():
    optimizer = optax.adam(0.1)
    target = jnp.arange(4.)

    @jax.jit
    def step(params, state):
        grads = jax.grad(lambda p: jnp.sum((p["w"] - target) ** 2) + p["b"] ** 2)(params)
        updates, state = optimizer.update(grads, state)
        return optax.apply_updates(params, updates), state

    params = {"w": jnp.zeros(4), "b": jnp.array(1.)}
    state = optimizer.init(params)
    with tempfile.TemporaryDirectory() as folder:
        options = ocp.CheckpointManagerOptions(max_to_keep=2, save_interval_steps=2)
        with ocp.CheckpointManager(Path(folder) / "kept", options=options) as manager:
            for number in range(6):
                params, state = step(params, state)
                saved = {"params": params, "state": state}
                manager.save(number, args=ocp.args.StandardSave(saved))
            manager.wait_until_finished()
            steps = manager.all_steps()
            shapes = jax.tree.map(ocp.utils.to_shape_dtype_struct, {"params": params,
                                                                   "state": state})
            restored = manager.restore(2, args=ocp.args.StandardRestore(shapes))
        with ocp.StandardCheckpointer() as checkpointer:
            checkpointer.save(Path(folder) / "single", params)
            checkpointer.wait_until_finished()
            single = checkpointer.restore(Path(folder) / "single", jax.tree.map(jnp.zeros_like,
                                                                               params))
    again, _ = step(restored["params"], restored["state"])
    return {"steps": steps, "restored": restored["params"], "again": again, "single": single,
            "count": restored["state"][0].count,
            "types": [type(restored["state"][0]).__name__, str(single["w"].dtype)]}
