"""What holds for every operation: short properties of the rows of the tables in `tests/ops`.

A module of `tests/rows` names its table and imports the properties; `conftest.py` gives each
property the rows of that table that it is about. `tools/mutate_rules.py` makes every derivative,
transposition and batching rule wrong in turn and asks whether a property notices.
"""

from __future__ import annotations

import contextlib
import io
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from ops import KINDS, Effect, Op, Refusal

import olympus
from olympus import jit, jvp, make_olympuspr, tree, vjp, vmap
from olympus._src.core.evaluate import eval_closed
from olympus._src.interpreters.dce import dce_closed

NARROW = {"float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64"}
ROUGH = {"h": 4e-3, "e": 3e-2}
EXACT = 2.0 ** -29      # a double's unit in the last place over a float's


def rows(keep: Callable[[Op], Any] = lambda op: True, of: type = Op) -> Any:
    """Decorator: a property of the rows that `keep` picks, as its argument `op`."""
    def mark(test: Callable[..., None]) -> Callable[..., None]:
        test.names, test.cases = ("op",), lambda table: [     # type: ignore[attr-defined]
            (op,) for op in table if isinstance(op, of) and keep(op)]
        return test
    return mark


def cases(kinds: Callable[[Op], Sequence[str]]) -> Any:
    """Decorator: a property of rows in each of their dtypes, as its arguments `op` and `kind`."""
    def mark(test: Callable[..., None]) -> Callable[..., None]:
        test.names, test.cases = ("op", "kind"), lambda table: [     # type: ignore[attr-defined]
            (op, kind) for op in table if isinstance(op, Op) for kind in kinds(op)]
        return test
    return mark


def cast(op: Op, kind: str) -> list[Any]:
    """The row's arguments in the dtype that the letter `kind` stands for."""
    return [of_kind(a, kind, i) if getattr(a, "dtype", None) == np.float64 else a
            for i, a in enumerate(op.args)]


def of_kind(a: np.ndarray, kind: str, place: int) -> np.ndarray:
    if kind in "cz":
        a = a + (0.7 - 0.3 * place) * 1j * np.flip(a)
    return (np.abs(a) if kind == "u" else a).astype(KINDS[kind])


def same(actual: Any, expected: Any, tol: float, atol: float | None = None) -> None:
    """Equal structure, shapes and values; comparing in double precision."""
    actual, expected = tree.leaves(actual), tree.leaves(expected)
    assert len(actual) == len(expected)
    for a, e in zip(map(np.asarray, actual), map(np.asarray, expected), strict=True):
        assert a.shape == e.shape
        wide = "c16" if a.dtype.kind == "c" else "f8"
        np.testing.assert_allclose(a.astype(wide), e.astype(wide), rtol=tol,
                                   atol=tol if atol is None else atol)


def types(value: Any) -> list[tuple[Any, ...]]:
    return [(x.shape, x.dtype, x.weak_type) for x in map(olympus.typeof, tree.leaves(value))]


@cases(lambda op: op.dtypes)
def test_values_and_dtype_are_the_oracles(op: Op, kind: str) -> None:
    with olympus.enable_x64(kind in "dz"):
        args = cast(op, kind)
        wide = [a.astype("f4") if kind in ROUGH and a.dtype == KINDS[kind] else a for a in args]
        with np.errstate(all="ignore"):
            expected = op.oracle(*wide)
        out = op.fun(*args)
        tol = ROUGH.get(kind, op.tol)
        same(out, expected, tol, tol / 100 if op.each and kind not in ROUGH else tol)
        for a, e in zip(tree.leaves(out), tree.leaves(expected), strict=True):
            dtype = np.asarray(e).dtype
            rough = kind in ROUGH and dtype.kind == "f" and "convert" not in op.name
            here = dtype if kind in "dz" else NARROW.get(dtype.name, dtype)
            assert a.dtype == (KINDS[kind] if rough else here)


@rows()
def test_jit_is_eager(op: Op) -> None:
    args = cast(op, op.dtypes[0])
    out, jitted = op.fun(*args), jit(op.fun)(*args)
    assert types(out) == types(jitted)
    same(jitted, out, 1e-5)


def subsets(places: Sequence[int]) -> list[tuple[int, ...]]:
    """All that are not empty, or of more than three places each one alone and all together."""
    sizes = range(1, len(places) + 1) if len(places) < 4 else (1, len(places))
    return [s for n in sizes for s in itertools.combinations(places, n)]


def other(a: Any) -> Any:
    """An argument like `a`, of the same values if it is an array."""
    if np.ndim(a):
        return np.flip(a)
    if a.dtype.kind == "b":
        return ~a
    return (a * 1.5 if a.dtype.kind in "fcV" else a - 1 if a > 0 else a + 1).astype(a.dtype)


