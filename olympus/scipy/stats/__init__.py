"""Probability distributions, each a module with functions, and statistics of samples.

A distribution's module is imported when it is first named.
"""

from ..._src.base.util import publish as _publish
from ..._src.base.util import submodule as _submodule
from ..._src.scipy.stats.kde import gaussian_kde
from ..._src.scipy.stats.ranks import ModeResult, mode, rankdata, sem

__all__ = ["gaussian_kde", "mode", "rankdata", "sem"]

_publish(__name__)


def __getattr__(name: str) -> object:
    """A module of this package."""
    return _submodule(__name__, name)
