"""The identity of programs: a digest that equal programs share.

Programs are equal if they apply the same operations to the same values. Source lines, scopes and
names of variables do not count; elements of constants and bits of numbers do. A program with
effects, with functions among its params, or with outsiders' operations, whose equality proves
nothing, has no identity: it equals only itself.
"""

from __future__ import annotations

import enum
import itertools
from array import array
from collections.abc import Callable, Hashable
from types import MethodType
from typing import Any

import numpy as np

from ..base import lib
from ..base.typing import Params
from ..base.util import Memo, bit_key, lazy_imports
from ..types.avals import AbstractValue
from ..types.dtypes import ExtendedDType
from ..types.mesh import AbstractMesh, Mesh
from ..types.sharding import NamedSharding, PartitionSpec
from .ir import ClosedOlympuspr, Literal, Olympuspr, derived
from .primitive import Primitive

with lazy_imports(__name__):       # it loads OpenSSL, which `import olympus` does not need
    import hashlib

# A number for each part of a program: equal parts, equal numbers. No number is given twice. If an
# entry was dropped, or two threads made one, equal programs have two identities, which costs time
# only.
_part_numbers: Memo = Memo(65536)
_next_number = itertools.count(1)
_EXACT = (int, str, bytes, type(None), np.dtype, enum.Enum, AbstractValue, ExtendedDType, Literal,
          NamedSharding, PartitionSpec, AbstractMesh, Mesh, lib.Device)
# Other classes of params have `is_value` if `==` compares everything, or if each object exists
# once: numbers of axes, modes, random generators.


class _Unknown(Exception):
    """A program has no identity."""


def identity(closed: ClosedOlympuspr) -> bytes | None:
    """A digest that equal programs of this process share, or None; computed once."""
    # Not `derived`: the Context does not change the result, replaced lowering rules do.
    key = (identity, Primitive.lowerings, *map(id, closed.consts))
    entry = closed.cache.get(key)
    if entry is None:
        try:
            code = _code(closed)
        except _Unknown:
            code = None
        entry = closed.cache[key] = code, closed.consts     # held, so that their ids stay theirs
    return entry[0]


class Firsts:
    """The first program of each set of programs with equal identities, names and scopes.

    Scopes count because they name operations in profiles. Lines do not: the first program's stay.
    """

    def __init__(self) -> None:
        self.alike: dict[Any, dict[Any, ClosedOlympuspr]] = {}

    def first(self, closed: ClosedOlympuspr, name: str) -> ClosedOlympuspr:
        """The first program that equals `closed`; `closed` itself if it is new."""
        # A program that is alone in its name, types and size needs no digest.
        outline = name, len(closed.eqns), (*closed.in_avals,), (*closed.out_avals,)
        alike = self.alike.get(outline)
        if alike is None:
            self.alike[outline] = {None: closed}
            return closed
        if None in alike:
            alone = alike.pop(None)
            alike[_key_of_called(alone)] = alone
        return alike.setdefault(_key_of_called(closed), closed)


def _key_of_called(closed: ClosedOlympuspr) -> Hashable:
    """A key that programs share if they differ in lines only."""
    itself = id(closed.olympuspr), *map(id, closed.consts)
    return identity(closed) or itself, _scopes(closed)


@derived
def _scopes(closed: ClosedOlympuspr) -> int:
    """A number for the scopes of all equations."""
    paths: list[Any] = []
    for eqn in closed.eqns:
        paths.append(eqn.ctx.path)
        for body in eqn.primitive.bodies(eqn.params):
            paths.append(_scopes(_closed(body)))
    return _part_number(tuple(paths))


def _closed(program: Any) -> ClosedOlympuspr:
    return ClosedOlympuspr(program) if type(program) is Olympuspr else program


def _part_number(key: object) -> int:
    """The number of a part: a hashable value that keeps no user's object alive."""
    number = _part_numbers.get(key)
    if number is None:
        number = _part_numbers[key] = next(_next_number)
    return number


