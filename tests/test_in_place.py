"""A loop that reads rows of a table and replaces others copies no table.

The oracle of values is a loop in NumPy; the oracle of copies is the compiled module.
"""

import random
import re

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus._src.lowering import in_place

ROWS, COLUMNS = 40, 16
TABLE = np.random.default_rng(0).random((ROWS, COLUMNS), np.float32)
ADD = olympus.jit(lambda table, i, x: table.at[i].set(x))
READ = olympus.jit(lambda table, i: table[i])


def swapped(table, total, i):
    old = table[i]
    return table.at[i].set(old * 0.5), total + old


def another_row(table, total, i):
    old = table[(i * 7) % ROWS]
    return table.at[i].set(total), total * 0.5 + old


def read_behind(table, total, i):
    new = table.at[i].set(total)
    return new, total * 0.5 + table[(i * 7) % ROWS] + table[i]


def added(table, total, i):
    old = table[i]
    return table.at[i].add(total), total * 0.5 + old


def several_rows(table, total, i):
    rows = table[onp.array([0, 5, 9]) + i % 8]
    return table.at[i].set(total), total * 0.5 + rows.max(0)


def all_rows(table, total, i):
    return table.at[i].set(total), total * 0.5 + table.mean(0)


def in_functions(table, total, i):
    old = READ(table, i)
    return ADD(table, i, total), total * 0.5 + old


def in_a_branch(table, total, i):
    old = table[i]
    new = lax.cond(i % 2 == 0, lambda: table.at[i].set(total), lambda: table)
    return new, total * 0.5 + old


def in_an_inner_loop(table, total, i):
    old = table[i]
    new = lax.fori_loop(0, 3, lambda k, t: t.at[(i + k) % ROWS].set(total + k), table)
    return new, total * 0.5 + old


def a_constant_place(table, total, i):
    old = table[i]
    return table.at[3].set(total), total * 0.5 + old


def twice(table, total, i):
    first = table[i]
    table = table.at[i].set(total)
    second = table[(i * 7) % ROWS]
    return table.at[(i * 3) % ROWS].set(second), total * 0.5 + first + second


def by_numpy(step, table):
    """The loop, one step at a time, on arrays that nothing replaces in place."""
    total = np.ones(COLUMNS, np.float32)
    with olympus.disable_jit():
        for i in range(ROWS):
            table, total = map(np.asarray, step(onp.array(table), onp.array(total), i))
    return table, total


STEPS = [swapped, another_row, read_behind, added, several_rows, all_rows, in_functions,
         in_an_inner_loop, a_constant_place, twice]


def loop(step):
    def body(carry, i):
        return step(*carry, i), None

    return lambda table: lax.scan(body, (table, onp.ones(COLUMNS)), onp.arange(ROWS))[0]


@pytest.mark.parametrize("step", [
    pytest.param(step, marks=[pytest.mark.slow] * (step in (in_an_inner_loop, added)))
    for step in [*STEPS, in_a_branch]])
def test_a_loop_that_replaces_rows_has_the_values_of_single_steps(step):
    found = olympus.jit(loop(step))(onp.array(TABLE))
    for x, want in zip(found, by_numpy(step, TABLE), strict=True):
        np.testing.assert_allclose(x, want, rtol=1e-5)


@pytest.mark.parametrize("step", STEPS)
def test_a_loop_that_replaces_rows_copies_no_table(step):
    text = olympus.jit(loop(step)).lower(onp.array(TABLE)).compile().as_text()
    entry = text.index("\nENTRY ")
    assert not re.findall(rf"= f32\[{ROWS},{COLUMNS}\]\S* copy\(.*", text[:entry])


def test_a_loop_that_swaps_rows_of_a_reference_copies_no_table():
    def swap(table, xs):
        ref = olympus.new_ref(table)

        def body(total, i):
            return total + olympus.ref.swap(ref, i, xs[i]), None

        return lax.scan(body, onp.zeros(COLUMNS), onp.arange(ROWS))[0], ref[...]

    f, xs = olympus.jit(swap), onp.array(TABLE[::-1])
    total, table = f(onp.array(TABLE), xs)
    np.testing.assert_allclose(total, TABLE.sum(0), rtol=1e-5)
    np.testing.assert_array_equal(table, xs)
    text = f.lower(onp.array(TABLE), xs).compile().as_text()
    assert not re.findall(rf"= f32\[{ROWS},{COLUMNS}\]\S* copy\(.*", text[:text.index("\nENTRY ")])


@pytest.mark.slow
@pytest.mark.parametrize("step", [swapped, read_behind, all_rows])
def test_transformed_loops_that_replace_rows_have_the_same_values(step):
    f = loop(step)

    def loss(table):
        table, total = f(table)
        return (table * onp.arange(COLUMNS)).sum() + (total ** 2).sum()

    plain, made = (olympus.jit(olympus.grad(loss), hold=hold)(onp.array(TABLE))
                   for hold in ("off", "auto"))
    np.testing.assert_allclose(plain, made, rtol=1e-4)
    stacked = onp.array([TABLE, TABLE * 2])
    for x, *rows in zip(olympus.jit(olympus.vmap(f))(stacked), *map(f, stacked), strict=True):
        np.testing.assert_allclose(x, np.array(rows), rtol=1e-5)


