"""Facts about symbolic dimensions: the constraints of a scope and their consequences.

Facts are inequalities `polynomial >= 0`, linear in its terms. The least value of a polynomial is
found by elimination: a multiple of a fact that has the same largest term is subtracted, and the
rest has smaller terms only; a max or a min is replaced by either of its operands. So the result is
a bound, not always the best one: decided comparisons are right, and some stay undecided.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, NoReturn

from ..base import source
from ..base.errors import InconclusiveDimensionOperation
from ..base.typing import DimSize
from .shape_specs import parse
from .symbolic import (
    ONE, Dimension, Factor, Term, difference, dimension, operation, plain_range, terms_of, whole,
)

INFINITY = math.inf
Terms = tuple[tuple[Term, int], ...]


class Constraint(NamedTuple):
    """`value >= 0`, or `value == 0`, as the user wrote it."""

    text: str
    equal: bool
    value: Any      # before the rewriting that an equality causes


class Facts:
    """Inequalities by their largest terms, and the bounds of single terms."""

    def __init__(self) -> None:
        self.bounds: dict[Term, tuple[float, float]] = {}
        self.linear: dict[Term, list[Terms]] = {}
        self.learnt: set[Term] = set()
        self.least_known: dict[Terms, float] = {}
        self.ranges: dict[Any, tuple[float, float]] = {}
        self.given: list[Terms] | None = None   # the consequences, once all constraints are in

    def close(self) -> None:
        """From here on, new facts are combined with the facts known now, and no further."""
        self.given = list(self._all())

    def _all(self) -> Iterable[Terms]:
        for term in self.bounds:
            yield from self._bounds_of(term)
        for facts in self.linear.values():
            yield from facts

    def add(self, terms: Terms, text: str) -> None:
        """Note that a sum of terms is not negative."""
        *varying, last = terms or ((ONE, 0),)
        constant = 0
        if last[0].powers:
            varying.append(last)
        else:
            constant = last[1]
        if not varying:
            if constant < 0:
                raise ValueError(f"Unsatisfiable constraint: {text}")
            return
        divisor = math.gcd(*[k for _, k in varying])
        constant //= divisor        # all others are whole multiples
        lead, k = varying[0][0], varying[0][1] // divisor
        if len(varying) == 1:
            low, high = self.bounds.get(lead, (-INFINITY, INFINITY))
            low, high = (max(low, -constant), high) if k > 0 else (low, min(high, constant))
            if low > high:
                raise ValueError(f"Unsatisfiable constraint: {text}")
            if (low, high) == self.bounds.get(lead):
                return
            self.bounds[lead] = low, high
        else:
            scaled = tuple([(t, n // divisor) for t, n in varying])
            fact = scaled + (((ONE, constant),) if constant else ())
            known = self.linear.setdefault(lead, [])
            if fact in known:
                return
            known.append(fact)
        self.least_known.clear()
        self.ranges.clear()

    def assume(self, terms: Terms, text: str, known: list[Terms] | None = None) -> None:
        """`add`, with what follows from it and one other fact by eliminating a term of both.

        Other facts come from `known`, to which new ones are appended, or are all facts.
        """
        signs = {term: k > 0 for term, k in terms if term.powers}
        derived = [_without_term(terms, fact, term)
                   for fact in (self._all() if known is None else known) for term, k in fact
                   if signs.get(term, k > 0) != (k > 0)]
        for fact in (terms, *derived):
            self.add(fact, text)
            if known is not None:
                known.append(fact)

    def _bounds_of(self, term: Term) -> Iterable[Terms]:
        low, high = self.bounds.get(term, (-INFINITY, INFINITY))
        if low > -INFINITY:
            yield ((term, 1), (ONE, -int(low)))
        if high < INFINITY:
            yield ((term, -1), (ONE, int(high)))

    def learn(self, d: DimSize, scope: SymbolicScope) -> None:
        """Note what holds for every term of a dimension, whatever the constraints."""
        for term, _ in terms_of(d):
            if term.powers and term not in self.learnt:
                self.learnt.add(term)
                factor = term.factor
                if factor is not None:
                    for operand in factor.operands:
                        self.learn(operand, scope)
                else:
                    for f, _ in term.powers:
                        self.learn(dimension({Term(((f, 1),)): 1}, scope), scope)
                # Combined with the given facts alone: with all learnt ones they would grow without
                # bound.
                known = None if self.given is None else [*self.given]
                for fact in self._implied(term, scope):
                    for part, _ in terms_of(fact):      # products of a quotient and its divisor
                        if len(part.powers) > 1:
                            self.learn(Dimension(((part, 1),), scope), scope)
                    self.assume(terms_of(fact), f"{fact} >= 0", known)

    def _implied(self, term: Term, scope: SymbolicScope) -> Iterable[DimSize]:
        """Dimensions that cannot be negative, by the kind of the term."""
        t = dimension({term: 1}, scope)
        factor = term.factor
        if factor is None:
            yield from _distances_to_bounds(t, self._product_bounds(term, scope))
        elif not factor.operands:
            yield t - 1
        else:
            x, y = factor.operands
            if factor.name in ("max", "min"):
                sign = 1 if factor.name == "max" else -1
                yield sign * (t - x)
                yield sign * (t - y)
                bounds = _extreme_bounds(factor, self.range(x), self.range(y))
                yield from _distances_to_bounds(t, bounds)
            elif factor.name == "mod":
                yield from self._implied_by_mod(t, y)
            else:
                yield from self._implied_by_division(t, x, y, scope)

    def _implied_by_mod(self, t: DimSize, y: DimSize) -> Iterable[DimSize]:
        low, high = self.range(y)
        if low > 0:
            yield t
            yield y - 1 - t
            yield from _distances_to_bounds(t, (0, high - 1))
        elif high < 0:
            yield -t
            yield t - y - 1
            yield from _distances_to_bounds(t, (low + 1, 0))

    def _implied_by_division(self, t: DimSize, x: DimSize, y: DimSize, scope: SymbolicScope
                             ) -> Iterable[DimSize]:
        low, high = self.range(y)
        if low <= 0 <= high:
            raise InconclusiveDimensionOperation(
                f"Possible division by 0 in division by {y}; a divisor that is never 0 is "
                f"required; add a constraint such as '{y} >= 1'.")
        yield from _distances_to_bounds(t, _quotient_bounds(self.range(x), (low, high)))
        rest = x - t * y        # the remainder: of the sign of y, and nearer to 0
        remainder = operation("mod", x, y, scope)
        if low > 0:
            if self.least(terms_of(x - y)) >= 0:
                yield t - 1
            yield rest
            yield y - 1 - rest
        else:
            yield -rest
            yield rest - y - 1
        self.learn(remainder, scope)
        yield rest - remainder
        yield remainder - rest

    def _product_bounds(self, term: Term, scope: SymbolicScope) -> tuple[float, float]:
        low: float = 1
        high: float = 1
        for factor, power in term.powers:
            a, b = self.range(dimension({Term(((factor, 1),)): 1}, scope))
            ends = [_float_power(a, power), _float_power(b, power)]
            if power % 2 == 0 and a <= 0 <= b:
                ends.append(0)
            corners = [_float_product(p, q) for p in (low, high) for q in (min(ends), max(ends))]
            low, high = min(corners), max(corners)
        return low, high

    def range(self, d: DimSize) -> tuple[float, float]:
        """The bounds of a dimension whose terms are learnt."""
        terms = terms_of(d)
        opposite = tuple([(t, -k) for t, k in terms])
        low, high = self.least(terms), -self.least(opposite)
        if len(terms) > 1 and any(len(t.powers) > 1 or t.powers and t.powers[0][1] > 1
                                  for t, _ in terms):
            low, high = max(low, self._shifted(terms)), min(high, -self._shifted(opposite))
        return low, high

    def _shifted(self, terms: Terms) -> float:
        """The lower bound where each factor is at its own, if the sum grows with every factor.

        (b - 1) * (c - 1) is at least 0, though b*c - b - c + 1 is no sum of known facts.
        """
        total: dict[Term, int] = {}
        for term, k in terms:
            product = {ONE: k}
            for factor, power in term.powers:
                unit = Term(((factor, 1),))
                low = self.least(((unit, 1),))
                if low == -INFINITY:
                    return low
                for _ in range(power):
                    grown: dict[Term, int] = {}
                    for t, n in product.items():
                        for part, m in ((t.times(unit), n), (t, n * int(low))):
                            grown[part] = grown.get(part, 0) + m    # type: ignore[index,arg-type]
                    product = grown
            for t, n in product.items():
                total[t] = total.get(t, 0) + n
        least = total.pop(ONE, 0)
        return least if min(total.values(), default=0) >= 0 else -INFINITY

    def least(self, terms: Terms) -> float:
        """A lower bound of a sum of terms."""
        if not terms:
            return 0
        term, k = terms[0]
        if not term.powers:
            return k
        known = self.least_known.get(terms)
        if known is not None:
            return known
        best = -INFINITY
        facts = list(self._bounds_of(term))
        for fact in facts + self.linear.get(term, []):
            c = fact[0][1]
            if (c > 0) == (k > 0):
                low = self.least(_without_term(terms, tuple([(t, -n) for t, n in fact]), term))
                scale = abs(c) // math.gcd(c, k)
                best = max(best, low if low == -INFINITY else -(-int(low) // scale))
        factor = term.factor
        if factor is not None and factor.name in ("max", "min") and factor.operands:
            either = [self.least(_added(terms[1:], terms_of(x), k)) for x in factor.operands]
            best = max(best, max(either) if (k > 0) == (factor.name == "max") else min(either))
        self.least_known[terms] = best
        return best


def _added(terms: Terms, others: Terms, k: int) -> Terms:
    """terms + k * others, in order."""
    total = dict(terms)
    for term, n in others:
        total[term] = total.get(term, 0) + k * n
    return tuple(sorted([e for e in total.items() if e[1]], key=lambda e: e[0].key, reverse=True))


def _factor_of(terms: Terms, term: Term) -> int:
    return next(k for t, k in terms if t == term)


def _without_term(terms: Terms, fact: Terms, term: Term) -> Terms:
    """The least sum of positive multiples of both, of opposite signs at `term`, without it."""
    k, c = _factor_of(terms, term), _factor_of(fact, term)
    divisor = math.gcd(k, c)
    scaled = tuple([(t, n * (abs(c) // divisor)) for t, n in terms])
    return _added(scaled, fact, abs(k) // divisor)


def _distances_to_bounds(t: DimSize, bounds: tuple[float, float]) -> Iterable[DimSize]:
    low, high = bounds
    if low > -INFINITY:
        yield t - int(low)
    if high < INFINITY:
        yield int(high) - t


def _float_product(p: float, q: float) -> float:
    return 0 if p == 0 or q == 0 else p * q


def _float_power(base: float, power: int) -> float:
    return base ** power


def _extreme_bounds(factor: Factor, x: tuple[float, float], y: tuple[float, float]
                    ) -> tuple[float, float]:
    of = max if factor.name == "max" else min
    return of(x[0], y[0]), of(x[1], y[1])


def _quotient_bounds(x: tuple[float, float], y: tuple[float, float]) -> tuple[float, float]:
    corners = [_quotient(p, q) for p in x for q in y]
    return min(corners), max(corners)


def _quotient(p: float, q: float) -> float:
    """p // q, in the limit where one is infinite."""
    if math.isinf(q):
        if math.isinf(p):
            return INFINITY if (p > 0) == (q > 0) else -INFINITY
        return 0 if p == 0 or (p > 0) == (q > 0) else -1
    if math.isinf(p):
        return INFINITY if (p > 0) == (q > 0) else -INFINITY
    return int(p) // int(q)


