"""Printed programs, to the character: `golden/*.txt` is what JAX 0.10.2 prints for the functions
here (jaxpr spelt olympuspr), so syntax, breaks, names and params are the field's.
"""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import olympus
import olympus.numpy as jnp
from olympus import lax

GOLDEN = Path(__file__).parent / "golden"
X = np.arange(3, dtype=np.float32)


add = olympus.jit(lambda x, y: lax.add(x, y))
both = olympus.jit(lambda x, y: (lax.sin(x), lax.cos(y)))
sine = olympus.jit(lambda x: lax.sin(x))


@olympus.custom_jvp
def custom(x):
    return lax.sin(x)


custom.defjvp(lambda primals, tangents: (custom(*primals), tangents[0]))


def shared(x):
    return both(lax.sin(x), x)[0] + both(x, x)[0]


PROGRAMS = {
    "empty": (lambda: (), ()),
    "identity": (lambda x: x, (1.,)),
    "literals": (lambda x: (lax.add(x, 1.), 2., np.int32(3), True), (1.,)),
    "digits": (lambda x: lax.mul(lax.mul(x, 1 / 3), 1e-30), (1.,)),
    "tree": (lambda a, b: {"u": lax.add(a, b), "v": a}, (1., 2.)),
    "grad": (olympus.grad(lambda x: lax.sin(x) * 2.), (1.,)),
    "unread": (lambda x: (lax.sin(x), x)[1], (1.,)),
    "many_inputs": (lambda *xs: [lax.neg(x) for x in xs], (1.,) * 28),
    "many_operands": (lambda *xs: lax.concatenate(xs, 0), (np.ones(2, np.float32),) * 28),
    "constant": (lambda x: lax.add(x, X), (X,)),
    "dot_general": (lambda a, b: lax.dot_general(a, b, (((1,), (0,)), ((), ()))),
                    (np.ones((2, 3), np.float32), np.ones((3, 4), np.float32))),
    "broadcast": (lambda x: lax.broadcast_in_dim(x, (2, 3), (1,)), (X,)),
    "reduce": (lambda x: lax.reduce_sum(x, (0,)), (X,)),
    "convert": (lambda x: lax.convert_element_type(x, np.int32), (X,)),
    "iota": (lambda: lax.iota(np.int32, 5), ()),
    "slice": (lambda x: lax.slice(x, (1,), (3,)), (X,)),
    "jit": (lambda x: add(x, x), (1.,)),
    "jit_unread": (lambda x, y: both(x, y)[1], (1., 2.)),
    "jit_nested": (lambda x: olympus.jit(lambda a: both(a, lax.neg(a)))(lax.exp(x)), (1.,)),
    "jit_twice": (lambda x: sine(sine(x)), (1.,)),
    "jit_shared": (shared, (1.,)),
    "cond": (lambda p, x: lax.cond(p, lax.sin, lax.cos, x), (True, 1.)),
    "custom_jvp": (custom, (1.,)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_prints_as_jax_does(name):
    fun, args = PROGRAMS[name]
    want = (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
    assert str(olympus.make_olympuspr(fun)(*args)) + "\n" == want


def test_every_golden_program_is_tested():
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(PROGRAMS)


def test_scan_and_while_print_their_params_in_order():
    text = str(olympus.make_olympuspr(
        lambda x: lax.scan(lambda c, y: (lax.add(c, y), lax.mul(c, 2.)), x[0], x))(X))
    keys = [line.split("=")[0].strip() for line in text.splitlines()
            if line.startswith("      ") and "=" in line and not line.startswith("       ")]
    assert keys == ["length", "num_carry", "num_consts", "olympuspr", "reverse", "unroll"]


def test_options():
    closed = olympus.make_olympuspr(lambda x: lax.sin(lax.neg(x)))(1.)
    assert closed.pretty_print(print_shapes=False) == (
        "{ lambda ; a. let b = neg a; c = sin b in (c,) }")
    assert "test_printing.py" in closed.pretty_print(source_info=True)
    dot = olympus.make_olympuspr(PROGRAMS["dot_general"][0])(*PROGRAMS["dot_general"][1])
    assert "preferred_element_type" not in str(dot)
    assert "preferred_element_type" in dot.pretty_print(custom_pp_eqn_rules=False)


def test_named_scopes_are_printed_on_demand():
    def f(x):
        with olympus.named_scope("layer"):
            return lax.sin(x)

    closed = olympus.make_olympuspr(f)(1.)
    assert "# [layer]" in closed.pretty_print(name_stack=True) and "layer" not in str(closed)


@pytest.mark.parametrize(("transformed", "text"), [
    (olympus.jit, "JitTracer(~float32[])"),
    (olympus.grad, "GradTracer(primal=2.0, typeof(tangent)=f32[])"),
    (lambda f: lambda x: olympus.jvp(f, (x,), (1.0,)), "JVPTracer(primal=2.0, tangent=1.0)"),
    (lambda f: lambda x: olympus.vmap(f)(olympus.numpy.ones(3)),
     "VmapTracer(aval=float32[], batched=float32[3])"),
    (lambda f: olympus.jit(olympus.grad(f)),
     "GradTracer(primal=JitTracer(~float32[]), typeof(tangent)=f32[])"),
], ids=["jit", "grad", "jvp", "vmap", "jit of grad"])
def test_traced_values_print_what_is_known_of_them(transformed, text):
    printed = []
    transformed(lambda x: printed.append(str(x)) or x)(2.0)
    assert printed == [text]


def test_effects_are_printed_on_demand():
    def f(x):
        olympus.debug.print("{}", x)
        return x

    assert "Debug" in olympus.make_olympuspr(f)(1.).pretty_print(print_effects=True)


def test_notebooks_show_what_print_does():
    shown = []
    printer = SimpleNamespace(text=shown.append)
    closed = olympus.make_olympuspr(lambda x: x + 1)(2.0)
    closed._repr_pretty_(printer, False)
    closed.olympuspr._repr_pretty_(printer, False)
    assert shown == [str(closed)] * 2


def test_printing_changes_nothing_and_is_repeatable():
    closed = olympus.make_olympuspr(lambda x: jnp.where(x > 0, x, 0.))(X)
    assert str(closed) == str(closed) == repr(closed)
    olympus.core.check_olympuspr(closed)
