"""Which parameters of public functions has no test given a value of its own?

    PYTHONPATH=.:tests python tools/untested_params.py [--fail] [--of MODULE …] [--tests ARG …]

Each function of the façades named is wrapped before the tests import it, so what counts is what a
test calls itself: neither the library's calls of its own functions, nor calls that are refused. A
parameter is listed if it never had a value other than its default or, without one, was never given.
By default these are the functions of lax, and every row of `tests/ops` runs once. `EXEMPT` says of
which parameters that is right; of those that a test gives all the same, it no longer is. `--tests`
takes pytest's arguments. `--fail`: exit status 1 if a parameter is listed or a test fails.
"""

from __future__ import annotations

import argparse
import enum
import functools
import importlib
import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

MODULES = ("olympus.lax", "olympus.lax.linalg")
TESTS = ("tests/test_ops.py", "tests/test_parameters.py", "tests/test_loops.py",
         "-k", "oracles or effects_happen or parameters or progress_bar")
EXEMPT = {
    "out_sharding": "None is the only value until there are shardings of several devices",
    "sharding": "the same",
}
# Values of other types are arrays and tracers, and no default is one of those.
PLAIN = (bool, int, float, complex, str, tuple, list, type, enum.Enum)

Missing = set[tuple[str, str]]      # the names of a function and of a parameter


def differs(value: Any, default: Any) -> bool:
    if value is default:
        return False
    return not isinstance(value, PLAIN) or type(value) is not type(default) or value != default


def watched(name: str, fun: Callable[..., Any], missing: Missing) -> Callable[..., Any]:
    """`fun`; when a call of it returns, what it was given is no longer missing."""
    signature = inspect.signature(fun)

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        out = fun(*args, **kwargs)
        for key, value in signature.bind(*args, **kwargs).arguments.items():
            if differs(value, signature.parameters[key].default):
                missing.discard((name, key))
        return out

    return call


def watch(module: ModuleType, missing: Missing) -> None:
    """Wrap the module's functions, and add all that they can be given."""
    for name in module.__all__:
        fun = getattr(module, name)
        if inspect.isfunction(fun):
            label = f"{module.__name__.removeprefix('olympus.')}.{name}"
            missing.update((label, key) for key in inspect.signature(fun).parameters)
            setattr(module, name, watched(label, fun, missing))


class OncePerRow:
    """A pytest plugin: of a test's cases that differ in dtype only, the first one runs."""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        first: dict[object, pytest.Item] = {}
        for item in items:
            params = getattr(getattr(item, "callspec", None), "params", {})
            name = item.name.split("[")[0]
            first.setdefault((name, id(params["op"])) if "kind" in params else item.nodeid, item)
        items[:] = first.values()


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--fail", action="store_true", help="exit status 1 if any is listed")
    parser.add_argument("--of", nargs="+", default=MODULES, metavar="MODULE")
    parser.add_argument("--tests", nargs=argparse.REMAINDER, default=TESTS)
    options = parser.parse_args(argv)
    missing: Missing = set()
    for name in options.of:
        watch(importlib.import_module(name), missing)
    every = len(missing)
    exempt = {pair for pair in missing if pair[1] in EXEMPT}
    status = pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:randomly", *options.tests],
                         [OncePerRow()])
    for name in sorted({name for name, _ in missing - exempt}):
        print(f"{name}: {', '.join(sorted(k for n, k in missing - exempt if n == name))}")
    for name, key in sorted(exempt - missing):
        print(f"{name}: {key} is given a value and needs no exemption")
    print(f"{len(missing - exempt)} of {every} parameters untested, {len(exempt)} exempt")
    return int(options.fail and bool(missing - exempt or exempt - missing or status))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
