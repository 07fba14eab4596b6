"""docs/accuracy.md says what tools/accuracy.py measures: some rows again, with few points."""

import accuracy
import pytest

PAGE, _, SWEPT = accuracy.PAGE.read_text().partition(accuracy.SWEPT)
ROWS = {cells[1].strip(" `"): [c.strip() for c in cells[2:-1]]
        for cells in (line.split("|") for line in PAGE.partition("## On one CPU")[0].splitlines()
                      if line.startswith("| `"))}
CASES = {case.name: case for case in accuracy.CASES}


def test_page_has_a_row_per_function():
    assert list(ROWS) == list(CASES)
    assert PAGE.startswith(accuracy.HEADER)
    assert PAGE.endswith(accuracy.FOOTER + "\n\n")
    assert SWEPT        # tests/test_special_sweep.py holds it


@pytest.mark.parametrize("name", ["exp", "log1p", "erf", "atan2", "igamma"])
def test_rows_are_not_worse(name):
    cells = ROWS[name]
    for i, dtype in enumerate(accuracy.DTYPES):
        if dtype == "float16" and len(CASES[name].ranges) == 1:
            continue
        worst, _, differ = accuracy.measure(CASES[name], dtype, 200)
        allowed = float(cells[1 + 2 * i])
        assert worst <= allowed, (dtype, worst)
        assert differ == int(cells[2 + 2 * i] or 0), dtype
