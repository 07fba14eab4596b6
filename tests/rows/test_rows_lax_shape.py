"""Every property of the rows of `ops.lax_shape`."""

from ops.lax_shape import ALL as TABLE
from properties import *
