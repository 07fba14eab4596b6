"""Which values XLA:CPU would compute again in each of their readers, and is made to hold instead.

XLA:CPU fuses the whole elementwise ancestry of a value into every reader. Where values with
several readers follow each other, as in residual nets and unrolled integrators, what it compiles
grows with the square of their number, what it computes, too, and compile time with the second to
third power. It drops `optimization_barrier` before it fuses; a call of the identity that it may
not inline stays, and costs a copy.

One pass over a program counts, for each value, the operations that a reader would compute again.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from ..types.avals import physical_aval
from ..core.ir import ClosedOlympuspr, Literal, Var

__all__ = ["Holds", "holds_of"]

import os
LEAST = int(os.environ.get('HOLD_W', '16'))
_MANY = 8
#          # operations, from which on a value with several readers is held
_MOST = 64     # a bound for counts, which would double with each reader in a long chain
# Besides elementwise operations, what XLA fuses into readers.
_FUSED = frozenset((
    "broadcast_in_dim", "clamp", "concatenate", "convert_element_type", "copy", "copy_p",
    "dynamic_slice", "iota", "pad", "reshape", "rev", "select_n", "slice", "split", "squeeze",
    "stack", "transpose", "unstack"))
# What XLA holds to be expensive: with several readers it is computed once all the same.
_DEAR = frozenset((
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "erf",
    "exp", "exp2", "expm1", "log", "log1p", "log2", "logistic", "pow", "rem", "rsqrt", "sin",
    "sinh", "sqrt", "tan", "tanh"))
# What the lowering writes out in many operations.
_LONG = {"random_bits": 200, "random_split": 200, "random_fold_in": 200, "threefry2x32": 200}
# Calls whose programs become part of the caller.
_CALLS = frozenset(("jit", "custom_jvp_call", "custom_vjp_call", "custom_vmap_call",
                    "xla_metadata_call", "linear_call", "composite"))


class Holds(NamedTuple):
    """What is held of a program, and what a caller has to know of it."""

    held: frozenset[Var]
    outs: tuple[tuple[int, frozenset[int]], ...]    # operations that compute a result; of inputs
    reads: tuple[tuple[int, frozenset[int]], ...]   # kernels that an input is in; of results


def holds_of(closed: ClosedOlympuspr) -> Holds:
    """The values of a program to hold; found once."""
    return closed.derived("holds", lambda: _find(closed))


def _find(closed: ClosedOlympuspr) -> Holds:
    pr = closed.olympuspr
    readers: Counter[Any] = Counter()
    for eqn in pr.eqns:
        readers.update({a for a in eqn.invars if type(a) is not Literal})
    readers.update({a for a in pr.outvars if type(a) is not Literal})
    held = _forward(closed, _backward(closed, readers, frozenset())[0], readers, None)[0]
    if held:
        held = _forward(closed, _backward(closed, readers, held)[0], readers, held)[0]
    kernels, reads = _backward(closed, readers, held)
    _, outs = _forward(closed, kernels, readers, held)
    return Holds(held, outs, reads)


def _backward(closed, readers, held):
    pr = closed.olympuspr
    kernels: dict[Any, frozenset] = {}
    none = frozenset()
    for i, v in enumerate(pr.outvars):
        if type(v) is not Literal:
            kernels[v] = kernels.get(v, none) | {("out", i)}
    for n in range(len(pr.eqns) - 1, -1, -1):
        eqn = pr.eqns[n]
        prim, inner = eqn.primitive, _called(eqn)
        operands = {a for a in eqn.invars if type(a) is not Literal}
        if inner is not None:
            for atom, (count, through) in zip(eqn.invars, holds_of(inner).reads, strict=True):
                if type(atom) is Literal:
                    continue
                found = kernels.get(atom, none) | {(n, k) for k in range(count)}
                for i in through:
                    found |= _of(eqn.outvars[i], kernels, readers, held, none)
                kernels[atom] = frozenset(list(found)[:_MANY])
        elif _fuses(prim):
            found = none
            for v in eqn.outvars:
                if v in held or (prim.name in _DEAR and readers[v] > 1):
                    found |= {v}
                else:
                    found |= kernels.get(v, none)
            for k, atom in enumerate(eqn.invars):
                if type(atom) is Literal:
                    continue
                seen = found if prim.elementwise else frozenset([hash((n, k, t)) for t in found])
                kernels[atom] = frozenset(list(kernels.get(atom, none) | seen)[:_MANY])
        else:
            for atom in operands:
                kernels[atom] = frozenset(list(kernels.get(atom, none) | {atom})[:_MANY])
    reads = []
    for v in pr.invars:
        found = kernels.get(v, none)
        reads.append((sum(1 for k in found if type(k) is not tuple or k[0] != "out"),
                      frozenset(k[1] for k in found if type(k) is tuple and k[0] == "out")))
    return kernels, tuple(reads)


def _of(v, kernels, readers, held, none):
    return frozenset((v,)) if v in held else kernels.get(v, none)


def _forward(closed, kernels, readers, allowed):
    pr = closed.olympuspr
    none = frozenset()
    made: dict[Any, frozenset] = {v: frozenset((("in", i),)) for i, v in enumerate(pr.invars)}
    held = set()
    for n, eqn in enumerate(pr.eqns):
        prim, inner = eqn.primitive, _called(eqn)
        operands = [a for a in eqn.invars if type(a) is not Literal]
        if inner is not None:
            found = []
            for count, through in holds_of(inner).outs:
                total = frozenset((n, k) for k in range(count))
                for i in through:
                    if type(eqn.invars[i]) is not Literal:
                        total |= made.get(eqn.invars[i], none)
                found.append(total)
        elif _fuses(prim):
            total = frozenset((n, k) for k in range(_LONG.get(prim.name, 1)))
            for a in operands:
                total |= made.get(a, none)
            found = [total] * len(eqn.outvars)
        else:
            continue
        dear = prim.name in _DEAR
        for v, total in zip(eqn.outvars, found, strict=True):
            if readers[v] > 1 and dear:
                continue
            ops = sum(1 for t in total if t[0] != "in")
            count = len(kernels.get(v, none))
            if (readers[v] > 1 and (count - 1) * ops >= LEAST and _worth(v.aval)
                    and (allowed is None or v in allowed)):
                held.add(v)
                continue
            made[v] = total if len(total) <= _MOST else frozenset(list(total)[:_MOST])
    outs = []
    for a in pr.outvars:
        total = made.get(a, none) if type(a) is not Literal else none
        outs.append((sum(1 for t in total if t[0] != "in"),
                     frozenset(t[1] for t in total if t[0] == "in")))
    return frozenset(held), tuple(outs)


def _fuses(prim):
    return prim.elementwise or prim.name in _FUSED or prim.name in _LONG


def _worth(aval: Any) -> bool:
    shape = physical_aval(aval).shape
    return bool(shape) and 0 not in shape


def _called(eqn: Any) -> ClosedOlympuspr | None:
    """The program that an equation calls, if it becomes part of the caller."""
    if eqn.primitive.name not in _CALLS:
        return None
    bodies = eqn.primitive.bodies(eqn.params)
    return bodies[0] if len(bodies) >= 1 and len(bodies[0].in_avals) == len(eqn.invars) else None
