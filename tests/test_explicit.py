"""Explicit axes of meshes, on eight devices: see explicit_cases.py."""

import re
import subprocess
import sys

import eight_devices
import explicit_cases
import numpy as np
import pytest


@pytest.fixture(scope="module")
def results(request):
    return eight_devices.outcomes(explicit_cases, request)


@pytest.mark.parametrize("case", explicit_cases.CASES)
def test_on_eight_devices(results, case):
    assert not results[case], results[case]


@pytest.mark.slow
def test_generated_programs_are_those_of_one_device():
    eight_devices.python("tools/sharded_programs.py", "--count", "3", "--seed", "32")


@pytest.mark.slow
def test_a_transformer_learns_the_same_on_one_device_and_on_eight():
    example = ["examples/sharded_transformer.py", "--steps", "31"]
    alone = subprocess.run([sys.executable, *example], cwd=eight_devices.ROOT, text=True,
                           capture_output=True, check=True, timeout=600).stdout
    together = eight_devices.python(*example)
    assert "{'data': 1, 'model': 1}" in alone and "{'data': 4, 'model': 2}" in together
    one, eight = (np.array(re.findall(r"loss (\S+)", text), float) for text in (alone, together))
    np.testing.assert_allclose(eight, one, rtol=1e-2)
    assert one[-1] < 1.5 < one[0]
