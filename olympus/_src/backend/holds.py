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

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..core.ir import ClosedOlympuspr, Olympuspr, OlympusprEqn, Var, variables
from ..core.primitive import Higher
from ..types.avals import physical_aval
from ..types.shape import less, prod

__all__ = ["holds_of", "kept_of"]

# Operations that a hold must save of further kernels, and of further places within kernels, where
# half are enough for arrays that are not small. Found with tools/hold_corpus.py: with 16 a net with
# RMS norm is slower; with 48 or 128 for places, short integrations of small arrays are.
LEAST = 48
LEAST_PLACES = 256
_SMALL = 4096
_TIMES = 8      # more kernels than these count as these,
_OPERATIONS = 64        # so do more operations,
_TRIED = 64             # and where ways are longer, those that lead through memory rejoin.

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
_LONG = frozenset((
    "bessel_i0e", "bessel_i1e", "digamma", "erf_inv", "erfc", "lgamma", "random_bits",
    "random_fold_in", "random_split", "threefry2x32"))

# Sets: bits below _SIZE are kernels or operations; the next as many are results or inputs of a
# program that is called, of which the first _SIZE are told apart; those above are places.
_SIZE = 256
_INNER = (1 << _SIZE) - 1
_ONCE = (1 << 2 * _SIZE) - 1
_STORED = 1     # the kernel that leaves a value in memory
_BITS = [2 << n for n in range(_SIZE - 1)]      # the kernels, or the operations, of equations


class _Called(NamedTuple):
    """What a caller is to know of a program.

    Of each result, how many operations compute it and which inputs they read; of each input, how
    many kernels compute it again, which results do, and at how many places. A program that does
    what is not fused is `opaque`.
    """

    results: Sequence[tuple[int, Sequence[int], int]]
    inputs: Sequence[tuple[int, Sequence[int], int]]
    opaque: bool


def holds_of(closed: ClosedOlympuspr) -> Mapping[Var, int]:
    """The values of a program to hold, and how many operations each saves; kept with it."""
    # What is fused is not kept: it takes more than the program.
    return closed.derived("holds", lambda: _Fusion(closed.olympuspr).holds())


def kept_of(closed: ClosedOlympuspr, results: Sequence[int] = ()) -> frozenset[Var]:
    """The values of a program to hold because a call that stays has them in memory.

    XLA would compute them in their other readers again. `results` are those that such a call reads
    in the caller.
    """
    pr = closed.olympuspr
    read = _read_apart(closed).union(variables(pr.outvars[i] for i in results))
    if not read:
        return read
    fusion = _Fusion(pr)
    several = {v for v, found in fusion.readers.items() if len(found) > 1}
    return frozenset([
        v for n, eqn in enumerate(pr.eqns) for v in eqn.outvars if v in read and _has_elements(v)
        and (n in fusion.called or fusion.kinds[n] < _REDUCES and v in several)])


def _read_apart(closed: ClosedOlympuspr) -> frozenset[Var]:
    """The values that calls that stay read, also those in functions that are called."""
    return closed.derived("read apart", lambda: frozenset().union(*[
        _apart(eqn) for eqn in closed.olympuspr.eqns if isinstance(eqn.primitive, Higher)]))


def _apart(eqn: OlympusprEqn) -> list[Var]:
    """The values that the equation is to have in memory for calls that stay."""
    if eqn.primitive.stays(eqn.params):
        return variables(eqn.invars)
    if _kind(eqn) != _CALLS:
        return []
    called = _program(eqn)
    read = _read_apart(called)
    return variables(a for a, v in zip(eqn.invars, called.olympuspr.invars) if v in read)


def _called(closed: ClosedOlympuspr) -> _Called:
    return closed.derived("called", lambda: _Fusion(closed.olympuspr).as_called())


def _kind(eqn: OlympusprEqn) -> int:
    prim = eqn.primitive
    kind = _KINDS.get(prim.name)
    if kind is None:
        if prim.elementwise or prim.name in _LONG:
            return _FUSED
        return _CALLS if isinstance(prim, Higher) and prim.called else _OPAQUE
    if kind == _REDUCES:
        shape = _shape(eqn.invars[0])
        long = any(less(_WINDOW, shape[axis]) for axis in eqn.params["axes"])
        return _OPAQUE if long else kind
    return kind


def _program(eqn: OlympusprEqn) -> ClosedOlympuspr:
    """The program that an equation calls, which XLA makes part of the caller."""
    return eqn.primitive.bodies(eqn.params)[0]


