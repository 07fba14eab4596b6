"""Programs that are equal have one identity, and those that only look equal another.

The programs are the random ones of test_programs.py. Every kind of change is made at every place
of them, at any depth: one thing is another then, and nothing else.
"""

import collections
import functools
import random
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import test_programs

import olympus
import olympus.numpy as onp
from olympus import lax, nn
from olympus._src.core.context import ROOT, ComputeOn, Metadata
from olympus._src.core.identity import identity
from olympus.extend.core import ClosedOlympuspr, DebugInfo, Literal, Olympuspr, Var
from olympus.interpreters import mlir
from olympus.lax import cos_p, tan_p

X = np.arange(4, dtype=np.float32)
TABLE = np.array([0.0, np.nan, 3.0, 1e-30], np.float32)


def drawn(seed: int) -> Any:
    """A function of three arrays, with constants, and made anew."""
    draw = random.Random(seed)
    steps: list[Any] = [tuple(map(draw.randrange, (15, 17, 6, 6))) for _ in range(8)]

    def run(x: Any, y: Any, z: Any) -> Any:
        *outs, last = test_programs.program(test_programs.OnOlympus(), steps)(x, y, z)
        swapped = lax.broadcast_in_dim(y * TABLE, (2, 4), (1,)).sum((0,)) * 0.0
        filled = y.at[np.array([1, 9])].get(mode="fill", fill_value=0.0)
        return *outs, onp.where(x > 1, x, -2.5) + swapped, filled, last, (
            lax.linalg.symmetric_product(x, x @ x.T))    # beta is 0.0
    return run


def traced(seed: int) -> ClosedOlympuspr:
    return olympus.make_olympuspr(drawn(seed))(
        *(x.astype(np.float32) for x in test_programs.INPUTS))


def renamed(closed: ClosedOlympuspr, types: dict[Var, Any], ctx: Any = None) -> ClosedOlympuspr:
    """The program with new variables, of other types where `types` says so, and without lines."""
    made: dict[Var, Var] = {}

    def new(atom: Any) -> Any:
        if isinstance(atom, Literal):
            return Literal(atom.raw, atom.aval)
        return made.setdefault(atom, Var(types.get(atom, atom.aval)))

    def body(param: Any) -> Any:
        if isinstance(param, Olympuspr):
            return renamed(ClosedOlympuspr(param), {}, ctx).olympuspr
        if isinstance(param, ClosedOlympuspr):
            return renamed(param, {}, ctx)
        return tuple(map(body, param)) if type(param) is tuple else param

    pr = closed.olympuspr
    eqns = [e.replace(invars=list(map(new, e.invars)), outvars=list(map(new, e.outvars)),
                      params={k: body(v) for k, v in e.params.items()}, source=None,
                      ctx=ctx or e.ctx) for e in pr.eqns]
    constvars, invars, outvars = (list(map(new, atoms)) for atoms in (
        pr.constvars, pr.invars, pr.outvars))
    consts = [np.array(c) if isinstance(c, np.ndarray) else c for c in closed.consts]
    return ClosedOlympuspr(Olympuspr(constvars, invars, outvars, eqns, pr.effects,
                                     DebugInfo("jit", "another")), consts)


def values(value: Any) -> Iterator[tuple[str, Any]]:
    """What looks much like a value of a param, or of a constant."""
    if isinstance(value, (bool, np.bool_)):
        yield "a bool or a number", int(value)
    elif isinstance(value, int):
        yield "another number", value + 1
        yield "an integer or a float", float(value)
        if value in (0, 1):
            yield "a bool or a number", bool(value)
    elif isinstance(value, float):
        yield "the sign", -value
    elif isinstance(value, Literal):
        yield from literals(value)
    elif type(value) is tuple and value:
        for what, item in values(value[-1]):
            yield f"{what} in a tuple", (*value[:-1], item)


def literals(x: Literal) -> Iterator[tuple[str, Any]]:
    weak = x.aval.update(weak_type=not x.aval.weak_type)
    yield "the weak type of a number", Literal(x.raw, weak)
    for what, val in values(x.raw):
        yield f"{what} of a literal", Literal(val, x.aval)
    if isinstance(x.raw, float):
        yield "the payload of NaN", Literal(nan(1), x.aval)


def nan(payload: int) -> float:
    return struct.unpack("d", struct.pack("Q", 0x7FF8000000000000 + payload))[0]


