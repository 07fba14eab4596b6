"""The beta-binomial distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.discrete import betabinom as _betabinom

__all__ = ["logpmf", "mean", "pmf", "rvs", "std", "var"]

logpmf = _betabinom.logpmf
mean = _betabinom.mean
pmf = _betabinom.pmf
rvs = _betabinom.rvs
std = _betabinom.std
var = _betabinom.var

_publish(__name__)
