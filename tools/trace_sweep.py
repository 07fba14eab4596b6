"""Tracing time of each public function beside that of JAX's of the same name.

    PYTHONPATH=. python tools/trace_sweep.py --jax PYTHON_WITH_JAX [--rounds 5] [--least 3] [NAME …]

Each function of numpy, scipy, nn and random gets the legal call of `tools/bad_input.py`, its arrays
traced; of arguments that must be known, none but those of floating arrays are. The time of a use is
that of tracing a program of 20 uses less that of one of 5, over 15: CPU time, least of several
rounds, in which the libraries, each in a process of its own, take turns; of five times as many
where Olympus seems slower. Nothing is compiled. Shown are microseconds and the ratio, worst first,
where less than a microsecond of JAX's counts as one; then what could not be compared, and how many
functions trace slower, by `--least` microseconds at least. NAME selects those that contain it.
"""

from __future__ import annotations

import argparse
import base64
import functools
import gc
import importlib
import json
import marshal
import math
import os
import sys
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from eager_times import Worker

ROOT = Path(__file__).resolve().parent.parent
PARTS = "numpy", "nn", "random", "scipy"
FEW, MANY = 5, 20
F = np.arange(9, dtype=np.float32).reshape(3, 3) / 8
# Calls where those of `bad_input` are not what both take while they trace.
OWN: dict[str, dict[str, Any]] = {
    "numpy.where": {"condition": F > 0.5, "x": F, "y": F},
    **{f"numpy.nan{name}": {"a": F, "q": 0.5} for name in ("quantile", "percentile")},
    **{f"numpy.{name}": {"p": F[0], "m": 1} for name in ("polyder", "polyint")},
    **{f"numpy.{name}": {"a": F, "size": 9} for name in ("nonzero", "argwhere", "flatnonzero")},
    **{f"numpy.{name}": {"condition": F[0] > 0, "arr": F[0], "a": F[0], "size": 3}
       for name in ("compress", "extract")},
}


# Values on their way to the other process.

