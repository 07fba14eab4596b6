"""Every property of the rows of `ops.scipy_stats`."""

from ops.scipy_stats import ALL as TABLE
from properties import *