def equations(eqn: Any, known: list[Var]) -> Iterator[tuple[str, Any]]:
    """The equation with one thing changed."""
    prim, params = eqn.primitive, eqn.params
    for i, atom in enumerate(eqn.invars):
        def operand(new: Any, i: int = i) -> Any:
            return eqn.replace(invars=[*eqn.invars[:i], new, *eqn.invars[i + 1:]])
        if isinstance(atom, Literal):
            for what, new in literals(atom):
                yield what, operand(new)
        else:
            for v in [v for v in known if v.aval is atom.aval and v is not atom][:1]:
                yield "another operand", operand(v)
    for name in params if prim.lowered is None else prim.lowered:
        if name in prim.programs:
            one = params[name]
            if isinstance(one, ClosedOlympuspr):
                for what, new in changes(one):
                    yield f"{what}, inside", eqn.replace(params={**params, name: new})
        else:
            for what, new in values(params[name]):
                yield f"{what} of a param", eqn.replace(params={**params, name: new})
    if not params and len(eqn.invars) == 1 and prim is not cos_p:
        yield "the operation", eqn.replace(primitive=cos_p)
    yield "where it runs", eqn.replace(ctx=eqn.ctx.extend(ComputeOn("device_host")))
    yield "what XLA is told", eqn.replace(ctx=eqn.ctx.extend(Metadata((("a", "b"),))))


def changes(closed: ClosedOlympuspr) -> Iterator[tuple[str, ClosedOlympuspr]]:
    """The program with one thing changed."""
    pr = closed.olympuspr
    known = [*pr.constvars, *pr.invars]
    for i, eqn in enumerate(pr.eqns):
        for what, new in equations(eqn, known):
            yield what, closed.replace(olympuspr=pr.replace(
                eqns=[*pr.eqns[:i], new, *pr.eqns[i + 1:]]))
        known += eqn.outvars
    if len(pr.outvars) > 1 and pr.outvars[0] is not pr.outvars[-1]:
        yield "the order of results", closed.replace(olympuspr=pr.replace(
            outvars=pr.outvars[::-1]))
    for v in pr.invars[:1]:
        yield "the weak type of an input", renamed(closed, {
            v: v.aval.update(weak_type=not v.aval.weak_type)})
    for i, const in enumerate(closed.consts):
        for what, new in arrays(np.asarray(const)):
            yield what, closed.replace(consts=[*closed.consts[:i], new, *closed.consts[i + 1:]])


