"""Every property of the rows of `ops.rules`."""

from ops.rules import ALL as TABLE
from properties import *
