"""Kernels in interpret mode, beside the same without one."""

import importlib

from ..cases import Group, Loop
from ..inputs import normal

group = Group("pallas", "Kernels, interpreted")


def pallas(L):
    return importlib.import_module(f"{L.module.__name__}.experimental.pallas")


def run(L, fun, *args):
    fun, args = L.jit(fun), [L.array(x) for x in args]
    return Loop(lambda: L.wait(fun(*args)))


def matmul(L, pl, block=128):
    """The product of two matrices by blocks, along all three axes."""
    def kernel(x, y, o):
        @pl.when(pl.program_id(2) == 0)
        def _():
            o[...] = L.np.zeros((block, block), "float32")
        o[...] += x[...] @ y[...]

    def call(x, y):
        (m, k), n = x.shape, y.shape[1]
        return pl.pallas_call(
            kernel, L.module.ShapeDtypeStruct((m, n), x.dtype),
            grid=(m // block, n // block, k // block),
            in_specs=[pl.BlockSpec((block, block), lambda i, j, k: (i, k)),
                      pl.BlockSpec((block, block), lambda i, j, k: (k, j))],
            out_specs=pl.BlockSpec((block, block), lambda i, j, k: (i, j)), interpret=True)(x, y)

    return call


def by_rows(L, pl, kernel, rows):
    """A kernel on `rows` rows of an array at once."""
    def call(x):
        block = pl.BlockSpec((rows, *x.shape[1:]), lambda i: (i, *[0] * (x.ndim - 1)))
        return pl.pallas_call(kernel, L.module.ShapeDtypeStruct(x.shape, x.dtype),
                              grid=x.shape[0] // rows, in_specs=[block], out_specs=block,
                              interpret=True)(x)

    return call


@group.case("512² times 512², without a kernel")
def _(L):
    return run(L, lambda x, y: x @ y, normal(512, 512), normal(512, 512))


@group.case("512² times 512², blocks of 128³")
def _(L):
    return run(L, matmul(L, pallas(L)), normal(512, 512), normal(512, 512))


@group.case("softmax of 1024 rows, 64 steps")
def _(L):
    def kernel(x, o):
        e = L.np.exp(x[...] - x[...].max(-1, keepdims=True))
        o[...] = e / e.sum(-1, keepdims=True)

    return run(L, by_rows(L, pallas(L), kernel, 16), normal(1024, 512))


@group.case("10,000 steps of ten elements")
def _(L):
    def kernel(x, o):
        o[...] = x[...] + 1

    return run(L, by_rows(L, pallas(L), kernel, 10), normal(100_000))
