"""Backends and their devices: made on first use, one client per platform and process."""

from __future__ import annotations

import functools
import importlib.util
import os
import platform
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...version import __version__
from ..base import config, lib, source
from ..base.docstrings import complete_docstrings
from ..base.errors import IncompatibleDevicesError
from ..base.typing import Device
from ..base.util import clear_all, lazy_imports
from ..job.state import current as job
from ..types.shape import static_int

PluginOptions = dict[str, str | int | float | bool]

with lazy_imports(__name__):
    from importlib import metadata

_clients = job.clients
_lock = threading.RLock()


def _make_cpu_client() -> object:
    count = config.num_cpu_devices.value
    config.num_cpu_devices.fixed = "the CPU backend has started"
    if config.cpu_keep_memory.value:
        lib.allocator.keep_memory()
    collectives = None
    implementation = config.cpu_collectives_implementation.value
    if job.client is not None and implementation is not None:
        collectives = lib.cpu_collectives(implementation, job.client)
    return lib.make_cpu_client(
        None if count == -1 else count, asynchronous=config.cpu_enable_async_dispatch.value,
        distributed_client=job.client, node_id=job.process_id, num_nodes=job.num_processes,
        collectives=collectives,
        get_local_topology_timeout_minutes=config.cpu_get_local_topology_timeout_minutes.value,
        get_global_topology_timeout_minutes=config.cpu_get_global_topology_timeout_minutes.value)


def given_options() -> dict[str, str]:
    """The options of a plugin's backend that the user gave.

    >>> with config.pjrt_client_create_options("use_tfrt_gpu_client:1;allocator:platform"):
    ...     given_options()
    {'use_tfrt_gpu_client': '1', 'allocator': 'platform'}
    """
    options = {}
    for pair in (config.pjrt_client_create_options.value or "").split(";"):
        name, colon, value = pair.partition(":")
        if pair and (not colon or ":" in value):
            raise ValueError(f"olympus_pjrt_client_create_options: {pair!r} given; 'name:value' is "
                             "required, several separated by ';'.")
        if pair:
            options[name] = value
    return options


def _place_in_job() -> dict[str, int]:
    """The options by which a plugin learns which process of a job this is."""
    place = {"node_id": job.process_id, "num_nodes": job.num_processes}
    return place if job.partition_index is None else {
        **place, "partition_index": job.partition_index}


def _make_gpu_client() -> object:
    visible = config.cuda_visible_devices.value
    chosen = {} if visible == "all" else {"visible_devices": [int(n) for n in visible.split(",")]}
    return lib.plugins.make_plugin_client("cuda", {**_place_in_job(), **given_options(), **chosen},
                                  job.client)


def _make_tpu_client() -> object:
    # libtpu learns its place from its host, and refuses options that it does not know.
    return lib.plugins.make_plugin_client("tpu", given_options(), job.client)


_MAKERS = {"cpu": _make_cpu_client, "gpu": _make_gpu_client, "cuda": _make_gpu_client,
           "tpu": _make_tpu_client}
_ALIASES = {"cuda": "gpu", "rocm": "gpu"}
PLATFORMS = sorted({*_MAKERS, *_ALIASES})
_failed: list[str] = []     # platforms that are installed but have no device
_warned: list[bool] = []
_forked: list[bool] = []    # whether the clients belong to the parent of a fork


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
        lib.forget_all_signatures()     # so that calls come by `check_process`


def check_process(name: str) -> None:
    """RuntimeError in a process that was forked from one with a backend: it would wait for ever."""
    if _forked:
        raise RuntimeError(
            f"{name}: this process was forked from one that had run Olympus, without its threads; "
            "programs are compiled and run by a process that was not; start it with "
            "multiprocessing's 'spawn' or 'forkserver', or fork before anything is computed.")
    lib.check_ending(name, lambda: source.summarize(source.user_frame()))


if hasattr(os, "register_at_fork"):     # not on Windows
    os.register_at_fork(before=_warn_at_fork, after_in_child=_after_fork)


@functools.cache
def _present(plugin: str) -> bool:
    """Whether a plugin is installed on a machine that has a device for it.

    The wheels alone say little: programs are compiled with them for devices elsewhere.
    """
    return lib.plugins.installed(plugin) and lib.plugins.attached(plugin)


