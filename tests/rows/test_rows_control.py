"""Every property of the rows of `ops.control`."""

from ops.control import ALL as TABLE
from properties import *
