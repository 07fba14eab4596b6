"""Runs programs of this folder, by their libraries' names, and prints a line of JSON for each.

    python -m olympus.as_jax tests/ecosystem/run.py optax equinox

A line has `name`, `result` (numbers by name) or `error` (a traceback), and `seconds` of CPU time.
"""

import importlib
import json
import sys
import time
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
    start = time.process_time()
    try:
        found = {"result": plain(importlib.import_module(f"uses_{name}").main())}
    except Exception:
        found = {"error": traceback.format_exc()}
    return {"name": name, **found, "seconds": round(time.process_time() - start, 2)}


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(json.dumps(report(name)), flush=True)
