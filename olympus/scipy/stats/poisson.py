"""The Poisson distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.discrete import poisson as _poisson

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpmf", "logsf", "mean", "pmf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf = _poisson.cdf
entropy = _poisson.entropy
isf = _poisson.isf
logcdf = _poisson.logcdf
logpmf = _poisson.logpmf
logsf = _poisson.logsf
mean = _poisson.mean
pmf = _poisson.pmf
ppf = _poisson.ppf
rvs = _poisson.rvs
sf = _poisson.sf
std = _poisson.std
var = _poisson.var

_publish(__name__)
