"""The hypergeometric distribution."""

from ..._src.base.util import publish as _publish
from ..._src.scipy.stats.discrete import hypergeom as _hypergeom

__all__ = ["logpmf", "mean", "pmf", "rvs", "std", "var"]

logpmf = _hypergeom.logpmf
mean = _hypergeom.mean
pmf = _hypergeom.pmf
rvs = _hypergeom.rvs
std = _hypergeom.std
var = _hypergeom.var

_publish(__name__)
