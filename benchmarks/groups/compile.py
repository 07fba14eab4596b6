"""From a StableHLO module to code, which is XLA's work in both; and compiling what was compiled."""

import itertools

import numpy

from ..cases import ARRAYS, Anew, Group
from ..programs import PROGRAMS, SLOW, perceptron, salted

group = Group("compile", "Compiling")


def compiled(program):
    def setup(L):
        make, args = program(L)
        return Anew(lambda: L.trace(salted(L, make()), args).lower(),
                    lambda lowered: lowered.compile())
    return setup


for _name, _program in PROGRAMS.items():
    group.case(_name, slow=_name in SLOW)(compiled(_program))


@group.case("an equal function made anew")
def _(L):
    make, args = perceptron(L)
    return Anew(make, lambda fun: L.wait(L.jit(fun)(*args)))


@group.case("x + x of a shape not seen before", *ARRAYS)
def _(L):
    sizes = itertools.count(50)
    return Anew(lambda: L.array(numpy.ones(next(sizes), "float32")), lambda x: L.wait(x + x), 3)


@group.case("a function of two operations")
def _(L):
    x = L.array(numpy.ones(8, "float32"))
    return Anew(lambda: salted(L, lambda x: x * 2 + 1), lambda fun: L.wait(L.jit(fun)(x)), 3)
