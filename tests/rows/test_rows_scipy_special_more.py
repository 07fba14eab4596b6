"""Every property of the rows of `ops.scipy_special_more`."""

import pytest
from ops.scipy_special_more import ALL as TABLE
from properties import *

pytestmark = pytest.mark.slow
