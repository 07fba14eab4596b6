"""Interpreters that are classes of traces of a user's own, within and around transformations."""

from collections import Counter

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import core, lax
from olympus.extend import core as extend, linear_util as lu

X = np.linspace(0.5, 2.0, 4, dtype=np.float32)


class Counted(core.Tracer):
    """A value of the interpreter that counts operations."""

    def __init__(self, trace, value):
        super().__init__(trace, olympus.typeof(value))
        self.value = value


class CountingTrace(core.Trace):
    """Counts operations, and evaluates them in the trace around."""

    def __init__(self, outer, counts):
        super().__init__()
        self.outer, self.counts = outer, counts

    def unwrapped(self, x):
        return x.value if isinstance(x, Counted) and x._trace.counts is self.counts else x

    def process_primitive(self, prim, args, params):
        self.counts[prim.name] += 1
        with extend.set_current_trace(self.outer):
            out = prim.bind(*map(self.unwrapped, args), **params)
        return [Counted(self, x) for x in out] if prim.multiple_results else Counted(self, out)

    def inside(self, fun):
        return lu.transformation2(lambda f, *args: counting(f, self.counts)(*args))(fun)

    def process_custom_jvp_call(self, prim, fun, jvp, args, *, symbolic_zeros):
        self.counts[prim.name] += 1
        args = list(map(self.unwrapped, args))
        return [Counted(self, x) for x in prim.bind_with_trace(
            self.outer, args, list(map(olympus.typeof, args)),
            {"subfuns": (self.inside(fun), self.inside(jvp)), "symbolic_zeros": symbolic_zeros})]

    def process_custom_vjp_call(self, prim, fun, fwd, bwd, args, *, out_trees, symbolic_zeros):
        self.counts[prim.name] += 1
        args = list(map(self.unwrapped, args))
        return [Counted(self, x) for x in prim.bind_with_trace(
            self.outer, args, list(map(olympus.typeof, args)),
            {"subfuns": (fun, fwd, bwd), "out_trees": out_trees,
             "symbolic_zeros": symbolic_zeros})]


def counting(fun, counts):
    """The function, whose operations `counts` counts."""
    def run(*args):
        with extend.take_current_trace() as outer:
            trace = CountingTrace(outer, counts)
            with extend.set_current_trace(trace):
                out = fun(*[x if not hasattr(x, "dtype") else Counted(trace, x) for x in args])
            trace.invalidate()
            return olympus.tree.map(trace.unwrapped, out,
                                    is_leaf=lambda x: isinstance(x, Counted))

    return run


@olympus.custom_jvp
def tripled_slope(x):
    return x * x


@tripled_slope.defjvp
def _(primals, tangents):
    return tripled_slope(*primals), 6 * primals[0] * tangents[0]


@olympus.custom_vjp
def clipped_slope(x, y):
    return x * y


clipped_slope.defvjp(lambda x, y: (x * y, (x, y)),
                     lambda res, ct: (onp.clip(ct * res[1], -1, 1), None))

FUNCTIONS = {
    "operations": lambda x: onp.sin(x) * 2 + x[::-1],
    "reductions": lambda x: onp.std(x) + onp.logaddexp(x, 1).sum(),
    "jit": lambda x: olympus.jit(lambda y: y * x + 1)(x),
    "scan": lambda x: lax.scan(lambda c, y: (c * y + x.sum(), c), onp.float32(1), x)[1],
    "while": lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x),
                                      (0, x))[1],
    "cond": lambda x: lax.cond(x[0] > 1, lambda y: y + 1, lambda y: y * x, x),
    "checkpoint": lambda x: olympus.checkpoint(lambda y: onp.tanh(y) * x)(x),
    "grad": lambda x: olympus.grad(lambda y: (onp.sin(y) * x).sum())(x),
    "vmap": lambda x: olympus.vmap(lambda y: onp.cumsum(x * y))(x),
    "custom_jvp": lambda x: tripled_slope(x) + x,
    "custom_vjp": lambda x: clipped_slope(x, x[::-1]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_and_derivatives_through_a_users_trace(name):
    fun, counts = FUNCTIONS[name], Counter()
    np.testing.assert_allclose(counting(fun, counts)(X), fun(X), rtol=1e-6)
    assert counts
    counted = counting(fun, counts)
    np.testing.assert_allclose(olympus.jit(counted)(X), fun(X), rtol=1e-6)
    rows = np.stack([X, X + 1])
    np.testing.assert_allclose(olympus.vmap(counted)(rows), list(map(fun, rows)), rtol=1e-5)
    if name != "while":     # has no reverse mode
        np.testing.assert_allclose(olympus.jacrev(counted)(X), olympus.jacrev(fun)(X), rtol=1e-5)


def test_a_users_trace_sees_each_operation_with_arrays_for_constants():
    seen = []

    class Trace(core.Trace):
        def process_primitive(self, prim, args, params):
            seen.append((prim, list(map(type, args))))
            return prim.bind(*args, **params)

    with extend.set_current_trace(Trace()):
        assert lax.mul(onp.float32(3), 2.0) == 6
    assert seen[0][0] is lax.mul_p and set(seen[0][1]) == {type(onp.ones(()))}


def test_a_users_trace_without_a_method_for_derivative_rules_is_told_which():
    class Trace(core.Trace):
        pass

    for fun, method in ((lambda: lax.sin(1.0), "process_primitive"),
                        (lambda: tripled_slope(1.0), "process_custom_jvp_call"),
                        (lambda: clipped_slope(1.0, 2.0), "process_custom_vjp_call")):
        with extend.set_current_trace(Trace()), pytest.raises(NotImplementedError, match=method):
            fun()
    assert lax.sin(0.0) == 0


def test_a_tracer_of_a_users_trace_that_has_ended_has_leaked():
    kept = []
    counting(lambda x: kept.append(x) or x, Counter())(X)
    with pytest.raises(olympus.errors.UnexpectedTracerError, match="leaked"):
        kept[0] + 1


def test_operations_are_processed_by_a_given_trace():
    def fun(x):
        trace = extend.find_top_trace(())
        y = trace.process_primitive(lax.sin_p, [x], {"accuracy": None})
        return lax.sin_p.bind_with_trace(trace, [y], [y.aval], {"accuracy": None})

    assert fun(onp.float32(0)) == 0
    counts = Counter()
    program = olympus.make_olympuspr(counting(fun, counts))(1.0)
    assert [eqn.primitive.name for eqn in program.eqns] == ["sin", "sin"] and counts["sin"] == 2
