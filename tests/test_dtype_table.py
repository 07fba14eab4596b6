"""Which operation takes which dtype is as tests/data/dtype_table.txt says.

A fixed quarter of the operations is quick to test; the others are slow tests.
"""

import warnings
from pathlib import Path

import dtype_table as tool
import pytest

import olympus

DATA = Path(__file__).parent / "data"
LINES = (DATA / "dtype_table.txt").read_text(encoding="utf-8").splitlines()
TABLE = {text.split(":")[0]: text for text in LINES}
QUICK = {*tool.share(0, 4)}


def test_the_table_has_every_operation():
    heads = [f"no arrays of {dtype}" for dtype in tool.NAMES_ONLY]
    assert [*TABLE] == [*heads, *sorted(tool.OPERATIONS)]


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
    for name in sorted(tool.OPERATIONS)])
def test_dtypes_of(name):
    with olympus.enable_x64(True), warnings.catch_warnings(action="ignore"):
        found = list(tool.table([name]))
    assert found[-1] == TABLE[name]
    assert all(text in LINES for text in found)


def test_a_dtype_without_arrays_is_explained():
    with pytest.raises(TypeError, match="XLA has no arrays of it; convert to a wider dtype"):
        olympus.numpy.ones(2, "int1")
