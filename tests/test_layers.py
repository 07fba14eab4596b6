"""The static contracts as tests, and what `import olympus` brings into a process."""

import json
import os
import subprocess
import sys
from pathlib import Path

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


def test_import_contracts():
    pytest.importorskip("importlinter")
    tool(sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()")


def test_every_test_file_belongs_to_an_area():
    lines = [line.split() for line in (ROOT / "tools/areas.txt").read_text().splitlines()]
    areas = {line[0]: line[1:] for line in lines if line[0] != "#"}
    package = ROOT / "olympus/_src"
    assert [a for a in areas if not (package / a).exists() and not (package / f"{a}.py").exists()
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
