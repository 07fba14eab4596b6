"""Dimensions that are no numbers yet: integer polynomials of variables, and where they live.

A `Dimension` is a sum of terms with whole coefficients, a `Term` a product of powers of factors, a
`Factor` a variable or one of floordiv, mod, max, min of two dimensions. Terms have a total order,
the larger first: by size, then by name. Equal polynomials are written in one way, so that equality
compares the written form. A `SymbolicScope` (`scopes.py`) has the constraints and decides their
consequences.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, Protocol, Self, TypeAlias

import numpy as np

from ..base.errors import InconclusiveDimensionOperation
from ..base.typing import Array, DimSize
from .shape import SymbolicDim

Key: TypeAlias = tuple[Any, ...]        # a size, then what tells one of that size from another
MOST_DEGREE = 100       # of a product: a size of 64 bits is at most the 63rd power of 2


class Factor:
    """A variable, or an operation of two dimensions (each an int or a `Dimension`).

    `key` orders factors: by size first, so that an operation is larger than its operands.
    """

    __slots__ = ("name", "operands", "key", "_hash")

    def __init__(self, name: str, operands: tuple[DimSize, ...] = ()) -> None:
        self.name, self.operands = name, operands
        keys = tuple([_key_of(x) for x in operands])
        self.key: Key = (1 + sum(k[0] for k in keys), name, keys)
        self._hash = hash(self.key)

    def __eq__(self, other: object) -> bool:
        return self is other or isinstance(other, Factor) and self.key == other.key

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        if not self.operands:
            return self.name
        # A negative number is written as the sum that it is: - 2.
        shown = [f"- {-x}" if type(x) is int and x < 0 else str(x) for x in self.operands]
        return f"{self.name}({', '.join(shown)})"


class Term:
    """A product of factors with positive powers, the largest factor first; empty for 1."""

    __slots__ = ("powers", "key", "_hash")

    def __init__(self, powers: tuple[tuple[Factor, int], ...]) -> None:
        self.powers = powers
        self.key: Key = (sum(1 + p * f.key[0] for f, p in powers),
                                     tuple([(f.key, p) for f, p in powers]))
        self._hash = hash(self.key)

    def __eq__(self, other: object) -> bool:
        return self is other or isinstance(other, Term) and self.key == other.key

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return "*".join([str(f) if p == 1 else f"{f}^{p}" for f, p in reversed(self.powers)])

    @property
    def factor(self) -> Factor | None:
        """The only factor, where the term is one."""
        return self.powers[0][0] if len(self.powers) == 1 and self.powers[0][1] == 1 else None

    def times(self, other: Term, sign: int = 1) -> Term | None:
        """The product, or with `sign` -1 the quotient, which is None where it is no term."""
        powers = dict(self.powers)
        for factor, power in other.powers:
            powers[factor] = powers.get(factor, 0) + sign * power
            if powers[factor] < 0:
                return None
        if sum(powers.values()) > MOST_DEGREE:
            raise ValueError(f"shape arithmetic: a product of more than {MOST_DEGREE} factors "
                             "given; at most so many are allowed.")
        return Term(tuple(sorted([p for p in powers.items() if p[1]], key=_factor_key,
                                 reverse=True)))


def _factor_key(power: tuple[Factor, int]) -> Key:
    return power[0].key


def _term_key(entry: tuple[Term, int]) -> Key:
    return entry[0].key


def _key_of(x: DimSize) -> Key:
    return x.key if isinstance(x, Dimension) else (1, ((ONE.key, x),))


ONE = Term(())


class Scope(Protocol):
    """The side of a `SymbolicScope` that its dimensions see."""

    rewrites: dict[Term, tuple[DimSize, int]]
    multiples: dict[Term, int]

    def order(self, d: DimSize) -> int | None: ...

    def decide(self, x: DimSize, sign: str, y: DimSize) -> bool: ...

    def refuse(self, other: Dimension, when: str) -> NoReturn: ...

    def range(self, d: DimSize) -> tuple[float, float]: ...

    @property
    def given(self) -> tuple[str, ...]: ...


def _operator(by_value: Callable[..., object], exact: Callable[[Dimension, DimSize], object], *,
              swapped: bool = False) -> Any:
    """An operator of dimensions: exact beside ints and dimensions, else of the array's value."""
    def operation(self: Dimension, other: object) -> Any:
        n = whole(other)
        return self._by_value(by_value, other, swapped) if n is None else exact(self, n)
    return operation


