"""Cases that run in a process with eight CPU devices, whose number is fixed once there are any.

A file of cases is imported by its tests, for the names, and run by `outcomes`:

    CASES = names(globals())
    if __name__ == "__main__":
        report(globals())
"""

import json
import os
import subprocess
import sys
import traceback
from pathlib import Path

ROOT = Path(__file__).parent.parent


def names(cases):
    """The names of the cases of a module, given its globals."""
    return [name for name in cases if name.startswith("case_")]


def report(cases):
    """Run the cases of this module, and print what went wrong in each."""
    results = {}
    for name in names(dict(cases)):
        try:
            cases[name]()
            results[name] = ""
        except Exception:
            results[name] = traceback.format_exc()
    print(json.dumps(results))


def python(*args):
    """What Python prints in a process with eight devices."""
    # Beside other load a device may come to a collective after the 40 seconds that XLA waits.
    flags = os.environ.get("XLA_FLAGS", "") + (
        " --xla_force_host_platform_device_count=8"
        " --xla_cpu_collective_call_terminate_timeout_seconds=120")
    done = subprocess.run(
        [sys.executable, *args], capture_output=True, text=True, cwd=ROOT,
        env={**os.environ, "XLA_FLAGS": flags,
             "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tools")])},
        timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def outcomes(module):
    """What went wrong in each case of a module; empty where nothing did."""
    return json.loads(python(module.__file__).splitlines()[-1])


def pytest(test):
    """Run one test there; AssertionError with the report if it fails."""
    python("-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider",
           "-m", "slow or not slow", test)


def error(kind, match, call):
    """Assert that a call raises an error whose message has a text in it."""
    try:
        call()
    except kind as e:
        assert match in str(e), str(e)
    else:
        raise AssertionError(f"no {kind.__name__}: {match}")
