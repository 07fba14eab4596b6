"""Programs compiled for TPUs and GPUs that are not here, Olympus beside JAX.

    python tools/accelerators.py compare --jax PYTHON_WITH_JAX [--sets functions ...] [--write]
    python tools/accelerators.py check [--third 0|1|2]

Both need the wheels of libtpu, jax-cuda13-plugin and jax-cuda13-pjrt beside jaxlib; `compare` in
the Python with JAX, too. The libraries take turns, a process for each set of programs and target.
`--write` keeps the figures in tests/data/accelerators.json, which `check` holds Olympus to, and the
table of docs/accelerators.md. Nothing is executed on an accelerator: a figure is of the compiled
program, and times are of the processor, threads together.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import importlib.util
import json
import math
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
TARGETS = {"programs": ("v5e:2x2", "h100:1"), "functions": ("v5e:2x2", "h100:1"),
           "sharded": ("v5e:2x2", "v5e:2x4", "v5e:16x16"),
           "topologies": ("v2:2x2", "v3:2x2", "v4:2x2x1", "v5e:2x2", "v5p:2x2x4", "v6e:16x16",
                          "tpu7x:2x2x1")}


def chips() -> Any:
    """The module of targets, which imports nothing of Olympus, where that is not installed."""
    spec = importlib.util.spec_from_file_location(
        "chips", ROOT / "olympus/_src/devices/chips.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["chips"] = module
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
        chips = len(described.devices)
        rows = {4: 2, 8: 4, 256: 16}[chips]
        mesh = importlib.import_module(f"{library.__name__}.experimental.topologies").make_mesh(
            described, (rows, chips // rows), ("data", "model"))
        yield from ((name, *case) for name, case in accelerator_programs.sharded(
            library, mesh).items())
        return
    here = library.sharding.SingleDeviceSharding(described.devices[0])
    made = accelerator_programs.functions(library) if which == "functions" else (
        accelerator_programs.programs(library))
    if which == "topologies":
        made = {"softmax of a product": (
            lambda a: library.nn.softmax(a @ a), library.ShapeDtypeStruct(
                (512, 512), library.numpy.bfloat16))}
    for name, (fun, *shapes) in made.items():
        placed = library.tree.map(
            lambda s: library.ShapeDtypeStruct(s.shape, s.dtype, sharding=here), tuple(shapes))
        yield name, library.jit(fun), placed


def figures(fun: Any, args: tuple[Any, ...]) -> dict[str, Any]:
    """What a program is compiled to."""
    start = time.process_time()
    lowered = fun.lower(*args)
    middle = time.process_time()
    compiled = lowered.compile()
    end = time.process_time()
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
    return {"lower": middle - start, "compile": end - middle, **{
        name: value for name, value in found.items() if value or name == "temporaries"}}


def work(name: str, which: str, target: str, only: list[str], texts: str | None) -> None:
    """Print the figures of a set of programs, a line each."""
    library = accelerator_programs.load(name)
    for program, fun, args in cases(library, which, target):
        if only and program not in only:
            continue
        try:
            found = figures(fun, args)
            if texts:
                folder = Path(texts) / name / target.replace(":", "-")
                folder.mkdir(parents=True, exist_ok=True)
                lowered = fun.lower(*args)
                stem = re.sub(r"\W+", "_", program)
                (folder / f"{stem}.mlir").write_text(lowered.as_text())
                (folder / f"{stem}.hlo").write_text(lowered.compile().as_text())
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
        print(json.dumps([program, found]), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("worker", nargs=3)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--texts")
    o = parser.parse_args()
    work(*o.worker, o.only, o.texts)


if __name__ == "__main__":
    main()