class Dimension(SymbolicDim):
    """A polynomial that is not constant, in normal form.

    `+`, `-`, `*`, `//`, `%`, `divmod` and `**` with ints and dimensions of the same scope give
    dimensions, or ints where the result is constant. With arrays, tracers and floats, and for `/`,
    the dimension is the array of its value. Comparisons hold for all values that the constraints
    allow, or raise InconclusiveDimensionOperation; `==` says whether two are written alike.

    >>> from olympus import export
    >>> a, b = export.symbolic_shape("a, b")
    >>> (a + b) * 2 - a, (4 * a + 2) // 2, a >= 1
    (2*b + a, 2*a + 1, True)
    """

    __slots__ = ("terms", "scope", "_key", "_hash", "__weakref__")
    __array_ufunc__ = None      # NumPy's arrays leave the operation to this class

    def __init__(self, terms: tuple[tuple[Term, int], ...], scope: Scope) -> None:
        self.terms, self.scope = terms, scope
        self._key: Any = None       # most are intermediate results that nobody looks up
        self._hash: int | None = None

    @property
    def key(self) -> Key:
        """The key that orders dimensions, by size first, and tells them apart."""
        if self._key is None:
            self._key = (sum(1 + abs(k) * t.key[0] for t, k in self.terms),
                         tuple([(t.key, k) for t, k in self.terms]))
        return self._key

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.key, id(self.scope)))
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Dimension) or self.scope is not other.scope:
            return False
        if self.key == other.key:
            return True
        # Rules may lead to one value by two ways.
        return bool(self.scope.rewrites) and difference(self, other) == 0

    def __str__(self) -> str:
        text = " ".join([_spell(*entry) for entry in self.terms])
        return text.removeprefix("+ ")

    __repr__ = __str__

    def __reduce__(self) -> tuple[object, ...]:
        return dimension, (dict(self.terms), self.scope)

    # Arithmetic

    __add__ = _operator(operator.add, lambda d, n: combine(d, n, 1))
    __radd__ = _operator(operator.add, lambda d, n: combine(d, n, 1), swapped=True)
    __sub__ = _operator(operator.sub, lambda d, n: combine(d, n, -1))
    __rsub__ = _operator(operator.sub, lambda d, n: combine(-d, n, 1), swapped=True)
    __mul__ = _operator(operator.mul, lambda d, n: _dimension_product(d, n))
    __rmul__ = _operator(operator.mul, lambda d, n: _dimension_product(d, n), swapped=True)
    __divmod__ = _operator(divmod, lambda d, n: _divided(d, n))
    __rdivmod__ = _operator(divmod, lambda d, n: _divided(n, d), swapped=True)
    __floordiv__ = _operator(operator.floordiv, lambda d, n: _divided(d, n)[0])
    __rfloordiv__ = _operator(operator.floordiv, lambda d, n: _divided(n, d)[0], swapped=True)
    __mod__ = _operator(operator.mod, lambda d, n: _divided(d, n)[1])
    __rmod__ = _operator(operator.mod, lambda d, n: _divided(n, d)[1], swapped=True)

    def __neg__(self) -> Dimension | int:
        return self * -1

    def __pos__(self) -> Self:
        return self

    def __pow__(self, power: object) -> Any:
        if (n := whole(power)) is None or isinstance(n, Dimension):
            if isinstance(power, float) and not power.is_integer():
                raise ValueError(
                    f"shape arithmetic: {self} ** {power} given; symbolic dimension cannot be "
                    "raised to non-integer powers; use an int, or convert it to an array first.")
            return self._by_value(operator.pow, power)
        if n < 0:
            raise ValueError(
                f"shape arithmetic: {self} ** {n} given; symbolic dimension cannot be raised to "
                "negative powers; an int of at least 0 is required.")
        if n > MOST_DEGREE:
            raise ValueError(f"shape arithmetic: {self} ** {n} given; a power of at most "
                             f"{MOST_DEGREE} is required.")
        return functools.reduce(operator.mul, [self] * n, 1)

    def __rpow__(self, other: object) -> Any:
        return self._by_value(operator.pow, other, True)

    def __truediv__(self, other: object) -> Any:
        return self._by_value(operator.truediv, other)

    def __rtruediv__(self, other: object) -> Any:
        return self._by_value(operator.truediv, other, True)

    def maximum(self, other: DimSize) -> DimSize:
        """The larger of this and an int or another dimension, decided or not."""
        return _extreme("max", self, other)

    def minimum(self, other: DimSize) -> DimSize:
        """The smaller of this and an int or another dimension, decided or not."""
        return _extreme("min", self, other)

    # Comparisons

    __ge__ = _operator(operator.ge, lambda d, n: d.scope.decide(d, ">=", n))
    __le__ = _operator(operator.le, lambda d, n: d.scope.decide(d, "<=", n))
    __gt__ = _operator(operator.gt, lambda d, n: d.scope.decide(d, ">", n))
    __lt__ = _operator(operator.lt, lambda d, n: d.scope.decide(d, "<", n))

    # Conversions

    def __index__(self) -> NoReturn:
        raise InconclusiveDimensionOperation(
            f"Symbolic dimension '{self}' used in a context that requires a constant; what depends "
            "on its number cannot be traced for all sizes; give this size as a number.")

    __int__ = __float__ = __index__

    def __olympus_array__(self) -> Array:
        return _value_of(self)

    def _by_value(self, operation: Callable[..., object], other: object, swapped: bool = False
                  ) -> object:
        """The operation on the array of this dimension's value."""
        value = _value_of(self)
        return operation(other, value) if swapped else operation(value, other)


