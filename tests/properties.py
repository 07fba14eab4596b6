"""What holds for every operation: short properties of the rows of the tables in `tests/ops`.

A module of `tests/rows` names its table and imports the properties; `conftest.py` gives each
property the rows of that table that it is about. `tools/mutate_rules.py` makes every derivative,
transposition and batching rule wrong in turn and asks whether a property notices.

Nearly all the time of these tests is XLA's, much of it per program. So the results that the
properties of a row compare in one dtype are parts of one program; each property reads its own.
"""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from ops import KINDS, Effect, Op, Refusal

import olympus
from olympus import jit, jvp, linear_transpose, make_olympuspr, tree, vjp, vmap
from olympus._src.core.evaluate import eval_closed
from olympus._src.interpreters.dce import dce_closed

NARROW = {"float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64"}
ROUGH = {"h": 4e-3, "e": 3e-2}
EXACT = 2.0 ** -29      # a double's unit in the last place over a float's


@functools.cache
def unoptimised() -> dict[str, Any]:
    """The compiler options of `compiled`, of those that this jaxlib has."""
    found = {}
    for name, value in (("xla_backend_optimization_level", 0),
                        ("xla_cpu_use_fusion_emitters", False)):    # not in jaxlib 0.11
        with contextlib.suppress(ValueError):
            olympus.jit(lambda: 0, compiler_options={name: value})()
            found[name] = value
    return found


def compiled(fun: Callable[..., Any]) -> Callable[..., Any]:
    """`fun` compiled without optimisations, in a quarter of the time: to compare results of rules.

    What users run is compiled as they compile it: eager calls, `test_jit_is_eager`.
    """
    return jit(fun, compiler_options=unoptimised())


# The properties that the tests of a session read of the program of each row, by the row's id and
# the dtype, and the programs. `conftest.py` fills the former; for a row without an entry each call
# makes and compiles anew.
WANTED: dict[tuple[int, str], set[str]] = {}
MADE: dict[tuple[int, str], Any] = {}


def rows(keep: Callable[[Op], Any] = lambda op: True, of: type = Op,
         parts: Sequence[str] = ()) -> Any:
    """Decorator: a property of the rows that `keep` picks, as its argument `op`; it reads `parts`
    of their programs.
    """
    return marked(("op",), parts, lambda table: [
        (op,) for op in table if isinstance(op, of) and keep(op)])


def cases(kinds: Callable[[Op], Sequence[str]], parts: Sequence[str] = ()) -> Any:
    """Decorator: a property of rows in each of their dtypes, as its arguments `op` and `kind`."""
    return marked(("op", "kind"), parts, lambda table: [
        (op, kind) for op in table if isinstance(op, Op) for kind in kinds(op)])


def marked(names: tuple[str, ...], parts: Sequence[str], cases: Callable[..., Any]) -> Any:
    def mark(test: Callable[..., None]) -> Callable[..., None]:
        test.names, test.cases = names, cases       # type: ignore[attr-defined]
        test.announce = lambda op, kind="": (       # type: ignore[attr-defined]
            WANTED.setdefault((id(op), kind), set()).update(parts))
        return test
    return mark


class Program:
    """Functions of the same arguments, the parts: those that tests of this session read, `wanted`,
    compiled together; without such tests, those that are asked for.
    """

    def __init__(self, parts: dict[str, Callable[..., Any]], wanted: set[str]) -> None:
        self.parts, self.wanted = parts, wanted
        self.compiled: dict[tuple[str, ...], Callable[..., dict[str, Any]]] = {}

    def __call__(self, names: Sequence[str], *args: Any) -> list[Any]:
        """The parts `names` at `args`. One whose trace raises does so in the test that reads it."""
        found = {}
        if self.wanted >= {*names}:
            found = self.together(tuple(sorted(self.wanted)), Exception)(*args)
        if not found.keys() >= {*names}:
            found = self.together(tuple(names))(*args)
        return [found[name] for name in names]

    def together(self, names: tuple[str, ...], *left: type[Exception]) -> Any:
        def run(*args: Any) -> dict[str, Any]:
            found = {}
            for name in names:
                with contextlib.suppress(*left):
                    found[name] = self.parts[name](*args)
            return found
        return self.compiled.setdefault(names, compiled(run))


