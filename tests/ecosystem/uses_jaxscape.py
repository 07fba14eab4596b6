"""JAXScape: distances in a landscape as a sparse graph, and what they owe to each place."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxscape import GridGraph, LCPDistance, ResistanceDistance, RSPDistance


def graph(permeability):
    return GridGraph(grid=permeability, fun=lambda x, y: (x + y) / 2)


def main():
    permeability = jax.random.uniform(jax.random.key(0), (5, 6), minval=0.2)
    grid = graph(permeability)
    source = grid.coord_to_index(jnp.array([0]), jnp.array([0]))
    distances = {"least cost": LCPDistance(), "resistance": ResistanceDistance(),
                 "random paths": RSPDistance(theta=0.1, cost=lambda x: -jnp.log(x))}
    results = {name: distance(grid, source) for name, distance in distances.items()}
    for name, distance in distances.items():
        @eqx.filter_jit
        def total(permeability, distance=distance):
            return distance(graph(permeability), source).sum()

        results[f"sensitivity of {name}"] = jax.grad(total)(permeability)
    adjacency = grid.get_adjacency_matrix()
    return {**results, "degrees": adjacency.sum(1).todense(), "edges": int(adjacency.nse),
            "neighbours": (adjacency @ adjacency).todense()[0]}


TOLERANCES = {"resistance": 1e-3, "sensitivity of resistance": 2e-3, "random paths": 1e-3,
              "sensitivity of random paths": 2e-3}
