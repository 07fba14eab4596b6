"""The Bernoulli distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.discrete import bernoulli as _bernoulli

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpmf", "logsf", "mean", "pmf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf, entropy, isf, logcdf, logpmf, logsf, mean, pmf, ppf, rvs, sf, std, var = _bernoulli

_publish(__name__)
