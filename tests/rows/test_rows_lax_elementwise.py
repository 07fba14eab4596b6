"""Every property of the rows of `ops.lax_elementwise`."""

from ops.lax_elementwise import ALL as TABLE
from properties import *