def shared(make: Callable[[Op, str, set[str]], Any]) -> Callable[[Op, str], Any]:
    """Decorator: what makes a row's program, with its arguments, makes one for all tests."""
    def made(op: Op, kind: str) -> Any:
        key = id(op), kind
        if key not in WANTED:
            return make(op, kind, set())
        if key not in MADE:
            MADE[key] = make(op, kind, WANTED[key])
        return MADE[key]
    return made


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
    """Compiled as a user's, which the programs of other properties are not."""
    args = cast(op, op.dtypes[0])
    out, jitted = op.fun(*args), jit(lambda *args: op.fun(*args))(*args)
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


@shared
def plain(op: Op, _: str, wanted: set[str]) -> tuple[Any, ...]:
    """The program of the operation and of its vmaps, its arguments, which of those are mapped along
    which axes, and two arguments for each, alone and stacked.
    """
    args = cast(op, op.dtypes[0])
    pairs = {i: (a, other(a)) for i, a in enumerate(args) if hasattr(a, "dtype")}
    mapped = [{i: -(i + n) % 2 - 1 if np.ndim(args[i]) else 0 for i in s}
              for n, s in enumerate(subsets([*pairs]))]
    stacks = [[np.stack(pairs[i], axes[i]) if i in axes else args[i] for i in pairs]
              for axes in mapped]

    def call(values: Sequence[Any]) -> Any:
        given = dict(zip(pairs, values, strict=True))
        return op.fun(*[given.get(i, a) for i, a in enumerate(args)])

    def batched(_: Any, stacks: Any) -> list[Any]:
        return [vmap(call, in_axes=([axes.get(i) for i in pairs],))(values)
                for values, axes in zip(stacks, mapped, strict=True)]

    parts = {"value": lambda args, *_: op.fun(*args), "batched": batched}
    return Program(parts, wanted), args, stacks, mapped, pairs


@rows(lambda op: any(hasattr(a, "dtype") for a in op.args), parts=("value", "batched"))
def test_vmap_is_a_loop(op: Op) -> None:
    """Every combination of mapped arguments, mapped at the front or at the back."""
    program, args, stacks, mapped, pairs = plain(op, "")

    def picked(places: tuple[int, ...]) -> list[Any]:
        given = {i: pairs[i][k] for i, k in zip(pairs, places, strict=True)}
        return program(["value", "batched"], [given.get(i, a) for i, a in enumerate(args)], stacks)

    found = {places: picked(places) for places in
             {tuple(k * (i in axes) for i in pairs) for axes in mapped for k in (0, 1)}}
    _, batched = found[(0,) * len(pairs)]
    for axes, out in zip(mapped, batched, strict=True):
        each = [found[tuple(k * (i in axes) for i in pairs)][0] for k in (0, 1)]
        same(out, tree.map(lambda *leaves: np.stack(leaves), *each), 2e-5)


@rows(lambda op: any(hasattr(a, "dtype") for a in op.args))
def test_vmap_of_no_elements_has_their_types(op: Op) -> None:
    """Rules divide by no number of elements, and look at none of them. Nothing is compiled."""
    program, args, stacks, mapped, pairs = plain(op, "")
    none = [[np.take(x, [], axes[i]) if i in axes else x for i, x in zip(pairs, xs, strict=True)]
            for axes, xs in zip(mapped, stacks, strict=True)]
    value, batched = program.parts["value"], program.parts["batched"]
    element = types(olympus.eval_shape(lambda: value(args)))
    for out in olympus.eval_shape(lambda: batched(args, none)):
        assert types(out) == [((0, *shape), dtype, weak) for shape, dtype, weak in element]


