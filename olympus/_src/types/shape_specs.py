"""The grammar of symbolic shapes: text to dimensions.

    shape  = "(" shape ")" | [dim {"," dim}] [","]      dim = sum | "_" | "..."
    sum    = ["+" | "-"] term {("+" | "-") term}        term = power {"*" power}
    power  = factor ["^" int]      factor = name | ["-"] int | operation "(" sum {"," sum} ")"
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence

from ..base.typing import DimSize
from .shape import maximum, minimum
from .symbolic import MOST_DEGREE, Factor, Scope, Term, dimension, operation

_TOKEN = re.compile(r"\s*(?:(?P<int>\d+)(?![\w.])|(?P<name>[^\W\d]\w*)|(?P<dots>\.\.\.)"
                    r"|(?P<mark>[()+*^,-])|(?P<end>\Z))")
# Artifacts of others hold such text: whatever it says is read in well under a second.
_LONGEST = 10_000       # characters
_DEEPEST = 32           # parentheses within one another
_SIZES = range(-2**63, 2**63)
_OPERANDS = {"floordiv": 2, "mod": 2, "max": 2, "min": 2, "non_negative": 1}


def parse(text: str, like: Sequence[int | None] | None, scope: Scope,
          shown: str) -> tuple[DimSize, ...]:
    """The dimensions that `text` spells; `like` fills `_` and `...`, `shown` is for messages."""
    return _Parser(text, like, scope, shown).whole()


class _Parser:
    """Reads from the front; `kind` and `token` describe the next token, which is at `at`."""

    def __init__(self, text: str, like: Sequence[int | None] | None, scope: Scope,
                 shown: str) -> None:
        self.text, self.like, self.scope, self.shown = text, like, scope, shown
        self.dims: list[DimSize] = []
        self.at = self.next_at = self.depth = 0
        self.kind = self.token = ""
        if len(text) > _LONGEST:
            raise ValueError(f"symbolic shape {shown:.40}…: a text of {len(text)} characters "
                             f"given; at most {_LONGEST} are allowed; name parts of it as "
                             "variables, with constraints that say what they are.")
        self.advance()

    def advance(self) -> str:
        """Pass over the token, which is returned."""
        token, self.at = self.token, self.next_at
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            raise self.error("unexpected text")
        self.kind, self.next_at = str(match.lastgroup), match.end()
        self.token = match[self.kind]
        return token

    def error(self, why: str) -> ValueError:
        return ValueError(f"syntax error in symbolic shape {self.shown} in dimension "
                          f"{len(self.dims)}: {why}. Parsed '{self.text[:self.at]}', remaining "
                          f"'{self.text[self.at:]}'.")

    def expect(self, mark: str) -> None:
        if self.token != mark or self.kind != "mark":
            raise self.error(f"'{mark}' is expected")
        self.advance()

    @contextlib.contextmanager
    def parentheses(self) -> Iterator[None]:
        """Read the delimiters around the part read by `within`."""
        self.expect("(")
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.error(f"more than {_DEEPEST} parentheses within one another")
        yield
        self.expect(")")
        self.depth -= 1

    def whole(self) -> tuple[DimSize, ...]:
        self.shape()
        if self.kind != "end":
            raise self.error("the end of the shape is expected")
        return tuple(self.dims)

    def shape(self) -> None:
        if self.token == "(":
            with self.parentheses():
                self.shape()
            return
        while self.kind != "end" and self.token != ")":
            if self.kind == "dots":
                for size in self.placeholder(0):
                    self.add(size)
                self.advance()
                return
            if self.token == "_":
                self.add(self.placeholder(1)[0])
                self.advance()
            else:
                d = self.sum()
                self.add(d)
            if self.kind == "end" or self.token == ")":
                return
            self.expect(",")

    def placeholder(self, needed: int) -> Sequence[int | None]:
        """The dimensions of `like` from here on; there must be `needed`."""
        count = len(self.dims)
        if self.like is None:
            raise self.error(f"spec contains {self.token} but no 'like' shape was given")
        if len(self.like) < count + needed:
            raise self.error(f"cannot resolve placeholder '{self.token}' because we parsed {count} "
                             f"already and 'like' shape has only {len(self.like)} dimensions")
        return self.like[count:]

    def add(self, d: DimSize | None) -> None:
        if d is None:
            raise self.error(f"unexpected placeholder for unknown dimension; like={self.like}")
        place = len(self.dims)
        if type(d) is int and self.like is not None and (
                place >= len(self.like) or self.like[place] != d):
            raise self.error(f"different size {d} for known dimension; like={self.like}")
        self.dims.append(d)

    def sum(self) -> DimSize:
        total: DimSize = 0
        sign = "+"
        if self.token in ("+", "-"):
            sign = self.advance()
        while True:
            term = self.term()
            total = total - term if sign == "-" else total + term
            if self.token not in ("+", "-"):
                return total
            sign = self.advance()

    def term(self) -> DimSize:
        product = self.power()
        while self.token == "*":
            self.advance()
            product = self.checked(product * self.power())
        return product

    def checked(self, d: DimSize) -> DimSize:
        """The dimension itself, unless it is a number that no size can be."""
        if type(d) is int and d not in _SIZES:
            raise self.error("a number of more than 64 bits")
        return d

    def number(self) -> int:
        """The int that is next."""
        if len(self.token) > 19:
            raise self.error("a number of more than 64 bits")
        return int(self.advance())

    def power(self) -> DimSize:
        factor = self.factor()
        if self.token == "^":
            self.advance()
            if self.kind != "int":
                raise self.error("an integer is expected")
            power = self.number()
            if power > MOST_DEGREE:
                raise self.error(f"a power above {MOST_DEGREE}")
            factor = self.checked(factor ** power)
        return factor

    def factor(self) -> DimSize:
        if self.kind == "name" and self.token != "_":
            name = self.advance()
            if name in _OPERANDS and self.token == "(":
                return self.operation(name)
            return dimension({Term(((Factor(name), 1),)): 1}, self.scope)
        sign = -1 if self.token == "-" else 1
        if sign < 0:
            self.advance()
        if self.kind != "int":
            raise self.error("a name or an integer is expected")
        return sign * self.number()

    def operation(self, name: str) -> DimSize:
        with self.parentheses():
            operands = [self.sum()]
            for _ in range(_OPERANDS[name] - 1):
                self.expect(",")
                operands.append(self.sum())
        if name == "non_negative":
            return maximum(operands[0], 0)
        if name in ("max", "min"):
            return maximum(*operands) if name == "max" else minimum(*operands)
        x, y = operands
        if type(x) is type(y) is int:
            return x // y if name == "floordiv" else x % y
        return operation(name, x, y, self.scope)
