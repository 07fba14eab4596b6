"""The von Mises distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.real_line import vonmises as _vonmises

__all__ = ["logpdf", "pdf", "rvs"]

logpdf = _vonmises.logpdf
pdf = _vonmises.pdf
rvs = _vonmises.rvs

_publish(__name__)
