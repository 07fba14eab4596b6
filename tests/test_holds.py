"""Values with many readers are computed once: sizes of optimised programs, and the same results."""

import math
import re
from pathlib import Path

import eight_devices
import hold_cases
import hold_corpus
import numpy as np
import pytest
from hold_cases import step
from test_linear_time import calls

import olympus
import olympus.numpy as onp
from olympus import lax, random
from olympus._src.base import config
from olympus._src.export.module import drop_identities, read_module
from olympus._src.lowering.holds import holds_of


@pytest.fixture
def hold():
    before = olympus.config.olympus_hold
    olympus.config.update("olympus_hold", "auto")
    yield
    olympus.config.update("olympus_hold", before)


def integrated(steps):
    def loss(y):
        for _ in range(steps):
            y = step(y)
        return (y ** 2).sum()
    return loss


def instructions(fun, *args):
    """How many there are in the optimised program."""
    return olympus.jit(fun).lower(*args).compile().as_text().count(" = ")


def exponent(make, small, large):
    """The power of the depth with which the optimised program grows."""
    few, many = (instructions(fun, *args) for fun, args in map(make, (small, large)))
    return math.log(many / few) / math.log(large / small)


@pytest.mark.parametrize("name", [
    "transformer_gradient", "residual_tanh_gradient", "residual_layer_norm_gradient",
    "residual_post_norm_gradient", "gated_rms_gradient", "dropout_gradient", "gru_gradient",
    "lstm_gradient"])
def test_nets_grow_linearly(hold, name):
    """6 and 48 layers or steps. A jaxlib that takes no notice of a hold would fail here."""
    assert exponent(getattr(hold_corpus, name), 6, 48) < 1.1


@pytest.mark.parametrize("name", [
    "lorenz_forward", "lorenz_gradient", "pendulum_leapfrog_gradient",
    "harmonic_leapfrog_gradient", "heat_gradient", "burgers_gradient", "split_and_draw"])
def test_integrators_and_draws_grow_linearly(hold, name):
    assert exponent(getattr(hold_corpus, name), 5, 40) < 1.1


def test_what_is_held_has_many_readers():
    """Not a chain, nor what one kernel reads twice, nor a number, nor what XLA keeps anyway."""
    def held(fun, *args):
        return len(holds_of(olympus.make_olympuspr(fun)(*args)))

    x = onp.ones((3, 4))
    assert held(integrated(3), x) > 0
    assert held(lambda x: sum(x * i for i in range(100)), x) == 0
    assert held(lambda x: integrated(3)(onp.stack([x, x, x])), 1.0) > 0
    assert held(lambda x: (x * 2 + 1) * (x * 2 - 1), x) == 0
    exp = [olympus.jit(lambda x, i=i: onp.exp(x) @ onp.full((4, i + 1), 1.0)) for i in range(60)]
    assert held(lambda x: [f(x) for f in exp], x) == 0


def test_the_search_enters_few_functions_for_an_equation():
    """Its passes are loops; programs without candidates are looked at once."""
    for (fun, args), most in ((hold_corpus.cheap_chain(100), 0.4),
                              (hold_corpus.transformer_forward(4), 1.4),
                              (hold_corpus.transformer_gradient(4), 1.4),
                              (hold_corpus.lorenz_gradient(4), 1.7)):
        closed = olympus.make_olympuspr(fun)(*args)
        assert calls(lambda: holds_of(closed)) < most * len(closed.eqns)


@pytest.mark.parametrize("name", [
    "lorenz_gradient_2", "pendulum_leapfrog_gradient_6", "heat_gradient_6", "burgers_gradient_3",
    "newton_gradient_8", "lorenz_in_a_branch", "adam_step", "vae_gradient", "gru_gradient_30",
    "transformer_gradient_6"])
def test_as_many_values_are_held_as_the_table_says(hold, name):
    page = Path(__file__).parents[1] / "docs" / "compile_time.md"
    said = re.search(rf"\| `{name}` \| (\d+) \|", page.read_text(encoding="utf-8"))
    fun, args = hold_corpus.PROGRAMS[name]()
    assert olympus.jit(fun).lower(*args).as_text().count('inlineable = "false"') == int(said[1])


