"""XLA's clients, one for each platform."""

from .._src.devices.devices import (
    backend_xla_version, backends, clear_backends, register_backend_factory,
    register_pjrt_plugin,
)
from .._src.devices.devices import client as get_backend
from .._src.devices.devices import default_device as get_default_device
from .._src.base.lib import get_compile_options
from .._src.base.util import publish as _publish
from .._src.base.util import register_backend_cache
from .._src.arrays.device import clear_caches as clear_in_memory_compilation_cache

__all__ = [
    "backend_xla_version", "backends", "clear_backends", "clear_in_memory_compilation_cache",
    "get_backend", "get_compile_options", "get_default_device", "register_backend_cache",
    "register_backend_factory", "register_pjrt_plugin",
]

_publish(__name__)
