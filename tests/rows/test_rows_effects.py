"""Every property of the rows of `ops.effects`."""

from ops.effects import ALL as TABLE
from properties import *
