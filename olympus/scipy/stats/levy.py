"""The Lévy distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.half_line import levy as _levy

__all__ = [
    "cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf",
    "std", "var",
]

cdf = _levy.cdf
entropy = _levy.entropy
isf = _levy.isf
logcdf = _levy.logcdf
logpdf = _levy.logpdf
logsf = _levy.logsf
mean = _levy.mean
pdf = _levy.pdf
ppf = _levy.ppf
rvs = _levy.rvs
sf = _levy.sf
std = _levy.std
var = _levy.var

_publish(__name__)
