"""Every property of the rows of `ops.lax_linalg_a`."""

from ops.lax_linalg_a import ALL as TABLE
from properties import *
