"""What mkdocstrings shows of our docstrings: the examples, which stand bare there, as code."""

import re

import griffe

EXAMPLE = re.compile(r"^>>> (?:.+\n?)+", re.MULTILINE)


def fenced(text: str) -> str:
    """The text with each example, up to the next empty line, in a block of code."""
    return EXAMPLE.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text)


class Examples(griffe.Extension):
    """Puts the examples of every docstring into blocks, before its sections are read."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)
