"""The wrapped Cauchy distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.interval import wrapcauchy as _wrapcauchy

__all__ = ["cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf"]

cdf = _wrapcauchy.cdf
entropy = _wrapcauchy.entropy
isf = _wrapcauchy.isf
logcdf = _wrapcauchy.logcdf
logpdf = _wrapcauchy.logpdf
logsf = _wrapcauchy.logsf
mean = _wrapcauchy.mean
pdf = _wrapcauchy.pdf
ppf = _wrapcauchy.ppf
rvs = _wrapcauchy.rvs
sf = _wrapcauchy.sf

_publish(__name__)
