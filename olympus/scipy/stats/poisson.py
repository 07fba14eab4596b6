"""The Poisson distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.discrete import poisson as _poisson

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpmf", "logsf", "mean", "pmf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf, entropy, isf, logcdf, logpmf, logsf, mean, pmf, ppf, rvs, sf, std, var = _poisson

_publish(__name__)
