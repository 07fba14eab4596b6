"""Which rows of tests/ops another engine compiles and computes alike: IREE, ONNX Runtime.

Each row is exported for float32, compiled by the engine, run by it, and its results compared with
those of Olympus. One line per table is printed, then one per row that fails, with what the engine
says. docs/export.md shows the result.

    PYTHONPATH=.:tests python tools/engine_rows.py iree|onnx [table ...] [--every N]
"""

import argparse
import collections
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import ops
import properties
from artifacts import program_of

import olympus
from olympus import export

SKIPPED = {"effects", "errors", "rules", "lax_collectives", "random"}


def run_iree(exported: Any, args: Sequence[np.ndarray], folder: Path) -> list[np.ndarray]:
    """The results by IREE."""
    export.to_iree(exported, folder / "row.vmfb")
    command = [shutil.which("iree-run-module", path=str(Path(sys.executable).parent)),
               f"--module={folder / 'row.vmfb'}", "--device=local-task", "--function=main"]
    for i in exported.module_kept_var_idx:
        np.save(folder / f"in{i}.npy", np.asarray(args[i], order="C"))
        command.append(f"--input=@{folder / f'in{i}.npy'}")
    names = [folder / f"out{i}.npy" for i in range(len(exported.out_avals))]
    done = subprocess.run([*command, *(f"--output=@{n}" for n in names)], capture_output=True,
                          text=True, timeout=120, check=False)
    if done.returncode:
        raise RuntimeError(f"iree-run-module: {done.stderr[:300]}")
    return [np.load(n) for n in names]


def run_onnx(exported: Any, args: Sequence[np.ndarray], folder: Path) -> list[np.ndarray]:
    """The results by ONNX Runtime."""
    runtime = importlib.import_module("onnxruntime")
    export.to_onnx(exported, folder / "row.onnx")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    session = runtime.InferenceSession(folder / "row.onnx", options)
    names = [i.name for i in session.get_inputs()]
    kept = [args[i] for i in exported.module_kept_var_idx]
    return session.run(None, dict(zip(names, kept, strict=True)))


def fault(row: Any, run: Callable[..., list[np.ndarray]]) -> str:
    """What is wrong with a row on the engine; empty where nothing is."""
    fun, args = program_of(row, properties.cast(row, "f"))
    try:
        with np.errstate(all="ignore"):
            want = list(map(np.asarray, olympus.tree.leaves(olympus.jit(fun)(*args))))
            exported = export.export(olympus.jit(fun))(*args)
    except Exception as error:
        return f"not exported: {type(error).__name__}"
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = run(exported, args, Path(folder))
        except Exception as error:
            return re.sub(r"\S+/", "", " ".join(str(error).split()))[:160]
    for x, y in zip(found, want, strict=True):
        kind = np.complex128 if y.dtype.kind == "c" else np.float64
        if x.shape != y.shape or not np.allclose(x.astype(kind), y.astype(kind), rtol=1e-3,
                                                 atol=1e-4, equal_nan=True):
            return "other results"
    return ""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=["iree", "onnx"])
    parser.add_argument("tables", nargs="*")
    parser.add_argument("--every", type=int, default=1)
    given = parser.parse_args()
    run = run_iree if given.engine == "iree" else run_onnx
    counts: dict[str, collections.Counter] = {}
    faults = []
    for table, rows in ops.tables().items():
        if table in SKIPPED or given.tables and table not in given.tables:
            continue
        count = counts[table] = collections.Counter()
        for row in [r for r in rows if isinstance(r, ops.Op)][::given.every]:
            found = fault(row, run)
            if found.startswith("not exported"):
                continue
            count["agree" if not found else "fail"] += 1
            if found:
                faults.append(f"{table} {row.name}: {found}")
        print(f"{table:20} {count['agree']:5} of {count.total():5}", flush=True)
    print(*faults, sep="\n")


if __name__ == "__main__":
    main()
