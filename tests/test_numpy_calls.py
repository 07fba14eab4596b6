"""olympus.numpy does as NumPy does, or for a reason: a share of tools/numpy_calls.py."""

import numpy as np
import numpy_calls as sweep
import pytest

import olympus

NAMES = [name for i, name in enumerate(sweep.names())
         if not name.endswith(sweep.METHODS) or not i % 5]


@pytest.mark.parametrize("name", NAMES)
def test_a_call_does_as_numpy_does(name):
    """One call of each function; the tool makes as many as are asked for."""
    ((case, text, why),) = sweep.sweep([name], 1, first=len(name) % 6)
    assert why or not text, f"{case}: {text}"


X = np.array([1.5, -2.0, 0.25])


@pytest.mark.parametrize(("found", "expected"), [
    (X, -X), (X, X[:2]), (X, X.astype("f4")), (X, ValueError("x")), (ValueError("x"), X), ([X], X),
    (TypeError("x"), IndexError("x")), (X, X * (1 + 1e-12)), ([X, X], [X, X + 1])])
def test_the_sweep_finds_what_it_is_there_to_find(found, expected):
    with olympus.enable_x64(True):
        assert sweep.differ(found, expected, "sum")
        assert not sweep.differ(found, found, "sum") or isinstance(found, Exception)


def test_no_reason_explains_another_value():
    case = sweep.Case("sum", 0, (X,), {})
    with olympus.enable_x64(True):
        for found, expected in [(X, -X), (X, X[:2]), (ValueError("x"), X)]:
            assert not sweep.explained(case, found, expected)
