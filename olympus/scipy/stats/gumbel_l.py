"""The Gumbel distribution of smallest values."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.real_line import gumbel_l as _gumbel_l

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf = _gumbel_l.cdf
entropy = _gumbel_l.entropy
isf = _gumbel_l.isf
logcdf = _gumbel_l.logcdf
logpdf = _gumbel_l.logpdf
logsf = _gumbel_l.logsf
mean = _gumbel_l.mean
pdf = _gumbel_l.pdf
ppf = _gumbel_l.ppf
rvs = _gumbel_l.rvs
sf = _gumbel_l.sf
std = _gumbel_l.std
var = _gumbel_l.var

_publish(__name__)
