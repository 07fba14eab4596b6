"""What mkdocstrings shows of our docstrings: what help() shows, the examples as code."""

import contextlib
import inspect
import pkgutil
import re

import griffe

EXAMPLE = re.compile(r"^>>> (?:.+\n?)+", re.MULTILINE)
RESULT = re.compile(r"^(Returns:\n +)(?=\S)", re.MULTILINE)


def fenced(text: str) -> str:
    """The text with each example, up to the next empty line, in a block of code.

    Griffe takes the text before the first colon of a result for its type; the signature has that.
    """
    text = RESULT.sub(r"\1: ", text)
    return EXAMPLE.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text)


def told(obj: griffe.Object) -> str:
    """The docstring as help() shows it: with the text that the source has once for a family."""
    if obj.is_function or obj.is_class:
        with contextlib.suppress(ImportError, AttributeError):
            return inspect.getdoc(pkgutil.resolve_name(obj.path)) or obj.docstring.value
    return obj.docstring.value


class Examples(griffe.Extension):
    """Puts the examples of every docstring into blocks, before its sections are read."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        if obj.docstring:
            obj.docstring.value = fenced(told(obj))
