"""The tests that take long where no program is compiled yet: `tests/data/slow.txt`.

    python -m pytest -n 2 --junitxml=quick.xml
    python -m pytest -n 2 -m slow --junitxml=slow.xml
    python tools/slow_tests.py quick.xml slow.xml > new.txt; mv new.txt tests/data/slow.txt

`tests/conftest.py` marks them, so that the README's command leaves them to `.ci/run`. A test is
slow that takes more seconds than the limit for functions with as many tests; two tests of a
function with many stay. Lines that end in `*` stand for all that begin so. These lines stay, and so
do cases on several devices: one process runs them, and their time is the first test's.
"""

import sys
import xml.etree.ElementTree
from pathlib import Path

LIMITS = {60: 0.08, 5: 0.12, 1: 0.25}      # seconds, by the number of tests of a function
MANY = 5
TOGETHER = ("::test_on_eight_devices[", "::test_on_several_devices[")
PAGE = Path(__file__).parent.parent / "tests" / "data" / "slow.txt"


def main(*reports: str) -> None:
    """Print the slow tests of reports, a line each: file without suffix, `::`, name."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    kept = {x for x in lines if x.endswith("*") or any(part in x for part in TOGETHER)}
    families = tuple(x[:-1] for x in kept if x.endswith("*"))
    functions: dict[str, list[tuple[float, str]]] = {}
    for report in reports:
        for case in xml.etree.ElementTree.parse(report).iter("testcase"):
            name = f"{case.get('classname')}::{case.get('name')}"
            if not name.startswith(families) and not any(part in name for part in TOGETHER):
                functions.setdefault(name.split("[")[0], []).append(
                    (float(case.get("time", 0)), name))
    for tests in functions.values():
        limit = next(limit for count, limit in LIMITS.items() if len(tests) >= count)
        left_quick = 2 if len(tests) >= MANY else 0
        kept.update(name for seconds, name in sorted(tests)[left_quick:] if seconds > limit)
    print("\n".join(sorted(kept)))


if __name__ == "__main__":
    main(*sys.argv[1:])
