"""Calls of compiled functions: the dispatch between Python and the compiled code."""

from ..cases import Group, Loop
from ..inputs import normal

group = Group("calls", "Calls of compiled functions")


def arrays(L, count):
    return [L.array(normal(8, seed=i)) for i in range(count)]


@group.case("1 array")
def _(L):
    f, (x,) = L.jit(lambda x: x + 1), arrays(L, 1)
    return Loop(lambda: f(x))


@group.case("10 arrays")
def _(L):
    f, xs = L.jit(lambda *xs: xs[0] + xs[-1]), arrays(L, 10)
    return Loop(lambda: f(*xs))


def layers(L):
    xs = iter(arrays(L, 100))
    return {f"layer{i}": {"w": next(xs), "b": next(xs), "moments": (next(xs), next(xs))}
            for i in range(25)}


@group.case("a tree of 100 arrays")
def _(L):
    f, tree = L.jit(lambda tree: tree["layer0"]["w"] + tree["layer9"]["b"]), layers(L)
    return Loop(lambda: f(tree))


@group.case("a tree of 100 arrays, to the same")
def _(L):
    f, tree = L.jit(lambda tree: L.tree.map(lambda x: x + 1, tree)), layers(L)
    return Loop(lambda: f(tree))


@group.case("a static argument")
def _(L):
    f, (x,) = L.jit(lambda x, n: x + n, static_argnums=1), arrays(L, 1)
    return Loop(lambda: f(x, 3))


@group.case("keyword arguments")
def _(L):
    f, (x,) = L.jit(lambda x, *, y, z: x + y * z), arrays(L, 1)
    return Loop(lambda: f(x, y=x, z=x))


@group.case("a Python number")
def _(L):
    f, (x,) = L.jit(lambda x, s: x * s), arrays(L, 1)
    return Loop(lambda: f(x, 2.5))


@group.case("a NumPy array")
def _(L):
    f, x = L.jit(lambda x: x + 1), normal(8)
    return Loop(lambda: f(x))


@group.case("compiled ahead of time")
def _(L):
    (x,) = arrays(L, 1)
    f = L.jit(lambda x: x + 1).lower(x).compile()
    return Loop(lambda: f(x))


@group.case("jit(f)(x), f as before")
def _(L):
    def f(x):
        return x + 1
    (x,) = arrays(L, 1)
    return Loop(lambda: L.jit(f)(x))


@group.case("gradient of a jitted function")
def _(L):
    gradient, (x,) = L.grad(L.jit(lambda x: (x * x).sum())), arrays(L, 1)
    return Loop(lambda: gradient(x))