def packed(value: Any) -> Any:
    """A value as JSON; TypeError of what has no way there, such as arrays of keys."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (tuple, list)):
        return {type(value).__name__: [packed(x) for x in value]}
    if isinstance(value, (float, complex)):
        return {type(value).__name__: str(value)}
    if isinstance(value, (np.ndarray, np.generic)):
        return {"array": [packed(x) for x in value.ravel().tolist()], "shape": value.shape,
                "dtype": value.dtype.name}
    if isinstance(value, (type, np.dtype)):
        return {"dtype": np.dtype(value).name}
    if isinstance(value, types.FunctionType) and value.__closure__ is None:
        return {"code": base64.b64encode(marshal.dumps(value.__code__)).decode()}
    raise TypeError(f"no way for a {type(value).__name__}")


def unpacked(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "array" in value:
        flat = np.array([unpacked(x) for x in value["array"]], value["dtype"])
        return flat.reshape(value["shape"])
    ((kind, inner),) = value.items()
    match kind:
        case "tuple" | "list":
            return {"tuple": tuple, "list": list}[kind](map(unpacked, inner))
        case "dtype":
            return np.dtype(inner)
        case "code":
            return types.FunctionType(marshal.loads(base64.b64decode(inner)), {"np": np})
    return {"float": float, "complex": complex}[kind](inner)


# A process that traces.

def worker(library: str) -> None:
    """Answer requests [name, arguments, kinds of arrays that are traced, uses], line by line, by
    seconds of CPU per trace.
    """
    module = importlib.import_module(library)
    trace = module.make_jaxpr if library == "jax" else module.make_olympuspr
    for part in PARTS:
        importlib.import_module(f"{library}.{part}")
    gc.disable()
    print("ready", flush=True)
    for line in sys.stdin:
        name, given, kinds, uses = json.loads(line)
        try:
            fun = function(library, name)
            program, arrays = traceable(module, fun, unpacked(given[0]), dict(
                zip(given[1], unpacked(given[2]), strict=True)), kinds, uses)
            start = time.process_time()
            trace(program)(*arrays)
            answer: Any = time.process_time() - start
        except Exception as error:
            answer = f"{type(error).__name__}: {error}".splitlines()[0][:100]
        gc.collect(0)
        print(json.dumps(answer), flush=True)


@functools.cache
def function(library: str, name: str) -> Callable[..., Any]:
    module, _, last = f"{library}.{name}".rpartition(".")
    return getattr(importlib.import_module(module), last)


def traceable(module: Any, fun: Callable[..., Any], args: Any, kwargs: Any, kinds: str, uses: int
              ) -> tuple[Callable[..., Any], list[Any]]:
    """A program that uses a function several times, and the arrays that it takes."""
    leaves, tree = module.tree.flatten((args, kwargs))
    moves = [isinstance(x, np.ndarray) and x.dtype.kind in kinds for x in leaves]

    def program(*arrays: Any) -> Any:
        rest = iter(arrays)
        args, kwargs = module.tree.unflatten(
            tree, [next(rest) if m else x for x, m in zip(leaves, moves, strict=True)])
        outs = [fun(*args, **kwargs) for _ in range(uses)]
        return [x for x in module.tree.leaves(outs) if hasattr(x, "aval")]

    return program, [x for x, m in zip(leaves, moves, strict=True) if m]


# The sweep.

def calls() -> Iterator[tuple[str, Any]]:
    """Legal calls of public functions: [arguments, names of keywords, their values]."""
    bad_input = importlib.import_module("bad_input")
    for name, fun in bad_input.functions():
        if name.partition(".")[0] not in PARTS:
            continue
        call = bad_input.legal_call(name, fun)
        if call is None:
            continue
        given = OWN.get(name, call.arguments)
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        skipped = False
        for p in bad_input.signature(fun).parameters.values():
            value = given.get(p.name, p.default)
            if p.kind is p.VAR_POSITIONAL:
                args += value
            elif p.kind is p.VAR_KEYWORD or value is p.default:
                skipped = True      # JAX may have another default, or no such parameter
            elif p.kind is p.POSITIONAL_ONLY or not (kwargs or p.kind is p.KEYWORD_ONLY or skipped):
                args.append(value)
            else:
                kwargs[p.name] = value
        try:
            yield name, [packed(args), list(kwargs), packed(list(kwargs.values()))]
        except TypeError as error:
            yield name, str(error)


def compare(workers: list[Worker], name: str, given: Any, rounds: int) -> list[Any]:
    """Seconds per use of each library, or the first error of each."""
    if isinstance(given, str):
        return [given, given]
    first: list[Any] = []
    for kinds in "fciub", "fc":
        found = [worker.ask(name, given, kinds, MANY) for worker in workers]
        first = first or found
        if not any(isinstance(x, str) for x in found):
            break
    else:
        return first
    if max(found) > 1:      # seconds
        rounds = 1
    least = [dict.fromkeys((FEW, MANY), math.inf) for _ in workers]
    for more in rounds, 4 * rounds:     # what seems slower is looked at again
        for _ in range(more):
            for worker, times in zip(workers, least, strict=True):
                for uses in (MANY, FEW):
                    times[uses] = min(times[uses], worker.ask(name, given, kinds, uses))
        each = [max(0.0, times[MANY] - times[FEW]) / (MANY - FEW) for times in least]
        if each[1] < each[0]:
            break
    return each


def _said(found: Any) -> str:
    return found if isinstance(found, str) else "traced"


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of names")
    parser.add_argument("--jax", help="the Python that has JAX")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--least", type=float, default=3.0, help="in microseconds")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.worker:
        return worker(options.worker)
    if not options.jax:
        parser.error("--jax: the Python that has JAX is required")
    env = {**os.environ, "OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}
    workers = [Worker(options.jax, "jax", {**env, "PYTHONPATH": ""}, __file__),
               Worker(sys.executable, "olympus", {**env, "PYTHONPATH": str(ROOT)}, __file__)]
    rows: list[tuple[float, str, float, float]] = []
    left, ours = [], []
    for name, given in calls():
        if not options.names or any(part in name for part in options.names):
            jax, olympus = compare(workers, name, given, options.rounds)
            if isinstance(jax, str) and jax.startswith("AttributeError: module 'jax"):
                ours.append(name)
            elif isinstance(jax, str) or isinstance(olympus, str):
                left.append(f"{name}: jax {_said(jax)}; olympus {_said(olympus)}")
            else:
                rows.append((olympus / max(jax, 1e-6), name, jax * 1e6, olympus * 1e6))
    rows.sort(reverse=True)
    print(f"| {'function':42} | {'JAX µs':>8} | Olympus µs | ratio |\n|{'-' * 44}|--------:|"
          "----------:|------:|")
    for ratio, name, jax, olympus in rows:
        print(f"| {name:42} | {jax:8.1f} | {olympus:10.1f} | {ratio:5.2f} |")
    print("\nNot compared:\n", *left, "", f"JAX has no {', '.join(ours)}.", sep="\n")
    slower = [row for row in rows if row[3] - row[2] >= options.least]
    mean = math.exp(sum(math.log(max(row[0], 1e-3)) for row in rows) / max(1, len(rows)))
    print(f"\n{len(rows)} functions, geometric mean of Olympus / JAX {mean:.2f}; {len(slower)} "
          f"trace slower by {options.least:g} µs or more; {len(left)} not compared, {len(ours)} "
          "that JAX lacks")
    return None


if __name__ == "__main__":
    main(sys.argv[1:])
