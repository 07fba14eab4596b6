"""Probability distributions, each a module with functions, and statistics of samples.

A distribution's module is imported when it is first named.
"""

from ..._src.base.util import publish as _publish
from ..._src.base.util import submodules as _submodules
from ..._src.scipy.stats.inference import (
    linregress, pearsonr, spearmanr, ttest_1samp, ttest_ind, ttest_rel,
)
from ..._src.scipy.stats.kde import gaussian_kde
from ..._src.scipy.stats.moments import (
    describe, entropy, gmean, hmean, iqr, kurtosis, median_abs_deviation, moment, skew, variation,
    zscore,
)
from ..._src.scipy.stats.ranks import mode, rankdata, sem

__all__ = [
    "describe", "entropy", "gaussian_kde", "gmean", "hmean", "iqr", "kurtosis", "linregress",
    "median_abs_deviation", "mode", "moment", "pearsonr", "rankdata", "sem", "skew", "spearmanr",
    "ttest_1samp", "ttest_ind", "ttest_rel", "variation", "zscore",
]

_publish(__name__)
__getattr__, __dir__ = _submodules(__name__)
