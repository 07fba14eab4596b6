"""Holds: values that XLA:CPU is made to compute once, in place of again in each reader.

XLA:CPU fuses the elementwise ancestry of a value into every reader. If values with several readers
follow each other, as in residual nets and unrolled integrators, the optimised program grows with
the square of its depth, and compile time with the second to third power; the copies run, too.
XLA:CPU drops `optimization_barrier` before it fuses. But a call of the identity that it may not
inline stays: the value is computed once, for the price of a copy.

A *kernel* is one loop of fused operations. Inside, a value that is read twice at one index is
computed once; a reader at another index (a slice, a concatenation) computes it anew, and so does
every further kernel. One search counts, backwards, how often a value is computed; another counts,
forwards, the operations that make it from values in memory. Both count by sets, as bits of a fixed
number; beyond that number, and if two elements get one bit, they count too few. A pass before them
finds the values that XLA computes once by its own rules (`xla/service/instruction_fusion.cc`,
`ComputeGloballyUnfusible`): expensive operations, and operations on more than one large operand,
unless they can be fused into all readers on every path. Only that pass enters every equation,
since most programs have little to hold.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from ..base.typing import Array
from ..core.facts import Fusion
from ..core.ir import ClosedOlympuspr, Literal, Olympuspr, OlympusprEqn, Var, derived, variables
from ..core.primitive import Higher, Primitive, programs_within
from ..types.avals import ShapedArray, physical_aval
from ..types.mesh import AbstractMesh, Mesh
from ..types.shape import less, prod
from ..types.sharding import NamedSharding, PartitionSpec, axes_of

# The least number of operations that a hold must save, in further kernels, and at further indices
# inside of kernels (half of it for large arrays). Found with tools/hold_corpus.py: with 16, a net
# with RMS norm is slower; with 48 or 128 for indices, short integrations of small arrays are.
LEAST = 48
LEAST_PLACES = 256
_SMALL = 4096           # elements of a small array
_TIMES = 8              # more kernels count as so many,
_OPERATIONS = 64        # and so do more operations
_TRIED = 64             # longer paths through memory are assumed to rejoin

# How XLA treats an equation. The program of a mixed call has opaque equations.
_FUSED, _LONG, _COSTLY, _MOVES, _SPREADS, _SPLITS, _REDUCES, _CALLS, _MIXED, _OPAQUE = range(10)
_BY_FUSION: dict[Fusion, int] = {
    "": _OPAQUE, "called": _CALLS, "costly": _COSTLY, "fused": _FUSED, "long": _LONG,
    "moves": _MOVES, "reduces": _REDUCES, "splits": _SPLITS, "spreads": _SPREADS}
_WINDOW = 32    # XLA reduces longer axes by windows first, which it does not fuse
# The states of a value: not several readers, or not decided; computed again in each reader; may be
# held; computed once by XLA's own rules; held.
_RECOMPUTED, _SHARED, _CANDIDATE, _KEPT, _HELD = range(5)

# Sets: the bits below _SIZE are kernels or operations. The next _SIZE bits are results or inputs of
# a called program (the first _SIZE of them). The bits above are indices.
_SIZE = 256
_INNER = (1 << _SIZE) - 1
_ONCE = (1 << 2 * _SIZE) - 1
_PLACES = _INNER << 2 * _SIZE
_STORED = 1     # the kernel that leaves a value in memory
_CYCLE = _SIZE - 1      # the number of equations that have different bits
_BITS = [2 << n for n in range(_CYCLE)]
_NOWHERE, _APART = -1, -2   # no tree, and a tree of its own for each operand

_NAMING_DEVICES = frozenset((AbstractMesh, Mesh, NamedSharding))


class Holds:
    """The values that a module holds, and whether it may hold any."""

    __slots__ = ("hold", "unheld", "cut_sizes", "uneven_sizes", "values", "identities")

    def __init__(self) -> None:
        self.hold = "off"       # the option `hold` of `jit`
        self.unheld = ""        # why no value may be held, in spite of the option
        self.cut_sizes: Callable[[], frozenset[int]] = frozenset    # sizes of sharded axes
        self.uneven_sizes: Callable[[], frozenset[int]] = frozenset     # made from such sizes
        #: (program, held value -> the number of operations saved)
        self.values: list[tuple[ClosedOlympuspr, Mapping[Var, int]]] = []
        self.identities: dict[Any, str] = {}    # types -> the identity function that holds them

    @contextlib.contextmanager
    def set(self, hold: str) -> Iterator[None]:
        """A context with another option: operations inside of one equation are not held."""
        outer, self.hold = self.hold, hold
        try:
            yield
        finally:
            self.hold = outer

    def of(self, closed: ClosedOlympuspr, read: Set[Var], whole: bool) -> Set[Var]:
        """The values of a program that are held, including the values in `read` that can be.

        whole: whether arrays are unsharded here.
        """
        saved = {} if self.hold == "off" or self.unheld else holds_of(closed)
        if not saved and not read:
            return frozenset()
        sizes: frozenset[int] = frozenset() if whole else self.cut_sizes()
        if sizes and saved:
            uneven = self.uneven_sizes()
            saved = {v: saves for v, saves in holds_of(closed, sizes).items()
                     if uneven.isdisjoint(v.aval.shape)}
        self.values.append((closed, saved))
        return {*saved, *kept_of(closed, read, sizes)}


class _Called(NamedTuple):
    """The summary of a program for its callers.

    results: per result, the number of operations that compute it, the inputs that they read, and
      the number of indices.
    inputs: per input, the number of kernels that compute it again, the results whose readers do,
      and the number of indices.
    opaque: whether it has operations that are not fused.
    """

    results: Sequence[tuple[int, Sequence[int], int]]
    inputs: Sequence[tuple[int, Sequence[int], int]]
    opaque: bool


def holds_of(closed: ClosedOlympuspr, cut: frozenset[int] = frozenset()) -> Mapping[Var, int]:
    """The values of a program to hold -> the number of operations saved; kept with the program.

    `cut` has the sizes of sharded axes: an operation that moves elements along such an axis becomes
    an exchange between devices, which ends a kernel.
    """
    pr = closed.olympuspr
    if len(pr.outvars) < 2 and max(map(_kind, pr.primitives), default=_FUSED) < _MOVES:
        return {}       # one kernel computes everything
    return _holds(closed, cut)


@derived
def _holds(closed: ClosedOlympuspr, cut: frozenset[int]) -> Mapping[Var, int]:
    # The analysis is not kept: it takes more memory than the program.
    return _Fusion(closed.olympuspr, cut).holds()


def kept_of(closed: ClosedOlympuspr, read: Collection[Var], cut: frozenset[int] = frozenset()
            ) -> frozenset[Var]:
    """The values of a program to hold because one reader needs them in memory.

    XLA would compute them again in the other readers.
    """
    if not read:
        return frozenset()
    pr, fusion = closed.olympuspr, _Fusion(closed.olympuspr, cut)
    return frozenset([
        v for n, eqn in enumerate(pr.eqns) for v in eqn.outvars
        if v in read and _can_be_held(v.aval) and (
            n in fusion.called
            or fusion.kinds[n] < _REDUCES and type(fusion.readers.get(v)) is list)])


@derived
def read_apart(closed: ClosedOlympuspr) -> frozenset[Var]:
    """The values that kept calls read, also kept calls in called functions."""
    pr = closed.olympuspr
    calls = {prim for prim in pr.primitives if isinstance(prim, Higher)}
    if not calls:
        return frozenset()
    return frozenset().union(*[_apart(eqn) for eqn in pr.eqns if eqn.primitive in calls])


@derived
def naming_devices(closed: ClosedOlympuspr
                   ) -> Sequence[tuple[OlympusprEqn, AbstractMesh | Mesh | NamedSharding]]:
    """The equations of a program, and of those within, with a param that names devices; and it."""
    return [(eqn, x) for pr in programs_within(closed.olympuspr)
            # A set first, because most programs name none.
            if not _NAMING_DEVICES.isdisjoint(
                {type(x) for eqn in pr.eqns if eqn.params for x in eqn.params.values()})
            for eqn in pr.eqns for x in eqn.params.values() if type(x) in _NAMING_DEVICES]


def cut_sizes(closed: ClosedOlympuspr, given: Iterable[tuple[NamedSharding | None, ShapedArray]]
              ) -> frozenset[int]:
    """The sizes of sharded axes: of arguments and results, given as (sharding or None, aval), and
    in types and constraints of the program.
    """
    sizes = {n for s, aval in given if s is not None for n in _sharded_sizes(s.mesh, s.spec, aval)}
    for eqn, x in naming_devices(closed):
        if type(x) is NamedSharding:
            sizes.update(_sharded_sizes(x.mesh, x.spec, eqn.outvars[0].aval))
    avals = [*closed.in_avals]
    for pr in programs_within(closed.olympuspr):
        avals += {v.aval for eqn in pr.eqns for v in eqn.outvars}
        if any(prim.per_device for prim in pr.primitives):
            for eqn in pr.eqns:
                if eqn.primitive.per_device:
                    sizes.update(_cut_by_parts(eqn))
    return frozenset(sizes.union(*[
        _sharded_sizes(a.sharding.mesh, a.sharding.spec, a) for a in avals if a.tagged]))


def _cut_by_parts(eqn: OlympusprEqn) -> list[int]:
    """The sizes of sharded axes of the operands and results of a shard_map."""
    mesh, params = eqn.params["mesh"], eqn.params
    given = zip((*params["in_specs"], *params["out_specs"]), (*eqn.invars, *eqn.outvars),
                strict=True)
    return [n for spec, atom in given for n in _sharded_sizes(mesh, spec, atom.aval)]


def _sharded_sizes(mesh: Mesh | AbstractMesh, spec: PartitionSpec, aval: ShapedArray) -> list[int]:
    """The sizes of the axes that are sharded over more than one part of the mesh."""
    parts = dict(mesh.shape_tuple)
    return [n for entry, n in zip(spec, aval.shape) if any(parts[a] > 1 for a in axes_of(entry))]


def _apart(eqn: OlympusprEqn) -> list[Var]:
    """The operands that an equation needs in memory for kept calls."""
    if eqn.primitive.stays(eqn.params):
        return variables(eqn.invars)
    if _kind(eqn.primitive) != _CALLS:
        return []
    called = _program(eqn)
    read = read_apart(called)
    return variables(a for a, v in zip(eqn.invars, called.olympuspr.invars) if v in read)


@derived
def _called(closed: ClosedOlympuspr, cut: frozenset[int]) -> _Called:
    return _Fusion(closed.olympuspr, cut, True).as_called()


def _kind(prim: Primitive) -> int:
    return _BY_FUSION[prim.fusion]


def _exchanges(eqn: OlympusprEqn, cut: frozenset[int]) -> bool:
    """Whether an equation moves or combines elements along an axis of a size in `cut`."""
    shapes = [_shape(v.aval) for v in (*eqn.invars, eqn.outvars[0])]
    axes = eqn.primitive.moved_axes(eqn.params, shapes)
    rank = len(shapes[0])
    return not cut.isdisjoint([s[a] for s in shapes if len(s) == rank for a in axes])


def _positions(kinds: bytearray, kind: int) -> Iterator[int]:
    """The indices of equations of a kind."""
    n = kinds.find(kind)
    while n >= 0:
        yield n
        n = kinds.find(kind, n + 1)


def _program(eqn: OlympusprEqn) -> ClosedOlympuspr:
    """The program that an equation calls, which XLA inlines."""
    return eqn.primitive.bodies(eqn.params)[0]


class _Long(dict[tuple[ShapedArray, Sequence[int]], bool]):
    """Whether a reduction, by aval and axes, goes over more elements than one window."""

    def __missing__(self, key: tuple[ShapedArray, Sequence[int]]) -> bool:
        shape, axes = _shape(key[0]), key[1]
        longer = self[key] = True in [less(_WINDOW, shape[axis]) for axis in axes]
        return longer


class _Sizes(dict[Any, tuple[int, Any]]):
    """The number of axes longer than 1, and of elements, by aval."""

    def __missing__(self, aval: ShapedArray) -> tuple[int, int]:
        shape = _shape(aval)
        sizes = self[aval] = len(shape) - shape.count(1), prod(shape)
        return sizes


class _Worth(dict[Any, int]):
    """The least number of operations to save at further places, by aval; 0: never held."""

    def __missing__(self, aval: ShapedArray) -> int:
        small = LEAST_PLACES if less(prod(_shape(aval)), _SMALL) else LEAST_PLACES // 2
        least = self[aval] = small if _can_be_held(aval) else 0
        return least


class _Fusion:
    """A model of how XLA fuses the equations of a program.

    One pass backwards meets the readers of a value before its equation: it finds all readers, and
    the values that XLA computes once. An equation's kernel includes the equations whose results it
    reads. So fused equations make trees, with a value of several readers at each root. Operations
    are counted by tree, and kernels by equation, near values that may be held.

    `whole`: whether a caller needs the facts about inputs and results.
    """

    def __init__(self, pr: Olympuspr, cut: frozenset[int], whole: bool = False) -> None:
        self.pr = pr
        self.called: dict[int, _Called] = {}    # index of a calling equation -> its program
        self.kinds = self._kinds(cut)   # per equation, and one more for the reader of the results
        # Value -> the index of its reader, or the list of several, the last one first.
        self.readers: dict[Var, Any] = {}
        self.opaque = {len(pr.eqns)}
        # Whether there may be several kernels: one kernel computes nothing twice.
        self.divided = len(pr.outvars) > 1 or max(self.kinds[:-1], default=0) >= _MOVES
        self.states: dict[Var, int] = {}    # states of values with several readers, if divided
        self.makers: dict[Var, int] = {}    # candidate -> the index of its equation
        # homes: equation -> the root of the tree in which its operands are computed.
        # trees: root -> operations of the tree. leaves: root -> other roots that the tree reads.
        self.homes = [_NOWHERE] * len(pr.eqns) + [_APART if whole else _NOWHERE]
        self.trees: dict[int, int] = {}
        self.leaves: dict[int, list[Var]] = {}
        # Value -> the operations that compute it from values in memory.
        self.made: dict[Var, int] = dict.fromkeys(pr.invars, 0)
        self.sizes, self.worth = _Sizes(), _Worth()
        self._look()
        if whole:
            for v in pr.invars:
                self._note_leaf(v, self._readers(v))

    def holds(self) -> Mapping[Var, int]:
        """The values to hold -> the number of operations saved."""
        if _SHARED not in self.states.values():
            return {}
        to_hold = self._candidates()
        if to_hold:
            near = self._near(to_hold)
            roots = [n for n in near if n in self.trees]
            to_hold = self._worthwhile(roots, self._kernels(near))
            if to_hold:   # again: held values end paths, so fewer holds may be enough
                to_hold = self._worthwhile(roots, self._kernels(near))
        return to_hold

    def as_called(self) -> _Called:
        """The summary of the program for its callers."""
        pr = self.pr
        self.holds()
        self.made.update({v: 1 << _SIZE + i for i, v in enumerate(pr.invars[:_SIZE])})
        kernels = self._kernels([n for n, kind in enumerate(self.kinds[:-1]) if kind != _OPAQUE],
                                pr.invars)
        self._worthwhile([*reversed(self.trees)], kernels)
        return _Called([_counted(self._made_of(v)) for v in pr.outvars],
                       [_counted(kernels[v]) for v in pr.invars],
                       max(self.kinds[:-1], default=0) >= _MIXED)

    def _kinds(self, cut: frozenset[int]) -> bytearray:
        eqns = self.pr.eqns
        prims = [eqn.primitive for eqn in eqns]
        known = {prim: _kind(prim) for prim in self.pr.primitives}
        kinds = bytearray(map(known.__getitem__, prims))
        for n in _positions(kinds, _CALLS):
            called = self.called[n] = _called(_program(eqns[n]), cut)
            kinds[n] = _MIXED if called.opaque else _CALLS
        long = _Long()
        for n in _positions(kinds, _REDUCES):
            if long[eqns[n].invars[0].aval, eqns[n].params["axes"]]:
                kinds[n] = _OPAQUE
        for kind in (_MOVES, _SPLITS, _REDUCES) if cut else ():
            for n in _positions(kinds, kind):
                if _exchanges(eqns[n], cut):
                    kinds[n] = _OPAQUE
        kinds.append(_OPAQUE)
        return kinds

    def _look(self) -> None:    # noqa: C901, PLR0912 - hot: without calls for most equations
        """Find readers, the states of values with several, and trees."""
        # The hot path: for a fused equation of one result it mostly calls nothing.
        kinds, readers, homes, trees, leaves = (
            self.kinds, self.readers, self.homes, self.trees, self.leaves)
        get, note, n = readers.get, readers.setdefault, len(self.pr.eqns)
        nearest = n     # the next equation whose result is in memory
        readers.update(dict.fromkeys(variables(self.pr.outvars), n))
        for eqn, kind in zip(reversed(self.pr.eqns), kinds[-2::-1], strict=True):
            n -= 1
            operands = eqn.invars
            if kind == _OPAQUE:
                self.opaque.add(n)
                nearest = n
            elif kind > _SPREADS:
                nearest = self._settle(n, eqn, nearest)
            else:
                v = eqn.outvars[0]
                of = get(v)
                if type(of) is int:
                    home = homes[of]
                elif of is None:
                    home = _NOWHERE
                elif self.divided and (kind == _COSTLY or nearest <= of[0] and len(operands) > 1
                                       and self._is_kept(operands, v, of)):
                    self.states[v], nearest, home = _KEPT, n, _NOWHERE
                else:
                    home = _APART
                    if self.divided:
                        self.states[v] = _SHARED
                    for m in of:
                        if homes[m] >= 0:
                            leaves.setdefault(homes[m], []).append(v)
                if home == _APART:
                    home, trees[n] = n, 0
                if home >= 0:
                    homes[n] = home
                    trees[home] |= _BITS[n % _CYCLE] if kind != _LONG else _several(_OPERATIONS, n)
            for x in operands:
                if type(x) is Var:
                    of = note(x, n)
                    if of != n:
                        if type(of) is int:
                            readers[x] = [of, n]
                        elif of[-1] != n:
                            of.append(n)
            if kind > _REDUCES and kind < _OPAQUE:
                self._note_call(n)

    def _note_call(self, n: int) -> None:
        """Note as two readers an equation whose program reads an operand several times."""
        for v, (count, through, places) in zip(
                self.pr.eqns[n].invars, self.called[n].inputs, strict=True):
            if type(v) is Var and (count + len(through) > 1 or places > 1):
                self.readers[v] = [*self._readers(v), n]

    def _readers(self, v: Var) -> Sequence[int]:
        """The indices of the equations that read a value, the last one first."""
        readers = self.readers.get(v, ())
        return (readers,) if type(readers) is int else readers

    def _settle(self, n: int, eqn: OlympusprEqn, nearest: int) -> int:
        """`_look` for a reduction, a call or several results; returns the new `nearest`."""
        kind, homes = self.kinds[n], self.homes
        for v in reversed(eqn.outvars):
            readers = self._readers(v)
            if self.divided and type(readers) is list:
                if nearest <= readers[0] and self._is_kept(eqn.invars, v, readers):
                    self.states[v], nearest = _KEPT, n
                    continue
                self.states[v] = _SHARED
            if kind != _REDUCES:
                self._note_leaf(v, readers)
        if kind != _REDUCES:
            homes[n] = n if kind == _SPLITS else _APART
            self.trees[n] = _BITS[n % _CYCLE] if kind == _SPLITS else 0
        return n if kind == _MIXED else nearest

    def _note_leaf(self, v: Var, readers: Sequence[int]) -> None:
        """Note that the trees of the equations `readers` read the root `v`."""
        for n in readers:
            if self.homes[n] >= 0:
                self.leaves.setdefault(self.homes[n], []).append(v)

    def _is_kept(self, operands: Sequence[Var | Literal], v: Var, readers: Sequence[int]) -> bool:
        """Whether XLA computes a cheap value once, because a reader is in memory, or leads through
        memory to another reader.

        It does not if at most one operand is large and no broadcast, or if the operands have no
        more elements than the value.
        """
        sizes, large = self.sizes, 0
        least, elements = sizes[v.aval]
        for x in operands:
            if type(x) is Var and sizes[x.aval][0] >= least:
                large += 1
        if large > 1:
            for x in operands:
                if type(x) is Var and x in self._broadcasts and sizes[x.aval][0] >= least:
                    large -= 1
        return large > 1 and (
            not self.opaque.isdisjoint(readers) or self._passes_memory(readers)) and (
            sum(sizes[x.aval][1] for x in {*variables(operands)}) > elements)

    @functools.cached_property
    def _broadcasts(self) -> frozenset[Var]:
        """The values that are broadcasts of smaller ones."""
        eqns = self.pr.eqns
        return frozenset([eqns[n].outvars[0] for n in _positions(self.kinds, _SPREADS)])

    def _passes_memory(self, readers: Sequence[int]) -> bool:
        """Whether a path from one reader of a value to another leads through memory."""
        kinds, states, eqns = self.kinds, self.states, self.pr.eqns
        among, last, ways = {*readers}, readers[0], [(n, False) for n in reversed(readers)]
        seen = {*ways}
        while ways and len(seen) < len(readers) + 4 * _TRIED:
            n, through = ways.pop()
            for v in eqns[n].outvars:
                stored = through or kinds[n] >= _MIXED or states.get(v) == _KEPT
                for m in reversed(self._readers(v)):
                    if m > last:
                        break
                    way = m, stored or kinds[m] >= _MIXED
                    if way in seen:
                        continue
                    if way[1] and (m in among or len(seen) > len(readers) + _TRIED):
                        return True
                    seen.add(way)
                    ways.append(way)
        return False

    def _candidates(self) -> dict[Var, int]:
        """The values with enough operations for a hold."""
        states, worth, fewest, candidates = self.states, self.worth, _fewest(), dict[Var, int]()

        def decide(n: int, v: Var, made: int) -> int:
            if states[v] == _KEPT:
                return 0
            if made.bit_count() >= fewest and worth[v.aval]:
                states[v], self.makers[v], candidates[v] = _CANDIDATE, n, 0
            return made

        self._operations([*reversed(self.trees)], decide)
        return candidates

    def _worthwhile(self, roots: Sequence[int], kernels: Mapping[Var, int]) -> dict[Var, int]:
        """The candidates and held values to hold now -> the number of operations saved.

        A held value is in memory: its operations do not count for its readers.
        """
        states, to_hold = self.states, dict[Var, int]()

        def decide(n: int, v: Var, made: int) -> int:
            state = states[v]
            if state in (_CANDIDATE, _HELD):
                saves = _saved(kernels[v], made, self.worth[v.aval])
                states[v] = state = _HELD if saves else _SHARED
                if saves:
                    to_hold[v] = saves
            return 0 if state >= _KEPT else made

        self._operations(roots, decide)
        return to_hold

    def _operations(self, roots: Sequence[int], decide: Callable[[int, Var, int], int]) -> None:
        """Find the operations that make values; `decide` is called for those with several readers.
        """
        eqns, states, made, trees, leaves = (
            self.pr.eqns, self.states, self.made, self.trees, self.leaves)
        for n in roots:
            results = eqns[n].outvars
            if n in self.called:
                of = _made_by_call(n, self.called[n], list(map(self._made_of, eqns[n].invars)))
                for v, ops in zip(results, of, strict=True):
                    made[v] = decide(n, v, ops) if v in states else ops
                continue
            ops = trees[n]
            for v in leaves.get(n, ()):
                ops |= made[v]
            for v in results:
                made[v] = decide(n, v, ops) if v in states else ops

    def _made_of(self, atom: Var) -> int:
        """The operations that make an operand of a call, or a result."""
        return self.made.get(atom, 0) if type(atom) is Var else 0

    def _near(self, candidates: Mapping[Var, int]) -> list[int]:
        """The indices of equations that compute candidates, and of those that they are fused into.
        """
        kinds, eqns, states, get = self.kinds, self.pr.eqns, self.states, self.readers.get
        near, pending = bytearray(len(kinds)), [*candidates]
        for v in pending:
            readers = get(v, ())
            for n in (readers,) if type(readers) is int else readers:
                while not near[n] and kinds[n] != _OPAQUE:
                    near[n] = 1
                    if kinds[n] > _SPREADS:
                        if kinds[n] != _REDUCES:
                            pending += [x for x in eqns[n].outvars if states.get(x) != _KEPT]
                        break
                    x = eqns[n].outvars[0]
                    m = get(x)
                    if type(m) is not int:
                        if states.get(x) != _KEPT:
                            pending.append(x)
                        break
                    n = m
        for v in candidates:
            near[self.makers[v]] = 1
        return [*itertools.compress(range(len(eqns)), near)]

    def _kernels(self, positions: Sequence[int], inputs: Sequence[Var] = ()) -> dict[Var, int]:
        """The set of kernels, results and indices at which each input, and each value with several
        readers, is computed, for values that only equations at these positions read."""
        kinds, eqns, get = self.kinds, self.pr.eqns, self.readers.get
        kernels: dict[Var, int] = {}
        # Per equation, the kernels that compute its operands, or a dict of these by operand. Other
        # equations have their operands in memory.
        ways: list[Any] = [_STORED] * len(eqns) + [_returned(self.pr.outvars)]
        for n in reversed(positions):
            kind, eqn, bit = kinds[n], eqns[n], _BITS[n % _CYCLE]
            if kind == _REDUCES:
                ways[n] = bit
                continue
            if kind > _SPLITS:
                ways[n] = _reach_by_call(n, self.called[n], [
                    self._way(v, bit, ways, kernels) for v in eqn.outvars], eqn.invars)
                continue
            of = 0
            for v in eqn.outvars:
                m = get(v)
                if type(m) is int:
                    way = ways[m]
                    of |= way[v] if type(way) is dict else way
                else:
                    of |= self._way(v, bit, ways, kernels)
            if of & _STORED:
                of = of ^ _STORED | bit
            # More than `_TIMES` indices count as so many, except in the facts for a caller.
            if kind >= _MOVES and (inputs or (of >> 2 * _SIZE).bit_count() < _TIMES):
                of = _kernels_of_move(n, of, eqn.invars)
            ways[n] = of
        for v in inputs:
            self._way(v, 0, ways, kernels)
        return kernels

    def _way(self, v: Var, bit: int, ways: Sequence[Any], kernels: dict[Var, int]) -> int:
        """The kernels in which all readers compute a value, which are noted; for its own equation
        `bit` alone, if the value is in memory."""
        of, readers = 0, self.readers.get(v, ())
        for n in (readers,) if type(readers) is int else readers:
            way = ways[n]
            of |= way[v] if type(way) is dict else way
        kernels[v] = of
        return of if self.states.get(v, 0) < _KEPT else bit


def _returned(outvars: Sequence[Var]) -> dict[Var, int]:
    """Value -> the bits of its indices among the results."""
    bits: dict[Var, int] = {}
    for i, v in enumerate(outvars):
        if type(v) is Var:
            bits[v] = bits.get(v, 0) | (1 << _SIZE + i if i < _SIZE else _STORED)
    return bits


def _kernels_of_move(n: int, ways: int, operands: Sequence[Array | Var]) -> int | dict[Var, int]:
    """The kernels of operands of equation `n`, which moves elements: the same kernels, at other
    indices, whose bits depend on `n`.
    """
    once = ways & _ONCE
    twice = once | ways >> 2 * _SIZE
    if twice > _INNER:
        twice = (twice | twice >> _SIZE) & _INNER
    twice |= twice << _SIZE
    if len(operands) == 1:
        return once | twice << _SIZE + (31 * n + 1) % _SIZE & _PLACES
    kernels: dict[Var, int] = {}
    for k, v in enumerate(operands):
        if type(v) is Var:
            turned = twice << _SIZE + (31 * n + 7 * k + 1) % _SIZE & _PLACES
            kernels[v] = kernels.get(v, once) | turned
    return kernels


def _made_by_call(n: int, called: _Called, made: Sequence[int]) -> list[int]:
    """The operations that compute the results of call `n`, from its operands' operations."""
    results = []
    for k, (count, through, _) in enumerate(called.results):
        of = _several(count, n + 17 * k)
        for i in through:
            of |= made[i]
        results.append(of)
    return results


