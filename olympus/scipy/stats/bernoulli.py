"""The Bernoulli distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.discrete import bernoulli as _bernoulli

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpmf", "logsf", "mean", "pmf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf = _bernoulli.cdf
entropy = _bernoulli.entropy
isf = _bernoulli.isf
logcdf = _bernoulli.logcdf
logpmf = _bernoulli.logpmf
logsf = _bernoulli.logsf
mean = _bernoulli.mean
pmf = _bernoulli.pmf
ppf = _bernoulli.ppf
rvs = _bernoulli.rvs
sf = _bernoulli.sf
std = _bernoulli.std
var = _bernoulli.var

_publish(__name__)
