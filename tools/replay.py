"""Which programs does a change of the package change? The programs of all rows, before and after.

    PYTHONPATH=.:tests python tools/replay.py --write FILE
    PYTHONPATH=.:tests python tools/replay.py --against FILE|FOLDER|COMMIT [-v] [--only PATTERN]

The programs come from the rows of `tests/ops` in each dtype, with jvp, vjp and vmap of each in its
first, from `tests/artifacts.py`, `tools/hold_corpus.py` and the examples. Each is traced and
lowered, nothing is compiled. Two texts of it are kept: the program with all params, the content of
its constants and without lines and scopes, and the module without locations.

`--against` compares with a file that `--write` wrote, with the tree in a folder, or with the tree
of a commit of this repository. It prints how many programs changed, then a line for
each group of them: the table, the operation at which the texts part, which programs. `-v` adds
to each group the diff of its smallest program. The exit status is 0 whatever changed.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import difflib
import fnmatch
import functools
import gzip
import hashlib
import importlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import olympus

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = "tests", "tools", "examples"      # of modules imported besides the package
# Examples: the file, whether in x64, and the shapes of arguments of functions in it.
EXAMPLES: dict[tuple[str, bool], dict[str, tuple[Any, ...]]] = {
    ("gaussian_process", True): {
        "predict": ({"length": (), "height": (), "noise": ()}, (25,), (25,), (60,)),
        "surprise": ({"length": (), "height": (), "noise": ()}, (25,), (25,))},
    ("predators", False): {"misfit": ((4,), (40, 2)), "counts_at": ((4,), (7,))},
}
PLACE = re.compile(r" = \"?([\w.@]+)")
# A text differs from itself in another process by the addresses of objects.
ADDRESS = re.compile(r"0x[0-9a-f]+")
# A program's texts, as long as it has them: "program" and "module".
Texts = dict[str, str]
Made = Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]


def texts(fun: Callable[..., Any], args: tuple[Any, ...]) -> Texts:
    """The texts of a function's program; the error's message where it is refused."""
    found = {}
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            traced = olympus.jit(fun).trace(*args)
            found["program"] = program_text(traced.olympuspr)
            found["module"] = traced.lower().as_text()
        except Exception as error:
            found["program" if not found else "module"] = f"{type(error).__name__}: {error}"
    return {kind: ADDRESS.sub("", text) for kind, text in found.items()}


def program_text(closed: Any) -> str:
    """A program as text, with what distinguishes its constants from others."""
    lines = [closed.olympuspr.pretty_print(custom_pp_eqn_rules=False, print_effects=True)]
    for x in closed.consts:
        with contextlib.suppress(TypeError):    # keys, effects' tokens
            x = np.asarray(x)
            lines.append(f"constant {x.dtype}{x.shape} {hashlib.sha256(x.tobytes()).hexdigest()}")
    return "\n".join(lines)


# What is traced: (table, name, whether in x64, what makes the function and its arguments).

def programs() -> Iterator[tuple[str, str, bool, Made]]:
    yield from rows()
    for name, (fun, args, gradient) in importlib.import_module("artifacts").PROGRAMS.items():
        for form, made in forms(fun, args, gradient):
            yield "artifacts", f"{name} {form}", False, made
    for name, make in importlib.import_module("hold_corpus").PROGRAMS.items():
        yield "hold_corpus", name, False, lambda make=make: (inside(make), ())
    for (file, x64), functions in EXAMPLES.items():
        for name, shapes in functions.items():
            yield "examples", f"{file}.{name}", x64, functools.partial(
                example, file, name, x64, shapes)


def rows() -> Iterator[tuple[str, str, bool, Made]]:
    """Each row in each of its dtypes, and its derived programs in the first."""
    ops, cast = importlib.import_module("ops"), importlib.import_module("properties").cast
    for table, members in ops.tables().items():
        for op in members:
            if isinstance(op, ops.Op):
                for kind in op.dtypes:
                    made = forms(op.fun, tuple(cast(op, kind)), op.grad and kind == op.dtypes[0])
                    for form, make in made[:None if kind == op.dtypes[0] else 1]:
                        yield table, f"{op.name} {kind} {form}", kind in "dz", make
            elif isinstance(op, ops.Effect):
                yield table, op.name, False, forms(
                    functools.partial(op.run, lambda *_: None), op.args, False)[0][1]


def forms(fun: Callable[..., Any], args: tuple[Any, ...], gradient: bool) -> list[tuple[str, Made]]:
    """A function's programs: of itself, batched, and derived in both modes."""
    def made(form: Callable[..., Any], stack: int = 0) -> Made:
        def make() -> tuple[Callable[..., Any], tuple[Any, ...]]:
            moved, arrays = arrays_of(fun, args)
            return form(moved), tuple(np.stack([x] * stack) if stack else x for x in arrays)
        return make

    found = [("run", made(lambda f: f))]
    if any(isinstance(x, np.ndarray) for x in olympus.tree.leaves(args)):
        found.append(("vmap", made(olympus.vmap, 2)))
        found += [("jvp", made(pushed)), ("vjp", made(pulled))] if gradient else []
    return found


