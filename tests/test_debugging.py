"""The doctors of `olympus.debug`: NaN, rounding, and where two runs part."""

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus.debug import bisect, find_nan, precision, record
from olympus.sharding import AxisType, PartitionSpec as P


def line_of(text):
    """The number of the line of this file that has the text."""
    with open(__file__) as file:
        return next(i for i, line in enumerate(file, 1) if text in line)


def places(text):
    return f"test_debugging.py:{line_of(text)}"


def chosen(x):
    return onp.where(x > 0, onp.log(x), 0.0).sum()      # the hazard


@pytest.mark.parametrize("transform", [
    olympus.grad, lambda f: olympus.jit(olympus.grad(f)), lambda f: olympus.grad(olympus.jit(f)),
    olympus.jacrev, lambda f: olympus.vmap(olympus.grad(lambda x: f(x[None])))],
    ids=["grad", "jit of grad", "grad of jit", "jacrev", "vmap of grad"])
def test_the_hazard_of_where_is_found_in_the_forward_line(transform):
    found = find_nan(transform(chosen), onp.array([1.0, 0.0]))
    assert found.operation == "div"
    assert places("# the " + "hazard") in found.forward
    assert "safe = onp.where(ok, x, 1.0)" in str(found)


def test_what_has_no_nan_has_none():
    assert find_nan(olympus.grad(lambda x: onp.where(
        x > 0, onp.log(onp.where(x > 0, x, 1.0)), 0.0).sum()), onp.array([1.0, 0.0])) is None
    assert find_nan(lambda x: x, onp.nan) is None       # no operation makes it


def by_scan(x):
    def body(c, a):
        return onp.sqrt(c - a), c       # planted in a scan
    return lax.scan(body, x, onp.array([1.0, 1.0, 1.0, 2.0, 3.0]))[0]


def by_while(x):
    return lax.while_loop(
        lambda c: c[0] < 5,
        lambda c: (c[0] + 1, onp.log(c[1])), (0, x))[1]     # planted in a while loop


def by_cond(x):
    return lax.cond(x > 0, lambda x: onp.log(-x), lambda x: x, x)       # planted in a branch


def by_checkpoint(x):
    return olympus.checkpoint(lambda x: onp.log(-x))(x)     # planted in checkpoint


@olympus.custom_jvp
def by_custom(x):
    return onp.log(-x)      # planted in a custom function


by_custom.defjvp(lambda p, t: (by_custom(*p), t[0]))
PLANTED = {"a scan": (by_scan, 3), "a while loop": (by_while, 3), "a branch": (by_cond, 0),
           "checkpoint": (by_checkpoint, 0), "a custom function": (by_custom, 0)}


@pytest.mark.parametrize("transform", [lambda f: f, olympus.jit, olympus.vmap],
                         ids=["", "jit", "vmap"])
@pytest.mark.parametrize("what", PLANTED)
def test_a_planted_nan_is_found_at_its_place(what, transform):
    if what in ("a while loop", "a branch") and transform is olympus.vmap:
        pytest.skip("the loop or branch of all elements is one operation")
    fun, time = PLANTED[what]
    x = onp.array([5.0, 500.0]) if transform is olympus.vmap else 5.0
    found = find_nan(transform(fun), x)
    assert places(f"planted in {what}") in found.line
    assert found.time == time
    if transform is olympus.vmap:
        assert found.index[0] == 0


def test_infinities_are_looked_for_where_asked():
    assert find_nan(lambda x: 1 / x, 0.0) is None
    assert find_nan(lambda x: 1 / x, 0.0, infs=True).operation == "div"


def test_the_history_has_the_operands_values():
    found = find_nan(lambda x: onp.sqrt(onp.cos(x) - 2.0), 0.0)
    assert found.operands == [-1.0]
    assert found.history[0].startswith("-1.0 = sub at ")
    assert found.history[1].startswith("1.0 = cos at ")


def variance(x):
    return (x ** 2).mean() - x.mean() ** 2      # cancels


