"""Every property of the rows of `ops.numpy_linalg_a`."""

from ops.numpy_linalg_a import ALL as TABLE
from properties import *
