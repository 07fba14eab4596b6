"""The tests that take more than 0.8 seconds, from pytest's own report: `tests/data/slow.txt`.

    python -m pytest -n 2 -m "slow or not slow" --junitxml=report.xml
    python tools/slow_tests.py report.xml > tests/data/slow.txt

`tests/conftest.py` marks them, so that the README's command leaves them to `.ci/run`.
"""

import sys
import xml.etree.ElementTree

SECONDS = 0.8


def main(report: str) -> None:
    """Print the slow tests of a report, a line each: file without suffix, `::`, name."""
    cases = xml.etree.ElementTree.parse(report).iter("testcase")
    names = {f"{case.get('classname')}::{case.get('name')}" for case in cases
             if float(case.get("time", 0)) > SECONDS}
    print("\n".join(sorted(names)))


if __name__ == "__main__":
    main(sys.argv[1])
