"""The Student t distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.real_line import t as _t

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf, entropy, isf, logcdf, logpdf, logsf, mean, pdf, ppf, rvs, sf, std, var = _t

_publish(__name__)
