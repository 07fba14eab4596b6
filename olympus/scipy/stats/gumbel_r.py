"""The Gumbel distribution of largest values."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.real_line import gumbel_r as _gumbel_r

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf, entropy, isf, logcdf, logpdf, logsf, mean, pdf, ppf, rvs, sf, std, var = _gumbel_r

_publish(__name__)
