"""The half-Cauchy distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.half_line import halfcauchy as _halfcauchy

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf = _halfcauchy.cdf
entropy = _halfcauchy.entropy
isf = _halfcauchy.isf
logcdf = _halfcauchy.logcdf
logpdf = _halfcauchy.logpdf
logsf = _halfcauchy.logsf
mean = _halfcauchy.mean
pdf = _halfcauchy.pdf
ppf = _halfcauchy.ppf
rvs = _halfcauchy.rvs
sf = _halfcauchy.sf
std = _halfcauchy.std
var = _halfcauchy.var

_publish(__name__)
