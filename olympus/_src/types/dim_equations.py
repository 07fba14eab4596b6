"""The values of dimension variables, from the sizes of arguments.

Each symbolic dimension of an argument is an equation: the dimension is the size that is given. One
that is linear in one variable, all others known, gives that variable; the others are conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..base.errors import InconclusiveDimensionOperation
from ..base.typing import DimSize
from .shape import maximum, minimum
from .symbolic import Dimension, Factor, Term, dimension, evaluate, is_symbolic_dim, symbols

_EXTREMES = {"max": maximum, "min": minimum}
_DOCS = "Please see docs/shape_polymorphism.md, 'Which sizes an argument may have'."
_MOST_INPUTS = 32       # that XLA's check of assertions has numbers for


def evaluated(d: DimSize, values: Mapping[str, Any]) -> int:
    """A dimension where its variables are ints or dimensions; KeyError for a variable without."""
    return evaluate(d, values, _EXTREMES)


class Condition(NamedTuple):
    """left == right, or left >= right, of the sizes of arguments; what to say if it fails."""

    equal: bool
    left: Any
    right: Any
    pieces: tuple[Any, ...]     # of text and dimensions

    def message(self) -> tuple[str, list[DimSize]]:
        """Text with {0}, {1} …, and the dimensions that stand there."""
        inputs: list[Any] = []
        parts = []
        for piece in self.pieces:
            if not isinstance(piece, str):
                if piece not in inputs and len(inputs) < _MOST_INPUTS:
                    inputs.append(piece)
                piece = f"{{{inputs.index(piece)}}}" if piece in inputs else "…"
            parts.append(piece)
        return "".join(parts), inputs

    def check(self, values: Mapping[str, DimSize]) -> None:
        """ValueError unless the condition holds of these sizes, which may be symbolic."""
        left, right = evaluated(self.left, values), evaluated(self.right, values)
        try:
            if left == right if self.equal else left >= right:
                return
        except InconclusiveDimensionOperation as unknown:
            raise self._broken(values) from unknown
        raise self._broken(values)

    def _broken(self, values: Mapping[str, DimSize]) -> ValueError:
        return ValueError("".join([p if isinstance(p, str) else str(evaluated(p, values))
                                   for p in self.pieces]))


class Solution(NamedTuple):
    """Variables as dimensions in the sizes of arguments, themselves variables with names.

    `sizes` has for each its name ("args[0].shape[1]"), the number of the argument and the axis.
    """

    sizes: list[tuple[str, int, int]]
    variables: dict[str, Any]
    conditions: list[Condition]

    def check(self, shapes: Sequence[Sequence[DimSize]]) -> dict[str, DimSize]:
        """The variables' values for arguments of these shapes; ValueError if there are none."""
        sizes = {name: shapes[arg][axis] for name, arg, axis in self.sizes}
        for condition in self.conditions:
            condition.check(sizes)
        return {name: evaluated(d, sizes) for name, d in self.variables.items()}


class _Equation(NamedTuple):
    wanted: Dimension
    name: str       # of the size that it must be


def solve(shapes: Sequence[Sequence[DimSize]], name_of: Callable[[int], str]) -> Solution:
    """Solve for the variables in the shapes of arguments.

    Args:
      shapes: of each argument.
      name_of: an argument's name in messages, by its number: "args[0]".

    Raises ValueError where a variable cannot be had from the sizes.
    """
    solution = Solution([], {}, [])
    pending = []
    for i, shape in enumerate(shapes):
        for axis, d in enumerate(shape):
            if is_symbolic_dim(d):
                name = f"{name_of(i)}.shape[{axis}]"
                solution.sizes.append((name, i, axis))
                pending.append(_Equation(d, name))
    if not pending:
        return solution
    specs = " Using the following polymorphic shapes specifications: " + ", ".join(
        [f"{name_of(i)}.shape = {_spelled(shape)}" for i, shape in enumerate(shapes)
         if any(map(is_symbolic_dim, shape))]) + "."
    solver = _Solver(solution, specs)
    count = len(pending) + 1
    first = pending[0].wanted.scope
    while pending and len(pending) < count:
        count = len(pending)
        pending = [e for e in pending if not solver.use(e)]
    if pending:
        unknown = sorted(set().union(*[symbols(e.wanted) for e in pending])
                         - set(solution.variables))
        raise ValueError(
            f"Cannot solve for values of dimension variables {{{', '.join(map(repr, unknown))}}}. "
            f"We can only solve linear uni-variate constraints.{specs} Unprocessed "
            "specifications: " + ", ".join([f"'{e.wanted}' for dimension size {e.name}"
                                            for e in pending])
            + f". Give an argument with an axis of that size alone. {_DOCS}")
    for constraint in first.constraints:
        solver.constrain(constraint)
    return solution


