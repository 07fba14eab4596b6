"""tools/replay.py shows what a change of a rule changes, by where the programs part."""

from typing import Any

import numpy as np
import pytest
import replay

import olympus.numpy as onp
from olympus.lax import sin_p

X = np.arange(3.0, dtype=np.float32)
FUNCTIONS = {"trig: sine": onp.sin, "trig: sines": lambda x: onp.sin(x) + onp.sin(x * 2),
             "hyperbolic: cosine": onp.cosh}


def texts() -> dict[str, Any]:
    return {f"{name} {form}": replay.texts(*make()) for name, fun in FUNCTIONS.items()
            for form, make in replay.forms(fun, (X,), True)}


def test_a_changed_rule_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    before = texts()
    assert len(before) == 12
    assert list(replay.compare(before, texts(), True)) == [
        "0 programs changed of 12; 0 are new, 0 are gone"]
    monkeypatch.setattr(sin_p, "jvp", lambda args, tangents: (
        sin_p.bind(args[0]), tangents[0] * onp.cos(args[0] + 1)))
    first, group, *diff = replay.compare(before, texts(), True)
    assert first == "4 programs changed of 12; 0 are new, 0 are gone"
    assert group.split(": ")[0] == "    4 programs of trig at cos -> add"
    assert {"--- before: trig: sine vjp", "+++ after: trig: sine vjp"} < {*diff}


def test_a_changed_constant_is_shown() -> None:
    def at(zero: float) -> dict[str, Any]:
        closed_over = np.array([zero, 1.0], np.float32)
        return {"table: row": replay.texts(lambda x: x + closed_over, (X[:2],))}
    first, group = replay.compare(at(0.0), at(-0.0), False)
    assert first.startswith("1 programs changed of 1;")
    assert group == "    1 programs of table at no operation: row"


def test_what_is_new_or_gone_is_counted() -> None:
    assert list(replay.compare({"a: 1": {}, "a: 2": {}}, {"a: 2": {}, "a: 3": {}}, False)) == [
        "0 programs changed of 1; 1 are new, 1 are gone"]