STATEMENTS = ["read", "read", "read late", "rows", "mean", "set", "set", "add", "update", "call",
              "cond", "loop", "mix", "mix", "tanh"]


def generated(seed):
    """A loop over two tables with statements drawn at random."""
    rng = random.Random(seed)
    plan = [(rng.choice(STATEMENTS), rng.randrange(100), rng.randrange(100), rng.randrange(2))
            for _ in range(rng.randint(3, 9))]

    def body(carry, i):
        tables, values = [*carry[:2]], [carry[2]]
        before = [tables]
        for kind, a, b, to in plan:
            table, x, y = tables[to], values[a % len(values)], values[b % len(values)]
            row = [i, (i * 7 + a) % 9, (i + b) % 9, b % 9][a % 4]
            if kind == "read":
                values.append(table[row] * 0.5)
            elif kind == "read late":
                values.append(before[b % len(before)][to][row] * 0.25)
            elif kind == "rows":
                values.append(table[onp.array([0, b % 9]) + i % 2].sum(0) * 0.3)
            elif kind == "mean":
                values.append(table.mean(0))
            elif kind == "mix":
                values.append(x * 0.5 + y)
            elif kind == "tanh":
                values.append(onp.tanh(x + y))
            elif kind == "set":
                table = table.at[row].set(x)
            elif kind == "add":
                table = table.at[row].add(x * 0.1)
            elif kind == "update":
                table = lax.dynamic_update_slice(table, x[None], (row, 0))
            elif kind == "call":
                table = ADD(table, row, x + READ(table, b % 9))
            elif kind == "cond":
                table = lax.cond(i % 2 == 0, lambda t, row=row, x=x: t.at[row].set(x),
                                 lambda t: t.at[0].add(0.1), table)
            else:
                table = lax.fori_loop(0, 2, lambda k, t, row=row, x=x: t.at[(row + k) % 9].set(
                    x + t[k] * 0.1), table)
            tables = [table if k == to else t for k, t in enumerate(tables)]
            before.append(tables)
        return (*tables, values[-1]), values[len(values) // 2]

    return lambda t, u: lax.scan(body, (t, u, onp.ones(4)), onp.arange(6))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_generated_loops_have_the_values_that_they_have_without_an_order(seed, monkeypatch):
    monkeypatch.setattr(in_place, "LEAST_BYTES", 1)
    monkeypatch.setattr(in_place, "RATIO", 0.5)
    f, tables = generated(seed), onp.array(TABLE[:18, :4]).reshape(2, 9, 4)
    loss = olympus.grad(lambda *tables: sum(x.sum() for x in olympus.tree.leaves(f(*tables))))
    for g in f, loss:
        plain, made = (olympus.tree.leaves(olympus.jit(lambda *xs, g=g: g(*xs), hold=hold)(*tables))
                       for hold in ("off", "auto"))
        for x, y in zip(plain, made, strict=True):
            np.testing.assert_allclose(x, y, rtol=2e-5, atol=1e-5)


def test_gradients_of_a_loop_that_replaces_rows_copy_no_table():
    def loss(table):
        table, total = loop(another_row)(table)
        return (table * onp.arange(COLUMNS)).sum() + (total ** 2).sum()

    text = olympus.jit(olympus.grad(loss)).lower(onp.array(TABLE)).compile().as_text()
    assert not re.findall(rf"= f32\[{ROWS},{COLUMNS}\]\S* copy\(.*", text[:text.index("\nENTRY ")])


@pytest.mark.parametrize("update", [
    lambda table, total, i, old: (table.at[i].set(old * 2), total + 1),     # one kernel, in place
    lambda table, total, i, old: (table.at[i].set(new := onp.tanh(old + total)), new),
    lambda table, total, i, old: (table.at[i].set(total), onp.sin(total)),      # nobody reads it
])
def test_nothing_is_held_where_a_write_waits_for_all_reads_anyway(update):
    def step(table, total, i):
        return update(table, total, i, table[i])

    f = olympus.jit(loop(step))
    assert "inlineable" not in f.lower(onp.array(TABLE)).as_text()
    text = f.lower(onp.array(TABLE)).compile().as_text()
    assert not re.findall(rf"= f32\[{ROWS},{COLUMNS}\]\S* copy\(.*", text[:text.index("\nENTRY ")])


def test_hold_off_leaves_the_order_to_xla():
    text = olympus.jit(loop(swapped), hold="off").lower(onp.array(TABLE)).as_text()
    assert "inlineable" not in text