def test_functions_that_are_called_count_as_if_written_out():
    """The first of each pair has calls, the second has none."""
    inner = olympus.jit(step)

    def called(y):
        for _ in range(3):
            y = inner(y)
        return y

    def written(y):
        for _ in range(3):
            y = step(y)
        return y

    y = onp.ones((3, 4))
    assert holds_of(olympus.make_olympuspr(called)(y))
    assert holds_of(olympus.make_olympuspr(written)(y))


@olympus.custom_jvp
def squashed(x):
    return step(step(x))


squashed.defjvps(lambda t, y, x: t * (1 - y * y))


def programs():
    """Programs with something to hold, by name, with their arguments."""
    y = onp.linspace(0.1, 1.2, 12).reshape(3, 4)
    loss = integrated(2)
    key = random.key(0)

    def drawn(key):
        out = []
        for _ in range(4):
            key, of = random.split(key)
            out.append(random.bits(of, (5,)))
        return out

    return {
        "gradient": (olympus.grad(loss), y),
        "second derivative": (olympus.hessian(integrated(1)), y[:, :2]),
        "mapped": (olympus.vmap(olympus.grad(loss), in_axes=2), onp.stack([y, 2 * y], 2)),
        "in a loop": (lambda y: lax.fori_loop(0, 3, lambda _, y: step(step(y)), y), y),
        "scan with gradient": (olympus.grad(
            lambda y: lax.scan(lambda y, _: (step(step(y)), y.sum()), y, None, 3)[1].sum()), y),
        "branch": (lambda y: lax.cond(y[0, 0] > 0, lambda y: step(step(y)), lambda y: y, y), y),
        "checkpoint": (olympus.grad(lambda y: olympus.checkpoint(loss)(y)), y),
        "custom rule": (olympus.grad(lambda y: squashed(step(step(y))).sum()), y),
        "complex": (lambda y: step(step(y + 1j * y)), y),
        "integers": (lambda y: step(step((10 * y).astype("int32"))), y),
        "bfloat16": (lambda y: step(step(y.astype("bfloat16"))), y),
        "empty": (olympus.grad(loss), y[:, :0]),
        "draws": (drawn, key)}


