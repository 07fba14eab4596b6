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
that is in memory anyway. Both are sets, bits of numbers of a fixed size; beyond it, and where two
fall together, too few are counted. A pass before them finds what XLA by its own rules computes once
(`xla/service/instruction_fusion.cc`, `ComputeGloballyUnfusible`): what is expensive, and what is
made of more than one large operand, unless it can be fused into all its readers on every way
there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from ..core.ir import ClosedOlympuspr, Olympuspr, OlympusprEqn, Var, variables
from ..core.primitive import Higher
from ..types.avals import physical_aval
from ..types.shape import less, prod

__all__ = ["holds_of", "kept_of"]

# Of 16 and 48, tried on a dozen programs, the one with which a net with RMS norm is not slower.
LEAST = 48      # operations that a hold must save
_TIMES = 8      # more kernels than these count as these,
_OPERATIONS = 64        # so do more operations,
_TRIED = 64             # and where ways are longer, they are taken to lead through memory.

# What XLA does with an equation. A mixed call is of a program with opaque equations inside.
_FUSED, _MOVES, _REDUCES, _CALLS, _MIXED, _OPAQUE = range(6)
_KINDS = {
    # What XLA fuses into readers besides elementwise operations; some move elements.
    **dict.fromkeys(("clamp", "convert_element_type", "copy", "copy_p", "select_n"), _FUSED),
    **dict.fromkeys((
        "broadcast_in_dim", "concatenate", "dynamic_slice", "iota", "pad", "reshape", "rev",
        "slice", "split", "squeeze", "stack", "transpose", "unstack"), _MOVES),
    **dict.fromkeys(("reduce_sum", "reduce_max", "reduce_min", "reduce_prod"), _REDUCES),
    # Calls of functions with rules, which are a call of the function when they are lowered.
    **dict.fromkeys(("custom_jvp_call", "custom_vjp_call", "custom_vmap_call"), _CALLS)}
_WINDOW = 32    # Reductions of longer axes go by windows first, which are not fused.
# What XLA takes to be expensive: with several readers it is computed once all the same.
_EXPENSIVE = frozenset((
    "acos", "atan", "atan2", "cbrt", "div", "erf", "exp", "exp2", "expm1", "log", "log1p", "log2",
    "logistic", "pow", "rem", "rsqrt", "sqrt", "tanh"))
# Written out in many operations by their lowering, or by XLA before it fuses.
_LONG = dict.fromkeys((
    "bessel_i0e", "bessel_i1e", "digamma", "erf_inv", "erfc", "lgamma", "random_bits",
    "random_fold_in", "random_split", "threefry2x32"), _OPERATIONS)

# Sets: bits below _SIZE are kernels or operations, those above are results or inputs of a program
# that is called, of which the first _SIZE are told apart.
_SIZE = 256
_INNER = (1 << _SIZE) - 1
_STORED = 1     # the kernel that leaves a value in memory


class _Holds(NamedTuple):
    """The values to hold of a program, each with the operations that this saves.

    For a caller: of each result, how many operations compute it and which inputs they read; of each
    input, how many kernels compute it again and which results do. A program that does what is not
    fused is `opaque`.
    """

    saved: Mapping[Var, int]
    results: Sequence[tuple[int, Sequence[int]]] = ()
    inputs: Sequence[tuple[int, Sequence[int]]] = ()
    opaque: bool = False


def holds_of(closed: ClosedOlympuspr) -> Mapping[Var, int]:
    """The values of a program to hold, and how many operations each saves; kept with it."""
    return closed.derived("holds", lambda: _find(closed.olympuspr, False)).saved


def kept_of(closed: ClosedOlympuspr, results: Sequence[int] = ()) -> frozenset[Var]:
    """The values of a program to hold because a call that stays has them in memory.

    XLA would compute them in their other readers again. `results` are those that such a call reads
    in the caller.
    """
    pr = closed.olympuspr
    read = _read_apart(closed).union(variables(pr.outvars[i] for i in results))
    if not read:
        return read
    kinds = [*map(_kind, pr.eqns)]
    readers = _readers(pr, kinds)
    return frozenset([
        v for eqn, kind in zip(pr.eqns, kinds) for v in eqn.outvars if v in read
        and _has_elements(v) and (kind in (_CALLS, _MIXED) or kind < _REDUCES
                                  and len(readers.get(v, ())) > 1)])


def _read_apart(closed: ClosedOlympuspr) -> frozenset[Var]:
    """The values that calls that stay read, also those in functions that are called."""
    return closed.derived("read apart", lambda: frozenset().union(*[
        _apart(eqn) for eqn in closed.olympuspr.eqns if isinstance(eqn.primitive, Higher)]))


