"""The multivariate normal distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.multivariate_normal import logpdf, pdf

__all__ = ["logpdf", "pdf"]

_publish(__name__)
