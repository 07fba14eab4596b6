"""evosax: the covariance matrix adaptation and a differential evolution of test functions."""

import jax
import jax.numpy as jnp
from evosax.algorithms import CMA_ES, DifferentialEvolution


def rosenbrock(x):
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def minimise(strategy, key, start, generations):
    params = strategy.default_params
    state = start(strategy, key, params)

    @jax.jit
    def generation(state, key):
        ask, tell = jax.random.split(key)
        population, state = strategy.ask(ask, state, params)
        fitness = jax.vmap(rosenbrock)(population)
        state, metrics = strategy.tell(tell, population, fitness, state, params)
        return state, metrics["best_fitness"]

    return jax.lax.scan(generation, state, jax.random.split(key, generations))


def main():
    keys = jax.random.split(jax.random.key(0), 3)
    state, curve = minimise(CMA_ES(population_size=10, solution=jnp.zeros(3)), keys[0],
                            lambda s, key, params: s.init(key, jnp.zeros(3), params), 60)
    population = jax.random.normal(keys[2], (16, 3))
    fitness = jax.vmap(rosenbrock)(population)
    _, second = minimise(DifferentialEvolution(population_size=16, solution=jnp.zeros(3)), keys[1],
                         lambda s, key, params: s.init(key, population, fitness, params), 60)
    return {"adaptation": curve[::20], "evolution": second[::20], "improved":
            [bool(curve[-1] < curve[0]), bool(second[-1] < second[0])],
            "found": state.best_solution}
