"""Compiled programs on several devices as callers see them: see pjit_cases.py."""

import eight_devices
import pjit_cases
import pytest


@pytest.fixture(scope="module")
def results(request):
    return eight_devices.outcomes(pjit_cases, request)


@pytest.mark.parametrize("case", pjit_cases.CASES)
def test_on_eight_devices(results, case):
    assert not results[case], results[case]
