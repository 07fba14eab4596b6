"""`python -m olympus`: what it prints, and that the page about it says the same."""

import doctest
import io
import os
import re
import shlex
import subprocess
import sys
import threading
import types
from pathlib import Path

import numpy as np
import pytest

import olympus
from olympus._src.base import config, progress
from olympus._src.command_line import main as command_line
from olympus._src.command_line.arguments import CommandError, specs, values
from olympus._src.command_line.main import main
from olympus._src.runtime import disk_cache

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "command_line.md").read_text()


@pytest.fixture
def folder(tmp_path, monkeypatch, clear_caches):
    """A folder with the page's model and some arrays; no program of another test is in memory."""
    (tmp_path / "model.py").write_text(re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1])
    np.save(tmp_path / "x.npy", np.arange(3, dtype=np.float32))
    np.savez(tmp_path / "weights.npz", w=np.ones((3, 4), np.float32))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("model", None)


def test_the_page_shows_what_is_printed(folder, capsys):
    checker = doctest.OutputChecker()
    commands = [part for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
                for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    assert len(commands) > 10
    for command in commands:
        line, _, expected = command.partition("\n")
        words = shlex.split(line)
        assert words[:3] == ["python", "-m", "olympus"]
        main([words[3], "-q", *words[4:]])
        printed = capsys.readouterr()
        found = printed.out + printed.err
        assert checker.check_output(expected, found, doctest.ELLIPSIS), f"{line}\n{found}"


def struct(shape, dtype, weak=False):
    return olympus.ShapeDtypeStruct(shape, dtype, weak_type=weak)


@pytest.mark.parametrize(("text", "expected"), [
    ("f32[8,128]", struct((8, 128), "float32")),
    ("float32[ 8, 128 ]", struct((8, 128), "float32")),
    ("i32[]", struct((), "int32")),
    ("bool[2]", struct((2,), "bool")),
    ("bf16[0,3]", struct((0, 3), "bfloat16")),
    ("f8_e4m3fn[2]", struct((2,), "float8_e4m3fn")),
    ("i4[2]", struct((2,), "int4")),
    ("c64[1]", struct((1,), "complex64")),
    ("~f32[]", struct((), "float32", True)),
    ("key<fry>[2]", struct((2,), olympus.random.key(0).dtype)),
    ("(f32[2], i32[])", (struct((2,), "float32"), struct((), "int32"))),
    ("(f32[2],)", (struct((2,), "float32"),)),
    ("(f32[2])", struct((2,), "float32")),
    ("[f32[2], [3]]", [struct((2,), "float32"), [3]]),
    ("{w: f32[2], 'b': {0: i32[]}}", {"w": struct((2,), "float32"),
                                       "b": {0: struct((), "int32")}}),
    ("()", ()), ("[]", []), ("{}", {}), ("-3", -3), ("2.5e-1", 0.25), ("True", True),
    ("None", None), ("'a b'", "a b"), ('"=,"', "=,"),
])
def test_arguments_are_read_as_types_are_printed(text, expected):
    assert specs([text]) == ([expected], {})
    assert specs([f"name={text}"]) == ([], {"name": expected})


@config.enable_x64(True)
def test_every_dtype_reads_as_it_prints():
    for name in ("f64", "f16", "u8", "u2", "i1", "f4_e2m1fn", "f8_e8m0fnu", "c128", "key<urbg>"):
        (found,), _ = specs([f"{name}[3]"])
        aval = olympus.core.ShapedArray(found.shape, found.dtype)
        assert aval.str_short(short_dtypes=True) == f"{name}[3]"
        assert specs([str(aval)])[0] == [found]


def test_symbolic_sizes_share_a_scope():
    (x, y), _ = specs(["f32[b, 2*b]", "f32[b]"], ["b >= 4"])
    assert x.shape[0] == y.shape[0]
    assert x.shape[1] >= 8
    assert str(x.shape) == "(b, 2*b)"


@pytest.mark.parametrize(("text", "words"), [
    ("f32[2", "']' is missing"), ("f33[2]", "'f33' is no dtype; near names: f32"),
    ("(f32[2] i32[])", "a comma or ')' is missing"), ("{w f32[2]}", "a colon is missing"),
    ("f32[2] x", "'x' is left over"), ("hello", "'hello' is no value"), ("", "it ends where"),
    ("[1,", "it ends where"), ("f32[2,]b", "f32[2,]b"), ("f32[-1]", "f32[-1]"),
])
def test_arguments_that_cannot_be_read_are_told(text, words):
    with pytest.raises(CommandError, match=re.escape(words)):
        specs([text])


def test_values_are_arrays_of_files_and_zeros(folder):
    args, kwargs = values(["x.npy", "weights.npz:w", "weights.npz", "(i32[2], 3)", "n='x'"])
    assert [np.shape(a) for a in args[:2]] == [(3,), (3, 4)]
    assert list(args[2]) == ["w"]
    np.testing.assert_array_equal(args[3][0], [0, 0])
    assert (args[3][1], kwargs) == (3, {"n": "x"})
    for text in ("no.npy", "weights.npz:v", "f32[b]", "key<fry>[]", "model.py", "n=1 2"):
        with pytest.raises(CommandError):
            values([text])
    with pytest.raises(CommandError, match="behind arguments by name"):
        values(["n=1", "2"])


@pytest.mark.parametrize(("command", "words"), [
    ("lower model.py:Predict", "near names: predict"), ("lower model.py", "module:function"),
    ("lower no.such:f", "no module 'no.such'"), ("lower no.py:f", "no file 'no.py'"),
    ("lower model:onp.pi", "of type float; a function is required"),
    ("compile model:scaled f32[3] --option fast", "NAME=VALUE is required"),
    ("compile model:scaled f32[3] --option xla_cpu_enable_fast_mth=1", "near names"),
    ("export model:scaled f32[3]", "-o FILE is required"), ("export verify x.npy", "deserialize"),
    ("run model:predict weights.npz f32[2,3] -o y.npy -q", None),
    ("lower jitted.py:f f32[3] --static x", "is jitted already"), ("env", None),
])
def test_what_is_wrong_with_a_command_is_told(folder, capsys, command, words):
    (folder / "jitted.py").write_text("import olympus\nf = olympus.jit(lambda x: x)")
    status = main(command.split())
    printed = capsys.readouterr()
    assert status == (0 if words is None else 2)
    assert (words or "") in printed.err
    assert "Traceback" not in printed.err


def test_options_may_stand_between_arguments(folder, capsys):
    main(["lower", "model:predict", "{w: f32[3,4]}", "f32[2,3]", "--emit", "olympuspr", "-q"])
    expected = capsys.readouterr().out
    for words in (["-q", "model:predict", "{w: f32[3,4]}", "--emit", "olympuspr", "f32[2,3]"],
                  ["model:predict", "--emit", "olympuspr", "{w: f32[3,4]}", "-q", "f32[2,3]"]):
        assert main(["lower", *words]) == 0
        assert capsys.readouterr().out == expected
    assert main(["run", "model:scaled", "-q", "-1.5"]) == 0
    for words in ("lower model:scaled -q f32[3] --emitt cost", "env -q f32[3]"):
        with pytest.raises(SystemExit):
            main(words.split())
        assert "unrecognized arguments" in capsys.readouterr().err


def test_a_target_that_was_forgotten_is_told(folder, capsys):
    assert main(["compile", "--for", "model:scaled", "f32[3]"]) == 2
    assert "target: 'model:scaled' given" in capsys.readouterr().err


def test_a_functions_own_error_comes_with_the_users_lines_only(folder, capsys):
    assert main(["lower", "model:predict", "{w: f32[3,4]}", "f32[2,5]", "-q"]) == 1
    printed = capsys.readouterr()
    assert "model.py:5" in printed.err and "staging.py" not in printed.err and not printed.out
    with config.traceback_filtering("off"), pytest.raises(TypeError):
        main(["lower", "model:predict", "{w: f32[3,4]}", "f32[2,5]", "-q"])


MISTAKEN = """import olympus.numpy as onp
def two(x, y): return x @ y
def raises(x): raise RuntimeError("no weights")
def deep(x): return deep(x)
def eig(x): return onp.linalg.eig(x)
def chained(x):
    try:
        {}["a"]
    except KeyError as error:
        raise ValueError("no a") from error
"""


@pytest.mark.parametrize(("command", "status", "words"), [
    ("lower wrong.py:two f32[8]", 2, r"takes \(x, y\), and 1 argument is given: missing .* 'y'"),
    ("compile wrong.py:two f32[8] f32[8] f32[8]", 2, "3 arguments are given: too many positional"),
    ("run wrong.py:two 1 z=2", 2, "missing a required argument: 'y'"),
    ("export wrong.py:two -o a.bin", 2, "no arguments are given: missing .* 'x'"),
    ("run wrong.py:two 1 2 --static z", 2, "name some of x, y of two"),
    ("run wrong.py:raises 1", 1, r": RuntimeError: no weights\n  wrong.py:3 \(raises\): def "),
    ("lower wrong.py:chained 1", 1, "ValueError: no a\n.*\n  because of KeyError: 'a'\n$"),
    ("lower wrong.py:deep f32[8]", 1, r"RecursionError: .*\n  …\n(  wrong.py:4 .*\n){10}$"),
    ("lower wrong.py:eig f32[2,2] --platform tpu", 1, "geev on platform tpu given"),
    ("lower syntax.py:f f32[8]", 1, r"SyntaxError: .* closed\n  syntax.py:1 .*: def f\(x:\n$"),
    ("lower importing.py:f f32[8]", 1, "No module named 'no_such'\n  importing.py:2 .*: import "),
])
def test_a_mistake_in_a_file_or_its_arguments_is_words_and_a_status(
        folder, capsys, command, status, words):
    (folder / "wrong.py").write_text(MISTAKEN)
    (folder / "syntax.py").write_text("def f(x:\n    return x\n")
    (folder / "importing.py").write_text("import math\nimport no_such\n")
    assert main([*command.split(), "-q"]) == status
    printed = capsys.readouterr()
    assert re.search(words, printed.err), printed.err
    assert not printed.out and "Traceback" not in printed.err and "_src" not in printed.err


def test_a_file_imports_what_is_beside_it(folder, capsys):
    below = folder / "below"
    below.mkdir()
    (below / "beside_it.py").write_text("N = 7")
    (below / "own.py").write_text("from beside_it import N\ndef f(x): return x * N")
    assert main(["run", "below/own.py:f", "2", "-q"]) == 0
    assert "14" in capsys.readouterr().out


def test_results_are_written(folder, capsys):
    main(["run", "model:predict", "weights.npz", "f32[2,3]", "-o", "y.npy", "--repeat", "3"])
    assert np.load("y.npy").tolist() == [0, 0]
    assert "others" in capsys.readouterr().err
    (folder / "two.py").write_text("def f(x): return {'a': x + 1, 'b': (x, 2 * x)}")
    main(["run", "two.py:f", "x.npy", "-o", "y.npz", "-q"])
    assert sorted(np.load("y.npz")) == ["result['a']", "result['b'][0]", "result['b'][1]"]
    assert main(["run", "two.py:f", "x.npy", "-o", "y.npy", "-q"]) == 2
    assert "a .npz file is required" in capsys.readouterr().err


def test_exports_are_written_for_onnx(folder, capsys):
    pytest.importorskip("onnx")
    assert main(["export", "model:scaled", "f32[3]", "--to", "onnx", "-o", "m.onnx", "-q"]) == 0
    assert capsys.readouterr().out == "m.onnx: in0: float32[3]\nm.onnx: out0: float32[3]\n"
    assert (folder / "m.onnx").stat().st_size
    complex_ = ["export", "model:scaled", "c64[3]", "--to", "onnx", "-o", "m.onnx", "-q"]
    assert main(complex_) == 2
    assert "to_onnx" in capsys.readouterr().err


def test_exports_are_written_for_iree(folder, capsys, monkeypatch):
    def missing(*args, **options):
        raise FileNotFoundError(f"iree-compile for {options['target']}")

    monkeypatch.setattr(command_line, "to_iree", missing)
    iree = ["export", "model:scaled", "f32[3]", "--to", "iree", "--target", "vmvx", "-o", "m", "-q"]
    assert main(iree) == 2
    assert "iree-compile for vmvx" in capsys.readouterr().err


def test_programs_are_kept_where_asked_for(folder, monkeypatch):
    monkeypatch.setattr(disk_cache, "_libraries", str)      # they are large
    for _ in range(2):
        main(["compile", "model:scaled", "f32[3]", "--cache", "programs", "-q", "--emit", "cost"])
        assert len(list((folder / "programs").glob("*-cache"))) == 1
        olympus.clear_caches()
    assert olympus.config.olympus_compilation_cache_dir is None


def test_what_is_kept_is_shown_pruned_and_cleared(tmp_path, capsys):
    directory = disk_cache.Directory(str(tmp_path / "programs"))

    def cache(*words):
        status = main(["cache", *words, "--cache", str(directory.path)])
        printed = capsys.readouterr()
        return status, printed.out + printed.err

    assert cache() == (0, f"{directory.path}: 0 entries, 0.00 MiB\n")
    for i, name in enumerate(["jit_f-0", "jit_f-1", "jit_g_h-2"]):
        directory.put(name, os.urandom(2 << 20), 1.0)
        os.utime(directory.path / f"{name}-cache", (i, i))
    left = directory.path / ".x.new"
    left.write_bytes(b"half")
    os.utime(left, (1, 1))
    shown = f"{directory.path}: 3 entries, 6.00 MiB\njit_f: 2 entries, 4.00 MiB\n" \
        "jit_g_h: 1 entries, 2.00 MiB\n"
    assert cache() == cache("show") == (0, shown)
    assert left.exists()
    assert cache("prune") == (0, "0 entries are deleted\n" + shown)
    assert not left.exists()
    status, printed = cache("prune", "--to", "5")
    assert printed.startswith(f"1 entries are deleted\n{directory.path}: 2 entries")
    assert [entry.key for entry in directory.entries()] == ["jit_f-1", "jit_g_h-2"]
    assert cache("clear")[1] == f"2 entries are deleted\n{directory.path}: 0 entries, 0.00 MiB\n"
    left.write_bytes(b"")
    directory.path = left
    assert cache() == (2, f"python -m olympus cache: {left}: Not a directory.\n")


def test_the_directory_in_use_is_what_is_shown(tmp_path, capsys):
    with config.compilation_cache_dir(str(tmp_path)):
        assert main(["cache"]) == 0
        assert capsys.readouterr().out == f"{tmp_path}: 0 entries, 0.00 MiB\n"
        with config.enable_compilation_cache(False):
            main(["cache"])
        assert capsys.readouterr().out.endswith("MiB\nit is not in use\n")
    with config.compilation_cache_dir(None):
        assert main(["cache"]) == 2
    assert "no directory is set" in capsys.readouterr().err


def test_64_bits_are_on_within_the_command_only(folder, capsys):
    main(["lower", "model:scaled", "f64[3]", "--x64", "--emit", "olympuspr", "-q"])
    assert "f64[3]" in capsys.readouterr().out
    assert not olympus.config.olympus_enable_x64
    assert main(["lower", "model:scaled", "f64[3]"]) == 2
    assert "64-bit types are off; add --x64" in capsys.readouterr().err


def test_a_static_argument_is_no_type(folder, capsys):
    for static in ("0", "x"):
        assert main(["lower", "model:scaled", "f32[3]", "--static", static]) == 2
        assert f"--static {static} given, and the type" in capsys.readouterr().err


def test_a_terminal_sees_how_long_a_step_takes(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen, waits = Terminal(), iter([False, True])
    event = types.SimpleNamespace(set=lambda: None, wait=lambda seconds: next(waits))
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "threading", types.SimpleNamespace(
        Event=lambda: event, Thread=threading.Thread))
    with progress.step("compiling"):
        pass
    assert re.fullmatch(r"\rcompiling 0 s\rcompiling 0\.\d\d s\n", screen.getvalue())


@pytest.mark.slow
def test_it_runs_as_a_module(folder):
    done = subprocess.run(
        [sys.executable, "-m", "olympus", "run", "model:scaled", "x.npy"], capture_output=True,
        text=True, timeout=300, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
    assert done.stdout == "result: float32[3]\n[0. 2. 4.]\n"