def arrays_of(fun: Callable[..., Any], args: tuple[Any, ...]
              ) -> tuple[Callable[..., Any], list[np.ndarray]]:
    """A function of the arrays among its arguments, all else closed over; of the inexact ones,
    where it wants values of others.
    """
    leaves, tree = olympus.tree.flatten(args)
    for kinds in "fciubV", "fcV":
        moves = [isinstance(x, np.ndarray) and x.dtype.kind in kinds for x in leaves]
        arrays = [x for x, m in zip(leaves, moves, strict=True) if m]

        def moved(*given: Any, moves: list[bool] = moves) -> Any:
            rest = iter(given)
            return fun(*olympus.tree.unflatten(
                tree, [next(rest) if m else x for x, m in zip(leaves, moves, strict=True)]))

        with contextlib.suppress(Exception):
            olympus.eval_shape(moved, *arrays)
            break
    return moved, arrays


def split(args: tuple[Any, ...]) -> tuple[list[Any], Callable[[list[Any]], list[Any]]]:
    """The arguments that have a derivative, and what puts others in their place."""
    smooth = [np.dtype(x.dtype).kind not in "iub" for x in args]

    def put(given: list[Any]) -> list[Any]:
        rest = iter(given)
        return [next(rest) if s else x for x, s in zip(args, smooth, strict=True)]

    return [x for x, s in zip(args, smooth, strict=True) if s], put