def _apart(eqn: OlympusprEqn) -> list[Var]:
    """The values that the equation is to have in memory for calls that stay."""
    if eqn.primitive.stays(eqn.params):
        return variables(eqn.invars)
    if _kind(eqn) not in (_CALLS, _MIXED):
        return []
    called = _program(eqn)
    read = _read_apart(called)
    return variables(a for a, v in zip(eqn.invars, called.olympuspr.invars) if v in read)


def _called(closed: ClosedOlympuspr) -> _Holds:
    """The same of a program that is called, with what its caller is to know."""
    return closed.derived("called holds", lambda: _find(closed.olympuspr, True))


def _find(pr: Olympuspr, called: bool) -> _Holds:
    # One more, for what takes the results from memory.
    kinds = [*map(_kind, pr.eqns), _OPAQUE]
    readers = _readers(pr, kinds)
    if not called and all(len(found) < 2 for found in readers.values()):
        return _Holds({})
    ends = _kept(pr, kinds, readers)
    found: dict[Var, int] | None = None
    for _ in range(2):      # A held value ends the ways through it, so that fewer holds may do.
        kernels = _kernels(pr, kinds, {*ends, *found} if found else ends)
        found, made = _operations(pr, kinds, kernels, readers, ends, found)
        if not found:
            break
    if not called:
        return _Holds(found)
    kernels, opaque = _kernels(pr, kinds, {*ends, *found}), max(kinds[:-1], default=0) >= _MIXED
    return _Holds(found, [_counted(made.get(v, 0)) for v in pr.outvars],
                  [_counted(kernels.get(v, 0)) for v in pr.invars], opaque)


def _counted(found: int) -> tuple[int, Sequence[int]]:
    """Of a set, how many kernels or operations are in it, and which results or inputs."""
    outer = found >> _SIZE
    return (found & _INNER).bit_count(), [i for i in range(outer.bit_length()) if outer >> i & 1]


def _kind(eqn: OlympusprEqn) -> int:
    prim = eqn.primitive
    kind = _KINDS.get(prim.name)
    if kind is None:
        if prim.elementwise or prim.name in _LONG:
            return _FUSED
        kind = _CALLS if isinstance(prim, Higher) and prim.called else _OPAQUE
    if kind == _REDUCES:
        shape = _shape(eqn.invars[0])
        long = any(less(_WINDOW, shape[axis]) for axis in eqn.params["axes"])
        return _OPAQUE if long else kind
    return _MIXED if kind == _CALLS and _called(_program(eqn)).opaque else kind


def _program(eqn: OlympusprEqn) -> ClosedOlympuspr:
    """The program that an equation calls, which XLA makes part of the caller."""
    return eqn.primitive.bodies(eqn.params)[0]


def _readers(pr: Olympuspr, kinds: Sequence[int]) -> dict[Any, list[int]]:
    """By value, the equations that read it, twice if what they call reads it several times; the
    last one is what takes results from memory.
    """
    found: dict[Any, list[int]] = {}
    for n, eqn in enumerate(pr.eqns):
        for v in eqn.invars:
            if type(v) is Var:
                of = found.get(v)
                if of is None:
                    found[v] = [n]
                elif of[-1] != n:
                    of.append(n)
        if kinds[n] in (_CALLS, _MIXED):
            for v, (count, through) in zip(eqn.invars, _called(_program(eqn)).inputs, strict=True):
                if type(v) is Var and count + len(through) > 1:
                    found[v].append(n)
    for v in {*pr.outvars}:
        found.setdefault(v, []).append(len(pr.eqns))
    return found


def _kept(pr: Olympuspr, kinds: Sequence[int], readers: Mapping[Any, Sequence[int]]) -> set[Var]:
    """The values with several readers that XLA computes once."""
    spread = {v for eqn in pr.eqns if eqn.primitive.name in ("broadcast_in_dim", "iota")
              for v in eqn.outvars}
    kept = set[Var]()
    for n in range(len(pr.eqns) - 1, -1, -1):
        eqn = pr.eqns[n]
        for v in eqn.outvars:
            found = readers.get(v, ())
            if len(found) > 1 and (eqn.primitive.name in _EXPENSIVE
                                   or not _is_unary(eqn, v, spread)
                                   and _is_stored(pr, kinds, readers, kept, found)):
                kept.add(v)
    return kept


def _is_stored(pr: Olympuspr, kinds: Sequence[int], readers: Mapping[Any, Sequence[int]],
               kept: Collection[Var], found: Sequence[int]) -> bool:
    """Whether a reader of a value takes it from memory, or a way from one reader to another leads
    through memory.
    """
    if any(kinds[n] == _OPAQUE for n in found):
        return True
    last, ways = found[-1], [(n, False) for n in found]
    seen = {*ways}
    while ways:
        n, through = ways.pop()
        for v in pr.eqns[n].outvars:
            for m in readers.get(v, ()):
                way = m, through or v in kept or kinds[n] >= _MIXED or kinds[m] >= _MIXED
                if m > last or way in seen:
                    continue
                if way[1] and (m in found or len(seen) > _TRIED):
                    return True
                seen.add(way)
                ways.append(way)
    return False


