"""Every property of the rows of `ops.numpy_names`."""

from ops.numpy_names import ALL as TABLE
from properties import *
