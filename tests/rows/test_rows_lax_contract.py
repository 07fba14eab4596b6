"""Every property of the rows of `ops.lax_contract`."""

from ops.lax_contract import ALL as TABLE
from properties import *
