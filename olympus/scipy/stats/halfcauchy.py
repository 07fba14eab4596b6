"""The half-Cauchy distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.half_line import halfcauchy as _halfcauchy

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf, entropy, isf, logcdf, logpdf, logsf, mean, pdf, ppf, rvs, sf, std, var = _halfcauchy

_publish(__name__)
