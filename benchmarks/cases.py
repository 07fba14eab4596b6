"""What is measured: a case has a name and, for each family of systems, a function that sets it up.

    group = Group("eager", "Operations at once")

    @group.case("add", *ARRAYS)
    def _(L):
        x = L.array(normal(8))
        return Loop(lambda: x + x, check=True)

A setup takes a system (`systems.py`) and returns a `Loop`, an `Anew` or `Figures`. Nothing here
imports NumPy or a system: processes that time an import load this module first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, NamedTuple

# Families: libraries with JAX's API, and libraries by themselves.
JIT, NUMPY, TORCH, SCIPY, NUMBA = FAMILIES = "jit", "numpy", "torch", "scipy", "numba"
ARRAYS = JIT, NUMPY, TORCH

# One file each, in the order of the tables.
GROUPS = ("start", "eager", "calls", "trees", "trace", "lower", "compile", "transform", "execute",
          "kernels", "growth", "depth", "chains", "checkpoint", "memory", "references", "libraries",
          "ffi", "sparse", "pallas")


class Loop(NamedTuple):
    """`run()` again and again; a sample is the time of one call.

    With `check`, the first result is compared with that of the first system.
    """

    run: Callable[[], Any]
    check: bool = False


class Anew(NamedTuple):
    """`run(make())`, of which `make` is not timed: what works once only, as a first trace."""

    make: Callable[[], Any]
    run: Callable[[Any], Any]
    count: int = 1      # calls in a sample


class Figures(NamedTuple):
    """What the setup has measured itself, by name: a `Time`, or megabytes."""

    values: dict[str, Any]


class Skipped(Exception):
    """Raised by a setup that cannot run here, with the reason; no error."""


class Case:
    """A row of a table, or several if its setups return `Figures`."""

    def __init__(self, group: str, name: str) -> None:
        self.group, self.name = group, name
        self.setups: dict[str, Callable[[Any], Any]] = {}
        self.fresh = False      # each sample in a new process, the library not yet imported
        self.warm = False       # with a folder of compiled programs, which a run before has filled
        self.slow = False       # left out by --quick
        self.after = ""         # the case that must not have taken longer than --limit

    def __str__(self) -> str:
        return f"{self.group}: {self.name}"


class Group:
    """The cases of one table, in the order of their definition."""

    def __init__(self, name: str, title: str) -> None:
        self.name, self.title = name, title
        self.cases: dict[str, Case] = {}

    def case(self, name: str, *families: str, **options: Any) -> Callable[[Callable], Callable]:
        """Decorator: a setup for some families; one name may have several."""
        def add(setup: Callable[[Any], Any]) -> Callable[[Any], Any]:
            case = self.cases.setdefault(name, Case(self.name, name))
            case.setups.update(dict.fromkeys(families or (JIT,), setup))
            vars(case).update(options)
            return setup
        return add


def group_named(name: str) -> Group:
    """The group of a file of `groups`."""
    return import_module(f"{__package__}.groups.{name}").group


def chosen(only: list[str], quick: bool) -> Iterator[Case]:
    """The cases of some groups, or of all; without the slow ones if it must be quick."""
    for name in only or GROUPS:
        yield from (case for case in group_named(name).cases.values()
                    if not (quick and case.slow))
