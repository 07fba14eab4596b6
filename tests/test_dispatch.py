"""Brief programs run in the thread that calls them, others do not; results are the same."""

import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus._src.runtime import brief
from olympus.experimental.serialize_executable import deserialize_and_load, serialize

RELEASED, TIMELY = threading.Event(), list[bool]()
SMALL, LARGE = np.linspace(-1, 1, 64, dtype=np.float32), np.ones(3_000_000, np.float32)
TABLE = LARGE.reshape(-1, 60)
SQUARE = np.eye(24, dtype=np.float32) * 3
MATRICES = np.tile(SQUARE[:3, :3], (100, 1, 1))

# (function, operand, NumPy's value)
BRIEF: dict[str, tuple[Callable[..., Any], Any, Callable[..., Any]]] = {
    "elementwise": (lambda x: onp.tanh(x * 2) + 1, SMALL, lambda x: np.tanh(x * 2) + 1),
    "sum": (lambda x: x.sum(), SMALL, np.sum),
    "product": (lambda x: x @ x, SQUARE, lambda x: x @ x),
    "sort": (lambda x: onp.sort(-x), SMALL, lambda x: np.sort(-x)),
    "gather": (lambda x: x[onp.array([5, 2])], SMALL, lambda x: x[[5, 2]]),
    "rows of a table": (lambda x: x[onp.array([5, 2])] * 2, TABLE, lambda x: x[[5, 2]] * 2),
    "part of a large array": (lambda x: x[3] @ x[5:9].T, TABLE, lambda x: x[3] @ x[5:9].T),
    "any of many": (lambda x: (x > 2).any(), TABLE[:1000], lambda x: (x > 2).any()),
    "largest of many": (lambda x: x.max(), TABLE[:3000], np.max),
    "place of the largest": (lambda x: x.argmax(), TABLE[:1500], np.argmax),
    "inverses": (onp.linalg.inv, MATRICES, np.linalg.inv),
    "determinants": (onp.linalg.det, MATRICES, np.linalg.det),
    "branches": (lambda x: lax.cond(x[0] > 0, lambda: x, lambda: -x), SMALL, lambda x: -x),
    "short loop": (lambda x: lax.fori_loop(0, 5, lambda i, x: x + i, x), SMALL, lambda x: x + 10),
    "gradient": (olympus.grad(lambda x: (x ** 3).sum()), SMALL, lambda x: 3 * x ** 2),
}
LONG: dict[str, tuple[Callable[..., Any], Any]] = {
    "many elements": (lambda x: x + 1, LARGE),
    "long loop": (lambda x: lax.fori_loop(0, 10**6, lambda i, x: x + i, x), SMALL),
    "loop of unknown length": (lambda x: lax.while_loop(lambda x: x[0] < 9, lambda x: x + 1, x),
                               SMALL),
    "loop in a branch": (lambda x: lax.cond(
        x[0] > 0, lambda: lax.while_loop(lambda x: x[0] < 9, lambda x: x + 1, x), lambda: x),
        SMALL),
    "large product": (lambda x: x @ x, np.ones((512, 512), np.float32)),
    "many steps of a scan": (lambda x: lax.scan(lambda c, x: (c * x, c), x[0], onp.tile(x, 99)),
                             SMALL),
}


def closed(fun: Callable[..., Any], x: Any) -> Any:
    return olympus.make_olympuspr(fun)(x)


@pytest.mark.parametrize("name", BRIEF)
def test_a_brief_program_has_ended_when_the_call_returns(name: str) -> None:
    fun, x, expected = BRIEF[name]
    assert brief.is_brief(closed(fun, x))
    jitted, operand = olympus.jit(fun), onp.asarray(x)
    for _ in range(3):      # by Python, then by C++
        out = jitted(operand)
        assert out.is_ready()
        np.testing.assert_allclose(out, expected(x), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", LONG)
def test_a_program_that_may_be_long_is_none(name: str) -> None:
    assert not brief.is_brief(closed(*LONG[name]))


@pytest.mark.parametrize("size", [0, 1, 1000])
def test_estimates_grow_with_sizes_and_lengths(size: int) -> None:
    def estimate(n: int, length: int) -> float:
        fun = lambda x: lax.scan(lambda c, _: (onp.sin(c), None), x, length=length)[0]
        return brief.nanoseconds(closed(fun, np.ones(n, np.float32)).olympuspr)

    assert estimate(size, 2) <= estimate(size + 1, 2) <= estimate(size + 1, 3)
    assert estimate(size, 10**9) == float("inf")


def test_an_estimate_visits_no_more_equations_than_a_brief_program_has() -> None:
    visited = []

    class Counted(list[Any]):
        def __iter__(self) -> Iterator[Any]:
            for eqn in super().__iter__():
                visited.append(eqn)
                yield eqn

    program = closed(lambda x: functools.reduce(lambda x, _: x + 1, range(9000), x), 1.0).olympuspr
    program.eqns = Counted(program.eqns)
    assert brief.nanoseconds(program) == float("inf")
    assert len(visited) <= brief.LIMIT / 20 + 1


def _wait(x: Any) -> Any:
    if threading.current_thread() is not threading.main_thread():
        TIMELY.append(RELEASED.wait(30))
    return np.asarray(x)


def test_a_brief_program_does_not_wait_for_its_operands() -> None:
    waiting = olympus.jit(lambda x: olympus.pure_callback(_wait, x, x))
    slow = olympus.jit(lambda x: lax.fori_loop(
        0, 40, lambda i, a: a @ a * 0.001, onp.full((400, 400), x))[0, 0])
    double, give = olympus.jit(lambda x: x * 2 + 1), olympus.jit(lambda x: x + 1, donate_argnums=0)
    give(double(onp.float32(0)))
    out = give(double(waiting(slow(onp.float32(0)))))
    RELEASED.set()
    assert out == 2.0
    assert all(TIMELY)


def test_callbacks_may_call_brief_and_long_programs() -> None:
    double = olympus.jit(lambda x: x * 2 + 1)
    count = olympus.jit(lambda x: lax.while_loop(lambda x: x < 100, lambda x: x + 1, x))

    def called(x: Any) -> Any:
        return np.asarray(count(double(onp.asarray(x))))

    out = olympus.jit(lambda x: olympus.pure_callback(called, x, x) + 1)(onp.float32(3))
    assert out == 101.0


def test_threads_run_one_brief_program_together() -> None:
    step, wrong = olympus.jit(lambda x: onp.tanh(x) * 2), []

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).random(500, np.float32)
        for _ in range(20):
            if not np.allclose(step(onp.asarray(x)), np.tanh(x) * 2, rtol=1e-5):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_serialized_program_stays_brief() -> None:
    compiled = olympus.jit(lambda x: x @ x + 1).lower(onp.asarray(SQUARE)).compile()
    assert compiled._executable.loaded.brief
    again = deserialize_and_load(*serialize(compiled))
    assert again._executable.loaded.brief
    out = again(onp.asarray(SQUARE))
    assert out.is_ready()
    np.testing.assert_allclose(out, SQUARE @ SQUARE + 1)


def test_subnormal_numbers_are_alike_in_either_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    x = onp.asarray(np.array([1e-39, 3e-38, -1e-44], np.float32))
    found = {}
    for limit in 0.0, brief.LIMIT:
        monkeypatch.setattr(brief, "LIMIT", limit)
        olympus.clear_caches()
        made = olympus.jit(lambda x: x * onp.float32(0.5) - x / 3).lower(x).compile()
        assert made._executable.loaded.brief == bool(limit)
        found[limit] = np.asarray(made(x)).tobytes()
    assert len(set(found.values())) == 1
