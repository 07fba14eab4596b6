"""The Maxwell distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.half_line import maxwell as _maxwell

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf, entropy, isf, logcdf, logpdf, logsf, mean, pdf, ppf, rvs, sf, std, var = _maxwell

_publish(__name__)