def arrays(x: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    for i in range(x.size if x.dtype == np.float32 else 0):
        changed = x.copy().view(np.uint32)
        changed.flat[i] ^= 1 << 31
        yield "the sign of an element", changed.view(np.float32)
        changed = x.copy().view(np.uint32)
        changed.flat[i] ^= 1
        yield "a bit of an element", changed.view(np.float32)


SEEDS = 4, 25     # which have all kinds of places together


def test_every_change_makes_another_program() -> None:
    kinds: collections.Counter[str] = collections.Counter()
    wrong = []
    for seed in SEEDS:
        closed = traced(seed)
        code = identity(closed)
        assert code is not None
        for what, changed in changes(closed):
            kinds[what] += 1
            if identity(changed) == code:
                wrong.append(f"{what}: {changed}")
    assert not wrong, wrong[0]
    assert kinds.keys() >= {
        "a bit of an element", "a bool or a number of a literal", "a bool or a number of a param",
        "a bool or a number in a tuple of a param", "an integer or a float in a tuple of a param",
        "another number of a param", "another number in a tuple of a param", "another operand",
        "another operand, inside", "the operation", "the operation, inside",
        "the order of results", "the payload of NaN", "the sign of a literal",
        "the sign of a param", "the sign of an element", "the weak type of a number",
        "the weak type of an input", "what XLA is told", "where it runs"}


def test_names_lines_and_scopes_change_nothing() -> None:
    codes = set()
    for seed in SEEDS:
        closed = traced(seed)
        codes.add(identity(closed))
        assert identity(traced(seed)) == identity(closed)
        assert identity(renamed(closed, {}, ROOT.extend("scope", "inner"))) == identity(closed)
        with olympus.named_scope("outer"):
            assert identity(traced(seed)) == identity(closed)
    assert len(codes) == len(SEEDS)


@pytest.mark.parametrize("fun", [
    lambda x: (olympus.debug.print("{}", x), x)[1],
    lambda x: olympus.jit(lambda x: (olympus.debug.print("{}", x), x)[1])(x),
    lambda x: olympus.pure_callback(np.sin, olympus.ShapeDtypeStruct((4,), "float32"), x),
    lambda x: lax.scan(lambda c, y: (olympus.pure_callback(np.sin, c, c), y), 0.5, x)],
    ids=["effect", "effect inside", "function", "function inside"])
def test_what_equality_says_nothing_of_has_no_identity(fun: Any) -> None:
    assert identity(olympus.make_olympuspr(fun)(X)) is None


def test_a_program_with_an_effect_has_no_identity() -> None:
    closed = traced(4)
    assert identity(closed)
    assert identity(closed.replace(olympuspr=closed.olympuspr.replace(
        effects=frozenset(["it writes"])))) is None


# Functions of a module.

def functions(fun: Any, *args: Any) -> int:
    return olympus.jit(fun).lower(*args).as_text().count("func.func private")


def layer(scale: Any, scope: str = "layer") -> Any:
    """A function made anew, with a constant."""
    def layer(x: Any) -> Any:
        with olympus.named_scope(scope):
            return nn.relu(x * scale)
    return olympus.jit(layer)


def test_equal_programs_are_one_function() -> None:
    assert functions(lambda x: layer(2.0)(layer(2.0)(x)), X) == functions(layer(2.0), X)
    many = functools.reduce(lambda f, g: lambda x: g(f(x)), [layer(TABLE) for _ in range(5)])
    assert functions(many, X) == functions(layer(TABLE.copy()), X)


@pytest.mark.parametrize("other", [
    layer(-2.0), layer(np.float32(2)), layer(X), layer(2.0, "another")],
    ids=["sign", "strong type", "array", "scope"])
def test_programs_that_differ_are_functions_of_their_own(other: Any) -> None:
    one = functions(layer(2.0), X)
    assert functions(lambda x: other(layer(2.0)(x)), X) > one
    assert functions(lambda x: layer(2.0)(other(layer(2.0)(x))), X) == functions(
        lambda x: other(layer(2.0)(x)), X)


def test_effects_are_functions_of_their_own(capfd: Any) -> None:
    def say(word: str) -> Any:
        return olympus.jit(lambda x: (olympus.debug.print(word), x + 1)[1])
    fun = olympus.jit(lambda x: say("twice")(say("once")(say("once")(x))))
    assert fun.lower(X).as_text().count("func.func private") == 3
    fun(X)
    olympus.effects_barrier()
    assert sorted(capfd.readouterr().out.split()) == ["once", "once", "twice"]


def test_calls_within_calls_are_walked_once() -> None:
    """A program of 2 ** 40 paths, twice: another walk would not end."""
    def tower() -> Any:
        fun = nn.relu
        for _ in range(40):
            fun = olympus.jit(lambda x, inner=fun: inner(inner(x)))
        return fun
    assert functions(lambda x: tower()(tower()(x)), X[0]) == functions(tower(), X[0])


def test_a_rule_that_is_registered_between_two_programs_is_used() -> None:
    inner = olympus.jit(lax.tan)
    assert float(olympus.jit(lambda x: inner(x))(0.5)) == pytest.approx(np.tan(0.5))
    try:
        mlir.register_lowering(tan_p, mlir.lower_fun(
            lambda x, **_: lax.sin(x), multiple_results=False))
        assert float(olympus.jit(lambda x: inner(x))(0.5)) == pytest.approx(np.sin(0.5))
    finally:
        del tan_p.lower
    assert float(olympus.jit(lambda x: inner(x))(0.5)) == pytest.approx(np.tan(0.5))


BY_VALUE = {     # programs whose params have objects that say by `is_value` that equality is all
    "accuracy": lambda x: lax.exp(x, accuracy=lax.Tolerance(ulps=2)),
    "keys": lambda x: x + olympus.random.normal(olympus.random.key(0), (4,)),
    "window": lambda x: olympus.grad(lambda x: lax.reduce_window(
        x, -np.inf, lax.max, (2,), (1,), "VALID").sum())(x)}


@pytest.mark.parametrize("name", BY_VALUE)
def test_objects_among_params_that_are_values_leave_an_identity(name: str) -> None:
    first, second = [olympus.make_olympuspr(lambda x: BY_VALUE[name](x))(X) for _ in range(2)]
    assert identity(first) is not None
    assert identity(first) == identity(second)
