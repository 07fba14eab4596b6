"""Users' rules under vmap, in every wrapper: as a Python loop over the elements.

What such a loop cannot show, that outputs without the mapped value have (co)tangents of their own
for each element, is where a rule under vmap goes wrong: most functions here return such outputs.
"""

from __future__ import annotations

import functools
from functools import partial

import numpy as np
import pytest

import olympus
from olympus import (
    checkpoint, custom_gradient, custom_jvp, custom_vjp, grad, jit, jvp, lax, linearize,
    numpy as onp, vmap,
)
from olympus.custom_derivatives import SymbolicZero, custom_vjp_primal_tree_values

XS = np.array([[.5, -1.], [2., .25], [-.75, 1.5]], np.float32)
Y = np.array([1.5, -2.], np.float32)
WEIGHTS = np.array([[1., -2.], [.5, 3.], [-4., 1.]], np.float32)     # of outputs, per element


# The functions take an element and a value that all elements share. -------------------------------

def by_vjp(fun, fwd, bwd, **options):
    made = custom_vjp(fun)
    made.defvjp(fwd, bwd, **options)
    return made


def by_jvp(fun, rule, **options):
    made = custom_jvp(fun)
    made.defjvp(rule, **options)
    return made


def _zero(ct, like):
    return onp.zeros_like(like) if type(ct) is SymbolicZero else ct


def _static_vjp():
    made = partial(custom_vjp, nondiff_argnums=(0,))(lambda n, x, y: y * n)
    made.defvjp(lambda n, x, y: (y * n, x), lambda n, x, ct: (n * x * ct, onp.tanh(ct)))
    return lambda x, y: made(3, x, y)


def _static_jvp():
    made = partial(custom_jvp, nondiff_argnums=(0,))(lambda n, x, y: y * n)
    made.defjvp(lambda n, primals, tangents: (
        made(n, *primals), tangents[0] * n + primals[0] * tangents[1]))
    return lambda x, y: made(3, x, y)


def _one_rule_per_argument():
    made = custom_jvp(lambda x, y: y + 1.)
    made.defjvps(lambda t, out, x, y: t * x, None)
    return made


def _closing_vjp(x, y):
    still = lax.stop_gradient(x)
    return by_vjp(lambda y: 2 * y, lambda y: (2 * y, None),
                  lambda _, ct: (onp.tanh(ct) * still,))(y)


def _closing_jvp(x, y):
    still = lax.stop_gradient(x)
    return by_jvp(lambda y: 2 * y, lambda p, t: (2 * p[0], t[0] * still))(y)


FORWARD = {     # with both modes
    "constant": by_jvp(lambda x, y: onp.zeros(2), lambda p, t: (onp.zeros(2), t[0] * p[0])),
    "rule returns mapped": by_jvp(lambda x, y: y, lambda p, t: (p[1] + 0 * p[0], 2 * t[0] + t[1])),
    "function returns mapped": by_jvp(lambda x, y: 0 * x, lambda p, t: (0 * p[1], t[0] - t[1])),
    "shared": by_jvp(lambda x, y: y, lambda p, t: (p[1], p[0] * t[1])),
    "shared tangent": by_jvp(lambda x, y: onp.sin(x), lambda p, t: (onp.sin(p[0]), 2 * t[1])),
    "no tangent": by_jvp(lambda x, y: onp.sin(x), lambda p, t: (onp.sin(p[0]), onp.zeros(2))),
    "several": by_jvp(
        lambda x, y: (x * y, {"shared": y, "count": 3}),
        lambda p, t: ((p[0] * p[1], {"shared": p[1], "count": 3}),
                      (t[0], {"shared": t[0] + t[1], "count": np.zeros((), olympus.dtypes.float0)
                              }))),
    "symbolic zeros": by_jvp(
        lambda x, y: y, lambda p, t: (p[1], _zero(t[0], p[0]) * p[0] + 5 * _zero(t[1], p[1])),
        symbolic_zeros=True),
    "static": _static_jvp(),
    "defjvps": _one_rule_per_argument(),
    "closes over mapped": _closing_jvp,
    "nested": by_jvp(lambda x, y: FORWARD["constant"](x, y) + y, lambda p, t: (
        FORWARD["constant"](*p) + p[1], jvp(FORWARD["shared"], p, t)[1] * 2)),
}

