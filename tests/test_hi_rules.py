"""Rules of users' operations that are made of others: each derivative by each set of rules."""

from dataclasses import dataclass

import numpy as np
import pytest
from quantised import Rows, X, dequantise, quantise

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus.experimental import hiolympus as hi


class Base(hi.HiPrim):
    """(x, {"y": y}) -> [x sin y, x]; the third argument is an integer."""

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


def _ruled(optimize_remat):
    def made(f):
        fun = olympus.custom_vjp(lambda x: f(x))
        fun.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * 3 * f(x) / x,),
                   optimize_remat=optimize_remat)
        return fun
    return made


#: Functions that apply another one in a program among the params of an equation.
INSIDE = {
    "jit": olympus.jit, "checkpoint": olympus.checkpoint, "custom_vjp": _ruled(False),
    "custom_vjp of two programs": _ruled(True),
    "cond": lambda f: lambda x: lax.cond(x[0] > 0, f, lambda x: x, x),
    "scan": lambda f: lambda x: lax.scan(lambda c, y: (c + f(y), f(c)), onp.float32(1), x),
    "map": lambda f: lambda x: lax.map(f, x),
    "fori": lambda f: lambda x: lax.fori_loop(0, 2, lambda i, x: f(x) / 4, x),
    "while": lambda f: lambda x: lax.while_loop(lambda x: f(x).sum() < 50, f, x),
    "linear_solve": lambda f: lambda x: lax.custom_linear_solve(
        lambda v: f(x) * v, x, lambda _, b: b / f(x), lambda _, b: b / f(x)),
    "root": lambda f: lambda x: lax.custom_root(
        lambda y: y * 2 - f(x), x, lambda _, y: f(x) / 2, lambda _, y: y / 2),
    "reduce": lambda f: lambda x: lax.reduce(x, np.float32(0), lambda a, b: a + f(b), (0,)),
    "reduce_window": lambda f: lambda x: lax.reduce_window(
        x, np.float32(0), lambda a, b: a + f(b), (2,), (1,), "VALID"),
    "apply": lambda f: lambda x: x.at[1].apply(f),
    "composite": lambda f: lax.composite(f, "outside.cube"),
    "linear_call": lambda f: lambda x: olympus.custom_derivatives.linear_call(
        lambda r, v: f(r) * v, lambda r, v: f(r) * v, x, x)}
FORWARD_ONLY = ("while", "apply")       # loops without reverse mode
NO_DERIVATIVE = ("reduce", "reduce_window")     # by vmap of the operation, which has no rule


@pytest.mark.parametrize("name", INSIDE)
def test_an_operation_inside_of_every_program_that_an_equation_carries(name):
    class Cube(hi.HiPrim):
        def __init__(self, aval):
            self.in_avals, self.out_aval, self.params = (aval,), aval, {}
            super().__init__()

        def expand(self, x):
            return x * x * x

        def jvp(self, primals, tangents):
            return self(*primals), 3 * primals[0] ** 2 * tangents[0]

    def cube(x):
        return Cube(olympus.typeof(x))(x)

    def total(f):
        return lambda x: sum(leaf.sum() for leaf in olympus.tree.leaves(INSIDE[name](f)(x)))

    x = onp.asarray([1.0, 1.25, 0.5])
    ways = [olympus.jit] if name in (*FORWARD_ONLY, *NO_DERIVATIVE) else [
        olympus.jit, lambda f: olympus.jit(olympus.grad(f))]
    for way in ways:
        np.testing.assert_allclose(way(total(cube))(x), way(total(lambda x: x * x * x))(x),
                                   rtol=1e-5)
    traced = olympus.jit(total(cube)).trace(x)
    assert traced.olympuspr.is_high and not traced.loolympus.olympuspr.is_high


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


# Operations of the older form ---------------------------------------------------------------------

ROWS = np.arange(12, dtype=np.float32).reshape(3, 4)


class Boxed:
    """A value that answers for every name, by an operation on its content."""

    def __init__(self, content):
        self.content = content

    def __getattr__(self, name):
        return getattr(unboxed.bind(self), name)


@dataclass(frozen=True)
class BoxedType(hi.HiType):
    of: object
    sides = 6

    def lo_ty(self):
        return [self.of]

    def lower_val(self, box):
        return [box.content]

    def raise_val(self, content):
        return Boxed(content)


class Unboxed(hi.HiPrimitive):
    def abstract_eval(self, box):
        return getattr(box, "of", box), set()

    def to_loolympus(self, box):
        return box[...] if isinstance(box, olympus.Ref) else box.content


unboxed = Unboxed("unboxed")
hi.register_hitype(Boxed, lambda box: BoxedType(olympus.typeof(box.content)))


def test_a_class_that_answers_for_every_name_is_registered():
    box = Boxed(onp.asarray(ROWS))
    assert olympus.typeof(box) == BoxedType(olympus.typeof(ROWS))
    assert box.shape == (3, 4)
    for f in (unboxed.bind, olympus.jit(unboxed.bind), olympus.jit(lambda b: unboxed.bind(b))):
        np.testing.assert_array_equal(f(box), ROWS)


def test_a_traced_value_has_the_data_of_its_type():
    box = Boxed(onp.asarray(ROWS))
    assert olympus.jit(lambda box: box.sides * box.of.size)(box) == 6 * 12
    with pytest.raises(AttributeError, match="no attribute 'lo_ty'"):
        olympus.jit(lambda box: box.lo_ty())(box)


