"""`python -m olympus.as_jax PROGRAM.py ARGS…`: run a program of JAX's on Olympus."""

from __future__ import annotations

import os
import runpy
import sys
import types
from collections.abc import Callable

from ..base import source
from .check import report

USAGE = """\
usage: python -m olympus.as_jax PROGRAM.py ARGS…     run a program, with `import jax` giving Olympus
       python -m olympus.as_jax -m MODULE ARGS…      a module, for example pytest
       python -m olympus.as_jax -c CODE ARGS…        a text
       python -m olympus.as_jax --check PROGRAM      list the names of JAX that it uses, and which
                                                     of them are missing, without running it
"""


def main() -> int:
    """Run the command line; the program's own exit is an exception."""
    kind, rest = (sys.argv[1], sys.argv[2:]) if len(sys.argv) > 1 else ("", [])
    if kind in ("-h", "--help"):
        print(USAGE, end="")
        return 0
    if kind in ("-m", "-c", "--check"):
        if not rest:
            return _misused(f"{kind} given alone")
        if kind == "--check":
            return report(rest)
        return _exit_status(_module if kind == "-m" else _execute_text, *rest)
    if not kind or kind.startswith("-"):
        return _misused(f"{kind or 'nothing'} given")
    return _exit_status(_file, kind, *rest)


def _exit_status(program: Callable[..., None], *arguments: str) -> int:
    """Run a program; an error of its is shown as Python shows it, without frames of this module."""
    try:
        program(*arguments)
    except Exception as error:
        source.filter_traceback(error)
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    return 0


def _misused(what: str) -> int:
    print(f"olympus.as_jax: {what}; a program is required.\n{USAGE}", end="", file=sys.stderr)
    return 2


def _module(name: str, *rest: str) -> None:
    sys.argv = [name, *rest]
    _first_path(os.getcwd())
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def _execute_text(code: str, *rest: str) -> None:
    sys.argv = ["-c", *rest]
    _first_path("")
    exec(compile(code, "<string>", "exec", dont_inherit=True), vars(_fresh_main()))


def _file(path: str, *rest: str) -> None:
    sys.argv = [path, *rest]
    if os.path.isdir(path) or path.endswith((".zip", ".pyz")):
        runpy.run_path(path, run_name="__main__")
        return
    try:
        with open(path, "rb") as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
    except OSError as error:
        raise SystemExit(f"olympus.as_jax: can't open file {path!r}: {error.strerror}") from None
    _first_path(os.path.dirname(os.path.realpath(path)))
    exec(code, vars(_fresh_main(__file__=path)))


def _first_path(folder: str) -> None:
    """Let modules be found first where Python would look for the program's."""
    if not sys.flags.safe_path:
        sys.path[0] = folder


def _fresh_main(**names: str) -> types.ModuleType:
    """The module `__main__` of the program: pickles and child processes look for it by name."""
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    vars(module).update(names, __builtins__=__builtins__, __spec__=None)
    return module
