"""custom_jvp and custom_vjp: their rules are used by every transformation, in every order."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from olympus import (
    checkpoint, custom_jvp, custom_vjp, grad, jit, jvp, lax, make_olympuspr, numpy as onp, tree,
    vjp, vmap,
)
from olympus._src.core.evaluate import eval_closed
from olympus._src.interpreters.dce import dce_closed
from olympus.custom_batching import custom_vmap
from olympus.custom_derivatives import (
    CustomVJPPrimal, SymbolicZero, custom_vjp_primal_tree_values, zero_from_primal,
)
from olympus.dtypes import float0
from olympus.lax import add, cond, cos, mul, neg, reduce_sum, scan, sin, stop_gradient

X = np.float32(0.5)
XS = np.array([0.1, 0.2, 0.3], np.float32)
ONE = np.float32(1)


def close(a, b):
    np.testing.assert_allclose(np.asarray(a), b, rtol=2e-5)


# Rules are three times the true derivative, so that a rule that is not used is noticed.

@custom_jvp
def f(x, y=2.0):
    return mul(sin(x), y)


@f.defjvp
def f_jvp(primals, tangents):
    x, y = primals
    tx, ty = tangents
    return f(x, y), add(mul(3.0, mul(mul(cos(x), y), tx)), mul(sin(x), ty))


@custom_vjp
def g(x, y=2.0):
    return mul(sin(x), y)


g.defvjp(lambda x, y: (g(x, y), (cos(x), y)),
         lambda res, ct: (mul(3.0, mul(mul(res[0], res[1]), ct)), None))


def by_jvp(w):
    @custom_jvp
    def h(x):
        return mul(x, w)

    h.defjvp(lambda p, t: (h(*p), mul(t[0], mul(w, 3.0))))
    return h


def by_vjp(w):
    @custom_vjp
    def h(x):
        return mul(x, w)

    h.defvjp(lambda x: (h(x), None), lambda res, ct: (mul(ct, mul(w, 3.0)),))
    return h


@pytest.mark.parametrize("fun", [f, g])
@pytest.mark.parametrize("wrap", [
    lambda d: d, jit, lambda d: jit(jit(d)), lambda d: lambda x: vmap(d)(x[None])[0],
    lambda d: lambda x: jit(vmap(d))(x[None])[0], lambda d: lambda x: vmap(jit(d))(x[None])[0],
    lambda d: lambda x: scan(lambda c, _: (d(x), None), x, None, 1)[0],
    lambda d: lambda x: cond(True, d, lambda v: v, x)])
def test_rules_under_every_wrapper(fun, wrap):
    x = np.asarray(X)
    close(wrap(fun)(x), 2 * np.sin(X))
    close(grad(wrap(fun))(x), 6 * np.cos(X))
    close(wrap(grad(fun))(x), 6 * np.cos(X))
    close(jit(grad(wrap(fun)))(x), 6 * np.cos(X))
    # The second derivative comes from the first rule's output.
    close(grad(lambda v: wrap(grad(fun))(v))(x), grad(grad(fun))(x))


def test_forward_mode():
    close(jvp(f, (X,), (ONE,))[1], 6 * np.cos(X))
    for fun in (g, jit(g)):
        with pytest.raises(TypeError, match="custom_vjp g: .*forward-mode"):
            jvp(fun, (X,), (ONE,))


@pytest.mark.parametrize("make", [by_jvp, by_vjp])
def test_closing_over_traced_values(make):
    close(jit(lambda w, x: grad(make(w))(x))(X, X), 1.5)
    close(vmap(lambda w: grad(make(w))(X))(XS), 3 * XS)
    close(vmap(lambda w: make(w)(X))(XS), 0.5 * XS)
    close(jit(vmap(lambda w: grad(jit(make(w)))(X)))(XS), 3 * XS)
    close(vmap(jit(lambda w, z: grad(jit(make(w)))(z)))(XS, XS), 3 * XS)
    close(jit(lambda w, x: grad(jit(lambda v: make(w)(v)))(x))(X, X), 1.5)
    close(grad(lambda x: scan(lambda c, w: (make(w)(c), None), x, XS)[0])(X), 27 * np.prod(XS))


def closing_jvp(t, parts):
    """Sine, whose function ("f") or rule ("r") closes over t."""
    z, r = (t if part in parts else 2.0 for part in "fr")
    h = custom_jvp(lambda x: mul(sin(x), z))
    h.defjvp(lambda p, tg: (h(*p), mul(mul(mul(cos(p[0]), 10.0), tg[0]), r)))
    return h


def closing_vjp(t, parts):
    """The same with fwd ("F") and bwd ("b")."""
    z, w, b = (t if part in parts else 2.0 for part in "fFb")
    h = custom_vjp(lambda x: mul(sin(x), z))
    h.defvjp(lambda x: (mul(sin(x), w), mul(cos(x), w)), lambda r, ct: (mul(mul(r, b), ct),))
    return h


CLOSING = [(make, parts) for make, all_parts in [(closing_jvp, ["f", "r", "fr"]),
           (closing_vjp, ["f", "F", "b", "fFb"])] for parts in all_parts]
INNER = {
    "call": lambda h: h(X),
    "jit": lambda h: jit(h)(X),
    "scan": lambda h: scan(lambda c, _: (h(c), None), X, None, 2)[0],
    "cond": lambda h: cond(X > 0, h, lambda v: v, X),
    "vmap": lambda h: reduce_sum(vmap(h)(XS), (0,)),
    "grad": lambda h: grad(h)(X),
    "jit grad": lambda h: jit(grad(h))(X),
    "grad jit": lambda h: grad(jit(h))(X),
    "grad grad": lambda h: grad(grad(h))(X),
    "grad scan": lambda h: grad(lambda x: scan(lambda c, _: (h(c), None), x, None, 2)[0])(X),
    "grad cond": lambda h: grad(lambda x: cond(X > 0, h, lambda v: v, x))(X),
    "grad checkpoint": lambda h: grad(checkpoint(h))(X),
    "vmap jit grad": lambda h: reduce_sum(vmap(jit(grad(h)))(XS), (0,)),
    "grad vmap": lambda h: reduce_sum(grad(lambda x: reduce_sum(vmap(h)(x), (0,)))(XS), (0,)),
}


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("make, parts", CLOSING)
def test_closed_over_values_may_be_mapped_or_staged(make, parts, inner):
    def fun(t):
        return INNER[inner](make(t, parts))

    expected = np.array([fun(t) for t in XS])
    for found in (vmap(fun)(XS), jit(vmap(fun))(XS), vmap(jit(fun))(XS),
                  scan(lambda c, t: (c, fun(t)), X, XS)[1]):
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)
    close(jit(fun)(XS[0]), expected[0])


@pytest.mark.parametrize("make, parts", [(m, p) for m, p in CLOSING if p in ("r", "F", "b")])
@pytest.mark.parametrize("inner", INNER)
def test_values_that_rules_close_over_may_be_differentiated_where_the_rules_are_not_used(
        make, parts, inner):
    def fun(t):
        return INNER[inner](make(t, parts))

    # The function does not depend on t, and its derivatives do.
    h = np.float32(2.0 ** -5)
    expected = (np.asarray(fun(X + h)) - np.asarray(fun(X - h))) / (2 * h)
    for transform in (lambda d: d, jit):
        for wrap in (lambda d: d, jit):
            found = transform(grad(wrap(fun)))(X)
            np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-4)
    np.testing.assert_allclose(jvp(fun, (X,), (ONE,))[1], expected, rtol=2e-3, atol=1e-4)
    np.testing.assert_allclose(vmap(grad(fun))(X[None]), expected[None], rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("make", [by_jvp, by_vjp])
def test_differentiating_a_closed_over_value_is_refused(make):
    told = "custom_.* closes over.* make it an argument of the function, or close over"
    for wrap in (lambda h: h, jit, lambda h: lambda x: scan(
            lambda c, _: (h(c), None), x, None, 2)[0], lambda h: lambda x: vmap(h)(x[None])[0]):
        for fun in (lambda w: wrap(make(w))(X), lambda w: wrap(make(w))(w)):
            for outer in (grad, lambda d: jit(grad(d)), lambda d: grad(jit(d)),
                          lambda d: lambda w: vmap(grad(d))(w[None])):
                with pytest.raises(TypeError, match=told):
                    outer(fun)(X)


def test_a_backward_rule_that_closes_over_what_its_gradient_is_taken_of_is_refused():
    with pytest.raises(TypeError, match="bwd .* closes over .* return the value from fwd as a res"):
        grad(lambda w: closing_vjp(w, "b")(w))(X)
    close(grad(lambda w: closing_vjp(stop_gradient(w), "b")(w))(X), 2 * X * np.cos(X))


def test_derivatives_that_nothing_reads_are_not_refused():
    def fun(t):
        h = closing_jvp(t, "f")     # the rule calls it; the gradient does not read the result
        return grad(jit(h))(X)

    close(jit(grad(fun))(X), 0)
    close(grad(jit(fun))(X), 0)


def test_tracers_are_found_in_what_rules_call():
    def make(t, form):
        inner = {"function": lambda x: mul(x, t),
                 "partial": partial(mul, t),
                 "method": Holder(t).times,
                 "default": lambda x, t=t: mul(x, t),
                 "keyword default": lambda x, *, t=t: mul(x, t),
                 "tree": lambda x, d={"t": [t]}: mul(x, d["t"][0])}[form]
        h = custom_jvp(lambda x: sin(x))
        h.defjvp(lambda p, tg: (h(*p), inner(tg[0])))
        return h

    for form in ("function", "partial", "method", "default", "keyword default", "tree"):
        fun = lambda t: grad(lambda x: scan(
            lambda c, _: (make(t, form)(c), None), x, None, 2)[0])(X)
        close(vmap(fun)(XS), XS ** 2)


class Holder:
    def __init__(self, t):
        self.t = t

    def times(self, x):
        return mul(x, self.t)


def test_a_rule_may_call_its_function_on_other_types():
    def make(t):
        h = custom_jvp(lambda x: mul(sin(x), t))
        h.defjvp(lambda p, tg: (h(*p), mul(reduce_sum(h(XS), (0,)), tg[0])))
        return h

    for fun in (lambda t: jit(grad(make(t)))(X), lambda t: grad(jit(make(t)))(X),
                lambda t: grad(jit(grad(jit(make(t)))))(X)):
        close(vmap(fun)(XS), [fun(t) for t in XS])


def test_python_control_flow_on_concrete_values():
    seen = []

    @custom_vjp
    def h(x):
        return x if x > 0 else neg(x)

    def fwd(x):
        seen.append(bool(x > 0))
        return h(x), x

    def bwd(x, ct):
        return (ct if x > 0 else neg(ct),)

    h.defvjp(fwd, bwd)
    close(grad(lambda x: h(mul(x, 2.0)))(np.float32(-3)), -2)
    assert seen == [False]


def test_pytrees_keywords_and_nondiff():
    @custom_jvp
    def h(a, n, *, b=None):
        return a

    with pytest.raises(TypeError, match="resolved to positions: b"):
        h.defjvp(lambda p, t: (p, t))
        h(X, 2, b=X)

    def power(n, tree):
        return {"out": mul(tree["x"], float(n)), "aux": (tree["y"],)}

    p = custom_jvp(power, nondiff_argnums=0)
    p.defjvp(lambda n, p, t: (power(n, *p), power(10 * n, *t)))
    tree = {"x": X, "y": ONE}
    close(grad(lambda t: p(3, tree=t)["out"])(tree)["x"], 30)
    q = custom_vjp(power, nondiff_argnames="n")
    q.defvjp(lambda n, t: (power(n, t), None),
             lambda n, res, ct: ({"x": mul(ct["out"], 10.0 * n), "y": None},))
    out = vjp(lambda t: q(n=3, tree=t), tree)[1]({"out": ONE, "aux": (ONE,)})[0]
    close(out["x"], 30)
    close(out["y"], 0)


def test_keywords_after_a_default_that_is_skipped_have_positions():
    def fun(x, a=2.0, b=3.0, *, c=1.0):
        return mul(mul(x, a), mul(b, c))

    ways = {"jvp": custom_jvp(fun), "jvps": custom_jvp(fun), "static": custom_jvp(fun, (1,)),
            "vjp": custom_vjp(fun), "static vjp": custom_vjp(fun, nondiff_argnames="a")}
    ways["jvp"].defjvp(lambda p, t: (fun(*p), mul(10.0, jvp(fun, p, t)[1])))
    ways["jvps"].defjvps(*[lambda t, out, *p, i=i: mul(10.0, mul(t, grad(fun, i)(*p)))
                           for i in range(3)])
    ways["static"].defjvp(lambda a, p, t: (fun(p[0], a, p[1]), mul(
        10.0, jvp(lambda x, b: fun(x, a, b), p, t)[1])))
    ways["vjp"].defvjp(lambda *xs: (fun(*xs), xs), lambda xs, ct: tuple(
        mul(mul(10.0, ct), grad(fun, i)(*xs)) for i in range(3)))
    ways["static vjp"].defvjp(lambda x, a, b: (fun(x, a, b), (x, b)), lambda a, res, ct: tuple(
        mul(mul(10.0, ct), s) for s in grad(lambda x, b: fun(x, a, b), (0, 1))(*res)))
    batched = custom_vmap(fun)
    batched.def_vmap(lambda size, mapped, x, a, b: (mul(mul(x, a), b), True))
    close(vmap(lambda x: batched(x, b=5.0))(XS), 10 * XS)
    for h in ways.values():
        close(h(4.0, b=5.0), 40)
        for way in (lambda d: d, jit):
            close(way(grad(lambda x, b, h=h: h(x, b=b), (0, 1)))(4.0, 5.0), [100, 80])
        with pytest.raises(TypeError, match="resolved to positions: c$"):
            h(4.0, b=5.0, c=2.0)


def test_defjvps():
    h = custom_jvp(lambda x, y: mul(x, y))
    h.defjvps(lambda t, out, x, y: mul(t, 7.0), None)
    close(grad(h)(X, X), 7)
    close(grad(h, 1)(X, X), 0)


def test_symbolic_zeros():
    seen = []
    h = custom_jvp(lambda x, y: mul(x, y))

    def rule(primals, tangents):
        seen.append([type(t) is SymbolicZero for t in tangents])
        return h(*primals), tangents[0]

    h.defjvp(rule, symbolic_zeros=True)
    close(grad(h)(X, X), 1)
    assert seen == [[False, True]]
    k = custom_vjp(lambda x, y: (mul(x, y), y))
    k.defvjp(lambda x, y: ((mul(x.value, y.value), y.value), (x.perturbed, y.perturbed)),
             lambda res, cts: (seen.append((res, type(cts[1]) is SymbolicZero)) or cts[0], None),
             symbolic_zeros=True)
    close(grad(lambda x: k(x, X)[0])(X), 1)
    assert seen[1] == ((True, False), True)


def test_unmapped_values_stay_unmapped():
    def fun(x, w):
        return mul(x, f(w)) if f(w) > 0 else x      # concrete: the call on w is not mapped

    close(vmap(fun, (0, None))(XS, X), XS * 2 * np.sin(X))


def test_mapped_and_unmapped_arguments_of_custom_vjp():
    h = custom_vjp(lambda x, y: mul(x, y))
    h.defvjp(lambda x, y: (mul(x, y), (x, y)), lambda r, ct: (mul(ct, r[1]), mul(ct, r[0])))
    out, back = vjp(lambda x, y: vmap(h, (None, 0))(x, y), X, XS)
    dx, dy = back(np.ones(3, np.float32))
    close(dx, XS.sum())
    close(dy, 0.5 * np.ones(3))


def test_integer_arguments():
    h = custom_vjp(lambda n, x: mul(x, 2.0))
    h.defvjp(lambda n, x: (mul(x, 2.0), None), lambda r, ct: (None, mul(ct, 5.0)))
    close(grad(h, 1)(3, X), 5)
    k = custom_jvp(lambda n, x: mul(x, 2.0))
    k.defjvp(lambda p, t: (mul(p[1], 2.0), mul(t[1], 5.0)))
    close(grad(k, 1)(3, X), 5)


def one_jvp(rule):
    h = custom_jvp(lambda x: {"a": x})
    h.defjvp(rule)
    return lambda: jvp(h, (X,), (ONE,))


def one_vjp(fwd, bwd):
    h = custom_vjp(lambda x: x)
    h.defvjp(fwd, bwd)
    return lambda: grad(h)(X)


@pytest.mark.parametrize("error, pattern, fun", [
    (AttributeError, "No JVP defined for", lambda: custom_jvp(lambda x: x)(X)),
    (AttributeError, "No VJP defined for", lambda: custom_vjp(lambda x: x)(X)),
    (TypeError, "a pair", one_jvp(lambda p, t: p[0])),
    (TypeError, "with equal container", one_jvp(lambda p, t: ({"a": p[0]}, t[0]))),
    (TypeError, r"Expected float32\[\] .*at \['a'\]",
     one_jvp(lambda p, t: ({"a": p[0]}, {"a": XS}))),
    (TypeError, "a pair", one_vjp(lambda x: x, lambda r, ct: (ct,))),
    (TypeError, "must produce a tuple of length 1",
     one_vjp(lambda x: (x, None), lambda r, ct: ct)),
    (TypeError, "must produce a tuple of length 1",
     one_vjp(lambda x: (x, None), lambda r, ct: (ct, ct))),
    (ValueError, r"output of type float32\[3\] corresponding to an input of type",
     one_vjp(lambda x: (x, None), lambda r, ct: (XS,))),
    (TypeError, "the same container",
     one_vjp(lambda x: (x, None), lambda r, ct: ((ct, ct),))),
    (TypeError, "nondiff_argnums",
     lambda: jit(lambda x: _nondiff()(x, x))(X)),
    (ValueError, "nondiff_argnames has 'z'",
     lambda: custom_jvp(lambda x: x, nondiff_argnames=["z"])),
])
def test_errors(error, pattern, fun):
    with pytest.raises(error, match=pattern):
        fun()


def _nondiff():
    h = custom_vjp(lambda n, x: x, nondiff_argnums=0)
    h.defvjp(lambda n, x: (x, None), lambda n, r, ct: (ct,))
    return h


def test_a_cotangent_may_stand_where_the_argument_is_none():
    """A rule for an optional argument gives its cotangent always; None has none."""
    f = custom_vjp(lambda x, y=None: (x * 2 if y is None else x * y["b"][0]))
    f.defvjp(lambda x, y=None: (f(x, y), (x, y)),
             lambda r, ct: (ct * 3, ct if r[1] is None else {"a": ct, "b": (r[0] * ct, ct)}))
    assert grad(f)(X, None) == jit(grad(f))(X, None) == 3
    y = {"a": None, "b": (X, None)}
    assert grad(f, 1)(X, y) == {"a": None, "b": (X, None)}


@pytest.mark.parametrize("dtype, ct_dtype", [
    ("float32", "float16"), ("bfloat16", "float32"), ("float16", "bfloat16"),
    ("float32", "int32"), ("complex64", "float32"), ("float32", "bool")])
def test_a_cotangent_of_another_dtype_is_converted(dtype, ct_dtype):
    f = custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (f(x), None), lambda _, ct: (onp.ones_like(ct, ct_dtype),))
    x = onp.ones((2, 3), dtype)
    for way in (lambda g: g, jit, lambda g: grad(jit(lambda x: f(x).real.sum()))):
        found = way(grad(lambda x: f(x).real.sum()))(x)
        assert (found.dtype, found.shape) == (dtype, (2, 3))
        np.testing.assert_array_equal(found, np.ones((2, 3), found.dtype))
    assert vmap(grad(lambda x: f(x).real.sum()))(x).dtype == dtype
    g = custom_vjp(lambda x: x * 2)
    g.defvjp(lambda x: (g(x), None), lambda _, ct: (3,))
    assert (grad(g)(onp.ones((), "float16")), grad(g)(1.0).weak_type) == (3, True)
    h = custom_vjp(lambda x: x * 2)
    h.defvjp(lambda x: (h(x), None), lambda _, ct: (1j,))
    with pytest.raises(TypeError, match="a real dtype"):
        grad(h)(1.0)


def test_a_backward_rule_gets_arrays_while_a_program_is_recorded():
    f = custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (x * 2, None), lambda _, ct: (ct.astype("float32").reshape(()) * 3,))
    assert jit(grad(f))(1.0) == grad(jit(f))(1.0) == jit(lambda x: vjp(f, x)[1](1.0)[0])(1.0) == 3
    assert jit(lambda x: vjp(f, x)[1](np.float32(1))[0])(X) == 3


def test_the_zero_tangents_of_a_pytree_have_its_structure():
    zeros = zero_from_primal({"a": X, "b": (2, None)})
    close(zeros["a"], 0)
    assert zeros["b"][0].dtype == float0 and zeros["b"][1] is None
    record = zero_from_primal((X, 2), symbolic_zeros=True)[0]
    assert type(record) is SymbolicZero and record.shape == np.shape(X)


def test_records_of_symbolic_zeros_are_leaves_and_bools_stay_python_bools():
    record = CustomVJPPrimal(X, True)
    assert tree.leaves(record) == [record]
    assert custom_vjp_primal_tree_values({"a": [record]}) == {"a": [X]}
    seen = []

    @custom_vjp
    def f(x, y):
        return x * y

    def fwd(x, y):
        assert isinstance(tree.leaves((x, y))[1], CustomVJPPrimal)
        return x.value * y.value, (x.value, y.value, x.perturbed, y.perturbed, True, 3)

    def bwd(res, ct):
        x, y, *rest = res
        seen.append(rest)
        assert all(type(v) is bool for v in rest[:3]) and type(rest[3]) is int
        return ct * y, ct * x

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    for g in (f, jit(f), checkpoint(f), lambda x, y: lax.cond(True, f, f, x, y),
              lambda x, y: lax.scan(lambda c, _: (f(c, y), None), x, length=1)[0],
              lambda x, y: vmap(f, (0, None))(onp.stack([x, x]), y).mean()):
        for way in (lambda g: g, jit):
            np.testing.assert_allclose(way(grad(g))(X, X), X, rtol=1e-6)
            assert seen[-1][2:] == [True, 3]


def test_a_keyword_that_partial_gives_is_no_argument_of_the_rule():
    fun = partial(lambda x, y, a: x + y * a, a=0.25)
    ruled = custom_jvp(fun)
    ruled.defjvp(lambda primals, tangents: jvp(fun, primals, tangents))
    assert [float(x) for x in grad(ruled, argnums=(0, 1))(1.0, 2.0)] == [1.0, 0.25]


def test_a_symbolic_zero_of_another_shape_is_no_cotangent():
    f = custom_vjp(lambda x, y: (x, y))
    f.defvjp(lambda x, y: ((x.value, y.value), None), lambda _, cts: (cts[1], cts[0]),
             symbolic_zeros=True)
    with pytest.raises(ValueError, match="returning a None"):
        grad(lambda x: f(x, onp.ones(2))[0].sum())(onp.ones(3))


@pytest.mark.parametrize("after", [lambda y: y ** 2, lax.square, onp.square, lax.abs])
@pytest.mark.parametrize("wrap", [lambda d: d, jit])
def test_rules_may_return_numbers(after, wrap):
    forward = custom_jvp(lambda a: 2.0 * a)
    forward.defjvp(lambda primals, tangents: (9.0, tangents[0]))
    back = custom_vjp(lambda a: 2.0 * a)
    back.defvjp(lambda a: (9.0, None), lambda _, ct: (ct,))
    for h in (forward, back):
        close(wrap(grad(lambda a: after(wrap(h)(a))))(4.0), 1 if after is lax.abs else 18)


@pytest.mark.parametrize("loop", [
    jit, lambda d: lambda x: scan(lambda c, _: (d(c), None), x, None, 1)[0],
    lambda d: lambda x: cond(True, d, lambda v: v, x)])
def test_a_rule_that_raises_does_so_where_it_is_used(loop):
    def make(w):
        h = custom_jvp(lambda y: mul(y, w))
        h.defjvp(lambda primals, tangents: (h(*primals), no_derivative()))
        back = custom_vjp(lambda y: mul(h(y), w))
        back.defvjp(lambda y: no_derivative(), lambda _, ct: (ct,))
        return back

    def no_derivative():
        raise NotImplementedError("no derivative")

    close(loop(lambda x: make(x)(2.0))(X), 2 * X * X)
    with pytest.raises(NotImplementedError, match="no derivative"):
        grad(loop(lambda x: make(stop_gradient(x))(x)))(X)


def test_a_rule_that_gives_a_wrong_type_is_refused_where_it_is_used():
    def fun(x):
        h = custom_jvp(lambda: mul(x, 2.0))
        h.defjvp(lambda primals, tangents: (h(*primals), sum(tangents)))
        return h()

    close(jit(fun)(X), 2 * X)


@pytest.mark.parametrize("rule", [custom_jvp, custom_vjp])
@pytest.mark.parametrize("used", [(True, False), (False, True)])
@pytest.mark.parametrize("wrap", [lambda d: d, jit, lambda d: lambda x: vmap(d)(x[None])[0]])
def test_rules_hold_for_the_results_that_are_left(rule, used, wrap):
    """Rules are three times, and five times, the derivative."""
    h = rule(lambda x: (sin(x), mul(x, x)))
    if rule is custom_jvp:
        h.defjvp(lambda p, t: (h(*p), (3 * cos(p[0]) * t[0], 10 * p[0] * t[0])))
    else:
        h.defvjp(lambda x: (h(x), x), lambda x, cts: (3 * cos(x) * cts[0] + 10 * x * cts[1],))
    less, _ = dce_closed(make_olympuspr(jit(h))(X), used)
    left = wrap(lambda x: eval_closed(less, x)[0])
    x = np.asarray(X)
    close(left(x), (np.sin(X), X * X)[used[1]])
    close(grad(left)(x), (3 * np.cos(X), 10 * X)[used[1]])
    assert str(less).count(" = sin ") == used[0]


def test_a_rule_gets_arrays_in_place_of_numpys():
    """In a traced function `vjp(hypot, np_array, np_array)`: ndarray has no attribute aval."""
    x = np.array([3.0, 5.0], np.float32)
    out, back = vjp(onp.hypot, x, x)
    traced = jit(lambda: vjp(onp.hypot, x, x)[1](onp.ones(2)))()
    np.testing.assert_allclose(traced, back(onp.ones(2)), rtol=1e-6)
    np.testing.assert_allclose(out, np.hypot(x, x), rtol=1e-6)
