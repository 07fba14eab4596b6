"""Which updates of a part of an array are put in memory on one CPU, and their results by NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import olympus.numpy as onp
from olympus import grad, jit, lax, vmap


def taken(fun: Callable[..., Any], *args: Any) -> list[str]:
    """The names of the kernels that a function's program is lowered by."""
    return [t.kernel.name for t in jit(lambda *xs: fun(*xs)).lower(*args)._context.taken]


def around(u: Any) -> Any:
    return u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]


def inner(u: Any, value: Any, how: str = "set") -> Any:
    """The array with the part within its border changed; of NumPy's arrays, too."""
    if isinstance(u, np.ndarray):
        found, part = u.copy(), np.s_[1:-1, 1:-1]
        combine = {"set": lambda x, y: y, "add": np.add, "min": np.minimum, "max": np.maximum,
                   "multiply": np.multiply}[how]
        found[part] = combine(found[part], value)
        return found
    return getattr(u.at[1:-1, 1:-1], how)(value)


# Whether the update is put in memory.
PROGRAMS: dict[str, tuple[Callable[..., Any], bool]] = {
    "neighbours": (lambda u, v: inner(u, 0.25 * around(u)), True),
    "added": (lambda u, v: inner(u, around(u), "add"), True),
    "least": (lambda u, v: inner(u, 0.25 * around(u), "min"), True),
    "greatest": (lambda u, v: inner(u, 0.25 * around(u), "max"), True),
    "multiplied": (lambda u, v: inner(u, around(u), "multiply"), True),
    "by a function": (lambda u, v: inner(u, (around if isinstance(u, np.ndarray) else jit(around))(
        u)), True),
    "turned": (lambda u, v: inner(u, u[::-1][1:-1, 1:-1] * 2), True),
    "the same place": (lambda u, v: inner(u, u[1:-1, 1:-1] * 2), False),
    "the same place, added": (lambda u, v: inner(u, u[1:-1, 1:-1] * 2, "add"), False),
    "another array": (lambda u, v: inner(u, around(v)), False),
    "a sum": (lambda u, v: inner(u, u[1:-1, 1:-1] * u.sum()), False),
    "a constant": (lambda u, v: inner(u, 3.0), False)}


@pytest.mark.parametrize("name", PROGRAMS)
def test_updates_that_read_their_target_elsewhere(name: str, rng: np.random.Generator) -> None:
    fun, held = PROGRAMS[name]
    u, v = [rng.integers(-9, 9, (33, 40)).astype(np.float32) for _ in range(2)]
    assert ("update in memory" in taken(fun, u, v)) == held
    once = np.float32(fun(u, v) / 8)
    steps = jit(lambda u, v: lax.fori_loop(0, 2, lambda _, u: fun(u, v) / 8, u))
    np.testing.assert_allclose(steps(u, v), fun(once, v) / 8, rtol=1e-5, atol=1e-5)


def test_small_parts_and_few_elements_are_left_to_xla() -> None:
    heat = lambda u: u.at[1:-1].add(u[2:] + u[:-2])
    assert taken(heat, np.ones(514, np.float32)) == ["update in memory"]
    assert taken(heat, np.ones(513, np.float32)) == []
    # Half of the array, and less.
    fun = lambda u: u.at[:600].set(2 * u[1:601])
    assert taken(fun, np.ones(1200, np.float32)) == ["update in memory"]
    assert taken(fun, np.ones(1201, np.float32)) == []


def test_held_updates_are_mapped_and_differentiated(rng: np.random.Generator) -> None:
    u = rng.standard_normal((3, 30, 30)).astype(np.float32)
    heat = lambda u: u.at[1:-1, 1:-1].add(0.1 * (around(u) - 4 * u[1:-1, 1:-1]))
    mapped = jit(vmap(heat))(u)
    np.testing.assert_allclose(mapped, [heat(onp.asarray(x)) for x in u], rtol=1e-5, atol=1e-6)
    # The operator is linear: its derivative along a direction is itself.
    loss = lambda u: (jit(heat)(u) * u[::-1]).sum()
    t = rng.standard_normal((30, 30)).astype(np.float32)
    found = (np.asarray(jit(grad(loss))(u[0]), np.float64) * t).sum()
    x = u[0].astype(np.float64)
    wide = lambda u: inner(u, u[1:-1, 1:-1] + 0.1 * (around(u) - 4 * u[1:-1, 1:-1]))
    wanted = (wide(t.astype(np.float64)) * x[::-1] + wide(x) * t[::-1]).sum()
    np.testing.assert_allclose(found, wanted, rtol=1e-4)


def test_where_the_update_goes_is_computed(rng: np.random.Generator) -> None:
    u = rng.standard_normal(2000).astype(np.float32)
    fun = lambda u, i: lax.dynamic_update_slice(u, lax.dynamic_slice(u, (i + 1,), (1500,)), (i,))
    assert taken(fun, u, 3) == ["update in memory"]
    wanted = u.copy()
    wanted[3:1503] = u[4:1504]
    np.testing.assert_array_equal(jit(fun)(u, 3), wanted)
