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

from ..core.introspection import subolympusprs
from ..core.ir import ClosedOlympuspr, Olympuspr, OlympusprEqn, Var, variables
from ..core.primitive import Higher
from ..types.avals import physical_aval
from ..types.shape import less, prod
from ..types.sharding import NamedSharding, axes_of

__all__ = ["cut_sizes", "holds_of", "kept_of", "read_apart"]

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
_FUSED, _LONG, _MOVES, _REDUCES, _CALLS, _MIXED, _OPAQUE = range(7)
_KINDS = {
    # What XLA fuses into readers besides elementwise operations; some move elements.
    **dict.fromkeys(("clamp", "convert_element_type", "copy", "copy_p", "select_n"), _FUSED),
    # Written out in many operations by their lowering, or by XLA before it fuses.
    **dict.fromkeys((
        "bessel_i0e", "bessel_i1e", "digamma", "erf_inv", "erfc", "lgamma", "random_bits",
        "random_fold_in", "random_split", "threefry2x32"), _LONG),
    **dict.fromkeys((
        "broadcast_in_dim", "concatenate", "dynamic_slice", "iota", "pad", "reshape", "rev",
        "slice", "split", "squeeze", "stack", "transpose", "unstack"), _MOVES),
    **dict.fromkeys(("reduce_sum", "reduce_max", "reduce_min", "reduce_prod"), _REDUCES),
    # Calls of functions with rules, which are a call of the function when they are lowered.
    **dict.fromkeys(("custom_jvp_call", "custom_vjp_call", "custom_vmap_call"), _CALLS)}
# Along which axes they move or combine elements, by name of the param.
_AXES = {"concatenate": "dimension", "rev": "dimensions", "split": "axis", "unstack": "axis",
         **dict.fromkeys(("reduce_sum", "reduce_max", "reduce_min", "reduce_prod"), "axes")}
_SPREADS = frozenset(("broadcast_in_dim", "iota"))
_WINDOW = 32    # Reductions of longer axes go by windows first, which are not fused.
# What XLA takes to be expensive: with several readers it is computed once all the same.
_EXPENSIVE = frozenset((
    "acos", "atan", "atan2", "cbrt", "div", "erf", "exp", "exp2", "expm1", "log", "log1p", "log2",
    "logistic", "pow", "rem", "rsqrt", "sqrt", "tanh"))
# Of a value with several readers: whether it is computed again in them, may be held, is computed
# once by XLA's own rules, is held.
_PLAIN, _SHARED, _CANDIDATE, _KEPT, _HELD = range(5)

# Sets: bits below _SIZE are kernels or operations; the next as many are results or inputs of a
# program that is called, of which the first _SIZE are told apart; those above are places.
_SIZE = 256
_INNER = (1 << _SIZE) - 1
_ONCE = (1 << 2 * _SIZE) - 1
_PLACES = _INNER << 2 * _SIZE
_STORED = 1     # the kernel that leaves a value in memory
_CYCLE = _SIZE - 1      # equations whose kernels or operations are told apart


class _Called(NamedTuple):
    """What a caller is to know of a program.

    Of each result, how many operations compute it and which inputs they read; of each input, how
    many kernels compute it again, which results do, and at how many places. A program that does
    what is not fused is `opaque`.
    """

    results: Sequence[tuple[int, Sequence[int], int]]
    inputs: Sequence[tuple[int, Sequence[int], int]]
    opaque: bool


def holds_of(closed: ClosedOlympuspr, cut: frozenset[int] = frozenset()) -> Mapping[Var, int]:
    """The values of a program to hold, and how many operations each saves; kept with it.

    `cut` are the sizes of axes that several devices share: what moves elements along an axis of
    such a size, XLA's partitioner makes an exchange between devices, which ends a kernel.
    """
    pr = closed.olympuspr
    if len(pr.outvars) < 2 and max(map(_kind, {eqn.primitive for eqn in pr.eqns}),
                                   default=_FUSED) < _MOVES:
        return {}       # One kernel computes it all.
    # What is fused is not kept: it takes more than the program.
    return closed.derived(("holds", cut), lambda: _Fusion(pr, cut).holds())


