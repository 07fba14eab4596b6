"""The von Mises distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.real_line import vonmises as _vonmises

__all__ = ["cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf"]

cdf, entropy, isf, logcdf, logpdf, logsf, mean, pdf, ppf, rvs, sf = _vonmises

_publish(__name__)
