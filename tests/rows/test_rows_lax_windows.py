"""Every property of the rows of `ops.lax_windows`."""

from ops.lax_windows import ALL as TABLE
from properties import *
