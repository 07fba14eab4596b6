"""The handlers of examples/ffi and of tests/ffi_handlers.cc, built by the system's compiler."""

import ctypes
import fcntl
import functools
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import olympus
from olympus import ffi

ROOT = Path(__file__).parent.parent
NAMES = {"attributes": "Attributes", "copy": "Copy", "add": "Add", "sum": "Sum", "count": "Count",
         "fail": "Fail"}


def example():
    """The module examples/ffi/rms_norm.py."""
    spec = importlib.util.spec_from_file_location("rms_norm", ROOT / "examples/ffi/rms_norm.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def build():
    """The folder of both libraries, built once for all workers; skips where nothing builds."""
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if compiler is None or shutil.which("make") is None:
        pytest.skip("examples/ffi is not built: there is no make, or no C++ compiler")
    folder = Path(os.environ["OLYMPUS_COMPILATION_CACHE_DIR"], f"ffi-{sys.version_info.minor}")
    folder.mkdir(exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        options = {"PYTHON": sys.executable, "CXX": compiler, "CXXFLAGS": "-O0", "OUT": folder}
        subprocess.run(["make", "-s", "-C", ROOT / "examples" / "ffi",
                        *[f"{k}={v}" for k, v in options.items()]], check=True, timeout=300)
        source, library = ROOT / "tests" / "ffi_handlers.cc", folder / "libtests.so"
        made = folder / "libhandlers.so"    # of the same headers
        if not library.exists() or library.stat().st_mtime < max(
                source.stat().st_mtime, made.stat().st_mtime):
            subprocess.run([compiler, "-std=c++17", "-O0", "-shared", "-fPIC", "-isystem",
                            ffi.include_dir(), source, "-o", library], check=True, timeout=300)
    return folder


@functools.cache
def load():
    """(the example, the tests' library), all handlers registered."""
    folder, module = build(), example()
    module.load(folder / "libhandlers.so")
    library = ctypes.cdll.LoadLibrary(str(folder / "libtests.so"))
    library.Calls.restype = ctypes.c_int64
    for name, symbol in NAMES.items():
        ffi.register_ffi_target(name, ffi.pycapsule(getattr(library, symbol)))
    ffi.register_ffi_target("untyped", ffi.pycapsule(library.Untyped), api_version=0)
    return module, library


def struct(shape, dtype="float32", **more):
    return olympus.ShapeDtypeStruct(shape, dtype, **more)