class _Fusion:
    """How XLA fuses the equations of a program."""

    def __init__(self, pr: Olympuspr) -> None:
        self.pr = pr
        # One more, for what takes the results from memory.
        self.kinds = [*map(_kind, pr.eqns), _OPAQUE]
        self.called: dict[int, _Called] = {}    # by the number of the equation that calls
        if _CALLS in self.kinds:
            for n, eqn in enumerate(pr.eqns):
                if self.kinds[n] == _CALLS:
                    self.called[n] = found = _called(_program(eqn))
                    self.kinds[n] = _MIXED if found.opaque else _CALLS
        self.readers = self._find_readers()
        # What is fused into one kernel as it stands, or has one reader, is not computed again.
        self.is_plain = not self.called and (
            len(pr.outvars) < 2 and not {*self.kinds[:-1]} - {_FUSED}
            or max(map(len, self.readers.values()), default=0) < 2)
        # Values with several readers: those that XLA computes once, and the others.
        self.kept, self.several = set[Var](), set[Var]()
        if not self.is_plain:
            self._divide()

    def holds(self) -> Mapping[Var, int]:
        """The values to hold, and what each saves."""
        if self.is_plain or not self.operations(None, None)[0] and not self.called:
            return {}
        held, _ = self.operations(self.kernels(()), None)
        if held:        # A held value ends the ways through it, so that fewer may do.
            held, _ = self.operations(self.kernels(held), held)
        return held

    def as_called(self) -> _Called:
        """The same for a caller."""
        pr, held = self.pr, self.holds()
        kernels = self.kernels(held)
        _, made = self.operations(kernels, held)
        return _Called(_counted(made, pr.outvars), _counted(kernels, pr.invars),
                       max(self.kinds[:-1], default=0) >= _MIXED)

    def _find_readers(self) -> dict[Any, list[int]]:
        """By value, the equations that read it, twice if what they call reads it several times; the
        last one is what takes results from memory.
        """
        found: dict[Any, list[int]] = {}
        for n, eqn in enumerate(self.pr.eqns):
            for v in eqn.invars:
                if type(v) is Var:
                    of = found.get(v)
                    if of is None:
                        found[v] = [n]
                    elif of[-1] != n:
                        of.append(n)
            if n in self.called:
                for v, (count, through, places) in zip(
                        eqn.invars, self.called[n].inputs, strict=True):
                    if type(v) is Var and (count + len(through) > 1 or places > 1):
                        found[v].append(n)
        for v in {*self.pr.outvars}:
            found.setdefault(v, []).append(len(self.pr.eqns))
        return found

    def _divide(self) -> None:
        eqns = self.pr.eqns
        spread = {v for eqn in eqns if eqn.primitive.name in ("broadcast_in_dim", "iota")
                  for v in eqn.outvars}
        for eqn in reversed(eqns):
            for v in eqn.outvars:
                readers = self.readers.get(v, ())
                if len(readers) > 1:
                    once = eqn.primitive.name in _EXPENSIVE or not _is_unary(eqn, v, spread) and (
                        self._is_stored(readers))
                    (self.kept if once else self.several).add(v)

    def _is_stored(self, readers: Sequence[int]) -> bool:
        """Whether a reader of a value takes it from memory, or a way from one reader to another
        leads through memory.
        """
        kinds = self.kinds
        if _OPAQUE in [kinds[n] for n in readers]:
            return True
        among, last, ways = {*readers}, readers[-1], [(n, False) for n in readers]
        seen = {*ways}
        while ways and len(seen) < len(readers) + 4 * _TRIED:
            n, through = ways.pop()
            for v in self.pr.eqns[n].outvars:
                for m in self.readers.get(v, ()):
                    if m > last:
                        break
                    way = m, through or v in self.kept or kinds[n] >= _MIXED or kinds[m] >= _MIXED
                    if way in seen:
                        continue
                    if way[1] and (m in among or len(seen) > len(readers) + _TRIED):
                        return True
                    seen.add(way)
                    ways.append(way)
        return False

    def kernels(self, held: Iterable[Var]) -> dict[Any, int]:
        """By value, the set of kernels that compute it, each with the way there, and of the results
        in whose readers that is done, too.
        """
        pr, kinds, ends = self.pr, self.kinds, {*self.kept, *held}
        found: dict[Any, int] = {}
        for i, v in enumerate(pr.outvars):
            found[v] = found.get(v, 0) | (1 << _SIZE + i if i < _SIZE else _STORED)
        for n in range(len(pr.eqns) - 1, -1, -1):
            eqn, kind, bit = pr.eqns[n], kinds[n], _BITS[n % len(_BITS)]
            if n in self.called:
                self._kernels_of_call(n, [bit if v in ends else found.get(v, 0)
                                          for v in eqn.outvars], found)
                continue
            ways = bit if kind == _REDUCES else _STORED
            if kind < _REDUCES:
                ways = 0
                for v in eqn.outvars:
                    of = bit if v in ends else found.get(v, 0)
                    ways |= of ^ _STORED | bit if of & _STORED else of
            for k, v in enumerate(eqn.invars):
                if type(v) is Var:
                    found[v] = found.get(v, 0) | (
                        _elsewhere(ways, 31 * n + 7 * k + 1) if kind == _MOVES else ways)
        return found

    def _kernels_of_call(self, n: int, reached: Sequence[int], found: dict[Any, int]) -> None:
        for k, (v, (count, through, places)) in enumerate(zip(
                self.pr.eqns[n].invars, self.called[n].inputs, strict=True)):
            ways = _several(count, n + 17 * k) | _several(places, n + 17 * k) << 2 * _SIZE
            for i in through:
                ways |= reached[i]
            found[v] = found.get(v, 0) | ways

    def operations(self, kernels: Mapping[Any, int] | None, allowed: Collection[Var] | None
                   ) -> tuple[dict[Var, int], dict[Any, int]]:
        """The values to hold among the allowed ones, None for all; and by value, of which
        operations it is made since what is in memory anyway, and of which inputs.

        Without kernels, the values that there might be to hold.
        """
        made: dict[Any, int] = {v: 1 << _SIZE + i for i, v in enumerate(self.pr.invars[:_SIZE])}
        held: dict[Var, int] = {}
        for n, eqn in enumerate(self.pr.eqns):
            if self.kinds[n] < _REDUCES:
                of = _BITS[n % len(_BITS)]
                if eqn.primitive.name in _LONG:
                    of = _several(_OPERATIONS, n)
                for v in eqn.invars:
                    if type(v) is Var:
                        of |= made.get(v, 0)
                found = [of] * len(eqn.outvars)
            elif n in self.called:
                found = self._operations_of_call(n, made)
            else:
                continue
            for v, of in zip(eqn.outvars, found):
                made[v] = of
                if v in self.several:
                    again, elsewhere = _again(kernels[v]) if kernels else (_TIMES - 1,) * 2
                    count = min((of & _INNER).bit_count(), _OPERATIONS)
                    if (again * count >= LEAST or elsewhere * count >= _least_places(v)) and (
                            allowed is None or v in allowed) and _has_elements(v):
                        held[v] = max(again, elsewhere) * count
                        del made[v]
                elif v in self.kept:
                    del made[v]
        return held, made

    def _operations_of_call(self, n: int, made: Mapping[Any, int]) -> list[int]:
        found = []
        for k, (count, through, _) in enumerate(self.called[n].results):
            of = _several(count, n + 17 * k)
            for i in through:
                of |= made.get(self.pr.eqns[n].invars[i], 0)
            found.append(of)
        return found