def pushed(fun: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        smooth, put = split(args)
        return olympus.jvp(lambda *xs: fun(*put(list(xs))), smooth, smooth)
    return run


def pulled(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Cotangents are the results themselves, which no rule knows anything about."""
    def cotangent(x: Any) -> Any:
        flat = not olympus.numpy.issubdtype(x.dtype, np.inexact)
        return np.zeros(x.shape, olympus.dtypes.float0) if flat else x

    def run(*args: Any) -> Any:
        smooth, put = split(args)
        out, pull = olympus.vjp(lambda *xs: fun(*put(list(xs))), *smooth)
        return pull(olympus.tree.map(cotangent, out))
    return run


def inside(make: Made) -> Callable[[], Any]:
    """A program with what its arguments are made by, which would be compiled without."""
    def run() -> Any:
        fun, args = make()
        return fun(*args)
    return run


def example(file: str, name: str, x64: bool, shapes: tuple[Any, ...]
            ) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    sys.path.append(str(ROOT / "examples"))     # behind that of another tree
    dtype = np.float64 if x64 else np.float32
    return getattr(importlib.import_module(file), name), olympus.tree.map(
        lambda shape: olympus.ShapeDtypeStruct(shape, dtype), shapes,
        is_leaf=lambda x: isinstance(x, tuple) and all(type(n) is int for n in x))


def taken(patterns: list[str]) -> dict[str, Texts]:
    """The texts of all programs of this tree, by table and name."""
    found: dict[str, Texts] = {}
    for table, name, x64, make in programs():
        key = f"{table}: {name}"
        while key in found:
            key += "'"
        if not patterns or any(fnmatch.fnmatch(key, f"*{p}*") for p in patterns):
            with olympus.enable_x64(x64):
                found[key] = texts(*make())
    return found


# Files and trees.

def write(path: str, found: dict[str, Texts]) -> None:
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=3) as file:
        json.dump(found, file)


def read(path: str | pathlib.Path) -> dict[str, Texts]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def texts_at(what: str, patterns: list[str]) -> dict[str, Texts]:
    """The texts that a file has, or that a process makes with the tree of a folder or commit."""
    if pathlib.Path(what).is_file():
        found = read(what)
        return {key: found[key] for key in found
                if not patterns or any(fnmatch.fnmatch(key, f"*{p}*") for p in patterns)}
    with tempfile.TemporaryDirectory() as work:
        tree = pathlib.Path(what)
        if not tree.is_dir():
            tree = pathlib.Path(work, "tree")
            tree.mkdir()
            packed = subprocess.run(["git", "-C", ROOT, "archive", what], check=True,
                                    stdout=subprocess.PIPE).stdout
            subprocess.run(["tar", "-xf", "-", "-C", tree], check=True, input=packed)
        path = ":".join(str(tree / part) for part in ("", *FOLDERS))
        # This file, so that both are asked the same, with the package and the rows of that tree.
        subprocess.run([sys.executable, "-P", __file__, "--write", f"{work}/texts",
                        *[word for p in patterns for word in ("--only", p)]],
                       check=True, cwd=tree, env={**os.environ, "PYTHONPATH": path},
                       stdout=subprocess.DEVNULL)
        return read(f"{work}/texts")


# What differs.

def place(before: Texts, after: Texts) -> tuple[str, str]:
    """In which of the texts two programs first differ, and at which operations there."""
    kind = next((k for k in ("program", "module") if before.get(k) != after.get(k)), "program")
    old, new = before.get(kind, "").splitlines(), after.get(kind, "").splitlines()
    here = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b),
                min(len(old), len(new)))
    names = [PLACE.search(lines[here]) if here < len(lines) else None for lines in (old, new)]
    first, second = (name[1] if name else "no operation" for name in names)
    return kind, first if first == second else f"{first} -> {second}"


def compare(before: dict[str, Texts], after: dict[str, Texts], verbose: bool) -> Iterator[str]:
    """The lines of a comparison."""
    both = [key for key in after if key in before]
    changed = [key for key in both if before[key] != after[key]]
    yield (f"{len(changed)} programs changed of {len(both)}; {len(after) - len(both)} are new, "
           f"{len(before) - len(both)} are gone")
    groups = collections.defaultdict(list)
    for key in changed:
        groups[key.partition(":")[0], *place(before[key], after[key])].append(key)
    for (table, kind, where), keys in sorted(groups.items(), key=lambda item: -len(item[1])):
        names = [key.partition(": ")[2] for key in keys]
        shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if names[4:] else "")
        yield f"{len(keys):5} {kind}s of {table} at {where}: {shown}"
        if verbose:
            key = min(keys, key=lambda key: len(after[key].get(kind, "")))
            yield from difflib.unified_diff(
                before[key].get(kind, "").splitlines(), after[key].get(kind, "").splitlines(),
                f"before: {key}", f"after: {key}", lineterm="")


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", metavar="FILE", help="write the texts of this tree to a file")
    parser.add_argument("--against", metavar="WHAT", help="compare with a file, folder or commit")
    parser.add_argument("--only", metavar="PATTERN", action="append", default=[],
                        help="those whose `table: name` has a match, such as 'lax_fft' or '*vjp'")
    parser.add_argument("-v", "--verbose", action="store_true", help="show a diff of each group")
    options = parser.parse_args(argv)
    with ThreadPoolExecutor(1) as pool:
        before = options.against and pool.submit(texts_at, options.against, options.only)
        found = taken(options.only)
    digest = hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()
    print(f"{len(found)} programs, digest {digest[:16]}")
    if options.write:
        write(options.write, found)
    if before:
        print(*compare(before.result(), found, options.verbose), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
