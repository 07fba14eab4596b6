"""Loads jaxlib's C++ library, names its faults, and keeps it from loading `jax`.

jaxlib's C++ imports the Python package `jax` by itself on some paths, where it is installed; `jax`
then replaces methods on the C++ classes both packages share. Every such path runs inside `no_jax`.
"""

import contextlib
import importlib.util
import os
import re
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

# XLA reads this while its library is loaded; without it every client prints INFO lines on stderr.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

TESTED = ((0, 10, 2), (0, 12, 0, 1))
INSTALL = 'pip install "jaxlib>=0.10.2,<=0.12.0.1"'

if importlib.util.find_spec("jaxlib") is None:
    raise ImportError(f"olympus: needs jaxlib, which is not installed; install it with: {INSTALL}")

# These imports come after the settings above, which XLA reads while it is loaded.
from jaxlib import xla_client  # noqa: E402
from jaxlib.version import __version__ as jaxlib_version  # noqa: E402

if TYPE_CHECKING:       # jaxlib has no stubs of these: their attributes are unknown
    from types import ModuleType
    _jax = pretty_printer = utils = weakref_lru_cache = ModuleType("")
else:
    from jaxlib import _jax  # and what only __init__.py reads
    from jaxlib import (  # noqa: F401
        _pretty_printer as pretty_printer, utils as utils, weakref_lru_cache as weakref_lru_cache,
    )


def _numbers(version: str) -> tuple[int, ...]:
    match = re.match(r"[\d.]*\d", version)
    return tuple(int(n) for n in match[0].split(".")) if match else ()


#: Whether XLA:CPU drops `optimization_barrier` only after it has fused operations and inserted
#: copies, by which a barrier's result may be overwritten while its operand is read.
LATE_BARRIERS = _numbers(jaxlib_version) >= (0, 12)


def check_version(version: str) -> None:
    """Warn if this jaxlib is outside the range that Olympus is tested with."""
    lowest, highest = TESTED
    if not lowest <= _numbers(version) <= highest:
        warnings.warn(
            f"olympus: found jaxlib {version}; tested with jaxlib 0.10.2 to 0.12.0.1. "
            f"If something fails, install a tested one: {INSTALL}",
            RuntimeWarning,
            stacklevel=2,
        )


_jax_seen = False


def warn_if_jax_loaded() -> None:
    """Warn, once for the process, if `jax` is imported beside Olympus."""
    global _jax_seen
    if _jax_seen or sys.modules.get("jax") is None:
        return
    _jax_seen = True
    warnings.warn(
        "olympus: jax is imported in the same process; the two share jaxlib's C++ state (array "
        "methods, configuration slots, tracer class), so the one loaded last wins. Use them in "
        "separate processes.",
        RuntimeWarning,
        stacklevel=2,
    )


def libraries() -> list[Path]:
    """Return jaxlib's libraries of compiled code."""
    root = Path(xla_client.__file__).parent
    return sorted(p for p in root.iterdir() if p.suffix in (".so", ".dylib", ".dll", ".pyd"))


def answer_for_jax() -> None:
    """Say that whatever is called `jax` in this process is Olympus's own, from now on."""
    global _jax_seen, _answering
    _jax_seen = _answering = True
    # C++ takes its own classes for JAX's where it cannot import this; it tries for each part.
    sys.modules["jax._src.sharding_impls"] = None  # type: ignore[assignment]


_answering = False
_guard = threading.RLock()
# Modules that C++ imports, each refused by its own name: to learn from the package that it has no
# submodule takes Python 20 us, for each part of an array.
_REFUSED = ("jax", "jax.core", "jax._src", "jax._src.sharding_impls")


@contextlib.contextmanager
def no_jax() -> Iterator[None]:
    """While inside, an `import jax` from C++ fails at once, and C++ falls back to its own.

    Held under one lock, since it changes `sys.modules`. It does nothing where jax is loaded
    already, or answered for.
    """
    with _guard:
        if _answering or "jax" in sys.modules:
            yield
            return
        for name in _REFUSED:
            sys.modules[name] = None  # type: ignore[assignment]
        try:
            yield
        finally:
            for name in _REFUSED:
                if sys.modules.get(name, sys) is None:
                    del sys.modules[name]


check_version(jaxlib_version)
warn_if_jax_loaded()

# Otherwise every array carries the Python stack that made it: 0.8 us per compiled call, more where
# the stack is deep. Nothing of ours reads it; JAX does, if it was here first.
if "jax" not in sys.modules and hasattr(_jax, "set_tracebacks_enabled"):
    _jax.set_tracebacks_enabled(False)
