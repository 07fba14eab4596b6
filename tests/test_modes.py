"""Eager, compiled and mapped calls mean the same: a share of the sweep of tools/mode_sweep.py."""

import mode_sweep as sweep
import pytest

import olympus
import olympus.numpy as onp

# Those of scipy take minutes to compile: the tool has them.
FUNCTIONS = {name: fun for name, fun in sweep.functions().items() if not name.startswith("scipy.")}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_call_means_the_same_in_every_mode(name):
    """Each function by one call in one of the modes; the tool tries as many as are asked for."""
    number = 1 + len(name) % 3
    mode = sweep.MODES[sum(map(ord, name)) % len(sweep.MODES)]
    case = sweep.case(name, FUNCTIONS[name], number)
    assert not sweep.check(case, (mode,)), case


def wrapping(x, y):
    """Finding 6: numbers wrapped in eager calls only."""
    return x / (y % 256 if type(y) is int and not isinstance(x, olympus.core.Tracer) else y)


def forgetful(x):
    """Finding 24: weak types that tracing loses."""
    return onp.asarray(x, x.dtype) if isinstance(x, olympus.core.Tracer) else x


def unmapped(x):
    """Finding 30: an error under vmap only."""
    if x.ndim and isinstance(x, olympus.core.Tracer) and "Batch" in type(x).__name__:
        raise TypeError("a batched operand")
    return x


@pytest.mark.parametrize(("fun", "operands", "modes"), [
    (wrapping, (onp.asarray([64], "uint8"), 300), ["jit", "traced", "vmap", "jit(vmap)"]),
    (forgetful, (onp.asarray(2.0),), ["jit", "traced"]),
    (unmapped, (onp.asarray([1.0]),), ["vmap", "jit(vmap)"]),
])
def test_the_sweep_finds_what_it_is_there_to_find(fun, operands, modes):
    case = sweep.Case(fun.__name__, fun, list(operands), lambda leaves: (leaves, {}))
    found = [mode for mode, _ in sweep.check(case)]
    assert set(modes) <= set(found), found
