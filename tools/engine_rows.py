"""Which rows of tests/ops another engine compiles and computes alike: IREE, ONNX Runtime.

Each row is exported for float32, compiled by the engine, run by it on its usual arguments and on
those of tests/edges.py, and its results compared with those of jit; ONNX's checker passes each
model. A row that does not agree is printed with what the engine says, then a line per table.
`REASONS` has what an engine may refuse, or compute otherwise; a row that does not agree for another
reason fails the run. docs/export.md shows the result.

    PYTHONPATH=.:tests python tools/engine_rows.py iree|onnx [table ...] [--every N]
"""

import argparse
import collections
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import edges
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
        "the zeros between spread elements of convolutions, times infinity or NaN":
            r"conv_transpose.*: (nan|infinities): other NaN",
        "which zero is the larger": r"max|min.*: other signs of zeros",
        "the order of equal numbers where the program leaves it open":
            r"(top_k-unstable|approx_max_k|approx_min_k).*: ties: other numbers",
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


def load_iree(exported: Any, folder: Path) -> Callable[..., list[np.ndarray]]:
    """An export as IREE runs it."""
    export.to_iree(exported, folder / "row.vmfb")
    return engines.loaded_iree(folder / "row.vmfb")


def load_onnx(exported: Any, folder: Path) -> Callable[..., list[np.ndarray]]:
    """An export as ONNX Runtime runs it."""
    export.to_onnx(exported, folder / "row.onnx")
    engines.check_onnx(folder / "row.onnx")
    return engines.loaded_onnx(folder / "row.onnx")


LOADS = {"iree": load_iree, "onnx": load_onnx}


def faults(row: Any, engine: str) -> list[str] | None:
    """What is wrong with a row on the engine; None for one that is no export."""
    args = properties.cast(row, "f")
    signs = edges.elementwise(row, olympus.tree.leaves(args))
    jitted = call = kept = None
    found = []
    for name, given in edges.variants(row, args):
        fun, values = program_of(row, given)
        try:
            if jitted is None:
                jitted = olympus.jit(fun)
                exported = export.export(jitted)(*values)
            with np.errstate(all="ignore"):
                want = list(map(np.asarray, olympus.tree.leaves(jitted(*values))))
        except Exception:
            return None
        try:
            if call is None:
                with tempfile.TemporaryDirectory() as folder:
                    call = LOADS[engine](exported, Path(folder))
                kept = exported.module_kept_var_idx
            results = call(*[values[i] for i in kept])
        except Exception as error:
            return [re.sub(r"\S+/", "", " ".join(str(error).split()))[:300]]
        different = {edges.difference(*pair, signs) for pair in zip(results, want, strict=True)}
        found += [f"{name}: {what}" for what in sorted(different - {""})]
    return found


def main() -> None:
    """Print the table; the exit status is 1 if a row fails without a reason."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=LOADS)
    parser.add_argument("tables", nargs="*")
    parser.add_argument("--every", type=int, default=1)
    given = parser.parse_args()
    total, reasons = collections.Counter(), collections.Counter()
    for table, rows in ops.tables().items():
        if table in SKIPPED or given.tables and table not in given.tables:
            continue
        count = collections.Counter()
        for row in [r for r in rows if isinstance(r, ops.Op)][::given.every]:
            found = faults(row, given.engine)
            if found is None:
                continue
            lines = [f"{table} {row.name}: {fault}" for fault in found]
            why = [next((why for why, pattern in REASONS[given.engine].items()
                         if re.search(pattern, line)), None) for line in lines]
            count["agree" if not found else "refused" if all(why) else "fail"] += 1
            for line, reason in zip(lines, why, strict=True):
                print("  " if reason else "FAILED ", line[:200], flush=True)
            reasons.update(set(why))
        total += count
        print(f"{table:20} {count['agree']:5} of {count.total():5}", flush=True)
    print(f"{given.engine}: {total['agree']} of {total.total()} rows agree, {total['refused']} are "
          f"refused, {total['fail']} fail")
    print(*(f"{count:6} {why}" for why, count in reasons.most_common() if why), sep="\n")
    sys.exit(total["fail"] > 0)


if __name__ == "__main__":
    main()
