"""Facts: attributes and methods by which passes ask about an operation besides its rules.

A fact has a default, and is declared where the primitive is. So passes keep no tables of names of
primitives, and `tests/test_facts.py` asks every primitive for every fact.
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
    "",         # not, or unknown
    "called",   # its program's operations are, as operations of the caller
    "fused",    # as an elementwise operation
    "long",     # as many operations, which its lowering or XLA makes of it before fusion
    "costly",   # but computed once for several readers, since XLA deems it expensive
    "moves",    # as an operation that takes elements from other places
    "spreads",  # as an operation that repeats elements, or makes them up
    "splits",   # as an operation of several results, each a part of the operand
    "reduces"]  # as an operation that combines elements along the axes of its param `axes`


class Indexed(NamedTuple):
    """The indices of an operation.

    first: the operand that contains the indices, or the first of one operand per axis.
    axes: for each component along the last axis of that operand, the axis that it indexes; None:
      one operand per axis.
    window: the size along each axis that is read or written at an index.
    """

    first: int
    axes: Sequence[int] | None
    window: Sequence[int]


class Facts:
    """The facts about an operation, with their defaults.

    Classes state facts as attributes. Members of a family get the facts in which they differ as
    keyword arguments: `elementwise("exp", …, pace=1.0)`.
    """

    name: str
    numpy_name: str = ""    # NumPy's name for it, in messages; "": `name`
    # Operands and results.
    multiple_results: bool = False
    arity: int | None = None    # the number of operands; None: any number
    elementwise: bool = False   # whether operands have the result's shape, or are rank-0 literals
    scalars: bool = False       # whether an elementwise operation takes any operand of rank 0
    takes_refs: bool = False    # whether an operand may be a reference
    open: bool = False      # whether params may be any hashable values, compared by their bits
    foreign: bool = False   # whether its rules, or its runs, call functions of users
    endless: bool = False   # whether it may run for ever, depending on its operands
    effectful: bool = False     # whether it defines `effects`
    # Names of params that are programs, or tuples of programs and None; None: look for them.
    programs: tuple[str, ...] | None = ()
    # Names of params that `lower` reads; None: all. Programs that differ in others compile once.
    lowered: tuple[str, ...] | None = None
    # Whether `lower` emits at most one operation, on all operands, from params and types alone.
    single: bool = False
    # For derivatives.
    linear: tuple[int, ...] = ()    # operands in which it is linear, each by itself
    additive: bool = False  # whether it is jointly linear in all operands of the result's dtype
    flat_in: tuple[int, ...] = ()   # operands in which it is piecewise constant: no tangent passes
    # For `lowering.fences`.
    algebra: str = ""       # its kind in XLA's algebraic simplifier; "": never merged with others
    # A function of one real operand is NaN outside of these bounds.
    domain: tuple[float, float] | None = None
    adds_up: bool = False   # whether it sums elements of its operand, beginning with 0
    multiplies: bool = False    # whether it multiplies elements of its operand with each other
    # For `lowering.holds`.
    fusion: Fusion = ""     # how XLA:CPU fuses it
    along: str = ""         # the name of the param with the axis or axes of `moved_axes`
    resizes: bool = False   # whether it takes parts of axes, or joins parts
    # Whether each device runs its body, on the parts that `mesh`, `in_specs` and `out_specs` give.
    per_device: bool = False
    replaces: bool = False  # whether its result is its first operand with some elements replaced
    # For `runtime.elements`: whether both emitters of XLA:CPU compute it equally well, of floats.
    emitters_agree: bool = True
    # For `interpreters.checks`.
    makes_nan: bool = True  # whether a result may be NaN though no operand is
    hands_on_nan: bool = False      # whether a NaN in a floating operand makes floating results NaN
    divides: bool = False   # whether it divides by its second operand, which may be 0
    looked_into: bool = False   # whether checks enter its one body, which it runs once
    # For `control.agreement`: whether its body's collectives are copies and signals of a kernel.
    exchanges: bool = False
    # For estimates of time and cost.
    pace: float = math.inf  # ns per element on one core (tools/dispatch_table.py); inf: unknown
    contracts: bool = False     # whether it is a sum of products: matrix units compute it
    # On a ring of devices: (bytes of an operand, devices) -> bytes on each link, steps.
    ring: Callable[[int, int], tuple[int, int]] | None = None
    branches: bool = False  # whether only one of the bodies in `applied` runs
    repeats: bool = False   # whether bodies run several times

    def indexed(self, avals: Sequence[ShapedArray], params: Params) -> Indexed | None:
        """The indices at which it reads or writes its first operand, for checks; None: none."""
        return None

    def hands_on(self, params: Params) -> bool:
        """Whether an equation with these params is NaN wherever a floating operand is."""
        return self.hands_on_nan

    def moved_axes(self, params: Params, shapes: Shapes) -> Sequence[int]:
        """The axes along which it moves or combines elements.

        `shapes` are the shapes of the operands, then of a result.
        """
        axes: Any = params[self.along] if self.along else ()
        return axes if isinstance(axes, tuple) else (axes,)

    def summed_axes(self, params: Params) -> Sequence[int] | None:
        """The axes of its first operand along which it sums products; None: it sums none."""
        return None

    def work(self, ins: Shapes, outs: Shapes, params: Params) -> float:
        """An estimate of its nanoseconds on one core, from the shapes of operands and results."""
        return self.pace * max(map(prod, [*ins, *outs]), default=0)

    def times(self, params: Params) -> int | None:
        """The number of runs of its bodies; None if unknown."""
        return None

    def given(self, params: Params, xs: Sequence[T]) -> Sequence[T]:
        """The items of `xs` (one per operand) at operands that every run of a body reads."""
        return xs

    def unchanged(self, params: Params, xs: Sequence[T]) -> Sequence[T]:
        """The items of `xs` (one per operand) at operands that a loop carries unchanged."""
        return ()

    def remedy(self, avals: Sequence[ShapedArray], params: Params) -> str:
        """Advice for an equation that runs far below a CPU's speed; "": no faster form is known.

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
    emitters_agree: bool
    fusion: Fusion
    hands_on_nan: bool
    kernels: Any
    kernels_from: int
    makes_nan: bool
    numpy_name: str
    pace: float