REVERSE = {
    "hook": by_vjp(lambda x, y: onp.zeros(2), lambda x, y: (onp.zeros(2), None),
                   lambda _, ct: (ct, None)),
    "residuals": by_vjp(lambda x, y: onp.zeros(2), lambda x, y: (onp.zeros(2), (x, y)),
                        lambda res, ct: (res[0] * ct, res[1] * ct)),
    "shared": by_vjp(lambda x, y: y, lambda x, y: (y, None), lambda _, ct: (ct, onp.tanh(ct))),
    "fwd returns mapped": by_vjp(lambda x, y: y, lambda x, y: (y + 0 * x, x),
                                 lambda x, ct: (onp.tanh(ct), x * ct)),
    "function returns mapped": by_vjp(lambda x, y: y + 0 * x, lambda x, y: (y, None),
                                      lambda _, ct: (onp.tanh(ct), ct)),
    "clip": by_vjp(lambda x, y: x, lambda x, y: (x, y),
                   lambda y, ct: (onp.clip(ct, -1, 1), onp.clip(ct * y, -1, 1))),
    "several": by_vjp(
        lambda x, y: (x * y, {"shared": y, "count": 3}),
        lambda x, y: ((x * y, {"shared": y, "count": 3}), x),
        lambda x, ct: (onp.tanh(ct[1]["shared"]) + ct[0], x * ct[0] * ct[1]["shared"])),
    "symbolic zeros": by_vjp(
        lambda x, y: (y, x), lambda x, y: (custom_vjp_primal_tree_values((y, x)), x.value),
        lambda x, ct: (x * _zero(ct[0], x), onp.tanh(_zero(ct[0], x)) + _zero(ct[1], x)),
        symbolic_zeros=True),
    "static": _static_vjp(),
    "optimize_remat": by_vjp(lambda x, y: y, lambda x, y: (y, x),
                             lambda x, ct: (onp.tanh(ct), x * ct), optimize_remat=True),
    "custom_gradient": custom_gradient(lambda x, y: (y, lambda ct: (x * ct, onp.tanh(ct)))),
    "closes over mapped": _closing_vjp,
    "nested": by_vjp(
        lambda x, y: REVERSE["hook"](x, y) + y, lambda x, y: (REVERSE["hook"](x, y) + y, (x, y)),
        lambda res, ct: olympus.vjp(REVERSE["residuals"], *res)[1](ct)),
}

FUNCTIONS = {**{f"jvp {k}": f for k, f in FORWARD.items()},
             **{f"vjp {k}": f for k, f in REVERSE.items()}}


# Wrappers: a function of an element and a shared value, as one of all elements and that. ----------

def _every(f):
    return vmap(f, (0, None))


def _nested(f):
    """Over two axes; of the inner one, all elements but the first are ignored."""
    twice = vmap(vmap(f, (None, 0)), (0, None))
    return lambda xs, y: olympus.tree.map(lambda a: a[:, 0], twice(xs, onp.stack([y, y])))


def _scan(f):
    def looped(x, y):
        outs = lax.scan(lambda c, _: (c + 1., f(x, y)), 0., None, length=2)[1]
        return olympus.tree.map(lambda a: a[1], outs)
    return _every(looped)


def _first(f, x, y):
    return olympus.tree.leaves(f(x, y))[0]


def _vectorize(f):
    leaves = olympus.tree.leaves(olympus.eval_shape(f, XS[0], Y))
    dims = ",".join("(k)" if a.ndim else "()" for a in leaves)
    signature = f"(k),(k)->{dims}"
    if len(leaves) == 1:
        return onp.vectorize(partial(_first, f), signature=signature)
    return onp.vectorize(lambda x, y: tuple(olympus.tree.leaves(f(x, y))), signature=signature)


WRAPPERS = {
    "vmap": _every,
    "jit(vmap)": lambda f: jit(_every(f)),
    "vmap(jit)": lambda f: _every(jit(f)),
    "vmap(vmap)": _nested,
    "vmap, out axis 1": lambda f: lambda xs, y: olympus.tree.map(
        lambda a: a.T, vmap(f, (0, None), -1)(xs, y)),
    "named": lambda f: vmap(f, (0, None), axis_name="i"),
    "vectorize": _vectorize,
    "lax.map(batch_size)": lambda f: lambda xs, y: lax.map(lambda x: f(x, y), xs, batch_size=2),
    "scan": _scan,
    "cond": lambda f: _every(lambda x, y: lax.cond(True, f, f, x, y)),
    "cond of each": lambda f: _every(lambda x, y: lax.cond(x[0] > 0, f, partial(f), x, y)),
    "switch": lambda f: _every(lambda x, y: lax.switch((x[0] > 0) + 1, [f, f, f], x, y)),
    "checkpoint(vmap)": lambda f: checkpoint(_every(f)),
    "vmap(checkpoint)": lambda f: _every(checkpoint(f)),
    "jit(vmap(checkpoint(jit)))": lambda f: jit(_every(checkpoint(jit(f)))),
}

# The first output, an array like the shared value, goes through a loop twice.
LOOPS = {
    "scan": lambda f: _every(lambda x, y: lax.scan(
        lambda c, _: (_first(f, x, c), None), y, None, length=2)[0]),
    "fori": lambda f: _every(lambda x, y: lax.fori_loop(0, 2, lambda _, c: _first(f, x, c), y)),
}
WHILE = lambda f: _every(lambda x, y: lax.while_loop(
    lambda c: c[0] < 2 + 0 * (x[0] > 0), lambda c: (c[0] + 1, _first(f, x, c[1])), (0, y))[1])


