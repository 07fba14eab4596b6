"""The geometric distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.discrete import geom as _geom

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpmf", "logsf", "mean", "pmf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf = _geom.cdf
entropy = _geom.entropy
isf = _geom.isf
logcdf = _geom.logcdf
logpmf = _geom.logpmf
logsf = _geom.logsf
mean = _geom.mean
pmf = _geom.pmf
ppf = _geom.ppf
rvs = _geom.rvs
sf = _geom.sf
std = _geom.std
var = _geom.var

_publish(__name__)
