"""Runs programs of this folder, by their libraries' names, and prints a line of JSON for each.

    python -m olympus.as_jax tests/ecosystem/run.py optax equinox

A line has the program's `name`, its `result` (numbers by name) and the `tolerances` of those that
need another than most, or an `error`: the traceback.
"""

import importlib
import json
import sys
import traceback
import warnings

import numpy as np

warnings.simplefilter("ignore")    # of the libraries, about each other


def plain(value):
    """A result of a program as JSON has it."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value if isinstance(value, (str, bool, int)) else np.asarray(value).tolist()


def report(name):
    """What the program of a library gives."""
    try:
        program = importlib.import_module(f"uses_{name}")
        return {"name": name, "result": plain(program.main()),
                "tolerances": getattr(program, "TOLERANCES", {})}
    except Exception:
        return {"name": name, "error": traceback.format_exc()}


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(json.dumps(report(name)), flush=True)