@pytest.mark.parametrize("wrap", [lambda f: f, olympus.jit, lambda f: olympus.grad(f)],
                         ids=["", "jit", "grad"])
def test_cancellation_is_the_worst_amplifier(wrap):
    x = 1000 + onp.linspace(0.0, 1.0, 64)
    worst = precision(wrap(variance), x).operations[0]
    assert worst.operation == "sub"
    assert places("# can" + "cels") in worst.line
    assert worst.factor > 1e4


def test_errors_are_those_of_the_wider_run():
    x = np.linspace(0.0, 1.0, 64, dtype=np.float32) + 1000
    wide = x.astype(np.float64)
    exact = (wide ** 2).mean() - wide.mean() ** 2
    report = precision(variance, x)
    found = abs(float(variance(onp.asarray(x))) - exact) / exact
    assert report.errors[0] == pytest.approx(found, rel=1e-6)
    assert "against float64" in str(report)


def test_the_run_of_a_loop_that_amplifies_most_is_named():
    report = precision(lambda x: lax.fori_loop(0, 20, lambda i, x: 4 * x * (1 - x), x), 0.3)
    worst = report.operations[0]
    assert (worst.operation, worst.runs) == ("sub", 20)
    x = 0.3
    for _ in range(worst.time):
        x = 4 * x * (1 - x)
    assert 1 - x < 0.05     # where 1 - x cancels


def test_bfloat16_against_float32():
    report = precision(lambda x: (x * 3).sum(), onp.ones(100, "bfloat16") / 3, against="float32")
    assert 1e-4 < report.errors[0] < 1e-1
    with pytest.raises(TypeError, match="against='int32' given"):
        precision(lambda x: x, 1.0, against="int32")


def test_keys_and_integers_have_no_error():
    report = precision(lambda k: olympus.random.randint(k, (3,), 0, 9), olympus.random.key(0))
    assert report.errors == [0.0]


def test_the_operation_where_two_versions_part_is_found():
    def old(x):
        for _ in range(4):
            x = onp.tanh(x) + 0.5
        return x.sum()

    def new(x):
        for i in range(4):
            x = onp.tanh(x) + (0.5 if i < 2 else 0.6)       # changed
        return x.sum()

    parting = bisect(old, olympus.jit(new), onp.arange(3.0))
    assert (parting.operation, parting.time) == ("add", 2)
    assert places("# chan" + "ged") in parting.lines[1]
    assert bisect(old, old, onp.arange(3.0)) is None


def test_what_one_version_has_besides_is_passed_over():
    parting = bisect(lambda x: onp.exp(onp.sin(x)) * 2,
                     lambda x: onp.exp(onp.sin(x) * 1.0) * 3, 1.0)
    assert (parting.operation, parting.values) == ("mul", pytest.approx((
        2 * np.exp(np.sin(1.0)), 3 * np.exp(np.sin(1.0))), rel=1e-5))


@pytest.mark.parametrize("wrap", [
    lambda f: f, olympus.jit, olympus.checkpoint, lambda f: olympus.grad(lambda x: f(x).sum()),
    lambda f: lambda x: olympus.vmap(f)(x[None])],
    ids=["call", "jit", "checkpoint", "grad", "vmap"])
def test_operations_in_a_shard_map_are_compared_by_their_names(wrap):
    def mapped(shift):
        def f(x):
            return onp.exp(onp.sin(x * 2) + shift)
        return olympus.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"))

    mesh = olympus.make_mesh((1,), ("x",), (AxisType.Auto,))
    x = onp.arange(3.0)
    parting = bisect(wrap(mapped(0.5)), wrap(mapped(0.75)), x)
    assert parting.operation == "add"
    assert "onp.exp(onp.sin(x * 2) + shift)" in parting.lines[0]
    assert bisect(wrap(mapped(0.5)), wrap(mapped(0.5)), x) is None


