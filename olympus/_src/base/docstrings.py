"""What the arguments of a family of functions are, said once and put into each docstring.

The functions stay `def`s with a signature, a first sentence and an example of their own; at the end
of their file a table says the rest, and help() shows it as if it were written in each of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["complete_docstrings"]


def complete_docstrings(namespace: Mapping[str, Any], words: Mapping[str, str], returns: str = ""
                        ) -> None:
    """Add to the docstrings of the public functions of a file, or of a class, what they leave out.

    Args:
      namespace: of the file (what `__all__` names is public) or the class.
      words: what a parameter is, by its name, or "x, y" for several. A function gets the words for
        the parameters that it has and does not describe itself, in the order of its signature.
      returns: what those return that do not say it.

    Docstrings without an example are not for users, and stay as they are.
    """
    entries = [(head.split(", "), f"{head}: {text}") for head, text in words.items()]
    for name in namespace.get("__all__", namespace):
        fun = own = namespace[name]
        while hasattr(own, "__wrapped__"):
            own = own.__wrapped__
        code, doc = getattr(own, "__code__", None), getattr(fun, "__doc__", None)
        if code is not None and doc and ">>>" in doc and name[0] != "_":
            parameters = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
            fun.__doc__ = _completed(doc, parameters, entries, returns)


def _completed(doc: str, parameters: tuple[str, ...], shared: list[tuple[list[str], str]],
               returns: str) -> str:
    margin = doc[doc.rindex("\n") + 1:]     # none since Python 3.13, which takes it away
    blocks, entry = doc.split("\n\n"), f"\n{margin}  "
    place = _of(blocks, f"{margin}Args:")
    own = _entries(blocks[place], entry) if place else []
    told = {name: e for e in own for name in e.partition(":")[0].replace("*", "").split(", ")}
    more = {names[0]: text.replace("\n", f"{entry}  ") for names, text in shared
            if all(n in parameters and n not in told for n in names)}
    if more:
        told |= more
        ordered = dict.fromkeys([*[told[p] for p in parameters if p in told], *own])
        if not place:
            place = _of(blocks, f"{margin}Returns:", f"{margin}Raises", f"{margin}>>>")
            blocks.insert(place, "")
        blocks[place] = entry.join([f"{margin}Args:", *ordered])
    if returns and not _of(blocks, f"{margin}Returns:"):
        at = place + 1 if place else _of(blocks, f"{margin}Raises", f"{margin}>>>")
        blocks.insert(at, f"{margin}Returns:{entry}" + returns.replace("\n", entry))
    return "\n\n".join(blocks)


def _of(blocks: list[str], *heads: str) -> int:
    """Which paragraph is the first that begins so; 0, the first sentence, if there is none."""
    return next((i for i, block in enumerate(blocks) if block.startswith(heads)), 0)


def _entries(block: str, entry: str) -> list[str]:
    """What a paragraph says of each parameter, with the lines in which it goes on."""
    found: list[str] = []
    for text in block.split(entry)[1:]:
        if text[0] == " ":
            found[-1] += entry + text
        else:
            found.append(text)
    return found
