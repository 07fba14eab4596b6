"""The half-normal distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.half_line import halfnorm as _halfnorm

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf, entropy, isf, logcdf, logpdf, logsf, mean, pdf, ppf, rvs, sf, std, var = _halfnorm

_publish(__name__)
