"""mctx: a search of trees in a game of counters by three policies, batched and compiled."""

import functools

import jax
import jax.numpy as jnp
import mctx

ACTIONS = 4
GAIN = jnp.array([[0.1, -0.2, 0.3, 0.0], [0.5, 0.1, -0.4, 0.2], [-0.3, 0.6, 0.2, 0.1]])


def policy(state):
    """A prior and a value of a state (its column of gains, and how far it came)."""
    return jnp.cos(state[0] + jnp.arange(ACTIONS)), jnp.tanh(0.2 * state[1])


def step(params, key, action, embedding):
    del params, key

    def one(action, state):
        column, total = state
        reward = GAIN[column % 3, action]
        state = (column + action + 1) % 7, total + reward
        prior, value = policy(state)
        return mctx.RecurrentFnOutput(
            reward=reward, discount=jnp.float32(0.9), prior_logits=prior, value=value), state
    return jax.vmap(one)(action, embedding)


@functools.partial(jax.jit, static_argnums=0)
def search(name, key):
    states = jnp.arange(5), jnp.linspace(-1.0, 1.0, 5)
    prior, value = jax.vmap(policy)(states)
    root = mctx.RootFnOutput(prior_logits=prior, value=value, embedding=states)
    invalid = jnp.zeros((5, ACTIONS), bool).at[2, 1].set(True)
    return getattr(mctx, name)(
        params=(), rng_key=key, root=root, recurrent_fn=step, num_simulations=24, max_depth=6,
        invalid_actions=invalid)


def main():
    result = {}
    for name in ("gumbel_muzero_policy",):
        found = search(name, jax.random.key(1))
        summary = found.search_tree.summary()
        result[name] = {"action": found.action, "weights": found.action_weights,
                        "visits": summary.visit_counts, "value": summary.value,
                        "q": summary.qvalues, "parents": found.search_tree.parents}
    return result