def _spell(term: Term, k: int) -> str:
    sign, size = "+" if k > 0 else "-", abs(k)
    if term is ONE or not term.powers:
        return f"{sign} {size}"
    return f"{sign} {term}" if size == 1 else f"{sign} {size}*{term}"


def _no_value(d: DimSize) -> NoReturn:
    raise TypeError(f"shape arithmetic: the value of the symbolic dimension {d} is asked for; "
                    "arrays are made by olympus.numpy; import it first.")


_value_of: Callable[[DimSize], Array] = _no_value


def set_value_of(make: Callable[[DimSize], Array]) -> None:
    """Let `make(dimension)` be the array that stands for a dimension's value."""
    global _value_of
    _value_of = make


def is_symbolic_dim(p: object) -> bool:
    """Whether a dimension is symbolic, and no int.

    Args: p: an entry of a shape.
    Returns: True for a symbolic dimension, False for an int and anything else.

    >>> [export.is_symbolic_dim(d) for d in export.symbolic_shape("b, 3")]
    [True, False]
    """
    return isinstance(p, SymbolicDim)


def whole(x: object) -> DimSize | None:
    """An int or a dimension as an operand of polynomials; None for anything else."""
    if type(x) is int or isinstance(x, Dimension):
        return x
    if isinstance(x, (int, np.integer)) or isinstance(x, np.ndarray) and (
            x.ndim == 0 and x.dtype.kind in "iu"):
        return int(x)
    return None


def terms_of(x: DimSize) -> tuple[tuple[Term, int], ...]:
    """The terms of a dimension or an int."""
    if isinstance(x, Dimension):
        return x.terms
    return ((ONE, x),) if x else ()


def dimension(terms: Mapping[Term, int], scope: Scope) -> DimSize:
    """The dimension with these terms, by the scope's equalities; an int where it is constant."""
    sum_terms = [entry for entry in terms.items() if entry[1]]
    if scope.rewrites:
        sum_terms = _rewritten(sum_terms, scope)
    if not sum_terms:
        return 0
    if len(sum_terms) == 1 and not sum_terms[0][0].powers:
        return sum_terms[0][1]
    sum_terms.sort(key=_term_key, reverse=True)
    return Dimension(tuple(sum_terms), scope)