def kept_of(closed: ClosedOlympuspr, read: Collection[Var], cut: frozenset[int] = frozenset()
            ) -> frozenset[Var]:
    """The values of a program to hold because what reads them has them in memory.

    XLA would compute them in their other readers again.
    """
    if not read:
        return frozenset()
    pr, fusion = closed.olympuspr, _Fusion(closed.olympuspr, cut)
    return frozenset([
        v for n, eqn in enumerate(pr.eqns) for v, i in zip(eqn.outvars, fusion.results[n])
        if v in read and _can_be_held(v)
        and (n in fusion.called or fusion.kinds[n] < _REDUCES and i in fusion.readers)])


def read_apart(closed: ClosedOlympuspr) -> frozenset[Var]:
    """The values that calls that stay read, also those in functions that are called."""
    return closed.derived("read apart", lambda: frozenset().union(*[
        _apart(eqn) for eqn in closed.olympuspr.eqns if isinstance(eqn.primitive, Higher)]))


def cut_sizes(closed: ClosedOlympuspr, given: Iterable[tuple[Any, Any]]) -> frozenset[int]:
    """The sizes of axes that several devices share: of arguments and results, given as (sharding or
    None, aval), and where types or constraints within the program say so.
    """
    found = {n for s, aval in given if s is not None for n in _cut(s.mesh, s.spec, aval)}
    pending, seen, avals = [closed.olympuspr], {closed.olympuspr}, [*closed.in_avals]
    while pending:
        pr = pending.pop()
        for eqn in pr.eqns:
            for v in eqn.outvars:
                if v.aval.tagged:
                    avals.append(v.aval)
            for param in eqn.params.values():
                if type(param) is NamedSharding:
                    found.update(_cut(param.mesh, param.spec, eqn.outvars[0].aval))
            if eqn.primitive.name == "shard_map":
                for specs, atoms in (("in_specs", eqn.invars), ("out_specs", eqn.outvars)):
                    for spec, atom in zip(eqn.params[specs], atoms, strict=True):
                        found.update(_cut(eqn.params["mesh"], spec, atom.aval))
        inner = {*subolympusprs(pr)} - seen
        pending += inner
        seen |= inner
    return frozenset(found.union(*[
        _cut(a.sharding.mesh, a.sharding.spec, a) for a in avals if a.tagged]))


def _cut(mesh: Any, spec: Any, aval: Any) -> list[int]:
    """The sizes of the axes that are cut in more than one part along those of the mesh."""
    parts = dict(mesh.shape_tuple)
    return [n for entry, n in zip(spec, aval.shape) if any(parts[a] > 1 for a in axes_of(entry))]


def _apart(eqn: OlympusprEqn) -> list[Var]:
    """The values that the equation is to have in memory for calls that stay."""
    if eqn.primitive.stays(eqn.params):
        return variables(eqn.invars)
    if _kind(eqn.primitive) != _CALLS:
        return []
    called = _program(eqn)
    read = read_apart(called)
    return variables(a for a, v in zip(eqn.invars, called.olympuspr.invars) if v in read)


def _called(closed: ClosedOlympuspr, cut: frozenset[int]) -> _Called:
    return closed.derived(("called", cut), lambda: _Fusion(closed.olympuspr, cut).as_called())


def _kind(prim: Any) -> int:
    kind = _KINDS.get(prim.name)
    if kind is None:
        if prim.elementwise:
            return _FUSED
        return _CALLS if isinstance(prim, Higher) and prim.called else _OPAQUE
    return kind


def _is_long(eqn: OlympusprEqn) -> bool:
    """Whether a reduction goes over more elements than one window."""
    shape = _shape(eqn.invars[0])
    return any(less(_WINDOW, shape[axis]) for axis in eqn.params["axes"])