def _code(closed: ClosedOlympuspr) -> bytes:
    """The digest of sizes, constants, inputs, equations and outputs, which are written as numbers.
    """
    pr = closed.olympuspr
    if pr.effects:
        raise _Unknown
    numbers = array("q", [len(pr.constvars), len(pr.invars), len(pr.eqns), len(pr.outvars)])
    note, known = numbers.append, _part_numbers.get
    # Variables are numbered from 0 in the order in which they are bound, literals below 0.
    index_of: dict[Any, int] = {}
    for v, value in zip(pr.constvars, closed.consts, strict=True):
        index_of[v] = len(index_of)
        note(_part_number((v.aval, _content(value))))
    for v in pr.invars:
        index_of[v] = len(index_of)
        note(_part_number(v.aval))
    for eqn in pr.eqns:
        prim, params, ctx = eqn.primitive, eqn.params, eqn.ctx
        if prim.programs != ():
            params = _params_without_programs(prim, params, note)
        note(_operation(prim, params))
        note(len(eqn.invars))
        for atom in eqn.invars:
            note(-_part_number(atom.key) if type(atom) is Literal else index_of[atom])
        for v in eqn.outvars:
            index_of[v] = len(index_of)
            note(known(v.aval) or _part_number(v.aval))
        if ctx.compute_type is None and ctx.metadata is None:   # scopes that change the module
            note(0)
        else:
            note(_part_number((ctx.compute_type, ctx.metadata)))
    for atom in pr.outvars:
        note(-_part_number(atom.key) if type(atom) is Literal else index_of[atom])
    return hashlib.blake2b(numbers, digest_size=20).digest()


def _params_without_programs(prim: Primitive, params: Params,
                             note: Callable[[int], None]) -> Params:
    """Note the programs that a primitive carries; return the other params that lowering reads."""
    if prim.programs is None:
        raise _Unknown
    lowered = params if prim.lowered is None else prim.lowered
    pending = [params[name] for name in reversed(prim.programs) if name in lowered]
    while pending:
        param = pending.pop()
        if param is None:
            note(0)
        elif isinstance(param, (tuple, list)):
            note(2 + len(param))
            pending += reversed(param)
        else:
            code = identity(_closed(param))
            if code is None:
                raise _Unknown
            note(1)
            note(_part_number(code))
    return {name: params[name] for name in lowered if name not in prim.programs}


def _operation(prim: Primitive, params: Params) -> int:
    """The number of a primitive with its params that are no programs."""
    if prim.open or prim.platform_rules:
        raise _Unknown
    values = (*params.values(),)
    types = (*map(type, values),)
    # The usual case first. The types are in the key, because 1 == 1.0 and (1,) == (1.0,). Params
    # with a float have their bits as key below.
    key = (prim.lower, *params, types, bit_key(values) if tuple in types else values)
    try:
        number = _part_numbers.get(key)
    except TypeError:       # not hashable
        raise _Unknown from None
    if number is None:
        if type(prim.lower) is not MethodType:
            raise _Unknown
        number = _part_number(key if _is_exact(values) else (prim.lower, *params, bit_key(values)))
    return number


def _is_exact(value: object) -> bool:
    """Whether equal params are the same; _Unknown if neither `==` nor bits can tell.

    Floats are compared by their bits: equal ones may differ in type or in the sign of zero.
    """
    if isinstance(value, tuple):
        exact = [_is_exact(x) for x in value]       # a list: every item may raise
        return all(exact)
    if isinstance(value, (float, complex, np.generic)):
        return False
    if isinstance(value, _EXACT) or (isinstance(value, frozenset) and all(map(_is_exact, value))):
        return True
    if getattr(value, "is_value", False):
        return True
    raise _Unknown


def _content(value: Any) -> Hashable:
    """A key that arrays with equal elements share."""
    value = getattr(value, "_base_array", value)    # an array of keys has one
    if not isinstance(value, (np.ndarray, np.generic, lib.ArrayImpl)):
        raise _Unknown
    array = lib.to_numpy(value) if isinstance(value, lib.ArrayImpl) else np.asarray(value)
    elements = np.ascontiguousarray(array).reshape(-1)
    code = hashlib.blake2b(elements.view(np.uint8).data if elements.dtype.itemsize else b"",
                           digest_size=20)
    return array.shape, array.dtype, code.digest()
