"""Wadler–Lindig documents, on jaxlib's printer.

A document is text with places where a line may break; `format` picks the breaks: a group stays on
one line if it fits into the width, else all its breaks become newlines.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from .lib import pretty_printer

if TYPE_CHECKING:
    Doc: TypeAlias = Any  # jaxlib has no stub for it
else:
    Doc = pretty_printer.Doc


def text(s: str, annotation: str | None = None) -> Doc:
    """A string without newlines; an annotation is printed after the line's end."""
    return pretty_printer.text(s, annotation)


def concat(docs: Sequence[Doc]) -> Doc:
    """One after the other."""
    return pretty_printer.concat(list(docs))


def nest(indent: int, doc: Doc) -> Doc:
    """The document with newlines in it indented by `indent` more columns."""
    return pretty_printer.nest(indent, doc)


def group(doc: Doc) -> Doc:
    """The document on one line if it fits."""
    return pretty_printer.group(doc)


def brk(s: str = " ") -> Doc:
    """A place to break: `s` while its group is on one line, otherwise a newline."""
    return pretty_printer.brk(s)


def join(separator: Doc, docs: Iterable[Doc]) -> Doc:
    """The documents with `separator` between them."""
    out: list[Doc] = []
    for doc in docs:
        if out:
            out.append(separator)
        out.append(doc)
    return concat(out)


def annotated(doc: Doc, annotation: str) -> Doc:
    """The document followed by a comment at the end of its line."""
    return concat([doc, text("", annotation)])


def format(doc: Doc, width: int = 80, *, use_color: bool = False,
           annotation_prefix: str = " # ", source_map: object = None) -> str:
    """The text of a document at a line width."""
    return doc._format(width, use_color=use_color, annotation_prefix=annotation_prefix,
                       source_map=source_map, output_format=pretty_printer.OutputFormat.TEXT,
                       separable_lines=False)
