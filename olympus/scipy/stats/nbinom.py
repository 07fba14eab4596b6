"""The negative binomial distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.discrete import nbinom as _nbinom

__all__ = [
    "cdf", "isf", "logcdf", "logpmf", "logsf", "mean", "pmf", "ppf", "rvs", "sf", "std", "var",
]

cdf = _nbinom.cdf
isf = _nbinom.isf
logcdf = _nbinom.logcdf
logpmf = _nbinom.logpmf
logsf = _nbinom.logsf
mean = _nbinom.mean
pmf = _nbinom.pmf
ppf = _nbinom.ppf
rvs = _nbinom.rvs
sf = _nbinom.sf
std = _nbinom.std
var = _nbinom.var

_publish(__name__)
