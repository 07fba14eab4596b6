"""Loops beyond `scan` and `while_loop` as such: checkpoints, progress bars, order, bad elements."""

import io
import math
import re
import sys

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import grad, jit, jvp, lax, linearize, value_and_grad, vmap
from olympus._src.control_flow import progress
from olympus._src.interpreters.dce import dce_closed
from olympus.experimental import io_callback
from olympus.extend.core import Primitive
from olympus.interpreters import ad, mlir


def looped(x, n, checkpoints):
    def body(state):
        i, x, a = state
        return i + 1, onp.sin(x) * a + x, a * 0.9

    return lax.while_loop(lambda s: s[0] < n, body, (0, x, 1.1), checkpoints=checkpoints)[1]


def unrolled(x, n):
    a = 1.1
    for _ in range(n):
        x, a = onp.sin(x) * a + x, a * 0.9
    return x


@pytest.mark.parametrize("n", [0, 1, 2, 5, 13])
@pytest.mark.parametrize("checkpoints", [1, 2, 3, 20])
def test_gradient_of_a_while_loop_is_that_of_the_unrolled_loop(n, checkpoints):
    value, slope = jit(value_and_grad(lambda x: looped(x, n, checkpoints)))(0.7)
    expected = value_and_grad(lambda x: unrolled(x, n))(0.7)
    np.testing.assert_allclose([value, slope], expected, rtol=1e-5)


def test_checkpointed_while_loop_under_other_transformations():
    xs, ns = onp.array([0.3, 0.7, 1.2]), np.array([3, 7, 0])
    expected = [grad(lambda x, n=n: unrolled(x, int(n)))(x) for x, n in zip(xs, ns, strict=True)]
    np.testing.assert_allclose(vmap(grad(lambda x, n: looped(x, n, 2)))(xs, ns), expected, 1e-5)
    total = grad(lambda xs: vmap(lambda x, n: looped(x, n, 2))(xs, ns).sum())
    np.testing.assert_allclose(total(xs), expected, 1e-5)
    forward = jvp(lambda x: looped(x, 5, 2), (0.7,), (1.0,))
    np.testing.assert_allclose(forward, jvp(lambda x: unrolled(x, 5), (0.7,), (1.0,)), 1e-5)
    np.testing.assert_allclose(linearize(lambda x: looped(x, 5, 2), 0.7)[1](1.0), forward[1], 1e-5)
    over = jvp(grad(lambda x: looped(x, 5, 2)), (0.7,), (1.0,))
    np.testing.assert_allclose(over, jvp(grad(lambda x: unrolled(x, 5)), (0.7,), (1.0,)), 1e-4)
    power = lambda a: lax.while_loop(
        lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * a), (0, 1.0), checkpoints=2)[1]
    assert float(grad(power)(2.0)) == 80.0      # closed-over values have derivatives too


def again(n, checkpoints):
    """Griewank & Walther 2000: the least number of iterations run again to undo n of them."""
    r = 0
    while math.comb(checkpoints + r, checkpoints) < n:
        r += 1
    return r * n - (math.comb(checkpoints + r, checkpoints + 1) if r else 0)


@pytest.mark.parametrize(("n", "checkpoints"), [(10, 2), (10, 3), (25, 3), (60, 4), (30, 40)])
def test_while_loop_runs_as_few_iterations_again_as_the_schedule_says(n, checkpoints):
    runs = [0]

    def count(x):
        runs[0] += 1
        return x

    @olympus.custom_jvp
    def counted(x):
        return io_callback(count, x, x)

    counted.defjvp(lambda primals, tangents: (counted(*primals), tangents[0]))

    def f(x):
        return lax.while_loop(lambda s: s[0] < n,
                              lambda s: (s[0] + 1, counted(s[1]) * onp.cos(s[1])),
                              (0, x), checkpoints=checkpoints)[1]

    slope = jit(grad(f))(0.4)
    olympus.effects_barrier()
    assert np.isfinite(slope)
    # Forwards; again up to each iteration; once more in each, for its residuals.
    assert runs[0] <= n + again(n, checkpoints) + n


