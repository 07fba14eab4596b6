"""XLA's clients, one for each platform."""

from .._src.backend.devices import backend_xla_version, backends
from .._src.backend.devices import client as get_backend
from .._src.backend.devices import default_device as get_default_device
from .._src.base.util import publish as _publish

__all__ = ["backend_xla_version", "backends", "get_backend", "get_default_device"]

_publish(__name__)
