"""Run generated programs of shard_map against NumPy: `PYTHONPATH=.:tests` first.

    python tools/shard_map_sweep.py [first seed] [count]
"""

import os
import sys
import traceback

os.environ["XLA_FLAGS"] = (os.environ.get("XLA_FLAGS", "")
                           + " --xla_force_host_platform_device_count=8")

from shard_map_programs import Program

import olympus


def main() -> int:
    first, count = map(int, [*sys.argv[1:], *["0", "100"][len(sys.argv) - 1:]])
    failed = 0
    with olympus.enable_x64(True):
        for seed in range(first, first + count):
            program = Program(seed)
            try:
                program.run(eager=seed % 10 == 0)
            except Exception:
                failed += 1
                print(f"seed {seed}: {program}")
                traceback.print_exc(limit=-4)
    print(f"{count} programs, {failed} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
