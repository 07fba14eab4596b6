"""How often comments and docstrings use the turns of phrase that hide their subject.

    python tools/english.py            counts, rates per 10,000 words, and the caps
    python tools/english.py FOLDER     every place in one folder

The exit status is 1 where a rate is above its cap. docs/style.md says how to reword.
"""

import argparse
import ast
import collections
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: name -> (pattern, at most so many per 10,000 words)
TURNS = {
    "what as a noun": (r"\bwhat (?:is|it|they|a|an|are|the|has|was|no)\b(?![^.:;]*\?)", 0.7),
    "that of": (r"\b(?:that|those) of\b", 2.3),
    "of which": (r"\bof (?:which|whom)\b", 0.8),
    "is of": (r"\b(?:is|are) of\b", 0.4),
    "opens with Of, Else, As": (r"(?:\A|(?<=[.!?]\s))(?:Of|Else|As)\b", 0.7),
}


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """(line, text) of each docstring, without its examples, and of each run of comments."""
    source = path.read_text()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                lines = [line for line in text.splitlines()
                         if not line.lstrip().startswith((">>>", "..."))]
                yield node.body[0].lineno, " ".join(" ".join(lines).split())
    run: list[str] = []
    start = last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if run and token.start[0] != last + 1:
                yield start, " ".join(run)
                run = []
            if not run:
                start = token.start[0]
            last = token.start[0]
            run.append(token.string.lstrip("#: "))
    if run:
        yield start, " ".join(run)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", help="print every place below it")
    folder = parser.parse_args(argv).folder
    words, counts = 0, collections.Counter[str]()
    for path in sorted((Path(folder) if folder else ROOT / "olympus").rglob("*.py")):
        for line, text in prose(path):
            words += len(text.split())
            for name, (pattern, _) in TURNS.items():
                for found in re.finditer(pattern, text):
                    counts[name] += 1
                    if folder:
                        near = text[max(0, found.start() - 60):found.end() + 60]
                        print(f"{path}:{line}: {name}: {near}")
    rates = {name: counts[name] * 10_000 / max(words, 1) for name in TURNS}
    for name, (_, cap) in TURNS.items():
        print(f"{name:24} {counts[name]:5}  {rates[name]:5.1f} per 10,000 words (at most {cap})")
    return any(rates[name] > cap for name, (_, cap) in TURNS.items())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