@pytest.mark.parametrize("name", programs())
def test_results_are_those_without(name):
    fun, *args = programs()[name]
    expected = fun(*args)       # operation by operation, where nothing is computed again
    with config.hold("auto"):
        out = olympus.jit(fun)(*args)
    tol = 0 if name in ("draws", "empty") else 2e-2 if name == "bfloat16" else 2e-5
    for a, b in zip(olympus.tree.leaves(out), olympus.tree.leaves(expected), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        a, b = (np.asarray(x).astype("c16" if x.dtype.kind == "c" else "f8") for x in (a, b))
        np.testing.assert_allclose(a, b, rtol=tol, atol=tol)


def test_a_function_has_its_own_hold_whatever_the_option_says():
    fun, y = olympus.grad(integrated(3)), onp.ones((3, 4))
    for option in ("auto", "off"):
        with config.hold(option):
            for given, expected in (("auto", True), ("off", False), (None, option == "auto")):
                text = olympus.jit(fun, hold=given).trace(y).lower().as_text()
                assert ("inlineable" in text) is expected
    with pytest.raises(ValueError, match="hold='on' given; 'auto', 'off', 'report'"):
        olympus.jit(fun, hold="on")


def test_the_report_says_what_is_held_by_line(caplog):
    def twice(y):
        y = onp.concatenate([y[1:] * y[:-1], y[:1]])        # of this one, the held value
        return olympus.grad(lambda y: (step(step(y)) ** 2).sum())(y)

    y = onp.ones((3, 4))
    report = olympus.debug.holds(twice, y)
    text = olympus.jit(twice, hold="auto").lower(y).as_text()
    assert sum(line.count for line in report.lines) == text.count("inlineable") > 2
    assert {line.type for line in report.lines} <= {"float32[3,4]", "float32[4]"}
    assert {line.where.partition(":")[0].rpartition("/")[2] for line in report.lines} == {
        "test_holds.py", "hold_cases.py"}           # of the loss and of the step that it takes
    assert [x.saves for x in report.lines] == sorted((x.saves for x in report.lines), reverse=True)
    assert not olympus.debug.holds(lambda x: x * 2 + 1, y).lines
    assert not olympus.debug.holds(olympus.jit(twice, hold="off"), y).lines
    with caplog.at_level("WARNING", "olympus"):
        olympus.jit(twice, hold="report")(y)
    assert str(report).partition("\n")[2] in caplog.text


def test_effects_and_donated_arguments_stay(hold, capfd):
    def fun(y):
        olympus.debug.print("{}", y[0, 0], ordered=True)
        y = step(step(y))
        olympus.debug.print("{}", y[0, 0], ordered=True)
        return step(y)

    y = onp.ones((3, 4))
    out = olympus.jit(fun, donate_argnums=0)(y)
    olympus.effects_barrier()
    assert y.is_deleted() and out.shape == (3, 4)
    first, second = capfd.readouterr().out.split()
    assert float(first) == 1 != float(second)


def test_the_outermost_function_says_what_is_held():
    """One program is compiled, and has one `hold`."""
    y = onp.ones((3, 4))
    for inner, outer in (("off", "auto"), ("auto", "off")):
        called = olympus.jit(step, hold=inner)
        lowered = olympus.jit(lambda y: called(called(called(y))), hold=outer).lower(y)
        assert ("inlineable" in lowered.as_text()) is (outer == "auto")


def lowered_for(*platforms):
    return olympus.jit(olympus.grad(integrated(3)), hold="auto").trace(onp.ones((3, 4))).lower(
        lowering_platforms=platforms)


def test_the_report_says_why_nothing_is_held():
    assert "inlineable" in lowered_for("cpu").as_text()
    for platforms in ("tpu",), ("cpu", "cuda"):
        lowered = lowered_for(*platforms)
        assert "inlineable" not in lowered.as_text()
        assert ", ".join(platforms).replace("cuda", "gpu") in str(lowered._context.hold_report)
    sizes, = olympus.export.symbolic_shape("n")
    fun = olympus.jit(olympus.grad(integrated(3)))
    y = olympus.ShapeDtypeStruct((3, sizes), "float32")
    assert olympus.debug.holds(olympus.jit(fun, hold="auto"), y).reason == "sizes are symbolic"
    off = olympus.debug.holds(olympus.jit(fun, hold="off"), onp.ones((3, 4)))
    assert not off.lines and off.reason == 'hold is "off"'


def exported(steps):
    fun, y = olympus.grad(integrated(steps)), onp.ones((3, 4))
    artifact = olympus.export.export(olympus.jit(fun))(y).serialize()
    return olympus.export.deserialize(artifact).call, y


def test_exported_integrators_grow_linearly(hold):
    """Holds are in the artifact: the process that calls it may have them off."""
    made = [exported(steps) for steps in (3, 24)]
    with config.hold("off"):
        few, many = (instructions(fun, y) for fun, y in made)
    assert math.log(many / few) / math.log(8) < 1.1


def test_exported_results_are_those_without(hold):
    call, y = exported(3)
    y = onp.linspace(0.1, 1.2, 12).reshape(3, 4)
    np.testing.assert_allclose(call(y), olympus.grad(integrated(3))(y), rtol=2e-5)
    np.testing.assert_allclose(olympus.jit(lambda y: 2 * call(y))(y), 2 * call(y), rtol=2e-5)


def test_engines_of_others_get_no_holds(hold):
    loss, y = integrated(3), onp.ones((3, 4))
    found = olympus.export.export(olympus.jit(loss))(y)
    assert "inlineable" in found.mlir_module()
    module = read_module(found.mlir_module_serialized)
    drop_identities(module)
    assert "call @" not in str(module) and module.operation.verify()


@pytest.fixture(scope="module")
def results(request):
    return eight_devices.outcomes(hold_cases, request)


@pytest.mark.parametrize("case", hold_cases.CASES)
def test_on_several_devices(results, case):
    assert not results[case], results[case]


@pytest.mark.slow
def test_over_devices_programs_have_the_values_and_collectives_that_they_have_without():
    """Generated ones, held as far as can be, and integrators."""
    eight_devices.python("tools/hold_sweep.py", "--count", "4", "--least", "1", "1",
                         "lorenz_gradient_2", "burgers_gradient_3")