def _exchanges(eqn: OlympusprEqn, cut: frozenset[int]) -> bool:
    """Whether an equation moves elements along an axis of such a size, or combines those there."""
    name, params = eqn.primitive.name, eqn.params
    shapes = [*map(_shape, eqn.invars), _shape(eqn.outvars[0])]
    rank = len(shapes[0])
    if name in _AXES:
        given = params[_AXES[name]]
        axes = given if isinstance(given, tuple) else (given,)
    elif name == "pad":
        axes = tuple([a for a, config in enumerate(params["padding_config"]) if any(config)])
    elif name in ("slice", "dynamic_slice"):
        axes = tuple([a for a in range(rank) if shapes[0][a] != shapes[-1][a]])
    else:
        return False
    return not cut.isdisjoint([s[a] for s in shapes if len(s) == rank for a in axes])


def _program(eqn: OlympusprEqn) -> ClosedOlympuspr:
    """The program that an equation calls, which XLA makes part of the caller."""
    return eqn.primitive.bodies(eqn.params)[0]


class _Ranks(dict[Any, int]):
    """By aval, how many axes it has that are not of size 1."""

    def __missing__(self, aval: Any) -> int:
        shape = getattr(physical_aval(aval), "shape", ())
        found = self[aval] = len(shape) - shape.count(1)
        return found


