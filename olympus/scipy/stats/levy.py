"""The Lévy distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.half_line import levy as _levy

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf, entropy, isf, logcdf, logpdf, logsf, mean, pdf, ppf, rvs, sf, std, var = _levy

_publish(__name__)
