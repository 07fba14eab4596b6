"""Every property of the rows of `ops.lax_parameters`."""

from ops.lax_parameters import ALL as TABLE
from properties import *
