"""The tool that makes rules wrong, on a few primitives: it kills, and names unreached rules."""

from __future__ import annotations

import gc
import os
import pathlib

import mutate_rules
import properties
import pytest

ROOT = pathlib.Path(__file__).parent.parent


def lines(text: str) -> dict[tuple[str, ...], str]:
    return {tuple(line.split()[:2]): " ".join(line.split()[2:]) for line in text.splitlines()
            if not line.startswith(" ")}


@pytest.fixture(autouse=True)
def _nothing_shared(monkeypatch):
    """Programs that other tests of this process compile have the rules as they are; and the tool
    looks for primitives among all objects, as `conftest.py` leaves them out.
    """
    monkeypatch.setattr(properties, "WANTED", {})
    gc.unfreeze()


def share(*arguments: str) -> int:
    """The status of `--share 0/1`, which itself ends its process."""
    return mutate_rules.share(mutate_rules.parsed(["--share", "0/1", *arguments]))


def test_wrong_rules_are_killed(capsys) -> None:
    rows = r"(difference|transpose_of_jvp|loop)\[lax.(mul|sin|lt)(-d)?\]"
    assert share("--cases", rows, "mul", "sin") == 0
    found = lines(capsys.readouterr().out)
    assert found["mul", "jvp"] == "killed 5 of 5"
    assert found["mul", "transpose"] == "killed 2 of 2"
    assert found["mul", "vmap"] == "killed 3 of 3"
    assert found["sin", "jvp"] == "killed 2 of 2"


def test_a_rule_that_no_case_reaches_is_told(capsys) -> None:
    assert share("--cases", r"second.*\[lax.tan-d\]", "tan") == 1
    found = lines(capsys.readouterr().out)
    assert found["tan", "vmap"] == "NOT REACHED"
    assert found["tan", "jvp"].startswith("killed")


def test_rules_of_programs_on_several_devices_are_reached(capsys, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{ROOT / 'tests'}")
    assert mutate_rules.main(["--cases", "sums-gathered|sums-of-shared", "preduced"]) == 0
    found = lines(capsys.readouterr().out)
    assert found["preduced", "transpose"] == "killed 1 of 1"
