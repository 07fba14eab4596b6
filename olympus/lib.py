"""The version of jaxlib that is installed."""

from ._src.base.lib import jaxlib_version as __version__

__all__ = ["__version__"]
