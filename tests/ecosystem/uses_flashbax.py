"""flashbax: flat, prioritised and trajectory buffers, filled and sampled under jit."""

import flashbax
import jax
import jax.numpy as jnp


def main():
    key = jax.random.key(0)
    step = {"obs": jnp.zeros(3), "reward": jnp.zeros(())}
    made = lambda i: {"obs": jnp.arange(3.0) + i, "reward": 1.0 * i}
    flat = flashbax.make_flat_buffer(max_length=32, min_length=2, sample_batch_size=4)
    state, add = flat.init(step), jax.jit(flat.add, donate_argnums=0)
    for i in range(40):
        state = add(state, made(i))
    pairs = jax.jit(flat.sample)(state, key).experience
    ranked = flashbax.make_prioritised_flat_buffer(
        max_length=16, min_length=2, sample_batch_size=6, priority_exponent=0.7)
    weighted, add = ranked.init(step), jax.jit(ranked.add)
    for i in range(10):
        weighted = add(weighted, made(i))
    drawn = jax.jit(ranked.sample)(weighted, key)
    weighted = jax.jit(ranked.set_priorities)(weighted, drawn.indices, drawn.probabilities * 5.0)
    again = jax.jit(ranked.sample)(weighted, jax.random.fold_in(key, 1))
    paths = flashbax.make_trajectory_buffer(
        add_batch_size=2, sample_batch_size=3, sample_sequence_length=4, period=2,
        min_length_time_axis=4, max_length_time_axis=16)
    whole = paths.init(step)
    batch = jax.vmap(jax.vmap(made))(jnp.arange(20.0).reshape(2, 10))
    whole = jax.jit(paths.add)(whole, batch)
    items = flashbax.make_item_buffer(8, 2, 3)
    kept = items.init(step)
    for i in range(5):
        kept = items.add(kept, made(i))
    return {"first": pairs.first["obs"], "second": pairs.second["reward"],
            "full": bool(state.is_full), "can sample": bool(flat.can_sample(state)),
            "drawn": drawn.experience.first["reward"], "indices": drawn.indices,
            "priorities": again.probabilities, "again": again.experience.first["reward"],
            "paths": jax.jit(paths.sample)(whole, key).experience["reward"],
            "items": items.sample(kept, key).experience["reward"]}
