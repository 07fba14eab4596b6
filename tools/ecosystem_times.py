"""CPU times of programs of JAX's libraries on Olympus and on jax: the tables of docs/ecosystem.md.

Whole processes, by turns in one run; of several turns the least. Olympus has a new folder of
compiled programs for the first run, and the same for the runs after it, as its users have; jax
keeps none unless it is told to.

    python tools/ecosystem_times.py JAX_PYTHON [--turns N] [programs|training] [NAME...]

JAX_PYTHON has jax and the libraries (see tools/ecosystem_results.py), the Python that runs this
has Olympus and the libraries.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TRAINING = ["linen", "equinox", "numpyro"]


def cpu_time(command, **variables):
    """Seconds of user and system time of a process and its children, and its output."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, env={**os.environ, **variables}, stdout=subprocess.PIPE,
                          text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert '"error"' not in done.stdout, done.stdout
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime), done.stdout


def turns(jax_python, arguments, count):
    """Runs on jax, on Olympus without compiled programs, and with the compiled programs of before:
    three lists of (seconds, text).
    """
    on_jax, fresh, warm = [], [], []
    olympus = [sys.executable, "-W", "ignore", "-m", "olympus.as_jax", *arguments]
    for _ in range(count):
        on_jax.append(cpu_time([jax_python, "-W", "ignore", *arguments], PYTHONPATH=""))
        with tempfile.TemporaryDirectory() as folder:
            fresh.append(cpu_time(olympus, OLYMPUS_COMPILATION_CACHE_DIR=folder))
            warm.append(cpu_time(olympus, OLYMPUS_COMPILATION_CACHE_DIR=folder))
    return on_jax, fresh, warm


def programs(jax_python, count, names):
    """A row per program: seconds of its process."""
    for name in names:
        found = turns(jax_python, [str(ROOT / "tests/ecosystem/run.py"), name], count)
        print(f"| {name} |", " | ".join(f"{min(runs)[0]:.1f}" for runs in found), "|", flush=True)


def training(jax_python, count, names):
    """A row per program: import, first step and step, in seconds and as parts of jax's."""
    for name in names:
        found = turns(jax_python, [str(ROOT / "tools/ecosystem_training.py"), name], count)
        on_jax, fresh, warm = ([min(column) for column in zip(
            *(map(float, text.split()) for _, text in runs), strict=True)] for runs in found)
        for what, *seconds in zip(("import", "first step", "step"), on_jax, fresh, warm,
                                  strict=True):
            print(f"| {name}: {what} |", " | ".join(f"{s:.4g}" for s in seconds), "|",
                  " | ".join(f"{s / seconds[0]:.2f}" for s in seconds[1:]), "|", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("jax_python")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("table", choices=("programs", "training"))
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    if given.table == "training":
        training(given.jax_python, given.turns, given.names or TRAINING)
    else:
        found = sorted(path.stem[5:] for path in (ROOT / "tests/ecosystem").glob("uses_*.py"))
        programs(given.jax_python, given.turns, given.names or found)


if __name__ == "__main__":
    main()
