"""Effects that name an input: programs, dead code, the tape, loops and calls keep who changes what,
and in which order. References come later: here stand two primitives that read and write a cell.
"""

import re

import pytest

import olympus
import olympus.numpy as onp
from olympus import core, lax
from olympus._src.core.effects import InputEffect
from olympus._src.interpreters.dce import dce_closed
from olympus._src.interpreters.partial_eval import partial_eval_program
from olympus.extend.core import Primitive
from olympus.interpreters import ad, batching
from olympus.lax import sort_p


def accessor(name, kind):
    """`p(x, cell)`: x, after the cell was read or changed. Linear in x."""
    p = Primitive(name)
    p.def_effectful_abstract_eval(lambda x, cell: (x, {InputEffect(kind, 1)}))
    p.def_impl(lambda x, cell: x)
    ad.primitive_jvps[p] = lambda ps, ts: (p.bind(*ps), p.bind(ad.instantiate_zeros(ts[0]), ps[1]))
    ad.primitive_transposes[p] = lambda ct, x, cell: [p.bind(ct, cell), None]
    batching.primitive_batchers[p] = lambda args, dims: (p.bind(*args), dims[0])
    return p


read_p, write_p = accessor("read", "read"), accessor("write", "write")
CELL, X, XS = onp.zeros(()), onp.float32(1.0), onp.ones(3)


def read(x, cell):
    return read_p.bind(x, cell)


def write(x, cell):
    return write_p.bind(x, cell)


def effects(fun, *args):
    closed = olympus.make_olympuspr(fun)(*args)
    core.check_olympuspr(closed)
    return {str(e) for e in closed.effects}


def order(program):
    """What a program reads and writes, in its order, also in its bodies."""
    return re.findall(r"= (read|write|sin) ", str(program))


@pytest.mark.parametrize("fun, found", [
    (lambda x, c, d: read(x, c), {"Read<1>"}),
    (lambda x, c, d: write(read(x, d), c), {"Write<1>", "Read<2>"}),
    (lambda x, c, d: write(x, x * 2.0), set()),     # made in the program: nobody else sees it
    (lambda x, c, d: olympus.jit(lambda d, x: write(x, d))(d, x), {"Write<2>"}),
    (lambda x, c, d: lax.scan(lambda a, y: (write(a, d), read(y, c)), x, onp.stack([x, x]))[0],
     {"Write<2>", "Read<1>"}),
    (lambda x, c, d: lax.while_loop(lambda a: read(a, c) < 3, lambda a: write(a, d), x),
     {"Write<2>", "Read<1>"}),
    (lambda x, c, d: lax.cond(x > 0, lambda x: write(x, d), lambda x: read(x, c), x),
     {"Write<2>", "Read<1>"}),
    (lambda x, c, d: olympus.checkpoint(lambda x: write(x, c))(x), {"Write<1>"}),
    (lambda x, c, d: olympus.custom_jvp(lambda x, c: write(x, c)).fun(x, c), {"Write<1>"}),
    (lambda x, c, d: olympus.vmap(lambda x: write(x, d))(onp.stack([x, x])), {"Write<2>"}),
    (lambda x, c, d: olympus.jvp(lambda x: write(x, d), (x,), (x,)), {"Write<2>"}),
], ids=["read", "two", "inside", "jit", "scan", "while", "cond", "checkpoint", "custom", "vmap",
        "jvp"])
def test_effects_name_the_input_that_they_are_on(fun, found):
    assert effects(fun, X, CELL, CELL) == found
    inner = effects(lambda a, b, x, c, d: olympus.jit(fun)(x, c, d), 1.0, 2.0, X, CELL, CELL)
    assert inner == {re.sub(r"\d", lambda m: str(int(m[0]) + 2), e) for e in found}


def test_effects_of_a_constant_count_in_front():
    cell = CELL + 1
    assert effects(lambda x: write(x, cell), X) == {"Write<0>"}


def test_dead_code_keeps_writes_and_their_places():
    closed = olympus.make_olympuspr(
        lambda a, x, c: (read(x, c), olympus.jit(lambda a, x, c: (
            a, write(onp.sin(x), c), read(x, c)))(a, x, c)[0]))(X, X, CELL)
    alive, used = dce_closed(closed, [False, True], keep_inputs=False)
    assert order(alive) == ["sin", "write"] and used == [True, True, True]
    assert {str(e) for e in alive.effects} == {"Write<2>"}
    alive, used = dce_closed(olympus.make_olympuspr(lambda a, x, c: write(x, c))(X, X, CELL),
                             [False], keep_inputs=False)
    assert {str(e) for e in alive.effects} == {"Write<1>"} and used == [False, True, True]


def split(fun, unknown, *args):
    cut = partial_eval_program(olympus.make_olympuspr(fun)(*args), unknown)
    return order(cut.known), order(cut.unknown)


def test_what_follows_a_recorded_write_is_recorded():
    def fun(x, y, c):
        first = read(x, c)          # before all: known
        second = write(y, c)        # unknown
        third = read(x, c)          # known operands, but after the write
        return first, second, third, onp.sin(x)

    assert split(fun, [False, True, False], X, X, CELL) == (["read", "sin"], ["write", "read"])
    assert split(lambda x, y, c: (read(y, c), write(x, c), onp.sin(x)), [False, True, False],
                 X, X, CELL) == (["sin"], ["read", "write"])
    # Another cell keeps nothing in order, and calls may go ahead in part.
    assert split(lambda x, y, c, d: (write(y, c), olympus.jit(
        lambda x, c, d: (read(x, c), write(x, d)))(x, c, d)), [False, True, False, False],
        X, X, CELL, CELL) == (["write"], ["write", "read"])


def test_loops_keep_what_one_cell_sees_in_one_half():
    def fun(x, y, c):
        def step(carry, _):
            x, y = carry
            return (read(onp.sin(x), c), write(y, c)), None
        return lax.scan(step, (x, y), None, 3)[0]

    # In the second iteration the read comes after the write of the first.
    known, unknown = split(fun, [False, True, False], X, X, CELL)
    assert "read" not in known and unknown.count("read") == unknown.count("write") == 1


def test_linearize_keeps_the_order():
    def fun(x, c):
        y = write(onp.sin(x), c)
        return read(y, c) * onp.sin(x)

    _, pushed = olympus.linearize(lambda x: fun(x, CELL), X)
    program = olympus.make_olympuspr(pushed)(X)
    assert order(program) == ["write", "read", "read"]     # of the value, then of its tangent


@pytest.mark.parametrize("fun, message", [
    (lambda x, c: lax.cond(x > 0, lambda: write(x, c), lambda: x), "cond: mapped over its pred"),
    (lambda x, c: lax.while_loop(lambda a: a < 3, lambda a: write(a + 1, c), x), "while_loop: map"),
], ids=["cond", "while"])
def test_elements_that_differ_in_what_they_change_are_refused(fun, message):
    with pytest.raises(ValueError, match=message):
        olympus.make_olympuspr(olympus.vmap(fun, in_axes=(0, None)))(XS, CELL)


def test_kinds():
    with pytest.raises(ValueError, match="one of read, write, add is required"):
        InputEffect("erase", 0)
    assert InputEffect("add", 1) == InputEffect("write", 1).__class__("add", 1)
    assert InputEffect("add", 1) != InputEffect("add", 2) and not InputEffect("read", 0).keeps
    assert not sort_p.effectful
