"""Primitives whose class is an outsider's subclass, and interpreters that bind what they find."""

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus.extend.core import Primitive
from olympus.extend.mlir.dialects import stablehlo as hlo
from olympus.interpreters import ad, batching, mlir


class Doubled(Primitive):
    """A subclass that defines no rule: they are entered where it is made."""

    multiple_results = True

    def __init__(self):
        super().__init__("doubled")
        mlir.register_lowering(self, self.lowered)
        ad.primitive_jvps[self] = self.derivative
        batching.primitive_batchers[self] = lambda args, dims: (self.bind(*args), dims)

    def impl(self, *xs):
        return [2 * x for x in xs]

    def abstract_eval(self, *avals):
        return list(avals), olympus.core.no_effects

    def lowered(self, ctx, *xs):
        return [hlo.add(x, x) for x in xs]

    def derivative(self, primals, tangents):
        return self.bind(*primals), self.bind(*map(ad.instantiate_zeros, tangents))


def test_subclass_of_primitive_gets_its_rules_from_tables():
    doubled_p = Doubled()
    f = lambda x: doubled_p.bind(onp.sin(x), x)[0]
    x = onp.arange(3.0)
    assert type(doubled_p).__name__ == "Doubled" and isinstance(doubled_p, Doubled)
    assert doubled_p.bind(3, 4.5) == [6, 9.0]
    for found in (f(x), olympus.jit(f)(x), olympus.vmap(f)(x)):
        np.testing.assert_allclose(found, 2 * np.sin(np.arange(3)), rtol=1e-6)
    np.testing.assert_allclose(olympus.jvp(f, (x,), (x,))[1], 2 * x * np.cos(x), rtol=1e-6)
    aval = olympus.core.ShapedArray((2,), "float32")
    none = olympus.core.no_effects
    assert doubled_p.abstract_eval(aval, aval) == ([aval, aval], none)
    assert lax.add_p.abstract_eval(aval, aval) == (aval, none)


def test_subclass_of_primitive_without_a_rule_says_which_is_missing():
    class Bare(Primitive):
        pass

    bare_p = Bare("bare")
    for use, what in ((bare_p.bind, "Evaluation"), (olympus.jit(bare_p.bind), "Abstract")):
        with pytest.raises(NotImplementedError, match=what):
            use(1.0)
    bare_p.def_impl(lambda x: x + 1)
    assert bare_p.bind(1.0) == 2.0


def test_interpreters_apply_functions_with_rules_as_they_apply_operations():
    @olympus.custom_jvp
    def thrice(x):
        return onp.sin(x)

    @olympus.custom_vjp
    def seven(x):
        return onp.cos(x)

    thrice.defjvp(lambda x, t: (onp.sin(*x), 3 * t[0]))
    seven.defvjp(lambda x: (onp.cos(x), None), lambda _, ct: (7 * ct,))
    closed = olympus.make_olympuspr(lambda x: thrice(x) + seven(x))(1.0)

    def run(x):
        env = dict(zip(closed.olympuspr.invars, [x], strict=True))
        for eqn in closed.eqns:
            outs = eqn.primitive.bind(*[env[v] for v in eqn.invars],
                                      **eqn.primitive.get_bind_params(eqn.params))
            env.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs],
                           strict=True))
        return env[closed.olympuspr.outvars[0]]

    np.testing.assert_allclose(run(1.0), np.sin(1) + np.cos(1), rtol=1e-6)
    assert olympus.grad(run)(1.0) == olympus.jit(olympus.grad(run))(1.0) == 10