def test_memory_of_a_checkpointed_while_loop_does_not_grow_with_its_length():
    def f(x, n):
        return looped(x, n, 8).sum()

    x = onp.ones(1000)
    compiled = jit(grad(f)).lower(x, 1000).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 30 * x.nbytes   # whatever n
    assert np.isfinite(compiled(x, 10_000)).all()


def test_while_loop_checkpoints_errors():
    for bad in (0, -1, True, 1.5):
        with pytest.raises(ValueError, match="checkpoints is"):
            looped(0.1, 3, bad)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [0, 1, 7, 12])
def test_scan_in_stretches_is_the_scan(n, reverse):
    def f(x, xs, **options):
        def body(c, a):
            c = onp.sin(c) * a + c
            return c, c * 2

        c, ys = lax.scan(body, x, xs, reverse=reverse, **options)
        return c.sum() + (ys * onp.arange(n)[:, None]).sum()

    x, xs = onp.array([0.3, 0.7]), onp.linspace(0.1, 1.0, n)
    expected = value_and_grad(f, (0, 1))(x, xs)
    for checkpoint in (1, 3, 20, "sqrt"):
        found = jit(lambda x, xs, k=checkpoint: value_and_grad(f, (0, 1))(x, xs, checkpoint=k))
        olympus.tree.map(lambda a, e: np.testing.assert_allclose(a, e, 1e-4, 1e-6),
                         found(x, xs), expected)


def test_scan_in_stretches_needs_less_memory():
    def temporaries(checkpoint):
        def f(x):
            return lax.scan(lambda c, _: (onp.sin(c) * 1.1 + c, None), x, None, 10_000,
                            checkpoint=checkpoint)[0].sum()

        compiled = jit(grad(f)).lower(onp.ones(100)).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    assert temporaries("sqrt") * 20 < temporaries(None)
    for bad in (0, "square", True):
        with pytest.raises(ValueError, match="scan: checkpoint is"):
            temporaries(bad)


def shown(monkeypatch, capsys, fun, *args, tqdm):
    if not tqdm:
        monkeypatch.setattr(progress.importlib.util, "find_spec", lambda name: None)
    olympus.block_until_ready(fun(*args))
    olympus.effects_barrier()
    return capsys.readouterr().err


@pytest.mark.parametrize("tqdm", [True, False])
def test_progress_bar(monkeypatch, capsys, tqdm):
    def f(x):
        return lax.scan(lambda c, _: (onp.sin(c), None), x, None, 1000, progress="train")[0].sum()

    text = shown(monkeypatch, capsys, jit(f), onp.ones(2), tqdm=tqdm)
    assert "train" in text and "1000/1000" in text
    assert text.count("train") <= 60
    both = shown(monkeypatch, capsys, jit(grad(f)), onp.ones(2), tqdm=tqdm)
    assert "train:" in both and "train backward:" in both
    one = shown(monkeypatch, capsys, jit(vmap(f)), onp.ones((8, 2)), tqdm=tqdm)
    assert one.count("1000/1000") == 1
    loop = jit(lambda n: lax.fori_loop(0, n, lambda i, x: x + 1.0, 0.0, progress=True))
    assert "fori_loop" in (text := shown(monkeypatch, capsys, loop, 77, tqdm=tqdm))
    assert "77/77" in text
    short = lambda: lax.fori_loop(0, 3, lambda i, x: x, 0.0, progress="a")
    assert "3/3" in shown(monkeypatch, capsys, short, tqdm=tqdm)


def lines(text):
    """What each bar shows at its end."""
    return [part for part in re.split(r"[\r\n]+", text) if "100%" in part]


@pytest.mark.parametrize("reverse", [False, True])
def test_progress_bar_of_a_checkpointed_scan_is_shown_once(monkeypatch, capsys, reverse):
    def f(x):
        return lax.scan(lambda c, _: (onp.sin(c), None), x, None, 100, reverse=reverse,
                        checkpoint=3, progress="train")[0]

    text = shown(monkeypatch, capsys, jit(grad(f)), 1.0, tqdm=False)
    ends = [part.strip() for part in lines(text)]
    assert ends == ["train: 100% 100/100", "train backward: 100% 100/100"]


