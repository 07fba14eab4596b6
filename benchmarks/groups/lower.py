"""From a program to a StableHLO module."""

from ..cases import Anew, Group
from ..programs import PROGRAMS

group = Group("lower", "Lowering")


def lowered(program):
    def setup(L):
        make, args = program(L)
        return Anew(lambda: L.trace(make(), args), lambda traced: traced.lower())
    return setup


for _name, _program in PROGRAMS.items():
    group.case(_name)(lowered(_program))
