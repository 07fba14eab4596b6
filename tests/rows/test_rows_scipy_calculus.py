"""Every property of the rows of `ops.scipy_calculus`."""

from ops.scipy_calculus import ALL as TABLE
from properties import *
