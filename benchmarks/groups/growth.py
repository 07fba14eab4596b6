"""How time grows with the size of what is traced, lowered and called."""

from functools import partial

from ..cases import Anew, Group, Loop
from ..inputs import normal
from ..programs import chain
from .calls import arrays

group = Group("growth", "Growth with size")


def trace(L, n):
    make, args = chain(L, n)
    return Anew(make, lambda fun: L.trace(fun, args))


def lower(L, n):
    make, args = chain(L, n)
    return Anew(lambda: L.trace(make(), args), lambda traced: traced.lower())


def call(L, n):
    f, xs = L.jit(lambda *xs: xs[0] + xs[-1]), arrays(L, n)
    return Loop(lambda: f(*xs))


def nested_vmap(L, n):
    def make():
        def f(x):
            return (L.np.sin(x) * x).sum()
        for _ in range(n):
            f = L.vmap(f)
        return f
    x = L.array(normal(*(2,) * n, 8))
    return Anew(make, lambda fun: L.trace(fun, (x,)))


def nested_grad(L, n):
    def make():
        def f(x):
            return L.np.sin(x) * L.np.exp(x) / (1 + x * x)
        for _ in range(n):
            f = L.grad(f)
        return f
    x = L.array(normal(1)).sum()
    return Anew(make, lambda fun: L.trace(fun, (x,)))


SERIES = [("trace operations", trace, (100, 1000, 10000)),
          ("lower operations", lower, (100, 1000, 10000)),
          ("call with arrays", call, (1, 10, 100, 1000)),
          ("trace vmap of vmap", nested_vmap, (1, 2, 4, 8)),
          ("trace grad of grad", nested_grad, (1, 2, 3, 4))]

for _name, _setup, _sizes in SERIES:
    for _n in _sizes:
        group.case(f"{_name}, n = {_n}", slow=_n >= 10000)(partial(_setup, n=_n))
