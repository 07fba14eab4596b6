"""Operations on small arrays, one by one: what a notebook does, and what a call itself costs."""

import numpy

from ..cases import ARRAYS, JIT, NUMPY, TORCH, Anew, Group, Loop
from ..inputs import normal, random

group = Group("eager", "Single operations on small arrays")

# A function of the system, x: [8], y: [8] and m: [8, 8], with the same words for all of them.
FORMS = {
    "x + y": lambda L, x, y, m: lambda: x + y,
    "x * 2.0": lambda L, x, y, m: lambda: x * 2.0,
    "sin(x)": lambda L, x, y, m: lambda: L.np.sin(x),
    "x[3:7]": lambda L, x, y, m: lambda: x[3:7],
    "x[3]": lambda L, x, y, m: lambda: x[3],
    "where(x > y, x, y)": lambda L, x, y, m: lambda: L.np.where(x > y, x, y),
    "sum(x)": lambda L, x, y, m: lambda: L.np.sum(x),
    "m.mean(-1)": lambda L, x, y, m: lambda: m.mean(-1),
    "concatenate([x, y])": lambda L, x, y, m: lambda: L.np.concatenate([x, y]),
    "m.reshape(4, 16)": lambda L, x, y, m: lambda: m.reshape(4, 16),
    "m.T": lambda L, x, y, m: lambda: m.T,
    "m @ m": lambda L, x, y, m: lambda: m @ m,
    "einsum": lambda L, x, y, m: lambda: L.np.einsum("ij,kj->ik", m, m),
    "linalg.norm(x)": lambda L, x, y, m: lambda: L.np.linalg.norm(x),
    "zeros(8)": lambda L, x, y, m: lambda: L.np.zeros((8,)),
    "arange(8)": lambda L, x, y, m: lambda: L.np.arange(8),
    "(tanh(m @ m + x) ** 2).sum()":
        lambda L, x, y, m: lambda: (L.np.tanh(m @ m + x) ** 2).sum(),
}


def setup(form):
    def of(L):
        x, y, m = (L.array(a) for a in (normal(8), normal(8, seed=1), normal(8, 8, seed=2)))
        return Loop(form(L, x, y, m), check=True)
    return of


for _name, _form in FORMS.items():
    group.case(_name, *ARRAYS)(setup(_form))


@group.case("x[indices]", *ARRAYS)
def _(L):
    x, indices = L.array(normal(8)), L.array(numpy.array([1, 5, 2]))
    return Loop(lambda: x[indices], check=True)


@group.case("x.at[3].set(1.0)", JIT)
def _(L):
    x = L.array(normal(8))
    return Loop(lambda: x.at[3].set(1.0))


@group.case("8 normal numbers", JIT)
def _(L):
    key = L.random.key(0)
    return Loop(lambda: L.random.normal(key, (8,)))


@group.case("8 normal numbers", NUMPY)
def _(L):
    generator = random()
    return Loop(lambda: generator.standard_normal(8, dtype="float32"))


@group.case("8 normal numbers", TORCH)
def _(L):
    return Loop(lambda: L.randn(8))


@group.case("float(x)", *ARRAYS)
def _(L):
    x = L.array(normal(1)).sum()
    return Anew(lambda: x + 1, float, count=100)


@group.case("to NumPy", JIT, TORCH)
def _(L):
    x = L.array(normal(8))
    return Anew(lambda: x + 1, numpy.asarray, count=100)


@group.case("from NumPy", JIT)
def _(L):
    x, put = normal(8), L.device_put
    return Loop(lambda: put(x))


@group.case("from NumPy", TORCH)
def _(L):
    x = normal(8)
    return Loop(lambda: L.array(x))
