"""Types and shardings on eight devices: see mesh_type_cases.py."""

import eight_devices
import mesh_type_cases
import pytest


@pytest.fixture(scope="module")
def results(request):
    return eight_devices.outcomes(mesh_type_cases, request)


@pytest.mark.parametrize("case", mesh_type_cases.CASES)
def test_on_eight_devices(results, case):
    assert not results[case], results[case]


@pytest.mark.slow
@pytest.mark.parametrize("options", ["0", "1", "2", "3", "1 --auto"])
def test_calls_have_one_type_whichever_way(options):
    eight_devices.python("tools/type_sweep.py", "--part", *options.split())
