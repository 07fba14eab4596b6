"""Every page and every docstring runs: `>>>` examples print what they say, plain blocks just run.

A page is one session from top to bottom: a name made in one ```python block is there in the next.
"""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import olympus

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
OPTIONS = doctest.ELLIPSIS


def run(test):
    """Run one doctest; the report of what differs is the failure's message."""
    report = []
    doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=report.append, clear_globs=False)
    assert not report, "".join(report)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page(page):
    text = page.read_text(encoding="utf-8")
    names = {"__name__": "__main__"}
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(1))
        if ">>>" in block[1]:
            name = f"{page.name}:{line}"
            test = doctest.DocTestParser().get_doctest(block[1], {}, name, str(page), line)
            test.globs = names  # get_doctest copies; blocks share one namespace
            run(test)
        else:
            exec(compile("\n" * line + block[1], str(page), "exec"), names)


def docstrings():
    """Every docstring with an example, found in the module that it says it is from."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    names = [module.name for module in pkgutil.walk_packages(olympus.__path__, "olympus.")]
    for name in ("olympus", *names):
        for test in finder.find(importlib.import_module(name)):
            if test.examples:
                yield pytest.param(test, id=test.name.removeprefix("olympus."))


@pytest.mark.parametrize("test", list(docstrings()))
def test_docstring(test):
    run(test)
