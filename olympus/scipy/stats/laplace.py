"""The Laplace distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.real_line import laplace as _laplace

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf, entropy, isf, logcdf, logpdf, logsf, mean, pdf, ppf, rvs, sf, std, var = _laplace

_publish(__name__)
