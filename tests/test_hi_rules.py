"""Rules of users' operations that are made of others: each derivative by each set of rules."""

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus.experimental import hiolympus as hi


class Base(hi.HiPrim):
    """(x, {"y": y}) -> [x sin y, x], of which the third argument is an integer."""

    def __init__(self, x, y):
        aval = olympus.typeof(x).strong()
        self.in_avals = (aval, {"y": olympus.typeof(y).strong()}, hi.ShapedArray((), "int32"))
        self.out_aval, self.params = [aval, aval], {}
        super().__init__()

    def expand(self, x, d, n):
        return [x * onp.sin(d["y"]), x]

    def batch_dim_rule(self, axis, dims):
        return [0, 0]


class ByJvp(Base):
    def jvp(self, primals, tangents):
        (x, d, _), (t, s, _) = primals, tangents
        t, u = map(hi.instantiate_zeros, (t, s["y"]))
        return self(*primals), [t * onp.sin(d["y"]) + x * onp.cos(d["y"]) * u, t]


class ByJvpBackwards(ByJvp):
    vjp_fwd, vjp_bwd_retval = hi.vjp_from_jvp


class ByLinearizedJvp(ByJvp):
    lin, linearized = hi.linearize_from_jvp
    vjp_fwd, vjp_bwd_retval = hi.vjp_from_lin


class ByLin(Base):
    jvp = hi.jvp_from_lin

    def lin(self, nzs, x, d, n):
        return self(x, d, n), (x * onp.cos(d["y"]), onp.sin(d["y"]))

    def linearized(self, res, t, s, _):
        t, u = map(hi.instantiate_zeros, (t, s["y"]))
        return [res[1] * t + res[0] * u, t]


class ByLinBackwards(ByLin):
    vjp_fwd, vjp_bwd_retval = hi.vjp_from_lin


class ByVjp(Base):
    def vjp_fwd(self, nzs, x, d, n):
        return self(x, d, n), (x, d["y"])

    def vjp_bwd_retval(self, res, cts):
        (x, y), (ct, c) = res, map(hi.instantiate_zeros, cts)
        return ct * onp.sin(y) + c, {"y": ct * x * onp.cos(y)}, None


class ByAccumulators(ByVjp):
    def vjp_bwd(self, res, cts, x, d, n):
        for accum, ct in zip((x, d["y"]), self.vjp_bwd_retval(res, cts), strict=False):
            accum.accum(ct["y"] if isinstance(ct, dict) else ct)
        assert isinstance(n, hi.NullAccum)


class ByVjpAndJvp(ByVjp, ByJvp):
    pass


CLASSES = [ByJvp, ByJvpBackwards, ByLinearizedJvp, ByLin, ByLinBackwards, ByVjp, ByAccumulators,
           ByVjpAndJvp]
WAYS = {
    "jvp": lambda f, x: olympus.jvp(f, (x,), (onp.ones_like(x),))[1],
    "jit jvp": lambda f, x: olympus.jit(lambda x: olympus.jvp(f, (x,), (onp.ones_like(x),))[1])(x),
    "grad": lambda f, x: olympus.grad(f)(x),
    "jit grad": lambda f, x: olympus.jit(olympus.grad(f))(x),
    "linearize": lambda f, x: olympus.linearize(f, x)[1](onp.ones_like(x)),
    "scan": lambda f, x: olympus.grad(lambda x: lax.scan(
        lambda c, _: (c + f(x), None), 0., length=2)[0])(x),
    "vmap grad": lambda f, x: olympus.vmap(olympus.grad(f))(onp.stack([x, x + 1])),
    "grad vmap": lambda f, x: olympus.grad(lambda x: olympus.vmap(f)(
        onp.stack([x, 2 * x])).sum())(x),
    "hessian": lambda f, x: olympus.hessian(f)(x),
    "jacrev twice": lambda f, x: olympus.jacrev(olympus.jacrev(f))(x),
    "checkpoint": lambda f, x: olympus.grad(olympus.checkpoint(f))(x),
}


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shared", [False, True], ids=["both", "one"])
def test_derivatives_by_whichever_rules_there_are(kind, way, shared):
    def f(x):
        y = 0.7 if shared else 2 * x
        out, same = kind(x, y)(x, {"y": onp.asarray(y, onp.float32)}, 3)
        return out * same

    def plain(x):
        return x * x * onp.sin(0.7 if shared else 2 * x)

    x = onp.float32(1.3)
    np.testing.assert_allclose(WAYS[way](f, x), WAYS[way](plain, x), rtol=1e-5)


def test_an_operation_that_is_linear_is_transposed():
    class Scale(hi.HiPrim):
        def __init__(self, c, x):
            self.in_avals, self.out_aval, self.params = (c, x), x, {}
            super().__init__()

        def expand(self, c, x):
            return c * x

        def transpose(self, ct, c, x):
            x.accum(c * ct)

    aval = hi.ShapedArray((3,), "float32")
    x = onp.arange(3, dtype=onp.float32)
    scaled = olympus.linear_transpose(
        lambda x: Scale(aval, aval)(onp.full(3, 5., onp.float32), x), x)
    np.testing.assert_array_equal(scaled(x)[0], 5 * x)


def test_without_rules_derivatives_say_which_are_required():
    def f(x):
        return Base(x, x)(x, {"y": x}, 1)[0]

    with pytest.raises(NotImplementedError, match="for grad support, subclass"):
        olympus.grad(f)(1.)
    with pytest.raises(NotImplementedError, match="for jvp support, subclass"):
        olympus.jvp(f, (1.,), (1.,))


def _in_a_circle():
    class Circle(Base):
        jvp = hi.jvp_from_lin
        lin, linearized = hi.linearize_from_jvp
    olympus.jvp(lambda x: Circle(x, x)(x, {"y": x}, 1)[0], (1.,), (1.,))


def _nothing_to_derive_from():
    class Nothing(Base):
        vjp_fwd, vjp_bwd_retval = hi.vjp_from_jvp
    olympus.grad(lambda x: Nothing(x, x)(x, {"y": x}, 1)[0])(1.)


def _not_unpacked():
    class Pairless(Base):
        vjp_fwd = hi.vjp_from_jvp


@pytest.mark.parametrize("call, error, part", [
    (_in_a_circle, TypeError, "in terms of the other"),
    (_nothing_to_derive_from, TypeError, "sets vjp_from_jvp and defines no `jvp`"),
    (_not_unpacked, TypeError, "is a pair of rules, not a single rule")])
def test_rules_that_are_made_of_nothing(call, error, part):
    with pytest.raises(error, match=part):
        call()
