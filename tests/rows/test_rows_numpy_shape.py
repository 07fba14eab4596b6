"""Every property of the rows of `ops.numpy_shape`."""

from ops.numpy_shape import ALL as TABLE
from properties import *
