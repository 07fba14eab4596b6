"""Probability distributions, each a module with functions, and statistics of samples.

A distribution's module is imported when it is first named.
"""

from ..._src.base.util import publish as _publish
from ..._src.base.util import names_in as _names_in
from ..._src.base.util import submodule as _submodule
from ..._src.scipy.stats.inference import (
    linregress,
    pearsonr,
    spearmanr,
    ttest_1samp,
    ttest_ind,
    ttest_rel,
)
from ..._src.scipy.stats.kde import gaussian_kde
from ..._src.scipy.stats.moments import (
    describe,
    entropy,
    gmean,
    hmean,
    iqr,
    kurtosis,
    median_abs_deviation,
    moment,
    skew,
    variation,
    zscore,
)
from ..._src.scipy.stats.ranks import mode, rankdata, sem

__all__ = [
    "describe", "entropy", "gaussian_kde", "gmean", "hmean", "iqr", "kurtosis", "linregress",
    "median_abs_deviation", "mode", "moment", "pearsonr", "rankdata", "sem", "skew", "spearmanr",
    "ttest_1samp", "ttest_ind", "ttest_rel", "variation", "zscore",
]

_publish(__name__)


def __getattr__(name: str) -> object:
    """A module of this package."""
    return _submodule(__name__, name)


def __dir__() -> list[str]:
    """Names for completion, modules that are not imported yet among them."""
    return _names_in(__name__)
