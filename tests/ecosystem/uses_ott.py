"""OTT: entropic transport of points and its gradients, a divergence, soft ranks, barycentres."""

import jax
import jax.numpy as jnp
from jax.experimental import sparse
from ott.geometry import costs, geodesic, geometry, pointcloud
from ott.problems.linear import linear_problem
from ott.problems.quadratic import quadratic_problem
from ott.solvers import linear
from ott.solvers.linear import acceleration, implicit_differentiation, sinkhorn
from ott.solvers.quadratic import gromov_wasserstein
from ott.tools import sinkhorn_divergence, soft_sort


def points(seed, shape):
    return jax.random.normal(jax.random.key(seed), shape)


def main():
    x, y = points(0, (12, 2)), points(1, (10, 2)) + 0.5
    weights = jax.nn.softmax(points(2, (12,)))

    def cost(x, weights):
        geom = pointcloud.PointCloud(x, y, epsilon=0.1)
        problem = linear_problem.LinearProblem(geom, a=weights)
        out = sinkhorn.Sinkhorn(threshold=1e-4)(problem)
        return out.reg_ot_cost, out

    (value, out), gradients = jax.jit(jax.value_and_grad(cost, argnums=(0, 1), has_aux=True))(
        x, weights)
    divergence, _ = sinkhorn_divergence.sinkdiv(x, y, epsilon=0.2)
    geom = pointcloud.PointCloud(x, y, cost_fn=costs.PNormP(1.5), epsilon=0.5)
    accelerated = linear.solve(geom, momentum=acceleration.Momentum(value=1.2))
    quadratic = quadratic_problem.QuadraticProblem(
        pointcloud.PointCloud(x), pointcloud.PointCloud(y))
    matched = gromov_wasserstein.GromovWasserstein(
        linear_solver=sinkhorn.Sinkhorn(), epsilon=5.0, max_iterations=5)(quadratic)
    values = jnp.array([3.0, 1.0, 2.0, 5.0])
    # Potentials are determined up to a constant, so the system of their derivatives is singular:
    # whether lineax solves it depends on roundings, hence on the processor.
    regular = implicit_differentiation.ImplicitDiff(solver_kwargs={"ridge_kernel": 0.1})
    grid = geometry.Geometry(cost_matrix=jnp.abs(jnp.arange(4.0)[:, None] - jnp.arange(4.0)))
    ring = jnp.roll(jnp.eye(20), 1, 1) + jnp.roll(jnp.eye(20), -1, 1)
    heat = geodesic.Geodesic.from_graph(sparse.BCOO.fromdense(ring), t=1e-1,
                                        eigval=jnp.float32(4.0))
    along = linear.solve(heat, a=jnp.ones(20) / 20, b=jax.nn.softmax(points(3, (20,))),
                         lse_mode=False)
    return {"heat": heat.apply_kernel(jnp.eye(20)[0]), "along": along.reg_ot_cost,
            "cost": value, "plan": out.matrix, "gradient": gradients[0],
            "by weights": gradients[1] - gradients[1].mean(), "converged": bool(out.converged),
            "divergence": divergence, "accelerated": accelerated.reg_ot_cost,
            "matched": matched.reg_gw_cost, "soft sort": soft_sort.sort(values),
            "soft ranks": jax.jacobian(lambda v: soft_sort.ranks(
                v, epsilon=0.1, implicit_diff=regular))(values),
            "discrete": linear.solve(grid).reg_ot_cost}
