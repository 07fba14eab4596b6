"""Chains of random keys: each draw splits the key that the one before has left."""

from functools import partial

from ..cases import Anew, Group, Loop
from ..programs import Program, salted

group = Group("chains", "Chains of random draws")


def draws(L, n, draw):
    def make():
        def run(key):
            found = []
            for _ in range(n):
                key, use = L.random.split(key)
                found.append(draw(use))
            return found
        return run
    return Program(make, (L.random.key(0),))


def normals(L, n):
    return draws(L, n, lambda key: L.random.normal(key, (10,)))


@group.case("trace and lower 20 × (split, bernoulli)")
def _(L):
    make, args = draws(L, 20, lambda key: L.random.bernoulli(key, 0.5, (10,)))
    return Anew(make, lambda fun: L.trace(fun, args).lower())


@group.case("run 16 × (split, normal)")
def _(L):
    make, args = normals(L, 16)
    run = L.jit(make())
    return Loop(lambda: L.wait(run(*args)))


@group.case("16 × (split, normal), not compiled")
def _(L):
    make, args = normals(L, 16)
    run = make()
    return Loop(lambda: run(*args))


def compiled(L, n):
    make, args = normals(L, n)
    return Anew(lambda: salted_draws(L, make()), lambda fun: L.jit(fun).lower(*args).compile())


def salted_draws(L, run):
    """Keys are no numbers, so the salt goes into a result."""
    fun = salted(L, lambda x: x)
    return lambda key: (draws := run(key), fun(draws[0]))


for _n in (1, 4, 16):
    group.case(f"compile n × (split, normal), n = {_n}")(partial(compiled, n=_n))
