"""The names that a function's code reads: globals, attributes, imports, and names in texts.

An instruction does not say which object has an attribute, so attributes are names of anything; only
those that follow a global at once (`settings.rate`) belong to its *path*.
"""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

# Builtins that read an attribute or a global by a text, and attributes that lead to all others.
_BY_TEXT = frozenset((
    "attrgetter", "delattr", "dir", "eval", "exec", "getattr", "globals", "hasattr", "locals",
    "methodcaller", "setattr", "vars"))
_INTROSPECTION = frozenset((
    "__builtins__", "__code__", "__dict__", "__getattribute__", "__globals__", "__subclasses__",
    "attrgetter", "cell_contents", "f_back", "f_globals", "f_locals", "gi_frame", "methodcaller",
    "modules"))
_OF_TEXT_ALONE = ("delattr", "getattr", "hasattr", "setattr")
_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_CELL = ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
_ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "IMPORT_FROM")


class Reads(NamedTuple):
    """What code reads by names.

    Attributes:
      paths: globals, each with the attributes that are asked of it next.
      loose: attributes of anything else.
      texts: names in text constants, where something is read by a text.
      computed: what reads by a text that the code does not contain; "" if nothing does.
      imports: modules that are imported when the code runs, with the level of relative ones.
      sets: globals that the code sets.
      given: globals and cells that code does nothing with but `name.append(…)`.
      used: those that it does more with.
      names: the attributes that are read of anything.
      catches: whether an error is caught, as one of an attribute that is absent.
    """

    paths: tuple[tuple[str, ...], ...]
    loose: frozenset[str]
    texts: frozenset[str]
    computed: str
    imports: tuple[tuple[str, int], ...]
    sets: tuple[str, ...]
    given: frozenset[str]
    used: frozenset[str]
    names: frozenset[str]
    catches: bool


@functools.lru_cache(maxsize=4096)
def own_reads(code: types.CodeType) -> Reads:
    """What code reads, without the functions and classes that are defined in it.

    >>> reads = own_reads((lambda x: np.linalg.norm(x.real) + SCALE).__code__)
    >>> reads.paths, sorted(reads.loose)
    ((('np', 'linalg', 'norm'), ('SCALE',)), ['real'])
    """
    paths: dict[tuple[str, ...], None] = {}
    imports: dict[tuple[str, int], None] = {}
    loose, appended, used, sets, computed = set(), set(), set(), [], ""
    by_text = False
    path: list[str] = []
    steps = list(dis.get_instructions(code))
    for i, op in enumerate(steps):
        if path and op.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            path.append(op.argval)
        elif path:
            paths[tuple(path)] = None
            path = []
        if op.opname in _GLOBAL or op.opname in _CELL:
            (appended if _appends(steps, i) else used).add(op.argval)
        if op.opname in _GLOBAL:
            path = [op.argval]
            if op.argval in _BY_TEXT:
                by_text = True
                if op.argval not in _OF_TEXT_ALONE or not _of_constant(steps, i):
                    computed = computed or op.argval
        elif op.opname in _ATTRIBUTE:
            if not path:
                loose.add(op.argval)
            if op.argval in _INTROSPECTION:
                by_text, computed = True, computed or op.argval
        elif op.opname == "IMPORT_NAME":
            imports[op.argval, _level(steps, i)] = None
        elif op.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            sets.append(op.argval)
    texts = frozenset(filter(str.isidentifier, _strings(code.co_consts))) if by_text \
        else frozenset()
    catches = "suppress" in loose.union(*paths) or any(
        op.opname == "PUSH_EXC_INFO" and steps[i + 1].opname != "WITH_EXCEPT_START"
        for i, op in enumerate(steps))
    return Reads(tuple(paths), frozenset(loose), texts, computed, tuple(imports), tuple(sets),
                 frozenset(appended - used), frozenset(used),
                 texts.union(loose, *(path[1:] for path in paths)), catches)


def _strings(constants: Iterable[object]) -> Iterator[str]:
    """The texts among constants, and in tuples and sets of them."""
    for x in constants:
        if type(x) is str:
            yield x
        elif isinstance(x, (tuple, frozenset)):
            yield from _strings(x)


@functools.lru_cache(maxsize=4096)
def all_reads(code: types.CodeType) -> Reads:
    """What code reads, and the functions and classes that are defined in it."""
    own = own_reads(code)
    inner = [all_reads(c) for c in code.co_consts if isinstance(c, types.CodeType)]
    if not inner:
        return own
    every = [own, *inner]
    used = frozenset().union(*(r.used for r in every))
    computed = next((r.computed for r in every if r.computed), "")
    # A loop in an inner function may go over names that are constants of the outer one.
    texts = frozenset().union(filter(str.isidentifier, _strings(code.co_consts)) if computed
                              else (), *(r.texts for r in every))
    return Reads(tuple(dict.fromkeys(p for r in every for p in r.paths)),
                 frozenset().union(*(r.loose for r in every)),
                 texts, computed,
                 tuple(dict.fromkeys(x for r in every for x in r.imports)),
                 tuple(name for r in every for name in r.sets),
                 frozenset().union(*(r.given for r in every)) - used, used,
                 texts.union(*(r.names for r in every)), any(r.catches for r in every))


def _of_constant(steps: Sequence[dis.Instruction], start: int) -> bool:
    """Whether the function that instruction `start` loads is called with a constant second."""
    for i, depth in _arguments(steps, start):
        if depth == 1 and steps[i].opname == "LOAD_CONST" and type(steps[i].argval) is str:
            # The last argument, or a plain one follows.
            rest = [s for s in steps[i + 1:i + 4] if s.opname != "PRECALL"]
            last = rest[0].opname.startswith("LOAD_") and rest[0].opname not in _ATTRIBUTE
            if rest[last].opname == "CALL" and rest[last].arg == 2 + last:
                return True
    return False


def _appends(steps: Sequence[dis.Instruction], start: int) -> bool:
    """Whether of what instruction `start` loads, `append` is called, and the result dropped."""
    method = steps[start + 1]
    if method.opname not in ("LOAD_ATTR", "LOAD_METHOD") or method.argval != "append":
        return False
    for i, depth in _arguments(steps, start + 1):
        if steps[i].opname == "CALL" and steps[i].arg == depth == 1 or (
                steps[i].opname == "PRECALL" and steps[i].arg == depth == 1):
            after = [s for s in steps[i + 1:i + 3] if s.opname != "CALL"]
            return after[0].opname == "POP_TOP"
    return False


def _arguments(steps: Sequence[dis.Instruction], start: int) -> Iterator[tuple[int, int]]:
    """Instructions after the one that loads a function, and the arguments on the stack before each.

    They end with the call; or with a jump, where the stack is not known.
    """
    depth = 0
    for i, op in enumerate(steps[start + 1:], start + 1):
        if op.opname == "PUSH_NULL" and not depth:      # belongs to the function itself
            continue
        yield i, depth
        try:
            depth += dis.stack_effect(op.opcode, op.arg, jump=False)
        except ValueError:      # of an opcode that only the interpreter writes
            return
        if depth < 0 or op.opcode in dis.hasjrel or op.opcode in dis.hasjabs:
            return


def _level(steps: Sequence[dis.Instruction], i: int) -> int:
    """How many dots an import has: the constant below its list of names."""
    operands = [op.argval for op in steps[max(i - 2, 0):i] if op.opname in (
        "LOAD_CONST", "LOAD_SMALL_INT")]
    return next((n for n in operands if type(n) is int), 0)
