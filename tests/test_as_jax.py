"""Olympus under JAX's name. What holds in such a process is in as_jax_cases.py, which runs once."""

import ast
import json
import os
import re
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus._src.as_jax import check, main, spellings
from olympus._src.base.config import compatible
from olympus.tree_util import tree_structure, tree_transpose

CASES = Path(__file__).parent / "as_jax_cases.py"
NAMES = re.findall(r"^def (case_\w+)", CASES.read_text(), re.MULTILINE)


def process(*arguments, **env):
    variables = {k: v for k, v in os.environ.items() if k != "OLYMPUS_AS_JAX"}
    return subprocess.run([sys.executable, "-W", "error", *arguments], capture_output=True,
                          text=True, env=variables | env, timeout=300, check=False)


@pytest.fixture(scope="module")
def failed(tmp_path_factory):
    """What failed in a process of the mode, beside which another jax is installed."""
    folder = tmp_path_factory.mktemp("beside")
    (folder / "jax").mkdir()
    (folder / "jax" / "__init__.py").write_text("raise RuntimeError('the other jax')")
    (folder / "jax-9.9.dist-info").mkdir()
    (folder / "jax-9.9.dist-info" / "METADATA").write_text("Name: jax\nVersion: 9.9\n")
    done = process(
        "-m", "olympus.as_jax", str(CASES), str(folder), JAX_ENABLE_X64="1",
        JAX_NUMPY_RANK_PROMOTION="warn", OLYMPUS_NUMPY_RANK_PROMOTION="raise",
        PYTHONPATH=os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", NAMES)
def test_in_the_mode(failed, name):
    assert name not in failed, failed[name]


def test_real_jax_that_is_loaded_is_refused_by_the_name_of_who_imported_it(tmp_path):
    (tmp_path / "jax.py").write_text("")
    (tmp_path / "early_library.py").write_text("import jax")
    code = "import early_library, warnings; warnings.simplefilter('ignore'); import olympus.as_jax"
    done = process("-c", code, PYTHONPATH=os.pathsep.join(
        [str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    assert "ImportError" in done.stderr and "early_library" in done.stderr


def test_a_process_that_does_not_ask_imports_no_stand_in():
    assert not any(type(finder).__module__.startswith("olympus") for finder in sys.meta_path)
    assert "PYTHONPATH" not in os.environ or "children_path" not in os.environ["PYTHONPATH"]


# The table of spellings --------------------------------------------------------------------------

@pytest.mark.parametrize(("theirs", "ours"), spellings.TABLE)
def test_spellings_go_both_ways(theirs, ours):
    assert spellings.ours(f"a_{theirs}_b") == f"a_{ours}_b"
    assert spellings.theirs(f"a_{ours}_b") == f"a_{theirs}_b"


def test_every_public_name_comes_back_from_its_spelling():
    for module in (olympus, olympus.core, olympus.errors, olympus.interpreters.ad):
        for name in module.__all__:
            assert spellings.ours(spellings.theirs(name)) == name


def test_the_line_of_sed_in_the_docs_ports_what_the_table_does():
    page = (Path(__file__).parent.parent / "docs" / "coming_from_jax.md").read_text()
    modules = olympus, olympus.core, olympus.errors, olympus.extend.core
    names = [f"jax.{name}" for m in modules for name in map(spellings.theirs, m.__all__)]
    text = "\n".join([*names, "jax.config.jax_enable_x64", "JAX_PLATFORMS", "def __jax_array__(x):",
                      "import jax, jaxlib, jaxtyping", 'eqn.params["call_jaxpr"].jaxpr'])
    done = subprocess.run(["sed", "-E", re.search(r"sed -i -E '(.*)'", page)[1]], input=text,
                          capture_output=True, text=True, check=True)
    assert done.stdout == "\n".join(map(spellings.ours, text.splitlines())).replace(
        "olympustyping", "jaxtyping")


@pytest.mark.parametrize("text", ["/opt/olympus/x.py", "C:\\olympus\\x.py", "olympus/numpy",
                                  "olympus.as_jax", "jaxlib 0.10.2", "jaxlib._jax.Array"])
def test_paths_and_names_of_others_are_not_respelt(text):
    assert spellings.theirs(text) == text and spellings.ours("jaxlib") == "jaxlib"


# The command line --------------------------------------------------------------------------------

@pytest.fixture
def run(monkeypatch):
    """`main` with these arguments, in this process, which is not in the mode."""
    def called(*arguments):
        monkeypatch.setattr(sys, "argv", ["as_jax", *arguments])
        monkeypatch.setattr(sys, "path", [*sys.path])
        monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
        return main.main()
    return called


def test_programs_see_the_arguments_and_the_folder_that_python_gives_them(run, tmp_path, capsys):
    program = tmp_path / "program.py"
    (tmp_path / "beside_program.py").write_text("value = 3")
    program.write_text("import sys, beside_program, __main__\n"
                       "print(__name__, sys.argv[1:], __main__.beside_program.value, __file__)")
    assert run(str(program), "-x", "y") == 0
    assert run("-c", "import sys; print(__name__, sys.argv)", "z") == 0
    assert run("-m", "this") == 0
    program.write_text("def f(x: 3): pass\nassert f.__annotations__ == {'x': 3}")
    assert run(str(program)) == run("-c", program.read_text()) == 0     # no `__future__` of ours
    shown = capsys.readouterr().out.splitlines()
    assert shown[:2] == [f"__main__ ['-x', 'y'] 3 {program}", "__main__ ['-c', 'z']"]
    assert "Zen of Python" in shown[2]


def test_an_error_of_a_program_is_shown_without_our_frames(run, tmp_path, capsys):
    program = tmp_path / "program.py"
    program.write_text("def f():\n    raise ValueError('lost')\nf()")
    assert run(str(program)) == 1
    shown = capsys.readouterr().err
    assert shown.count("File ") == 2 and "in f" in shown and "ValueError: lost" in shown


@pytest.mark.parametrize("arguments", [(), ("-m",), ("-x",), ("--check", "no_such_file.py")])
def test_bad_command_lines_end_with_status_2_and_say_what_is_required(run, capsys, arguments):
    assert run(*arguments) == 2
    assert "required" in capsys.readouterr().err


def test_a_program_that_is_not_there_is_named(run):
    with pytest.raises(SystemExit, match=r"no_such_file\.py"):
        run("no_such_file.py")


# What a program uses -----------------------------------------------------------------------------

def used(tmp_path, text, **others):
    for name, content in others.items():
        file = tmp_path / name.replace("__", "/", 1).replace("init", "__init__")
        file.with_suffix(".py").parent.mkdir(exist_ok=True)
        file.with_suffix(".py").write_text(content)
    program = tmp_path / "program.py"
    program.write_text(text)
    return [(use.name, use.optional) for use in check.uses(program)]


@pytest.mark.parametrize(("text", "names"), [
    ("import jax.numpy as jnp\njnp.linalg.norm(jnp.ones(3))",
     ["jax.numpy", "jax.numpy.linalg.norm", "jax.numpy.ones"]),
    ("from jax import lax as L\nL.add", ["jax.lax", "jax.lax.add"]),
    ("from jax.numpy import *", []),
    ("import jax\ndef f(jax=jax.a): return jax.b\njax.c", ["jax.a", "jax.c"]),
    ("import jax\nlambda jax: jax.b", []),
    ("import jax\nasync def f(x: jax.a) -> jax.b: return jax.c", ["jax.a", "jax.b", "jax.c"]),
    ("import jax\njax.x = 3\njax.f(1).g", ["jax.f"]),
    ("import jaxlib, jaxtyping, numpy.ma", []),
])
def test_uses_of_a_file(tmp_path, text, names):
    assert used(tmp_path, text) == [(name, False) for name in names]


@pytest.mark.parametrize("text", [
    "try:\n    import jax.old\nexcept ImportError:\n    jax.older",
    "import jax\nif hasattr(jax, 'old'):\n    jax.old",
    "import jax\nif jax.__version_info__ > (1,):\n    jax.old",
])
def test_names_that_a_program_can_do_without(tmp_path, text):
    found = dict(used(tmp_path, text))
    assert found.pop("jax.__version_info__", False) is False
    assert all(found.values()) and found


def test_imports_are_followed_through_packages_and_cycles(tmp_path):
    names = used(tmp_path, "from pack import first", pack__init="from . import second",
                 pack__first="from .second import x\nimport jax\njax.in_first",
                 pack__second="from ..pack import first\nimport jax\njax.in_second")
    assert {name for name, _ in names} == {"jax.in_first", "jax.in_second"}


def test_a_program_that_is_no_python_is_refused(tmp_path, capsys):
    (tmp_path / "program.py").write_text("import jax jax")
    assert check.report([str(tmp_path / "program.py")]) == 2
    assert "invalid syntax" in capsys.readouterr().err


def test_cases_are_named_once():
    functions = [node.name for node in ast.parse(CASES.read_text()).body
                 if isinstance(node, ast.FunctionDef)]
    assert len(functions) == len(set(functions))


# The option olympus_compatible -------------------------------------------------------------------

X = np.arange(3.0, dtype=np.float32)


@pytest.mark.parametrize(("fun", "want"), [
    (lambda x: x[5], 2.0),
    (lambda x: x[-7], 0.0),
    (lambda x: x[np.array([5, -9])], [2, 0]),
    (lambda x: x[onp.array([5])], [2]),
    (lambda x: x.at[5].get(), 2.0),
    (lambda x: x.at[5].set(7.0), X),
    (lambda x: x.at[np.array([-9, 0])].add(1.0), [1, 1, 2]),
    (lambda x: onp.insert(x, 9, 7.0), [0, 1, 2, 7]),
])
@pytest.mark.parametrize("jitted", [False, True])
def test_constants_out_of_bounds_are_as_traced_ones_with_a_warning(fun, want, jitted):
    x = onp.array(X)
    run = olympus.jit(fun) if jitted else fun
    with pytest.raises(IndexError, match="bounds"):
        run(x)
    with compatible(True), pytest.warns(UserWarning, match="out of bounds|in bounds"):
        np.testing.assert_array_equal(run(x), want)
    with pytest.raises(IndexError, match="bounds"):     # not what was made before
        run(x)


def test_counts_have_the_dtypes_of_jax():
    kinds = lambda: [str(found.dtype) for found in (
        onp.histogram(X, 2)[0], onp.histogram(onp.arange(3), 2)[0],
        onp.histogram(onp.array(X, "float16"), 2)[0], onp.histogram2d(X, X, 2)[0],
        onp.histogram2d(X, X, 2, density=True)[0])]
    with compatible(True):
        assert kinds() == ["float32", "float32", "float16", "int32", "float32"]
    assert kinds() == ["int32", "int32", "int32", "float32", "float32"]


def test_quantiles_beyond_the_data_are_its_ends():
    q = np.array([-0.5, 1.5, np.nan], np.float32)
    with compatible(True):
        np.testing.assert_array_equal(onp.quantile(onp.array(X), q), [0, 2, np.nan])
    assert onp.isnan(onp.quantile(onp.array(X), q)).all()


def test_joined_floats_become_the_integers_that_are_asked_for():
    joins = [partial(join, [onp.array([1.7, -2.5]), onp.array([3, 4])], dtype="int8")
             for join in (onp.concatenate, onp.stack, onp.hstack, onp.vstack)]
    for join in joins:
        with pytest.raises(TypeError, match="same_kind"):
            join()
        with compatible(True):
            assert join().dtype == onp.int8 and join().ravel().tolist() == [1, -2, 3, 4]


def test_the_path_of_einsum_is_steps_alone():
    x = np.ones((2, 2), np.float32)
    path = lambda: onp.einsum_path("ij,jk,kl->il", x, x, x)[0]
    with compatible(True):
        assert path() == [(0, 1), (0, 1)]
    assert path() == ["einsum_path", (0, 1), (0, 1)] == np.einsum_path("ij,jk,kl->il", x, x, x)[0]


def test_one_sample_has_the_shape_of_bounds_of_size_1():
    draw = lambda: olympus.random.uniform(olympus.random.key(0), minval=onp.zeros((1, 1)))
    with pytest.raises(ValueError, match="must broadcast"):
        draw()
    with compatible(True):
        np.testing.assert_array_equal(draw(), [[olympus.random.uniform(olympus.random.key(0))]])
        with pytest.raises(ValueError, match="must broadcast"):
            olympus.random.uniform(olympus.random.key(0), maxval=onp.ones(2))


def test_many_traces_are_logged_where_jax_says_nothing(caplog):
    def trace(many):
        for _ in range(many):
            assert olympus.jit(lambda x: x + 1)(1.0) == 2.0

    with compatible(True), warnings.catch_warnings(), caplog.at_level("INFO", "olympus"):
        warnings.simplefilter("error")
        trace(12)
    assert caplog.text.count("was made and traced") == 1


def test_tree_transpose_goes_by_the_number_of_leaves():
    outer, inner = tree_structure([0, 0]), tree_structure((0, 0))
    with compatible(True):
        assert tree_transpose(outer, inner, ((1, 2), (3, 4))) == ([1, 3], [2, 4])
        with pytest.raises(TypeError, match="Mismatch"):
            tree_transpose(outer, inner, ((1, 2), (3, 4, 5)))
    with pytest.raises(TypeError, match="Mismatch"):
        tree_transpose(outer, inner, ((1, 2), (3, 4)))