def default_platform() -> str:
    """The platform that arrays go to if nothing else is said: a TPU or GPU before the CPU."""
    name: str = config.platform_name.value or (config.platforms.value or "").split(",")[0]
    if name:
        return _ALIASES.get(name, name)
    return next((name for name, plugin in (("tpu", "tpu"), ("gpu", "cuda"))
                 if name not in _failed and _present(plugin)), "cpu")


def client(platform: str | None = None) -> Any:
    """The client of a platform, which holds its devices.

    Returns: The object of XLA's runtime, made when it is first asked for.

    >>> import olympus
    >>> olympus.extend.backend.get_backend("cpu").platform
    'cpu'
    """
    try:
        name = default_platform() if platform is None else _ALIASES.get(platform, platform)
        known = _clients.get(name)
    except TypeError:
        raise TypeError(f"devices: backend {platform!r} given; the name of a platform is required."
                        ) from None
    if known is not None:
        return known
    with _lock:
        # Asked again under the lock: another thread may have made it since.
        if name not in _clients:
            maker = _MAKERS.get(name) or _maker_of_found(name)
            if maker is None:
                raise RuntimeError(
                    f"devices: Unknown backend {name}; known platforms are "
                    f"{', '.join(sorted({*_MAKERS, *_found_plugins()}))}; choose one of them, or "
                    "name the library of its plugin by olympus_pjrt_plugins.")
            lib.warn_if_jax_loaded()
            try:
                _clients[name] = maker()
            except RuntimeError as error:
                asked = config.platforms.value or config.platform_name.value
                if platform is not None or asked or name == "cpu":
                    raise
                # The user did not choose this platform: its plugin is merely installed.
                _failed.append(name)
                source.warn(f"devices: the {name} plugin is installed, but has no device "
                            f"({str(error).splitlines()[0]}); the CPU is used; set "
                            "olympus_platforms to say which is meant.", RuntimeWarning)
                return client()
        return _clients[name]


def register_backend_factory(name: str, factory: Callable[[], object], *, priority: int = 0,
                             fail_quietly: bool = True, experimental: bool = False,
                             make_topology: object = None, c_api: object = None) -> None:
    """Let a platform of one's own be started by its name.

    Args:
      name: the platform's, as `olympus_platforms` and `devices` take it.
      factory: makes its client.
      priority, fail_quietly, experimental, make_topology, c_api: accepted; a platform is the
        default where `olympus_platforms` names it first.

    ValueError for the name of a platform that is there.
    """
    if not callable(factory):
        raise TypeError(f"register_backend_factory: factory {factory!r:.60} given; a function that "
                        "makes a client is required.")
    if name in _MAKERS or name in _ALIASES:
        raise ValueError(f"register_backend_factory: {name!r} given, which is there already; give "
                         "another name.")
    _MAKERS[name] = factory


def register_pjrt_plugin(name: str, *, priority: int = 400, library_path: str | None = None,
                         options: PluginOptions | Callable[[], PluginOptions] | None = None,
                         c_api: object = None, factory: Callable[[], object] | None = None,
                         make_topology: object = None) -> None:
    """Let the devices of a PJRT plugin be used by a name: `devices(name)`, `olympus_platforms`.

    Programs for them are lowered by the rules of the platform `name`: those that
    `interpreters.mlir.register_lowering` was given for it, else the ones of all platforms.

    Args:
      name: the platform's.
      library_path: the plugin's library, which is loaded when the platform is first used.
      options: a dict for the plugin's client, or a function that returns one then;
        `olympus_pjrt_client_create_options` adds to them.
      c_api: a capsule of the plugin's C API, in place of `library_path`.
      factory: makes the client, in place of `options`.
      priority, make_topology: accepted; a platform is the default where `olympus_platforms` names
        it first.

    ValueError for the name of a platform that is there, or unless one of `library_path` and
    `c_api` is given. Plugins are also found in the option `olympus_pjrt_plugins`, in the variable
    PJRT_NAMES_AND_LIBRARY_PATHS, and by the entry points `jax_plugins` of installed packages.

    >>> try:
    ...     olympus.extend.backend.register_pjrt_plugin("cpu", library_path="plugin.so")
    ... except ValueError as error:
    ...     print(error)
    register_pjrt_plugin: 'cpu' given, which is there already; give another name.
    """
    if (library_path is None) == (c_api is None):
        raise ValueError(f"register_pjrt_plugin: library_path={library_path!r} and c_api={c_api!r} "
                         f"given for {name!r}; one of them is required.")
    if factory is not None and options is not None:
        raise ValueError(f"register_pjrt_plugin: factory and options given for {name!r}; a factory "
                         "has its own options; give one of them.")
    for what, value, fits, kind in (
            ("name", name, isinstance(name, str), "a string, by which devices(name) finds it,"),
            ("library_path", library_path, isinstance(
                library_path, (str, os.PathLike, type(None))), "a path"),
            ("c_api", c_api, c_api is None or type(c_api).__name__ == "PyCapsule", "a capsule"),
            ("factory", factory, factory is None or callable(factory), "a function")):
        if not fits:
            raise TypeError(f"register_pjrt_plugin: {what}={value!r} given; {kind} is required.")
    if name in _MAKERS or name in _ALIASES:
        raise ValueError(f"register_pjrt_plugin: {name!r} given, which is there already; give "
                         "another name.")
    lib.plugins.add_plugin(name, library_path, c_api)

    def make() -> object:
        own = options() if callable(options) else options or {}
        place = {} if job.client is None else _place_in_job()
        return lib.plugins.make_plugin_client(name, {**place, **own, **given_options()}, job.client)

    _MAKERS[name] = factory or make


