"""The Cauchy distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.real_line import cauchy as _cauchy

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf, entropy, isf, logcdf, logpdf, logsf, mean, pdf, ppf, rvs, sf, std, var = _cauchy

_publish(__name__)
