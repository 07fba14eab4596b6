"""Parts that docstrings share, written once: the arguments of a family, imports of examples.

The functions stay `def`s with a signature, a first sentence and an example of their own; at the end
of their file a table says the rest, and help() shows it as if it were written in each of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import CodeType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .typing import F  # which imports what imports this

# Descriptions of parameters, wherever a table completes docstrings that lack them.
_EVERYWHERE = {
    "device": "a device or sharding to put the result on.",
    "like": "None or an array of olympus; it has no effect.",
    "out": "must be None; arrays cannot be written to.",
    "out_sharding": "where the result is; see `lax.with_sharding_constraint`.",
    "subok": "has no effect, since arrays have no subclasses.",
}
_VARARGS, _VARKEYWORDS = 4, 8       # flags of code that takes *args, **kwargs
_Entry = tuple[list[str], str]      # the names of parameters, and the line that describes them


# The imports of examples, unless they have them themselves.
_IMPORTS = {"olympus": "import olympus", "onp": "import olympus.numpy as onp",
            **{name: f"from olympus import {name}" for name in ("lax", "nn", "random", "scipy")}}
_EXPERIMENTAL = _IMPORTS | {
    "sparse": "from olympus.experimental import sparse",
    "pl": "from olympus.experimental import pallas as pl",
    "pltpu": "from olympus.experimental.pallas import tpu as pltpu",
    "plgpu": "from olympus.experimental.pallas import triton as plgpu"}


def unfolded(doc: str) -> str:
    """A docstring with its sections below their heads, as help() shows them.

    The source has a section of one entry beside its head: `Returns: A bool.`
    """
    for head in ("Args: ", "Returns: "):
        at = doc.find(head)
        margin = doc[doc.rfind("\n", 0, at):at] if at > 0 else ""
        if margin.isspace():
            doc = f"{doc[:at].rstrip()}\n{margin}{head[:-1]}{margin}  {doc[at + len(head):]}"
    return doc


def with_imports(doc: str, module: str) -> str:
    """A docstring whose example begins with imports: of the usual names and the module it is in."""
    head, mark, example = doc.partition(">>>")
    if not mark:
        return doc
    package, _, own = module.rpartition(".")
    margin = head[head.rindex("\n"):]
    usual = _EXPERIMENTAL if package.startswith("olympus.experimental") else _IMPORTS
    lines = [line for name, line in {own: f"from {package} import {own}", **usual}.items()
             if f"{name}." in example and _uses(example, f"{name}.")
             and not ("import " in example and re.search(rf"import .*\b{name}\b", example))]
    return head + "".join(f"{mark} {line}{margin}" for line in lines) + mark + example


def _uses(example: str, name: str) -> bool:
    """Whether the name is in it, and is not an attribute or the end of another name.

    Without a regular expression: to compile one for each module would cost an import 1 ms.
    """
    return any(not (part[-1:].isalnum() or part[-1:] in "._")
               for part in example.split(name)[:-1])


def complete_docstrings(namespace: Mapping[str, Any], words: Mapping[str, str], *,
                        returns: str = "") -> None:
    """Complete the docstrings of the public functions of a file, or of a class.

    Args:
      namespace: of the file, whose own functions are completed, or of the class.
      words: a parameter's description, by its name, or "x, y" for several. A function gets the
        words for the parameters that it has and does not describe itself, in the order of its
        signature. returns: what those return that do not say it.

    Docstrings without an example are not for users, and stay as they are.
    """
    shared: dict[str, list[_Entry]] = {}
    for head, text in {**_EVERYWHERE, **words}.items():
        names = head.split(", ")
        shared.setdefault(names[0], []).append((names, f"{head}: {text}"))
    file = namespace.get("__name__")
    for name, fun in namespace.items():
        own = fun
        while hasattr(own, "__wrapped__"):
            own = own.__wrapped__
        code, doc = getattr(own, "__code__", None), getattr(fun, "__doc__", None)
        if (code is not None and doc and ">>>" in doc and name[0] != "_"
                and (file is None or own.__module__ == file)):
            parameters = _parameters(code)
            fits = [entry for p in parameters if p in shared for entry in shared[p]
                    if len(entry[0]) == 1 or {*entry[0]}.issubset(parameters)]
            if fits or returns:
                fun.__doc__ = _completed(doc, parameters, fits, returns)


def described_like(model: object) -> Callable[[F], F]:
    """Decorator: complete a docstring from the one of a sibling in the same file, the model.

    It takes the model's entries for the parameters that both have, its Returns and its Raises;
    neither its first sentence nor its example.
    """
    if not model.__doc__:       # under `python -OO`
        return lambda fun: fun
    doc = unfolded(model.__doc__)
    words, _, _ = doc.partition(">>>")
    parts = words.replace(f"\n{_margin(doc)}", "\n").split("\n\n")
    said = {part.split(maxsplit=1)[0]: part for part in parts[1:-1]}
    entries = [(text.partition(":")[0].replace("*", "").split(", "), text.replace("\n    ", "\n"))
               for text in _parameter_entries(said.get("Args:", ""), "\n  ")]

    def decorate(fun: F) -> F:
        parameters = _parameters(fun.__code__)
        fits = [entry for entry in entries if {*entry[0]}.issubset(parameters)]
        doc = _completed(fun.__doc__ or "", parameters, fits,
                         said.get("Returns:", "")[11:].replace("\n  ", "\n"))
        paragraph = "\n\n" + _margin(doc)
        if "Raises" in said and f"{paragraph}Raises" not in doc:
            raises = said["Raises"].replace("\n", paragraph[1:])
            doc = doc.replace(f"{paragraph}>>>", f"{paragraph}{raises}{paragraph}>>>", 1)
        fun.__doc__ = doc
        return fun
    return decorate


def _margin(doc: str) -> str:
    """The indentation of a docstring's lines: none from Python 3.13 on."""
    example = doc.index(">>>")
    return doc[doc.rindex("\n", 0, example) + 1:example]


