"""Facts: what passes ask about an operation besides its rules.

A fact is an attribute or a method with a default, declared where the primitive is. So passes keep
no tables of names of primitives, and `tests/test_facts.py` asks every primitive for every fact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, TypedDict

from ..base.typing import Params, T
from ..types.avals import ShapedArray
from ..types.shape import prod

Shapes: TypeAlias = Sequence[Sequence[int]]
# How XLA:CPU fuses an operation into its readers:
Fusion = Literal[
    "",         # not at all, as far as is known
    "called",   # as the operations of its program, which becomes part of the caller
    "fused",    # as an elementwise one
    "long",     # fused, as many operations, which its lowering or XLA makes of it before fusion
    "costly",   # fused, but computed once for several readers, since XLA deems it expensive
    "moves",    # it takes elements from other places
    "spreads",  # it repeats elements, or makes them up
    "splits",   # it has several results, each a part
    "reduces"]  # it combines elements along the axes of its param `axes`


class Indexed(NamedTuple):
    """The indices of an operation.

    first: the operand that has them, or the first of several, one for each axis.
    axes: for each component along the last axis of that operand, the axis that it indexes; None:
      there are several operands.
    window: the size along each axis that is read or written at an index.
    """

    first: int
    axes: Sequence[int] | None
    window: Sequence[int]


class Facts:
    """The facts about an operation, with the answers of one that states none.

    Classes state their facts as attributes; members of a family are given those in which they
    differ by name: `elementwise("exp", …, pace=1.0)`.
    """

    name: str
    numpy_name: str = ""    # NumPy's name of its function, for messages; "": the same
    # Operands and results.
    multiple_results: bool = False
    arity: int | None = None    # how many operands it takes; None: any number
    elementwise: bool = False   # operands have the result's shape, or are rank-0 literals
    scalars: bool = False       # and, among those, whether any operand may be of rank 0
    takes_refs: bool = False    # whether an operand may be a reference
    open: bool = False      # whether its params may be any hashable values: compared by their bits
    foreign: bool = False   # whether functions of users are called by its rules, or when it runs
    endless: bool = False   # whether it may run for ever, depending on its operands
    effectful: bool = False     # whether it defines `effects`
    # Its params that are programs, or tuples of programs and None; None: whichever are.
    programs: tuple[str, ...] | None = ()
    # Its params that `lower` reads; None: all. Programs that differ in others are compiled once.
    lowered: tuple[str, ...] | None = None
    # Whether `lower` emits one operation at most, on all of its operands, as params and types say.
    single: bool = False
    # For derivatives.
    linear: tuple[int, ...] = ()    # the operands in which it is linear, each by itself
    additive: bool = False  # whether it is linear jointly in all operands of the result's dtype
    flat_in: tuple[int, ...] = ()   # operands in which it is piecewise constant: no tangent passes
    # For `lowering.fences`.
    algebra: str = ""       # its kind to XLA's algebraic simplifier; "": never merged with others
    # A function of one operand is NaN where the operand is real and outside these bounds.
    domain: tuple[float, float] | None = None
    adds_up: bool = False   # whether it adds up elements of its operand, beginning with 0
    multiplies: bool = False    # whether it multiplies elements of its operand with each other
    # For `lowering.holds`.
    fusion: Fusion = ""     # how XLA:CPU fuses it
    along: str = ""         # its param that has the axis or axes of `moved_axes`
    resizes: bool = False   # whether it cuts parts out of axes, or joins parts
    # Whether each device runs its body, on parts as `mesh`, `in_specs` and `out_specs` say.
    per_device: bool = False
    replaces: bool = False  # whether its result is its first operand with other elements at places
    # For `interpreters.checks`.
    makes_nan: bool = True  # whether a result may be NaN though no operand is
    hands_on_nan: bool = False      # whether a NaN in a floating operand is one in such results
    divides: bool = False   # whether it divides by its second operand, which may be 0
    looked_into: bool = False   # whether checks look into its one body, which it runs once
    # For `control.agreement`: whether collectives of its body are copies and signals of a kernel.
    exchanges: bool = False
    # For the time and the cost of programs.
    pace: float = math.inf  # ns for an element on one core (tools/dispatch_table.py); inf: unknown
    contracts: bool = False     # whether it is a sum of products, which have units of their own
    # On a ring of devices: (bytes of an operand, devices) -> bytes on each link, steps.
    ring: Callable[[int, int], tuple[int, int]] | None = None
    branches: bool = False  # whether one of its bodies that are `applied` runs, and not all
    repeats: bool = False   # whether these bodies run several times

    def indexed(self, avals: Sequence[ShapedArray], params: Params) -> Indexed | None:
        """Where it reads or writes its first operand at computed places: for checks of indices."""
        return None

    def hands_on(self, params: Params) -> bool:
        """Whether an equation with these params gives a NaN wherever a floating operand has one."""
        return self.hands_on_nan

    def moved_axes(self, params: Params, shapes: Shapes) -> Sequence[int]:
        """The axes along which it moves or combines elements; shapes of operands and a result."""
        given: Any = params[self.along] if self.along else ()
        return given if isinstance(given, tuple) else (given,)

    def summed_axes(self, params: Params) -> Sequence[int] | None:
        """The axes of its first operand along which it sums products of two; None: it does not."""
        return None

    def work(self, ins: Shapes, outs: Shapes, params: Params) -> float:
        """About how many nanoseconds it takes on one core, for shapes of operands and results."""
        return self.pace * max(map(prod, [*ins, *outs]), default=0)

    def times(self, params: Params) -> int | None:
        """How often its bodies run; None if that is not known."""
        return None

    def given(self, params: Params, xs: Sequence[T]) -> Sequence[T]:
        """The items of `xs`, one for each operand, at operands that every run of a body reads."""
        return xs

    def unchanged(self, params: Params, xs: Sequence[T]) -> Sequence[T]:
        """The items of `xs`, one for each operand, at operands that a loop carries unchanged."""
        return ()

    def remedy(self, avals: Sequence[ShapedArray], params: Params) -> str:
        """What to write instead where it is far below a CPU's speed; "": nothing is known.

        docs/pictures.md has the measurements. Scatters and writes in loops have no remedy: XLA does
        them in place, and no other form that was tried is faster.
        """
        return ""


class GivenFacts(TypedDict, total=False):
    """The facts in which members of a family differ, as their constructors take them."""

    additive: bool
    algebra: str
    divides: bool
    domain: tuple[float, float]
    fusion: Fusion
    hands_on_nan: bool
    kernels: Any
    kernels_from: int
    makes_nan: bool
    numpy_name: str
    pace: float
