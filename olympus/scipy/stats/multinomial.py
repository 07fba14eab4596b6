"""The multinomial distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.multinomial import logpmf, pmf

__all__ = ["logpmf", "pmf"]

_publish(__name__)