def test_dtypes_part_beyond_the_tolerance():
    run = record(variance, 1000 + onp.linspace(0.0, 1.0, 64))
    with olympus.enable_x64(True):
        wide = record(variance, 1000 + onp.linspace(0.0, 1.0, 64))
    assert bisect(run, wide).operation == "sub"
    assert bisect(run, wide, tolerance=1e9) is None


def test_watching_changes_no_result_and_ends():
    def f(x):
        return olympus.grad(lambda x: lax.fori_loop(0, 3, lambda i, x: onp.sin(x), x))(x)

    steps = record(f, 1.0).steps
    np.testing.assert_allclose(steps[-1].value, f(1.0), rtol=1e-6)
    assert type(onp.sin(1.0)) is olympus.Array or isinstance(onp.sin(1.0), olympus.Array)


# The option: the same in the error of a compiled call.

def told(fun, *args, option=olympus.debug_nans):
    with option(True), pytest.raises(FloatingPointError) as error:
        fun(*args)
    return str(error.value)


@pytest.mark.parametrize("transform", [
    olympus.grad, lambda f: olympus.jit(olympus.grad(f)), lambda f: olympus.grad(olympus.jit(f)),
    olympus.jacrev, lambda f: olympus.jit(olympus.vmap(olympus.grad(lambda x: f(x[None])))),
    lambda f: olympus.jit(olympus.grad(olympus.checkpoint(f)))],
    ids=["grad", "jit of grad", "grad of jit", "jacrev", "jit of vmap of grad", "checkpoint"])
def test_debug_nans_tells_the_forward_line_and_the_hazard_of_where(transform):
    text = told(transform(chosen), onp.array([1.0, 0.0]))
    assert "encountered in div" in text
    assert "in the backward pass, for the operation at" in text
    assert places("# the " + "hazard") in text
    assert "; the operands there are 0.0, 0.0" in text
    assert "safe = onp.where(ok, x, 1.0)" in text
    assert "olympus.debug.find_nan" in text


@pytest.mark.parametrize(("fun", "x", "iteration", "operand"), [
    (by_scan, 4.0, 2, "-0.14440"), (by_while, 2.0, 2, "-0.36651")], ids=["scan", "while"])
def test_debug_nans_tells_the_iteration(fun, x, iteration, operand):
    text = told(olympus.jit(fun), x)
    assert places("planted in a " + fun.__name__[3:]) in text
    assert f"in iteration {iteration} of {fun.__name__[3:]} at" in text
    assert f"the operands there are {operand}" in text
    assert "backward" not in text


def test_the_iteration_of_a_backward_pass_is_that_of_the_forward_one():
    def loss(xs):
        def body(c, x):
            return c, onp.where(x > 0, onp.log(x), 0.0)     # chosen in a loop
        return lax.scan(body, 0.0, xs)[1].sum()

    text = told(olympus.jit(olympus.grad(loss)), onp.array([1.0, 2.0, 0.0, 3.0]))
    assert places("# chosen in a " + "loop") in text
    assert "in iteration 2 of scan at" in text
    assert "safe = onp.where(ok, x, 1.0)" in text


def test_a_nan_of_the_forward_pass_has_no_advice():
    text = told(olympus.jit(olympus.value_and_grad(lambda x: onp.log(x * -1.0))), 1.0)
    assert "encountered in log" in text
    assert "safe" not in text and "backward" not in text


def test_an_infinite_cotangent_times_zero_is_not_the_hazard():
    text = told(olympus.jit(olympus.grad(lambda x, y: onp.sqrt(x * y))), 1.0, 0.0)
    assert "encountered in mul" in text and "backward" in text
    assert "the operands there are inf, 0.0" in text
    assert "safe" not in text


def test_debug_infs_tells_the_element_of_an_eager_operation():
    text = told(lambda x: 1 / x, onp.array([[1.0, 2.0], [0.0, 4.0]]), option=olympus.debug_infs)
    assert "Element [1, 0]; the operands there are 1.0, 0.0" in text
