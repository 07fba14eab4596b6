"""The pages of the documentation, each run as one session from top to bottom.

A name made in one ```python block is there in the next. `>>>` examples print what they say; other
blocks just run. The pages for eight devices are cases of a process of their own (`eight_devices`).
"""

import doctest
import functools
import re
from pathlib import Path

from eight_devices import names, report

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
OPTIONS = doctest.ELLIPSIS


class Checker(doctest.OutputChecker):
    """The words of an error are compared, wherever its lines end."""

    def check_output(self, want, got, optionflags):
        if re.match(r"[\w.]*(Error|Operation|Warning): ", want):
            optionflags |= doctest.NORMALIZE_WHITESPACE
        return super().check_output(want, got, optionflags)


def run(test):
    """Run one doctest; the report of the differences is the failure's message."""
    differences = []
    runner = doctest.DocTestRunner(Checker(), optionflags=OPTIONS)
    runner.run(test, out=differences.append, clear_globs=False)
    assert not differences, "".join(differences)


def run_page(page):
    """Run the blocks of a page, which share one namespace."""
    text = page.read_text(encoding="utf-8")
    scope = {"__name__": "__main__"}
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(1))
        if ">>>" in block[1]:
            name = f"{page.name}:{line}"
            test = doctest.DocTestParser().get_doctest(block[1], {}, name, str(page), line)
            test.globs = scope  # get_doctest copies
            run(test)
        else:
            exec(compile("\n" * line + block[1], str(page), "exec"), scope)


FOR_EIGHT = [page for page in PAGES
             if page.read_text(encoding="utf-8").startswith("<!-- eight devices -->")]
globals().update({f"case_{page.stem}": functools.partial(run_page, page) for page in FOR_EIGHT})
CASES = names(globals())

if __name__ == "__main__":
    report(globals())
