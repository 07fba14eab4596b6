"""`shard_map`, and the collectives within. What needs several devices is in shard_map_cases.py."""

import eight_devices
import pytest
import shard_map_cases


@pytest.fixture(scope="module")
def results(request):
    return eight_devices.outcomes(shard_map_cases, request)


@pytest.mark.parametrize("case", shard_map_cases.CASES)
def test_on_eight_devices(results, case):
    assert not results[case], results[case]


@pytest.mark.slow
def test_rows_on_eight_devices():
    eight_devices.pytest("tests/rows/test_rows_mesh.py")
