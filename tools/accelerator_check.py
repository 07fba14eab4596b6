"""Whether programs compile for TPUs and GPUs as well as they did, and as JAX's do.

    PYTHONPATH=.:tests python tools/accelerator_check.py [--part N]

Needs the wheels libtpu, jax-cuda13-plugin and jax-cuda13-pjrt beside jaxlib. Every row of the
tables of operations is lowered for a TPU and a GPU, without float64 if its arguments have none. A
third of them is compiled, and of tools/accelerator_programs.py a third of the functions, a third of
the programs for GPUs and a sixth of those for TPUs, which take three times as long, and the
transformer step over one of three meshes; N, the number of the run, says which; without it all are.
Fusions, temporaries, peak memory, FLOPs and bytes must be within 5 % of
tests/data/accelerators.json, Olympus's or JAX's, collectives JAX's. Exits with 1, and says what is
not.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import accelerator_programs
import accelerators
import edges
import numpy as np
import ops
import properties
from artifacts import program_of

import olympus
from olympus._src.devices.chips import parse_target

DOUBLE = (np.dtype("float64"), np.dtype("complex128"))
# What JAX refuses or fails in, too: kernels that a platform has not.
REFUSED = {
    "factorisations that only LAPACK has": r"kernel \w+ on platform|implementation QR|algorithm QR",
    "products that libtpu has no algorithm for": r"Dot algorithm \w+ is not supported",
    "windows over the last axes on TPUs": r"select-and-scatter with a window bound",
    "64-bit types that are off": r"bitcast_convert_type: float32",
    "programs that name their devices or platforms": r"incompatible devices|was exported for",
    "accuracies that libtpu does not know": r"Accuracy analysis for",
    "cuDNN's attention": r"cuDNN's kernels are not bound",
}


def rows() -> Iterator[tuple[str, Any, list[Any]]]:
    """Name, function and arguments of each row of the tables of operations, in float32."""
    for name, found in ops.tables().items():
        for row in found:
            if isinstance(row, ops.Op) and "f" in row.dtypes:
                _, given = next(edges.variants(row, properties.cast(row, "f")))
                fun, values = program_of(row, given)
                yield f"{name} {row.name}", fun, [x if hasattr(x, "aval") else np.asarray(x)
                                                  for x in values]


class Run:
    """What a run looks at for a target, and what it found wrong. `part` is its number."""

    def __init__(self, target: str, part: int | None) -> None:
        self.target, self.part, self.wrong = target, part, 0
        self.library = accelerator_programs.load("olympus")

    def has(self, number: int, parts: int) -> bool:
        return self.part is None or number % parts == self.part % parts

    def tell(self, name: str, text: str) -> None:
        self.wrong += 1
        print(f"{self.target} {name}: {text}", flush=True)

    def rows(self) -> tuple[int, int]:
        """How many rows were lowered, and compiled."""
        platform = parse_target(self.target).chip.platform
        place = olympus.sharding.SingleDeviceSharding(
            accelerators.topology(self.library, self.target).devices[0])
        lowered = compiled = 0
        for number, (name, fun, values) in enumerate(rows()):
            try:
                jitted = olympus.jit(fun)
                text = jitted.trace(*values).lower(lowering_platforms=(platform,)).as_text()
                lowered += 1
                if re.search(r"[x<]f64>", text) and not any(x.dtype in DOUBLE for x in values):
                    self.tell(name, "float64 in a program of float32")
                if self.has(number, 3):
                    jitted.lower(*[olympus.ShapeDtypeStruct(
                        x.shape, olympus.dtypes.canonicalize_dtype(x.dtype), sharding=place)
                        for x in values]).compile()
                    compiled += 1
            except Exception as error:
                if not any(re.search(pattern, str(error)) for pattern in REFUSED.values()):
                    self.tell(name, " ".join(f"{type(error).__name__}: {error}".split())[:300])
        return lowered, compiled

    def programs(self, kept: dict[str, Any]) -> int:
        """How many programs were compared with kept figures."""
        platform = parse_target(self.target).chip.platform
        count, parts = 0, {"functions": 3, "programs": 6 if platform == "tpu" else 3}
        groups = [(which, self.target) for which in parts]
        if self.target == accelerators.CHIPS[0]:
            groups += [("sharded", mesh) for i, mesh in enumerate(accelerators.TARGETS["sharded"])
                       if self.has(i, 3)]
        for which, where in groups:
            before = kept[f"{which} {where}"]
            for number, (name, fun, args) in enumerate(
                    accelerators.cases(self.library, which, where)):
                taken = number == 0 if which == "sharded" else self.has(number, parts[which])
                if not taken and self.part is not None:
                    continue
                try:
                    found = accelerators.figures(fun, args)
                except Exception as error:
                    found = {"error": " ".join(f"{type(error).__name__}: {error}".split())[:300]}
                count += 1
                if name not in before:
                    self.tell(f"{which} {where} {name}", "has no kept figures; run compare --write")
                    continue
                theirs, ours = before[name]["jax"], before[name]["olympus"]
                for line in accelerators.differences(found, theirs, ours):
                    self.tell(f"{which} {where} {name}", line)
        return count


def check(target: str, part: int | None) -> int:
    """Print the faults for a target; their number."""
    run = Run(target, part)
    lowered, compiled = run.rows()
    count = run.programs(json.loads(accelerators.FIGURES.read_text(encoding="utf-8")))
    print(f"{target}: {lowered} rows lowered, {compiled} of them compiled, {count} programs "
          f"compared, in {time.process_time():.0f} s; {run.wrong} wrong", flush=True)
    return run.wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", type=int)
    parser.add_argument("--target", choices=accelerators.CHIPS)
    options = parser.parse_args()
    # Rows make functions anew, as users are advised not to.
    warnings.filterwarnings("ignore", r"jit: .*, was made and traced", UserWarning)
    if options.target:
        sys.exit(check(options.target, options.part) > 0)
    own = [] if options.part is None else ["--part", str(options.part)]
    started = [subprocess.Popen([sys.executable, __file__, "--target", target, *own])
               for target in accelerators.CHIPS]        # at once
    codes = [process.wait() for process in started]
    sys.exit(any(codes))


if __name__ == "__main__":
    main()
