"""Generated programs with references beside the same on plain arrays: `PYTHONPATH=.:tests` first.

    python tools/ref_sweep.py [first seed] [count]

Each program (`tests/ref_programs.py`) runs under one pair of transformations; 64 seeds in turn are
all pairs.
"""

from __future__ import annotations

import sys
import traceback
import warnings

import ref_programs as programs

import olympus


def main() -> int:
    first, count = map(int, [*sys.argv[1:], *["0", "640"][len(sys.argv) - 1:]])
    warnings.simplefilter("ignore")
    olympus.config.update("olympus_disable_most_optimizations", True)
    failed = 0
    for seed in range(first, first + count):
        if seed % 64 == 0:
            print(f"seed {seed}, {failed} failed so far")
        pair = programs.PAIRS[seed % len(programs.PAIRS)]
        try:
            far = programs.difference(seed, *pair)
            if far < 1e-3:
                continue
            print(f"seed {seed}, {pair}: {far:.1e} apart: {programs.Program(seed)}")
        except Exception:
            print(f"seed {seed}, {pair}: {programs.Program(seed)}")
            traceback.print_exc(limit=-4)
        failed += 1
        if seed % 256 == 255:
            olympus.clear_caches()
    print(f"{count} programs, {failed} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
