"""The program of a jitted function for one key: traced, then lowered and compiled.

A program lives on its function, and its executables on the program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from ..base import config, source
from ..base.lib.executables import CompilerOptions
from ..base.logs import timed
from ..base.typing import Array, ArrayLike, Modes, PyTree, Reference
from ..base.util import Memo, Owned, WithAux, lazy_imports
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr, DebugInfo, Olympuspr, high_types
from ..core.primitive import programs_in
from ..core.staging import closure_convert, passing, stage
from ..core.trace import typeof
from ..interpreters.passes import arrays_only, stores_of
from ..lax.sharding import constrain
from ..lowering.module import Lowering
from ..runtime.compile import Executable, Placement, load_program, lowering_of, release
from ..types.avals import HIGH, MUTABLE, Aval, ShapeDtypeStruct
from ..types.layout import Format, Layout, demanded_layout
from ..types.sharding import NamedSharding, demanded_memory
from ..types.tree import argument_path, keystr, tree_flatten, tree_flatten_with_path, tree_unflatten
from ..types.tree_registry import PyTreeDef
from .arguments import check_results
from .signature import Arguments, Signature

with lazy_imports(__name__):
    from ..core import cells as _cells, check as _check  # references; under enable_checks
    from ..interpreters import discharge as _discharge, parts as _parts
    from ..runtime import dumps as _dumps  # under olympus_dump_ir_to

_MOST_PROGRAMS = 4096       # of one function; their code has a bound of its own


class Program:
    """A traced function for one key, with the stages made from it later."""

    # `lead` are values that the function closes over and others hold: operands in front of the
    # caller's. `executables` are by placement: one trace serves all devices.
    __slots__ = ("closed", "lead", "out_tree", "in_tree", "arg_names", "donated", "name",
                 "executables", "keep_unused", "options", "demanded", "out_shardings", "modes",
                 "refs", "stores", "flat", "high", "parts", "whole")

    def __init__(self, closed: ClosedOlympuspr, lead: Sequence[Array], in_tree: PyTreeDef,
                 out_tree: PyTreeDef, arg_names: tuple[str, ...], donated: tuple[bool, ...],
                 name: str, keep_unused: bool, options: CompilerOptions | None,
                 demanded: Sequence[Format] = (), modes: Modes = (None, None)) -> None:
        self.closed, self.lead = closed, lead
        self.in_tree, self.out_tree = in_tree, out_tree
        self.arg_names, self.donated, self.name = arg_names, donated, name
        self.keep_unused, self.options = keep_unused, options
        self.demanded = demanded        # of each result; empty where nothing is
        self.out_shardings = [f.sharding if type(f.sharding) is NamedSharding else None
                              for f in demanded]
        self.modes = modes      # of holds and kernels; None: as the option says when it is lowered
        self.executables: dict[Placement, Executable] = {}
        # Which operands are references, and for those that it writes the result of the compiled
        # program that is the new content; how it is called with contents, once it was.
        self.refs = [i for i, a in enumerate(closed.in_avals) if a.mutable] if MUTABLE else []
        self.stores = stores_of(closed) if self.refs else {}
        self.flat: Any = None
        # Whether it takes or returns values of users' types, which are several arrays each; then
        # the program on these, once it is asked for, and of that the one whose parts it has.
        self.high = bool(HIGH) and high_types(closed)
        self.parts: Program | None = None
        self.whole: Program | None = None

    @property
    def passing(self) -> bool:
        """Whether it closes over values of a live trace: it is good for that trace alone."""
        return any(map(passing, self.lead))

    def on_parts(self) -> Program:
        """The program on arrays: in its trees a value of a user's type is a tuple of its parts.

        With references to such values, it takes their contents, and returns a row: the results, and
        the new contents.
        """
        if not self.high:
            high = HIGH and self.closed.is_high
            return self._with(_parts.in_parts(self.closed)) if high else self
        if self.parts is None:
            n, repeated, closed = len(self.lead), _parts.repeated, self.closed
            if n:       # the variables that it closes over are constants
                closed = stage(lambda *xs: eval_closed(self.closed, *self.lead, *xs),
                               closed.in_avals[n:], closed.debug_info)
            ins, outs, out_tree, demanded = (
                closed.in_avals, closed.out_avals, self.out_tree, self.demanded)
            if self.refs:
                closed, ins = _discharge.discharge(closed), list(map(_discharge.inner, ins))
                outs = self.new_avals
                out_tree = tree_flatten(tuple(outs))[1]
                demanded = demanded and (*demanded, *[Format()] * len(self.stores))
            self.parts = made = Program(
                _parts.in_parts(closed), (), _tree_of_parts(self.in_tree, ins),
                _tree_of_parts(out_tree, outs), tuple(repeated(self.arg_names[n:], ins)),
                tuple(repeated(self.donated[n:], ins)), self.name, self.keep_unused, self.options,
                repeated(demanded, outs) if demanded else (), self.modes)
            made.whole = self
        return self.parts

    @property
    def new_avals(self) -> list[Aval]:
        """The types of the results, and of the contents of references that it writes."""
        ins: list[Any] = self.closed.in_avals
        return [*self.closed.out_avals, *[ins[i].inner for i in self.stores]]

    def _with(self, closed: ClosedOlympuspr) -> Program:
        """The same for another program of the same types."""
        return Program(closed, self.lead, self.in_tree, self.out_tree, self.arg_names, self.donated,
                       self.name, self.keep_unused, self.options, self.demanded, self.modes)

    def to_lower(self, platform: str, placement: Placement) -> tuple[Lowering, tuple[bool, ...]]:
        """(the program to lower, flags of the inputs that the module takes)."""
        return lowering_of(
            self.closed, self.name, placement, platform, keep_unused=self.keep_unused,
            donated=self.donated, arg_names=self.arg_names, modes=self.modes,
            out_shardings=self.out_shardings,
            out_memories=[demanded_memory(f.sharding) for f in self.demanded],
            out_layouts=[demanded_layout(f.layout) for f in self.demanded],
            path_of=lambda i: argument_path(self.in_tree, i))

    def in_avals(self, shardings: Sequence[NamedSharding | None]) -> list[Aval]:
        """The types of arguments that are where these shardings, if any, say."""
        avals: list[Any] = self.closed.in_avals
        return [a.at(s) if s is not None and s.mesh.explicit_axes else a for a, s in zip(
            avals, shardings or [None] * len(avals), strict=True)][len(self.lead):]

    @property
    def out_structs(self) -> Sequence[Aval | ShapeDtypeStruct]:
        """The types of the results as they are known before compilation."""
        structs = list(map(ShapeDtypeStruct.of_type, self.closed.out_avals))
        if not self.demanded:
            return structs
        return [s if f.sharding is None else
                s.update(sharding=f if isinstance(f.layout, Layout) else f.sharding)
                for s, f in zip(structs, self.demanded, strict=True)]

    def executable(self, placement: Placement) -> Executable:
        """Compile for the devices where the arguments are; once."""
        found = self.executables.get(placement)
        if found is None:
            program, kept = self.to_lower(placement.platform, placement)
            loaded, interface = load_program(program, placement, self.options)
            found = self.executables[placement] = Executable(
                loaded, arrays_only(self.closed), kept, placement, interface, self.arg_names)
        return found

    def on_contents(self, run: Callable[..., list[Array]], operands: Sequence[Reference]
                    ) -> PyTree:
        """The result of a program with references, which `run` applies to their contents.

        `operands` are the inputs of `closed`; contents that it writes are replaced, in place.
        """
        refs, stores = self.refs, self.stores
        if len(refs) > 1:
            self.check_aliases(operands)
        values = list(operands)
        with _cells.lock:
            for i in refs:
                values[i] = values[i]._taken() if i in stores else values[i]._content(False)
            outs = run(*values)
            for i, place in stores.items():
                operands[i]._put(outs[place])
        return tree_unflatten(self.out_tree, outs[:self.out_tree.num_leaves])

    def check_aliases(self, operands: Sequence[Reference]) -> None:
        """ValueError for a reference that is given twice."""
        refs = self.refs
        if len({_cells.identity_of(operands[i]) for i in refs}) < len(refs):
            raise _cells.aliased("jit", self.name, [operands[i] for i in refs],
                                 [self.arg_names[i] for i in refs])

    def release(self) -> None:
        """Let go of the executables, if no equal program has them."""
        for executable in list(self.executables.values()):
            release(executable)


def _tree_of_parts(tree: PyTreeDef, avals: Sequence[Aval]) -> PyTreeDef:
    return tree_flatten(tree_unflatten(tree, [
        tuple(_parts.part_types(a)) if a.is_high else a for a in avals]))[1]


def trace_program(signature: Signature, arguments: Arguments, keep_unused: bool,
                  options: CompilerOptions | None, modes: Modes) -> Program:
    """Run the function on tracers of the call's types."""
    ins = signature.input_shardings(arguments)

    def flat(*leaves: Array) -> tuple[list[Array], tuple]:
        if ins:
            leaves = tuple(x if x.aval.mutable else constrain("jit in_shardings", x, s)
                           for x, s in zip(leaves, ins))
        dynamic, kwargs = tree_unflatten(arguments.in_tree, leaves)
        out = signature.fun(*arguments.merged(dynamic), **kwargs, **arguments.static_kwargs)
        outs, out_tree = tree_flatten(out)
        check_results("jit", signature.fun, out, outs)
        out_shardings = signature.output_shardings(out_tree)
        if out_shardings:
            outs = [constrain("jit out_shardings", *pair) for pair in zip(outs, out_shardings)]
        paths = tuple(f"result{keystr(path)}" for path, _ in tree_flatten_with_path(out)[0])
        out_layouts = signature.output_layouts(out_tree, list(map(typeof, outs)), paths)
        return outs, (out_tree, paths, out_shardings, out_layouts)

    # `flat` notes its findings besides the results, which are read after the trace.
    with_aux, name, names = WithAux(flat), signature.name, signature.leaf_names(arguments)
    with timed(name, log="tracing", event="olympuspr_trace"):
        closed = stage(with_aux, arguments.avals, DebugInfo("jit", name, names))
    if signature.library:
        _leave_line_open(closed.olympuspr, source.user_frame(), set())
    out_tree, paths, out_shardings, out_layouts = with_aux.aux
    closed.olympuspr.debug_info = DebugInfo("jit", name, names, paths)
    if config.enable_checks.value:
        _check.check_olympuspr(closed.olympuspr)
    closed, lead = closure_convert(closed)
    if closed.consts:
        _warn_of_constants(name, closed.consts)
    if config.dump_ir_to.value:
        _dumps.dump("olympuspr", name, lambda: str(closed))
    return Program(
        closed, lead, arguments.in_tree, out_tree, ("",) * len(lead) + names,
        (False,) * len(lead) + signature.donated(arguments), name, keep_unused, options,
        list(map(Format, out_layouts or [None] * len(out_shardings), out_shardings)), modes)


