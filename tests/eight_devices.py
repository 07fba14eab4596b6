"""Cases that run in a process with eight CPU devices, whose number is fixed once there are any.

A file of cases is imported by its tests, for the names, and run by `outcomes`:

    CASES = names(globals())
    if __name__ == "__main__":
        report(globals())
"""

import fcntl
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
    """Run the cases of this module that are asked for, or all; print what went wrong in each."""
    results = {}
    for name in sys.argv[1:] or names(dict(cases)):
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


def outcomes(module, request):
    """What went wrong in each case of a module that this run has a test of; empty where nothing
    did. The worker that comes first runs them for all.
    """
    tested = {item.callspec.params["case"] for item in request.session.items
              if item.module is request.module and "case" in item.fixturenames}
    folder = request.getfixturevalue("tmp_path_factory").getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with (folder / f"{module.__name__}.json").open("a+") as found:
        fcntl.flock(found, fcntl.LOCK_EX)
        if not found.seek(0, os.SEEK_END):
            cases = [name for name in module.CASES if name in tested]
            found.write(python(module.__file__, *cases).splitlines()[-1])
        found.seek(0)
        return json.load(found)


def pytest(test):
    """Run one test there; AssertionError with the report if it fails."""
    python("-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider",
           "-m", "slow or not slow", test)


def error(kind, match, call):
    """The message of the error that a call raises, which must have a text in it."""
    try:
        call()
    except kind as e:
        said = " ".join(str(e).split())     # wherever its lines end
        assert match in str(e) or match in said, str(e)
        return str(e)
    else:
        raise AssertionError(f"no {kind.__name__}: {match}")
