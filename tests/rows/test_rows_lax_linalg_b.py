"""Every property of the rows of `ops.lax_linalg_b`."""

from ops.lax_linalg_b import ALL as TABLE
from properties import *
