"""The Pareto distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.half_line import pareto as _pareto

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf = _pareto.cdf
entropy = _pareto.entropy
isf = _pareto.isf
logcdf = _pareto.logcdf
logpdf = _pareto.logpdf
logsf = _pareto.logsf
mean = _pareto.mean
pdf = _pareto.pdf
ppf = _pareto.ppf
rvs = _pareto.rvs
sf = _pareto.sf
std = _pareto.std
var = _pareto.var

_publish(__name__)
