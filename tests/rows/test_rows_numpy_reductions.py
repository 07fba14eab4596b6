"""Every property of the rows of `ops.numpy_reductions`."""

from ops.numpy_reductions import ALL as TABLE
from properties import *
