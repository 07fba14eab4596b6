"""Every property of the rows of `mesh_rows`, in a process with eight devices."""

import pytest

import olympus

if olympus.device_count() < 4:
    pytest.skip("devices", allow_module_level=True)

from mesh_rows import ALL as TABLE
from properties import *

pytestmark = pytest.mark.slow
