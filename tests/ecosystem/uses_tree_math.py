"""tree-math: pytrees as vectors, an unmodified solver over them, mapped and differentiated."""

import functools

import jax
import jax.numpy as jnp
import tree_math as tm
import tree_math.numpy as tnp


def main():
    v = tm.Vector({"a": jnp.arange(3.0), "b": (jnp.ones((2, 2)), jnp.float32(2.0))})

    @functools.partial(tm.wrap, vector_argnames=["b", "x0"])
    def solve(apply, b, x0):
        x, r = x0, b - apply(x0)
        p = r
        for _ in range(2):
            step = (r @ r) / (p @ apply(p))
            x, new = x + step * p, r - step * apply(p)
            p, r = new + (new @ new) / (r @ r) * p, new
        return x

    tree = v.tree
    solved = solve(lambda x: 2.5 * x + 0.3 * v * x, tree, jax.tree.map(jnp.zeros_like, tree))
    leaves = jax.tree.leaves
    return {"solved": leaves(solved), "norm": jnp.sqrt(v @ v),
            "mixed": leaves((v * 2 - v / 3 + abs(-v)).tree), "where": leaves(
                tnp.where(v > 0.5, v, 0.0).tree), "larger": leaves(tnp.maximum(v, 1.0).tree),
            "gradient": leaves(jax.grad(lambda v: (v * v) @ v)(v)),
            "mapped": jax.vmap(lambda s: (s * v) @ v)(jnp.arange(4.0))}