def _spelled(shape: Sequence[object]) -> str:
    return f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"


class _Solver:
    """Takes equations in one after the other; `obtained` has the variables' values so far."""

    def __init__(self, solution: Solution, specs: str) -> None:
        self.found, self.specs = solution, specs
        self.obtained: list[Any] = [" Obtained dimension variables: "]

    def require(self, equal: bool, left: DimSize, right: DimSize, *pieces: object) -> None:
        self.found.conditions.append(Condition(
            equal, left, right, (*pieces, self.specs, *self.obtained, f". {_DOCS}")))

    def use(self, equation: _Equation) -> bool:
        """Whether the equation gave a variable or a condition; else others must come first."""
        wanted, name = equation
        size = dimension({Term(((Factor(name), 1),)): 1}, wanted.scope)
        parts = _split_linear(wanted, self.found.variables)
        if parts is None:
            return False
        var, k, rest = parts
        if var is None:
            self.require(
                True, size, rest, "Input shapes do not match the polymorphic shapes specification. "
                f"Found inconsistency between dimension size {name} (= ", size,
                f") and the specification '{wanted}' (= ", rest, ").")
            return True
        value, remainder = divmod(size - rest, k)
        if k != 1:
            self.require(
                True, remainder, 0, "Input shapes do not match the polymorphic shapes "
                "specification. Division had remainder ", remainder,
                f" when computing the value of '{var}'.")
        self.found.variables[var] = value
        self.obtained += [f"'{var}' = ", value,
                       f" from specification '{wanted}' for dimension {name} (= ", size, "), "]
        self.require(False, value, 1, "Input shapes do not match the polymorphic shapes "
                     f"specification. Expected value >= 1 for dimension variable '{var}'.")
        return True

    def constrain(self, constraint: Any) -> None:
        """The condition that a constraint of the scope is, if its variables are there.

        One of other variables says nothing of the arguments, and an equation says what another is;
        an inequality of both cannot be checked.
        """
        named, known = symbols(constraint.value), self.found.variables.keys()
        unknown = sorted(named - known)
        if unknown and (constraint.equal or named.isdisjoint(known)):
            return
        if unknown:
            raise ValueError(
                f"Encountered dimension variable {unknown[0]!r} that is not appearing in the "
                "shapes of the function arguments, in the symbolic shape constraint "
                f"{constraint.text}. The following dimension variables are appearing: "
                f"{sorted(known)}.{self.specs} "
                "Give an argument with an axis of that size, or leave out the constraint.")
        value = evaluated(constraint.value, self.found.variables)
        self.require(
            constraint.equal, value, 0,
            f"Input shapes do not match the symbolic shape constraint {constraint.text}. Expected "
            f"'{constraint.value}' to be {'equal' if constraint.equal else 'greater or equal'} to "
            "0, but found ", value, ". ")


def _split_linear(d: Dimension, known: Mapping[str, DimSize]
                  ) -> tuple[str | None, int, DimSize] | None:
    """(variable, factor, known rest): the dimension is the sum of factor * variable and the rest;
    None if it is not.
    """
    var, k, rest = None, 0, 0
    for term, n in d.terms:
        try:
            rest = rest + evaluated(dimension({term: n}, d.scope), known)
        except KeyError:
            factor = term.factor
            if var is not None or factor is None or factor.operands:
                return None
            var, k = factor.name, n
    return var, k, rest