_MOST_CONSTRAINTS = 100     # a decision costs up to the square of their number


class SymbolicScope:
    """A scope of dimensions that belong together: they mix, under its constraints.

    Args: constraints_str: texts `e1 >= e2`, `e1 <= e2` or `e1 == e2`; the left side of an equality
        is one term times an int, which is replaced by the right side wherever it appears.

    Raises ValueError for constraints that cannot all hold.

    >>> from olympus import export
    >>> scope = export.SymbolicScope(["a >= 4"])
    >>> a, = export.symbolic_shape("a", scope=scope)
    >>> a >= 3
    True
    """

    def __init__(self, constraints_str: Sequence[str] = ()) -> None:
        if isinstance(constraints_str, str):
            raise ValueError("The symbolic constraints should be a sequence of strings. Got "
                             f"{constraints_str!r}")
        if len(constraints_str) > _MOST_CONSTRAINTS:
            raise ValueError(f"SymbolicScope: {len(constraints_str)} constraints given; at most "
                             f"{_MOST_CONSTRAINTS} are allowed; leave out those that follow from "
                             "others.")
        self.rewrites: dict[Term, tuple[Any, int]] = {}
        self.multiples: dict[Term, int] = {}     # the number that a term is known to equal
        self.constraints: list[Constraint] = []
        self.facts = Facts()
        self.source, self.given = source.user_frame(), tuple(constraints_str)
        for text in constraints_str:
            self._constrain(text)
        self.facts.close()

    def __str__(self) -> str:
        lines = [f"{id(self)} created at {source.format_source(self.source)}"]
        if self.constraints:
            lines[0] += " with constraints:"
            lines += [f"  {c.text}" for c in self.constraints]
        return "\n".join(lines)

    __repr__ = __str__

    def _constrain(self, text: str) -> None:
        if not isinstance(text, str):
            raise ValueError(f"SymbolicScope constraint must be a string: got {text!r}")
        sign = next((s for s in ("==", ">=", "<=") if s in text), None)
        if sign is None:
            raise ValueError("Constraint parsing error: must contain one of '==' or '>=' or '<='; "
                             f"got {text!r}")
        sides = [parse(side, None, self, repr(side)) for side in text.split(sign, 1)]
        if [len(side) for side in sides] != [1, 1]:
            raise ValueError(f"Constraint parsing error: {text!r} given; one dimension on each "
                             "side is required.")
        (left,), (right,) = sides
        if sign == "<=":
            left, right = right, left
        if sign == "==":
            self._equate(text, left, right)
        else:
            self._note(Constraint(text, False, left - right))

    def _note(self, constraint: Constraint) -> None:
        """Take a constraint in, and what follows from it."""
        value = constraint.value
        if not isinstance(value, Dimension):
            if value < 0 or constraint.equal and value:
                raise ValueError(f"Unsatisfiable explicit constraint: {constraint.text}")
            return
        self.facts.learn(value, self)
        for k in (1, -1) if constraint.equal else (1,):
            self.facts.assume(tuple([(t, k * n) for t, n in value.terms]), constraint.text)
        self.constraints.append(constraint)

    def _equate(self, text: str, left: DimSize, right: DimSize) -> None:
        value = left - right
        if not isinstance(value, Dimension):
            self._note(Constraint(text, True, value))
            return
        if not isinstance(left, Dimension) or len(left.terms) != 1:
            raise ValueError(
                f"Invalid equality constraint: {text}. The left-hand-side must be of the form "
                "`term * coefficient`.")
        (term, k), = left.terms
        if term in self.rewrites:
            raise ValueError(
                f"Invalid equality constraint: {text}. Found multiple equality constraints with "
                f"the same left-hand-side: {term}; write one of them the other way round.")
        self.rewrites[term] = right, k
        self._note(Constraint(text, True, value))
        factor = term.factor
        if (factor is not None and k == 1 and factor.name == "mod" and right.__class__ is int
                and right == 0 and type(factor.operands[1]) is int):
            x: Any
            x, y = factor.operands      # what leaves no remainder is its quotient times the divisor
            quotient = operation("floordiv", x, y, self)
            if isinstance(quotient, Dimension):
                if x.terms[1:] == () and x.terms[0][1] == 1:
                    self.multiples[x.terms[0][0]] = y
                self._equate(f"{y * quotient} == {x}", y * quotient, x)

    def range(self, d: DimSize) -> tuple[float, float]:
        """Bounds of a dimension, remembered until another fact is known."""
        known = self.facts.ranges
        interval = known.get(d)
        if interval is None:
            self.facts.learn(d, self)
            interval = known[d] = self.facts.range(d)
        return interval

    def _range_for_sign(self, d: DimSize) -> tuple[float, float]:
        """Bounds, as tight as needed to know on which side of 0 they are."""
        bounds = plain_range(d)
        return bounds if bounds[0] >= 0 or bounds[1] < 0 else self.range(d)

    def order(self, d: DimSize) -> int | None:
        """1 where a dimension is known to be at least 0, -1 where at most 0, None where neither."""
        if not isinstance(d, Dimension):
            return 1 if d >= 0 else -1
        low, high = self._range_for_sign(d)
        return 1 if low >= 0 else -1 if high <= 0 else None

    def decide(self, x: DimSize, sign: str, y: DimSize) -> bool:
        """Whether a comparison holds, for all values that the constraints allow."""
        if isinstance(y, Dimension) and y.scope is not self:
            self.refuse(y, f"when comparing '{x}' {sign} '{y}'")
        larger, smaller = (x, y) if sign in (">=", "<") else (y, x)
        d = 0 if larger is smaller else difference(larger, smaller)
        low, high = self._range_for_sign(d)
        if low >= 0 or high < 0:
            return (low >= 0) == (sign in (">=", "<="))
        raise InconclusiveDimensionOperation(self._undecided(x, sign, y, larger, smaller))

    def _undecided(self, x: DimSize, sign: str, y: DimSize, larger: DimSize,
                   smaller: DimSize) -> str:
        used = f"\nUsing symbolic scope {self}" if self.constraints else ""
        return (
            f"Symbolic dimension comparison '{x}' {sign} '{y}' is inconclusive.{used}\n"
            "As far as is known it holds for some values of the variables and not for others. The "
            f"constraint '{larger} >= {smaller}' decides it, or its opposite "
            f"'{smaller} >= {larger + 1}': pass one to symbolic_shape or SymbolicScope.")

    def refuse(self, other: Dimension, when: str) -> NoReturn:
        """Raise for a dimension of another scope."""
        raise ValueError(f"Invalid mixing of symbolic scopes {when}.\nExpected scope {self}\n"
                         f"and found for '{other}' scope {other.scope}\nDimensions that meet are "
                         "made with one scope: symbolic_shape(..., scope=scope).")


