"""Templates: a library function's recorded operations, written again, are what it would record."""

import contextlib
import warnings

import numpy as np
import ops
import pytest

import olympus
import olympus.numpy as onp
from olympus import scipy
from olympus._src.core import templates

X = onp.arange(1.0, 7.0).reshape(2, 3)
BELOW = {"jit": lambda f: f,
         "grad": lambda f: lambda *args: olympus.vjp(f, *args)[0],
         "vmap": lambda f: lambda *args: olympus.vmap(f)(*[x[None] for x in args])}


def recorded(made, args, monkeypatch):
    """The program with each library function run anew."""
    with monkeypatch.context() as patch:
        patch.setattr(templates, "call", lambda trace, fun, args, kwargs: fun(*args, **kwargs))
        return olympus.make_olympuspr(made)(*args)


@pytest.mark.parametrize("table", ops.tables())
def test_what_a_template_writes_is_what_the_function_records(table, monkeypatch):
    checked = 0
    for op in ops.tables()[table][::7]:
        if not isinstance(op, ops.Op):
            continue
        args = [np.asarray(x, op.dtypes[0]) if isinstance(x, np.ndarray) and x.dtype.kind == "f"
                and op.dtypes[0] in "fd" else x for x in op.args]
        if not all(isinstance(x, np.ndarray) and x.dtype.kind in "biuf" for x in args):
            continue
        for how, below in BELOW.items():
            made = below(op.fun)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    before = recorded(made, args, monkeypatch)
                except Exception:   # no such derivative
                    continue
                olympus.make_olympuspr(made)(*args)
                after = olympus.make_olympuspr(made)(*args)
            # Constants of equal calls are one.
            assert len(after.consts) <= len(before.consts)
            if len(after.consts) == len(before.consts):
                assert str(after) == str(before), (op.name, how)
                checked += 1
    assert checked or not any(isinstance(op, ops.Op) for op in ops.tables()[table])


def equations(f, *args):
    return olympus.make_olympuspr(f)(*args).olympuspr.eqns


def test_a_template_has_the_line_and_the_scope_of_each_caller():
    def f(x):
        y = onp.var(x)
        with olympus.named_scope("here"):
            return y + onp.var(x)

    first, second = [e for e in equations(f, X) if e.primitive.name == "div"][1::2]
    assert first.source != second.source
    assert str(second.source_info.name_stack) == "here"
    assert str(first.source_info.name_stack) == ""


# Calls that look alike, and differ.
APART = {
    "a flag and a number": (lambda x: onp.clip(x, True, 2), lambda x: onp.clip(x, 1, 2)),
    "the sign of zero": (lambda x: onp.nan_to_num(x, nan=0.0),
                         lambda x: onp.nan_to_num(x, nan=-0.0)),
    "int and float": (lambda x: onp.nan_to_num(x, nan=1), lambda x: onp.nan_to_num(x, nan=1.0)),
    "a flag and a number, repeated": (lambda x: onp.full((2,), True), lambda x: onp.full((2,), 1)),
    "a sign within a tuple": (lambda x: onp.pad(x, 1, constant_values=(0.0, 0.0)),
                              lambda x: onp.pad(x, 1, constant_values=(0.0, -0.0))),
    "an operand given twice": (lambda x: onp.hypot(x, x), lambda x: onp.hypot(x, x + 1)),
    "the order of operands": (lambda x: onp.cov(x[0], x[1]), lambda x: onp.cov(x[1], x[0])),
    "where a keyword goes": (lambda x: onp.var(x, axis=0), lambda x: onp.var(x, ddof=0)),
}


@pytest.mark.parametrize("pair", APART.values(), ids=APART)
def test_calls_that_differ_are_told_apart(pair, monkeypatch):
    for f in (*pair, *pair):
        assert str(olympus.make_olympuspr(f)(X)) == str(recorded(f, [X], monkeypatch))
        np.testing.assert_array_equal(olympus.jit(f)(X), f(X))


def test_a_warning_is_given_at_each_call():
    def f(x):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            given.append(onp.mean(x, dtype=float, where=x > 0) + onp.sum(x, dtype="float64"))
            told.append(len(found))
        return given.pop()

    given, told = [], []
    for _ in range(3):
        olympus.make_olympuspr(f)(X)
    assert told[0] > 0
    assert told == told[:1] * 3


def test_a_users_function_runs_at_each_call():
    def f(x):
        return scipy.linalg.funm(x, lambda w: seen.append(1) or w)

    seen = []
    for i in range(3):
        olympus.make_olympuspr(f)(X @ X.T)
        assert len(seen) == i + 1


def test_options_of_a_context_have_templates_of_their_own():
    def f(x):
        return onp.median(onp.arange(3) * x[0, 0])

    narrow = str(olympus.make_olympuspr(f)(X))
    with olympus.enable_x64(True):
        assert "i64" in str(olympus.make_olympuspr(f)(X))
    assert str(olympus.make_olympuspr(f)(X)) == narrow
    olympus.make_olympuspr(lambda x: x + onp.arange(3))(X)
    with olympus.numpy_dtype_promotion("strict"), pytest.raises(
            ValueError, match="strict"):
        olympus.make_olympuspr(lambda x: x + onp.arange(3))(X)


@pytest.mark.parametrize("around", [contextlib.nullcontext, olympus.checking_leaks],
                         ids=["", "checking leaks"])
def test_a_template_keeps_no_trace_alive(around):
    with around():
        for _ in range(2):
            olympus.jit(lambda x: onp.var(onp.median(x, axis=0)))(X)


def test_the_function_itself_says_what_is_wrong():
    for _ in range(2):
        with pytest.raises(ValueError, match="median: axis 5"):
            olympus.make_olympuspr(lambda x: onp.median(x, axis=5))(X)
        with pytest.raises(ValueError, match="median: axis 5"):
            olympus.make_olympuspr(olympus.grad(lambda x: onp.median(x, axis=5).sum()))(X)


def test_a_list_or_a_known_array_goes_to_the_function_itself():
    def f(x):
        return onp.searchsorted(np.array([1.0, 2.0], np.float32), x) + onp.interp(
            x, onp.array([0.0, 9.0]), onp.array([0.0, 1.0])).astype(int)

    first, second = olympus.jit(f)(X), olympus.jit(lambda x: f(x))(X)
    np.testing.assert_array_equal(first, second)
    assert first.tolist() == np.searchsorted([1.0, 2.0], np.asarray(X)).tolist()


def test_a_template_that_is_made_under_grad_hides_no_warning():
    def f(x):
        return onp.sum(x, dtype="float64").astype("float32")

    for _ in range(2):
        with pytest.warns(UserWarning, match="float64") as found:
            olympus.make_olympuspr(olympus.grad(f))(X)
        assert len(found) == 1


def test_a_text_by_position_does_not_pass_for_the_name_of_an_argument():
    def f(x):
        total = onp.sum(x, axis=0)
        with pytest.raises(TypeError):
            onp.sum(x, "axis", 0)
        return total

    olympus.make_olympuspr(f)(np.ones((2, 3), np.float32))
