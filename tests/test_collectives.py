"""Collectives over named axes: each against NumPy, in groups, over several names, differentiated.

A case is a function of one element and its effect on the stack of all; the properties run over
all cases, and notice if a rule is replaced by a wrong one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from collective_cases import (
    CASES, FORMS, GROUPS, UNEQUAL, Case, Form, expected, ragged_oracle, ragged_plan, same, setup,
)
from ops import reals

import olympus
from olympus import jit, jvp, lax, numpy as onp, tree, vjp, vmap
from olympus._src.core.primitive import Zero
from olympus._src.lax.collectives.moves import reduce_scatter_p
from olympus._src.lax.collectives.reductions import pbroadcast_p

RUNS = [pytest.param(case, form, id=f"{case.name}-{form.sizes}{form.groups or ''}")
        for case in CASES for form in FORMS if case.grouped or not form.groups]



def check_values(case: Case, form: Form) -> None:
    with olympus.enable_x64(True):
        fun, xs = setup(case, form)
        wanted = expected(case, form, xs)
        same(form.mapped(fun)(xs), wanted)
        same(jit(form.mapped(jit(fun)))(xs), wanted)
        tree_out = form.mapped(lambda x: fun({"a": x, "b": [x]}))(xs) if case.grouped and \
            case.name != "psum" else {}
        same(tree_out, [wanted] * len(tree.leaves(tree_out)))


def check_batches(case: Case, form: Form) -> None:
    """An axis without a name, outside and inside, at several places."""
    with olympus.enable_x64(True):
        fun, xs = setup(case, form)
        two = np.stack([xs, xs[::-1] * 0.7], -1)
        wanted = np.stack([expected(case, form, two[..., k]) for k in (0, 1)])
        outside, inside = jit(lambda two: (vmap(form.mapped(fun), in_axes=-1)(two),
                                           form.mapped(vmap(fun, in_axes=-1))(two)))(two)
        same(outside, wanted)
        same(np.moveaxis(np.asarray(inside), len(form.sizes), 0), wanted)


def check_unmapped(case: Case, form: Form) -> None:
    """An operand that all elements share."""
    with olympus.enable_x64(True):
        fun, xs = setup(case, form)
        one = xs[(0,) * len(form.sizes)]
        out = jit(form.mapped(lambda _: fun(one)))(np.zeros(form.sizes))
        same(out, expected(case, form, np.broadcast_to(one, xs.shape).copy()))


def check_derivatives(case: Case, form: Form) -> None:
    """Inside the named axes as outside of them, where only arrays are left."""
    with olympus.enable_x64(True):
        fun, xs = setup(case, form)
        whole, ts = form.mapped(fun), reals(*xs.shape, seed=1)
        cts = reals(*expected(case, form, xs).shape, seed=2)

        def inside(xs: Any, ts: Any, cts: Any) -> list[Any]:
            return [form.mapped(lambda x, t: jvp(fun, (x,), (t,)))(xs, ts),
                    form.mapped(lambda x, c: vjp(fun, x)[1](c))(xs, cts),
                    form.mapped(lambda x, t: jvp(lambda x: vjp(fun, x)[1](fun(x))[0],
                                                 (x,), (t,)))(xs, ts)]

        def outside(xs: Any, ts: Any, cts: Any) -> list[Any]:
            return [jvp(whole, (xs,), (ts,)), vjp(whole, xs)[1](cts),
                    jvp(lambda x: vjp(whole, x)[1](whole(x))[0], (xs,), (ts,))]

        same(jit(inside)(xs, ts, cts), jit(outside)(xs, ts, cts))


@pytest.mark.parametrize(("case", "form"), RUNS)
def test_values(case: Case, form: Form) -> None:
    check_values(case, form)


@pytest.mark.parametrize(("case", "form"), RUNS)
def test_another_mapped_axis(case: Case, form: Form) -> None:
    check_batches(case, form)


@pytest.mark.parametrize(("case", "form"), RUNS)
def test_operand_that_is_not_mapped(case: Case, form: Form) -> None:
    check_unmapped(case, form)


@pytest.mark.parametrize(("case", "form"), RUNS)
def test_derivatives(case: Case, form: Form) -> None:
    check_derivatives(case, form)


@pytest.mark.parametrize("name", ["psum", "pmax", "pmean", "pmin"])
def test_groups_of_different_sizes(name: str) -> None:
    case = next(c for c in CASES if c.name == name)
    for sizes in ((4,), (2, 2)):
        for check in (check_values, check_unmapped, check_batches, check_derivatives):
            check(case, Form(sizes, UNEQUAL))


def test_the_mean_of_a_python_number_is_that_number() -> None:
    for number in (3, 0.5, 2j):
        found = olympus.vmap(lambda x, n=number: x + lax.pmean(n, "i"), axis_name="i")(np.zeros(3))
        np.testing.assert_array_equal(found, np.full(3, number))


# A wrong rule is noticed --------------------------------------------------------------------------

CHECKS = {"jvp": check_derivatives, "transpose": check_derivatives, "vmap": check_batches,
          "vmap_named": check_values}
RULES = [(prim, rule) for prim in (
    lax.psum_p, lax.pmax_p, lax.pmin_p, lax.all_gather_p, reduce_scatter_p, lax.all_to_all_p,
    lax.ppermute_p, pbroadcast_p) for rule in CHECKS if getattr(prim, rule) is not None]


def negated(x: Any) -> Any:
    return x if x is None or isinstance(x, Zero) else lax.neg(x)


@pytest.mark.parametrize(("prim", "rule"), RULES, ids=[f"{p}-{r}" for p, r in RULES])
def test_a_wrong_rule_is_noticed(prim: Any, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = getattr(prim, rule)

    def wrong(*args: Any, **params: Any) -> Any:
        out = right(*args, **params)
        if rule == "transpose":
            return [negated(ct) for ct in out]
        return (out[0], negated(out[1])) if rule == "jvp" else (negated(out[0]), out[1])

    monkeypatch.setattr(prim, rule, wrong)
    olympus.clear_caches()
    names = {"reduce_scatter": "psum_scatter"}
    cases = [c for c in CASES if c.name.startswith(names.get(prim.name, prim.name))]
    with pytest.raises(AssertionError):
        for case in cases:
            CHECKS[rule](case, FORMS[0])
    monkeypatch.undo()
    olympus.clear_caches()


# Ragged exchange ----------------------------------------------------------------------------------

@pytest.mark.parametrize(("groups", "count"), [
    (None, 1), ([[0, 3], [2, 1]], 1), (None, 2), ([[0, 3], [2, 1]], 3)])
def test_ragged_all_to_all(groups: Any, count: int) -> None:
    with olympus.enable_x64(True):
        plan = ragged_plan(groups, count=count)
        wanted = ragged_oracle(*plan, groups)
        fun = lambda *xs: lax.ragged_all_to_all(
            *xs, axis_name="i", axis_index_groups=groups)
        whole = vmap(fun, axis_name="i")
        same(whole(*plan), wanted)
        if groups:
            square = [x.reshape(2, 2, *x.shape[1:]) for x in plan]
            nested = lambda *xs: lax.ragged_all_to_all(
                *xs, axis_name=("i", "j"), axis_index_groups=groups)
            out = jit(Form((2, 2)).mapped(nested))(*square)
            same(np.asarray(out).reshape(wanted.shape), wanted)
        ts = (reals(*plan[0].shape, seed=3), reals(*plan[1].shape, seed=4))
        linear = lambda x, y: whole(x, y, *plan[2:])
        forward = jvp(linear, plan[:2], ts)[1]
        same(forward, ragged_oracle(*ts, *plan[2:], groups))
        same(vmap(lambda t, u, *xs: jvp(lambda x, y: fun(x, y, *xs[2:]), xs[:2], (t, u))[1],
                  axis_name="i")(*ts, *plan), forward)
        cts = reals(*wanted.shape, seed=5)
        inner = vmap(lambda c, *xs: vjp(lambda x, y: fun(x, y, *xs[2:]), *xs[:2])[1](c),
                     axis_name="i")(cts, *plan)
        same(inner, vjp(linear, *plan[:2])[1](cts))
        same(sum((c * t).sum() for c, t in zip(inner, ts, strict=True)), (cts * forward).sum())


def test_ragged_all_to_all_of_another_mapped_axis() -> None:
    with olympus.enable_x64(True):
        one, other = ragged_plan(), ragged_plan(seed=1)
        both = [np.stack(pair, 1) for pair in zip(one, other, strict=True)]
        wanted = np.stack([ragged_oracle(*one), ragged_oracle(*other)], 1)
        fun = lambda *xs: lax.ragged_all_to_all(*xs, axis_name="i")
        same(vmap(vmap(fun), axis_name="i")(*both), wanted)
        same(vmap(vmap(fun, axis_name="i"), in_axes=1, out_axes=1)(*both), wanted)
        shared = [both[0], one[1], *one[2:]]
        wanted = np.stack([ragged_oracle(shared[0][:, k], *one[1:]) for k in (0, 1)], 1)
        same(vmap(vmap(fun, in_axes=(0, *[None] * 5)), axis_name="i")(*shared), wanted)


# What is refused, and details ---------------------------------------------------------------------

def over(fun: Callable[..., Any], xs: Any = None, name: str = "i") -> Any:
    return vmap(fun, axis_name=name)(np.arange(4.0) if xs is None else xs)


def test_details() -> None:
    assert over(lambda x: lax.psum(x > 1, "i")).tolist() == [2] * 4
    assert over(lambda x: lax.psum(x > 1, "i")).dtype == np.int32
    assert over(lambda x: x + lax.psum(1, "i", axis_index_groups=GROUPS)).tolist() == [2, 3, 4, 5]
    assert over(lambda x: lax.psum(1, "i", axis_index_groups=UNEQUAL) + 0 * x).tolist() == [
        3, 1, 3, 3]
    assert over(lambda x: lax.pmean(x.astype(int), "i")).tolist() == [1.5] * 4
    assert over(lambda x: lax.all_gather(x, ())).tolist() == [0, 1, 2, 3]
    assert over(lambda x: lax.ppermute(x, (), []) + lax.psum(x, ())).tolist() == [0, 2, 4, 6]
    for to in ("reduced", "invarying"):
        assert over(lambda x, to=to: lax.all_gather(x, "i", to=to)).shape == (4, 4)
    assert lax.axis_index(()) == 0
    assert lax.axis_size(()) == 1


def test_dtypes() -> None:
    for dtype in ("bool", "int8", "uint4", "bfloat16", "float8_e5m2", "complex64"):
        x = onp.asarray([[1, 0], [1, 1]], dtype)
        for fun in (lambda x: lax.all_gather(x, "i"), lambda x: lax.all_to_all(x, "i", 0, 0),
                    lambda x: lax.ppermute(x, "i", [(0, 1)]), lambda x: lax.pbroadcast(x, "i", 1)):
            assert over(fun, x).dtype == dtype


BAD = [
    (lambda x: lax.all_gather(x, "j"), NameError, "all_gather: Found an unbound axis name: j. "
     "To fix this, please call all_gather under `olympus.shard_map`"),
    (lambda x: lax.psum(x, ("i", "i")), ValueError, "different names are required"),
    (lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1], [2]]), ValueError,
     "each of 0 … 3 once"),
    (lambda x: lax.psum(1, "i", axis_index_groups=[[0, 1], [2, 2]]), ValueError,
     "each of 0 … 3 once"),
    (lambda x: lax.all_gather(x, "i", axis_index_groups=UNEQUAL), ValueError,
     "groups of one size"),
    (lambda x: lax.all_gather(x, "i", to="there"), ValueError, "to='there' given"),
    (lambda x: lax.all_gather(x, "i", axis=1), ValueError, "axis 1 is out of bounds"),
    (lambda x: lax.psum_scatter(x[None], "i"), ValueError, "4 elements on it"),
    (lambda x: lax.psum_scatter(x[None], "i", tiled=True), ValueError, "a multiple of 4"),
    (lambda x: lax.all_to_all(x[None], "i", 0, 0), ValueError, "4 elements on it"),
    (lambda x: lax.all_to_all(x[None], ("i",), 0, 0, axis_index_groups=GROUPS), ValueError,
     "2 elements on it"),
    (lambda x: lax.ppermute(x, "i", [(0, 1), (0, 2)]), ValueError, "different sources"),
    (lambda x: lax.ppermute(x, "i", [(0, 1), (2, 1)]), ValueError, "different destinations"),
    (lambda x: lax.ppermute(x, "i", [(0, 4)]), ValueError, r"destinations in \[0, 4\)"),
    (lambda x: lax.pshuffle(x, "i", [0, 1, 2, 2]), ValueError, "each position"),
    (lambda x: lax.pbroadcast(x, "i", 4), ValueError, r"a position in \[0, 4\)"),
    (lambda x: lax.pcast(x, "i", to="unreduced"), ValueError, "sum with psum"),
    (lambda x: lax.pcast(x, "i", to="other"), ValueError, "to='other' given"),
    (lambda x: lax.ragged_all_to_all(x, x, *[np.zeros(4, int)] * 4, axis_name="i"), TypeError,
     "differ in their first axis only"),
    (lambda x: lax.ragged_all_to_all(x[None], x[None], *[np.zeros(3, int)] * 4, axis_name="i"),
     TypeError, "input_offsets is int32.* one for each of 4"),
    (lambda x: lax.ragged_all_to_all(x[None], x[None], *[np.zeros(4, "f4")] * 4, axis_name="i"),
     TypeError, "integers, one for each of 4"),
    (lambda x: lax.ragged_all_to_all(x[None], x[None], np.zeros(8, int), *[np.zeros(4, int)] * 3,
                                     axis_name="i"), TypeError, "make them as long"),
    (lambda x: lax.ragged_all_to_all(x[None], x[None], *[np.zeros(0, int)] * 4, axis_name="i"),
     TypeError, "or as many for each"),
]


@pytest.mark.parametrize(("fun", "error", "text"), BAD)
def test_messages(fun: Callable[..., Any], error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        over(fun)


@pytest.mark.parametrize("fun", [
    lambda x: lax.psum(x, "i"), lambda x: lax.all_gather(x, "i"), lambda x: lax.axis_index("i"),
    lambda x: lax.ppermute(x, "i", []), lambda x: lax.pcast(x, "i", to="varying")])
def test_unbound_name(fun: Callable[..., Any]) -> None:
    with pytest.raises(NameError, match="unbound axis name: i.*bound axis names are: none"):
        jit(fun)(1.0)
