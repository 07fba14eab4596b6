"""The program of a jitted function for one key: traced, then lowered and compiled.

A program lives on its function, and its executables on the program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from ..backend.compile import Executable, Placement, load_program
from ..backend.nans import debugging
from ..base import config, lib, source
from ..base.logs import timed
from ..base.util import Memo, Owned
from ..core.check import check_olympuspr
from ..core.ir import ClosedOlympuspr, DebugInfo
from ..core.staging import closure_convert, stage
from ..core.trace import Tracer, typeof
from ..interpreters.dce import dce_closed
from ..lax.sharding import constrain
from ..types.sharding import NamedSharding
from ..types.tree import keystr, tree_flatten, tree_flatten_with_path, tree_unflatten
from .signature import Call, Signature

__all__ = ["Program", "programs_of", "trace_program"]

_MOST_PROGRAMS = 4096       # of one function; their code has a bound of its own


class Program:
    """A traced function for one key, with what is made from it later."""

    __slots__ = ("closed", "tracers", "out_tree", "in_tree", "arg_names", "donated", "name",
                 "executables", "keep_unused", "options", "out_shardings")

    def __init__(self, closed: ClosedOlympuspr, tracers: list[Any], in_tree: Any, out_tree: Any,
                 arg_names: tuple[str, ...], donated: tuple[bool, ...], name: str,
                 keep_unused: bool, options: dict[str, Any] | None,
                 out_shardings: Sequence[Any]) -> None:
        self.closed, self.tracers = closed, tracers
        self.in_tree, self.out_tree = in_tree, out_tree
        self.arg_names, self.donated, self.name = arg_names, donated, name
        self.keep_unused, self.options, self.out_shardings = keep_unused, options, out_shardings
        self.executables: dict[Any, Executable] = {}

    def to_lower(self, platform: str, placement: Placement) -> tuple[dict[str, Any], Any]:
        """(the arguments of `lower_program`, which inputs the module takes)."""
        closed, used = dce_closed(self.closed, [True] * len(self.closed.out_avals))
        kept = tuple(self.keep_unused or u or d for u, d in zip(used, self.donated))
        pr = closed.olympuspr
        info = pr.debug_info
        names = tuple(n for n, k in zip(self.arg_names, kept) if k)
        pr = pr.replace(invars=[v for v, k in zip(pr.invars, kept) if k],
                        debug_info=DebugInfo(info.func_name, names, info.result_paths))
        # A program that may be run again, to find a NaN, keeps its arguments.
        donated = tuple(d and not debugging() for d, k in zip(self.donated, kept) if k)
        program = ClosedOlympuspr(pr, closed.consts)
        return {"closed": program, "name": self.name, "platform": platform, "donated": donated,
                "aliases": _aliases(program, donated) if any(donated) else (),
                "result_paths": info.result_paths, "devices": placement.several,
                "shardings": [s for s, k in zip(placement.shardings, kept) if k],
                "out_shardings": self.out_shardings,
                "memories": [m for m, k in zip(placement.memories, kept) if k]}, kept

    def executable(self, placement: Placement) -> Executable:
        """Compile for the devices where the arguments are; once."""
        found = self.executables.get(placement)
        if found is None:
            program, kept = self.to_lower(placement.platform, placement)
            loaded, interface = load_program(program, placement, self.options)
            found = self.executables[placement] = Executable(loaded, self.closed, kept, placement,
                                                             interface)
        return found


def _aliases(program: ClosedOlympuspr, donated: Sequence[bool]) -> list[int | None]:
    """For each donated input the first free result of the same type."""
    free = {}
    for i, aval in enumerate(program.out_avals):
        free.setdefault((aval.shape, aval.dtype), []).append(i)
    aliases: list[int | None] = []
    unused = []
    for aval, d in zip(program.in_avals, donated):
        found = free.get((aval.shape, aval.dtype)) if d else None
        aliases.append(found.pop(0) if found else None)
        if d and not found and aliases[-1] is None:
            unused.append(str(aval))
    if unused:
        source.warn(f"Some donated buffers were not usable: {', '.join(unused)}; no result has "
                    "their shape and dtype. They are deleted all the same.")
    return aliases


def trace_program(signature: Signature, call: Call, keep_unused: bool,
                  options: dict[str, Any] | None) -> Program:
    """Run the function on tracers of the call's types."""
    out_tree: Any = None
    paths: tuple[str, ...] = ()
    ins, out_shardings = signature.input_shardings(call), []

    def flat(*leaves: Any) -> list[Any]:
        nonlocal out_tree, paths, out_shardings
        if ins:
            leaves = tuple(constrain("jit in_shardings", *pair) for pair in zip(leaves, ins))
        dynamic, kwargs = tree_unflatten(call.in_tree, leaves)
        out = signature.fun(*call.merged(dynamic), **kwargs, **call.static_kwargs)
        outs, out_tree = tree_flatten(out)
        _check_outputs(signature.name, out, outs)
        out_shardings = signature.output_shardings(out_tree)
        if out_shardings:
            outs = [constrain("jit out_shardings", *pair) for pair in zip(outs, out_shardings)]
        paths = tuple(f"result{keystr(path)}" for path, _ in tree_flatten_with_path(out)[0])
        return outs

    name, names = signature.name, signature.leaf_names(call)
    with timed("tracing", name):
        closed = stage(flat, call.avals, DebugInfo(name, names))
    closed.olympuspr.debug_info = DebugInfo(name, names, paths)
    if config.enable_checks.value:
        check_olympuspr(closed.olympuspr)
    closed, tracers = closure_convert(closed)
    return Program(
        closed, tracers, call.in_tree, out_tree, ("",) * len(tracers) + names,
        (False,) * len(tracers) + signature.donated(call), name, keep_unused, options,
        [s if type(s) is NamedSharding else None for s in out_shardings])


def _check_outputs(name: str, out: Any, outs: Sequence[Any]) -> None:
    for leaf in outs:
        if isinstance(leaf, (Tracer, lib.ArrayImpl, np.ndarray, float, int)):
            continue
        try:
            typeof(leaf)
        except TypeError:
            path = next(p for p, x in tree_flatten_with_path(out)[0] if x is leaf)
            raise TypeError(
                f"jit: {name} returned {leaf!r} of type {type(leaf).__name__} at "
                f"result{keystr(path)}; arrays and Python numbers are required; return only "
                "those, or None.") from None


def programs_of(fun: Callable, options: tuple) -> Memo:
    """Programs by function and options: `jit(f)` written twice traces f once.

    Functions are told apart by identity: other callables may be equal and differ.
    """
    try:
        hash(options)
    except TypeError:
        return Memo(_MOST_PROGRAMS)
    if type(fun) is not FunctionType:
        return Memo(_MOST_PROGRAMS)
    return Owned.memo(fun, ("jit", options), _MOST_PROGRAMS)
