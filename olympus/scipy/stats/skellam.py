"""The Skellam distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.skellam import skellam as _skellam

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpmf", "logsf", "mean", "pmf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf, entropy, isf, logcdf, logpmf, logsf, mean, pmf, ppf, rvs, sf, std, var = _skellam

_publish(__name__)
