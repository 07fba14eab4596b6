"""Every property of the rows of `ops.control_custom`."""

from ops.control_custom import ALL as TABLE
from properties import *