def _leave_line_open(pr: Olympuspr, here: source.Source | None, seen: set[int]) -> None:
    """Take the line `here` from a library's program, which serves calls in other lines, too."""
    seen.add(id(pr))
    for eqn in pr.eqns:
        if eqn.source == here:
            eqn.source = source.CALLERS
        for name in eqn.primitive.programs or ():
            for body in programs_in(eqn.params[name]):
                body = getattr(body, "olympuspr", body)
                if id(body) not in seen:    # equations may share one: the pass stays linear
                    _leave_line_open(body, here, seen)


def _warn_of_constants(name: str, consts: Sequence[ArrayLike]) -> None:
    """Say where a function closes over so much that programs become large."""
    most = config.captured_constants_warn_bytes.value
    total = sum(getattr(c, "nbytes", 0) for c in consts)
    if total >= most >= 0:      # -1 never warns
        sizes = ", ".join(str(typeof(c)) for c in consts[:5])
        source.warn(f"jit: {name} closes over arrays of {total:,} bytes ({sizes}), which are part "
                    "of each program that is compiled of it; pass them as arguments, or raise "
                    "olympus_captured_constants_warn_bytes.")


class _Apart(int):
    """An option's value that does as the number and equals none, so that no cache has its key."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


def anew() -> config.Override:
    """Within it nothing that was traced before is used again, loop bodies neither, nor kept for
    later: C++'s caches and ours have the option in their keys.
    """
    option = config.random_seed_offset
    return config.Override(option, _Apart(option.value))


def programs_of(fun: Callable, options: tuple, own: bool = False) -> Memo:
    """Programs by function and options: `jit(f)` written twice traces f once, if none is its own.

    Functions are told apart by identity: other callables may be equal and differ.
    """
    if own or not shares_programs(fun, options):
        return Memo(_MOST_PROGRAMS)
    return Owned.memo(fun, ("jit", options), _MOST_PROGRAMS)


def shares_programs(fun: Callable, options: tuple) -> bool:
    """Whether programs are kept by function and options, for all that `jit` makes of them."""
    try:
        hash(options)
    except TypeError:
        return False
    return type(fun) is FunctionType