def by_element(f):
    """The oracle: one call after the other."""
    return lambda xs, y: olympus.tree.map(lambda *parts: onp.stack([*map(onp.asarray, parts)]),
                                          *[f(x, y) for x in xs])


def loss_of(mapped):
    """A number that each element of each output has another weight in."""
    def loss(xs, y):
        parts = [a for a in map(onp.asarray, olympus.tree.leaves(mapped(xs, y)))
                 if onp.issubdtype(a.dtype, onp.floating)]
        return sum((k + 1.) * (WEIGHTS * a).sum() for k, a in enumerate(parts))
    return loss


MOVED = 3 - XS, Y + 1


def in_reverse(loss):
    value, back = olympus.vjp(loss, XS, Y)
    return [value, *back(1.)]


def in_both(loss):
    return [jvp(loss, (XS, Y), MOVED)[1], linearize(loss, XS, Y)[1](*MOVED)]


@functools.cache
def wanted_of(function, times=1):
    """In reverse and, of a custom_jvp function, in both modes: the derivatives of the oracle."""
    f = FUNCTIONS[function]
    again = {1: f, 2: lambda x, y: _first(f, x, _first(f, x, y))}[times]
    loss = loss_of(by_element(again))
    return in_reverse(loss), in_both(loss) if function.startswith("jvp") else None


def same(found, wanted):
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def pairs(wrappers):
    """Each function with each wrapper; three quarters of them are slow tests."""
    return [pytest.param(f, w, marks=[pytest.mark.slow] * bool((i + j) % 4))
            for i, f in enumerate(FUNCTIONS) for j, w in enumerate(wrappers)]


@pytest.mark.parametrize("function, wrapper", pairs(WRAPPERS))
def test_mapped_rules_do_what_a_loop_does(function, wrapper):
    loss = loss_of(WRAPPERS[wrapper](FUNCTIONS[function]))
    reverse, both = wanted_of(function)
    same(in_reverse(loss), reverse)
    same(jit(grad(loss, (0, 1)))(XS, Y), reverse[1:])
    if both:
        same(in_both(loss), both)
        same([jit(lambda *t: jvp(loss, (XS, Y), t)[1])(*MOVED)], both[:1])


@pytest.mark.parametrize("function, wrapper", pairs(LOOPS))
def test_mapped_rules_in_loops_do_what_a_loop_does(function, wrapper):
    f = FUNCTIONS[function]
    loss = loss_of(LOOPS[wrapper](f))
    reverse, both = wanted_of(function, 2)
    same(in_reverse(loss), reverse)
    if both:
        same(in_both(loss), both)
        same([jvp(loss_of(WHILE(f)), (XS, Y), MOVED)[1]], both[:1])


@pytest.mark.parametrize("wrap", [vmap, lambda f: jit(vmap(f)), lambda f: vmap(jit(f)),
                                  lambda f: onp.vectorize(f), lambda f: checkpoint(vmap(f)),
                                  lambda f: lambda xs: lax.map(f, xs, batch_size=2)])
def test_cotangents_that_do_not_depend_on_the_element_count_once_for_each(wrap):
    one = by_vjp(lambda x: 0., lambda x: (0., None), lambda _, ct: (1.,))
    np.testing.assert_array_equal(grad(lambda xs: wrap(one)(xs).sum())(XS[0]), [1, 1])
    shared = grad(lambda y: wrap(lambda x: one(y + 0 * x))(XS[0]).sum())(2.)
    np.testing.assert_array_equal(shared, 2)


def test_elements_that_share_one_call_share_its_derivative_or_are_told():
    reads_axis = by_vjp(lambda w: w, lambda w: (w, None),
                        lambda _, ct: (ct * lax.axis_index("i"),))
    clipped = by_vjp(lambda w: w, lambda w: (w, None), lambda _, ct: (onp.clip(ct, -1, 1),))

    passed = by_vjp(lambda w, i: w, lambda w, i: (w, i), lambda i, ct: (ct * i, None))
    for wrap in (lambda f: f, jit):
        def slope(f, wrap=wrap):
            mapped = wrap(vmap(lambda x, w: x * f(w), (0, None), axis_name="i"))
            return grad(lambda w: mapped(Y, w).sum())(2.)

        np.testing.assert_array_equal(slope(clipped), -.5)      # of the sum: one call
        np.testing.assert_array_equal(slope(lambda w: passed(w, lax.axis_index("i"))), -2.)
        with pytest.raises(ValueError, match="pass what differs"):
            slope(reads_axis)


def test_a_rule_that_reads_an_inner_element_is_one_of_the_outer_vmap_too():
    """The outer vmap maps no operand: it knows the element of the inner vmap alone."""
    def scaled(element):
        return by_vjp(lambda z: 2 * z, lambda z: (2 * z, None), lambda _, ct: (ct * element,))

    def total(z):
        return vmap(lambda x: vmap(lambda element: scaled(element)(z))(x * Y))(XS[:, 0]).sum()

    assert grad(total)(1.) == np.outer(XS[:, 0], Y).sum()
