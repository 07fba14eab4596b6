"""Bad arguments are refused in words: a share of the sweep of tools/bad_input.py."""

import bad_input as tool
import pytest

import olympus.numpy as onp
from olympus import lax


@pytest.mark.parametrize("module", [m for m in tool.MODULES if "." not in m])
def test_a_bad_argument_is_refused_in_words(module):
    """Each function with some of the bad values; the tool tries all."""
    found = [(name, what, result) for name, what, result in tool.sweep([f"{module}."], (3, 23))
             if result not in ("taken", "refused", "no legal call")]
    assert not found


def test_the_sweep_notices_a_message_from_inside():
    def careless(axes):
        return sorted(axes)

    call = tool.Call("lax.careless", careless, {"axes": None})
    assert "'NoneType' object is not iterable" in tool.outcome(call)


@pytest.mark.parametrize("call", [
    lambda: onp.choose(onp.array([0]), None), lambda: onp.linalg.multi_dot(None),
    lambda: onp.ravel_multi_index(1.5, (2, 3)), lambda: onp.einsum(None, onp.ones(3)),
    lambda: onp.searchsorted(onp.arange(3), 1, sorter=7), lambda: onp.linspace(0, 1, 10**30),
    lambda: lax.dot_general(onp.ones(3), onp.ones(3), None),
], ids=["choose", "multi_dot", "ravel_multi_index", "einsum", "searchsorted", "linspace",
        "dot_general"])
def test_raw_messages_that_users_saw(call):
    assert tool.outcome(tool.Call("olympus.call", call, {})) == "refused"
