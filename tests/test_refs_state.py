"""What stands on references: gradients added to them, functions of state, generators."""

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus.ad import DidntWant, DontWant, GradRef, GradValue
from olympus.experimental.custom_partitioning import custom_partitioning
from olympus.extend.core import Primitive
from olympus.extend.state import (
    AccumEffect, ReadEffect, RefEffect, WriteEffect, discharge_state, for_loop, run_state,
)
from olympus.interpreters import mlir
from olympus.random import fold_in, key, key_data, uniform
from olympus.ref import addupdate, new_ref, swap

X = onp.array([0.5, -1.0, 2.0, 0.25, 1.0])
PAIRS_OF_X = onp.array([[0, 1], [4, 4], [2, 0]])
READS = {
    "whole": lambda x, y: onp.sin(x).sum() * y, "element": lambda x, y: x[1] * y,
    "slice": lambda x, y: (x[1:3] ** 2).sum() * y, "strided": lambda x, y: x[::2].prod() * y,
    "dynamic": lambda x, y: lax.dynamic_slice(x, (onp.int32(2),), (2,)).prod() * y,
    "gather": lambda x, y: (x[onp.array([0, 0, 4])] ** 2).sum() * y,
    "row of a scan": lambda x, y: lax.scan(lambda c, v: (c * v + y, None), 1.0, x)[0],
    "call": lambda x, y: olympus.jit(lambda x: x[3] * y + x.sum())(x),
    "unused": lambda x, y: y * 2, "itself": lambda x, y: x,
    "a scan's const": lambda x, y: lax.scan(
        lambda c, i: (c * y + (x[i] ** 2).sum(), None), 0.0, PAIRS_OF_X)[0],
    "rows and const": lambda x, y: lax.scan(lambda c, v: (c * v + x[1], v * y), 1.0, x)[1].sum(),
    "a scan's carry": lambda x, y: lax.scan(
        lambda c, i: (c.at[0].multiply(y), c[i].sum()), x, PAIRS_OF_X)[1].sum(),
    "nested loops": lambda x, y: lax.fori_loop(0, 3, lambda i, c: lax.scan(
        lambda c, j: (c + x[j] ** 2 * y * x[i], None), c, PAIRS_OF_X[0])[0], 0.0),
    "branch": lambda x, y: lax.cond(y > 1, lambda: x[1:3].prod() * y, lambda: (x * y).sum()),
    "checkpoint": lambda x, y: lax.scan(olympus.checkpoint(
        lambda c, i: (c * y + onp.sin(x[i]).sum(), None)), 0.0, PAIRS_OF_X)[0],
    "mapped loop": lambda x, y: olympus.vmap(lambda i: lax.scan(
        lambda c, j: (c * y + x[j] ** 2, None), 0.0, i)[0])(PAIRS_OF_X).sum(),
    "twice": lambda x, y: olympus.jit(lambda a, b: (a * b)[3] * y)(x, x),
    "all": lambda x, y: x[1] * y + x[2:4].sum() + onp.cos(x).sum() + x[onp.array([4, 4])].sum(),
}


