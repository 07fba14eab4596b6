"""jaxkd: neighbours of points by a k-d tree, counted and differentiated."""

import jax
import jax.numpy as jnp
import jaxkd


def main():
    keys = jax.random.split(jax.random.key(0), 2)
    points = jax.random.uniform(keys[0], (60, 3))
    queries = jax.random.uniform(keys[1], (5, 3))
    tree = jaxkd.build_tree(points)
    neighbours, distances = jaxkd.query_neighbors(tree, queries, k=4)

    def spread(points):
        index, _ = jaxkd.query_neighbors(jaxkd.build_tree(points), queries, k=3)
        return jnp.sum((points[index] - queries[:, None]) ** 2)

    return {"neighbours": neighbours, "distances": distances,
            "counts": jaxkd.count_neighbors(tree, queries, r=0.3),
            "gradient": jax.jit(jax.grad(spread))(points)[::12],
            "means": jaxkd.extras.k_means(keys[0], points, k=3, steps=4)[0]}
