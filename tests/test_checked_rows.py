"""The type checker passes what every row of the tables is traced to, on meshes and on none."""

import contextlib
import random

import numpy as np
import pytest
from ops import Op, tables
from properties import cast

import olympus
from olympus import core
from olympus.sharding import AxisType, set_mesh

ROWS = {f"{table}-{op.name}-{i}": op for table, rows in tables().items()
        for i, op in enumerate(rows) if isinstance(op, Op)}
SAMPLE = set(random.Random(24).sample(sorted(ROWS), 40))    # the others are slow together


def around():
    """No mesh, one whose types say how values are cut, and one of which XLA decides."""
    yield contextlib.nullcontext()
    for kind in (AxisType.Explicit, AxisType.Auto):
        yield set_mesh(olympus.make_mesh((1,), ("x",), (kind,)))


def programs(op):
    """Functions that a row is traced as, with arguments: values, derivatives, several of both."""
    args = cast(op, op.dtypes[0])
    places = [i for i, a in enumerate(op.args) if getattr(a, "dtype", None) == np.float64]

    def value(*xs):
        full = list(args)
        for i, x in zip(places, xs, strict=True):
            full[i] = x
        return op.fun(*full)

    def pulled(*xs):
        out, pull = olympus.vjp(value, *xs)
        return pull(out)

    given = [args[i] for i in places]
    found = [value, pulled] if op.grad and given else [value]
    yield from ((f, given) for f in found)
    if given:
        yield from ((olympus.vmap(f), [np.stack([a, a]) for a in given]) for f in found)


@pytest.mark.parametrize("name", [
    name if name in SAMPLE else pytest.param(name, marks=pytest.mark.slow) for name in ROWS])
def test_programs_pass_the_checker_wherever_it_is_asked(name):
    """Bodies and operations without operands were judged by the mesh around the check."""
    op = ROWS[name]
    with olympus.enable_x64(op.dtypes[0] in "dz"), olympus.enable_checks(True):
        for fun, args in programs(op):
            for mesh in around():
                with mesh:
                    made = olympus.make_olympuspr(fun)(*args)
                for other in around():
                    with other:
                        core.check_olympuspr(made)