def test_progress_bar_under_vmap_of_a_traced_bound(monkeypatch, capsys):
    def f(n):
        return lax.fori_loop(0, n, lambda i, x: x + 1.0, 0.0, progress="count")

    for transform in (lambda f: f, jit):
        text = shown(monkeypatch, capsys, transform(vmap(f)), np.array([3, 5]), tqdm=False)
        assert [part.strip() for part in lines(text)] == ["count: 100% 5/5"]


def test_progress_costs_nothing_when_off():
    def program(**options):
        return str(olympus.make_olympuspr(
            lambda x: lax.scan(lambda c, _: (c * 2, None), x, None, 5, **options)[0])(1.0))

    assert program() == program(progress=False)
    assert "progress" in program(progress=True)


# Order of effects -----------------------------------------------------------------------------

def test_ordered_callbacks_keep_their_order_through_loops_branches_and_calls():
    log = []

    def say(x):
        io_callback(lambda v: log.append(int(v)), None, x, ordered=True)

    @jit
    def inner(x):
        say(-1)
        return x

    def body(i, x):
        say(i)
        lax.cond(i % 2 == 0, lambda: say(100 + i), lambda: None)
        return inner(x)

    def test(i):
        say(200 + i)
        return i < 1

    @jit
    def f(x):
        say(-2)
        x = lax.fori_loop(0, 3, body, x)
        lax.while_loop(test, lambda i: i + 1, 0)
        say(-3)
        return x

    expected = [-2, 0, 100, -1, 1, -1, 2, 102, -1, 200, 201, -3]
    for _ in range(3):
        f(1.0)
    say(7)      # not compiled: waits for the programs before it
    olympus.effects_barrier()
    assert log == expected * 3 + [7]


@pytest.mark.parametrize("transform", [lambda f: f, jit])
def test_branches_with_effects_under_a_mapped_predicate_run_where_they_are_taken(transform):
    log = []

    def f(x, scale):
        def big(y):
            olympus.debug.callback(lambda v: log.append(float(v)), x)
            return y * scale

        return lax.cond(x > 1, big, lambda y: -y, x)

    xs = np.arange(4.0, dtype="f")
    out = transform(vmap(f, (0, None)))(xs, 10.0)
    olympus.effects_barrier()
    np.testing.assert_array_equal(out, [0, -1, 20, 30])
    assert log == [2.0, 3.0]
    assert transform(vmap(f, (0, None)))(xs[:0], 10.0).shape == (0,)
    with pytest.raises(ValueError, match="elements have no"):
        transform(vmap(lambda x: lax.cond(x > 1, lambda: io_callback(
            lambda v: v, x, x, ordered=True), lambda: x)))(xs)


@pytest.mark.parametrize("transform", [lambda f: f, jit])
def test_elements_that_have_ended_have_no_effects(transform):
    log = []

    def f(n, step):
        def body(c):
            io_callback(lambda v: log.append(int(v)), None, c)
            return c - step

        return lax.while_loop(lambda c: c > 0, body, n)

    out = transform(vmap(f, (0, None)))(np.array([1, 3, 0]), 1)
    olympus.effects_barrier()
    np.testing.assert_array_equal(out, [0, 0, 0])
    assert sorted(log) == [1, 1, 2, 3]


def test_printing_a_key_prints_its_data(capsys):
    for transform in (lambda f: f, jit):
        transform(lambda k: olympus.debug.print("{}", k))(olympus.random.key(7))
        olympus.effects_barrier()
        assert capsys.readouterr().out == "[0 7]\n"


def test_sequential_callback_over_an_empty_batch():
    for method in ("sequential", "sequential_unrolled"):
        f = vmap(lambda x, m=method: olympus.pure_callback(lambda v: v, x, x, vmap_method=m))
        assert f(onp.zeros((0,))).shape == (0,)


