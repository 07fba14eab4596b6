"""Every property of the rows of `ops.control_loops`."""

from ops.control_loops import ALL as TABLE
from properties import *
