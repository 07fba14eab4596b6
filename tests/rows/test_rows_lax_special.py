"""Every property of the rows of `ops.lax_special`."""

from ops.lax_special import ALL as TABLE
from properties import *
