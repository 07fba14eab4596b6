"""MPAX: linear and quadratic programs with sparse constraints, by primal-dual steps."""

import jax
import jax.numpy as jnp
import numpy as np
from mpax import create_lp, create_qp, r2HPDHG, raPDHG


def main():
    rng = np.random.default_rng(0)
    # A transport problem: supplies of 3 places, demands of 4, and costs.
    costs = jnp.asarray(rng.uniform(1, 5, 12), jnp.float32)
    supply, demand = np.array([4.0, 6.0, 5.0]), np.array([3.0, 5.0, 2.0, 5.0])
    rows = np.concatenate([np.kron(np.eye(3), np.ones(4)), np.kron(np.ones(3), np.eye(4))])
    A, b = jnp.asarray(rows[:-1], jnp.float32), jnp.asarray([*supply, *demand[:-1]], jnp.float32)
    G, h = -jnp.eye(12), -jnp.full(12, 3.5)
    low, high = jnp.zeros(12), jnp.full(12, jnp.inf)
    solver = raPDHG(eps_abs=1e-5, eps_rel=1e-5, verbose=False)

    def best(costs, kind=solver, use_sparse_matrix=True):
        lp = create_lp(costs, A, b, G, h, low, high, use_sparse_matrix=use_sparse_matrix)
        found = kind.optimize(lp)
        return found.primal_solution @ costs, found.primal_solution

    value, plan = best(costs)
    halpern, _ = best(costs, r2HPDHG(eps_abs=1e-5, eps_rel=1e-5, verbose=False))
    Q = jnp.eye(12) * 0.5
    quadratic = solver.optimize(create_qp(Q, costs, A, b, G, h, low, high))
    several = jnp.stack([costs, costs[::-1], jnp.ones(12)])
    mapped = jax.jit(jax.vmap(lambda c: best(c, use_sparse_matrix=False)[0]))(several)
    return {"value": value, "met": jnp.abs(A @ plan - b).max() < 1e-3, "halpern": halpern,
            "quadratic": quadratic.primal_solution, "mapped": mapped,
            "integral": bool(jnp.abs(plan * 2 - jnp.round(plan * 2)).max() < 1e-2)}


TOLERANCES = {"value": 1e-3, "halpern": 1e-3, "quadratic": 5e-3, "mapped": 1e-3}
