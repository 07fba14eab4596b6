"""Programs compiled for TPUs and GPUs that are not here, Olympus beside JAX.

    python tools/accelerators.py compare [--jax PYTHON_WITH_JAX] [--sets functions ...] [--write]

Both Pythons need the wheels libtpu, jax-cuda13-plugin and jax-cuda13-pjrt beside jaxlib. The
libraries take turns, in a process for each set of programs and target; without `--jax`, JAX's
figures are those that were kept. `--write` keeps the figures in tests/data/accelerators.json, which
tools/accelerator_check.py holds Olympus to, and the table in docs/accelerators.md.

Nothing is executed on an accelerator. Times are CPU times; compiling counts all threads.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import accelerator_programs

ROOT = Path(__file__).resolve().parent.parent
FIGURES, PAGE = ROOT / "tests/data/accelerators.json", ROOT / "docs/accelerators.md"
KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
CHIPS = ("v5e:2x2", "h100:1")
TARGETS = {"programs": CHIPS, "functions": CHIPS, "sharded": ("v5e:2x2", "v5e:2x4", "v5e:16x16"),
           "topologies": ("v2:2x2", "v3:2x2", "v4:2x2x1", "v5e:2x2", "v5p:2x2x4", "v6e:16x16",
                          "tpu7x:2x2x1")}
# What `check` compares, and by how much a figure may be larger than both that were kept: bytes that
# say little are few.
COMPARED = {"fusions": 1, "temporaries": 4096, "flops": 4096, "bytes": 16384, "peak": 16384}

def chips() -> Any:
    """The module of targets, which needs nothing of Olympus, where that is not installed."""
    path = ROOT / "olympus/_src/devices/chips.py"
    spec: Any = importlib.util.spec_from_file_location("chips", path)
    module = sys.modules["chips"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def topology(library: Any, target: str) -> Any:
    """The description of devices, which JAX wants told in full."""
    described = importlib.import_module(f"{library.__name__}.experimental.topologies")
    if library.__name__ == "olympus":
        return described.get_topology_desc(target)
    platform, name, options = chips().parse_target(target).topology()
    if platform == "cuda":      # it asks which cuDNN is here, and none is
        plugin = importlib.import_module("jax_plugins.xla_cuda13")
        plugin._check_cuda_versions = lambda **_: None
    return described.get_topology_desc(name, platform, **options)


def cases(library: Any, which: str, target: str) -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """Names, jitted functions and arguments of a set."""
    described = topology(library, target)
    if which == "sharded":
        module = importlib.import_module(f"{library.__name__}.experimental.topologies")
        count = len(described.devices)
        rows = {4: 2, 8: 4, 256: 16}[count]
        mesh = module.make_mesh(described, (rows, count // rows), ("data", "model"))
        for name, (fun, args) in accelerator_programs.sharded(library, mesh).items():
            yield name, fun, args
        return
    here = library.sharding.SingleDeviceSharding(described.devices[0])
    for name, (fun, *shapes) in getattr(accelerator_programs, which)(library).items():
        yield name, library.jit(fun), library.tree.map(
            lambda s: library.ShapeDtypeStruct(s.shape, s.dtype, sharding=here), tuple(shapes))


def figures(fun: Any, args: tuple[Any, ...]) -> dict[str, Any]:
    """What a program is compiled to."""
    # Lowering runs in one thread; threads of the last compilation may still be at work.
    start = time.thread_time()
    lowered = fun.lower(*args)
    lowering = time.thread_time() - start
    start = time.process_time()
    compiled = lowered.compile()
    compiling = time.process_time() - start
    memory, text = compiled.memory_analysis(), compiled.as_text()
    costs = compiled.cost_analysis() or {}
    found = {"fusions": text.count(" fusion("), "copies": text.count(" copy("),
             "lines": text.count("\n"), "temporaries": memory.temp_size_in_bytes,
             "code": memory.generated_code_size_in_bytes,
             "peak": memory.peak_memory_in_bytes, "flops": costs.get("flops"),
             "bytes": costs.get("bytes accessed"),
             "f64": len(re.findall(r"\bf64\[", text))}
    for kind in KINDS:
        found[kind] = len(re.findall(rf" {kind}(?:-start)?\(", text))
    return {"lower": lowering, "compile": compiling, **{
        name: value for name, value in found.items() if value or name == "temporaries"}}


def work(name: str, which: str, target: str, only: list[str]) -> None:
    """Print the figures of a set of programs, a line each."""
    library = accelerator_programs.load(name)
    warm = False
    for program, fun, args in cases(library, which, target):
        if only and program not in only:
            continue
        if not warm:    # Olympus loads modules of lowering with the first program, JAX before it
            with contextlib.suppress(Exception):        # which `figures` meets again
                fun.lower(*args)
            library.clear_caches()
            warm = True
        try:
            found = figures(fun, args)
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"}
        print(json.dumps([program, found]), flush=True)


def ask(python: str, library: str, which: str, target: str) -> dict[str, dict[str, Any]]:
    """What a library says of a set, in a process of its own."""
    paths = [str(ROOT)] if library == "olympus" else []
    # A process that uses libtpu may run beside, which is an error to JAX's.
    env = {**os.environ, "ALLOW_MULTIPLE_LIBTPU_LOAD": "1", "PYTHONPATH": os.pathsep.join(
        [*paths, *filter(None, [os.environ.get("PYTHONPATH", "")])])}
    done = subprocess.run([python, __file__, "measure", library, which, target], env=env, text=True,
                          capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"{library}, {which}, {target}: {done.stderr[-2000:]}")
    return dict(map(json.loads, done.stdout.splitlines()))


def compare(python: str, jax: str | None, sets: list[str], write: bool) -> None:
    """Measure, print what differs, and keep it if `write`."""
    kept = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    for which in sets:
        for target in TARGETS[which]:
            group = f"{which} {target}"
            theirs = ask(jax, "jax", which, target) if jax else {
                name: found["jax"] for name, found in kept.get(group, {}).items()}
            ours = ask(python, "olympus", which, target)
            kept[group] = {
                name: {"jax": theirs.get(name, {}), "olympus": found}
                for name, found in ours.items()}
            for name, found in ours.items():
                for line in differences(found, theirs.get(name, {}), {}):
                    print(f"{which} {target} {name}: {line}", flush=True)
    print("\n".join(table(kept)))
    if write:
        groups = [f"{json.dumps(group)}: {{\n" + ",\n".join(
            f"{json.dumps(name)}: {json.dumps(rounded(found))}" for name, found in each.items())
            + "}" for group, each in kept.items()]
        FIGURES.write_text("{" + ",\n".join(groups) + "}\n", encoding="utf-8")
        text = PAGE.read_text(encoding="utf-8")
        before, rest = text.split("<!-- figures -->\n")[:2]
        PAGE.write_text(before + "<!-- figures -->\n" + "\n".join(table(kept)) + "\n"
                        + rest[rest.index("<!-- end of figures -->"):], encoding="utf-8")


def rounded(found: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Figures as they are kept: times in milliseconds, no zeros, no lines."""
    return {library: {name: round(value, 3) if name in ("lower", "compile") else value
                      if isinstance(value, str) else int(value)
                      for name, value in each.items() if name not in ("lines", "code")}
            for library, each in found.items()}


