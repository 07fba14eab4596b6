"""Which values XLA:CPU would compute again in each of their readers, and is made to hold instead.

XLA:CPU fuses the elementwise ancestry of a value into every reader. Where values with several
readers follow each other, as in residual nets and unrolled integrators, the optimised program grows
with the square of its depth, and compile time with the second to third power; the copies are
computed, too. XLA:CPU drops `optimization_barrier` before it fuses. A call of the identity that it
may not inline stays: the value is computed once, for the price of a copy.

A *kernel* is what XLA fuses into one loop. Within one, a value that is read twice at the same place
is computed once; where a reader takes another place (a slice, a concatenation), it is computed
anew, as it is in every further kernel. So two passes over the equations count, backwards, how
often a value is computed, and forwards, of how many operations it is made since the last value
that is in memory anyway.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..core.ir import ClosedOlympuspr, Olympuspr, OlympusprEqn, Var, variables
from ..core.primitive import Higher, Primitive
from ..types.avals import physical_aval

__all__ = ["Holds", "holds_of", "kept_of"]

# Of 16 and 48, tried on a dozen programs, the one with which a net with RMS norm is not slower.
LEAST = 48      # operations that a hold must save
_TIMES = 8      # more kernels than these count as these, so that both passes stay linear;
_OPERATIONS = 64        # so do more operations

# What XLA fuses into readers besides elementwise operations; these move elements.
_MOVES = frozenset((
    "broadcast_in_dim", "concatenate", "dynamic_slice", "iota", "pad", "reshape", "rev", "slice",
    "split", "squeeze", "stack", "transpose", "unstack"))
_IN_PLACE = frozenset(("clamp", "convert_element_type", "copy", "copy_p", "select_n"))
# What XLA takes to be expensive: with several readers it is computed once all the same.
_EXPENSIVE = frozenset((
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "erf",
    "exp", "exp2", "expm1", "log", "log1p", "log2", "logistic", "pow", "rem", "rsqrt", "sin",
    "sinh", "sqrt", "tan", "tanh"))
# Written out in many operations by their lowering.
_LONG = frozenset(("random_bits", "random_fold_in", "random_split", "threefry2x32"))

# Calls of functions with rules, which are a call of the function when they are lowered.
_CALLS = frozenset(("custom_jvp_call", "custom_vjp_call", "custom_vmap_call"))

_Set = frozenset[Hashable]
_NONE: _Set = frozenset()


class Holds(NamedTuple):
    """The values to hold of a program, each with the operations that this saves.

    For a caller: of each result, how many operations compute it and which inputs they read; of each
    input, how many kernels compute it again and which results do.
    """

    saved: dict[Var, int]
    results: tuple[tuple[int, tuple[int, ...]], ...]
    inputs: tuple[tuple[int, tuple[int, ...]], ...]


def holds_of(closed: ClosedOlympuspr) -> Holds:
    """The values of a program to hold; found once, and kept with it."""
    return closed.derived("holds", lambda: _find(closed.olympuspr))


def kept_of(closed: ClosedOlympuspr, results: Sequence[int] = ()) -> frozenset[Var]:
    """The values of a program to hold because a call that stays has them in memory.

    XLA would compute them in their other readers again. `results` are those that such a call reads
    in the caller.
    """
    pr = closed.olympuspr
    read = _read_apart(closed).union(variables(pr.outvars[i] for i in results))
    if not read:
        return read
    readers = Counter(variables(pr.outvars))
    for eqn in pr.eqns:
        readers.update(variables({*eqn.invars}))
    return frozenset([
        v for eqn in pr.eqns for v in eqn.outvars if v in read and _has_elements(v.aval) and (
            _called(eqn) is not None or _is_fused(eqn.primitive) and readers[v] > 1)])


def _read_apart(closed: ClosedOlympuspr) -> frozenset[Var]:
    """The values that calls that stay read, also those in functions that are called."""
    return closed.derived("read apart", lambda: frozenset().union(*[
        _apart(eqn) for eqn in closed.olympuspr.eqns if isinstance(eqn.primitive, Higher)]))


def _apart(eqn: OlympusprEqn) -> list[Var]:
    """The values that the equation is to have in memory for calls that stay."""
    if eqn.primitive.stays(eqn.params):
        return variables(eqn.invars)
    called = _called(eqn)
    if called is None or not (read := _read_apart(called)):
        return []
    return variables(a for a, v in zip(eqn.invars, called.olympuspr.invars) if v in read)


def _find(pr: Olympuspr) -> Holds:
    readers = Counter(variables({*pr.outvars}))
    for eqn in pr.eqns:
        called = _called(eqn)
        if called is None:
            readers.update(variables({*eqn.invars}))
        else:
            for atom, (count, through) in zip(eqn.invars, holds_of(called).inputs, strict=True):
                readers[atom] += count + len(through)
    found: Mapping[Var, int] = _operations(pr, _kernels(pr, readers, ())[0], readers, None)[0]
    if found:       # A held value ends the ways through it, so that fewer holds may do.
        found = _operations(pr, _kernels(pr, readers, found)[0], readers, found)[0]
    kernels, inputs = _kernels(pr, readers, found)
    saved, results = _operations(pr, kernels, readers, found)
    return Holds(saved, results, inputs)


def _kernels(pr: Olympuspr, readers: Mapping[Any, int], held: Iterable[Var]
             ) -> tuple[dict[Var, _Set], tuple[tuple[int, tuple[int, ...]], ...]]:
    """Per value, the kernels that compute it, each with the way there; and of the inputs."""
    held, found = frozenset(held), dict[Var, _Set]()

    def reached(v: Var) -> _Set:
        return frozenset((v,)) if v in held else found.get(v, _NONE)

    def add(v: Var, more: _Set) -> None:
        found[v] = frozenset([*found.get(v, _NONE) | more][:_TIMES])

    for i, v in enumerate(pr.outvars):
        if type(v) is Var:
            add(v, frozenset((_Result(i),)))
    for n in range(len(pr.eqns) - 1, -1, -1):
        eqn = pr.eqns[n]
        prim, called = eqn.primitive, _called(eqn)
        if called is not None:
            for atom, (count, through) in zip(eqn.invars, holds_of(called).inputs, strict=True):
                if type(atom) is Var:
                    add(atom, frozenset((n, k) for k in range(count)).union(
                        *[reached(eqn.outvars[i]) for i in through]))
        elif not _is_fused(prim):
            for v in variables(eqn.invars):
                add(v, frozenset((v,)))
        else:
            ways = _NONE.union(*[frozenset((v,)) if _is_kept(prim, v, readers) else reached(v)
                                 for v in eqn.outvars])
            for k, atom in enumerate(eqn.invars):
                if type(atom) is Var:
                    add(atom, frozenset((n, k, way) for way in map(hash, ways))
                        if prim.name in _MOVES else ways)
    inputs = [(sum(type(k) is not _Result for k in found.get(v, _NONE)),
               tuple([k.index for k in found.get(v, _NONE) if type(k) is _Result]))
              for v in pr.invars]
    return found, tuple(inputs)


def _operations(pr: Olympuspr, kernels: Mapping[Var, _Set], readers: Mapping[Any, int],
                allowed: Mapping[Var, int] | None
                ) -> tuple[dict[Var, int], tuple[tuple[int, tuple[int, ...]], ...]]:
    """The values to hold among the allowed ones, None for all; and of how many operations the
    results are made.
    """
    made: dict[Var, _Set] = {v: frozenset((_Input(i),)) for i, v in enumerate(pr.invars)}
    saved: dict[Var, int] = {}
    for n, eqn in enumerate(pr.eqns):
        prim, called = eqn.primitive, _called(eqn)
        if called is not None:
            found = [frozenset((n, k) for k in range(count)).union(
                *[made.get(eqn.invars[i], _NONE) for i in through if type(eqn.invars[i]) is Var])
                for count, through in holds_of(called).results]
        elif _is_fused(prim):
            count = _OPERATIONS if prim.name in _LONG else 1
            found = [frozenset((n, k) for k in range(count)).union(
                *[made.get(v, _NONE) for v in variables(eqn.invars)])] * len(eqn.outvars)
        else:
            continue
        for v, operations in zip(eqn.outvars, found, strict=True):
            if _is_kept(prim, v, readers):
                continue
            count = sum(type(x) is not _Input for x in operations)
            saves = (len(kernels.get(v, _NONE)) - 1) * count
            if (readers[v] > 1 and saves >= LEAST and (allowed is None or v in allowed)
                    and _has_elements(v.aval)):
                saved[v] = saves
            else:
                made[v] = frozenset([*operations][:_OPERATIONS])
    ends = [made.get(v, _NONE) if type(v) is Var else _NONE for v in pr.outvars]
    return saved, tuple([(sum(type(x) is not _Input for x in end),
                          tuple([x.index for x in end if type(x) is _Input])) for end in ends])


class _Input(NamedTuple):
    index: int


class _Result(NamedTuple):
    index: int


def _is_fused(prim: Primitive) -> bool:
    return (prim.elementwise or prim.name in _MOVES or prim.name in _IN_PLACE
            or prim.name in _LONG)


def _is_kept(prim: Primitive, v: Var, readers: Mapping[Any, int]) -> bool:
    """Whether XLA computes a value once, however many read it."""
    return prim.name in _EXPENSIVE and readers[v] > 1


def _has_elements(aval: Any) -> bool:
    """Whether a value is an array of at least one axis; numbers are computed again for nothing."""
    shape = getattr(physical_aval(aval), "shape", ())
    return bool(shape) and 0 not in shape


def _called(eqn: OlympusprEqn) -> ClosedOlympuspr | None:
    """The program that an equation calls, if XLA makes it part of the caller."""
    prim = eqn.primitive
    if prim.name not in _CALLS and not (isinstance(prim, Higher) and prim.called):
        return None
    return prim.bodies(eqn.params)[0]