@pytest.mark.parametrize("name", READS)
def test_gradients_are_added_to_references(name):
    fun = READS[name]

    def run(x, y):
        ref = new_ref(onp.ones_like(x))
        out, pullback = olympus.vjp(fun, x, y)
        ct = onp.ones_like(out)
        marks = pullback.with_refs(ref, GradValue())(ct)
        assert marks[0] == GradRef()
        assert pullback.with_refs(ref, DontWant())(2 * ct) == (GradRef(), DidntWant())
        return ref[...], marks[1]

    _, pullback = olympus.vjp(fun, X, 2.0)
    dx, dy = pullback(onp.ones_like(fun(X, 2.0)))
    of_second = olympus.linearize(lambda x: run(x, 2.0), X)[0]
    for found, value in (run(X, 2.0), olympus.jit(run)(X, 2.0), of_second):
        np.testing.assert_allclose(found, 1 + 3 * dx, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(value, dy, rtol=1e-5)


@pytest.mark.parametrize("loss", [
    lambda t, i: (t[i] ** 2).sum(),
    lambda t, i: lax.scan(lambda c, j: (c + (t[j] ** 2).sum(), None), 0.0, i)[0],
    lambda t, i: lax.cond(i[0] > 2, lambda: (t[i] ** 2).sum(), lambda: 0.0),
], ids=["gather", "loop", "branch"])
def test_a_slice_of_a_gradient_makes_no_dense_zeros(loss):
    def step(total, table, i):
        olympus.vjp(lambda t: loss(t, i), table)[1].with_refs(total)(1.0)

    table, total = onp.ones((1000, 8)), new_ref(onp.zeros((1000, 8)))
    compiled = olympus.jit(step).lower(total, table, onp.array([3, 7])).compile()
    found = compiled.memory_analysis()
    assert found.alias_size_in_bytes == 32000 and found.temp_size_in_bytes < 4000
    compiled(total, table, onp.array([3, 7]))
    assert total[...].sum() == 32 and total[3, 0] == 2


@pytest.mark.parametrize(("wanted", "message"), [
    ((new_ref(X),), "1 given to with_refs for 2 arguments"),
    ((3, GradValue()), r"3 of type int given as with_refs\[0\]"),
    ((new_ref(onp.zeros(2)), GradValue()), r"Ref\{float32\[2\]\} given as with_refs\[0\]"),
    ((new_ref(X), new_ref(X)), r"the gradient's type float32\[\] is required")])
def test_what_cannot_take_a_gradient_is_refused(wanted, message):
    _, pullback = olympus.vjp(lambda x, y: x.sum() * y, X, 1.0)
    with pytest.raises((TypeError, ValueError), match=message):
        pullback.with_refs(*wanted)


@pytest.mark.parametrize("jitted", [False, True])
def test_vjp_passes_references_on(jitted):
    """Regression: a function of an array and a reference had to close over the reference."""
    @olympus.custom_vjp
    def watched(x, seen):
        return x * 2

    watched.defvjp(lambda x, seen: (x * 2, seen), lambda seen, ct: (
        olympus.ref.set(seen, ..., ct), (2 * ct, None))[1])

    def f(x, refs):
        refs["count"][...] += 1
        return watched(x * refs["factor"][...], refs["seen"])

    refs = {"count": new_ref(0), "factor": new_ref(3.0), "seen": new_ref(0.0)}
    y, pullback, aux = olympus.vjp(
        lambda *args: ((olympus.jit(f) if jitted else f)(*args), 5), 2.0, refs, has_aux=True)
    assert (y, aux) == (12, 5)
    assert pullback(7.0) == (42, {"count": None, "factor": None, "seen": None})
    assert [refs[name][...] for name in refs] == [1, 3, 7]
    rows = new_ref(onp.arange(6.0).reshape(2, 3))
    mapped = olympus.vmap(lambda x, row: olympus.vjp(lambda x, row: x * row[1], x, row)[1](1.0))
    np.testing.assert_array_equal(mapped(onp.ones(2), rows)[0], [1, 4])
    of_part = lambda i: olympus.vjp(lambda x, part: x * part[...].sum(), 2.0, rows.at[i])[1](1.0)
    assert (olympus.jit(of_part) if jitted else of_part)(1) == (12, None)
    total = new_ref(1.0)
    pullback.with_refs(total, olympus.ad.DontWant())(1.0)
    assert total[...] == 7
    with pytest.raises(TypeError, match="vjp: argument r of <lambda> is a reference"):
        olympus.vjp(lambda r: r[...], refs["factor"])


def test_trees_of_references_take_trees_of_gradients():
    ref = new_ref(onp.float32(0))
    _, pullback = olympus.vjp(lambda d: d["a"] * 3 + d["b"], {"a": 1.0, "b": 2.0})
    assert pullback.with_refs({"a": ref, "b": GradValue()})(1.0) == ({"a": GradRef(), "b": 1.0},)
    assert ref[...] == 3
    assert pullback.with_refs(DontWant())(1.0) == ({"a": DidntWant(), "b": DidntWant()},)
    with pytest.raises(ValueError, match="only one reference"):
        olympus.vjp(lambda x, y: x * y, 1.0, 2.0)[1].with_refs(ref, ref)


def test_a_function_of_references_is_one_of_arrays():
    def body(refs):
        x, n = refs
        x[...] = onp.sin(x[...]) * 2
        n[...] += 1

    run = run_state(body)
    for found, count in (run((X, 0)), olympus.jit(run)((X, 0))):
        np.testing.assert_allclose(found, 2 * np.sin(X), rtol=1e-6)
        assert count == 1
    grad = olympus.grad(lambda x: run((x, 0))[0].sum())(X)
    np.testing.assert_allclose(grad, 2 * np.cos(X), rtol=1e-6)
    np.testing.assert_allclose(olympus.vmap(lambda x: run((x, 0))[0])(X[:, None])[:, 0],
                               2 * np.sin(X), rtol=1e-6)
    with pytest.raises(TypeError, match="returned .*; None is required"):
        run_state(lambda ref: ref[...])(X)


def test_a_loop_over_references():
    def pascal(i, j, refs):
        table, = refs
        table[i + 1, j + 1] = table[i, j] + table[i, j + 1]

    start = np.zeros((6, 6), np.int32)
    start[:, 0] = 1
    start[0, :] = 0
    start[0, 0] = 1
    want = start.copy()
    for i in range(5):
        for j in range(5):
            want[i + 1, j + 1] = want[i, j] + want[i, j + 1]
    found, = for_loop((5, 5), pascal, (start,))
    np.testing.assert_array_equal(found, want)
    backwards = for_loop(3, lambda i, ref: addupdate(ref, (), ref[...] * i), onp.float32(1),
                         reverse=True, unroll=2)
    assert backwards == 3 * 2 * 1
    grad = olympus.grad(lambda x: for_loop(4, lambda i, r: r.set(onp.sin(r[...])), x))(0.5)
    want = np.cos(0.5) * np.cos(np.sin(0.5)) * np.cos(np.sin(np.sin(0.5))) * np.cos(
        np.sin(np.sin(np.sin(0.5))))
    np.testing.assert_allclose(grad, want, rtol=1e-5)


def test_a_program_is_discharged():
    def f(a, b, x):
        a[0] = x
        return b[0] + x

    closed = olympus.make_olympuspr(f)(new_ref(X), new_ref(X * 2), 3.0)
    kinds = {kind.__name__: sum(isinstance(e, kind) for e in closed.effects)
             for kind in (RefEffect, ReadEffect, WriteEffect, AccumEffect)}
    assert kinds == {"RefEffect": 2, "ReadEffect": 1, "WriteEffect": 1, "AccumEffect": 0}
    pure, consts = discharge_state(closed.olympuspr, closed.consts)
    assert not pure.effects and [str(v.aval) for v in pure.outvars] == [
        "float32[]", "float32[5]", "float32[5]"]
    out, a, b = olympus.core.eval_olympuspr(pure, consts, X, X * 2, 3.0)
    assert out == 4 and a[0] == 3 and b[0] == 1
    part, _ = discharge_state(closed.olympuspr, closed.consts,
                              should_discharge=[False, True, False])
    assert [str(v.aval) for v in part.invars] == ["Ref{float32[5]}", "float32[5]", "float32[]"]


@pytest.mark.parametrize("loop", [
    lambda body: lax.while_loop(lambda i: i < 3, lambda i: (body(), i + 1)[1], 0),
    lambda body: lax.fori_loop(0, 3, lambda i, c: (body(), c)[1], 0),
    lambda body: lax.cond(True, body, lambda: None), lambda body: olympus.jit(body)(),
    lambda body: olympus.checkpoint(body)()], ids=["while", "fori", "cond", "jit", "checkpoint"])
def test_one_of_two_references_is_discharged(loop):
    """Regression: in a while_loop that writes both it was an AttributeError."""
    def f(a, b):
        def body():
            a[...] += 1
            b[...] += 2 * a[...]
        loop(body)

    closed = olympus.make_olympuspr(f)(new_ref(X), new_ref(X))
    whole, consts = discharge_state(closed.olympuspr, closed.consts)
    want = olympus.core.eval_olympuspr(whole, consts, X, 2 * X)
    for first in (False, True):
        part, consts = discharge_state(closed.olympuspr, closed.consts,
                                       should_discharge=[first, not first])
        assert {e.index for e in part.effects} == {int(first)}
        args = [X, 2 * X]
        args[first] = ref = new_ref(args[first])
        np.testing.assert_allclose(
            olympus.core.eval_olympuspr(part, consts, *args)[0], want[not first])
        np.testing.assert_allclose(ref[...], want[first])


def test_a_generator_counts_its_draws():
    rng = olympus.experimental.random.stateful_rng(0)
    base = key(0)
    np.testing.assert_array_equal(key_data(rng.key()), key_data(fold_in(base, 0)))
    assert rng.random() == uniform(fold_in(base, 1))
    np.testing.assert_array_equal(olympus.jit(lambda r: r.uniform(size=3))(rng),
                                  uniform(fold_in(base, 2), (3,)))
    _, drawn = lax.scan(lambda c, _: (c, rng.random()), 0, None, length=2)
    np.testing.assert_array_equal(drawn, [uniform(fold_in(base, k)) for k in (3, 4)])
    own = olympus.vmap(lambda r: (r.normal(), r.integers(100)))(rng.split(3))
    assert len(np.unique(own[0])) == 3 and rng._counter[...] == 6
    assert len({float(r.random()) for r in rng.spawn(3)}) == 3
    assert rng.uniform(onp.zeros(2), onp.ones((3, 1))).shape == (3, 2)
    with pytest.raises(ValueError, match=r"it was split; one generator is required"):
        rng.split(2).key()
    assert olympus.experimental.random.stateful_rng().random() != rng.random()


SOLVERS = {
    "custom_root": lambda read, a: lax.custom_root(
        lambda x: x * x * x - read(), 1.0, lambda f, x: lax.fori_loop(
            0, 30, lambda _, x: x - f(x) / olympus.grad(f)(x), x), lambda g, y: y / g(1.0)),
    "custom_linear_solve": lambda read, a: lax.custom_linear_solve(
        lambda x: read() * x, a, lambda product, b: b / product(1.0), symmetric=True),
    "linear_transpose": lambda read, a: olympus.linear_transpose(
        lambda x: onp.sin(read()) * x, 1.0)(a)[0],
}


@pytest.mark.parametrize("name", SOLVERS)
def test_a_function_whose_derivative_is_taken_of_arrays_reads_references(name):
    """Regression: custom_linear_solve, and so cg, was a TypeError of lowering, or of zip."""
    solver = SOLVERS[name]

    def solved(a):
        ref = new_ref(a * a)
        return solver(lambda: ref[...], a)

    plain = lambda a: solver(lambda: a * a, a)
    several = lambda f: lambda a: olympus.vmap(f)(onp.stack([a, 2 * a]))
    for way in (lambda f: f, olympus.jit, olympus.grad, lambda f: olympus.jit(olympus.grad(f)),
                several, lambda f: olympus.grad(olympus.grad(f))):
        np.testing.assert_allclose(way(solved)(1.5), way(plain)(1.5), rtol=1e-5)
    outside = new_ref(1.0)
    read = lambda: outside[...]
    for held in (2.0, 3.0):      # a body that is kept reads what it holds by then
        outside[...] = held
        np.testing.assert_allclose(solver(read, 2.0), solver(lambda: held, 2.0), rtol=1e-6)
    for way in (lambda f: f, olympus.jit):
        with pytest.raises(ValueError, match=r"closes over; a function of arrays is required"):
            way(lambda a: solver(lambda: swap(outside, ..., 5.0), a))(2.0)


def _larger(a, b):
    ref = new_ref(a)
    ref[...] = onp.maximum(ref[...], b)
    return ref[...]


def _squared(x):
    ref = new_ref(x)
    lax.fori_loop(0, 2, lambda i, c: (addupdate(ref, ..., x * x / 2), c)[1], 0)
    return ref[...] - x


def _partitioned(x):
    squared = custom_partitioning(_squared)
    squared.def_partition(lambda mesh, args, result: (
        mesh, _squared, result.sharding, (args[0].sharding,)), sharding_rule="i -> i")
    return squared(x)


def _lowered(x):
    prim = Primitive("squared")
    prim.def_abstract_eval(lambda aval: aval)
    mlir.register_lowering(prim, mlir.lower_fun(_squared, multiple_results=False))
    return prim.bind(x)


ROW = np.arange(1, 5, dtype=np.float32)
COMPUTATIONS = {
    "reduce": (lambda x: lax.reduce(x, -np.inf, _larger, (0,)), 4),
    "reduce_window": (lambda x: lax.reduce_window(
        x, -np.inf, _larger, (2,), (1,), "VALID"), [2, 3, 4]),
    "scatter_apply": (lambda x: lax.scatter_apply(
        x, onp.array([[1]]), _squared, lax.ScatterDimensionNumbers((), (0,), (0,)),
        update_shape=(1,)), [1, 4, 3, 4]),
    "custom_partitioning": (_partitioned, ROW ** 2), "lower_fun": (_lowered, ROW ** 2),
}


@pytest.mark.parametrize("name", COMPUTATIONS)
def test_a_computation_that_makes_a_reference_is_compiled(name):
    f, want = COMPUTATIONS[name]
    np.testing.assert_array_equal(olympus.jit(f)(ROW), want)


def _fivefold(kind, read):
    """A function of a reference whose rule says that its derivative in the content is 5."""
    fun = kind(read)
    if kind is olympus.custom_jvp:
        fun.defjvp(lambda p, t: (read(*p), 5 * t[0][...]))
    else:
        fun.defvjp(lambda ref: (read(ref), None), lambda _, ct: (5 * ct,))
    return fun


def _in_a_loop(f, x):
    """f of a place that doubles in each of three iterations: the derivative is f's times 7."""
    place = new_ref(x)

    def step(c, _):
        c += f(place)
        place[...] *= 2
        return c, None

    return lax.scan(step, 0.0, None, length=3)[0]


READERS = {"whole": lambda ref: ref[...], "sine": lambda ref: onp.sin(ref[...])}
CALLS = {
    "at once": (lambda f, x: f(new_ref(x)), 5), "loop": (_in_a_loop, 35),
    "call": (lambda f, x: olympus.jit(f)(new_ref(x)), 5),
    "checkpoint": (lambda f, x: olympus.checkpoint(f)(new_ref(x)), 5),
    "branch": (lambda f, x: (lambda ref: lax.cond(x > -9, lambda: f(ref), lambda: x))(
        new_ref(x)), 5),
    "after a write": (lambda f, x: (lambda ref: (ref.__setitem__(..., 3 * x), f(ref))[1])(
        new_ref(x)), 15),
    "outside": (lambda f, x: x * f(new_ref(0.0)), 0),
    "mapped": (lambda f, x: olympus.vmap(lambda y: f(new_ref(x * y)))(onp.ones(2)).sum(), 10),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", [olympus.custom_vjp, olympus.custom_jvp])
def test_a_rule_gives_the_derivative_in_what_a_reference_holds(kind, call):
    """Regression: refused, or where the function returned the content, taken without the rule; in
    a loop a RecursionError; mapped in a body a leaked tracer.
    """
    run, want = CALLS[call]
    for read in READERS.values():
        f = _fivefold(kind, read)
        for way in (lambda g: g, olympus.jit):
            slope = olympus.grad(way(lambda x, f=f: run(f, x)))
            assert slope(2.0) == way(slope)(2.0) == want
            np.testing.assert_array_equal(olympus.vmap(slope)(X), [want] * 5)
        if kind is olympus.custom_jvp:
            assert olympus.jvp(lambda x, f=f: run(f, x), (2.0,), (1.0,))[1] == want
            assert olympus.grad(lambda x, f=f: f(new_ref(onp.stack([x, x])).at[0]))(2.0) == 5


def test_a_rule_of_custom_jvp_writes_contents_and_tangents():
    @olympus.custom_jvp
    def square(ref, x):
        old, ref[...] = ref[...], x ** 2 + ref[...]
        return old

    @square.defjvp
    def _(primals, tangents):
        (ref, x), (slope, t) = primals, tangents
        old, old_slope = ref[...], slope[...]
        ref[...] = x ** 2 + old
        slope[...] = 2 * x * t + old_slope
        return old, old_slope

    def fun(x, start):
        ref = new_ref(start)
        return square(ref, x) + 10 * square(ref, 2 * x) + 100 * ref[...]

    plain = lambda x, start: start + 10 * (x ** 2 + start) + 100 * (5 * x ** 2 + start)
    for args in ((3.0, 0.5), (-1.0, 2.0)):
        for way in (lambda f: f, olympus.jit, lambda f: olympus.grad(f, (0, 1)),
                    lambda f: olympus.jit(olympus.grad(f, (0, 1))),
                    lambda f: olympus.grad(olympus.jit(f), (0, 1)),
                    lambda f: olympus.grad(olympus.checkpoint(f), (0, 1)),
                    lambda f: olympus.hessian(f, (0, 1))):
            olympus.tree.map(np.testing.assert_allclose, way(fun)(*args), way(plain)(*args))
    outside = new_ref(0.0)
    with pytest.raises(ValueError, match="differentiated value\n.*non-differentiated array ref"):
        olympus.grad(lambda x: square(outside, x) + x)(1.0)


def test_a_function_with_rules_of_cotangents_leaves_a_differentiated_content_as_it_is():
    def double(ref):
        ref[...] *= 2
        return ref[...]

    f = olympus.custom_vjp(double)
    f.defvjp(lambda ref: (double(ref), None), lambda _, ct: (ct,))
    for way in (lambda g: g, olympus.jit, olympus.checkpoint):
        with pytest.raises(ValueError, match=r"<lambda> writes the reference Ref\{float32\[\]\}, "
                           r"which\s+holds a\s+differentiated\s+value"):
            olympus.grad(way(lambda x: f(new_ref(x))))(2.0)
    assert olympus.grad(lambda x: x * f(new_ref(3.0)))(2.0) == 6


def test_a_function_with_rules_writes_what_ends_with_a_vmap_in_every_body():
    def double(ref, x):
        ref[...] += x
        return ref[...] * x

    f = olympus.custom_vjp(double)
    f.defvjp(lambda ref, x: (double(ref, x), ref[...]), lambda held, ct: (None, 3 * held * ct))

    def total(x):
        ref = new_ref(1.0)
        return f(ref, x) + f(ref, x) + ref[...]

    for way in (lambda g: g, olympus.jit, olympus.checkpoint):
        run = way(olympus.vmap(total))
        np.testing.assert_allclose(run(X), 3 * X ** 2 + 4 * X + 1, rtol=1e-6)
        slope = olympus.grad(lambda x, run=run: run(x).sum())(X)
        np.testing.assert_allclose(slope, 9 * X + 6, rtol=1e-6)


def test_a_custom_vmap_function_is_differentiated_in_what_a_reference_holds():
    """Regression: a ValueError said that rules know nothing of it."""
    f = olympus.custom_batching.custom_vmap(lambda ref, x: onp.sin(ref[...]) * x)
    f.def_vmap(lambda n, mapped, ref, x: (onp.sin(ref[...]) * x * 10, True))
    slope = olympus.grad(lambda x: f(new_ref(x), x))
    want = onp.cos(X) * X + onp.sin(X)
    np.testing.assert_allclose(slope(X[0]), want[0], rtol=1e-6)
    np.testing.assert_allclose(olympus.vmap(slope)(X), 10 * want, rtol=1e-6)
