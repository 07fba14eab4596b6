"""sympy2jax: expressions of SymPy as modules, evaluated, differentiated, trained."""

import equinox as eqx
import jax
import jax.numpy as jnp
import sympy
import sympy2jax


def main():
    x, y = sympy.symbols("x y")
    module = sympy2jax.SymbolicModule(
        [sympy.sin(x) * 2.5 + y ** 2, sympy.exp(-x * y) / (1 + x ** 2), sympy.Max(x, y, 0.3)])
    points = jnp.linspace(-1, 2, 5)

    @eqx.filter_jit
    @eqx.filter_value_and_grad
    def loss(module):
        a, b, c = jax.vmap(lambda p: module(x=p, y=1 - p))(points)
        return jnp.mean((a - b) ** 2) + jnp.mean(c)

    value, gradient = loss(module)
    trained = eqx.apply_updates(module, jax.tree.map(lambda g: -0.1 * g, gradient))
    return {"values": module(x=jnp.float32(0.5), y=jnp.float32(2.0)), "loss": value,
            "gradient": jax.tree.leaves(gradient), "next": loss(trained)[0],
            "text": str(module.sympy()[2])}
