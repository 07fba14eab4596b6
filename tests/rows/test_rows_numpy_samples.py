"""Every property of the rows of `ops.numpy_samples`."""

from ops.numpy_samples import ALL as TABLE
from properties import *