X4 = np.arange(4.0, dtype="f")


@pytest.mark.parametrize(("error", "message", "fun"), [
    (TypeError, "scan: .*'x'", lambda: lax.scan(lambda c, x: (c, x), 0, X4, unroll="x")),
    (ValueError, r"map: .*leading sizes differ \(xs\[0\]: 4, xs\[1\]: 3\)",
     lambda: lax.map(lambda x: x, (X4, X4[:3]), batch_size=2)),
    (ValueError, "map: batch_size is 2.0", lambda: lax.map(lambda x: x, X4, batch_size=2.0)),
    (ValueError, r"map: .*xs is float32\[\]", lambda: lax.map(lambda x: x, X4[0])),
    (TypeError, r"associative_scan: .* the result is int32\[2\], required float32\[2\]",
     lambda: lax.associative_scan(lambda a, b: (a + b).astype("int32"), X4)),
    (TypeError, r"associative_scan: .* the result is float32\[\], required float32\[2\]",
     lambda: lax.associative_scan(lambda a, b: (a + b).sum(), X4)),
    (TypeError, "switch: branches argument should be a sequence", lambda: lax.switch(0, lambda: 1)),
    (TypeError, r"pure_callback: three returned float32\[3\] as result 0; float32\[\]",
     lambda: olympus.pure_callback(three, X4[0], 1.0)),
    (TypeError, "pure_callback: 's' of type str given",
     lambda: olympus.pure_callback(three, X4[0], "s")),
])
def test_wrong_arguments_are_named(error, message, fun):
    with pytest.raises(error, match=message):
        fun()


def three(x):
    return np.ones(3, "f")


# vmap of loops that end at different times ------------------------------------------------------

def test_elements_that_have_ended_do_not_divide_by_zero_or_call_back():
    def countdown(x):
        return lax.while_loop(lambda s: s[0] > 0, lambda s: (s[0] - 1, s[1] + 1 / s[0]), (x, 0.0))

    with olympus.debug_nans(True), olympus.debug_infs(True):
        _, sums = jit(vmap(countdown))(onp.array([3.0, 0.0, 1.0]))
    np.testing.assert_allclose(sums, [1 + 1 / 2 + 1 / 3, 0, 1], 1e-6)

    def positive(v):
        assert v > 0, v
        return v

    def called(x):
        return lax.while_loop(lambda s: s > 0, lambda s: olympus.pure_callback(
            positive, s, s, vmap_method="sequential") - 1, x)

    assert not jit(vmap(called))(onp.array([3.0, 0.0, 1.0])).any()
    assert vmap(called)(onp.zeros((0,))).shape == (0,)


def test_a_callback_raises_its_own_exception():
    class Mine(Exception):
        pass

    def bad(x):
        raise Mine(f"at {x}")

    f = jit(lambda x: olympus.pure_callback(bad, x, x) + 1)
    for _ in range(2):
        with pytest.raises(Mine, match=re.escape("at 2.0")) as caught:
            f(2.0).block_until_ready()
        assert any(entry.name == "bad" for entry in caught.traceback)
    with pytest.raises(Mine):
        jit(lambda x: olympus.debug.callback(bad, x))(1.0)
        olympus.effects_barrier()


def test_an_error_in_a_loop_with_disabled_jit_has_no_error_of_ours_before_it():
    """Regression: "During handling of the above exception" followed a ConcretizationTypeError."""
    def bad(v):
        raise RuntimeError("the user's")

    with olympus.disable_jit(), pytest.raises(RuntimeError) as caught:
        olympus.eval_shape(lambda x: lax.while_loop(lambda v: v < 3, bad, x), 1.0)
    assert caught.value.__context__ is None


def test_disabled_jit_checks_what_a_condition_returns():
    with olympus.disable_jit():
        assert int(lax.while_loop(lambda x: x < 3, lambda x: x + 1, 0)) == 3
        with pytest.raises(TypeError, match="must return a boolean scalar"):
            lax.while_loop(lambda x: (x < 3,), lambda x: x + 1, 0)


