"""Which rows of tests/ops another engine compiles and computes alike: IREE, ONNX Runtime.

Each row is exported for float32, compiled by the engine, run by it, and its results compared with
those of Olympus; ONNX's checker passes each model. A row that does not agree is printed with what
the engine says, then a line per table. `REASONS` has what an engine may refuse, or compute
otherwise; a row that does not agree for another reason fails the run. docs/export.md shows the
result.

    PYTHONPATH=.:tests python tools/engine_rows.py iree|onnx [table ...] [--every N]
"""

import argparse
import collections
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import engines
import numpy as np
import ops
import properties
from artifacts import program_of

import olympus
from olympus import export

SKIPPED = {"effects", "errors", "rules", "lax_collectives", "random"}
REASONS = {
    "onnx": {
        "factorisations and solves": r"custom call",
        "complex numbers, Fourier transforms": r"of complex<|stablehlo\.fft",
        "bits of numbers": r"bitcast_convert|shift_|popcnt|reduce_precision|total order|reduce_xor",
        "gathers and scatters of parts of slices, or of the batch":
            r"(gather|scatter) of parts of axes|scatter of several|select_and_scatter|of the batch",
        "functions of their own": r"with a function of its own|reduce_window of several",
        "types that ONNX Runtime has no kernel for": r"NOT_IMPLEMENTED",
    },
    "iree": {
        "factorisations and solves": r"custom calls",
        "what the compiler does not lower": r"iree-compile refused",
        "checkpointed loops": r"control_loops .*: iree-run-module",
        "the start of padded windows, which StableHLO leaves open":
            r"reduce_window-any-start: other results",
        "doubles that float32 has not, computed in it": r"special\.jn: other results",
    },
}


def run_iree(exported: Any, args: Sequence[np.ndarray], folder: Path) -> list[np.ndarray]:
    """The results by IREE."""
    export.to_iree(exported, folder / "row.vmfb")
    return engines.run_iree(folder / "row.vmfb", "main", args, len(exported.out_avals))


def run_onnx(exported: Any, args: Sequence[np.ndarray], folder: Path) -> list[np.ndarray]:
    """The results by ONNX Runtime."""
    export.to_onnx(exported, folder / "row.onnx")
    engines.check_onnx(folder / "row.onnx")
    return engines.run_onnx(folder / "row.onnx", *args)


RUNS = {"iree": run_iree, "onnx": run_onnx}


def fault(row: Any, engine: str) -> str | None:
    """What is wrong with a row on the engine: '' for nothing, None for one that is no export."""
    fun, args = program_of(row, properties.cast(row, "f"))
    try:
        with np.errstate(all="ignore"):
            want = list(map(np.asarray, olympus.tree.leaves(olympus.jit(fun)(*args))))
            exported = export.export(olympus.jit(fun))(*args)
    except Exception:
        return None
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = RUNS[engine](exported, [args[i] for i in exported.module_kept_var_idx],
                                 Path(folder))
        except Exception as error:
            return re.sub(r"\S+/", "", " ".join(str(error).split()))[:300]
    for x, y in zip(found, want, strict=True):
        kind = np.complex128 if y.dtype.kind == "c" else np.float64
        if x.shape != y.shape or not np.allclose(x.astype(kind), y.astype(kind), rtol=1e-3,
                                                 atol=1e-4, equal_nan=True):
            return "other results"
    return ""


def main() -> None:
    """Print the table; the exit status is 1 if a row fails without a reason."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=RUNS)
    parser.add_argument("tables", nargs="*")
    parser.add_argument("--every", type=int, default=1)
    given = parser.parse_args()
    total, reasons = collections.Counter(), collections.Counter()
    for table, rows in ops.tables().items():
        if table in SKIPPED or given.tables and table not in given.tables:
            continue
        count = collections.Counter()
        for row in [r for r in rows if isinstance(r, ops.Op)][::given.every]:
            found = fault(row, given.engine)
            if found is None:
                continue
            line = f"{table} {row.name}: {found}"
            why = next((why for why, pattern in REASONS[given.engine].items()
                        if re.search(pattern, line)), None)
            count["agree" if not found else "refused" if why else "fail"] += 1
            if found:
                print("  " if why else "FAILED ", line[:200], flush=True)
                reasons[why] += 1
        total += count
        print(f"{table:20} {count['agree']:5} of {count.total():5}", flush=True)
    print(f"{given.engine}: {total['agree']} of {total.total()} rows agree, {total['refused']} are "
          f"refused, {total['fail']} fail")
    print(*(f"{count:6} {why}" for why, count in reasons.most_common() if why), sep="\n")
    sys.exit(total["fail"] > 0)


if __name__ == "__main__":
    main()
