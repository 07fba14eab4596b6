"""Rules compiled as one program give what their operations give one by one."""

import re

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus._src.base.util import Memo
from olympus._src.interpreters import batching, compiled_rules, jvp

X = onp.array([[0.3, -1.2, 2.5], [1.7, 0.4, -0.6]])
T = onp.array([[1.0, 0.5, -2.0], [0.25, -1.5, 3.0]])
FUNCTIONS = {
    "several operations": onp.tanh,
    "an operand of rank 0": lambda x: (x[0, 1] ** 2) * x + 2.5 * x,
    "a residual that is the operand": lambda x: onp.sin(x) * x,
    "a residual that is the result": lambda x: onp.exp(x) ** 3,
    "a tangent that is the operand's": lambda x: x + 3.0,
    "a tangent that is zero": lambda x: x * onp.sign(x),
    "several results": lambda x: lax.sort((x, x * x), dimension=1),
    "a choice": lambda x: onp.where(x > 0, x * x, -x),
    "products": lambda x: x @ X.T,
    "integers": lambda x: x[onp.argmax(x, 0)] * 2,
    "bfloat16": lambda x: onp.tanh(x.astype("bfloat16")),
    "complex numbers": lambda x: abs(x + 1j * x ** 2),
}


def linearized(f):
    out, push = olympus.linearize(f, X)
    return out, push(T), re.sub(r"\s+", " ", str(olympus.make_olympuspr(push)(T)))


HOW = {"jvp": lambda f: olympus.jvp(f, (X,), (T,)),
       "linearize": linearized,
       "vmap": lambda f: olympus.vmap(f)(onp.stack([X, T]))}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_rule_at_once_gives_what_its_operations_give(name, how, monkeypatch):
    made = Memo(100)
    monkeypatch.setattr(compiled_rules, "_rules", made)
    found = HOW[how](FUNCTIONS[name])
    # A rule that cannot be compiled runs by steps, and gives the same: here each can be.
    assert made and False not in made.values()
    monkeypatch.setattr(jvp, "jvp_at_once", lambda *args: None)
    monkeypatch.setattr(batching, "vmap_at_once", lambda *args: None)
    expected = HOW[how](FUNCTIONS[name])
    for x, y in zip(*map(olympus.tree.leaves, (found, expected)), strict=True):
        if isinstance(y, str):      # the program of the tangents
            assert x == y
            continue
        assert (olympus.typeof(x), type(x)) == (olympus.typeof(y), type(y))
        np.testing.assert_allclose(*[np.asarray(z, "complex64") for z in (x, y)], rtol=1e-5,
                                   atol=1e-6)


@pytest.mark.parametrize("how", HOW)
def test_a_defect_of_a_rule_that_only_shows_when_it_is_staged_is_raised(how, monkeypatch):
    """It was swallowed, and the rule run by steps from then on."""
    name = "vmap" if how == "vmap" else "jvp"
    rule = getattr(lax.tanh_p, name)

    def broken(*args, **params):
        if any(isinstance(x, olympus.core.Tracer) for x in args[name == "vmap"]):
            raise KeyError("a defect")
        return rule(*args, **params)

    monkeypatch.setattr(compiled_rules, "_rules", Memo(100))
    monkeypatch.setattr(lax.tanh_p, name, broken)
    with pytest.raises(KeyError, match="a defect"):
        HOW[how](onp.tanh)


def test_a_residual_is_the_operand_or_the_result_itself():
    w = X + 2
    out, push = olympus.linearize(lambda x: onp.exp(x * w), X)
    assert {id(w), id(out)} <= {id(x) for x in olympus.tree.leaves(push)}


def test_a_deleted_operand_is_told_where_a_rule_runs_at_once():
    gone = onp.array([1.0, 2.0, 3.0])
    gone.delete()
    for call in (lambda: olympus.jvp(lambda x: x * gone, (X,), (T,)),
                 lambda: olympus.grad(lambda x: (x * gone).sum())(X),
                 lambda: olympus.vmap(lambda x: x * gone)(X)):
        with pytest.raises(olympus.errors.DonatedArgumentError, match="has been deleted"):
            call()


def test_an_option_that_looks_at_each_operation_has_the_rule_run_by_steps():
    def slope():
        return olympus.jvp(lax.atan2, (0 * X, 0 * X), (T, T))

    slope()
    with olympus.debug_nans(True), pytest.raises(FloatingPointError, match="div"):
        slope()


def test_params_without_a_hash_are_told_by_the_operation():
    def f(x):
        return lax.reduce_sum_p.bind(x, axes=[0], out_sharding=None)

    with pytest.raises(TypeError, match="hashable values are required"):
        olympus.jvp(f, (X,), (T,))


def test_a_rule_is_staged_once_for_operands_of_the_same_types(monkeypatch):
    def f(x, y):
        return lax.atan2(x, y)

    first = olympus.jvp(f, (X, T), (T, X))
    monkeypatch.setattr(compiled_rules, "stage", None)
    again = olympus.jvp(f, (X, T), (T, X))
    np.testing.assert_array_equal(first, again)
    olympus.jvp(f, (X, 2 * T), (X, 3 * T))