X2 = np.array([0.5, 1.5], np.float32)
CONTROL = {     # all of control flow, with as many derivatives as it has when it is compiled
    "cond": lambda x: lax.cond(x[0] > 0, onp.sin, onp.cos, x),
    "switch": lambda x: lax.switch(1, [onp.sin, onp.cos], x),
    "while": lambda x: lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, onp.sin(c[1])), (0, x), checkpoints=2)[1],
    "fori_loop": lambda x: lax.fori_loop(0, 3, lambda i, c: onp.sin(c) * i, x),
    "scan": lambda x: lax.scan(lambda c, a: (c * a, onp.sin(c)), x[0], x)[1],
    "reversed scan": lambda x: lax.scan(lambda c, a: (c * a, c), x[0], x, reverse=True)[1],
    "map": lambda x: lax.map(onp.sin, x), "map by one": lambda x: lax.map(onp.sin, x, batch_size=1),
    "associative_scan": lambda x: lax.associative_scan(onp.multiply, x),
    "checkpoint": lambda x: olympus.checkpoint(onp.sin)(x),
    "linear solve": lambda x: lax.custom_linear_solve(
        lambda y: y * 2, x, lambda f, b: b / 2, lambda f, b: b / 2),
}
TAKEN = {
    "value": lambda f: f, "grad": lambda f: grad(lambda x: f(x).sum()),
    "jvp": lambda f: lambda x: olympus.jvp(f, (x,), (x,))[1],
    "vmap": lambda f: lambda x: vmap(f)(onp.stack([x, x * 2])),
    "vmap of grad": lambda f: lambda x: vmap(grad(lambda x: f(x).sum()))(onp.stack([x, -x])),
}


@pytest.mark.parametrize("taken", TAKEN)
@pytest.mark.parametrize("name", CONTROL)
def test_disabled_jit_gives_what_the_compiled_program_gives(name, taken):
    f = TAKEN[taken](CONTROL[name])
    want = f(X2)
    with olympus.disable_jit():
        np.testing.assert_allclose(f(X2), want, rtol=1e-5, atol=1e-6)


def test_disabled_jit_differentiates_a_while_loop_in_python():
    double = lambda x: lax.while_loop(lambda x: x < 10.0, lambda x: x * 2, x)
    with olympus.disable_jit():
        assert float(grad(double)(1.0)) == 16.0
        np.testing.assert_array_equal(vmap(double)(np.array([3.0, 4.0])), [12.0, 16.0])


def test_debug_log_goes_to_the_logger(caplog):
    with caplog.at_level("INFO", logger="another"):     # the root's level stays WARNING
        jit(lambda x: olympus.debug.log("x = {x}", x=x))(2.0)
        olympus.effects_barrier()
    assert [(r.name, r.levelname, r.message) for r in caplog.records] == [
        ("olympus.debug", "INFO", "x = 2.0")]


# The prompt ------------------------------------------------------------------------------------

def test_breakpoint(monkeypatch):
    @jit
    def f(x, unused=3):
        y = onp.sin(x)
        olympus.debug.breakpoint(num_frames=1)
        return y * unused

    out = io.StringIO()
    monkeypatch.setattr(sys, "stdin", io.StringIO("p y\nx * unused\nnope\nbt\nu\nc\n"))
    monkeypatch.setattr(sys, "stdout", out)
    result = f(2.0)
    olympus.effects_barrier()
    text = out.getvalue()
    assert "-> " in text and "olympus.debug.breakpoint" in text
    assert "Array(0.909297" in text and "Array(6." in text
    assert "NameError" in text and "no such frame" in text
    np.testing.assert_allclose(result, 3 * np.sin(2.0), 1e-6)
    monkeypatch.setattr(sys, "stdin", io.StringIO("q\n"))
    with pytest.raises(RuntimeError, match=r"debug.breakpoint: quit"):
        f(2.0).block_until_ready()
    with pytest.raises(ValueError, match="backend is 'web'"):
        olympus.debug.breakpoint(backend="web")


