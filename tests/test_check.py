"""The type checker of programs: it passes what tracing makes and names the fault otherwise."""

import numpy as np
import pytest

import olympus
import olympus.numpy as jnp
from olympus import core, lax
from olympus._src.interpreters import passes
from olympus._src.interpreters.dce import dce_closed
from olympus._src.types.avals import make_aval
from olympus.core import DropVar
from olympus.extend.core import ClosedOlympuspr, Literal, Olympuspr, OlympusprEqn, Primitive, Var

F32, I32 = np.dtype(np.float32), np.dtype(np.int32)
SCALAR, VECTOR = make_aval((), F32), make_aval((3,), F32)


def mlp(w, x):
    return jnp.sum(jnp.tanh(x @ w) ** 2)


def controlled(x):
    y = lax.cond(x[0] > 0, jnp.sin, jnp.cos, x)
    y, _ = lax.scan(lambda c, row: (c * row, c), y, jnp.ones((4, 3)))
    y = lax.while_loop(lambda v: v[0] < 10, lambda v: v * 2, y + 1)
    return olympus.jit(jnp.exp)(y)


def printing(x):
    olympus.debug.print("{}", x)
    return x


GOOD = {
    "identity": (lambda x: x, (1.,)),
    "scalars": (lambda x, y: 2 * x + y, (3, 4)),
    "mlp": (mlp, (np.ones((3, 2), F32), np.ones((5, 3), F32))),
    "grad": (olympus.grad(mlp), (np.ones((3, 2), F32), np.ones((5, 3), F32))),
    "hessian": (olympus.hessian(lambda x: jnp.sum(jnp.sin(x) * x)), (np.ones(3, F32),)),
    "vmap": (olympus.vmap(lambda x, y: x * y + 1, in_axes=(0, None)), (np.ones((4, 3), F32), 2.)),
    "vmap of grad": (olympus.vmap(olympus.grad(lambda x: jnp.exp(x) * x)), (np.ones(3, F32),)),
    "control": (controlled, (np.ones(3, F32),)),
    "vmap of control": (olympus.vmap(controlled), (np.ones((2, 3), F32),)),
    "jvp of control": (lambda x: olympus.jvp(controlled, (x,), (x,)), (np.ones(3, F32),)),
    "jit of grad": (olympus.jit(olympus.grad(lambda x: olympus.jit(jnp.sin)(x) * x)), (1.,)),
    "checkpoint": (olympus.grad(olympus.checkpoint(lambda x: jnp.sin(jnp.sin(x)))), (1.,)),
    "effects": (printing, (1.,)),
    "indexing": (lambda x, i: x[i] + x.at[0].set(2.)[1:2], (np.ones(3, F32), 1)),
}


@pytest.mark.parametrize("name", GOOD)
def test_traced_programs_pass(name):
    fun, args = GOOD[name]
    core.check_olympuspr(olympus.make_olympuspr(fun)(*args))


def test_open_programs_pass_too():
    core.check_olympuspr(olympus.make_olympuspr(mlp)(*GOOD["mlp"][1]).olympuspr)


def test_other_things_are_refused():
    with pytest.raises(TypeError, match="check_olympuspr: 3 given; an Olympuspr"):
        core.check_olympuspr(3)


def eqn(prim, ins, outs, **params):
    return OlympusprEqn(prim, ins, outs, params)


def bad_programs():
    """(id, program, words of the message)"""
    a, b, c = Var(SCALAR), Var(SCALAR), Var(SCALAR)
    v, w = Var(VECTOR), Var(VECTOR)
    body = olympus.make_olympuspr(lambda x: x + 1)(1.)
    wrong_body = ClosedOlympuspr(Olympuspr([], [a], [c], []))
    yield "input twice", Olympuspr([], [a, a], [a], []), "input .* is bound twice"
    yield "unbound", Olympuspr([], [a], [c], [eqn(lax.sin_p, [b], [c])]), (
        r"equation 0, `float32\[\] = sin float32\[\]`, reads as operand 0 the variable .* not "
        "bound before; it was recorded at")
    yield "unbound output", Olympuspr([], [a], [b], []), "an output is the variable"
    yield "bound twice", Olympuspr(
        [], [a], [b], [eqn(lax.sin_p, [a], [b]), eqn(lax.cos_p, [a], [b])]
    ), "equation 1.*binds the variable .* again"
    yield "dropped output", Olympuspr([], [a], [DropVar(SCALAR)], []), "a dropped variable"
    yield "literal of rank 1", Olympuspr(
        [], [v], [w], [eqn(lax.add_p, [v, Literal(np.ones(3, F32), VECTOR)], [w])]
    ), "a literal float32.3. that is not of rank 0"
    yield "elementwise rank", Olympuspr(
        [], [v, a], [w], [eqn(lax.pow_p, [v, a], [w])]
    ), r"operand 1 a variable float32\[\]; elementwise operands must have the result's shape"
    yield "shape of result", Olympuspr(
        [], [a], [v], [eqn(lax.reduce_sum_p, [w], [v], axes=(0,), out_sharding=None)]
    ), "reads as operand 0"
    yield "one operand of two", Olympuspr([], [v], [w], [eqn(lax.mul_p, [v], [w])]), (
        r"equation 0, `float32\[3\] = mul float32\[3\]`, is refused by its primitive: mul: 1 given "
        r"as the number of operands \(float32\[3\]\); 2 is required.*recorded at")
    yield "three operands of two", Olympuspr(
        [], [v], [w], [eqn(lax.lt_p, [v, v, v], [w])]
    ), "lt: 3 given as the number of operands .*; 2 is required"
    yield "two operands of a sum", Olympuspr(
        [], [v], [a], [eqn(lax.reduce_sum_p, [v, v], [a], axes=(0,), out_sharding=None)]
    ), "reduce_sum: 2 given as the number of operands .*; 1 is required"
    yield "nothing concatenated", Olympuspr(
        [], [], [v], [eqn(lax.concatenate_p, [], [v], dimension=0)]
    ), "is refused by its primitive"
    yield "no result", Olympuspr([], [a], [], [eqn(lax.sin_p, [a], [])]), (
        "binds 0 variables; the primitive gives 1 results")
    yield "dtype of result", Olympuspr(
        [], [a], [(n := Var(make_aval((), I32)))], [eqn(lax.sin_p, [a], [n])]
    ), r"binds result 0 as int32\[\]; the primitive gives float32\[\]"
    yield "refused operands", Olympuspr(
        [], [(n := Var(make_aval((), I32)))], [b], [eqn(lax.sin_p, [n], [b])]
    ), "is refused by its primitive: sin: operand 0 is int32"
    yield "number of results", Olympuspr(
        [], [a], [b], [eqn(call_p(), [a], [b, c], name="f", olympuspr=body)]
    ), "binds 2 variables; the primitive gives 1 results"
    yield "operands of the body", Olympuspr(
        [], [v], [b], [eqn(call_p(), [v], [b], name="f", olympuspr=body)]
    ), r"applies the program, whose input 0 is .*float32\[\].*, to float32\[3\]"
    yield "body", Olympuspr(
        [], [a], [b], [eqn(call_p(), [a], [b], name="f", olympuspr=wrong_body)]
    ), "has a body that fails: check_olympuspr: an output is the variable"
    yield "constant", ClosedOlympuspr(Olympuspr([v], [], [v], []), [1]), (
        r"constant 0 is int32\[\].*; its variable is float32\[3\]")
    effect = core.Effect()
    yield "effects", Olympuspr([], [a], [b], [OlympusprEqn(
        lax.sin_p, [a], [b], {}, frozenset((effect,)))]), "effects {Effect}, the program {}"


