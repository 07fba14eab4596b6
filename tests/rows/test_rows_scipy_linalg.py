"""Every property of the rows of `ops.scipy_linalg`."""

import pytest
from ops.scipy_linalg import ALL as TABLE
from properties import *

pytestmark = pytest.mark.slow   # hundreds of programs; test_scipy_linalg.py is the quick look
