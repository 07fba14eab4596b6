"""jmp: a step in half precision with a scaled loss that adapts to overflow."""

import jax
import jax.numpy as jnp
import jmp


def main():
    policy = jmp.get_policy("params=float32,compute=float16,output=float32")
    weights = {"w": jnp.linspace(-1, 1, 6).reshape(3, 2), "b": jnp.zeros(2)}
    x = jnp.linspace(0, 2, 12).reshape(4, 3)

    @jax.jit
    def step(weights, scale, x):
        def loss(weights):
            half, inputs = policy.cast_to_compute((weights, x))
            out = policy.cast_to_output(jnp.tanh(inputs @ half["w"] + half["b"]))
            return scale.scale(jnp.mean(out ** 2))
        gradient = scale.unscale(jax.grad(loss)(weights))
        finite = jmp.all_finite(gradient)
        moved = jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradient)
        return jmp.select_tree(finite, moved, weights), scale.adjust(finite), finite

    scale = jmp.DynamicLossScale(jnp.float32(2 ** 15), period=2)
    seen = []
    for inputs in (x, x, x * jnp.inf, x):
        weights, scale, finite = step(weights, scale, inputs)
        seen.append((float(scale.loss_scale), bool(finite)))
    return {"weights": weights, "scales": [s for s, _ in seen], "finite": [f for _, f in seen]}
