"""rlax: a chain walk learned by Q-learning, returns, V-trace, policy losses, exploration."""

import jax
import jax.numpy as jnp
import rlax


def step(state, action):
    new = jnp.clip(state + 2 * action - 1, 0, 4)
    return new, jnp.where(new == 4, 1.0, 0.0), jnp.where(new == 4, 0.0, 0.9)


@jax.jit
def learn(table, key):
    def transition(carry, key):
        table, state = carry
        explore, fresh = jax.random.split(key)
        action = rlax.epsilon_greedy(0.3).sample(explore, table[state])
        new, reward, discount = step(state, action)
        error = rlax.q_learning(table[state], action, reward, discount, table[new])
        table = table.at[state, action].add(0.3 * error)
        start = jax.random.randint(fresh, (), 0, 4)
        return (table, jnp.where(discount == 0, start, new)), error

    return jax.lax.scan(transition, (table, jnp.array(0)), jax.random.split(key, 400))


def main():
    (table, _), errors = learn(jnp.zeros((5, 2)), jax.random.key(0))
    rewards, discounts = jnp.array([0., 1., 0., 2.]), jnp.array([.9, .9, .9, 0.])
    values = jnp.array([.5, .4, .3, .2, .1])
    logits = jnp.sin(jnp.arange(12.)).reshape(4, 3)
    actions = jnp.array([0, 2, 1, 1])
    advantages = rlax.td_lambda(values[:-1], rewards, discounts, values[1:], jnp.array(.8))
    vtrace = rlax.vtrace_td_error_and_advantage(
        values[:-1], values[1:], rewards, discounts, jnp.array([1.2, .8, 1., .5]))

    def policy_loss(logits):
        weights = jnp.ones(4)
        return (rlax.policy_gradient_loss(logits, actions, advantages, weights)
                + 0.01 * rlax.entropy_loss(logits, weights))

    projected = rlax.categorical_l2_project(jnp.array([-.5, .2, 1.4]), jnp.array([.2, .5, .3]),
                                            jnp.array([-1., 0., 1.]))
    return {"table": table, "errors": errors[::50], "advantages": advantages,
            "v-trace": vtrace.pg_advantage, "gradient": jax.grad(policy_loss)(logits),
            "returns": rlax.n_step_bootstrapped_returns(rewards, discounts, values[1:], 2),
            "lambda": rlax.lambda_returns(rewards, discounts, values[1:], 0.9),
            "projected": projected, "transformed": rlax.signed_hyperbolic(jnp.array([-3., 5.]))}
