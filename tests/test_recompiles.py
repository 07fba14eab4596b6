"""What a jitted function says of being traced again: `explain`, `cache_info`, `max_traces`."""

import functools
import re
import warnings

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus.errors import RetraceError, RetraceWarning
from olympus.stages import Explanation

ONES = onp.ones(3)


def described(f, *args, **kwargs):
    why = f.explain(*args, **kwargs)
    assert not why.hit
    return [(d.where, d.now, d.before) for d in why.differences], str(why)


# Changes, with the explanation of each.
CHANGES = {
    "a shape": (lambda f: (f, {"a": onp.ones(4)}, 1), ("x['a']", "float32[4]", "float32[3]"),
                "Pad"),
    "a dtype": (lambda f: (f, {"a": onp.ones(3, int)}, 1), ("x['a']", "int32[3]", "float32[3]"),
                "astype"),
    "a key": (lambda f: (f, {"a": ONES, "b": 1.0}, 1),
              ("x['b']", "float32[] (of a Python number)", "absent"), "same keys"),
    "a static value": (lambda f: (f, {"a": ONES}, 1.0), ("the static argument k", "1.0", "1"),
                       "not static"),
    "the container": (lambda f: (f, [ONES], 1), ("x[0]", "float32[3]", "absent"), "same keys"),
}


def test_a_function_made_anew_is_explained():
    """Was: "for the first time", twelve times, of functions of one line."""
    def made():
        return olympus.jit(lambda x: x + 1)

    assert str(made().explain(1.0)) == "jit: <lambda> is traced for the first time."
    made()(1.0), made()(2.0)
    f = made()
    assert re.fullmatch(
        "jit: <lambda> is traced for the first time.\n  It is another function object than 2 "
        r"before, though of the same code, at .*test_recompiles.py:\d+\.\n  Make it and jit it "
        "once, outside of the loop or function around it.", str(f.explain(1.0)))
    f(1.0)
    assert f.explain(1.0).hit and "float32[]" in str(f.explain(1))


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_call_is_explained(change):
    f = olympus.jit(lambda x, k: x, static_argnums=1)
    first = "jit: <lambda> is traced for the first time."      # of other lambdas here, before
    assert str(f.explain({"a": ONES}, 1)).split("\n")[0] == first
    f({"a": ONES}, 1)
    assert f.explain({"a": ONES}, 1) == Explanation("<lambda>", True, ())
    call, expected, remedy = change
    f, *args = call(f)
    found, text = described(f, *args)
    assert expected in found
    assert remedy in text
    assert all(len(line) <= 100 for line in text.splitlines())


def test_a_weak_type_and_options_are_named():
    f = olympus.jit(lambda x: x * 2)
    f(onp.float32(1))
    found, text = described(f, 1.0)
    assert found == [("x", "float32[] (of a Python number)", "float32[]")]
    assert "Pass an array each time" in text
    with olympus.default_matmul_precision("highest"):
        found, text = described(f, onp.float32(1))
    assert found == [("olympus_default_matmul_precision", "highest", "None")]


def test_the_most_similar_program_is_compared():
    f = olympus.jit(lambda x, y: x.sum() + y.sum())
    f(onp.ones(3), onp.ones((2, 2)))
    f(onp.ones(5), onp.ones(7))
    assert described(f, onp.ones(4), onp.ones(7))[0] == [("x", "float32[4]", "float32[5]")]


def test_explaining_traces_nothing():
    runs = []
    f = olympus.jit(lambda x: runs.append(1) or x)
    f.explain(1.0)
    f(1.0)
    f.explain(ONES)
    assert f.cache_info().traces == len(runs) == 1


def test_cache_info_counts_traces_programs_and_code():
    f = olympus.jit(lambda x: x + 1)
    assert f.cache_info() == (0, 0, 0, 0)
    for x in (1.0, 2.0, ONES):
        f(x)
    f.lower(onp.ones(9))
    info = f.cache_info()
    assert info[:3] == (3, 3, 2)
    assert info.nbytes > 0
    f.clear_cache()
    assert f.cache_info() == (3, 0, 0, 0)


