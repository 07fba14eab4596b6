"""jaxdp: value and policy iteration of finite decision processes, mapped over discounts."""

import jax
import jax.numpy as jnp
import jaxdp


def main():
    lake = jaxdp.make("frozen-lake-deterministic")
    garnet = jaxdp.make("garnet")
    algorithm = jaxdp.ValueIteration(gamma=0.9)
    state = algorithm.init(lake)
    for _ in range(20):
        state = algorithm.update(lake, state)
    policy = jaxdp.greedy_map.v(lake, state.v_val, 0.9)
    values = jnp.linspace(0.0, 1.0, garnet.state_size)

    @jax.jit
    @jax.vmap
    def targets(gamma):
        gains = jaxdp.reward.sa(garnet) + gamma * jaxdp.trans_op.sa(garnet, values)
        return jnp.max(gains, axis=0)

    return {"values": state.v_val, "policy": policy, "targets": targets(jnp.array([0.9, 0.99])),
            "evaluated": jaxdp.policy_eval.v(lake, policy, 0.9),
            "gradient": jax.grad(lambda v: jaxdp.bellman_opt_op.v(lake, v, 0.9).sum())(state.v_val)}
