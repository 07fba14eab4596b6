"""How messages are laid out: lines of at most 100 columns, broken between clauses.

A message is `operation: the given value; the requirement; what to do.` One that is longer than a
line has its last clause, the remedy, on a line of its own.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator

WIDTH = 100
_UNHASHABLE = re.compile(r"unhashable type: '(?:[\w.]*Tracer|jaxlib._jax.ArrayImpl)'")
_SEQUENCE = "setting an array element with a sequence."
_END = re.compile(r"(?<!\.)(?<!e\.g)(?<!i\.e)[;.] ")


def in_lines(text: str) -> str:
    """The message with its long lines broken; short ones stay as they are.

    >>> print(in_lines("add: " + "one operand and " * 4 + "one more given; equal shapes are "
    ...                "required of all operands; reshape one."))
    add: one operand and one operand and one operand and one operand and one more given;
      equal shapes are required of all operands;
      reshape one.
    """
    if len(text) <= WIDTH:
        return text
    return "\n".join([line if len(line) <= WIDTH else _broken(line) for line in text.split("\n")])


def with_where(text: str, where: str) -> str:
    """The message with a line on where it happened, before the last clause, which is the remedy."""
    *said, last = _clauses(text)
    if len(said) < 2:
        return f"{text}\n  {where}"
    return f"{' '.join(said)}\n  {where};\n  {last}"


def in_our_words(error: BaseException) -> str | None:
    """Our message for an error of Python's or NumPy's about one of our values, else None.
    """
    text = str(error)
    if _UNHASHABLE.fullmatch(text):
        return ("hash: an array or a traced value given as a key of a dict or an element of a set; "
                "a hashable value is required; use its name or position as the key, or id(x), or "
                f"a tuple of numbers made outside of the transformed function ({text}).")
    if text == _SEQUENCE and isinstance(error.__cause__, TypeError):
        return (f"numpy: a traced value written into a NumPy array ({text[:-1]}); NumPy needs "
                "numbers now, and the value is known when the program runs; build the array with "
                "olympus.numpy, e.g. `a = olympus.numpy.zeros(3)` and `a = a.at[0].set(x)`.")
    return None


_ARITY = re.compile(r".*\(\) (takes|missing) .*argument.*")
_CALLED = {     # how verbs call the functions that they are given
    "associative_scan": "fn(a, b)", "cond": "true_fun(*operands) and false_fun(*operands)",
    "fori_loop": "body_fun(i, value)", "map": "f(x)", "scan": "f(carry, x)",
    "switch": "branch(*operands)", "while_loop": "cond_fun(value) and body_fun(value)"}


def miscalled(error: BaseException, callers: Iterable[str]) -> str | None:
    """The message for a user's function that does not take the arguments a verb calls it with.

    `callers`: our functions between the user's line and the call, the outermost first.
    """
    verb = next((name for name in callers if name in _CALLED), None)
    if verb is None or type(error) is not TypeError or not _ARITY.fullmatch(str(error)):
        return None
    return f"{verb}: {error}; {verb} calls {_CALLED[verb]}; pass a function that takes these."


def _broken(line: str) -> str:
    hang = " " * (len(line) - len(line.lstrip()) + (not line.startswith(" ")) * 2)
    *clauses, last = _clauses(line)
    lines: list[str] = []
    for clause in clauses:
        if lines and len(lines[-1]) + 1 + len(clause) <= WIDTH:
            lines[-1] += f" {clause}"
        else:
            lines += _wrapped(clause, hang if lines else "", hang)
    return "\n".join([*lines, *_wrapped(last, hang if lines else "", hang)])


def _wrapped(clause: str, first: str, hang: str) -> list[str]:
    return textwrap.wrap(clause, WIDTH, initial_indent=first, subsequent_indent=hang,
                         drop_whitespace=True, break_long_words=False, break_on_hyphens=False)


def _clauses(line: str) -> Iterator[str]:
    """The parts that end in a semicolon or a full stop outside of brackets."""
    start = 0
    for end in _END.finditer(line):
        part = line[start:end.start()]
        if sum(map(part.count, "([{")) <= sum(map(part.count, ")]}")):
            yield line[start:end.start() + 1]
            start = end.end()
    yield line[start:]
