"""Which updates have kernels on one CPU, and their results by NumPy: of a part of an array by other
parts, put in memory first, and of rows of 16-bit floats, added in the order of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from properties import compiled

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


ROWS_OF = lax.ScatterDimensionNumbers((1,), (0,), (0,))


def scattered(mode: str, which: str = "scatter_add") -> Callable[..., Any]:
    return lambda x, i, u: getattr(lax, which)(x, i, u, ROWS_OF, mode=mode)


# Tables of 16-bit floats: their shape, the shape of the places, and how updates are added.
TABLES: dict[str, tuple[tuple[int, ...], tuple[int, ...], Callable[..., Any]]] = {
    "outside dropped": ((1040, 256), (60, 1), scattered("drop")),
    "outside moved": ((1040, 256), (60, 1), scattered("clip")),
    "outside promised away": ((1040, 256), (60, 1), scattered("promise_in_bounds")),
    "subtracted": ((1040, 256), (60, 1), scattered("drop", "scatter_sub")),
    "two indices": ((33, 32, 9, 31), (40, 2), lambda x, i, u: x.at[i[:, 0], i[:, 1]].add(
        u, mode="drop")),
    "a table of indices": ((1040, 256), (6, 10, 1), lambda x, i, u: x.at[i[..., 0]].add(
        u, mode="drop")),
    "mapped": ((3, 600, 160), (3, 20, 1), vmap(lambda x, i, u: x.at[i[:, 0]].add(u, mode="drop")))}


def rows_of_updates(name: str, dtype: str, rng: np.random.Generator
                    ) -> tuple[np.ndarray[Any, Any], ...]:
    """A table, places of rows, some of them outside, the most several times, and updates."""
    shape, places, _ = TABLES[name]
    k = places[-1]
    rank = len(shape) - len(places[:-1]) if name == "mapped" else len(shape) - k
    i = rng.integers(0, 9, places).astype(np.int32)
    i[..., 1::7, :] = 5000 if name in ("two indices", "a table of indices", "mapped") else -3
    i[..., 4, :] = 5000
    i[..., 5, 0] = shape[-rank - k] - 1     # the last row, after which those outside come
    x, u = [rng.standard_normal(s).astype(np.float32) for s in (
        shape, (*places[:-1], *shape[len(shape) - rank:]))]
    x.reshape(-1)[:3] = np.nan, -0.0, np.inf
    return np.asarray(onp.asarray(x, dtype)), i, np.asarray(onp.asarray(u * 30, dtype))


def added_by_numpy(name: str, x: Any, i: Any, u: Any) -> Any:
    """Update by update in float32, rounded once."""
    if name == "mapped":
        return np.stack([added_by_numpy("", *each) for each in zip(x, i, u, strict=True)])
    sums, k = x.astype(np.float32), i.shape[-1]
    limits = np.array(x.shape[:k])
    for at, new in zip(i.reshape(-1, k), u.reshape(-1, *x.shape[k:]).astype(np.float32),
                       strict=True):
        at = np.clip(at, 0, limits - 1) if name == "outside moved" else at
        if ((at >= 0) & (at < limits)).all():
            sums[tuple(at)] += -new if name == "subtracted" else new
    return sums.astype(x.dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", TABLES)
def test_rows_of_16_bits_are_added_in_order(name: str, dtype: str, rng: np.random.Generator
                                            ) -> None:
    fun = TABLES[name][2]
    x, i, u = rows_of_updates(name, dtype, rng)
    assert taken(fun, x, i, u) == ["rows in order"]
    found, wanted = np.asarray(compiled(fun)(x, i, u)), added_by_numpy(name, x, i, u)
    # NumPy does not know that a NaN of bfloat16 is one.
    np.testing.assert_array_equal(found.astype(np.float32), wanted.astype(np.float32))


def test_gradients_of_rows_read_from_a_table_of_float16(rng: np.random.Generator) -> None:
    table, weights = [rng.standard_normal(s).astype(np.float16) for s in ((3000, 100), (50, 100))]
    i = rng.integers(0, 7, 50)
    loss = grad(lambda table, i: (table[i] * weights).sum())
    assert taken(loss, table, i) == ["rows in order"]
    wanted = np.zeros(table.shape, np.float32)
    np.add.at(wanted, i, weights.astype(np.float32))
    np.testing.assert_array_equal(jit(loss)(table, i), wanted.astype(np.float16))


def test_which_rows_are_added_in_order() -> None:
    i = np.zeros(60, np.int32)

    def names(rows: int, width: int, dtype: Any = np.float16, **how: Any) -> list[str]:
        return taken(lambda x, i, u: x.at[i].add(u, **how), np.zeros((rows, width), dtype), i,
                     np.zeros((60, width), dtype))

    assert names(1040, 256) == ["rows in order"]
    assert names(1040, 256, unique_indices=True) == []
    assert names(1040, 256, np.float32) == []
    assert names(964, 256) == ["rows in order"] and names(963, 256) == []     # 2 ** 18 elements
    # Elements of the table for each update.
    assert names(240, 1536) == ["rows in order"] and names(40, 1536, onp.bfloat16) == []
    # Parts of rows.
    x = np.zeros((1040, 300), np.float16)
    part = lambda x, i: x.at[i, :256].add(1)
    assert taken(part, x, i) == []