class _Fusion:
    """How XLA fuses the equations of a program.

    Values are numbered as they are bound, and equations looked at once: passes over lists of
    numbers are quicker. 0 is the number of literals.
    """

    def __init__(self, pr: Olympuspr, cut: frozenset[int]) -> None:
        self.pr = pr
        self.kinds: list[int] = []      # by equation, and one more for what takes the results
        self.called: dict[int, _Called] = {}    # by the equation that calls
        self.operands: list[list[int]] = []
        self.results: list[Sequence[int]] = []
        self.makers = [-1] * (1 + len(pr.constvars) + len(pr.invars))   # by value, the equation
        self.reader = [*self.makers]    # by value, the first equation that reads it; -1: none does
        self.readers: dict[int, list[int]] = {}     # by value with several, all of them
        self.returned: list[int] = []
        self._number(cut)
        self.states = [_PLAIN] * len(self.makers)
        # Of which operations a value is made since what is in memory anyway, of which inputs.
        self.made = [0] * len(self.makers)
        # What is fused into one kernel as it stands, or has one reader, is not computed again.
        if self.called or self.readers and (
                len(pr.outvars) > 1 or max(self.kinds[:-1], default=0) >= _MOVES):
            self._divide()

    def holds(self) -> Mapping[Var, int]:
        """The values to hold, and what each saves."""
        if _SHARED not in self.states:
            return {}
        found = self._operations(range(len(self.pr.eqns)), None)
        if found:
            near = self._near(found)
            found = self._operations(near, self._kernels(near))
            # A held value ends the ways through it, so that fewer may do.
            found = self._operations(near, self._kernels(near))
        return {self._variable(i): saves for i, saves in found.items()}

    def as_called(self) -> _Called:
        """The same for a caller."""
        pr, first = self.pr, 1 + len(self.pr.constvars)
        self.holds()
        every = range(len(pr.eqns))
        for i in range(min(len(pr.invars), _SIZE)):
            self.made[first + i] = 1 << _SIZE + i
        kernels = self._kernels(every)
        self._operations(every, kernels)
        return _Called([_counted(self.made[i]) for i in self.returned],
                       [_counted(kernels[first + i]) for i in range(len(pr.invars))],
                       max(self.kinds[:-1], default=0) >= _MIXED)

    def _number(self, cut: frozenset[int]) -> None:
        pr, kinds, makers, reader, readers = (
            self.pr, self.kinds, self.makers, self.reader, self.readers)
        numbers: dict[Any, int] = {v: i for i, v in enumerate([*pr.constvars, *pr.invars], 1)}
        known: dict[Any, int] = {}
        for n, eqn in enumerate(pr.eqns):
            operands: list[int] = []
            for v in eqn.invars:
                if type(v) is not Var:
                    operands.append(0)
                    continue
                i = numbers[v]
                operands.append(i)
                if reader[i] < 0:
                    reader[i] = n
                elif i in readers:
                    if readers[i][-1] != n:
                        readers[i].append(n)
                elif reader[i] != n:
                    readers[i] = [reader[i], n]
            self.operands.append(operands)
            kind = known.get(eqn.primitive)
            if kind is None:
                kind = known[eqn.primitive] = _kind(eqn.primitive)
            if kind >= _MOVES:
                if kind == _CALLS:
                    kind = self._note_call(n, _called(_program(eqn), cut))
                elif kind == _REDUCES and _is_long(eqn) or cut and kind != _OPAQUE and (
                        _exchanges(eqn, cut)):
                    kind = _OPAQUE
            kinds.append(kind)
            first = len(makers)
            for v in eqn.outvars:
                numbers[v] = len(makers)
                makers.append(n)
                reader.append(-1)
            self.results.append((first,) if len(makers) == first + 1 else range(first, len(makers)))
        kinds.append(_OPAQUE)
        self.returned = [numbers.get(v, 0) for v in pr.outvars]
        for i in {*self.returned} - {0}:
            self._note_reader(i, len(pr.eqns))

    def _note_reader(self, i: int, n: int) -> None:
        if self.reader[i] < 0:
            self.reader[i] = n
        else:
            self.readers.setdefault(i, [self.reader[i]]).append(n)

    def _note_call(self, n: int, called: _Called) -> int:
        """Note what an equation calls, and, as two readers, what reads an operand several times;
        the equation's kind.
        """
        self.called[n] = called
        for i, (count, through, places) in zip(self.operands[n], called.inputs, strict=True):
            if i and (count + len(through) > 1 or places > 1):
                self._note_reader(i, n)
        return _MIXED if called.opaque else _CALLS

    def _variable(self, i: int) -> Var:
        n = self.makers[i]
        return self.pr.eqns[n].outvars[i - self.results[n][0]]

    def _divide(self) -> None:
        """Tell the values with several readers that XLA computes once from the others."""
        kinds, states, eqns = self.kinds, self.states, self.pr.eqns
        stored = [n for n, kind in enumerate(kinds) if kind >= _MIXED]
        opaque = {n for n in stored if kinds[n] == _OPAQUE}
        nearest, ranks = len(kinds), _Ranks()   # the next equation whose result is in memory
        for i in sorted(self.readers, reverse=True):
            n, readers = self.makers[i], self.readers[i]
            if n < 0 or n in opaque:
                continue
            while stored and stored[-1] > n:
                nearest = stored.pop()
            if eqns[n].primitive.name in _EXPENSIVE or nearest <= readers[-1] and (
                    not self._is_unary(n, i, ranks)
                    and (not opaque.isdisjoint(readers) or self._passes_memory(readers))):
                states[i], nearest = _KEPT, n
            else:
                states[i] = _SHARED

    def _is_unary(self, n: int, i: int, ranks: _Ranks) -> bool:
        """Whether an equation reads no more than one large operand that is not spread from a
        smaller one, or no more elements than it makes: then XLA computes its result in each reader
        whatever they are.
        """
        eqns, eqn = self.pr.eqns, self.pr.eqns[n]
        if len(eqn.invars) < 2:
            return True
        v = eqn.outvars[i - self.results[n][0]]
        rank = ranks[v.aval]
        large = [k for k, x in zip(self.operands[n], eqn.invars, strict=True)
                 if k and ranks[x.aval] >= rank and not (
                     self.makers[k] >= 0 and eqns[self.makers[k]].primitive.name in _SPREADS)]
        return len(large) < 2 or (
            sum(map(prod, map(_shape, {*variables(eqn.invars)}))) <= prod(_shape(v)))

    def _passes_memory(self, readers: Sequence[int]) -> bool:
        """Whether a way from one reader of a value to another leads through memory."""
        kinds, states = self.kinds, self.states
        among, last, ways = {*readers}, readers[-1], [(n, False) for n in readers]
        seen = {*ways}
        while ways and len(seen) < len(readers) + 4 * _TRIED:
            n, through = ways.pop()
            for i in self.results[n]:
                stored = through or kinds[n] >= _MIXED or states[i] == _KEPT
                for m in self.readers.get(i) or self.reader[i:i + 1]:
                    if m > last:
                        break
                    way = m, stored or kinds[m] >= _MIXED
                    if m < 0 or way in seen:
                        continue
                    if way[1] and (m in among or len(seen) > len(readers) + _TRIED):
                        return True
                    seen.add(way)
                    ways.append(way)
        return False

    def _near(self, candidates: Iterable[int]) -> list[int]:
        """The equations that compute candidates, and those that these are fused into."""
        kinds, states, reader, readers = self.kinds, self.states, self.reader, self.readers
        near = bytearray(len(kinds) + 1)    # the last one is for what nothing reads
        pending = [*candidates]
        for i in pending:
            for n in readers[i] if i in readers else (reader[i],):
                if not near[n]:
                    near[n] = True
                    if kinds[n] <= _MOVES or n in self.called:
                        pending += [k for k in self.results[n] if states[k] != _KEPT]
        for i in candidates:
            near[self.makers[i]] = True
        return [n for n in range(len(kinds) - 1) if near[n]]

    def _kernels(self, positions: Sequence[int]) -> list[int]:
        """By value, the set of kernels that compute it, each with the way there, and of the results
        in whose readers that is done, too; of values that only equations at these positions read.
        """
        kinds, states, every, results = self.kinds, self.states, self.operands, self.results
        found = [0] * len(states)
        for i, k in enumerate(self.returned):
            found[k] |= 1 << _SIZE + i if i < _SIZE else _STORED
        for n in reversed(positions):
            kind, bit = kinds[n], 2 << n % _CYCLE
            if kind <= _MOVES:
                ways = 0
                for i in results[n]:
                    of = found[i] if states[i] < _KEPT else bit
                    ways |= of ^ _STORED | bit if of & _STORED else of
            elif n in self.called:
                _reach_by_call(n, self.called[n], [
                    found[i] if states[i] < _KEPT else bit for i in results[n]], every[n], found)
                continue
            else:
                ways = bit if kind == _REDUCES else _STORED
            if kind != _MOVES:
                for i in every[n]:
                    found[i] |= ways
                continue
            # By the same kernels, at places of which those are told apart by a number.
            twice = (ways | ways >> _SIZE | ways >> 2 * _SIZE) & _INNER
            twice |= twice << _SIZE
            for k, i in enumerate(every[n]):
                turned = twice << _SIZE + (31 * n + 7 * k + 1) % _SIZE & _PLACES
                found[i] |= ways & _ONCE | turned
        return found

    def _operations(self, positions: Sequence[int], kernels: Sequence[int] | None
                    ) -> dict[int, int]:
        """Of candidates and held values, those to hold now, and what each saves; without kernels,
        the values of enough operations to become candidates.
        """
        kinds, states, made, operands = self.kinds, self.states, self.made, self.operands
        found: dict[int, int] = {}
        for n in positions:
            kind = kinds[n]
            if kind <= _MOVES:
                of = _several(_OPERATIONS, n) if kind == _LONG else 2 << n % _CYCLE
                for i in operands[n]:
                    of |= made[i]
                for i in self.results[n]:
                    made[i] = of
                    if states[i]:
                        self._decide(i, kernels, found)
            elif n in self.called:
                for i, of in zip(self.results[n], _made_by_call(
                        n, self.called[n], [made[i] for i in operands[n]]), strict=True):
                    made[i] = of
                    if states[i]:
                        self._decide(i, kernels, found)
        return found

    def _decide(self, i: int, kernels: Sequence[int] | None, found: dict[int, int]) -> None:
        """Decide whether a value with several readers is in memory, which ends the operations that
        its readers are made of.
        """
        made, states = self.made, self.states
        if states[i] == _KEPT:
            made[i] = 0
        elif kernels is None:
            if _count(made[i]) >= _fewest() and _can_be_held(self._variable(i)):
                states[i], found[i] = _CANDIDATE, 0
        elif states[i] >= _CANDIDATE:
            saves = _saved(kernels[i], made[i], self._variable(i))
            states[i] = _HELD if saves else _SHARED
            if saves:
                found[i], made[i] = saves, 0