def symbolic_shape(shape_spec: str | None, *, constraints: Sequence[str] = (),
                   scope: SymbolicScope | None = None,
                   like: Sequence[int | None] | None = None) -> tuple[DimSize, ...]:
    """A shape with symbolic dimensions, from text.

    Args:
      shape_spec: dimensions with commas between, in parentheses or not: ints, names, `e1 + e2`,
        `e1 - e2`, `e1 * e2`, `e^k`, `floordiv(e1, e2)`, `mod(e1, e2)`, `max(e1, e2)`,
        `min(e1, e2)`; `_` is the dimension of `like` at that place, `...` all that are left. None
        is `...`.
      constraints: relations of the sizes: `e1 >= e2`, `e1 <= e2`, `e1 == e2`. Every variable is at
        least 1.
      scope: the scope of the dimensions, a new one by default; it has its own constraints.
      like: a shape for the placeholders, with which the ints in `shape_spec` must agree.

    Raises ValueError for text that does not parse and for constraints that cannot hold.

    >>> export.symbolic_shape("b, 2*b+1, max(a, 4)", constraints=["b >= 2"])
    (b, 2*b + 1, max(a, 4))
    """
    if shape_spec is not None and not isinstance(shape_spec, str):
        raise ValueError("polymorphic shape spec should be None or a string. Found "
                         f"{shape_spec!r}.")
    if scope is None:
        scope = SymbolicScope(constraints)
    elif constraints:
        raise ValueError("Cannot specify both a `scope` and `constraints`.")
    return parse("..." if shape_spec is None else shape_spec, like, scope, repr(shape_spec))


def symbolic_dim_bounds(dimension: DimSize) -> tuple[float, float]:
    """Between which numbers a dimension is known to be, by its scope's constraints.

    Args: dimension: a symbolic dimension or an int.
    Returns: The lower and the upper bound, both included: ints, or `-inf` and `inf` where none is
      known. They hold, but need not be the tightest.

    Raises TypeError for anything but a dimension.

    >>> a, = export.symbolic_shape("a", constraints=["a <= 8"])
    >>> export.symbolic_dim_bounds(2 * a + 1)
    (3, 17)
    """
    d = whole(dimension)
    if d is None:
        raise TypeError(f"symbolic_dim_bounds: {dimension!r} given; a symbolic dimension or an int "
                        "is required; pass an entry of a shape.")
    return d.scope.range(d) if isinstance(d, Dimension) else (d, d)
