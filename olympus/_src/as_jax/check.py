"""`--check`: the names of JAX that a program and its imports use, and which are missing.

Files are read, not run: `ast` says what each name is bound to by imports, and imports are followed
as far as files can be found. A name that is computed is not seen, and names of other objects than
modules and classes are not looked for.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import re
import sys
import types
from collections import deque
from collections.abc import Iterator, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, NamedTuple

from ..base.source import short_path
from .stand_ins import StandIn

MISSING, EXPECTED = "missing", "missing where that is expected"
STAND_IN = "a stand-in, which raises when it is called"

# Neither names JAX, however many files it has.
_NOT_FOLLOWED = frozenset(sys.stdlib_module_names) | {
    "IPython", "jax", "jaxlib", "matplotlib", "ml_dtypes", "numpy", "olympus", "opt_einsum",
    "pandas", "PIL", "scipy", "sklearn", "sympy", "tensorflow", "torch"}
_IMPORT = re.compile(rb"^[ \t]*(?:from[ \t]+[\w.]+[ \t]+)?import[ \t]", re.MULTILINE)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_CAUGHT = frozenset(("AttributeError", "BaseException", "Exception", "ImportError",
                     "ModuleNotFoundError", "NotImplementedError"))


class Use(NamedTuple):
    """A name of JAX, where it is used, and whether the program can do without it: it is in a `try`
    that expects it to be missing, or in a branch that asks first."""

    name: str
    file: str
    line: int
    optional: bool


class File(ast.NodeVisitor):
    """The imports and the uses of JAX in one file."""

    def __init__(self, file: str, package: str) -> None:
        self.file, self.package = file, package
        self.bound: dict[str, str] = {}         # name -> what of JAX it is
        self.hidden: list[set[str]] = []        # names of the functions around, which are others
        self.optional = 0
        self.imports: list[str] = []
        self.uses: list[Use] = []

    def use(self, name: str, line: int) -> None:
        """Take note of a name."""
        if name != "jax":
            self.uses.append(Use(name, self.file, line, self.optional > 0))

    def visit_Import(self, node: ast.Import) -> None:
        """`import jax.numpy as jnp`."""
        for alias in node.names:
            if _is_jax(alias.name):
                self.bound[alias.asname or "jax"] = alias.name if alias.asname else "jax"
                self.use(alias.name, node.lineno)
            else:
                self.imports.append(alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """`from jax import numpy as jnp`; others are followed, relative ones, too."""
        base = node.module or ""
        if node.level:
            above = self.package.split(".")
            base = ".".join([*above[:len(above) - node.level + 1], *filter(None, [base])])
        if not _is_jax(base):
            self.imports += [base, *(f"{base}.{alias.name}" for alias in node.names)]
            return
        for alias in node.names:
            if alias.name != "*":
                self.bound[alias.asname or alias.name] = f"{base}.{alias.name}"
                self.use(f"{base}.{alias.name}", node.lineno)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """`jnp.linalg.norm`: of a chain the whole is one use."""
        names, inner = [node.attr], node.value
        while isinstance(inner, ast.Attribute):
            names.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name):
            path = self.bound.get(inner.id)
            if path and isinstance(node.ctx, ast.Load) and not any(
                    inner.id in names for names in self.hidden):
                self.use(".".join([path, *names[::-1]]), node.lineno)
        else:
            self.visit(inner)

    def visit_Try(self, node: ast.Try) -> None:
        """Names in a `try` may be missing if its handlers catch that, and so may the handlers'."""
        expected = any(_names_in(handler.type) & _CAUGHT or handler.type is None
                       for handler in node.handlers)
        self.optional += expected
        for child in (*node.body, *node.handlers):
            self.visit(child)
        self.optional -= expected
        for child in (*node.orelse, *node.finalbody):
            self.visit(child)

    def visit_If(self, node: ast.If) -> None:
        """A branch that asks `hasattr`, a version, or TYPE_CHECKING may name a missing one."""
        asks = {n.id if isinstance(n, ast.Name) else n.attr for n in ast.walk(node.test)
                if isinstance(n, (ast.Name, ast.Attribute))}
        words = " ".join(asks)
        guarded = "hasattr" in asks or "TYPE_CHECKING" in asks or "version" in words.lower()
        self.visit(node.test)
        self.optional += guarded
        for child in (*node.body, *node.orelse):
            self.visit(child)
        self.optional -= guarded

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        """A parameter or variable of a function hides the module's binding of its name."""
        arguments = node.args
        parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        for child in filter(None, (
                *arguments.defaults, *arguments.kw_defaults, *(a.annotation for a in parameters),
                *getattr(node, "decorator_list", ()), getattr(node, "returns", None))):
            self.visit(child)
        names = {a.arg for a in parameters}
        body = node.body if isinstance(node.body, list) else [node.body]
        names |= {n.id for child in body for n in ast.walk(child)
                  if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.hidden.append(names)
        for child in body:
            self.visit(child)
        self.hidden.pop()

    visit_AsyncFunctionDef = visit_FunctionDef
    visit_Lambda = visit_FunctionDef


def _is_jax(name: str) -> bool:
    return name == "jax" or name.startswith("jax.")


def _names_in(node: ast.AST | None) -> set[str]:
    return set() if node is None else {
        n.id if isinstance(n, ast.Name) else n.attr for n in ast.walk(node)
        if isinstance(n, (ast.Name, ast.Attribute))}


def _imports_of(path: Path, package: str) -> File:
    """The names that a file imports and uses; SyntaxError if it is not Python."""
    visitor = File(short_path(str(path)), package)
    text = path.read_bytes()
    if b"jax" in text or _IMPORT.search(text):
        visitor.visit(ast.parse(text, str(path)))
    return visitor


def _find(name: str, folders: Sequence[str] | None) -> Iterator[tuple[str, Path]]:
    """The files of a module and of the packages that it is in, without importing any."""
    parts = name.split(".")
    for i in range(1, len(parts) + 1):
        # By its last part: of a dotted name the import system wants the packages imported.
        spec = PathFinder.find_spec(parts[i - 1], folders)
        if spec is None:
            return
        if spec.origin is not None and spec.origin.endswith(".py"):
            yield ".".join(parts[:i]), Path(spec.origin)
        if spec.submodule_search_locations is None:
            return
        folders = [*spec.submodule_search_locations]


def uses(program: Path) -> Iterator[Use]:
    """The uses of JAX in a program, a file or a folder of them, and in its imports."""
    files = sorted(program.rglob("*.py")) if program.is_dir() else [program]
    root = program if program.is_dir() and program / "__init__.py" not in files else program.parent
    folders = [str(root), *sys.path]
    waiting = deque((path, ".".join(path.relative_to(root).parent.parts)) for path in files)
    seen = {path.resolve() for path in files}
    asked: set[str] = set()
    while waiting:
        path, package = waiting.popleft()
        try:
            imported = _imports_of(path, package)
        except (SyntaxError, UnicodeDecodeError, RecursionError):
            if path == program:
                raise
            continue
        yield from imported.uses
        for name in imported.imports:
            if name in asked or name.partition(".")[0] in _NOT_FOLLOWED:
                continue
            asked.add(name)
            for module, file in _find(name, folders):
                if file.resolve() not in seen:
                    seen.add(file.resolve())
                    is_package = file.name == "__init__.py"
                    waiting.append((file, module if is_package else module.rpartition(".")[0]))


def lacking(name: str) -> tuple[str, str]:
    """The report's title for a missing name of JAX, and the reason; empty if the name exists."""
    first, *rest = name.split(".")
    value: Any = importlib.import_module(first)
    for part in rest:
        if isinstance(value, StandIn) or not isinstance(value, types.ModuleType):
            break       # a reader of files cannot know an object's attributes
        try:
            value = getattr(value, part)
        except (AttributeError, ImportError) as error:
            return MISSING, str(error).partition("; asked for")[0]
    return (STAND_IN, f"needs {value.what}") if isinstance(value, StandIn) else ("", "")


def report(arguments: Sequence[str]) -> int:
    """Print the names that a program uses; 0 if all exist, 1 if one is missing, 2 if none is read.
    """
    program = Path(arguments[0])
    if len(arguments) > 1 or not program.exists():
        print(f"olympus.as_jax --check: {' '.join(arguments)} given; one file or folder that "
              "exists is required.", file=sys.stderr)
        return 2
    try:
        every_use = list(uses(program))
    except SyntaxError as error:
        print(f"olympus.as_jax --check: {program}: {error}", file=sys.stderr)
        return 2
    by_name: dict[str, list[Use]] = {}
    for use in every_use:
        by_name.setdefault(use.name, []).append(use)
    lines: dict[str, list[str]] = {MISSING: [], EXPECTED: [], STAND_IN: []}
    for name, of_name in sorted(by_name.items()):
        title, why = lacking(name)
        if title:
            title = EXPECTED if title == MISSING and all(u.optional for u in of_name) else title
            where = ", ".join(f"{use.file}:{use.line}" for use in of_name[:3])
            lines[title].append(f"  {title}: {name}: {why} ({where})")
    counts = ", ".join(f"{len(those)} {title}" for title, those in lines.items())
    print(f"{len(by_name)} names of JAX in {len({use.file for use in every_use})} files: {counts}",
          *itertools.chain(*lines.values()), sep="\n")
    return int(bool(lines[MISSING]))
