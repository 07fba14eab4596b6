"""Products of sparse arrays, their gradients and a solver; SciPy runs in NumPy's place."""

import importlib
from functools import cache

import numpy as np

from ..cases import JIT, NUMPY, Group, Loop
from ..inputs import normal

group = Group("sparse", "Sparse arrays")
SIZE, ENTRIES, SIDE = 100_000, 1_000_000, 1_000
BOTH = JIT, NUMPY


@cache
def random_matrix():
    """10⁶ entries, of 10⁵ × 10⁵, by rows."""
    scipy = importlib.import_module("scipy.sparse")
    rng = np.random.default_rng(0)
    places = rng.integers(0, SIZE, (2, ENTRIES))
    values = rng.normal(size=ENTRIES).astype(np.float32)
    return scipy.coo_matrix((values, tuple(places)), shape=(SIZE, SIZE)).tocsr()


@cache
def laplacian():
    """Of a square grid, 10⁶ unknowns."""
    scipy = importlib.import_module("scipy.sparse")
    line = scipy.diags([-1., 2., -1.], [-1, 0, 1], (SIDE, SIDE))
    found = scipy.kronsum(line, line, format="csr").astype(np.float32)
    found.sort_indices()
    return found


def bcoo(L, mat):
    """A matrix of SciPy as a BCOO with sorted indices."""
    sparse = importlib.import_module(f"{L.module.__name__}.experimental.sparse")
    coo = mat.tocoo()
    indices = np.stack([coo.row, coo.col], 1).astype(np.int32)
    return sparse.BCOO((L.array(coo.data), L.array(indices)), shape=mat.shape,
                       indices_sorted=True, unique_indices=True)


def product(L, x, fun=lambda m, x: m @ x):
    """A function of the matrix and an array."""
    if L.name == "numpy":
        return settled(lambda: fun(random_matrix(), x))
    mat, x, run = bcoo(L, random_matrix()), L.array(x), L.jit(fun)
    return settled(lambda: L.wait(run(mat, x)))


def settled(run):
    """A loop after the first calls, whose megabytes the system clears, page by page."""
    for _ in range(16):
        run()
    return Loop(run)


@group.case("10⁶ entries by a vector", *BOTH)
def _(L):
    return product(L, normal(SIZE))


@group.case("10⁶ entries by 8 columns", *BOTH)
def _(L):
    return product(L, normal(SIZE, 8))


@group.case("10⁶ entries by 8 vectors, by vmap")
def _(L):
    return product(L, normal(8, SIZE), L.vmap(lambda m, x: m @ x, in_axes=(None, 0)))


@group.case("gradient of the squared norm of A x")
def _(L):
    mat = bcoo(L, random_matrix())
    sparse = importlib.import_module(f"{L.module.__name__}.experimental.sparse")

    def loss(data, x):
        return ((sparse.BCOO((data, mat.indices), shape=mat.shape, indices_sorted=True,
                             unique_indices=True) @ x) ** 2).sum()

    run, x = L.jit(L.grad(loss, (0, 1))), L.array(normal(SIZE))
    return settled(lambda: L.wait(run(mat.data, x)))


def conjugate_gradients(L):
    """30 iterations on a grid of 10⁶ unknowns."""
    b = normal(SIDE * SIDE)
    if L.name == "numpy":
        cg = importlib.import_module("scipy.sparse.linalg").cg
        return settled(lambda: cg(laplacian(), b, rtol=0., maxiter=30)[0])
    cg = importlib.import_module(f"{L.module.__name__}.scipy.sparse.linalg").cg
    mat, b = bcoo(L, laplacian()), L.array(b)
    run = L.jit(lambda m, b: cg(lambda x: m @ x, b, tol=0., maxiter=30)[0])
    return settled(lambda: L.wait(run(mat, b)))


group.case("30 conjugate gradients of 10⁶ unknowns", *BOTH, slow=True)(conjugate_gradients)
