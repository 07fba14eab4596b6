"""Derivatives and maps of functions that are not compiled: a session of trying things out."""

from ..cases import JIT, TORCH, Group, Loop
from ..inputs import normal

group = Group("transform", "Transformations, not compiled")
BOTH = JIT, TORCH


def layer(L):
    """x: [8] to [8], and x."""
    w = L.array(normal(8, 8))
    return lambda x: L.np.tanh(x @ w), L.array(normal(8, seed=3))


def loss(L):
    f, x = layer(L)
    return lambda x: (f(x) ** 2).sum(), x


@group.case("grad", *BOTH)
def _(L):
    f, x = loss(L)
    g = L.grad(f)
    return Loop(lambda: g(x), check=True)


@group.case("jvp", *BOTH)
def _(L):
    f, x = loss(L)
    return Loop(lambda: L.jvp(f, (x,), (x,)), check=True)


@group.case("vjp", *BOTH)
def _(L):
    f, x = loss(L)

    def run():
        y, pull = L.vjp(f, x)
        return pull(y)
    return Loop(run, check=True)


@group.case("linearize")
def _(L):
    f, x = loss(L)
    return Loop(lambda: L.linearize(f, x)[1](x), check=True)


@group.case("hessian", *BOTH)
def _(L):
    f, x = loss(L)
    g = L.hessian(f)
    return Loop(lambda: g(x), check=True)


@group.case("jacfwd", *BOTH)
def _(L):
    f, x = layer(L)
    g = L.jacfwd(f)
    return Loop(lambda: g(x), check=True)


@group.case("jacrev", *BOTH)
def _(L):
    f, x = layer(L)
    g = L.jacrev(f)
    return Loop(lambda: g(x), check=True)


@group.case("vmap", *BOTH)
def _(L):
    f, _ = loss(L)
    xs, g = L.array(normal(4, 8)), L.vmap(f)
    return Loop(lambda: g(xs), check=True)


@group.case("vmap of grad", *BOTH)
def _(L):
    f, _ = loss(L)
    xs, g = L.array(normal(4, 8)), L.vmap(L.grad(f))
    return Loop(lambda: g(xs), check=True)
