#!/usr/bin/env python3
"""In how many lines of signatures `Any` stands, by folder of `olympus/_src`.

    python tools/any_lines.py [--most N]

A line counts once, if it is one of a `def` and names `Any`. With more than N such lines in all the
exit status is 1: a parameter that takes any object at all is an `object`, and the operands and
results of rules, traces and builders have names in `base/typing.py`, `core/primitive.py`. Standard
library only.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "olympus" / "_src"
ANY = re.compile(r"\bAny\b")


def signature_lines(text: str) -> set[int]:
    """The numbers of the lines that signatures of functions take, decorators left out."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            parts = [n for n in ast.walk(node.args) if hasattr(n, "end_lineno")]
            parts += [node.returns] if node.returns else []
            last = max([node.lineno, *[n.end_lineno for n in parts]])
            found.update(range(node.lineno, last + 1))
    return found


def any_lines(text: str) -> int:
    """How many lines of a file's signatures name `Any`."""
    lines = text.splitlines()
    return sum(bool(ANY.search(lines[number - 1])) for number in signature_lines(text))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, metavar="N", help="fail if there are more")
    most = parser.parse_args(argv).most
    counts: Counter[str] = Counter()
    for path in ROOT.rglob("*.py"):
        counts[path.relative_to(ROOT).parts[0]] += any_lines(path.read_text(encoding="utf-8"))
    for folder, count in counts.most_common() if most is None else ():
        print(f"{folder:20}{count:6}")
    total = counts.total()
    print(f"{total} lines of signatures name Any" + ("" if most is None else f"; at most {most}"))
    return most is not None and total > most


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
