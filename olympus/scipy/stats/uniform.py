"""The uniform distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.interval import uniform as _uniform

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf, entropy, isf, logcdf, logpdf, logsf, mean, pdf, ppf, rvs, sf, std, var = _uniform

_publish(__name__)
