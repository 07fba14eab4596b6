"""Every property of the rows of `ops.errors`."""

from ops.errors import ALL as TABLE
from properties import *
