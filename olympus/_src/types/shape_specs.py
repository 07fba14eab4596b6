"""The grammar of symbolic shapes: text to dimensions.

    shape  = "(" shape ")" | [dim {"," dim}] [","]      dim = sum | "_" | "..."
    sum    = ["+" | "-"] term {("+" | "-") term}        term = power {"*" power}
    power  = factor ["^" int]      factor = name | ["-"] int | operation "(" sum {"," sum} ")"
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .shape import maximum, minimum
from .symbolic import Factor, Term, dimension, operation

if TYPE_CHECKING:
    from .scopes import SymbolicScope

__all__ = ["parse"]

_TOKEN = re.compile(r"\s*(?:(?P<int>\d+)(?![\w.])|(?P<name>[^\W\d]\w*)|(?P<dots>\.\.\.)"
                    r"|(?P<mark>[()+*^,-])|(?P<end>\Z))")
_OPERANDS = {"floordiv": 2, "mod": 2, "max": 2, "min": 2, "non_negative": 1}


def parse(text: str, like: Sequence[int | None] | None, scope: SymbolicScope,
          shown: str) -> tuple[Any, ...]:
    """The dimensions that `text` spells; `like` fills `_` and `...`, `shown` is for messages."""
    return _Parser(text, like, scope, shown).whole()


class _Parser:
    """Reads from the front; `kind` and `token` are of the next token, which is at `at`."""

    def __init__(self, text: str, like: Sequence[int | None] | None, scope: SymbolicScope,
                 shown: str) -> None:
        self.text, self.like, self.scope, self.shown = text, like, scope, shown
        self.dims: list[Any] = []
        self.at = self.next_at = 0
        self.kind = self.token = ""
        self.advance()

    def advance(self) -> str:
        """Pass over the token, which is returned."""
        token, self.at = self.token, self.next_at
        found = _TOKEN.match(self.text, self.at)
        if found is None:
            raise self.error("unexpected text")
        self.kind, self.next_at = str(found.lastgroup), found.end()
        self.token = found[self.kind]
        return token

    def error(self, why: str) -> ValueError:
        return ValueError(f"syntax error in symbolic shape {self.shown} in dimension "
                          f"{len(self.dims)}: {why}. Parsed '{self.text[:self.at]}', remaining "
                          f"'{self.text[self.at:]}'.")

    def expect(self, mark: str) -> None:
        if self.token != mark or self.kind != "mark":
            raise self.error(f"'{mark}' is expected")
        self.advance()

    def whole(self) -> tuple[Any, ...]:
        self.shape()
        if self.kind != "end":
            raise self.error("the end of the shape is expected")
        return tuple(self.dims)

    def shape(self) -> None:
        if self.token == "(":
            self.advance()
            self.shape()
            self.expect(")")
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
        """The dimensions of `like` from here on, of which there must be `needed`."""
        count = len(self.dims)
        if self.like is None:
            raise self.error(f"spec contains {self.token} but no 'like' shape was given")
        if len(self.like) < count + needed:
            raise self.error(f"cannot resolve placeholder '{self.token}' because we parsed {count} "
                             f"already and 'like' shape has only {len(self.like)} dimensions")
        return self.like[count:]

    def add(self, d: Any) -> None:
        if d is None:
            raise self.error(f"unexpected placeholder for unknown dimension; like={self.like}")
        place = len(self.dims)
        if type(d) is int and self.like is not None and (
                place >= len(self.like) or self.like[place] != d):
            raise self.error(f"different size {d} for known dimension; like={self.like}")
        self.dims.append(d)

    def sum(self) -> Any:
        total: Any = 0
        sign = "+"
        if self.token in ("+", "-"):
            sign = self.advance()
        while True:
            term = self.term()
            total = total - term if sign == "-" else total + term
            if self.token not in ("+", "-"):
                return total
            sign = self.advance()

    def term(self) -> Any:
        product = self.power()
        while self.token == "*":
            self.advance()
            product = product * self.power()
        return product

    def power(self) -> Any:
        factor = self.factor()
        if self.token == "^":
            self.advance()
            if self.kind != "int":
                raise self.error("an integer is expected")
            factor = factor ** int(self.advance())
        return factor

    def factor(self) -> Any:
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
        return sign * int(self.advance())

    def operation(self, name: str) -> Any:
        self.expect("(")
        operands = [self.sum()]
        for _ in range(_OPERANDS[name] - 1):
            self.expect(",")
            operands.append(self.sum())
        self.expect(")")
        if name == "non_negative":
            return maximum(operands[0], 0)
        if name in ("max", "min"):
            return maximum(*operands) if name == "max" else minimum(*operands)
        x, y = operands
        if type(x) is type(y) is int:
            return x // y if name == "floordiv" else x % y
        return operation(name, x, y, self.scope)
