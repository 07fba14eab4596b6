"""Every property of the rows of `ops.lax_structure`."""

from ops.lax_structure import ALL as TABLE
from properties import *
