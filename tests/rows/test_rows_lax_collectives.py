"""Every property of the rows of `ops.lax_collectives`."""

from ops.lax_collectives import ALL as TABLE
from properties import *