def _maker_of_found(name: str) -> Callable[[], object] | None:
    """What starts a platform whose plugin is installed, or named by an option."""
    library = _found_plugins().get(name)
    if library is None:
        return None
    register_pjrt_plugin(name, library_path=library if isinstance(library, str) else library())
    return _MAKERS[name]


def _found_plugins() -> dict[str, str | Callable[[], str]]:
    """Plugins that nobody registered, by name: their libraries, or what finds them."""
    plugins: dict[str, str | Callable[[], str]] = {
        point.name: functools.partial(_library_in, point.value)
        for point in metadata.entry_points(group="jax_plugins") if "xla_cuda" not in point.value}
    for what, pairs in (("PJRT_NAMES_AND_LIBRARY_PATHS", os.environ.get(
            "PJRT_NAMES_AND_LIBRARY_PATHS")), ("olympus_pjrt_plugins", config.pjrt_plugins.value)):
        for pair in (pairs or "").split(","):
            name, colon, path = pair.partition(":")
            if pair and not (colon and name and path):
                raise ValueError(f"{what}: {pair!r} given; 'name:path' is required, several "
                                 "separated by ','.")
            if pair:
                plugins[name] = path
    return plugins


def _library_in(module: str) -> str:
    """The library of a plugin's package; its Python code, which may import jax, is not run."""
    spec = importlib.util.find_spec(module.partition(":")[0])
    folders = [] if spec is None else spec.submodule_search_locations or [
        str(Path(spec.origin or "").parent)]
    for folder in folders:
        for path in sorted(Path(folder).rglob("*.so")):
            if lib.plugins.exports_plugin(path):
                return str(path)
    raise RuntimeError(f"devices: the package {module} calls itself a PJRT plugin, and no library "
                       "of one is found in it; name it by olympus_pjrt_plugins.")


def counting_client(platform: str | None) -> object:
    """The client that estimates costs of programs of a platform, whose devices may be elsewhere."""
    name = default_platform() if platform is None else _ALIASES.get(platform, platform)
    return _clients.get(name) or client(name if name == default_platform() else "cpu")


def rules_of(device: Device) -> str:
    """The platform by whose rules programs for a device are lowered: the name of its backend.

    A plugin may call its devices "cpu", and has not the kernels of jaxlib's own CPU client.
    """
    owner = device.client
    return next((name for name, client in _clients.items() if client is owner), device.platform)


def clear_backends(_crash: bool = False) -> None:
    """Let go of all clients: the next operation starts them anew, with options as they are then.

    Arrays that are there stay readable; meshes and shardings of their devices are to be made anew.

    Args: _crash: accepted.
    """
    clear_all()
    lib.forget_all_signatures()
    with _lock:
        _clients.clear()
        _failed.clear()
        config.num_cpu_devices.fixed = ""


def backends() -> dict[str, Any]:
    """The clients of this process: the default one and the CPU's, and those in use.

    Returns: A dict of them by the name of the platform.

    >>> "cpu" in olympus.extend.backend.backends()
    True
    """
    client()
    if not config.platforms.value:
        client("cpu")
    return dict(_clients)


def backend_xla_version(platform: str | None = None) -> int | None:
    """The version of XLA that a platform's plugin was built with.

    Returns: An int, or None where the plugin does not say.

    >>> olympus.extend.backend.backend_xla_version("cpu") is None
    True
    """
    return getattr(client(platform), "xla_version", None)


