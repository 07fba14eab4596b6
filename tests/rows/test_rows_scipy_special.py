"""Every property of the rows of `ops.scipy_special`."""

from ops.scipy_special import ALL as TABLE
from properties import *