def _reach_by_call(n: int, called: _Called, ways: Sequence[int], operands: Sequence[Var | Literal]
                   ) -> dict[Var, int]:
    """The kernels that compute operands of call `n`, from its results' kernels."""
    kernels: dict[Var, int] = {}
    for k, (v, (count, through, places)) in enumerate(zip(operands, called.inputs, strict=True)):
        if type(v) is Var:
            of = _several(count, n + 17 * k) | _several(places, n + 17 * k) << 2 * _SIZE
            for j in through:
                of |= ways[j]
            kernels[v] = kernels.get(v, 0) | of
    return kernels


def _saved(kernels: int, made: int, least_places: int) -> int:
    """How many operations a hold of the value saves; 0 if it is not worth it."""
    count = min((made & _INNER).bit_count(), _OPERATIONS)
    # In how many further kernels a value is computed, and at how many further places.
    again = min((kernels & _ONCE).bit_count(), _TIMES) - 1
    elsewhere = min((kernels >> 2 * _SIZE).bit_count(), _TIMES) - 1
    large = again * count >= LEAST or elsewhere * count >= least_places
    return max(again, elsewhere) * count if large else 0


def _fewest() -> int:
    """The fewest operations that a value to hold is made of."""
    return -(-min(LEAST, LEAST_PLACES // 2) // (_TIMES - 1))


def _counted(bits: int) -> tuple[int, Sequence[int], int]:
    """How many kernels or operations are in a set, which results or inputs, and how many places."""
    outer = bits >> _SIZE & _INNER
    through = [i for i in range(outer.bit_length()) if outer >> i & 1] if outer else ()
    return (bits & _INNER).bit_count(), through, (bits >> 2 * _SIZE).bit_count()


def _turned(bits: int, by: int) -> int:
    """The bits of `bits`, rotated by a number of places within `_SIZE`."""
    by %= _SIZE
    return (bits << by | bits >> (_SIZE - by)) & _INNER


def _several(count: int, n: int) -> int:
    """So many kernels, operations or places, others for each number `n`."""
    return _turned((1 << min(count, _SIZE)) - 1, n) if count else 0


def _shape(aval: ShapedArray) -> Sequence[int]:
    return getattr(physical_aval(aval), "shape", ())


def _can_be_held(aval: ShapedArray) -> bool:
    """Whether a value is an array of at least one axis; numbers are computed again for nothing.

    Sums that several devices have still to take are left to what takes them.
    """
    shape = _shape(aval)
    return bool(shape) and 0 not in shape and not (
        aval.tagged and aval.sharding.spec.unreduced)
