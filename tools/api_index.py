"""The public names with their signatures and kinds, for the site and the tests; and
docs/options.md: every option.

    PYTHONPATH=. python tools/api_index.py          writes docs/options.md
"""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import pkgutil
import re
import typing
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import olympus
from olympus._src.base import config

OPTIONS = Path(__file__).parent.parent / "docs" / "options.md"
CLASS = re.compile(r"<class '(?:\w+\.)*(\w+)'>")
MEMBER = re.compile(r"<(\w+\.\w+): [^<>]*>")
OBJECT = re.compile(r"<[^<>]*>")


def modules() -> Iterator[ModuleType]:
    """The public modules that have names of their own, in the order of their names."""
    os.environ["OLYMPUS_AS_JAX"] = "off"    # importing that module does nothing then
    found = ["olympus", *(m.name for m in pkgutil.walk_packages(olympus.__path__, "olympus."))]
    for name in sorted(found):
        if not name.startswith("olympus._src"):
            module = importlib.import_module(name)
            if getattr(module, "__all__", ()):
                yield module


def names(module: ModuleType) -> list[tuple[str, Any]]:
    """(name, value) of each callable that a module offers, primitives left out."""
    return [(name, value) for name in sorted(module.__all__)
            if callable(value := getattr(module, name)) and not name.endswith("_p")]


def signature(value: Any) -> str:
    """The parameters as they are called, without annotations; nothing for values without one."""
    if inspect.isclass(value) and issubclass(value, (BaseException, tuple)):
        return ""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    bare = [p.replace(annotation=p.empty) for p in found.parameters.values()]
    text = str(found.replace(parameters=bare, return_annotation=found.empty))
    text = MEMBER.sub(r"\1", CLASS.sub(r"\1", text))
    while OBJECT.search(text):      # the innermost first: a function's name may have <locals>
        text = OBJECT.sub("…", text)
    return text


def summary(value: Any) -> str:
    """The first paragraph of the docstring, on one line; an option's own words."""
    if isinstance(value, typing.NewType):
        kind = value.__supertype__.__name__.rpartition(".")[2]
        return f"The {kind}s of one kind, for annotations: checkers tell them from others."
    value = value.func if isinstance(value, functools.partial) else value
    text = getattr(value, "doc", None) if not inspect.isclass(value) else None
    text = text if isinstance(text, str) else inspect.getdoc(value) or ""
    return " ".join(text.split("\n\n")[0].split())


OPTIONS_HEAD = """# Options

This page lists every option with its default. There are three ways to set one:

- for the process, `olympus.config.update("olympus_enable_x64", True)`;
- from the start of a process, the variable `OLYMPUS_ENABLE_X64=1`;
- for a block, if `olympus` has a name for the option, `with olympus.enable_x64():`.

`olympus.config.olympus_enable_x64` reads an option. `tools/api_index.py` writes this page from
`_src/base/config.py`.

| option | default | what it does |
|---|---|---|
"""
IDLE_HEAD = """
## Options of JAX's that change nothing here

Olympus accepts these options. A value that asks for other behaviour gives one warning.

| option | default | why |
|---|---|---|
"""


def options_page() -> str:
    """The text of docs/options.md."""
    def rows(idle: bool) -> Iterator[str]:
        for name, option in sorted(config._options.items()):
            if (type(option) is config.Idle) is idle:
                doc = option.doc.removeprefix("Changes nothing, as ").replace("|", "or")
                default = "the user's cache folder" if name == "olympus_compilation_cache_dir" \
                    else f"`{option.default!r}`"
                yield f"| `{name}` | {default} | {doc} |\n"
    return "".join([OPTIONS_HEAD, *rows(False), IDLE_HEAD, *rows(True)])


if __name__ == "__main__":
    OPTIONS.write_text(options_page(), encoding="utf-8")
