"""The wrapped Cauchy distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.interval import wrapcauchy as _wrapcauchy

__all__ = ["cdf", "entropy", "isf", "logcdf", "logpdf", "logsf", "mean", "pdf", "ppf", "rvs", "sf"]

cdf, entropy, isf, logcdf, logpdf, logsf, mean, pdf, ppf, rvs, sf = _wrapcauchy

_publish(__name__)
