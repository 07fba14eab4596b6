"""Every property of the rows of `ops.lax_fft`."""

from ops.lax_fft import ALL as TABLE
from properties import *
