"""Every property of the rows of `ops.random`."""

from ops.random import ALL as TABLE
from properties import *
