"""Primitives that carry programs, on operands of every state of type: see body_state_cases.py."""

import json

import body_state_cases as cases
import eight_devices
import pytest

# What is refused, and in which words.
REFUSED = {
    "reduced": {"vmap-of-scan": "one is reduced along 'x'"},
    "unreduced": {"vmap-of-scan": "the operation needs its value, or all operands so",
                  "associative_scan": "lhs is unreduced while rhs is not"},
}
EAGER = "scan-ys,map,fori,while,cond,call,checkpoint,custom_jvp"


def check(state, count, mode, bodies=None):
    plan = ":".join([state, str(count), mode, *([bodies] if bodies else [])])
    out = eight_devices.python(cases.__file__, plan)
    (_, found), = map(json.loads, out.splitlines())
    assert not found["differ"], found["differ"]
    names = bodies.split(",") if bodies else [*cases.BODIES]
    wanted = {k: text for k, text in REFUSED.get(state, {}).items() if k in names}
    assert found["refused"].keys() == wanted.keys(), found["refused"]
    for body, text in wanted.items():
        assert text in found["refused"][body], found["refused"][body]


@pytest.mark.parametrize(("state", "count"), [
    (state, (2, 4, 8)[i % 3]) for i, state in enumerate(cases.STATES)])
def test_values_and_both_derivatives_are_those_of_one_device(state, count):
    check(state, count, "jit")


@pytest.mark.parametrize("state", ["reduced", "unreduced"])
def test_eagerly_too(state):
    check(state, 2, "eager", EAGER)