def test_breakpoint_takes_streams():
    given, out = io.StringIO("x\nc\n"), io.StringIO()

    def f(x):
        olympus.debug.breakpoint(num_frames=1, stdin=given, stdout=out)
        return x

    jit(f)(2.0)
    olympus.effects_barrier()
    assert "Array(2., " in out.getvalue()
    with pytest.raises(TypeError, match="'input' given; stdin, stdout and completekey"):
        olympus.debug.breakpoint(input=given)


def test_copies_to_the_host_are_begun_by_what_can():
    class Own:
        def copy_to_host_async(self):
            begun.append(self.begins)

    begun, own = [], Own()
    with pytest.raises(AttributeError, match="begins"):
        olympus.copy_to_host_async([onp.ones(2), own, 3])
    own.begins = True
    assert olympus.copy_to_host_async([own])[0] is own and begun == [True]


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX")
@pytest.mark.filterwarnings("ignore:os.fork")      # the child begins another program
def test_breakpoint_on_a_pseudo_terminal(tmp_path):
    import os
    import pty
    import select

    program = tmp_path / "program.py"
    program.write_text("import olympus\nf = olympus.jit(lambda x: (olympus.debug.breakpoint(), x)"
                       "[1] + 1)\nprint('RESULT', f(2.0))\n")
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, str(program)])
    text, commands = b"", [b"x * 21\n", b"c\n"]
    while select.select([terminal], [], [], 100)[0]:
        try:
            text += os.read(terminal, 4096)
        except OSError:     # how a pseudo-terminal says that the program has ended
            break
        if text.rstrip().endswith(b"(oldb)") and commands:
            os.write(terminal, commands.pop(0))
            text += b"\n"
    os.waitpid(pid, 0)
    assert b"Array(42." in text and b"RESULT 3.0" in text


@pytest.mark.parametrize("bounds", ["static", "traced"])
@pytest.mark.parametrize("body, message", [
    (lambda i, d: {"n": d["n"] + 1.5}, r".* the value\['n'\] is float32\[\], requ"),
    (lambda i, d: (d, d), ".* found tuple of length 2; required dict"),
    (lambda i, d: {"n": [1, 2]}, r".* at \['n'\]: found list")])
def test_fori_loop_says_which_function_changes_the_carry_and_where_it_is(bounds, body, message):
    def run(n):
        return lax.fori_loop(0, n, body, {"n": np.int32(1)})

    line = body.__code__.co_firstlineno
    with pytest.raises(TypeError, match=(
            rf"fori_loop: .*the value that <lambda> \(.*test_loops.py:{line}\) "
            rf"returns differs from its input{message}")):
        run(3) if bounds == "static" else jit(run)(3)


def test_fori_loop_names_what_is_no_array():
    with pytest.raises(TypeError, match=r"fori_loop: init_val: 'a' of type str given at \['x'\]"):
        lax.fori_loop(0, 3, lambda i, x: x, {"x": "a"})


@pytest.mark.parametrize("checkpoints", [1, 2, 7])
def test_gradients_of_a_checkpointed_while_loop_have_gradients(checkpoints):
    def looped(x):
        return lax.while_loop(
            lambda s: s[0] < 5, lambda s: (s[0] + 1, onp.sin(s[1]) * 1.5 + s[2] * x, s[2] * 0.9),
            (0, x, 0.3 * x), checkpoints=checkpoints)[1]

    def unrolled(x):
        a, b = x, 0.3 * x
        for _ in range(5):
            a, b = onp.sin(a) * 1.5 + b * x, b * 0.9
        return a

    expected = jit(grad(grad(unrolled)))
    np.testing.assert_allclose(jit(grad(grad(looped)))(0.7), expected(0.7), rtol=1e-4)
    if checkpoints == 2:
        np.testing.assert_allclose(jit(vmap(grad(grad(looped))))(np.array([0.7, 0.2], "f")),
                                   [expected(0.7), expected(0.2)], rtol=1e-4)
        np.testing.assert_allclose(jit(jvp, static_argnums=0)(grad(looped), (0.7,), (1.0,))[1],
                                   expected(0.7), rtol=1e-4)