@rows(lambda op: any(hasattr(a, "dtype") for a in op.args))
def test_vmap_is_a_loop(op: Op) -> None:
    """Every combination of mapped arguments, mapped at the front or at the back."""
    args = cast(op, op.dtypes[0])
    pairs = {i: (a, other(a)) for i, a in enumerate(args) if hasattr(a, "dtype")}
    mapped = [{i: -(i + n) % 2 - 1 if np.ndim(args[i]) else 0 for i in s}
              for n, s in enumerate(subsets([*pairs]))]
    stacks = [[np.stack(pairs[i], axes[i]) if i in axes else args[i] for i in pairs]
              for axes in mapped]

    def call(values: Sequence[Any]) -> Any:
        given = dict(zip(pairs, values, strict=True))
        return op.fun(*[given.get(i, a) for i, a in enumerate(args)])

    def batched(stacks: Any) -> list[Any]:
        return [vmap(call, in_axes=([axes.get(i) for i in pairs],))(values)
                for values, axes in zip(stacks, mapped, strict=True)]

    compiled = jit(call)
    looped = {picks: compiled([pairs[i][k] for i, k in zip(pairs, picks, strict=True)]) for picks in
              {tuple(k * (i in axes) for i in pairs) for axes in mapped for k in (0, 1)}}
    for axes, out in zip(mapped, jit(batched)(stacks), strict=True):
        each = [looped[tuple(k * (i in axes) for i in pairs)] for k in (0, 1)]
        same(out, tree.map(lambda *leaves: np.stack(leaves), *each), 2e-5)


def smooth(op: Op, kind: str) -> tuple[Callable[..., Any], list[Any], list[Any], list[int]]:
    """The operation as a function of what is differentiated, there, with directions, and which of
    its results have a derivative.
    """
    rng = np.random.default_rng(len(op.name))
    given = cast(op, kind)
    free = [i for i, a in enumerate(op.args) if getattr(a, "dtype", None) == np.float64]

    def call(*xs: Any) -> list[Any]:
        args = list(given)
        for i, x in zip(free, xs, strict=True):
            args[i] = x
        return tree.leaves(op.fun(*args))

    xs = [given[i] for i in free]
    kept = [i for i, y in enumerate(olympus.eval_shape(call, *xs)) if y.dtype in ("f8", "c16")]
    return (lambda *xs: [call(*xs)[i] for i in kept]), xs, [normal(rng, x) for x in xs], kept


def normal(rng: np.random.Generator, x: Any) -> np.ndarray:
    t = rng.normal(size=np.shape(x))
    return t + 1j * rng.normal(size=np.shape(x)) if np.iscomplexobj(x) else np.asarray(t)


def moved(xs: Sequence[Any], ts: Sequence[Any], h: float) -> list[Any]:
    return [x + h * t for x, t in zip(xs, ts, strict=True)]


def slopes(fun: Callable[..., Any], xs: Sequence[Any], ts: Sequence[Any], h: float) -> list[Any]:
    return [(np.asarray(a) - np.asarray(b)) / (2 * h)
            for a, b in zip(fun(*moved(xs, ts, h)), fun(*moved(xs, ts, -h)), strict=True)]


def doubles(op: Op) -> str:
    return ("d" if set("fd") & set(op.dtypes) else "") + "z" * ("c" in op.dtypes) if op.grad else ""


@cases(doubles)
def test_jvp_is_the_central_difference(op: Op, kind: str) -> None:
    """In double precision, where the values are the oracle's; and it is linear, so that it may be
    taken in each argument alone.
    """
    with olympus.enable_x64(True):
        fun, xs, ts, kept = smooth(op, kind)
        places = subsets(range(len(xs)))

        def tangents(xs: Any, ts: Any) -> list[Any]:
            def along(active: tuple[int, ...]) -> Any:
                def part(*moving: Any) -> Any:
                    given = dict(zip(active, moving, strict=True))
                    return fun(*[given.get(i, x) for i, x in enumerate(xs)])
                return jvp(part, [xs[i] for i in active], [ts[i] for i in active])[1]
            return [along(active) for active in places]

        compiled = jit(fun)
        with np.errstate(all="ignore"):
            expected = tree.leaves(op.oracle(*cast(op, kind)))
        single = any(getattr(a, "dtype", None) == np.float32 for a in op.args)
        tol = op.tol * EXACT if op.each else op.tol if single else max(op.tol * EXACT, 1e-12)
        same(compiled(*xs), [expected[i] for i in kept], tol, 1e-15 if op.each else tol)
        found = dict(zip(places, jit(tangents)(xs, ts), strict=True))
        same(found[places[-1]], slopes(compiled, xs, ts, 1e-6), 2e-6)
        for active, tangent in found.items():
            same(tangent, [sum(map(np.asarray, column)) for column in
                           zip(*(found[i,] for i in active), strict=True)], 1e-11)


