#!/usr/bin/env python3
"""The style caps that no linter knows: sizes, façades, hidden imports, worn names, raw shapes.

    python tools/check_style.py [ROOT]     one breach a line, `path:line: what; what to do`

Standard library only; it reads code as text and runs none of it. docs/style.md gives the reasons.
"""

import ast
import itertools
import re
import sys
from collections.abc import Iterator, Set
from pathlib import Path
from typing import NamedTuple

FILE_CAP, FUNCTION_CAP, LINE_CAP, FACADE_CAP = 900, 80, 100, 350
MEANINGS_CAP = 6  # of one private name, over all modules
SHORT = 5  # lines: a file up to this long needs no docstring (an __init__.py, say)
SEAM = "olympus/_src/base/lib"
FOLDERS = ("olympus", "tests", "tools", "examples", "benchmarks")
GENERATED = {"tests/random_frozen.py"}  # data: no caps

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
UNFINISHED = re.compile(r"#\s*(?:TODO|FIXME|XXX|HACK)\b(?!\([^)]{8,}\): )")

Breach = tuple[int, str]


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function in the tree, methods and nested ones included."""
    return (node for node in ast.walk(tree) if isinstance(node, FUNCTIONS))


def code_length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring."""
    length = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function, clean=False) is not None:
        first = function.body[0]
        length -= first.end_lineno - first.lineno + 1
    return length


def check_sizes(text: str, tree: ast.Module) -> Iterator[Breach]:
    """Caps on the file, its functions and its lines; the module's docstring; unfinished work."""
    lines = text.splitlines()
    if len(lines) > FILE_CAP:
        yield 1, f"{len(lines)} lines (cap {FILE_CAP}); split the file by subject"
    if len(lines) > SHORT and ast.get_docstring(tree) is None:
        yield 1, "no module docstring; say what it is and its one idea"
    for number, line in enumerate(lines, 1):
        if len(line) > LINE_CAP:
            yield number, f"{len(line)} columns (cap {LINE_CAP})"
        if UNFINISHED.search(line):
            yield number, "unfinished work without a reason; finish it, or write `TODO(reason): …`"
    for function in functions(tree):
        if (length := code_length(function)) > FUNCTION_CAP:
            yield function.lineno, f"{function.name} has {length} lines (cap {FUNCTION_CAP})"