def differences(found: dict[str, Any], theirs: dict[str, Any], before: dict[str, Any]
                ) -> Iterator[str]:
    """The figures in which a program is worse than JAX's and than before."""
    if "error" in found:
        if "error" not in {**theirs, **before}:
            yield found["error"]
        return
    if found.get("f64"):
        yield f"{found['f64']} values of float64"
    for name, least in COMPARED.items():
        bound = max(x.get(name) or 0 for x in (theirs, before))
        value = found.get(name) or 0
        if "error" not in theirs and value > 1.05 * bound and value - bound >= least:
            yield f"{name} {value:,.0f}; {bound:,.0f} is required"
    kinds = [{kind: x.get(kind, 0) for kind in KINDS} for x in (found, theirs)]
    if theirs and "error" not in theirs and any(kinds[0][kind] > kinds[1][kind] for kind in KINDS):
        yield f"collectives {kinds[0]}; {kinds[1]} is required"


def table(kept: dict[str, dict[str, Any]]) -> list[str]:
    """The table of the page."""
    lines = ["| programs, target | as good as JAX's, of all | lowering, Olympus / JAX "
             "| compiling, Olympus / JAX | worse, and by how much |", "|-|-|-|-|-|"]
    for group, each in kept.items():
        each = {name: x for name, x in each.items() if x["jax"] and x["olympus"]}
        both = [x for x in each.values() if "error" not in {**x["jax"], **x["olympus"]}]
        if not both:
            continue
        worse = {name: [line.split(";")[0] for line in differences(x["olympus"], x["jax"], {})]
                 for name, x in each.items()}
        ratios = [sum(x["olympus"][k] for x in both) / sum(x["jax"][k] for x in both)
                  for k in ("lower", "compile")]
        texts = [f"{name}: {factors(each[name])}" for name, found in worse.items() if found]
        good = sum(not found for found in worse.values())
        lines.append(f"| {group} | {good} of {len(each)} | {ratios[0]:.2f} | {ratios[1]:.2f} | "
                     f"{'; '.join(texts)} |")
    return lines


def factors(case: dict[str, dict[str, Any]]) -> str:
    found, theirs = case["olympus"], case["jax"]
    if "error" in found:
        return "refused"
    return ", ".join(
        f"{name} {f'{value / bound:.1f} times' if bound else f'{value:,.0f}'}"
        for name, least in COMPARED.items()
        for value, bound in [(found.get(name) or 0, theirs.get(name) or 0)]
        if value > 1.05 * bound and value - bound >= least)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    how = commands.add_parser("compare")
    how.add_argument("--jax")
    how.add_argument("--python", default=sys.executable)
    how.add_argument("--sets", nargs="*", default=list(TARGETS), choices=list(TARGETS))
    how.add_argument("--write", action="store_true")
    how = commands.add_parser("measure")
    how.add_argument("what", nargs=3)
    how.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    if options.command == "compare":
        compare(options.python, options.jax, options.sets, options.write)
    else:
        work(*options.what, options.only)


if __name__ == "__main__":
    main()
