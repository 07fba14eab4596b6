"""Every property of the rows of `ops.numpy_ufuncs`."""

from ops.numpy_ufuncs import ALL as TABLE
from properties import *
