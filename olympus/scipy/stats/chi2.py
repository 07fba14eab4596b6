"""The chi-square distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.half_line import chi2 as _chi2

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf, entropy, isf, logcdf, logpdf, logsf, mean, pdf, ppf, rvs, sf, std, var = _chi2

_publish(__name__)