def _rewritten(terms: list[tuple[Term, int]], scope: Scope) -> list[tuple[Term, int]]:
    """Terms with the left sides of the scope's equalities replaced; each one once, so it ends."""
    used: set[Term] = set()
    known = dict(terms)
    pending = [t for t, _ in sorted(terms, key=_term_key, reverse=True)]
    while pending:
        term = pending.pop(0)
        k = known.get(term, 0)
        rewrite = _rewrite_for(term, k, scope.rewrites) if k else None
        if rewrite is None:
            continue
        left, (value, factor), rest = rewrite
        if (term, left) in used:
            continue
        used.add((term, left))      # type: ignore[arg-type]
        del known[term]
        for other, n in terms_of(value):
            product = other.times(rest)
            known[product] = known.get(product, 0) + n * (k // factor)      # type: ignore[index]
            pending.append(product)     # type: ignore[arg-type]
    return [entry for entry in known.items() if entry[1]]


def _rewrite_for(term: Term, k: int, rewrites: dict[Term, tuple[DimSize, int]]) -> Any:
    """A rewrite of a term or one of its powers: (its left side, (right side, k), the rest)."""
    parts = [term] if len(term.powers) < 2 else [term, *[Term((p,)) for p in term.powers]]
    for left in parts:
        rewrite = rewrites.get(left)
        if rewrite is not None and k % rewrite[1] == 0:
            return left, rewrite, term.times(left, -1)
    return None


def _scope_of(what: str, x: Any, y: Any) -> Scope:
    """The scope of two operands, which must be one."""
    if not isinstance(x, Dimension):
        return y.scope
    if isinstance(y, Dimension) and x.scope is not y.scope:
        x.scope.refuse(y, what)
    return x.scope


def combine(x: Any, y: DimSize, k: int) -> DimSize:
    """x + k * y."""
    if not isinstance(x, Dimension) and not isinstance(y, Dimension):
        return x + k * y
    scope = _scope_of("for linear combination", x, y)
    if y.__class__ is int:      # constants are the last of the terms
        if y == 0:
            return x
        others, (last, n), total = x.terms, x.terms[-1], k * y
        if not last.powers:
            others, total = others[:-1], total + n
        return Dimension((*others, (ONE, total)) if total else others, scope)
    terms = dict(terms_of(x))
    for term, n in terms_of(y):
        terms[term] = terms.get(term, 0) + k * n
    return dimension(terms, scope)


def difference(x: DimSize, y: DimSize) -> DimSize:
    """x - y."""
    return combine(x, y, -1)


def _dimension_product(x: Dimension, y: DimSize) -> DimSize:
    if not isinstance(y, Dimension):
        if y == 1:
            return x
        return dimension({t: k * y for t, k in x.terms}, x.scope) if y else 0
    scope = _scope_of("for multiplication", x, y)
    terms: dict[Term, int] = {}
    for s, j in x.terms:
        for t, k in y.terms:
            product: Any = s.times(t)
            terms[product] = terms.get(product, 0) + j * k
    return dimension(terms, scope)


def _divided(x: DimSize, y: DimSize) -> tuple[DimSize, DimSize]:
    """Quotient and remainder of floor division, by long division of polynomials if that is exact.

    An int may leave a remainder; a polynomial must not. What the scope knows to be a multiple of a
    number is that number times a quotient.
    """
    scope = _scope_of("for division", x, y)
    if y.__class__ is int and y == 0:
        raise ZeroDivisionError(f"shape arithmetic: {x} // 0 given; another divisor is required.")
    if y.__class__ is int and y == 1:
        return x, 0
    lead, k = terms_of(y)[0]
    quotient: Any = 0
    rest = x
    while isinstance(rest, Dimension):
        term, n = rest.terms[0]
        part = term.times(lead, -1)
        if part is None or not term.powers:
            break
        if n % k == 0:
            q = dimension({part: n // k}, scope)
        elif part == term and n * (unit := scope.multiples.get(term, 1)) % k == 0:
            q = operation("floordiv", dimension({term: 1}, scope), unit, scope) * (n * unit // k)
        else:
            break
        quotient, rest = quotient + q, rest - q * y
    else:
        if not isinstance(y, Dimension):
            return quotient + rest // y, rest % y
        if rest == 0:
            return quotient, 0
    return operation("floordiv", x, y, scope), operation("mod", x, y, scope)


def operation(name: str, x: DimSize, y: DimSize, scope: Scope) -> DimSize:
    """The dimension that is one operation, undecided."""
    return dimension({Term(((Factor(name, (x, y)), 1),)): 1}, scope)


def _extreme(name: str, x: DimSize, y: DimSize) -> DimSize:
    """max or min of two: one of them where it is known which."""
    scope = _scope_of(f"for {name}", x, y)
    larger, smaller = (x, y) if isinstance(x, Dimension) else (y, x)
    known = scope.order(difference(larger, smaller))
    if known is not None:
        return larger if (known > 0) == (name == "max") else smaller
    return operation(name, x, y, scope)


def plain_range(d: DimSize) -> tuple[float, float]:
    """Bounds that come of how a dimension is written alone: variables are at least 1."""
    if not isinstance(d, Dimension):
        return d, d
    low: float = 0
    high: float = 0
    for term, k in d.terms:
        least, most = _product_range(term)
        low, high = (low + k * least, high + k * most) if k > 0 else (low + k * most,
                                                                      high + k * least)
    return low, high


def _product_range(term: Term) -> tuple[float, float]:
    least: float = 1
    most: float = 1
    for factor, power in term.powers:
        low, high = _factor_range(factor)
        if term.factor is not None:
            return low, high
        if low < 0 or high == 0:
            return -math.inf, math.inf
        least, most = least * low ** power, most * high ** power
    return least, most


def _factor_range(factor: Factor) -> tuple[float, float]:
    if not factor.operands:
        return 1, math.inf
    x, y = factor.operands
    if factor.name in ("max", "min"):
        of = max if factor.name == "max" else min
        (a, b), (c, d) = plain_range(x), plain_range(y)
        return of(a, c), of(b, d)
    if type(y) is not int or y < 1:
        return -math.inf, math.inf
    if factor.name == "mod":
        return 0, y - 1
    low, high = [end if math.isinf(end) else end // y for end in plain_range(x)]
    return low, high


def symbols(d: DimSize) -> set[str]:
    """The names of the variables in a dimension."""
    if not isinstance(d, Dimension):
        return set()
    names: set[str] = set()
    for term, _ in d.terms:
        for factor, _ in term.powers:
            if factor.operands:
                names.update(*map(symbols, factor.operands))
            else:
                names.add(factor.name)
    return names


def evaluate(d: DimSize, env: Mapping[str, Any], extremes: Mapping[str, Callable[..., Any]]) -> int:
    """The value of a dimension whose variables have their values in `env`; KeyError for unknown
    ones.

    Values are whatever has `+`, `*`, `//` and `%`; `extremes` has functions "max" and "min" of
    them. A variable without value that the scope rewrites has the value of its right side.
    """
    if not isinstance(d, Dimension):
        return d
    total: Any = None
    for term, k in d.terms:
        value: Any = None
        for factor, power in term.powers:
            base = _factor_value(factor, d.scope, env, extremes)
            for _ in range(power):
                value = base if value is None else value * base
        value = k if value is None else value if k == 1 else value * k
        total = value if total is None else total + value
    return total


def _factor_value(factor: Factor, scope: Scope, env: Mapping[str, Any],
                  extremes: Mapping[str, Callable[..., Any]]) -> object:
    if not factor.operands:
        if factor.name not in env:
            rewrite = scope.rewrites.get(Term(((factor, 1),)))
            if rewrite is not None and rewrite[1] == 1:
                return evaluate(rewrite[0], env, extremes)
        return env[factor.name]
    x, y = [evaluate(operand, env, extremes) for operand in factor.operands]
    if factor.name in ("max", "min"):
        return extremes[factor.name](x, y)
    return x // y if factor.name == "floordiv" else x % y
