"""Backends and their devices: made on first use, one client per platform and process."""

from __future__ import annotations

import functools
import importlib.util
import os
import platform
import sys
import threading
from typing import Any

import numpy as np

from ...version import __version__
from ..base import config, lib, source
from ..base.typing import Device
from ..types.shape import static_int

__all__ = ["client", "default_backend", "default_device", "device_count", "devices",
           "host_count", "host_id", "host_ids", "local_device_count", "local_devices",
           "print_environment_info", "process_count", "process_index", "process_indices"]

_clients: dict[str, Any] = {}
_lock = threading.RLock()


def _make_cpu_client() -> Any:
    count = config.num_cpu_devices.value
    config.num_cpu_devices.fixed = "the CPU backend has started"
    return lib.make_cpu_client(None if count == -1 else count)


_MAKERS = {"cpu": _make_cpu_client, "gpu": lib.make_gpu_client, "cuda": lib.make_gpu_client}
_ALIASES = {"cuda": "gpu", "rocm": "gpu"}
_warned: list[bool] = []
_forked: list[bool] = []    # whether the clients are of the process that this one was forked from


def _warn_at_fork() -> None:
    if _clients and not _warned:
        _warned.append(True)
        source.warn("os.fork() called in a process that has run Olympus: its threads are not in "
                    "the child, which can read arrays, but neither compile nor compute; "
                    "start processes with multiprocessing's 'spawn' or 'forkserver', or fork "
                    "before anything is computed.", RuntimeWarning)


def _after_fork() -> None:
    if _clients:
        _forked.append(True)
        lib.PjitFunctionCache.clear_all()   # so that calls come by `check_process`


def check_process(name: str) -> None:
    """RuntimeError in a process that was forked from one with a backend: it would wait for ever."""
    if _forked:
        raise RuntimeError(
            f"{name}: this process was forked from one that had run Olympus, without its threads; "
            "programs are compiled and run by a process that was not; start it with "
            "multiprocessing's 'spawn' or 'forkserver', or fork before anything is computed.")


if hasattr(os, "register_at_fork"):     # not on Windows
    os.register_at_fork(before=_warn_at_fork, after_in_child=_after_fork)


@functools.cache
def _gpu_plugin_installed() -> bool:
    return any(importlib.util.find_spec(name) for name in
               ("jax_cuda13_plugin", "jax_cuda12_plugin"))


def default_platform() -> str:
    """The platform that arrays go to if nothing else is said."""
    chosen = config.platforms.value
    if chosen:
        name: str = chosen.split(",")[0]
        return _ALIASES.get(name, name)
    return "gpu" if _gpu_plugin_installed() else "cpu"


def client(backend: str | None = None) -> Any:
    """The client of a platform ('cpu', 'gpu'); the default one if None."""
    try:
        name = default_platform() if backend is None else _ALIASES.get(backend, backend)
        found = _clients.get(name)
    except TypeError:
        raise TypeError(f"devices: backend {backend!r} given; the name of a platform is required."
                        ) from None
    if found is not None:
        return found
    with _lock:
        # Asked again under the lock: another thread may have made it since.
        if name not in _clients:
            maker = _MAKERS.get(name)
            if maker is None:
                raise RuntimeError(f"backend: {name!r} given; known platforms are "
                                   f"{', '.join(sorted(_MAKERS))}; choose one of them.")
            lib.warn_if_jax_loaded()
            _clients[name] = maker()
        return _clients[name]


def devices(backend: str | None = None) -> list[Device]:
    """All devices of a backend.

    Args:
      backend: its platform's name; None is the default backend.

    Returns:
      A list, of all processes' devices.

    >>> import olympus
    >>> olympus.devices("cpu")[0].platform
    'cpu'
    """
    return list(client(backend).devices())


