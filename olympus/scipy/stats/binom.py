"""The binomial distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.discrete import binom as _binom

__all__ = [
    "cdf", "isf", "logcdf", "logpmf", "logsf", "mean", "pmf", "ppf", "rvs", "sf", "std", "var",
]

cdf = _binom.cdf
isf = _binom.isf
logcdf = _binom.logcdf
logpmf = _binom.logpmf
logsf = _binom.logsf
mean = _binom.mean
pmf = _binom.pmf
ppf = _binom.ppf
rvs = _binom.rvs
sf = _binom.sf
std = _binom.std
var = _binom.var

_publish(__name__)
