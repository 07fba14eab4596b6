"""What type checkers and `help` see: a typical program, and the methods of arrays."""

import ast
import inspect
import runpy
from pathlib import Path

import olympus
from olympus import numpy as onp

ROOT = Path(__file__).parent


def test_the_typed_program_runs(capsys):
    """tools/check.sh has pyright check it, strictly."""
    runpy.run_path(str(ROOT / "typed_program.py"), run_name="__main__")
    assert "f32[4,4]" in capsys.readouterr().out


def test_checkers_know_the_methods_that_arrays_have():
    stub = ast.parse((ROOT.parent / "olympus/_src/base/array_type.pyi").read_text())
    known = next(node for node in stub.body if isinstance(node, ast.ClassDef))
    told = {f.name: [a.arg for a in (*f.args.args, *f.args.kwonlyargs)][1:]
            for f in known.body if isinstance(f, ast.FunctionDef)}
    kind = type(onp.ones(3))
    assert [name for name in told if not hasattr(kind, name)] == []
    apart = {"clone", "platform", "traceback"}     # jaxlib's own, of no use to users
    assert {n for n in dir(kind) if not n.startswith("_")} - apart <= told.keys()
    for name, parameters in told.items():
        if name.startswith("__"):       # Python calls them, with operands alone
            continue
        try:
            found = inspect.signature(inspect.getattr_static(kind, name)).parameters.values()
        except (TypeError, ValueError):
            continue
        taken = [p.name for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        assert taken[1:] == parameters, name


def test_public_objects_say_where_users_find_them():
    for module in (olympus, onp, onp.linalg, onp.fft, olympus.lax, olympus.nn, olympus.random):
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isfunction(value) or inspect.isclass(value):
                assert not value.__module__.startswith("olympus._src"), f"{module.__name__}.{name}"
