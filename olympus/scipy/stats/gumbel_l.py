"""The Gumbel distribution of smallest values."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.real_line import gumbel_l as _gumbel_l

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf, entropy, isf, logcdf, logpdf, logsf, mean, pdf, ppf, rvs, sf, std, var = _gumbel_l

_publish(__name__)