def test_calls_under_transformations_are_explained_and_not_counted_twice():
    @olympus.jit
    def counted_once(x):
        return (x * 2).sum()

    counted_once(ONES)
    before = counted_once.cache_info()
    olympus.grad(counted_once)(ONES)    # keeps the program by a shorter key as well
    assert counted_once.cache_info() == before
    assert described(counted_once, onp.ones(4))[0] == [("x", "float32[4]", "float32[3]")]
    row, = [row for row in olympus.memory_report(most=10**6).functions
            if row.name.startswith("counted_once")]
    assert (row.programs, row.executables) == (1, 1)


def test_more_traces_than_expected_warn_raise_or_call():
    with pytest.warns(RetraceWarning,
                      match=r"x is float32\[2\], before float32\[1\].*\n.*Pad") as found:
        f = olympus.jit(lambda x: x, max_traces=1)
        f(onp.ones(1))
        f(onp.ones(1))
        f(onp.ones(2))
    assert len(found) == 1
    assert found[0].filename == __file__
    f = olympus.jit(lambda x: x, max_traces=1, on_retrace="error")
    f(onp.ones(1))
    with pytest.raises(RetraceError, match=r"(?s)x is float32\[2\].*trace 2 of <lambda>"):
        f(onp.ones(2))
    told = []
    f = olympus.jit(lambda x: x, max_traces=1, on_retrace=told.append)
    f(onp.ones(1))
    assert f(onp.ones(2)).shape == (2,)
    assert [d.where for why in told for d in why.differences] == ["x"]


@pytest.mark.parametrize(("options", "match"), [
    ({"max_traces": 0}, "max_traces=0 given"), ({"max_traces": True}, "positive int"),
    ({"max_traces": 2.0}, "positive int"), ({"on_retrace": "ignore"}, "'warn', 'error' or a func"),
    ({"on_retrace": None}, "on_retrace=None")])
def test_limits_that_make_no_sense_are_refused(options, match):
    with pytest.raises(ValueError, match=match):
        olympus.jit(lambda x: x, **options)


def test_a_function_made_anew_in_a_loop_is_told_of_once():
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for i in range(30):
            olympus.jit(lambda x: x + 1)(float(i))
    assert len(found) == 1
    assert re.search(r"jit: <lambda>, written at .*test_recompiles.py:\d+.*, was made and traced "
                     "11 times", str(found[0].message))


def test_shapes_that_never_repeat_are_told_of_once():
    f = olympus.jit(functools.partial(lambda scale, batch: batch["x"] * scale, 2))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for n in range(1, 16):
            f.lower({"x": np.ones(n, np.float32)})
    assert len(found) == 1
    assert "11th shape of batch['x'], now float32[11]" in " ".join(str(found[0].message).split())


def test_shapes_that_repeat_are_fine():
    f = olympus.jit(lambda x, y: x.sum() + y.sum())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(30):
            f.lower(onp.ones(n % 5), onp.ones(n // 5))


def test_code_that_programs_share_is_counted_once():
    x, lists = onp.ones(3), olympus.jit(lambda tree: olympus.tree.leaves(tree)[0] * 1.625)
    lists([x])
    alone = lists.cache_info().nbytes
    lists((x,))     # another structure, and an equal program
    info = lists.cache_info()
    assert info.programs == 2
    assert info.nbytes == alone > 0


def test_another_rank_is_no_matter_of_padding():
    f = olympus.jit(lambda x: x * 2)
    f(onp.ones(3))
    assert "Pass arrays of one rank" in str(f.explain(onp.ones((3, 3))))
    assert "Pad" not in str(f.explain(onp.ones((3, 3))))
    assert "Pad to a few sizes" in str(f.explain(onp.ones(4)))
