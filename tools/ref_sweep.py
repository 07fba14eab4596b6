"""Generated programs with references beside the same on plain arrays: `PYTHONPATH=.:tests` first.

    python tools/ref_sweep.py [first seed] [count] [--way eager|jit|steps]

Each program (`tests/ref_programs.py`) runs under one pair of transformations; 64 seeds in turn are
all pairs. Without `--way` one of eight runs eagerly, one in jit and the others step by step, which
takes no time of XLA's compiler.
"""

from __future__ import annotations

import argparse
import sys
import traceback
import warnings

import ref_programs as programs

import olympus

_WAYS = ("eager", "jit", "steps")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("first", nargs="?", type=int, default=0, help="the first seed")
    parser.add_argument("count", nargs="?", type=int, default=640, help="how many seeds")
    parser.add_argument("--way", choices=_WAYS, help="how the programs on references run")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    olympus.config.update("olympus_disable_most_optimizations", True)
    failed = 0
    for done, seed in enumerate(range(given.first, given.first + given.count)):
        if done % 64 == 0:
            print(f"seed {seed}, {failed} failed so far", flush=True)
        pair = programs.PAIRS[seed % len(programs.PAIRS)]
        way = given.way or _WAYS[min((seed // len(programs.PAIRS) + seed) % 8, 2)]
        try:
            far = programs.difference(seed, *pair, way)
            if far < 1e-3:
                continue
            print(f"seed {seed}, {pair}, {way}: {far:.1e} apart: {programs.Program(seed)}")
        except Exception:
            print(f"seed {seed}, {pair}, {way}: {programs.Program(seed)}")
            traceback.print_exc(limit=-4)
        failed += 1
        if seed % 256 == 255:
            olympus.clear_caches()
    print(f"{given.count} programs, {failed} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