def call_p():
    """jit's primitive, found as users find it."""
    return olympus.make_olympuspr(olympus.jit(lambda x: x))(1.).eqns[0].primitive


@pytest.mark.parametrize("name", GOOD)
def test_an_operand_or_a_result_too_many_or_too_few_is_refused(name):
    fun, args = GOOD[name]
    for e in olympus.make_olympuspr(fun)(*args).eqns:
        ins, outs = [Var(v.aval) for v in e.invars], [Var(v.aval) for v in e.outvars]
        changed = [(ins, [*outs, Var(SCALAR)])] + [(ins, outs[:-1])] * bool(outs)
        if e.primitive.arity:
            changed += [(ins[:-1], outs), ([*ins, ins[0]], outs)]
        for given, made in changed:
            alone = Olympuspr([], ins, [], [e.replace(invars=given, outvars=made)], e.effects)
            with pytest.raises(olympus.errors.OlympusprTypeError, match="equation 0"):
                core.check_olympuspr(alone)


@pytest.mark.parametrize(("program", "message"),
                         [pytest.param(p, m, id=name) for name, p, m in bad_programs()])
def test_bad_programs_fail(program, message):
    with pytest.raises(olympus.errors.OlympusprTypeError, match=message):
        core.check_olympuspr(program)


def test_the_users_line_is_named():
    closed = olympus.make_olympuspr(lambda x: jnp.sin(x))(1.)
    closed.eqns[0].outvars[0].aval = make_aval((), I32)
    with pytest.raises(olympus.errors.OlympusprTypeError, match=r"recorded at .*test_check.py:\d+"):
        core.check_olympuspr(closed)


def test_weak_types_do_not_matter():
    a, b = Var(make_aval((), F32, True)), Var(SCALAR)
    core.check_olympuspr(Olympuspr([], [a], [b], [eqn(lax.sin_p, [a], [b])]))


def test_eval_olympuspr():
    closed = olympus.make_olympuspr(lambda x: jnp.sin(x) + np.float32(2))(1.)
    (out,) = core.eval_olympuspr(closed.olympuspr, closed.consts, 1.)
    np.testing.assert_allclose(out, np.sin(1.) + 2, rtol=1e-6)
    with pytest.raises(TypeError, match="eval_olympuspr: 2 arguments given; the program takes 1"):
        core.eval_olympuspr(closed.olympuspr, closed.consts, 1., 2.)


def test_enable_checks_finds_what_a_pass_spoils(monkeypatch):
    """A program was checked when it was traced, and not again before it was lowered."""
    def spoiled(closed, used):
        closed, kept = dce_closed(closed, used)
        pr = closed.olympuspr
        wrong = [e.replace(outvars=[Var(VECTOR)]) for e in pr.eqns]
        return ClosedOlympuspr(pr.replace(eqns=wrong, outvars=wrong[-1].outvars), []), kept

    monkeypatch.setattr(passes, "dce_closed", spoiled)
    with olympus.enable_checks(True), pytest.raises(
            olympus.errors.OlympusprTypeError, match=r"float32\[3\] = sin float32\[\]"):
        olympus.jit(lambda x: jnp.sin(x)).lower(1.0)


def test_an_operand_may_be_optional():
    class Either(Primitive):
        jvp = transpose = vmap = None

        def infer(self, x, y=None):
            return x

        def lower(self, b, x, y=None):
            return x

    either = Either("either")
    assert either.arity is None and lax.mul_p.arity == 2
    closed = olympus.make_olympuspr(lambda x: either.bind(either.bind(x), x))(1.0)
    core.check_olympuspr(closed)
    assert [len(eqn.invars) for eqn in closed.eqns] == [1, 2]