def local_devices(process_index: int | None = None, backend: str | None = None,
                  host_id: int | None = None) -> list[Device]:
    """The devices of one process, this one by default.

    Args:
      process_index: the process; None is this one.
      backend: its platform's name; None is the default backend.
      host_id: another name of `process_index`.

    Returns:
      A list of devices. ValueError for a process that is not there.

    >>> import olympus
    >>> olympus.local_devices() == olympus.devices()            # of a single process
    True
    """
    wanted = process_index if process_index is not None else host_id
    owner = client(backend)
    if wanted is None:
        return list(owner.local_devices())
    wanted = static_int(wanted, "local_devices", "process_index")
    if not 0 <= wanted < process_count(backend):
        raise ValueError(f"local_devices: process_index {wanted} given; it must be in "
                         f"range({process_count(backend)}).")
    return [d for d in owner.devices() if d.process_index == wanted]


def device_count(backend: str | None = None) -> int:
    """How many devices a backend has in all processes.

    Args:
      backend: its platform's name; None is the default backend.

    Returns:
      An int. On CPU it is `config.olympus_num_cpu_devices`, or one.

    >>> import olympus
    >>> olympus.device_count() == len(olympus.devices())
    True
    """
    return int(client(backend).device_count())


def local_device_count(backend: str | None = None) -> int:
    """How many devices of a backend belong to this process.

    Args:
      backend: its platform's name; None is the default backend.

    Returns:
      An int, at most `device_count(backend)`.

    >>> import olympus
    >>> olympus.local_device_count() == len(olympus.local_devices())
    True
    """
    return int(client(backend).local_device_count())


def process_index(backend: str | None = None) -> int:
    """The number of this process among `process_count()`.

    Args:
      backend: its platform's name; None is the default backend.

    Returns:
      An int from 0.

    >>> import olympus
    >>> olympus.process_index()
    0
    """
    return int(client(backend).process_index())


def process_count(backend: str | None = None) -> int:
    """How many processes share the backend: 1 unless the program runs distributed.

    Args:
      backend: its platform's name; None is the default backend.

    Returns:
      An int.

    >>> import olympus
    >>> olympus.process_count()
    1
    """
    return max((d.process_index for d in client(backend).devices()), default=0) + 1


host_count, host_id = process_count, process_index


def process_indices(backend: str | None = None) -> list[int]:
    """The numbers of the processes that share the backend.

    Args:
      backend: its platform's name; None is the default backend.

    Returns:
      A list of ints, in order.

    >>> import olympus
    >>> olympus.process_indices()
    [0]
    """
    return sorted({d.process_index for d in client(backend).devices()})


host_ids = process_indices


def default_backend() -> str:
    """The platform name of the default backend: 'cpu', 'gpu' or 'tpu'.

    Returns:
      A str; `olympus_platforms` and what is installed decide.

    >>> import olympus
    >>> olympus.default_backend() == olympus.devices()[0].platform
    True
    """
    name: str = client().platform
    return _ALIASES.get(name, name)


def print_environment_info(return_string: bool = False) -> str | None:
    """Print versions and devices: what a report of a defect should begin with.

    Args:
      return_string: give the text instead.

    Returns:
      None, or the text: a line per fact, `name: value`.

    >>> import olympus
    >>> olympus.print_environment_info(return_string=True).splitlines()[0].startswith("olympus:")
    True
    """
    facts = {"olympus": __version__, "jaxlib": lib.jaxlib_version, "numpy": np.__version__,
             "python": sys.version.replace("\n", " "), "platform": platform.platform(),
             "processes": process_count(), "devices": devices()}
    text = "\n".join(f"{name}: {value}" for name, value in facts.items())
    if return_string:
        return text
    print(text)
    return None


def default_device() -> Any:
    """Where new arrays go: the option `default_device`, else the first local device."""
    chosen = config.default_device.value
    if chosen is None:
        return client().local_devices()[0]
    return client(chosen).local_devices()[0] if isinstance(chosen, str) else chosen
