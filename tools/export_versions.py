"""Do jaxlibs of other versions read our artifacts, and do we read theirs?

Each Python given, with its own jaxlib, writes artifacts of the whole programs of
tests/artifacts.py, and every one reads what each other wrote and computes the same numbers.

    PYTHONPATH=.:tests python tools/export_versions.py PYTHON PYTHON ...
"""

import subprocess
import sys
import tempfile
from pathlib import Path

WRITE = """
import sys, jaxlib, artifacts, numpy, olympus
for name, (fun, args, gradient) in artifacts.PROGRAMS.items():
    artifacts.write(sys.argv[1], name, fun, args, gradient)
print(jaxlib.__version__)
"""
READ = """
import sys, artifacts
artifacts.run(sys.argv[1])
"""
COMPARE = """
import sys, numpy as np, pathlib
worst = 0.0
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.out.npz")):
    one, two = np.load(path), np.load(pathlib.Path(sys.argv[2]) / path.name)
    for name in one.files:
        x, y = one[name].astype(complex), two[name].astype(complex)
        if x.size and not np.allclose(x, y, rtol=1e-3, atol=1e-3, equal_nan=True):
            print(path.name, name, abs(x - y).max())
"""


def run(python: str, code: str, *args: str) -> str:
    """What a program prints under one of the Pythons."""
    done = subprocess.run([python, "-c", code, *args], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{python}: {done.stderr[-2000:]}")
    return done.stdout.strip()


def main(pythons: list[str]) -> None:
    """Print, for each pair, how many artifacts were read, and which results differ."""
    with tempfile.TemporaryDirectory() as folder:
        for writer in pythons:
            whose: dict[str, Path] = {}
            for reader in pythons:
                place = whose[reader] = Path(folder, str(len(whose)), writer.strip("/"))
                place.mkdir(parents=True)
            home = whose[writer]
            version = run(writer, WRITE, str(home))
            run(writer, READ, str(home))
            for reader in pythons:
                if reader == writer:
                    continue
                place = whose[reader]
                for path in [*home.glob("*.bin"), *home.glob("*.in.npz")]:
                    Path(place, path.name).write_bytes(path.read_bytes())
                run(reader, READ, str(place))
                count = len(list(place.glob("*.out.npz")))
                differing = run(writer, COMPARE, str(home), str(place))
                print(f"written by jaxlib {version} ({writer}), read by {reader}: {count} programs"
                      f"{', these differ: ' + differing if differing else ', all alike'}",
                      flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