@cases(doubles)
def test_vjp_is_the_transpose_of_jvp(op: Op, kind: str) -> None:
    with olympus.enable_x64(True):
        fun, xs, ts, _ = smooth(op, kind)

        def product(cts: Any, ts: Any) -> Any:
            return sum((c * t).sum().real for c, t in zip(cts, ts, strict=True))

        def products(xs: Any, ts: Any) -> Any:
            out, tangents = jvp(fun, xs, ts)
            cts = [y * 0.3 + 1.1 for y in out]
            again, pull = vjp(fun, *xs)
            return (product(cts, tangents), out), (product(pull(cts), ts), again)

        forward, backward = jit(products)(tuple(xs), tuple(ts))
        same(backward, forward, 1e-9)


@cases(lambda op: doubles(op) if op.name.startswith("lax.") and op.twice else "")
def test_second_derivative_is_the_central_difference_of_the_first(op: Op, kind: str) -> None:
    with olympus.enable_x64(True):
        fun, xs, ts, _ = smooth(op, kind)
        ss = [t[::-1] if t.ndim else 0.7 * t for t in ts]

        def first(*xs: Any) -> list[Any]:
            return jvp(fun, xs, tuple(ts))[1]

        tangent, second = jit(lambda xs, ss: jvp(first, xs, ss))(tuple(xs), tuple(ss))
        compiled = jit(first)
        same(compiled(*xs), tangent, 1e-11)
        same(second, slopes(compiled, xs, ss, 1e-5), 2e-5)


@rows(lambda op: op.each)
def test_no_elements_and_no_dimensions(op: Op) -> None:
    args = cast(op, op.dtypes[0])
    usual = types(op.fun(*args))
    for cut in (lambda a: np.zeros((2, 0), a.dtype), lambda a: a.reshape(-1)[0]):
        few = [cut(a) for a in args]
        shape = np.shape(few[0])
        assert [(s, d) for s, d, _ in types(op.fun(*few))] == [(shape, d) for _, d, _ in usual]


@rows(lambda op: op.each and len(op.args) == 2 and "f" in op.dtypes
      and hasattr(olympus.numpy, op.name))
def test_python_numbers_take_the_arrays_dtype(op: Op) -> None:
    x = np.abs(cast(op, "f")[0])
    for args in ((x, 2), (x, 2.0), (2, x), (2.5, x)):
        expected = tree.leaves(op.oracle(*args))
        for a, e in zip(tree.leaves(op.fun(*args)), expected, strict=True):
            assert (a.dtype, a.shape) == (NARROW.get(e.dtype.name, e.dtype), e.shape)
            assert not a.weak_type


def count(program: Any) -> int:
    """The number of equations in a program and in the programs inside it."""
    inner = (getattr(p, "olympuspr", p) for eqn in program.eqns for value in eqn.params.values()
             for p in (value if isinstance(value, (list, tuple)) else (value,)))
    return len(program.eqns) + sum(count(p) for p in inner if hasattr(p, "eqns"))


@rows(lambda op: op.name.endswith(("-part", "-whole")))
def test_a_result_can_be_had_alone(op: Op) -> None:
    """Dead-code elimination drops equations of the others, if they have any ("-part"), and changes
    nothing else.
    """
    args = cast(op, op.dtypes[0])
    whole = make_olympuspr(op.fun)(*args)
    expected = eval_closed(whole, *args)
    for i, value in enumerate(expected):
        alone, _ = dce_closed(whole, [k == i for k in range(len(expected))])
        fewer = count(alone.olympuspr) < count(whole.olympuspr)
        assert fewer == op.name.endswith("-part")
        same(eval_closed(alone, *args), [value], 1e-6)


@rows(of=Effect)
def test_effects_happen_once_for_each_element(op: Effect) -> None:
    fun, *args = op.args
    words: list[str] = []
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        jit(lambda *xs: op.run(lambda x: words.append(str(x)), fun, *xs))(*args)
        olympus.effects_barrier()
    assert sorted(words + printed.getvalue().split()) == op.words


@rows(of=Refusal)
def test_refusals_say_what_is_wrong(op: Refusal) -> None:
    with olympus.enable_x64(op.x64), pytest.raises(op.error, match=op.match):
        op.call(*op.args)