def _is_unary(eqn: OlympusprEqn, v: Var, spread: Collection[Var]) -> bool:
    """Whether an equation reads no more than one large operand that is not spread from a smaller
    one, or no more elements than it makes: then XLA computes its result in each reader whatever
    they are.
    """
    operands = [x for x in eqn.invars if type(x) is Var]
    if len(operands) < 2:
        return True
    rank = _rank(v)
    if sum(_rank(x) >= rank for x in operands if x not in spread) < 2:
        return True
    return sum(prod(_shape(x)) for x in {*operands}) <= prod(_shape(v))


def _bit(n: int) -> int:
    """The kernel, or the operation, of the equation number `n`."""
    return 2 << n % (_SIZE - 1)


def _turned(found: int, by: int) -> int:
    """As many others: kernels that compute a value at another place."""
    by %= _SIZE
    found = found & _INNER | found >> _SIZE
    return (found << by | found >> (_SIZE - by)) & _INNER


def _kernels(pr: Olympuspr, kinds: Sequence[int], ends: Collection[Var]) -> dict[Any, int]:
    """By value, the set of kernels that compute it, each with the way there, and of the results
    in whose readers that is done, too.
    """
    found: dict[Any, int] = {}
    for i, v in enumerate(pr.outvars):
        found[v] = found.get(v, 0) | (1 << _SIZE + i if i < _SIZE else _STORED)
    for n in range(len(pr.eqns) - 1, -1, -1):
        eqn, kind, bit = pr.eqns[n], kinds[n], _bit(n)
        if kind in (_CALLS, _MIXED):
            reached = [bit if v in ends else found.get(v, 0) for v in eqn.outvars]
            for k, (v, (count, through)) in enumerate(zip(
                    eqn.invars, _called(_program(eqn)).inputs, strict=True)):
                ways = _turned((1 << min(count, _SIZE)) - 1, n + 17 * k)
                for i in through:
                    ways |= reached[i]
                found[v] = found.get(v, 0) | ways
            continue
        ways = bit if kind == _REDUCES else _STORED
        if kind < _REDUCES:
            ways = 0
            for v in eqn.outvars:
                of = bit if v in ends else found.get(v, 0)
                ways |= of ^ _STORED | bit if of & _STORED else of
        for k, v in enumerate(eqn.invars):
            found[v] = found.get(v, 0) | (
                _turned(ways, 31 * n + 7 * k + 1) if kind == _MOVES else ways)
    return found


def _operations(pr: Olympuspr, kinds: Sequence[int], kernels: Mapping[Any, int],
                readers: Mapping[Any, Sequence[int]], kept: Collection[Var],
                allowed: Mapping[Var, int] | None) -> tuple[dict[Var, int], dict[Any, int]]:
    """The values to hold among the allowed ones, None for all; and by value, of which operations
    it is made since what is in memory anyway, and of which inputs.
    """
    made: dict[Any, int] = {v: 1 << _SIZE + i for i, v in enumerate(pr.invars[:_SIZE])}
    saved: dict[Var, int] = {}
    for n, eqn in enumerate(pr.eqns):
        kind = kinds[n]
        if kind < _REDUCES:
            of = _bit(n)
            if eqn.primitive.name in _LONG:
                of = _turned((1 << _OPERATIONS) - 1, n)
            for v in eqn.invars:
                of |= made.get(v, 0)
            found = [of] * len(eqn.outvars)
        elif kind in (_CALLS, _MIXED):
            found = []
            for k, (count, through) in enumerate(_called(_program(eqn)).results):
                of = _turned((1 << min(count, _SIZE)) - 1, n + 17 * k)
                for i in through:
                    of |= made.get(eqn.invars[i], 0)
                found.append(of)
        else:
            continue
        for v, of in zip(eqn.outvars, found, strict=True):
            if v in kept:
                continue
            made[v] = of
            if len(readers.get(v, ())) > 1 and (allowed is None or v in allowed):
                again = min(kernels[v].bit_count(), _TIMES) - 1
                saves = again * min((of & _INNER).bit_count(), _OPERATIONS)
                if saves >= LEAST and _has_elements(v):
                    saved[v] = saves
                    del made[v]
    return saved, made


def _shape(atom: Any) -> Sequence[int]:
    return getattr(physical_aval(atom.aval), "shape", ())


def _rank(atom: Any) -> int:
    shape = _shape(atom)
    return len(shape) - shape.count(1)


def _has_elements(v: Var) -> bool:
    """Whether a value is an array of at least one axis; numbers are computed again for nothing."""
    shape = _shape(v)
    return bool(shape) and 0 not in shape