def _made_by_call(n: int, called: _Called, made: Sequence[int]) -> list[int]:
    """Of which operations the results of equation `n` are made, if operands are of these."""
    found = []
    for k, (count, through, _) in enumerate(called.results):
        of = _several(count, n + 17 * k)
        for i in through:
            of |= made[i]
        found.append(of)
    return found


def _reach_by_call(n: int, called: _Called, ways: Sequence[int], operands: Sequence[int],
                   found: list[int]) -> None:
    """Add the kernels that compute operands of equation `n`, whose results these compute."""
    for k, (i, (count, through, places)) in enumerate(zip(operands, called.inputs, strict=True)):
        found[i] |= _several(count, n + 17 * k) | _several(places, n + 17 * k) << 2 * _SIZE
        for j in through:
            found[i] |= ways[j]


def _saved(kernels: int, made: int, v: Var) -> int:
    """How many operations a hold of the value saves; 0 if it is not worth it."""
    again, elsewhere = _again(kernels)
    count = _count(made)
    large = again * count >= LEAST or elsewhere * count >= _least_places(v)
    return max(again, elsewhere) * count if large else 0


def _count(made: int) -> int:
    return min((made & _INNER).bit_count(), _OPERATIONS)


def _fewest() -> int:
    """The fewest operations that a value to hold is made of."""
    return -(-min(LEAST, LEAST_PLACES // 2) // (_TIMES - 1))


def _counted(found: int) -> tuple[int, Sequence[int], int]:
    """How many kernels or operations are in a set, which results or inputs, and how many places."""
    outer = found >> _SIZE & _INNER
    through = [i for i in range(outer.bit_length()) if outer >> i & 1] if outer else ()
    return (found & _INNER).bit_count(), through, (found >> 2 * _SIZE).bit_count()


def _turned(found: int, by: int) -> int:
    """As many other bits of `_SIZE`."""
    by %= _SIZE
    return (found << by | found >> (_SIZE - by)) & _INNER


def _several(count: int, n: int) -> int:
    """So many kernels, operations or places, others for each number `n`."""
    return _turned((1 << min(count, _SIZE)) - 1, n) if count else 0


def _again(found: int) -> tuple[int, int]:
    """In how many further kernels a value is computed, and at how many further places."""
    return (min((found & _ONCE).bit_count(), _TIMES) - 1,
            min((found >> 2 * _SIZE).bit_count(), _TIMES) - 1)


def _least_places(v: Var) -> int:
    return LEAST_PLACES if less(prod(_shape(v)), _SMALL) else LEAST_PLACES // 2


def _shape(atom: Any) -> Sequence[int]:
    return getattr(physical_aval(atom.aval), "shape", ())


def _can_be_held(v: Var) -> bool:
    """Whether a value is an array of at least one axis; numbers are computed again for nothing.

    Sums that several devices have still to take are left to what takes them.
    """
    aval, shape = v.aval, _shape(v)
    return bool(shape) and 0 not in shape and not (
        aval.tagged and aval.sharding.spec.unreduced)