def imported(node: ast.AST) -> list[str]:
    """Top-level packages that an import statement names."""
    if isinstance(node, ast.Import):
        return [alias.name.split(".")[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0:
        return [(node.module or "").split(".")[0]]
    return []


def check_imports(name: str, tree: ast.Module) -> Iterator[Breach]:
    """jaxlib in the seam only, jax nowhere; private modules import at their top only."""
    for node in ast.walk(tree):
        if "jaxlib" in imported(node) and not name.startswith(SEAM):
            yield node.lineno, f"imports jaxlib; only {SEAM} may, take the name from there"
        if "jax" in imported(node):
            yield node.lineno, "imports jax; Olympus never does"
    if "/_src/" in name:
        for function in functions(tree):
            for node in ast.walk(function):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    yield node.lineno, f"import inside {function.name}; move it to the top"
        for node in tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                yield node.lineno, "`__all__` of a private module; only façades list names"


# PEP 562: how a façade imports its modules lazily.
_LAZILY = ("__getattr__, __dir__ = _submodules(__name__)",
           "__getattr__, __dir__ = _device_only(__name__)")


def is_plain_name(node: ast.stmt) -> bool:
    """Is this a statement that only names things: an import, an alias, `__all__`, a docstring?"""
    if isinstance(node, ast.Import | ast.ImportFrom | ast.Delete):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) or ast.unparse(node) == "_publish(__name__)"
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return ast.unparse(node) in _LAZILY or not any(
            isinstance(part, ast.Call | ast.Lambda) for part in ast.walk(node))
    if isinstance(node, ast.Raise):  # of a `__main__.py`: the exit status of what it names
        return ast.unparse(node) == "raise SystemExit(_main())"
    if isinstance(node, ast.With):  # around imports
        return ast.unparse(node.items[0]) in ("_collector_at_rest()", "_when_named(__name__)") and (
            all(map(is_plain_name, node.body)))
    if isinstance(node, ast.If):  # `if TYPE_CHECKING:`
        return all(map(is_plain_name, node.body + node.orelse))
    return False


def check_facade(text: str, tree: ast.Module) -> Iterator[Breach]:
    """A public module holds names, no logic."""
    if (length := text.count("\n")) > FACADE_CAP:
        yield 1, f"{length} lines in a façade (cap {FACADE_CAP})"
    for node in tree.body:
        if not is_plain_name(node):
            yield node.lineno, "a façade holds names only; define this under olympus/_src"


def mentions_shape(node: ast.AST) -> bool:
    """Does the expression read a `.shape`, or a variable called shape?"""
    return any(
        (isinstance(part, ast.Attribute) and part.attr == "shape")
        or (isinstance(part, ast.Name) and part.id == "shape")
        for part in ast.walk(node)
    )


class Names(NamedTuple):
    """Variables of a function that hold dimensions, and those that hold shapes."""

    dims: Set[str] = frozenset()
    shapes: Set[str] = frozenset()


NO_NAMES = Names()


def is_dimension(node: ast.AST, names: Names = NO_NAMES) -> bool:
    """`x.shape[i]`, one dimension and not a slice of them, or a name of one; no mesh's shape."""
    if isinstance(node, ast.Name):
        return node.id in names.dims
    return (
        isinstance(node, ast.Subscript)
        and not isinstance(node.slice, ast.Slice)
        and is_shape(node.value, names)
    )


def is_shape(node: ast.AST, names: Names = NO_NAMES) -> bool:
    """`x.shape` or `x.shape[i:j]`, of anything but a mesh, or a name of one."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        node = node.value
    if isinstance(node, ast.Name):
        return node.id in names.shapes or node.id == "shape"
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "shape"
        and not (isinstance(node.value, ast.Name) and node.value.id == "mesh")
    )


def bound_names(target: ast.AST, value: ast.AST, known: Names) -> Iterator[tuple[str, str]]:
    """(variable, "dims" or "shapes") for what `target = value` binds to dimensions or shapes."""
    if isinstance(target, ast.Name):
        if is_dimension(value, known):
            yield target.id, "dims"
        elif is_shape(value, known):
            yield target.id, "shapes"
    elif isinstance(target, ast.Tuple | ast.List):
        if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
            for pair in zip(target.elts, value.elts, strict=True):
                yield from bound_names(*pair, known)
        elif is_shape(value, known):
            for part in target.elts:
                if isinstance(part, ast.Starred) and isinstance(part.value, ast.Name):
                    yield part.value.id, "shapes"
                elif isinstance(part, ast.Name):
                    yield part.id, "dims"


def iterated_names(target: ast.AST, over: ast.AST, known: Names) -> Iterator[tuple[str, str]]:
    """The same for `for target in over`: a shape, or an enumerate, zip or reversed of some."""
    if is_shape(over, known):
        if isinstance(target, ast.Name):
            yield target.id, "dims"
    elif isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and over.args:
        if over.func.id == "enumerate" and isinstance(target, ast.Tuple):
            yield from iterated_names(target.elts[1], over.args[0], known)
        elif over.func.id == "reversed":
            yield from iterated_names(target, over.args[0], known)
        elif over.func.id == "zip" and isinstance(target, ast.Tuple):
            for pair in zip(target.elts, over.args, strict=False):
                yield from iterated_names(*pair, known)


def dimension_names(function: ast.AST) -> Names:
    """Variables that the function binds to dimensions and shapes, in assignments and loops."""
    found: dict[str, set[str]] = {"dims": set(), "shapes": set()}
    while True:
        known = Names(**found)
        count = len(known.dims) + len(known.shapes)
        for node in ast.walk(function):
            if isinstance(node, ast.Assign):
                pairs = [bound_names(target, node.value, known) for target in node.targets]
            elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
                pairs = [bound_names(node.target, node.value, known)]
            elif isinstance(node, ast.For | ast.comprehension):
                pairs = [iterated_names(node.target, node.iter, known)]
            else:
                continue
            for name, kind in itertools.chain(*pairs):
                found[kind].add(name)
        if len(found["dims"]) + len(found["shapes"]) == count:
            return known


# Where all sizes are numbers: kernels are taken in programs without symbolic ones, and padding of
# sparse arrays is compared with sizes.
NUMBERED = ("olympus/_src/base/", "olympus/_src/lax/kernels/", "olympus/_src/sparse/")
INSTEAD = {"min": "minimum", "max": "maximum", "range": "static_int", "divmod": "floor_div and mod",
           "int": "static_int"}
INSTEAD_OF = {ast.Lt: "less", ast.LtE: "less", ast.Gt: "less", ast.GtE: "less", ast.Mod: "mod",
              ast.FloorDiv: "floor_div", ast.Eq: "definitely_equal", ast.NotEq: "definitely_equal"}


def check_shapes(tree: ast.Module) -> Iterator[Breach]:
    """Dimensions may be symbolic: their arithmetic goes through types/shape.py."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            called = ast.unparse(node.func)
            if called in ("math.prod", "np.prod", "numpy.prod") and mentions_shape(node.args[0]):
                yield node.lineno, f"{called} of a shape; use types.shape.prod"
    yield from check_dimensions(tree, NO_NAMES)
    for function in functions(tree):
        yield from check_dimensions(function, dimension_names(function))


def check_dimensions(tree: ast.AST, names: Names) -> Iterator[Breach]:
    """Raw arithmetic on `x.shape[i]` and on variables that hold dimensions."""
    for node in ast.walk(tree):
        uses: list[tuple[str, str]] = []
        operands: list[ast.AST] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            operands = node.args
            uses = [(f"{node.func.id}()", INSTEAD.get(node.func.id, ""))]
        elif isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            uses = [("a comparison", INSTEAD_OF.get(type(op), "")) for op in node.ops]
        elif isinstance(node, ast.BinOp):
            operands = [node.left, node.right]
            uses = [("// or %", INSTEAD_OF.get(type(node.op), ""))]
        if any(is_dimension(operand, names) for operand in operands):
            for what, instead in uses:
                if instead:
                    yield node.lineno, f"{what} of a dimension; use types.shape.{instead}"


def refused_names(root: Path) -> frozenset[str]:
    """The names of helpers in the last table of docs/glossary.md."""
    page = (root / "docs/glossary.md").read_text(encoding="utf-8")
    return frozenset(re.findall(r"^\| `(_\w+)` \|", page, re.MULTILINE))


def check_names(tree: ast.Module, refused: frozenset[str]) -> Iterator[Breach]:
    """Private functions and constants whose names the glossary refuses."""
    for node in tree.body:
        targets = getattr(node, "targets", [getattr(node, "target", node)])
        for name in [getattr(t, "id", getattr(t, "name", None)) for t in targets]:
            if name in refused:
                yield node.lineno, f"{name} says nothing of what it is; see docs/glossary.md"


def private_definitions(tree: ast.Module) -> Iterator[tuple[str, int, str]]:
    """(name, line, definition) of each private function and constant of a module."""
    for node in tree.body:
        if isinstance(node, FUNCTIONS):
            named = [(node.name, node)]
        else:
            targets = getattr(node, "targets", [getattr(node, "target", None)])
            named = [(t.id, node.value) for t in targets
                     if isinstance(t, ast.Name) and getattr(node, "value", None)]
        for name, definition in named:
            if re.match(r"_[a-zA-Z]", name):
                yield name, node.lineno, ast.unparse(definition)


def check_meanings(trees: dict[str, ast.Module]) -> Iterator[str]:
    """Private names that too many modules define, each as something else.

    Equal definitions count once: `_lock = threading.Lock()` is the same thing everywhere.
    """
    places: dict[str, dict[str, str]] = {}
    for path, tree in trees.items():
        for name, line, definition in private_definitions(tree):
            places.setdefault(name, {}).setdefault(definition, f"{path}:{line}")
    for name, found in sorted(places.items()):
        if len(found) > MEANINGS_CAP:
            yield (f"{max(found.values())}: {name} has {len(found)} meanings (cap {MEANINGS_CAP}); "
                   f"name the thing itself; the others: {', '.join(sorted(found.values())[:-1])}")


def check(root: Path, path: Path, refused: frozenset[str] = frozenset()) -> list[Breach]:
    """Every breach in one file, by line."""
    name = path.relative_to(root).as_posix()
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    breaches = [] if name in GENERATED else list(check_sizes(text, tree))
    if name.startswith("olympus/"):
        breaches += check_imports(name, tree)
        breaches += check_names(tree, refused)
        if "/_src/" not in name:
            breaches += check_facade(text, tree)
        elif not name.startswith(NUMBERED) and name != "olympus/_src/types/shape.py":
            breaches += check_shapes(tree)
    return sorted(set(breaches))


def main(arguments: list[str]) -> int:
    """Print every breach under the root; 1 if there is one."""
    root = Path(arguments[0] if arguments else ".").resolve()
    files = sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.py"))
    if not files:
        print(f"check_style: no Python file under {root}; give the repository's root")
        return 2
    count, refused = 0, refused_names(root)
    for path in files:
        for line, what in check(root, path, refused):
            print(f"{path.relative_to(root)}:{line}: {what}")
            count += 1
    trees = {path.relative_to(root).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
             for path in files if path.is_relative_to(root / "olympus/_src")}
    for breach in check_meanings(trees):
        print(breach)
        count += 1
    print(f"check_style: {len(files)} files, {count} breaches")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
