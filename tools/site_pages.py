"""The pages of the site that docs/ does not hold, as a hook of mkdocs: the reference of the API, a
page for each public module, made from `__all__` and docstrings; the rooms' READMEs; CONTRIBUTING.md
and CHANGELOG.md. tools/docs.sh builds the site.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import logging
import pkgutil
import re
import types
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any

import api_index
import griffe
from markdown.extensions.toc import slugify
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from site_docstrings import fenced

ROOT = Path(__file__).parent.parent
log = logging.getLogger("mkdocs.hooks.site_pages")     # a warning fails the build

# Modules without a public parent module, in the order in which a newcomer needs them.
FIRST = ["olympus", "olympus.numpy", "olympus.lax", "olympus.random", "olympus.nn", "olympus.scipy",
         "olympus.tree", "olympus.tree_util", "olympus.debug", "olympus.sharding"]
SIBLINGS = {
    "numpy": ("NumPy", "https://numpy.org/doc/stable/reference/generated/{}.html"),
    "scipy": ("SciPy", "https://docs.scipy.org/doc/scipy/reference/generated/{}.html"),
}


# Names -------------------------------------------------------------------------------------------

@functools.cache
def modules() -> dict[str, ModuleType]:
    return {module.__name__: module for module in api_index.modules()}


@functools.cache
def package() -> griffe.Module:
    """The package as mkdocstrings reads it: from its source."""
    return griffe.load("olympus", search_paths=[str(ROOT)])


def in_source(path: str) -> bool:
    """Whether the source has a function or class of this name with a docstring for mkdocstrings."""
    try:
        found = package()[path.removeprefix("olympus.")]
        found = found.final_target if found.is_alias else found
    except (KeyError, griffe.AliasResolutionError):
        return False
    return (found.is_function or found.is_class) and found.has_docstring


@functools.cache
def of_jax() -> set[str]:
    """Our spelling of the names that JAX has."""
    frozen = json.loads((ROOT / "tests/data/api.json").read_text(encoding="utf-8"))["names"]
    return {f"{module}.{name}" for module, found in frozen.items() for name in found}


def beside(path: str) -> list[str]:
    """Who else has the name: NumPy and SciPy with links, JAX."""
    cells, other = [], path.removeprefix("olympus.")
    if found := SIBLINGS.get(other.partition(".")[0]):
        word, page = found
        with contextlib.suppress(ImportError, AttributeError):
            value = pkgutil.resolve_name(other)
            paged = not isinstance(value, type) and "scipy.stats." not in other
            cells.append(f"[{word}]({page.format(other)})" if paged else word)
    return [*cells, "JAX"] if path in of_jax() else cells


# Mentions ----------------------------------------------------------------------------------------

BLOCK = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
DOTTED = re.compile(r"(?<![\w.])(?:[A-Za-z_]\w*\.)+\w+")
TICKED = re.compile(r"`(\w+)(?:\([^`]*\))?`")
HEADING = re.compile(r"^(#{1,3}) (.+)$", re.MULTILINE)
# Pages whose prose says what differs, and the modules whose names they write without a prefix.
DIFFERENCES = {"numpy.md": ["numpy"], "beside_jax.md": ["", "numpy", "lax", "random", "nn"]}
UNREAD = {"options.md", "architecture.md", "glossary.md", "style.md", "index.md"}


@functools.cache
def short_names() -> dict[str, str]:
    """How pages write modules: `lax` for `olympus.lax`; of two the one with fewer dots."""
    found = {path.rpartition(".")[2]: path for path in sorted(modules(), reverse=True,
                                                              key=lambda path: path.count("."))}
    return found | {"onp": "olympus.numpy"} | {path: path for path in modules()}


def named(text: str, bare: list[str]) -> Iterator[str]:
    """The public names in a text: dotted ones, and some modules' names between backticks."""
    for dotted in DOTTED.findall(text):
        head, _, name = dotted.rpartition(".")
        module = short_names().get(head)
        if module and name in modules()[module].__all__:
            yield f"{module}.{name}"
    for name in TICKED.findall(text):
        for module in (f"olympus.{part}".rstrip(".") for part in bare):
            if name in modules()[module].__all__:
                yield f"{module}.{name}"


