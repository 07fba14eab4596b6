"""The triangular distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.interval import triang as _triang

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf, entropy, isf, logcdf, logpdf, logsf, mean, pdf, ppf, rvs, sf, std, var = _triang

_publish(__name__)