def test_an_operation_of_the_older_form_takes_a_reference():
    np.testing.assert_array_equal(unboxed.bind(olympus.new_ref(onp.asarray(ROWS))), ROWS)


@pytest.mark.parametrize("policy", [
    olympus.checkpoint_policies.everything_saveable, olympus.checkpoint_policies.dots_saveable,
    lambda prim, *avals, **params: prim.name == ByJvp.__name__], ids=["all", "dots", "own"])
def test_policies_of_checkpoint_are_asked_about_a_users_operation(policy):
    """Regression: TypeError, since the equation had a param `prim`, which is a policy's parameter.
    """
    fun = lambda x: onp.sin(ByJvp(x, x)(onp.sin(x), {"y": x}, 3)[0])
    x = onp.float32(0.5)
    s, c = np.sin(0.5), np.cos(0.5)
    want = np.cos(s * s) * 2 * s * c
    np.testing.assert_allclose(olympus.grad(olympus.checkpoint(fun, policy=policy))(x), want,
                               rtol=1e-5)


def test_staging_says_what_is_recorded():
    """Regression: the hook was not called."""
    class Noted(Base):
        vjp_fwd = lambda self, nzs, x, d, n: (self(x, d, n), x)
        vjp_bwd_retval = lambda self, x, cts: (cts[0] + cts[1], {"y": x}, None)

        def staging(self, trace, source_info, x, d, n):
            assert trace.eqns == [] and "test_hi_rules" in str(source_info)
            first, second = super().staging(trace, source_info, x, d, n)
            return [first * 2, second]

    f = lambda x: Noted(x, x)(x, {"y": x}, 3)[0]
    assert str(olympus.make_olympuspr(f)(2.0)) == """\
{ lambda ; a:f32[]. let
    b:f32[] _:f32[] = Noted a a 3:i32[]
    c:f32[] = mul b 2.0:f32[]
  in (c,) }"""
    assert olympus.jit(f)(2.0) == 2 * f(2.0)
    assert olympus.jit(olympus.grad(lambda x: x * f(2.0)))(1.0) == 2 * f(2.0)


def test_two_rules_for_one_cotangent_are_refused():
    class Both(Base):
        vjp_bwd = vjp_bwd_retval = lambda self, *args: None

    with pytest.raises(AttributeError, match="`vjp_bwd` and `vjp_bwd_retval` given"):
        Both(1.0, 2.0)


@olympus.custom_vjp
def straight_through(x):
    return quantise(x)


straight_through.defvjp(lambda x: (straight_through(x), None), lambda _, ct: (2 * ct,))


@olympus.custom_jvp
def requantised(q):
    return quantise(2 * dequantise(q))


requantised.defjvp(lambda p, t: (requantised(*p), 3 * t[0]))


@olympus.custom_vjp
def weighted(q, x):
    return dequantise(q) * x


weighted.defvjp(lambda q, x: (weighted(q, x), (q, x)),
                lambda res, ct: (ct * res[1], ct * dequantise(res[0])))


@pytest.mark.parametrize("name", ["straight_through", "requantised", "weighted", "scanned"])
def test_custom_rules_of_mapped_values(name):
    """Regression: their derivatives around vmap were refused; values that custom functions
    returned were mapped along no axis that their type knows, and compared as arrays under jit.
    """
    loss = {
        "straight_through": lambda x: (dequantise(straight_through(onp.sin(x))) ** 2).sum(),
        "requantised": lambda x: (dequantise(requantised(quantise(x))) ** 2).sum(),
        "weighted": lambda x: weighted(quantise(x), onp.cos(x)).sum(),
        "scanned": lambda x: lax.scan(lambda c, _: (dequantise(straight_through(onp.sin(c))), None),
                                      x, None, length=2)[0].sum()}[name]
    xs = onp.stack([onp.asarray(X), 2 * onp.asarray(X)])
    slopes = onp.stack([olympus.grad(loss)(x) for x in xs])
    for mapped in (olympus.vmap(loss), olympus.jit(olympus.vmap(loss)),
                   olympus.vmap(olympus.jit(loss))):
        np.testing.assert_allclose(
            mapped(xs), onp.stack([loss(x) for x in xs]), rtol=1e-5, atol=1e-5)
        slope = olympus.grad(lambda x, mapped=mapped: mapped(x).sum())
        for f in (slope, olympus.jit(slope), olympus.vmap(olympus.grad(loss))):
            np.testing.assert_allclose(f(xs), slopes, rtol=1e-5, atol=1e-5)
    along_1 = lambda x: olympus.vmap(loss, in_axes=1)(x).sum()
    np.testing.assert_allclose(olympus.grad(along_1)(onp.swapaxes(xs, 0, 1)),
                               onp.swapaxes(slopes, 0, 1), rtol=1e-5, atol=1e-5)


def test_a_shared_value_gets_the_sum_of_cotangents_by_a_custom_rule():
    q, xs = quantise(onp.asarray(X)), onp.stack([onp.asarray(X), 2 * onp.asarray(X)])
    total = lambda q: olympus.vmap(lambda x: weighted(q, x))(xs).sum()
    np.testing.assert_allclose(olympus.grad(total)(q), xs.sum(0), rtol=1e-5, atol=1e-5)
    both = lambda q: olympus.vmap(weighted, in_axes=(Rows(), 0), axis_size=2)(q, xs).sum()
    slope = olympus.jit(olympus.grad(both))(quantise(xs))
    np.testing.assert_allclose(slope, xs, rtol=1e-5, atol=1e-5)