SCALE = 2.0


@pytest.mark.parametrize("loop", [
    lambda f: lax.map(f, onp.ones(2))[0], lambda f: lax.map(f, onp.ones(3), batch_size=2)[0],
    lambda f: lax.scan(lambda c, _: (f(c), None), 1.0, None, length=1)[0],
    lambda f: lax.fori_loop(0, 1, lambda _, c: f(c), 1.0),
    lambda f: lax.cond(True, f, lambda x: x, 1.0),
    lambda f: lax.while_loop(lambda c: c == 1, f, 1.0)])
def test_a_body_is_traced_again_where_what_it_reads_has_changed(loop, monkeypatch):
    factor = 3.0

    def f(x):
        return x * factor * SCALE

    assert loop(f) == 6.0
    factor = 5.0
    assert loop(f) == 10.0
    monkeypatch.setitem(globals(), "SCALE", 4.0)
    assert loop(f) == 20.0


# What nothing reads ------------------------------------------------------------------------------

def test_carries_of_a_while_loop_that_nothing_reads_are_not_computed():
    def f(x, n, a):
        return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 2, s[2] * s[1], a),
                              (0, x, x, x))

    def loop(wanted):
        program = olympus.make_olympuspr(f)(1.0, 3, 2.0)
        less, used = dce_closed(program, [i == wanted for i in range(4)])
        return len(less.eqns[0].outvars), used

    # The counter stays for the condition, the second carry for the third one's sake.
    assert [loop(i) for i in range(4)] == [(1, [False, True, False]), (2, [True, True, False]),
                                           (3, [True, True, False]), (2, [True, True, True])]


def test_a_while_loop_without_carries_has_its_effects(capfd):
    def f(x, going):
        lax.while_loop(lambda _: going, lambda c: (olympus.debug.print("round"), c + 1)[1], x)
        return x

    assert jit(f)(1.0, False) == 1.0
    olympus.effects_barrier()
    assert "stablehlo.while()" in jit(f).lower(1.0, False).as_text()
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("length", [1, 5])
@pytest.mark.parametrize("reverse", [False, True])
def test_rows_of_bfloat16_are_not_converted_at_each_step(length, reverse):
    """XLA:CPU of jaxlib 0.10 converts all rows to write one; it writes their bits in place."""
    x = onp.asarray(np.linspace(-3, 3, 2 * length).reshape(length, 2), "bfloat16")

    def f(x):
        return lax.scan(lambda c, v: (c + v, (v * c, v)), onp.zeros(2, x.dtype), x, reverse=reverse)

    carry, rows, order = np.zeros(2, x.dtype), [], range(length)
    for i in reversed(order) if reverse else order:
        v = np.asarray(x[i])
        rows.insert(0 if reverse else len(rows), v * carry)
        carry = carry + v
    found = olympus.jit(f)(x)
    assert found[1][0].dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(found[0]), carry)
    np.testing.assert_array_equal(np.asarray(found[1][0]), np.stack(rows))
    np.testing.assert_array_equal(np.asarray(found[1][1]), np.asarray(x))
    text = olympus.jit(f).lower(x).as_text()
    assert f"tensor<{length}x2xui16>" in text and "dynamic_update_slice" in text


def _unrolled(start, stop, body, total):
    for i in range(start, stop):
        total = body(i, total)
    return total


@pytest.mark.parametrize(("dtype", "far"), [("float32", 1e-5), ("bfloat16", 0.1),
                                            ("complex64", 1e-5)])
