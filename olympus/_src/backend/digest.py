"""A digest of programs, so that one equal to another that was compiled is not lowered again.

Programs are equal if they apply the same operations to the same values under one context: source
lines, scopes and names of variables do not count, elements of constants do. There is no digest of a
program with effects, with functions among its parameters, or with operations of outsiders, whose
equality says nothing of what they do: those are lowered.
"""

from __future__ import annotations

import enum
import itertools
from array import array
from collections.abc import Hashable, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base import lib
from ..base.util import Memo, bit_key, lazy_module
from ..core.context import current_context
from ..core.ir import ClosedOlympuspr, Literal, Olympuspr
from ..types.avals import AbstractValue, abstract_token
from ..types.dtypes import ExtendedDType
from ..types.mesh import AbstractMesh, Mesh
from ..types.sharding import NamedSharding, PartitionSpec
from .builder import host_value

if TYPE_CHECKING:
    import hashlib
else:       # with OpenSSL, which an import alone does not need
    hashlib = lazy_module("hashlib")

__all__ = ["program_digest"]

# A number for each part of a program: equal parts, equal numbers. None is given twice, so where an
# entry was dropped or two threads made one, programs are lowered though they need not be.
_numbers: Memo = Memo(65536)
_next = itertools.count(1)
_PLAIN = (int, str, bytes, type(None), np.dtype, enum.Enum, AbstractValue, ExtendedDType, Literal,
          NamedSharding, PartitionSpec, AbstractMesh, Mesh, lib.Device)
_NOWHERE = None, None     # what XLA is told of most operations
# Modules whose classes of params are compared by value, or are there once: axes of a contraction,
# modes, random generators.
_OURS = ("olympus._src.lax.", "olympus._src.random.")


class _Unknown(Exception):
    """A program has no digest."""


def program_digest(closed: ClosedOlympuspr, name: str, platform: str, *,
                   devices: tuple[Any, ...] = (), result_paths: Sequence[str] = (),
                   mesh: Any = None, **settings: Sequence[Any]) -> Hashable:
    """A key under which only what is lowered to an equal module is found, or None.

    The arguments are those of `lower_program`; `result_paths` is said by no program that runs.
    """
    if closed.effects:
        return None
    walk = _Walk()
    try:
        walk.program(closed)
    except _Unknown:
        return None
    code = hashlib.blake2b(walk.numbers, digest_size=20).digest()
    return (code, name, platform, devices, mesh, current_context(),
            *[(key, tuple(value)) for key, value in settings.items()])


def _number(key: Any) -> int:
    """The number of a hashable part that holds nothing of the user's."""
    found = _numbers.get(key)
    if found is None:
        found = _numbers[key] = next(_next)
    return found


def _operation(prim: Any, params: dict[str, Any]) -> int:
    """The number of a primitive with params that are no programs."""
    if prim.open or prim.platform_rules:
        raise _Unknown
    # The usual case first. What has a float in it never gets a number by this key; 1 is not 1.0.
    key = (prim.lower, *params.items(), *map(type, params.values()))
    try:
        found = _numbers.get(key)
    except TypeError:       # not hashable
        raise _Unknown from None
    if found is None:
        if type(prim.lower) is not MethodType:
            raise _Unknown
        found = _number(key if _is_exact(tuple(params.values())) else bit_key(key))
    return found


def _is_exact(value: Any) -> bool:
    """Whether equality says all of a param; _Unknown if nothing does.

    Python's floats are equal to others of another sign or type: their bits are compared.
    """
    if isinstance(value, tuple):
        exact = [_is_exact(x) for x in value]       # each is looked at
        return all(exact)
    if isinstance(value, (float, complex, np.generic)):
        return False
    if isinstance(value, _PLAIN) or (isinstance(value, frozenset) and all(map(_is_exact, value))):
        return True
    if type(value).__module__.startswith(_OURS) and not callable(value):
        return True
    raise _Unknown


class _Walk:
    """A program and those inside it as numbers, from which they could be written down again."""

    def __init__(self) -> None:
        self.numbers = array("q")
        self.seen: dict[Any, int] = {}      # programs by identity: each is walked once

    def program(self, closed: ClosedOlympuspr) -> None:
        """Note a program: sizes, constants, inputs, equations, outputs."""
        pr, note = closed.olympuspr, self.numbers.append
        key = (id(pr), *map(id, closed.consts))
        if key in self.seen:
            return note(self.seen[key])     # below 0, as no size is
        self.seen[key] = -1 - len(self.seen)
        self.numbers.extend([len(pr.constvars), len(pr.invars), len(pr.eqns), len(pr.outvars)])
        # Variables are numbered from 0 in the order in which they are bound, literals below 0.
        places: dict[Any, int] = {}
        for v, value in zip(pr.constvars, closed.consts, strict=True):
            places[v] = len(places)
            note(_number((v.aval, _content(value, v.aval))))
        for v in pr.invars:
            places[v] = len(places)
            note(_number(v.aval))
        for eqn in pr.eqns:
            prim, params = eqn.primitive, eqn.params
            if prim.programs == ():
                note(_operation(prim, params))
            else:
                self.higher(prim, params)
            note(len(eqn.invars))
            for atom in eqn.invars:
                note(-_number(atom) if type(atom) is Literal else places[atom])
            for v in eqn.outvars:
                places[v] = len(places)
                note(_number(v.aval))
            where = eqn.ctx.compute_type, eqn.ctx.metadata
            note(0 if where == _NOWHERE else _number(where))
        for atom in pr.outvars:
            note(-_number(atom) if type(atom) is Literal else places[atom])
        return None

    def higher(self, prim: Any, params: dict[str, Any]) -> None:
        """Note a primitive that carries programs."""
        if prim.programs is None:
            raise _Unknown
        read = params if prim.lowered is None else prim.lowered
        self.numbers.append(_operation(prim, {k: params[k] for k in read
                                              if k not in prim.programs}))
        for name in prim.programs:
            if name in read:
                self.body(params[name])

    def body(self, param: Any) -> None:
        """Note a param that is a program, a tuple of programs, or None."""
        if param is None:
            self.numbers.append(0)
        elif isinstance(param, (tuple, list)):
            self.numbers.append(2 + len(param))
            for each in param:
                self.body(each)
        else:
            self.numbers.append(1)
            self.program(ClosedOlympuspr(param) if type(param) is Olympuspr else param)


def _content(value: Any, aval: Any) -> Hashable:
    """What is the same for arrays of the same elements."""
    if aval is abstract_token:
        raise _Unknown
    found = np.ascontiguousarray(host_value(value, aval))
    elements = found.reshape(-1).view(np.uint8).data
    return found.shape, found.dtype, hashlib.blake2b(elements, digest_size=20).digest()