@shared
def smooth(op: Op, kind: str, wanted: set[str]) -> tuple[Any, ...]:
    """The program of the operation's derivatives, as a function of what is differentiated, there,
    with directions, which of its results have a derivative, and combinations of arguments.
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
    ts = [normal(rng, x) for x in xs]
    ss = [t[::-1] if t.ndim else 0.7 * t for t in ts]
    places = subsets(range(len(xs)))

    def fun(*xs: Any) -> list[Any]:
        out = call(*xs)
        return [out[i] for i in kept]

    def along(active: tuple[int, ...], xs: Any, ts: Any) -> list[Any]:
        def part(*moving: Any) -> Any:
            here = dict(zip(active, moving, strict=True))
            return fun(*[here.get(i, x) for i, x in enumerate(xs)])
        return jvp(part, [xs[i] for i in active], [ts[i] for i in active])[1]

    def product(cts: Any, ts: Any) -> Any:
        return sum((c * t).sum().real for c, t in zip(cts, ts, strict=True))

    def products(xs: Any, ts: Any, _: Any) -> Any:
        out, tangents = jvp(fun, xs, ts)
        cts = [y * 0.3 + 1.1 for y in out]
        again, pull = vjp(fun, *xs)
        turned = linear_transpose(lambda *ts: jvp(fun, xs, [*ts])[1], *ts)(cts)
        return (product(cts, tangents), out), (product(pull(cts), ts), again), (
            product(turned, ts), out)

    parts = {
        "value": lambda xs, *_: fun(*xs),
        "tangent": lambda xs, ts, _: along(places[-1], xs, ts),
        "tangents": lambda xs, ts, _: [along(active, xs, ts) for active in places[:-1]],
        "products": products,
        "second": lambda xs, ts, ss: jvp(lambda *xs: along(places[-1], xs, ts), xs, ss),
    }
    return Program(parts, wanted), xs, ts, ss, kept, places


def normal(rng: np.random.Generator, x: Any) -> np.ndarray:
    t = rng.normal(size=np.shape(x))
    return t + 1j * rng.normal(size=np.shape(x)) if np.iscomplexobj(x) else np.asarray(t)


def moved(xs: Sequence[Any], ts: Sequence[Any], h: float) -> list[Any]:
    return [x + h * t for x, t in zip(xs, ts, strict=True)]


def slopes(fun: Callable[..., Any], xs: Sequence[Any], ts: Sequence[Any], h: float) -> list[Any]:
    return [(np.asarray(a) - np.asarray(b)) / (2 * h)
            for a, b in zip(fun(moved(xs, ts, h)), fun(moved(xs, ts, -h)), strict=True)]


def doubles(op: Op) -> str:
    return ("d" if set("fd") & set(op.dtypes) else "") + "z" * ("c" in op.dtypes) if op.grad else ""


@cases(doubles, parts=("value", "tangent", "tangents"))
def test_jvp_is_the_central_difference(op: Op, kind: str) -> None:
    """In double precision, where the values are the oracle's; and it is linear, so that it may be
    taken in each argument alone.
    """
    with olympus.enable_x64(True):
        program, xs, ts, ss, kept, places = smooth(op, kind)

        def at(xs: Sequence[Any]) -> list[Any]:
            return program(["value", "tangents", "tangent"], xs, ts, ss)

        values, alone, tangent = at(xs)
        with np.errstate(all="ignore"):
            expected = tree.leaves(op.oracle(*cast(op, kind)))
        single = any(getattr(a, "dtype", None) == np.float32 for a in op.args)
        tol = op.tol * EXACT if op.each else op.tol if single else max(op.tol * EXACT, 1e-12)
        same(values, [expected[i] for i in kept], tol, 1e-15 if op.each else tol)
        found = dict(zip(places, [*alone, tangent], strict=True))
        same(tangent, slopes(lambda xs: at(xs)[0], xs, ts, 1e-6), 2e-6)
        for active, tangent in found.items():
            same(tangent, [sum(map(np.asarray, column)) for column in
                           zip(*(found[i,] for i in active), strict=True)], 1e-11)


@cases(doubles, parts=("products",))
def test_vjp_is_the_transpose_of_jvp(op: Op, kind: str) -> None:
    with olympus.enable_x64(True):
        program, xs, ts, ss, *_ = smooth(op, kind)
        [(forward, backward, turned)] = program(["products"], xs, ts, ss)
        same(backward, forward, 1e-9)
        same(turned, forward, 1e-9)


@cases(lambda op: doubles(op) if op.name.startswith("lax.") and op.twice else "",
       parts=("tangent", "second"))
def test_second_derivative_is_the_central_difference_of_the_first(op: Op, kind: str) -> None:
    with olympus.enable_x64(True):
        program, xs, ts, ss, *_ = smooth(op, kind)

        def at(xs: Sequence[Any]) -> list[Any]:
            return program(["tangent", "second"], xs, ts, ss)

        first, (tangent, second) = at(xs)
        same(first, tangent, 1e-11)
        same(second, slopes(lambda xs: at(xs)[0], xs, ss, 1e-5), 2e-5)


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
