"""Which parameters of public functions does no row of `tests/ops` give a value that matters?

    PYTHONPATH=.:tests python tools/untested_params.py [--fail] [module ...]

Each function of the façades (by default lax and lax.linalg) is wrapped before the rows import it,
so the calls of a row count, and the calls within the library do not. Every row is
traced, nothing compiled. A parameter is `untested` if no row gives it, or gives it a value other
than its default; `without effect` if every row that does traces to the same program when the
default is put back. `EXEMPT` says where that is right. Exit status with `--fail`: 1 if a line is
printed before the count.
"""

from __future__ import annotations

import argparse
import enum
import functools
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

import olympus

MODULES = ("olympus.lax", "olympus.lax.linalg")
EXEMPT = {
    "out_sharding": "values are equal: tests/sharded_cases.py looks at the parts on eight devices",
    "sharding": "the same",
    "lax.all_gather.to": "a type for meshes; the axes of vmap have none",
    "lax.create_token._": "its value is nowhere used, in JAX too",
    "lax.erfc.accuracy": "every platform has one implementation; other types are refused",
    "lax.linalg.eig.use_magma": "it warns: tests/test_parameters.py",
    "lax.scan._split_transpose": "a hint; loops are transposed in one way",
    "lax.top_k.is_stable": "it is stable in either case",
}
# Values of other types are arrays and tracers, and no default is one of those.
PLAIN = (bool, int, float, complex, str, tuple, list, type, enum.Enum)


class Parameter(NamedTuple):
    function: str
    name: str

    @property
    def exempt(self) -> bool:
        return self.name in EXEMPT or f"{self.function}.{self.name}" in EXEMPT


class Watch:
    """What the watched functions have been given; `put_back` is given its default instead."""

    def __init__(self) -> None:
        self.known: dict[Parameter, bool] = {}      # whether it has a default
        self.given: set[Parameter] = set()
        self.put_back: Parameter | None = None

    def module(self, module: ModuleType) -> None:
        for name in module.__all__:
            fun = getattr(module, name)
            if inspect.isfunction(fun):
                label = f"{module.__name__.removeprefix('olympus.')}.{name}"
                setattr(module, name, self.function(label, fun))

    def function(self, label: str, fun: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(fun)
        self.known.update((Parameter(label, key), p.default is not p.empty)
                          for key, p in signature.parameters.items())

        @functools.wraps(fun)
        def call(*args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(*args, **kwargs)
            for key, value in bound.arguments.items():
                parameter, default = Parameter(label, key), signature.parameters[key].default
                if differs(value, default):
                    self.given.add(parameter)
                if parameter == self.put_back:
                    bound.arguments[key] = default
            return fun(*bound.args, **bound.kwargs)

        return call


def differs(value: Any, default: Any) -> bool:
    if value is default:
        return False
    return not isinstance(value, PLAIN) or type(value) is not type(default) or value != default


def programs(op: Any, cast: Callable[..., list[Any]]) -> Iterator[object]:
    """The row's programs and their constants, by dtype; the error if it is refused."""
    for kind in op.dtypes:
        olympus.clear_caches()      # of bodies of loops and branches
        with olympus.enable_x64(kind in "dz"):
            try:
                closed = olympus.make_olympuspr(op.fun)(*cast(op, kind))
            except Exception as error:
                yield repr(error)
            else:
                text = re.sub("0x[0-9a-f]+", "", str(closed))
                yield text, [np.asarray(c).tobytes() for c in closed.consts]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--fail", action="store_true", help="exit status 1 if any is listed")
    parser.add_argument("modules", nargs="*", default=MODULES)
    options = parser.parse_args(argv)
    watch = Watch()
    for name in options.modules:
        watch.module(importlib.import_module(name))
    tests = importlib.import_module("properties")   # only now: rows hold functions
    ops = importlib.import_module("ops")
    rows = [op for table in ops.tables().values() for op in table if isinstance(op, ops.Op)]
    given: set[Parameter] = set()
    effective: set[Parameter] = set()
    for op in rows:
        watch.given = set()
        usual = list(programs(op, tests.cast))
        here = watch.given
        for parameter in here - effective:
            watch.put_back = parameter if watch.known[parameter] else None
            if not watch.put_back or usual != list(programs(op, tests.cast)):
                effective.add(parameter)
        watch.put_back = None
        given |= here
    missing = dict.fromkeys(watch.known.keys() - given, "untested")
    missing.update(dict.fromkeys(given - effective, "without effect"))
    for p in sorted(p for p in watch.known if p.exempt != (p in missing)):
        print(f"{p.function}: {p.name}: {missing.get(p, 'needs no exemption')}")
    exempt = sum(p.exempt for p in missing)
    print(f"{len(watch.known)} parameters: {len(effective)} given by a row and effective, "
          f"{exempt} exempt, {len(missing) - exempt} left")
    return int(options.fail and any(p.exempt != (p in missing) for p in watch.known))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
