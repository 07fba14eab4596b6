"""The normal distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.real_line import norm as _norm

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf, entropy, isf, logcdf, logpdf, logsf, mean, pdf, ppf, rvs, sf, std, var = _norm

_publish(__name__)
