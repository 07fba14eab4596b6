"""What type checkers and `help` see: a typical program, and the methods of arrays."""

import ast
import importlib
import inspect
import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import olympus
from olympus import numpy as onp
from olympus._src.base import lib

ROOT = Path(__file__).parent


def test_the_typed_program_runs(capsys):
    """tools/check.sh has pyright check it, strictly."""
    runpy.run_path(str(ROOT / "typed_program.py"), run_name="__main__")
    assert "f32[4,4]" in capsys.readouterr().out


@pytest.mark.parametrize("checker", ["pyright", "mypy"])
def test_strict_checkers_find_the_planted_mistakes_and_no_others(checker, tmp_path):
    """In one run of each, since most of it is reading Olympus."""
    programs = "typed_program.py", "typed_mistakes.py"
    planted = set()
    for program in programs:
        text = (ROOT / program).read_text()
        (tmp_path / program).write_text(text)
        planted |= {(program, i) for i, line in enumerate(text.splitlines(), 1)
                    if line.endswith("# mistake")}
    assert {program for program, _ in planted} == {"typed_mistakes.py"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(
        {"include": [*programs], "extraPaths": [str(ROOT.parent)],
         "typeCheckingMode": "strict"}))
    (tmp_path / "mypy.ini").write_text(
        f"[mypy]\nstrict = True\nmypy_path = {ROOT.parent}\n"
        "[mypy-olympus.*]\nignore_errors = True\n")
    options = programs if checker == "mypy" else []
    done = subprocess.run([sys.executable, "-m", checker, *options], cwd=tmp_path, text=True,
                          capture_output=True, check=False)
    found = {(name, int(n)) for name, n in
             re.findall(r"(typed_\w+\.py):(\d+):.*error: ", done.stdout)}
    assert found == planted, done.stdout + done.stderr
    assert done.returncode == 1


def test_checkers_know_the_modules_that_are_imported_when_they_are_named():
    package = Path(olympus.__file__).parent
    for path in package.rglob("__init__.py"):
        text = path.read_text()
        if "_submodules(__name__)" not in text:
            continue
        own = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)
               and node.level == 1]
        told = {node.module or alias.name for node in own for alias in node.names}
        there = {p.stem for p in path.parent.iterdir() if not p.name.startswith("_")
                 and (p.suffix == ".py" or (p / "__init__.py").exists())}
        assert there - {"as_jax"} <= told, path     # an import of that one changes its importer


def test_checkers_know_the_methods_that_arrays_have():
    stub = ast.parse((ROOT.parent / "olympus/_src/base/array_type.pyi").read_text())
    known = next(node for node in stub.body if isinstance(node, ast.ClassDef))
    told = {f.name: [a.arg for a in (*f.args.args, *f.args.kwonlyargs)][1:]
            for f in known.body if isinstance(f, ast.FunctionDef)}
    kind = type(onp.ones(3))
    assert [name for name in told if not hasattr(kind, name)] == []
    apart = {"clone", "platform", "traceback"}     # jaxlib's own, of no use to users
    # What an immutable array refuses, a checker is to refuse too.
    for name in dir(kind):
        found = inspect.getattr_static(kind, name)
        found = getattr(found, "fget", found)
        if inspect.isfunction(found) and found.__annotations__.get("return") == "NoReturn":
            apart.add(name)
    assert {n for n in dir(kind) if not n.startswith("_")} - apart <= told.keys()
    for name, parameters in told.items():
        if name.startswith("__"):       # Python calls them, with operands alone
            continue
        try:
            found = inspect.signature(inspect.getattr_static(kind, name)).parameters.values()
        except (TypeError, ValueError):
            continue
        taken = [p.name for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        # A ufunc that is a method takes its options too, which nobody passes to a method.
        known_of = taken[1:len(parameters) + 1] if name in ("conj", "conjugate") else taken[1:]
        assert known_of == parameters, name


def test_checkers_know_the_methods_that_shardings_have():
    stub = ast.parse((ROOT.parent / "olympus/_src/base/array_type.pyi").read_text())
    known = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef)}
    base = {f.name for f in known["Sharding"].body if isinstance(f, ast.FunctionDef)}
    for kind in (lib.SingleDeviceSharding, lib.GSPMDSharding):
        own = base | {f.name for f in known[kind.__name__].body if isinstance(f, ast.FunctionDef)}
        assert [name for name in own if not hasattr(kind, name)] == []
        assert {n for n in dir(kind) if not n.startswith("_")} <= own


def test_public_objects_say_where_users_find_them():
    package = Path(olympus.__file__).parent
    found = []
    for path in package.rglob("*.py"):
        parts = path.relative_to(package).with_suffix("").parts
        if parts[0] == "_src" or parts[-1] == "__main__":
            continue
        facade = importlib.import_module(".".join(["olympus", *parts]).removesuffix(".__init__"))
        for name in getattr(facade, "__all__", ()):
            value = getattr(facade, name)
            # What has another name where it is defined is found by that.
            if (inspect.isfunction(value) or inspect.isclass(value)) and value.__name__ == name:
                found.append(name)
                assert not value.__module__.startswith("olympus._src"), f"{facade.__name__}.{name}"
    assert len(found) > 2000


# Public functions some of whose parameters or results are `Any`, or not annotated; nothing else is.
ANY = {
    "olympus.jit": "its overloads say more",
    "lax.psum_scatter_start": "passed on to psum_scatter",
    **dict.fromkeys([f"numpy.{name}" for name in (
        "base_repr", "binary_repr", "common_type", "get_printoptions", "load", "may_share_memory",
        "min_scalar_type", "mintypecode", "printoptions", "save", "savetxt", "savez",
        "savez_compressed", "set_printoptions", "shares_memory", "typename")],
                    "NumPy's own function, or its options"),
    "numpy.histogram2d": "bins: a number or edges, or one of these per axis",
}


def test_public_signatures_say_what_they_take_and_give():
    found = set()
    for module in (olympus, onp, onp.linalg, onp.fft, olympus.lax, olympus.lax.linalg, olympus.nn,
                   olympus.nn.initializers, olympus.random):
        for name in module.__all__:
            function = getattr(module, name)
            if not callable(function) or isinstance(function, type):
                continue
            try:
                signature = inspect.signature(function)
            except (TypeError, ValueError):         # an alias of a type
                continue
            said = [signature.return_annotation,
                    *[p.annotation for p in signature.parameters.values()]]
            if any(a is inspect.Parameter.empty or re.search(r"\bAny\b", str(a)) for a in said):
                found.add(f"{module.__name__}.{name}".removeprefix("olympus."))
    assert {n if "." in n else f"olympus.{n}" for n in found} == ANY.keys()
