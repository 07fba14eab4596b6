"""Lineax: systems by several solvers, least squares, a matrix known by its product, gradients."""

import jax
import jax.numpy as jnp
import lineax as lx


def main():
    keys = jax.random.split(jax.random.PRNGKey(0), 2)
    matrix = jax.random.normal(keys[0], (6, 6)) + 6 * jnp.eye(6)
    vector = jax.random.normal(keys[1], (6,))
    general = lx.MatrixLinearOperator(matrix)
    positive = lx.MatrixLinearOperator(matrix @ matrix.T, lx.positive_semidefinite_tag)
    tall = lx.MatrixLinearOperator(matrix[:, :3])
    product = lx.FunctionLinearOperator(lambda x: jnp.cumsum(x) + 3 * x,
                                        jax.ShapeDtypeStruct((6,), jnp.float32))
    tridiagonal = lx.TridiagonalLinearOperator(4 * jnp.ones(6), jnp.ones(5), -jnp.ones(5))

    @jax.jit
    def solutions(vector):
        return {"lu": lx.linear_solve(general, vector, lx.LU()).value,
                "chosen": lx.linear_solve(positive, vector).value,
                "cg": lx.linear_solve(positive, vector, lx.CG(rtol=1e-5, atol=1e-5)).value,
                "gmres": lx.linear_solve(product, vector, lx.GMRES(rtol=1e-5, atol=1e-5)).value,
                "qr": lx.linear_solve(tall, vector, lx.QR()).value,
                "svd": lx.linear_solve(tall, vector, lx.SVD()).value,
                "tridiagonal": lx.linear_solve(tridiagonal, vector).value}

    @jax.grad
    def gradient(matrix):
        operator = lx.MatrixLinearOperator(matrix)
        return jnp.sum(lx.linear_solve(operator, vector, lx.AutoLinearSolver(well_posed=True)
                                       ).value ** 2)

    found = solutions(vector)
    singular = lx.linear_solve(lx.MatrixLinearOperator(jnp.zeros((2, 2))), jnp.ones(2), lx.LU(),
                               throw=False)
    return {**found, "gradient": gradient(matrix)[0], "steps are counted":
            int(lx.linear_solve(positive, vector, lx.CG(1e-5, 1e-5)).stats["num_steps"]) > 0,
            "singular": bool(singular.result == lx.RESULTS.successful),
            "materialised": product.as_matrix()[2]}
