"""Every property of the rows of `ops.lax_staged`."""

from ops.lax_staged import ALL as TABLE
from properties import *