@source.api_boundary
def devices(backend: str | None = None) -> list[Device]:
    """All devices of a backend.

    Returns: A list, of all processes' devices.

    >>> olympus.devices("cpu")[0].platform
    'cpu'
    """
    return list(client(backend).devices())


@source.api_boundary
def local_devices(process_index: int | None = None, backend: str | None = None,
                  host_id: int | None = None) -> list[Device]:
    """The devices of one process, this one by default.

    Args:
      process_index: the process; None is this one.
      host_id: another name of `process_index`.
    Returns: A list of devices. ValueError for a process that is not there.

    >>> olympus.local_devices() == olympus.devices()            # of a single process
    True
    """
    wanted = process_index if process_index is not None else host_id
    owner = client(backend)
    if wanted is None:
        return list(owner.local_devices())
    wanted = static_int(wanted, "local_devices", "process_index")
    if not 0 <= wanted < process_count(backend):
        raise ValueError(f"local_devices: Unknown process_index {wanted}; it must be in "
                         f"range({process_count(backend)}).")
    return [d for d in owner.devices() if d.process_index == wanted]


def device_count(backend: str | None = None) -> int:
    """The number of devices of a backend in all processes.

    Returns: An int. On CPU it is `config.olympus_num_cpu_devices`, or one.

    >>> olympus.device_count() == len(olympus.devices())
    True
    """
    return int(client(backend).device_count())


def local_device_count(backend: str | None = None) -> int:
    """The number of devices of a backend that belong to this process.

    Returns: An int, at most `device_count(backend)`.

    >>> olympus.local_device_count() == len(olympus.local_devices())
    True
    """
    return int(client(backend).local_device_count())


def process_index(backend: str | None = None) -> int:
    """The number of this process among `process_count()`.

    Returns: An int from 0.

    >>> olympus.process_index()
    0
    """
    return int(client(backend).process_index())


def process_count(backend: str | None = None) -> int:
    """The number of processes that share the backend: 1 unless the program runs distributed.

    >>> olympus.process_count()
    1
    """
    return max((d.process_index for d in client(backend).devices()), default=0) + 1


host_count, host_id = process_count, process_index


def process_indices(backend: str | None = None) -> list[int]:
    """The numbers of the processes that share the backend.

    Returns: A list of ints, in order.

    >>> olympus.process_indices()
    [0]
    """
    return sorted({d.process_index for d in client(backend).devices()})


host_ids = process_indices


def default_backend() -> str:
    """The platform name of the default backend: 'cpu', 'gpu' or 'tpu'.

    Returns: A str; `olympus_platforms` and the installed plugins decide.

    >>> olympus.default_backend() == olympus.devices()[0].platform
    True
    """
    name: str = client().platform
    return _ALIASES.get(name, name)


def print_environment_info(return_string: bool = False) -> str | None:
    """Print versions and devices, to begin a report of a defect.

    Args: return_string: give the text instead.
    Returns: None, or the text: a line per fact, `name: value`.

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


def default_device() -> Device:
    """Where new arrays go.

    Returns:
      The device of the option `default_device`, else the first local one.

    >>> import olympus
    >>> with olympus.default_device(olympus.devices("cpu")[0]):
    ...     olympus.extend.backend.get_default_device()
    CpuDevice(id=0)
    """
    chosen = config.default_device.value
    if chosen is None:
        return client().local_devices()[0]
    if not isinstance(chosen, str):
        return chosen
    if chosen not in PLATFORMS:
        raise ValueError("olympus.default_device must be passed either a Device object, as of "
                         f"olympus.devices(), or a platform name like 'cpu' or 'gpu', got: "
                         f"{chosen!r}; platforms are {', '.join(PLATFORMS)}.")
    return client(chosen).local_devices()[0]


def incompatible(first: str, here: Sequence[Device], second: str, there: Sequence[Device]
                 ) -> IncompatibleDevicesError:
    """The error for `first` on the devices `here` and `second` on others, `there`."""
    names = [f"with device ids {[d.id for d in where]} on platform {where[0].platform.upper()}"
             for where in (here, there)]
    return IncompatibleDevicesError(
        f"Received incompatible devices for jitted computation. Got {first} {names[0]} and "
        f"{second} {names[1]}; one set of devices, in one order, is "
        "required; move arguments with device_put.")


complete_docstrings(globals(), {
    "platform": '"cpu", "gpu", "tpu"; the default one if None.',
    "backend": "its platform's name; None is the default backend.",
})
