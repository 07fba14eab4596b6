"""Do the tests notice a wrong rule? Each jvp, transpose and vmap rule is replaced by a wrong one.

    PYTHONPATH=.:tests python tools/mutate_rules.py [primitive ...]

A derivative is negated; a batch too, or reversed where it holds no numbers. The properties of
`tests/test_ops.py` run over the rows whose programs hold the primitive, until one fails: killed.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import test_ops
from ops import Op

import olympus
from olympus import jvp, lax, make_olympuspr
from olympus._src.core.primitive import Zero

ROWS = 3  # so many rows that reach the rule have their chance to notice
TRIED = 24  # and so many are tried in search of them
DERIVATIVES = (test_ops.test_jvp_is_the_central_difference,
               test_ops.test_vjp_is_the_transpose_of_jvp)
BATCHES = (test_ops.test_vmap_is_a_loop, test_ops.test_vmap_over_one_argument)
PROPERTIES = {"jvp": DERIVATIVES, "transpose": DERIVATIVES, "vmap": BATCHES}


def negated(x: Any) -> Any:
    if x is None or isinstance(x, Zero) or olympus.typeof(x).dtype.kind not in "fci":
        return x
    return lax.neg(x)


def each(change: Callable[..., Any], *values: Any) -> Any:
    several = isinstance(values[0], (list, tuple))
    return [*map(change, *values)] if several else change(*values)


def spoiled(x: Any, dim: Any) -> Any:
    if dim is None or olympus.typeof(x).dtype.kind in "fci":
        return negated(x)
    return lax.rev(x, (dim,))


def wrong(kind: str, rule: Callable[..., Any]) -> Callable[..., Any]:
    """`rule` with a result that is not right."""
    def mutant(*args: Any, **params: Any) -> Any:
        mutant.calls += 1
        result = rule(*args, **params)
        if kind == "transpose":
            return each(negated, result)
        out, second = result
        if out == []:       # nothing to spoil
            mutant.calls -= 1
            return result
        if kind == "jvp":
            return out, each(negated, second)
        dims = second if isinstance(second, (list, tuple)) or not isinstance(
            out, (list, tuple)) else [second] * len(out)
        return each(spoiled, out, dims), second
    mutant.calls = 0
    return mutant


def verdict(kind: str, mutant: Any, candidates: list[Op]) -> str:
    """`killed`, `SURVIVED`, or `not reached` where no row has the rule called."""
    reached = 0
    for op in candidates[:TRIED]:
        mutant.calls = 0
        if any(fails(test, op) for test in PROPERTIES[kind]):
            return "killed"
        reached += mutant.calls > 0
        if reached == ROWS:
            break
    return "SURVIVED" if reached else "not reached"


def primitives(program: Any) -> Iterator[str]:
    """The names of the primitives in a program and in the programs inside it."""
    for eqn in program.eqns:
        yield eqn.primitive.name
        for value in eqn.params.values():
            for inner in value if isinstance(value, (list, tuple)) else (value,):
                inner = getattr(inner, "olympuspr", inner)
                if hasattr(inner, "eqns"):
                    yield from primitives(inner)


def users(kind: str) -> dict[str, list[Op]]:
    """Rows by the primitives that a property of `kind` meets in them."""
    found = defaultdict(list)
    for op in test_ops.ALL:
        if kind != "vmap" and not op.grad:
            continue
        if kind == "vmap":
            program = make_olympuspr(op.fun)(*test_ops.cast(op, op.dtypes[0]))
        else:
            with olympus.enable_x64(True):
                fun, xs, ts = test_ops.smooth(op)
                program = make_olympuspr(fun)(*xs) if kind == "jvp" else make_olympuspr(
                    lambda xs, ts, f=fun: jvp(f, xs, ts))(tuple(xs), tuple(ts))
        names = set(primitives(program.olympuspr))
        for name in names:
            found[name].append(op)
    return found


def fails(test: Callable[..., Any], op: Op) -> bool:
    """Whether the property fails for the row; one that does not apply to it does not."""
    mark = next(m for m in test.pytestmark if m.name == "parametrize")
    if not any(row is op for row in mark.args[1]):
        return False
    try:
        test(op)
    except Exception:
        return True
    return False


def main(only: list[str]) -> int:
    public = {getattr(module, name).name: getattr(module, name)
              for module in (lax, lax.linalg) for name in dir(module) if name.endswith("_p")}
    survived = 0
    for kind in ("jvp", "transpose", "vmap"):
        rows = users(kind)
        for name, prim in sorted(public.items()):
            rule = getattr(prim, kind, None)
            if rule is None or (only and name not in only):
                continue
            mutant = wrong(kind, rule)
            setattr(prim, kind, mutant)
            olympus.clear_caches()
            found = verdict(kind, mutant, rows[name])
            delattr(prim, kind)
            survived += found == "SURVIVED"
            print(f"{kind:9} {name:24} {found}", flush=True)
    olympus.clear_caches()
    print(f"{survived} survived")
    return survived > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