def _parameters(code: CodeType) -> tuple[str, ...]:
    """The names of a function's parameters in the order of its signature."""
    names, rest = code.co_varnames, code.co_argcount
    end = rest + code.co_kwonlyargcount
    last = end + bool(code.co_flags & _VARARGS)
    return (names[:rest] + names[end:last] + names[rest:end]
            + names[last:last + bool(code.co_flags & _VARKEYWORDS)])


def _completed(doc: str, parameters: tuple[str, ...], fits: list[_Entry], returns: str) -> str:
    doc = unfolded(doc)
    example, margin = doc.index(">>>"), _margin(doc)
    paragraph, entry = f"\n\n{margin}", f"\n{margin}  "
    start = end = doc.find(f"{paragraph}Args:", 0, example)
    entry_of: dict[str, str] = {}
    if start >= 0:
        end = doc.index("\n\n", start + 2)
        for text in _parameter_entries(doc[start:end], entry):
            entry_of |= dict.fromkeys(text.partition(":")[0].replace("*", "").split(", "), text)
    else:
        start = end = _first(doc, f"{paragraph}Returns:", f"{paragraph}Raises", paragraph + ">>>")
    own = dict.fromkeys(entry_of.values())
    for names, text in fits:
        if entry_of.keys().isdisjoint(names):
            entry_of |= dict.fromkeys(names, text.replace("\n", f"{entry}  "))
    ordered = dict.fromkeys([entry_of[p] for p in parameters if p in entry_of]) | own
    said = entry.join([f"{paragraph}Args:", *ordered]) if ordered else ""
    if returns and f"{paragraph}Returns:" not in doc:
        said += f"{paragraph}Returns:{entry}" + returns.replace("\n", entry)
    return doc[:start] + said + doc[end:]


def _first(doc: str, *heads: str) -> int:
    """Where the first of these paragraphs is that the docstring has."""
    return next(at for at in map(doc.find, heads) if at > 0)


def _parameter_entries(block: str, entry: str) -> list[str]:
    """The entries of a paragraph, one for each parameter, with their continuation lines."""
    entries: list[str] = []
    for text in block.split(entry)[1:]:
        if text[0] == " ":
            entries[-1] += entry + text
        else:
            entries.append(text)
    return entries