def _counted(sets: Mapping[Any, int], of: Sequence[Any]
             ) -> list[tuple[int, Sequence[int], int]]:
    """By value, how many kernels or operations are in its set, which results or inputs, and how
    many places.
    """
    found: list[tuple[int, Sequence[int], int]] = []
    for v in of:
        inner = sets.get(v, 0)
        outer = inner >> _SIZE & _INNER
        found.append(((inner & _INNER).bit_count(), [
            i for i in range(outer.bit_length()) if outer >> i & 1] if outer else (),
            (inner >> 2 * _SIZE).bit_count()))
    return found


def _is_unary(eqn: OlympusprEqn, v: Var, spread: Collection[Var]) -> bool:
    """Whether an equation reads no more than one large operand that is not spread from a smaller
    one, or no more elements than it makes: then XLA computes its result in each reader whatever
    they are.
    """
    operands = [x for x in eqn.invars if type(x) is Var]
    if len(operands) < 2:
        return True
    rank = _rank(v)
    if len([x for x in operands if x not in spread and _rank(x) >= rank]) < 2:
        return True
    return sum(map(prod, map(_shape, {*operands}))) <= prod(_shape(v))


def _turned(found: int, by: int) -> int:
    """As many other bits of `_SIZE`."""
    by %= _SIZE
    return (found << by | found >> (_SIZE - by)) & _INNER


def _several(count: int, n: int) -> int:
    """So many kernels, operations or places, others for each number `n`."""
    return _turned((1 << min(count, _SIZE)) - 1, n) if count else 0


def _elsewhere(found: int, by: int) -> int:
    """The same kernels, at places of which those are told apart by a number."""
    once = found & _ONCE
    places = _turned(found >> 2 * _SIZE | once & _INNER | once >> _SIZE, by)
    return once | places << 2 * _SIZE


def _again(found: int) -> tuple[int, int]:
    """In how many further kernels a value is computed, and at how many further places."""
    return (min((found & _ONCE).bit_count(), _TIMES) - 1,
            min((found >> 2 * _SIZE).bit_count(), _TIMES) - 1)


def _least_places(v: Var) -> int:
    return LEAST_PLACES if less(prod(_shape(v)), _SMALL) else LEAST_PLACES // 2


def _shape(atom: Any) -> Sequence[int]:
    return getattr(physical_aval(atom.aval), "shape", ())


def _rank(atom: Any) -> int:
    shape = _shape(atom)
    return len(shape) - shape.count(1)


def _has_elements(v: Var) -> bool:
    """Whether a value is an array of at least one axis; numbers are computed again for nothing."""
    shape = _shape(v)
    return bool(shape) and 0 not in shape
