"""Which rows of tests/ops another engine compiles and computes alike: IREE, ONNX Runtime.

Each row is exported for float32, and an elementwise one of integers for int32, too; compiled by the
engine, run by it on its usual arguments and on the edges of tests/edges.py, and its results
compared with jit's; ONNX's checker passes each model. A row that does not agree is printed with the
engine's message, then a line per table. `REASONS` has the operations that an engine may refuse, or
compute otherwise; a row that does not agree for another reason fails the run. docs/export.md shows
the result.

    PYTHONPATH=.:tests python tools/engine_rows.py iree|onnx [table ...] [--every N]
"""

import argparse
import collections
import re
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import edges
import engines
import numpy as np
import ops
import properties
from artifacts import program_of

import olympus
from olympus import export

SKIPPED = {"effects", "errors", "rules", "lax_collectives", "random"}
TOGETHER = 12       # rows that IREE compiles at once, which costs a quarter
REASONS = {
    "onnx": {
        "factorisations and solves": r"custom call",
        "complex numbers, Fourier transforms": r"of complex<|stablehlo\.fft",
        "bits of numbers": r"bitcast_convert|shift_|popcnt|reduce_precision|total order|reduce_xor",
        "gathers and scatters of parts of slices, or of the batch":
            r"(gather|scatter) of parts of axes|scatter of several|select_and_scatter|of the batch",
        "functions of their own": r"with a function of its own|reduce_window of several",
        "the zeros between spread elements of convolutions, times infinity or NaN":
            r"\.conv_.*: (nan|infinities): other NaN",
        "which zero is the larger": r"max|min.*: other signs of zeros",
        "the order of equal numbers where the program leaves it open":
            r"(top_k-unstable|approx_max_k|approx_min_k).*: ties: other numbers",
        "types that ONNX Runtime has no kernel for": r"NOT_IMPLEMENTED",
    },
    "iree": {
        "factorisations and solves": r"custom calls",
        "what the compiler does not lower": r"iree-compile refused",
        "checkpointed loops": r"control_loops .*: Error invoking function",
        "the start of padded windows, which StableHLO leaves open":
            r"reduce_window-any-start: .*other numbers",
        "the zeros between spread elements of convolutions, times infinity or NaN":
            r"\.conv_.*: (nan|infinities): other NaN",
        # Where a program compiled with it has a function of doubles that IREE lacks, too.
        "doubles that float32 has not, computed in it":
            r"(special\.(jn|kve?|ellipk|ellipkm1|expn)|lax\.betainc.*): .*other",
    },
}


class Case(NamedTuple):
    """A row of a table as a program."""

    table: str
    row: ops.Op
    kind: str
    args: tuple[Any, ...]
    jitted: Any
    exported: Any


    @property
    def name(self) -> str:
        return f"{self.table} {self.row.name}" + (" of integers" if self.kind == "i" else "")


def case_of(table: str, row: ops.Op, kind: str) -> Case | None:
    """None for a row that is no export, or has no arguments of the kind."""
    if kind == "i" and not (row.each and "i" in row.dtypes):
        return None
    args = properties.cast(row, kind)
    if kind == "i" and not edges.elementwise(row, olympus.tree.leaves(args), kind):
        return None
    try:
        _, given = next(edges.variants(row, args, kind))
        fun, values = program_of(row, given, kind)
        jitted = olympus.jit(fun)
        return Case(table, row, kind, args, jitted, export.export(jitted)(*values))
    except Exception:
        return None


def load_iree(exports: dict[str, Any], folder: Path) -> dict[str, engines.Call | Exception]:
    """Exports as IREE runs them: compiled together, or, if some cannot be, by halves."""
    try:
        export.to_iree(exports, folder / "rows.vmfb")
        return engines.loaded_iree(folder / "rows.vmfb", exports)
    except Exception as error:
        if len(exports) == 1:
            return dict.fromkeys(exports, error)
    both, half = list(exports.items()), len(exports) // 2
    return load_iree(dict(both[:half]), folder) | load_iree(dict(both[half:]), folder)


def load_onnx(exports: dict[str, Any], folder: Path) -> dict[str, engines.Call | Exception]:
    """Exports as ONNX Runtime runs them."""
    found = {}
    for name, exported in exports.items():
        try:
            export.to_onnx(exported, folder / "row.onnx")
            engines.check_onnx(folder / "row.onnx")
            found[name] = engines.loaded_onnx(folder / "row.onnx")
        except Exception as error:
            found[name] = error
    return found


LOADS = {"iree": load_iree, "onnx": load_onnx}


def faults(case: Case, call: engines.Call | Exception) -> list[str]:
    """What is wrong with a row on an engine."""
    found = []
    signs = edges.elementwise(case.row, olympus.tree.leaves(case.args), case.kind)
    try:
        if isinstance(call, Exception):
            raise call
        for kind, given in edges.variants(case.row, case.args, case.kind):
            _, values = program_of(case.row, given, case.kind)
            with np.errstate(all="ignore"):
                want = list(map(np.asarray, olympus.tree.leaves(case.jitted(*values))))
            results = call(*[values[i] for i in case.exported.module_kept_var_idx])
            different = {edges.difference(*pair, signs) for pair in zip(results, want, strict=True)}
            found += [f"{kind}: {what}" for what in sorted(different - {""})]
    except Exception as error:
        return [re.sub(r"\S+/", "", " ".join(str(error).split()))[:300]]
    return found


def main() -> None:
    """Print the table; the exit status is 1 if a row fails without a reason."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=LOADS)
    parser.add_argument("tables", nargs="*")
    parser.add_argument("--every", type=int, default=1)
    given = parser.parse_args()
    cases = [case for table, rows in ops.tables().items()
             if table not in SKIPPED and (not given.tables or table in given.tables)
             for row in [r for r in rows if isinstance(r, ops.Op)][::given.every]
             for kind in "fi" if (case := case_of(table, row, kind)) is not None]
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    reasons: collections.Counter[str | None] = collections.Counter()
    for start in range(0, len(cases), TOGETHER):
        some = cases[start:start + TOGETHER]
        with tempfile.TemporaryDirectory() as folder:
            calls = LOADS[given.engine]({f"row{i}": case.exported for i, case in enumerate(some)},
                                        Path(folder))
        for case, call in zip(some, calls.values(), strict=True):
            lines = [f"{case.name}: {fault}" for fault in faults(case, call)]
            why = [next((why for why, pattern in REASONS[given.engine].items()
                         if re.search(pattern, line)), None) for line in lines]
            counts[case.table]["agree" if not lines else "refused" if all(why) else "fail"] += 1
            for line, reason in zip(lines, why, strict=True):
                print("  " if reason else "FAILED ", line[:200], flush=True)
            reasons.update(set(why))
    total: collections.Counter[str] = collections.Counter()
    for table, count in counts.items():
        total += count
        print(f"{table:20} {count['agree']:5} of {count.total():5}")
    print(f"{given.engine}: {total['agree']} of {total.total()} rows agree, {total['refused']} are "
          f"refused or differ for a reason, {total['fail']} fail")
    print(*(f"{count:6} {why}" for why, count in reasons.most_common() if why), sep="\n")
    sys.exit(total["fail"] > 0)


if __name__ == "__main__":
    main()
