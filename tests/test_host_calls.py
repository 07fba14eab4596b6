"""Calls of the host after the first ones, which C++ makes with Python around each."""

import copy
import gc
import os
import pickle
import threading
import weakref

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus.experimental import io_callback
from olympus.experimental.buffer_callback import buffer_callback

VEC = olympus.ShapeDtypeStruct((8,), "float32")
X = onp.arange(8.0)
CALLS = 5       # C++ has the program from the third on


def through_buffers(host, **options):
    def call(ctx, out, x):
        np.asarray(out)[...] = host(np.asarray(x))
    return buffer_callback(call, VEC, **options)


def debugged(host):
    def f(x):
        olympus.debug.callback(host, x)
        return x
    return f


KINDS = {
    "pure": lambda host: lambda x: olympus.pure_callback(host, VEC, x),
    "io": lambda host: lambda x: io_callback(host, VEC, x),
    "ordered": lambda host: lambda x: io_callback(host, VEC, x, ordered=True),
    "buffer": through_buffers,
    "buffer with effect": lambda host: through_buffers(host, has_side_effect=True),
}
EFFECTS = {**KINDS, "debug": debugged}
ROADS = {"jit": olympus.jit, "eager": lambda f: f,
         "loop": lambda f: lambda x: lax.fori_loop(0, 2, lambda _, x: f(x), x)}


@pytest.fixture(scope="module")
def slow():
    """A vector of ones that is computed while the caller goes on."""
    run = olympus.jit(lambda a: lax.fori_loop(0, 30, lambda _, a: a @ a * 1e-3, a)[0, :8] * 0 + 1)
    a = onp.ones((400, 400))
    run(a).block_until_ready()
    return lambda: run(a)


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("kind", KINDS)
def test_results_of_later_calls(kind, road):
    f = ROADS[road](KINDS[kind](lambda x: np.asarray(x) + 1))
    for i in range(CALLS):
        assert f(X + i).tolist() == [x + i + (2 if road == "loop" else 1) for x in range(8)]


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("kind", EFFECTS)
def test_exceptions_of_later_calls_are_the_hosts_own(kind, road):
    class Refused(Exception):
        pass

    refuses = False

    def host(x):
        if refuses:
            raise Refused("once", 2)
        return np.asarray(x)

    f = ROADS[road](EFFECTS[kind](host))
    for refuses in [False] * (CALLS - 1) + [True, True, False, True]:
        if not refuses:
            f(X)
            olympus.effects_barrier()
            continue
        with pytest.raises(Refused) as info:
            olympus.block_until_ready(f(X))
            olympus.effects_barrier()
        assert info.value.args == ("once", 2)


def test_exceptions_of_the_host_are_pickled_as_its_own():
    """Regression: PicklingError, "not the same object as builtins.ZeroDivisionError" in a pool."""
    with pytest.raises(FileNotFoundError) as info:
        olympus.pure_callback(lambda x: os.stat("/no/such/file"), X, X)
    back = pickle.loads(pickle.dumps(info.value))
    assert type(back) is FileNotFoundError and back.filename == "/no/such/file"
    assert type(copy.copy(info.value)) is FileNotFoundError


@pytest.mark.parametrize("kind", EFFECTS)
def test_a_later_call_that_waits_for_its_operands_keeps_the_function(kind, slow):
    seen = []

    class Model:
        def __init__(self):
            self.step = olympus.jit(EFFECTS[kind](self.host))

        def host(self, x):
            seen.append(float(x[1]))
            return np.asarray(x)

    model = Model()
    for _ in range(CALLS):
        model.step(X)
    out, left = model.step(slow()), weakref.ref(model)
    del model
    gc.collect()
    assert out.tolist() == [1.0] * 8
    olympus.effects_barrier()
    gc.collect()
    assert seen == [1.0] * (CALLS + 1)
    assert left() is None


def test_programs_dropped_while_one_of_them_runs():
    def drop(x):
        olympus.clear_caches()
        gc.collect()
        return np.asarray(x)

    f = olympus.jit(lambda x: olympus.pure_callback(
        lambda x: np.asarray(x) + 1, VEC, olympus.pure_callback(drop, VEC, x)))
    for _ in range(CALLS):
        assert f(X).tolist() == (X + 1).tolist()


def test_ordered_calls_of_later_runs_keep_their_order(slow):
    seen = []

    def f(i, x):
        olympus.debug.callback(lambda i, _: seen.append(int(i)), i, x, ordered=True)
        return x

    f = olympus.jit(f)
    for i in range(12):
        f(np.int32(i), slow() if i % 4 == 2 else X)
    olympus.effects_barrier()
    assert seen == [*range(12)]


def test_later_calls_from_many_threads():
    f = olympus.jit(lambda x: olympus.pure_callback(lambda x: np.asarray(x) * 3, VEC, x))
    wrong = []

    def run(i):
        for _ in range(20):
            if f(X + i).tolist() != [(x + i) * 3.0 for x in range(8)]:
                wrong.append(i)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_nan_of_the_host_in_later_calls_is_found():
    f = olympus.jit(lambda x: olympus.pure_callback(lambda x: np.asarray(x) * np.nan, VEC, x) * 2)
    for _ in range(CALLS):
        f(X)
    with olympus.debug_nans(True):
        for _ in range(3):
            with pytest.raises(FloatingPointError):
                f(X)


def test_operands_of_later_calls_are_donated():
    f = olympus.jit(lambda x, y: olympus.pure_callback(lambda x: np.asarray(x) + 1, VEC, x) + y,
                    donate_argnums=0)
    for _ in range(CALLS):
        x = X + 1
        assert f(x, X).tolist() == (2 * X + 2).tolist()
        assert x.is_deleted()
    x = X + 1
    with pytest.raises(RuntimeError, match="the same array, and donated"):
        f(x, x)


def test_an_operation_that_calls_the_host_is_compiled_once(monkeypatch):
    compiled = []
    own = olympus._src.runtime.compile.compile_module
    monkeypatch.setattr(olympus._src.runtime.compile, "compile_module",
                        lambda *args, **kwargs: compiled.append(args) or own(*args, **kwargs))
    f = through_buffers(lambda x: x + 1, has_side_effect=True)
    for _ in range(CALLS):
        f(X)
    assert len(compiled) <= 2
