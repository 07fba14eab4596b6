"""Collectives over named axes: each against NumPy, in groups, over several names, differentiated.

A case is a function of one element and what it does to the stack of all; the properties run over
all cases, and notice if a rule is replaced by a wrong one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from ops import reals

import olympus
from olympus import jit, jvp, lax, tree, vjp, vmap
from olympus import numpy as onp
from olympus._src.core.primitive import Zero
from olympus._src.lax.collectives.moves import reduce_scatter_p
from olympus._src.lax.collectives.reductions import pbroadcast_p

GROUPS = [[2, 0], [1, 3]]
UNEQUAL = [[1], [3, 0, 2]]


class Case(NamedTuple):
    """`fun(x, names, **options)` of one element; `oracle(xs, **)` of the rows of a group."""

    name: str
    fun: Callable[..., Any]
    oracle: Callable[..., Any]
    shape: Callable[[int], tuple[int, ...]]     # of an element, for groups of n
    grouped: bool = True


def repeated(f):
    return lambda xs: np.stack([f(xs)] * len(xs))


def gathered(axis, tiled=False):
    return repeated(lambda xs: np.concatenate(xs, axis) if tiled else np.stack(xs, axis))


def exchanged(split, concat, tiled=False):
    def oracle(xs):
        n = len(xs)
        if tiled:
            return np.stack([np.concatenate([np.split(x, n, split)[j] for x in xs], concat)
                             for j in range(n)])
        return np.stack([np.stack([x.take(j, split) for x in xs], concat) for j in range(n)])
    return oracle


def scattered(at, tiled=False):
    def oracle(xs):
        total = xs.sum(0)
        return np.stack(np.split(total, len(xs), at) if tiled else
                        [total.take(j, at) for j in range(len(xs))])
    return oracle


def permuted(perm):
    def oracle(xs):
        out = np.zeros_like(xs)
        for src, dst in perm:
            out[dst] = xs[src]
        return out
    return oracle


RIGHT = [(0, 1), (3, 2), (1, 3)]
CASES = (
    Case("psum", lambda x, i, **o: lax.psum(x * x, i, **o), repeated(lambda xs: (xs * xs).sum(0)),
         lambda n: (2, 3)),
    Case("pmean", lax.pmean, repeated(lambda xs: xs.mean(0)), lambda n: (3,)),
    Case("pmax", lax.pmax, repeated(lambda xs: xs.max(0)), lambda n: (3,)),
    Case("pmin", lax.pmin, repeated(lambda xs: xs.min(0)), lambda n: ()),
    Case("all_gather", lax.all_gather, gathered(0), lambda n: (3,)),
    Case("all_gather-last", lambda x, i, **o: lax.all_gather(x, i, axis=-1, **o), gathered(2),
         lambda n: (2, 3)),
    Case("all_gather-scalar", lax.all_gather, gathered(0), lambda n: ()),
    Case("all_gather-tiled", lambda x, i, **o: lax.all_gather(x, i, axis=1, tiled=True, **o),
         gathered(1, True), lambda n: (2, 3)),
    Case("psum_scatter", lax.psum_scatter, scattered(0), lambda n: (n, 3)),
    Case("psum_scatter-last", lambda x, i, **o: lax.psum_scatter(x, i, scatter_dimension=-1, **o),
         scattered(1), lambda n: (3, n)),
    Case("psum_scatter-tiled", lambda x, i, **o: lax.psum_scatter(
        x, i, scatter_dimension=1, tiled=True, **o), scattered(1, True), lambda n: (2, 3 * n)),
    *(Case(f"all_to_all-{s}{c}", lambda x, i, s=s, c=c, **o: lax.all_to_all(x, i, s, c, **o),
           exchanged(s, c), lambda n, s=s: tuple(n if d == s else 2 + d for d in range(3)))
      for s, c in ((0, 0), (0, 2), (2, 0), (1, 2))),
    *(Case(f"all_to_all-tiled-{s}{c}", lambda x, i, s=s, c=c, **o: lax.all_to_all(
        x, i, s, c, tiled=True, **o), exchanged(s, c, True),
        lambda n, s=s: tuple(2 * n if d == s else 2 + d for d in range(3)))
      for s, c in ((0, 0), (0, 2), (2, 0), (1, 2))),
    Case("pswapaxes", lambda x, i, **o: lax.pswapaxes(x, i, -1, **o), exchanged(1, 1),
         lambda n: (2, n)),
    Case("ppermute", lambda x, i: lax.ppermute(x, i, RIGHT), permuted(RIGHT), lambda n: (2, 3),
         False),
    Case("pshuffle", lambda x, i: lax.pshuffle(x, i, [3, 1, 0, 2]), lambda xs: xs[[3, 1, 0, 2]],
         lambda n: (2,), False),
    Case("pbroadcast", lambda x, i: lax.pbroadcast(x, i, 2), repeated(lambda xs: xs[2]),
         lambda n: (2, 3), False),
    Case("pcast", lambda x, i: lax.pcast(x, i, to="varying"), lambda xs: xs, lambda n: (2,), False),
    Case("axis_index", lambda x, i: x * lax.axis_index(i), lambda xs: xs * np.arange(4.0)[:, None],
         lambda n: (2,), False),
)


class Form(NamedTuple):
    """How the four elements are laid out: sizes of the named axes, and groups."""

    sizes: tuple[int, ...]
    groups: Any = None

    @property
    def names(self) -> Any:
        return ("i", "j")[:len(self.sizes)] if len(self.sizes) > 1 else "i"

    def mapped(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        """`fun` over arrays whose leading axes are the named ones."""
        for name in reversed(("i", "j")[:len(self.sizes)]):
            fun = vmap(fun, axis_name=name)
        return fun


FORMS = (Form((4,)), Form((4,), GROUPS), Form((2, 2)), Form((2, 2), GROUPS))
RUNS = [pytest.param(case, form, id=f"{case.name}-{form.sizes}{form.groups or ''}")
        for case in CASES for form in FORMS if case.grouped or not form.groups]


def setup(case: Case, form: Form) -> tuple[Callable[..., Any], np.ndarray]:
    """The function of one element, and four of them."""
    shape = case.shape(2 if form.groups else 4)
    options = {"axis_index_groups": form.groups} if form.groups else {}
    return (lambda x: case.fun(x, form.names, **options)), reals(*form.sizes, *shape)


def expected(case: Case, form: Form, xs: np.ndarray) -> np.ndarray:
    rows = xs.reshape(4, *xs.shape[len(form.sizes):])
    if not form.groups:
        out = case.oracle(rows)
    else:
        parts = {i: y for g in form.groups for i, y in zip(g, case.oracle(rows[g]), strict=True)}
        out = np.stack([parts[i] for i in range(4)])
    return out.reshape(*form.sizes, *out.shape[1:])


def same(actual: Any, wanted: Any) -> None:
    for a, w in zip(tree.leaves(actual), tree.leaves(wanted), strict=True):
        assert np.shape(a) == np.shape(w)
        np.testing.assert_allclose(a, w, 1e-9, 1e-9)


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


# A wrong rule is noticed --------------------------------------------------------------------------

CHECKS = {"jvp": check_derivatives, "transpose": check_derivatives, "vmap": check_batches,
          "vmap_named": check_values}
RULES = [(prim, rule) for prim in (
    lax.psum_p, lax.pmax_p, lax.pmin_p, lax.all_gather_p, reduce_scatter_p, lax.all_to_all_p,
    lax.ppermute_p, pbroadcast_p) for rule in CHECKS
    if (rule, prim) not in (("transpose", lax.pmax_p), ("transpose", lax.pmin_p))]


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

N, ROWS, LENGTH = 3, 7, 9


def ragged_plan(groups: Any = None, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Random sizes with slices that do not overlap: (operand, output, offsets and sizes)."""
    rng = np.random.default_rng(seed)
    groups = groups or [range(N)]
    n, k = sum(map(len, groups)), len(groups[0])
    inputs, sends, outputs, receives = np.zeros((4, n, k), np.int32)
    for group in groups:
        for s in group:
            sends[s] = rng.integers(0, ROWS // k + 1, k)
            inputs[s] = np.cumsum([0, *sends[s][:-1]]) + ROWS - sends[s].sum()
        for p, r in enumerate(group):
            receives[r] = [sends[s][p] for s in group]
            starts = np.cumsum([0, *receives[r][:-1]]) + 1
            for q, s in enumerate(group):
                outputs[s][p] = starts[q]
    return (reals(n, ROWS, 2), reals(n, LENGTH, 2, seed=1), inputs, sends, outputs, receives)


def ragged_oracle(operand, output, inputs, sends, outputs, receives, groups=None):
    out = output.copy()
    for group in groups or [range(N)]:
        for s in group:
            for p, r in enumerate(group):
                size = sends[s][p]
                out[r][outputs[s][p]:outputs[s][p] + size] = \
                    operand[s][inputs[s][p]:inputs[s][p] + size]
    return out


@pytest.mark.parametrize("groups", [None, [[0, 3], [2, 1]]])
def test_ragged_all_to_all(groups: Any) -> None:
    with olympus.enable_x64(True):
        plan = ragged_plan(groups)
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
    (lambda x: lax.all_gather(x, "j"), NameError, "all_gather: axis name 'j' given; bound axis "
     "names are: 'i'"),
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
]


@pytest.mark.parametrize(("fun", "error", "text"), BAD)
def test_messages(fun: Callable[..., Any], error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        over(fun)


@pytest.mark.parametrize("fun", [
    lambda x: lax.psum(x, "i"), lambda x: lax.all_gather(x, "i"), lambda x: lax.axis_index("i"),
    lambda x: lax.ppermute(x, "i", []), lambda x: lax.pcast(x, "i", to="varying")])
def test_unbound_name(fun: Callable[..., Any]) -> None:
    with pytest.raises(NameError, match="axis name 'i' given; bound axis names are: none"):
        jit(fun)(1.0)