def sections(text: str) -> Iterator[tuple[str, str]]:
    """(anchor, text) of the parts of a page."""
    heads = [head for head in HEADING.finditer(text)
             if text.count("\n```", 0, head.start()) % 2 == 0]     # else a comment in code
    for head, after in zip(heads, [*heads[1:], None], strict=True):
        anchor = "" if len(head[1]) == 1 else "#" + slugify(head[2].replace("`", ""), "-")
        yield anchor, text[head.end():after.start() if after else None]


class Mentions:
    """Where the pages of docs/ speak of public names."""

    def __init__(self) -> None:
        #: path -> {page: (times, link, title)}, the section of the page that names it most, twice
        #: or more; a name in prose counts as two in code
        self.told: dict[str, dict[str, tuple[int, str, str]]] = defaultdict(dict)
        #: path -> links to the sections that say what differs
        self.differs: dict[str, list[str]] = defaultdict(list)
        for page in sorted((ROOT / "docs").glob("*.md")):
            if page.name not in UNREAD:
                self.read(page)

    def read(self, page: Path) -> None:
        text = page.read_text(encoding="utf-8")
        title = HEADING.search(text)[2]
        for anchor, part in sections(text):
            link = f"../{page.name}{anchor}"
            if page.name in DIFFERENCES:
                for path in named(BLOCK.sub("", part), DIFFERENCES[page.name]):
                    self.differs[path].append(f"[differs]({link})")
                continue
            found = Counter(named(part, [""])) + Counter(named(BLOCK.sub("", part), [""]))
            for path, times in found.items():
                if times > self.told[path].get(page.name, (1,))[0]:
                    self.told[path][page.name] = times, link, title

    def cell(self, path: str) -> str:
        """Links to at most three pages, those first that name it most."""
        most = sorted(self.told[path].values(), key=lambda told: -told[0])[:3]
        return ", ".join(f"[{title}]({link})" for _, link, title in most)


# Pages -------------------------------------------------------------------------------------------

def section(path: str, value: Any) -> str:
    """One name: for mkdocstrings to read from the source, or from the value where that has none."""
    if in_source(path):
        return f"::: {path}\n"
    name = path.rpartition(".")[2]
    text = inspect.getdoc(value) if isinstance(value, types.FunctionType) else None
    text = text or words(path, value)
    signature = f"```python\n{name}{api_index.signature(value)}\n```\n"
    return f'### {name} {{#{path} .doc-heading}}\n\n{signature}\n{fenced(plain(text))}\n'


OF_OTHERS = re.compile(r"jaxlib|ml_dtypes")
PARTS = re.compile(r"^(Args|Returns|Raises|Yields):$", re.MULTILINE)
ENTRY = re.compile(r"^  (\*{0,2}\w[\w, *]*): ", re.MULTILINE)


def plain(text: str) -> str:
    """A docstring as Markdown: its parts as bold words, its arguments as a list."""
    return ENTRY.sub(r"\n- `\1`: ", PARTS.sub(r"**\1**\n", text))


def words(path: str, value: Any) -> str:
    """The first paragraph of the docstring; for what others made, which has none, its origin."""
    if text := api_index.summary(value):
        return text
    if isinstance(value, types.GenericAlias):
        return f"For annotations: `{value}`."
    if origin := OF_OTHERS.search(f"{value.__module__} {value!r}"):
        return f"From {origin[0]}, written in C++."
    log.warning("%s has no docstring", path)
    return ""


