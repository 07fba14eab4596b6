"""Printing an olympuspr as text: `{ lambda consts; inputs. let equations in (outputs) }`.

The layout is a Wadler-Lindig document, so short programs stay on one line. Programs that several
equations share are named and printed once, before the main one. This module looks at programs by
attribute, since the IR prints itself through it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base import pretty, source, spelling
from ..base.typing import Params
from ..base.util import quoted
from ..types.shape import SymbolicDim

if TYPE_CHECKING:
    from .ir import Atom, Olympuspr, OlympusprEqn

PYTHON_SCALARS = (bool, int, float, complex)
PYTHON_KINDS = {"b": bool, "i": int, "u": int, "f": float, "c": complex}


class Names:
    """Names of variables in the order of printing (a … z, ba, bb …), and of shared programs."""

    __slots__ = ("taken", "count", "programs")

    def __init__(self) -> None:
        self.taken: dict[Atom, str] = {}
        self.count = 0
        self.programs: dict[int, str] = {}

    def of(self, var: Any) -> str:
        if var.dropped:
            return "_"
        name = self.taken.get(var)
        if name is None:
            name = self.taken[var] = _letters(self.count)
            self.count += 1
        return name

    def drop_unread(self, pr: Olympuspr) -> None:
        """Name `_` the results that nothing reads."""
        read_vars = {a for eqn in pr.eqns for a in eqn.invars if not hasattr(a, "raw")}
        read_vars.update(a for a in pr.outvars if not hasattr(a, "raw"))
        for eqn in pr.eqns:
            for var in eqn.outvars:
                if var not in read_vars:
                    self.taken.setdefault(var, "_")

    def alias(self, inner: Sequence[Atom], outer: Sequence[Atom]) -> None:
        """Give a body's variables the names of the enclosing equation's operands, where unique.

        Only for bodies that are applied once, unchanged: each operand stands for one input.
        """
        if len(inner) != len(outer):
            return
        operands_named = set()
        for var, like in zip(inner, outer, strict=True):
            if not (hasattr(var, "raw") or hasattr(like, "raw") or like in operands_named
                    or var in self.taken):
                operands_named.add(like)
                self.taken[var] = self.of(like)


def _letters(n: int) -> str:
    """Base 26 with the digits a … z: 25 is z, 26 is ba."""
    n, digit = divmod(n, 26)
    name = chr(ord("a") + digit)
    while n:
        n, digit = divmod(n, 26)
        name = chr(ord("a") + digit) + name
    return name


class Settings:
    """The parts to print besides the program itself."""

    __slots__ = ("source_info", "name_stack", "custom_rules", "shapes")

    def __init__(self, source_info: bool, name_stack: bool, custom_rules: bool, shapes: bool
                 ) -> None:
        self.source_info, self.name_stack = source_info, name_stack
        self.custom_rules, self.shapes = custom_rules, shapes


def pretty_print(pr: Olympuspr, *, source_info: bool = False, print_shapes: bool = True,
                 custom_pp_eqn_rules: bool = True, name_stack: bool = False,
                 print_effects: bool = False, use_color: bool = False) -> str:
    """The program as text.

    Args:
      pr: an open olympuspr.
      source_info: add the user's line to each equation.
      print_shapes: print the type of each variable where it is bound.
      custom_pp_eqn_rules: leave out params that follow from the operands, as JAX does.
      name_stack: add the named scopes of each equation.
      print_effects: print the program's effects.
      use_color: accepted; the text is plain.
    """
    settings = Settings(source_info, name_stack, custom_pp_eqn_rules, print_shapes)
    names = Names()
    docs = []
    for program, name in _shared(pr):
        docs.append(pretty.group(pretty.concat([
            pretty.text(f"let {name} = "), _program(program, names, settings),
            pretty.text(" in")])))
        names.programs[id(program)] = name
    docs.append(_program(pr, names, settings))
    text = "\n".join(pretty.format(doc) for doc in docs)
    if print_effects and pr.effects:
        text += f"\n# effects: {', '.join(sorted(map(str, pr.effects)))}"
    return spelling.shown(text)


def _open(program: Any) -> Olympuspr:
    """An open or closed program as an open one."""
    return getattr(program, "olympuspr", program)


def _called_program(eqn: OlympusprEqn) -> Olympuspr | None:
    """The program that an equation calls by name; None for other equations."""
    prim = eqn.primitive
    return _open(prim.bodies(eqn.params)[0]) if getattr(prim, "called", False) else None


def _shared(pr: Olympuspr) -> list[tuple[Olympuspr, str]]:
    """Called programs with two or more calls, innermost first, with a name for each."""
    uses: dict[int, int] = {}
    order: list[tuple[Olympuspr, str]] = []

    def visit(program: Olympuspr) -> None:
        for eqn in program.eqns:
            called = _called_program(eqn)
            for inner in map(_open, eqn.primitive.bodies(eqn.params)):
                calls = uses.get(id(inner), 0)
                # Each program is visited once, however often it is called: the pass is linear. A
                # body comes before its callers, so that every name is printed before its use.
                if inner is called:
                    uses[id(inner)] = calls + 1
                    if not calls:
                        visit(inner)
                        order.append((inner, eqn.params["name"]))
                elif not calls:
                    visit(inner)

    visit(pr)
    taken: dict[str, int] = {}
    named = []
    for program, name in order:
        if uses[id(program)] > 1:
            name = name.strip("<>")
            count = taken[name] = taken.get(name, -1) + 1
            named.append((program, f"{name}{count}" if count else name))
    return named


def _fill(items: Sequence[str], separator: str = "") -> pretty.Doc:
    """The items, on as few lines as possible."""
    gap = pretty.concat([pretty.text(separator), pretty.group(pretty.brk())])
    return pretty.nest(2, pretty.join(gap, list(map(pretty.text, items))))


def _program(pr: Olympuspr, names: Names, settings: Settings) -> pretty.Doc:
    def bound(variables: Sequence[Atom]) -> pretty.Doc:
        return _fill([_binder(v, names, settings) for v in variables])

    # Before variables get letters, so that unread results take none.
    names.drop_unread(pr)
    head = [pretty.text("lambda "), bound(pr.constvars), pretty.text("; "), bound(pr.invars),
            pretty.text(". let")]
    eqns = [_eqn(eqn, names, settings) for eqn in pr.eqns]
    body = pretty.nest(2, pretty.concat([
        pretty.brk(), pretty.join(pretty.brk("; "), eqns)]))
    outs = [_atom(a, names) for a in pr.outvars]
    tail = [pretty.text("in ("), _fill(outs, ","), pretty.text(",)" if len(outs) == 1 else ")")]
    return pretty.group(pretty.concat([
        pretty.text("{ "),
        pretty.nest(2, pretty.concat([*head, body, pretty.brk(), *tail])),
        pretty.text(" }")]))


def _binder(var: Atom, names: Names, settings: Settings) -> str:
    name = names.of(var)
    return f"{name}:{var.aval.str_short(short_dtypes=True)}" if settings.shapes else name


def _atom(atom: Any, names: Names) -> str:
    if not hasattr(atom, "raw"):
        return names.of(atom)
    aval = atom.aval
    value = atom.raw
    kind = PYTHON_KINDS.get(getattr(aval.dtype, "kind", "")) \
        if type(value) in PYTHON_SCALARS else None
    if kind is not None:
        value = kind(value)     # all digits, also beyond the dtype's precision
    elif (isinstance(aval.dtype, np.dtype) and aval.dtype.names is None
          and not isinstance(value, SymbolicDim)):
        value = np.asarray(value).astype(aval.dtype).item()
    return f"{value}:{aval.str_short(short_dtypes=True)}"


def _eqn(eqn: OlympusprEqn, names: Names, settings: Settings) -> pretty.Doc:
    outs = _fill([_binder(v, names, settings) for v in eqn.outvars])
    called = _called_program(eqn)
    # A program that is called once is printed in place, with the caller's names; a shared one
    # stands above, with names of its own, because callers have different ones.
    if called is not None and id(called) not in names.programs:
        names.alias(called.invars, eqn.invars)
        names.alias(called.outvars, eqn.outvars)
    params = eqn.primitive.shown(eqn) if settings.custom_rules else eqn.params
    bodies = {id(body) for body in eqn.primitive.bodies(eqn.params)}
    bound = [outs, pretty.text(" = ")] if eqn.outvars else []
    operands = [_atom(a, names) for a in eqn.invars]
    if settings.custom_rules and eqn.primitive.text is not None:
        results = ", ".join([_binder(v, names, settings) for v in eqn.outvars])
        doc = pretty.text(eqn.primitive.text(eqn, results, operands))
    else:
        doc = pretty.concat([*bound, pretty.text(eqn.primitive.name),
                             _params(params, bodies, names, settings), pretty.text(" "),
                             _fill(operands)])
    notes = []
    if settings.source_info:
        notes.append(source.format_source(eqn.source))
    if settings.name_stack:
        notes.append(f"[{eqn.ctx or ''}]")
    return pretty.annotated(doc, " ".join(notes)) if notes else doc


def _params(params: Params, bodies: set[int], names: Names, settings: Settings) -> pretty.Doc:
    if not params:
        return pretty.text("")
    # The name of a call comes first: it says most.
    keys = sorted(params, key=lambda k: (k != "name", k))
    items = [pretty.concat([pretty.text(f"{k}="), _value(params[k], bodies, names, settings)])
             for k in keys]
    return pretty.group(pretty.concat([
        pretty.text("["), pretty.nest(2, pretty.concat([
            pretty.brk(""), pretty.join(pretty.brk(), items)])),
        pretty.brk(""), pretty.text("]")]))


def _value(value: object, bodies: set[int], names: Names, settings: Settings) -> pretty.Doc:
    # By identity: the primitive says which params are programs, their type does not.
    if id(value) in bodies:
        program = _open(value)
        name = names.programs.get(id(program))
        return pretty.text(name) if name is not None else _program(program, names, settings)
    if isinstance(value, (tuple, list)) and value and all(id(v) in bodies for v in value):
        inner = pretty.join(pretty.brk(), [_value(v, bodies, names, settings) for v in value])
        return pretty.group(pretty.concat([
            pretty.text("("), pretty.nest(2, pretty.concat([pretty.brk(""), inner])),
            pretty.brk(""), pretty.text(")")]))
    if callable(value) and hasattr(value, "__name__"):
        return pretty.text(value.__name__)
    if isinstance(value, frozenset) and value:      # in an order that is always the same
        return pretty.text(f"frozenset({{{quoted(value)}}})")
    return pretty.text(str(value))
