"""From a function to its program."""

from ..cases import Anew, Group
from ..programs import PROGRAMS, transformer

group = Group("trace", "Tracing")


def traced(program):
    def setup(L):
        make, args = program(L)
        return Anew(make, lambda fun: L.trace(fun, args))
    return setup


for _name, _program in PROGRAMS.items():
    group.case(_name)(traced(_program))


@group.case("eval_shape of the transformer")
def _(L):
    make, args = transformer(L)
    return Anew(make, lambda fun: L.eval_shape(fun, *args))
