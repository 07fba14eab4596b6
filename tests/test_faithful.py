"""Compiled programs compute what one operation at a time does: a share of tools/faithful.py."""

import faithful
import numpy as np
import pytest
from faithful import Leaf, Program, Step

import olympus
from olympus import lax
from olympus._src.core.ir import ClosedOlympuspr
from olympus._src.lowering import fences, glances
from olympus._src.lowering.context import ModuleContext


@pytest.fixture(autouse=True)
def wide():
    with olympus.enable_x64(True), np.errstate(all="ignore"):
        yield


def swept(programs):
    sweep = faithful.Sweep()
    sweep.run(iter(programs))
    return sweep


def test_random_chains():
    """Half of them in loops, branches, maps and derivatives."""
    rng = np.random.default_rng(35)
    sweep = swept(faithful.random_program(rng, ["float32", "int32"]) for _ in range(60))
    assert sweep.done > 50 and not sweep.faults, sweep.report()


@pytest.mark.parametrize(("made", "share"), [
    (faithful.pairs, .003), (faithful.triples, .006)], ids=["pairs", "triples"])
def test_operations_after_one_another(made, share):
    sweep = swept(made("float32", 35, 256, *([1] if made is faithful.pairs else []), share))
    assert sweep.done > 30 and not sweep.faults, sweep.report()


def planned(closed):
    """What is fenced, lowered in the place of others and held, of a program and of its bodies."""
    plans, pending = [], [closed]
    for each in pending:
        plan = fences._Pass(each, each is not closed).plan()
        plans.append((
            [(id(step.eqn), *map(id, [*step.whole, *step.repeated]), step.lowered.primitive.name)
             for step in plan.fences],
            {*map(id, plan.results)}, {id(v) for v in plan.held if v.aval.dtype != bool},
            [*plan.constants.values()], repr(plan.numbers)))
        pending += [body for eqn in each.eqns for body in eqn.primitive.bodies(eqn.params)
                    if isinstance(body, ClosedOlympuspr)]
    return plans


def test_glances_at_equations_plan_what_the_steps_do(monkeypatch):
    rng = np.random.default_rng(2)
    programs = [faithful.random_program(rng, faithful.FLOATS) for _ in range(60)]
    recorded = [olympus.make_olympuspr(each.function())(*each.args) for each in programs]
    recorded.append(olympus.make_olympuspr(     # a contraction along no axis is a product
        lambda x: lax.dot_general(x * 2, x, (((), ()), ((), ()))))(np.ones(3)))
    glanced = [*map(planned, recorded)]
    monkeypatch.setattr(glances, "_glance", lambda prim: glances.Glance(glances.NONE))
    monkeypatch.setattr(fences, "GLANCES", type(glances.GLANCES)(1024))
    assert [*map(planned, recorded)] == glanced


def of(*numbers, dtype="float32"):
    return Leaf("arg", np.array(numbers, dtype))


QUOTIENTS = Program((of(3e37, 1e37), of(1e20, 1e20)), (Step("div", (0, 1)), Step("div", (2, 1))))
SQUARES = Program((of(50000, 3, dtype="int32"), Leaf("literal", np.int32(0))),
                  (Step("mul", (0, 0)), Step("lt", (2, 1))))


@pytest.mark.parametrize(("program", "kind"), [
    (QUOTIENTS, "finite-zero"), (QUOTIENTS._replace(wrapper="scan"), "finite-zero")])
def test_without_fences_xla_rewrites(monkeypatch, program, kind):
    """So the tool finds rewriting; where XLA rewrites no more, fences can go."""
    assert not swept([program]).faults
    monkeypatch.setattr(ModuleContext, "fenced_from",
                        property(lambda self: None, lambda self, value: None))
    olympus.clear_caches()
    try:
        sweep = swept([program])
    finally:
        olympus.clear_caches()
    assert {found for found, _, _ in sweep.found} == {kind}


PRODUCTS = Program((of(1e30, 1), of(1e30, 1)), (Step("mul", (0, 1)),))


@pytest.mark.parametrize(("program", "changed", "kind"), [
    (QUOTIENTS, np.inf, "finite-inf"), (QUOTIENTS, np.nan, "finite-nan"),
    (QUOTIENTS, 0, "finite-zero"), (QUOTIENTS, -3e-3, "sign"), (QUOTIENTS, 2.9e-3, "far"),
    (QUOTIENTS, 3.001e-3, "slightly"), (QUOTIENTS, 3.0000005e-3, "rounding"),
    (SQUARES, False, "integer"), (PRODUCTS, 1, "inf-lost"),
    (Program((of(np.nan, 0),), (Step("exp", (0,)),)), 0, "nan-lost"),
    (Program((of(2e38, 1), of(2, 1)), (Step("mul", (0, 1)), Step("sub", (2, 0)))), 2e38,
     "kept-finite")])
def test_what_counts_as_a_difference(program, changed, kind):
    value, walk = faithful.evaluate(program)
    assert not walk.outside and not faithful.judge(value, value.x)
    got = value.x.copy()
    got[0] = changed
    assert [each.kind for each in faithful.judge(value, got)] == [kind]


THIRDS = of(1 / 3, 3), of(3.0000002, 1), of(1, 3)


@pytest.mark.parametrize(("last", "changed"), [
    ("sub", 1e-7), ("lt", True), ("eq", False), ("atan2", .7853982)])
def test_roundings_are_no_difference(last, changed):
    """A product that is 1 to within rounding: its difference from 1, and its comparisons."""
    value, _ = faithful.evaluate(Program(THIRDS, (Step("mul", (0, 1)), Step(last, (3, 2)))))
    got = value.x.copy()
    got[0] = changed
    assert not {each.kind for each in faithful.judge(value, got)} & {*faithful.FAULTS}


def test_shrinking_keeps_the_two_steps_that_matter(monkeypatch):
    long = Program((of(3e37, 1e37), of(1e20, 1e20), Leaf("literal", np.float32(1))), (
        Step("neg", (0,)), Step("div", (3, 1)), Step("div", (4, 1)), Step("add", (5, 2))),
        wrapper="jit")
    monkeypatch.setattr(ModuleContext, "fenced_from",
                        property(lambda self: None, lambda self, value: None))
    olympus.clear_caches()
    try:
        sweep = faithful.Sweep(shrink=1)
        sweep.run(iter([long._replace(steps=long.steps[:3])]))
    finally:
        olympus.clear_caches()
    (program, difference), = sweep.found.values()
    assert difference.kind == "finite-zero" and not program.wrapper
    assert [step.name for step in program.steps] == ["div", "div"]


def test_the_order_decides_between_infinity_and_nan():
    """A power of complex numbers, which are products and sums."""
    x = Leaf("arg", np.array([1.7e38 - 3.4e38j, 2 + 1j], "complex64"))
    value, _ = faithful.evaluate(Program((x,), (Step("cube", (0,)), Step("real", (1,)))))
    for lost in np.nan, np.inf:
        assert not {d.kind for d in faithful.judge(value, np.float32([lost, 2]))} & {
            *faithful.FAULTS}
    assert {d.kind for d in faithful.judge(value, np.float32([np.nan, 0]))} == {"finite-zero"}


def test_integers_that_wrap_are_not_fenced():
    """Regression: barriers cut the fusions of random bits where a program is spread."""
    for draw in (lambda x: x + 2 + 3, lambda x: olympus.jit(lambda x: x + 2)(x) + 3):
        assert "optimization_barrier" not in olympus.jit(draw).lower(np.arange(3)).as_text()
