"""The tests that take more than 0.3 seconds, from pytest's own reports: `tests/data/slow.txt`.

    python -m pytest -n 2 --junitxml=quick.xml
    python -m pytest -n 2 -m slow --junitxml=slow.xml
    python tools/slow_tests.py quick.xml slow.xml > new.txt; mv new.txt tests/data/slow.txt

`tests/conftest.py` marks them, so that the README's command leaves them to `.ci/run`. Lines that
end in `*` stand for all that begin so; they stay.
"""

import sys
import xml.etree.ElementTree
from pathlib import Path

SECONDS = 0.3
PAGE = Path(__file__).parent.parent / "tests" / "data" / "slow.txt"


def main(*reports: str) -> None:
    """Print the slow tests of reports, a line each: file without suffix, `::`, name."""
    families = [x for x in PAGE.read_text(encoding="utf-8").split() if x.endswith("*")]
    cases = [case for report in reports for case in
             xml.etree.ElementTree.parse(report).iter("testcase")]
    names = {f"{case.get('classname')}::{case.get('name')}" for case in cases
             if float(case.get("time", 0)) > SECONDS}
    named = {n for n in names if not n.startswith(tuple(f[:-1] for f in families))}
    print("\n".join(sorted({*families, *named})))


if __name__ == "__main__":
    main(*sys.argv[1:])