def test_gradients_of_a_const_that_a_loop_reads_at_several_places(dtype, far):
    table = onp.asarray(np.random.default_rng(0).normal(size=(5, 3)), dtype)

    def slope(loop):
        def f(table):
            def body(i, total):
                row, other = table[i], table[(3 * i) % 5]
                return total + (row * other).sum() + (table[1:3] ** 2).sum() * i

            return loop(0, 4, body, onp.zeros((), dtype)).real.astype(np.float32)

        return olympus.grad(f)

    want = np.asarray(jit(slope(_unrolled))(table), np.complex64)
    for run in (slope(lax.fori_loop), jit(slope(lax.fori_loop))):
        np.testing.assert_allclose(np.asarray(run(table), np.complex64), want, rtol=far, atol=far)


def test_a_loop_that_reads_two_rows_makes_no_dense_zeros_for_their_gradients():
    def f(table):
        return lax.fori_loop(0, 4, lambda i, s: s + (table[i] * table[(3 * i) % 5]).sum(), 0.0)

    program = olympus.make_olympuspr(olympus.grad(f))(onp.ones((5, 3)))
    back = [eqn for eqn in program.eqns if eqn.primitive.name == "scan"][-1]
    whole = {eqn.primitive.name for eqn in back.params["olympuspr"].eqns
             for v in eqn.outvars if v.aval.shape == (5, 3)}
    assert whole == {"dynamic_update_slice"}


@pytest.mark.parametrize(("size", "how_many"), [(200, 1), (50_000, 0)])
def test_a_loop_of_small_steps_is_one_function(size, how_many):
    """XLA's own limit is 1 KB a step."""
    xs = np.linspace(0, 1, 3 * size, dtype=np.float32).reshape(3, size)

    def step(c, x):
        return onp.concatenate([x[:1], c[:-1] * x[1:]]), c[0]

    run = jit(lambda c, xs: lax.scan(step, c, xs)).lower(xs[0], xs).compile()
    assert run.as_text().count("xla_cpu_small_call") == how_many
    carry, wanted = xs[0], []
    for x in xs:
        wanted.append(carry[0])
        carry = np.concatenate([x[:1], carry[:-1] * x[1:]])
    found = run(xs[0], xs)
    np.testing.assert_allclose(found[0], carry, rtol=1e-6)
    np.testing.assert_array_equal(found[1], wanted)


def test_loops_that_need_a_library_compile_as_before():
    def step(c, x):
        low = onp.sort(c * x)
        return low + onp.fft.fft(low).real, c.reshape(2, 4) @ onp.ones((4, 4)) + x[0]

    x = np.arange(24, dtype=np.float32).reshape(3, 8) / 9
    carry, rows = jit(lambda c, xs: lax.scan(step, c, xs))(x[0], x)
    found = x[0].astype(np.float64)
    for row, v in zip(rows, x):
        np.testing.assert_allclose(row, found.reshape(2, 4) @ np.ones((4, 4)) + v[0], rtol=1e-5)
        low = np.sort(found * v)
        found = low + np.fft.fft(low).real
    np.testing.assert_allclose(carry, found, rtol=1e-5)


@pytest.mark.parametrize("loop", ["fori_loop", "scan", "while_loop"])
def test_values_that_a_body_hands_on_to_the_next_run_take_no_round_of_their_own(loop):
    rounds, last = [], Primitive("last")
    last.def_abstract_eval(lambda x: x)
    ad.primitive_jvps[last] = lambda xs, ts: rounds.append(1) or (last.bind(*xs), *ts)
    mlir.register_lowering(last, lambda ctx, x: [x])

    def step(c):
        return (last.bind(c[0]), *c[:-1])

    def line(x):
        c = (x, *[1.0] * 20)
        if loop == "fori_loop":
            return lax.fori_loop(0, 3, lambda i, c: step(c), c)
        if loop == "scan":
            return lax.scan(lambda c, _: (step(c), None), c, None, length=3)[0]
        return lax.while_loop(lambda nc: nc[0] < 3, lambda nc: (nc[0] + 1, step(nc[1])), (0, c))[1]

    slopes = jit(lambda x: jvp(line, (x,), (5.0,))[1])(2.0)
    assert [float(t) for t in slopes] == [5.0] * 4 + [0.0] * 17 and len(rounds) == 1
