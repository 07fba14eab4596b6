"""Every property of the rows of `ops.nn`."""

from ops.nn import ALL as TABLE
from properties import *
