"""The uniform distribution of integers."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.discrete import randint as _randint

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpmf", "logsf", "mean", "pmf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf, entropy, isf, logcdf, logpmf, logsf, mean, pmf, ppf, rvs, sf, std, var = _randint

_publish(__name__)
