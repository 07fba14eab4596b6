"""What may still change: names only. Its modules are imported when they are first named."""

from .._src.base.util import publish as _publish
from .._src.base.util import names_in as _names_in
from .._src.base.util import submodule as _submodule
from .._src.host.callbacks import io_callback

__all__ = ["io_callback"]

_publish(__name__)


def __getattr__(name: str) -> object:
    """A module of this package."""
    return _submodule(__name__, name)


def __dir__() -> list[str]:
    """Names for completion, modules that are not imported yet among them."""
    return _names_in(__name__)
