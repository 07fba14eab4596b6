"""StableHLO's reference interpreter as a second oracle: every row's program, value for value.

The interpreter implements the operations anew. Where it cannot go on it may end the process, so
what it lacks is looked for in the module's text beforehand; the count of those rows is printed.
XLA's values are held against a row's own oracle by `properties`: where that is as close as this
comparison, the interpreter's values are held against it too, and nothing is compiled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from ops import Op, tables
from properties import cast, rows

from olympus import jit, numpy as onp, tree
from olympus._src.base.lib import mlir

# What the interpreter of jaxlib 0.10.2 lacks, as the module's text shows it, and what happens.
LACKS = {
    "stablehlo.custom_call": "kernels such as LAPACK's are not StableHLO: ends the process",
    "stablehlo.fft": "ends the process: 'Semantics mismatch between type and complex value'",
    "stablehlo.rng": "ends the process: 'Operation stablehlo.rng is unsupported'",
    "complex<": "complex arrays get neither in nor out: 'unimplemented array format conversion'",
    "xui": "unsigned arrays get in as signed ones: 'invalid input argument type'",
    "chlo.": "an operation that has no legalisation to StableHLO",
}
# Rows whose results StableHLO leaves open.
OPEN = dict.fromkeys(("lax.reduce_window-any-start", "lax.select_and_scatter-product"),
                     "how often a start that is no identity counts")
# Where the interpreter of jaxlib 0.10.2 is wrong: a scatter writes into its operand, so operations
# after it that read the operand have other numbers. NumPy is with XLA.
OPEN |= dict.fromkeys(("unique_all", "unique_counts", "unique_inverse", "unique_values", "union1d",
                       "intersect1d", "setdiff1d", "setxor1d", "argwhere", "compress", "extract",
                       "flatnonzero", "mask_indices", "nonzero"), "reads what a scatter wrote into")
CLOSE = 2e-5
TABLE = [row for table in tables().values() for row in table if isinstance(row, Op)]
skipped: Counter[str] = Counter()


@pytest.fixture(scope="module", autouse=True)
def _count(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    counts = ", ".join(f"{n} {mark}" for mark, n in skipped.items())
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print(f"\nnot for StableHLO's interpreter: {sum(skipped.values())} of {len(TABLE)} rows "
              f"({counts})")


@rows()
def test_interpreter_agrees_with_xla(op: Op) -> None:
    if op.name in OPEN:
        skipped["left open"] += 1
        pytest.skip(OPEN[op.name])
    args = cast(op, op.dtypes[0])
    compiled = jit(op.fun, keep_unused=True)
    module = compiled.lower(*args).compiler_ir()
    mlir.legalize_chlo(module)
    text = str(module)
    for mark, why in LACKS.items():
        if mark in text:
            skipped[mark] += 1
            pytest.skip(why)
    results = mlir.eval_module(module, [np.asarray(onp.asarray(x)) for x in tree.leaves(args)])
    with np.errstate(all="ignore"):
        values = op.oracle(*args) if op.tol <= CLOSE else compiled(*args)
    expected = [np.asarray(x) for x in tree.leaves(values)]
    for r, e in zip(map(np.array, results), expected, strict=True):
        np.testing.assert_allclose(r.reshape(e.shape).astype("f8"), e.astype("f8"), CLOSE, CLOSE)