def row(path: str, value: Any, mentions: Mentions) -> str:
    name = path.rpartition(".")[2]
    first = re.split(r"(?<=\.) (?=[A-Z])", words(path, value), maxsplit=1)[0].replace("|", "\\|")
    other = ", ".join([*beside(path), *mentions.differs[path][:1]])
    return f"| [`{name}`](#{path}) | {first} | {other} | {mentions.cell(path)} |"


def reference(module: ModuleType, mentions: Mentions) -> str:
    """The page of a module: a table of its names, each name, and the values it has besides."""
    home = module.__name__
    found = [(f"{home}.{name}", value) for name, value in api_index.names(module)]
    values = sorted({*module.__all__} - {path.rpartition(".")[2] for path, _ in found})
    parts = [f"# {home}", "", fenced(module.__doc__ or ""), ""]
    if found:
        parts += ["| name | what it is | also in | see also |", "|---|---|---|---|",
                  *(row(path, value, mentions) for path, value in found), ""]
    if values:
        parts += ["Besides, values and modules: " + ", ".join(f"`{name}`" for name in values) + ".",
                  ""]
    parts += ["## Names in full", ""] if found else []
    return "\n".join([*parts, *(section(path, value) for path, value in found)])


def contents() -> str:
    """The first page of the reference: the modules."""
    rows = [f"| [`{path}`]({path}.md) | {len(module.__all__)} | {api_index.summary(module)} |"
            for path, module in modules().items()]
    return "\n".join([
        "# The API by module", "",
        "Every public name, made from the modules at build time. The column *also in* says whether "
        "NumPy, SciPy or JAX have it in the same place; *differs* leads to what is told of it in "
        "[olympus.numpy beside NumPy](../numpy.md) or [beside JAX](../beside_jax.md).", "",
        "| module | names | what it holds |", "|---|---|---|", *rows, ""])


def navigation() -> list[Any]:
    """The modules, a package's under it."""
    def place(path: str) -> tuple[int, str]:
        family = ".".join(path.split(".")[:2])
        return FIRST.index(family) if family in FIRST else len(FIRST), family

    entries: list[Any] = ["api/index.md"]
    for (_, family), members in groupby(sorted(modules(), key=place), place):
        pages = [{path.removeprefix(f"{family}."): f"api/{path}.md"} for path in members]
        entries += pages if len(pages) == 1 else [{family: pages}]
    return entries


# The hook ----------------------------------------------------------------------------------------

def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and their places in the navigation."""
    mentions = Mentions()

    def add(name: str, text: str) -> None:
        files.append(File.generated(config, name, content=text))

    add("api/index.md", contents())
    for path, module in modules().items():
        add(f"api/{path}.md", reference(module, mentions))
    rooms = sorted((ROOT / "olympus/_src").glob("*/README.md"))
    for room in rooms:
        add(f"rooms/{room.parent.name}.md", room.read_text(encoding="utf-8"))
    for name in ("CONTRIBUTING", "CHANGELOG"):
        add(f"{name.lower()}.md", (ROOT / f"{name}.md").read_text(encoding="utf-8"))
    reader = next(part["Contributing"] for part in config.nav if "Contributing" in part)
    reader[:0] = ["contributing.md"]
    reader += [{"Rooms of the source": [f"rooms/{room.parent.name}.md" for room in rooms]},
               "changelog.md"]
    config.nav.insert(-1, {"API": navigation()})
    return files


OUTSIDE = [(re.compile(r"\]\(\.\./olympus/_src/(\w+)/README\.md"), r"](rooms/\1.md"),
           (re.compile(r"\]\(docs/"), "]("),
           (re.compile(r"^```python\n(?=>>> )", re.MULTILINE), "```pycon\n")]


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Lead links to files beside docs/ to their pages; show sessions as such."""
    if page.file.src_uri == "index.md":
        page.meta["hide"] = ["navigation", "toc"]
    for pattern, instead in OUTSIDE:
        markdown = pattern.sub(instead, markdown)
    return markdown
