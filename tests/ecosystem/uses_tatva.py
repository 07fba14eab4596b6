"""tatva: finite elements by energies, whose sparse tangents are found by colours and solved."""

import jax
import jax.numpy as jnp
from jax.experimental.sparse.linalg import spsolve
from jax.scipy.sparse.linalg import cg
from tatva import Mesh, Operator, element, sparse


def main():
    mesh = Mesh.unit_square(6, 5)
    op = Operator(mesh, element.Tri3())
    n = mesh.coords.shape[0]
    load = jnp.sin(3 * mesh.coords[:, 0]) * mesh.coords[:, 1]

    @jax.jit
    def energy(u, k=1.):
        slope = op.grad(u)
        quadratic = (1 + k * op.eval(u) ** 2) * (slope ** 2).sum(-1) / 2
        return op.integrate(quadratic + op.eval(u) ** 2 / 2 - op.eval(load) * op.eval(u))

    pattern = sparse.ColoredMatrix.from_csr(sparse.pattern_from_mesh(mesh, 1))
    residual = jax.grad(energy)
    tangent = sparse.jacfwd(residual, pattern)
    u = jnp.zeros(n)
    for _ in range(4):
        found = tangent(u)
        u = u - spsolve(found.data, found.indices, found.indptr, residual(u), tol=1e-9)
    K = tangent(u)
    rows, pointers = K.to_bcoo(), K.to_bcsr()
    v = jnp.cos(jnp.arange(n) / 3.)
    step = cg(lambda x: rows @ x, v, tol=1e-6)[0]
    return {
        "solution": u, "energy": energy(u), "tangent": K.to_dense(), "entries": int(K.data.size),
        "by rows": rows @ v, "by pointers": pointers @ v, "both": (rows.T @ jnp.stack([v, u], 1)),
        "cg": step, "sensitivity": jax.grad(lambda k: energy(u, k))(2.),
        "linearised": sparse.linearized_jacfwd(residual, pattern)(u)[1].data,
        "squared": (rows @ rows).todense()[3],
    }
