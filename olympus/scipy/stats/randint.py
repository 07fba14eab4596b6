"""The uniform distribution of integers."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.discrete import randint as _randint

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpmf", "logsf", "mean", "pmf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf = _randint.cdf
entropy = _randint.entropy
isf = _randint.isf
logcdf = _randint.logcdf
logpmf = _randint.logpmf
logsf = _randint.logsf
mean = _randint.mean
pmf = _randint.pmf
ppf = _randint.ppf
rvs = _randint.rvs
sf = _randint.sf
std = _randint.std
var = _randint.var

_publish(__name__)
