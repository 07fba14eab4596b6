"""The static contracts as tests, and what `import olympus` brings into a process."""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import check_style
import pytest

from olympus._src.base import util

ROOT = Path(__file__).parent.parent
UNWANTED = ("jax", "scipy", "jaxlib.mlir", "opt_einsum", "hypothesis", "pytest")
MODULE_CAP = 220  # modules of ours and jaxlib's that `import olympus` loads; NumPy's not counted


def python(code, **env):
    """Standard output of `code` in a fresh process in which every warning is an error."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | env,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def tool(*command):
    """Run one of the static checks; its own output is the message."""
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_style_caps():
    tool(sys.executable, "tools/check_style.py")


def test_a_private_name_has_few_meanings():
    same = {f"s{i}.py": ast.parse("_lock = Lock()\ndef _f(x): return x") for i in range(9)}
    assert not list(check_style.check_meanings(same))
    differ = {f"d{i}.py": ast.parse(f"_STEPS: int = {i}\ndef _f(x): return x + {i}")
              for i in range(check_style.MEANINGS_CAP + 1)}
    assert [x.split()[1] for x in check_style.check_meanings(differ)] == ["_STEPS", "_f"]


def test_import_contracts():
    pytest.importorskip("importlinter")
    tool(sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()")


def lazy_strings(file):
    """The modules that `lazy_module("olympus._src.…")` names in a file; the linter reads none."""
    text = file.read_text(encoding="utf-8")
    return re.findall(r'lazy_module\(\s*"olympus\._src\.([\w.]+)"', text)


def layers():
    """The rooms of each layer, the highest first."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    return [re.findall(r"\w+", layer) for layer in contracts[0]["layers"]]


def test_modules_that_strings_name_are_in_the_room_or_below():
    height = {room: -i for i, rooms in enumerate(layers()) for room in rooms}
    names = [(f.relative_to(PACKAGE), name) for f in PACKAGE.rglob("*.py")
             for name in lazy_strings(f)]
    assert len(names) > 20
    assert [(str(f), name) for f, name in names
            if not ((PACKAGE / name.replace(".", "/")).with_suffix(".py").exists()
                    or (PACKAGE / name.replace(".", "/")).is_dir())] == []
    assert [(str(f), name) for f, name in names if f.parts[0] != name.split(".")[0]
            and height[name.split(".")[0]] >= height[f.parts[0]]] == []


PACKAGE = ROOT / "olympus/_src"
ROOMS = {f.parent for f in PACKAGE.glob("*/__init__.py")}


def named_files(page):
    """The files that a page names between backticks."""
    return re.findall(r"`([\w/]+\.(?:py|sh|toml|txt))(?::\d+)?`", page.read_text(encoding="utf-8"))


def test_every_room_has_a_short_readme_that_names_files_that_exist():
    """A path is from the room, from olympus/_src or from the root of the repository."""
    pages = [room / "README.md" for room in sorted(ROOMS)]
    assert [str(page) for page in pages if not page.exists()] == []
    assert [str(p) for p in pages if p.read_text(encoding="utf-8").count("\n") > 40] == []
    assert [(page.parent.name, name) for page in pages for name in named_files(page)
            if not any((start / name).exists() for start in (page.parent, PACKAGE, ROOT))] == []


def test_the_map_has_every_room_in_the_order_of_the_layers():
    page = ROOT / "docs/architecture.md"
    rows = re.findall(r"^\| \[(\w+)\]\(\.\./olympus/_src/(\w+)/README.md\)", page.read_text(
        encoding="utf-8"), re.MULTILINE)
    rooms = [room for layer in layers() for room in layer]
    assert rows == [(room, room) for room in rooms] and {*rooms} == {r.name for r in ROOMS}


@pytest.mark.parametrize("page", ["architecture", "glossary"])
def test_files_that_a_page_for_maintainers_names_exist(page):
    names = [name for name in named_files(ROOT / f"docs/{page}.md") if "/" in name]
    assert [n for n in names if not (PACKAGE / n).exists() and not (ROOT / n).exists()] == []


def test_every_test_file_belongs_to_an_area():
    lines = [line.split() for line in (ROOT / "tools/areas.txt").read_text().splitlines()]
    areas = {line[0]: line[1:] for line in lines if line[0] != "#"}
    assert [a for a in areas if not (PACKAGE / a).exists() and not (PACKAGE / f"{a}.py").exists()
            ] == []
    tests = ROOT / "tests"
    files = {str(f.relative_to(tests).with_name(f.stem.removeprefix("test_")))
             for f in tests.rglob("test_*.py")}
    assert files == {name for names in areas.values() for name in names}


@pytest.mark.parametrize("slow", [False, True])
def test_tests_of_an_area_with_and_without_the_slow_ones(slow, tmp_path):
    """What tools/test.sh hands to Python."""
    stand_in = tmp_path / "python"
    stand_in.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    stand_in.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    command = ["tools/test.sh", "base/config", *["--slow"] * slow, "-k", "x64"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True,
                          env=os.environ | {"PATH": path})
    assert done.stdout.splitlines() == ["-m", "pytest", "tests/test_config.py", *[
        "-m", "slow or not slow"] * slow, "-k", "x64"]


@pytest.fixture(scope="module")
def loaded():
    """Names of the modules in a process that imported Olympus and nothing else."""
    return set(json.loads(python("import sys, json, olympus; print(json.dumps([*sys.modules]))")))


@pytest.mark.parametrize("name", UNWANTED)
def test_import_does_not_load(loaded, name):
    found = sorted(m for m in loaded if m == name or m.startswith(name + "."))
    assert not found, f"import olympus loads {found[:5]}"


def test_import_loads_few_modules(loaded):
    ours = sorted(m for m in loaded if m.split(".")[0] in ("olympus", "jaxlib"))
    assert len(ours) <= MODULE_CAP, f"{len(ours)} modules: {ours}"


def test_what_is_imported_when_it_is_named_is_not_imported_before(loaded):
    later = [(facade, name, *place) for facade, names in util._later.items()
             for name, place in names.items()]
    assert [x for x in later if x[2] in loaded] == []
    for facade, name, home, there in later:
        assert getattr(sys.modules[facade], name) is getattr(sys.modules[home], there)
        assert name in dir(sys.modules[facade])


PROGRAM = """
import olympus, olympus.numpy as onp
f = olympus.jit(olympus.value_and_grad(lambda x: onp.sum(onp.sin(x) ** 2)))
value, grad = f(onp.arange(3.0))
assert grad.shape == (3,) and value.shape == ()
assert olympus.vmap(lambda x: x @ x)(onp.ones((4, 3))).tolist() == [3.0] * 4
assert olympus.random.normal(olympus.random.key(0), (2,)).shape == (2,)
print(olympus.jit(lambda x: x + 1).lower(1.0).compile()(2.0))
"""


def test_works_where_import_jax_raises():
    assert python("import sys; sys.modules['jax'] = None\n" + PROGRAM) == "3.0\n"


def test_imports_no_jax_while_it_works():
    code = PROGRAM + "import sys; print(sys.modules.get('jax'))"
    assert python(code) == "3.0\nNone\n"
