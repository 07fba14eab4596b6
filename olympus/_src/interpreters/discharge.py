"""Discharge: a program with references becomes one on arrays.

    program     inputs, references      ->  results
    discharged  inputs, their contents  ->  results, their contents at the end

The program runs on tracers, with a cell for each reference. Operations on references read and
replace the content (`on_cells`). Primitives whose bodies take or make references give the contents
to the bodies as further operands, and take them back as further results (`discharged`).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from ..base.typing import Array, Params, Reference
from ..core.cells import Ref, is_ref, returned_reference
from ..core.context import ROOT
from ..core.effects import input_effects
from ..core.evaluate import evaluate
from ..core.ir import ClosedOlympuspr, Literal, OlympusprEqn, Var, derived
from ..core.primitive import Higher, Primitive
from ..core.staging import stage
from ..core.trace import ThreadState, ctx, typeof
from ..types.refs import inner


def has_refs(closed: ClosedOlympuspr) -> bool:
    """Whether a program takes or makes references; kept with the program."""
    return _found(closed)[0]


def makes_refs(closed: ClosedOlympuspr) -> bool:
    """Whether a program, or a body in it, makes references; kept with the program."""
    return _found(closed)[1]


def _found(closed: ClosedOlympuspr) -> tuple[bool, bool]:
    pr = closed.olympuspr
    flags = pr.cache.get("references")
    if flags is None:
        takes = any(v.aval.mutable for v in (*pr.constvars, *pr.invars))
        # A reference that a user's rule closes over is refused where an operation touches it.
        made = {v.aval for eqn in pr.eqns for v in eqn.outvars}
        makes = True in {a.mutable for a in (*made, *[v.aval for v in pr.constvars])}
        for eqn in pr.eqns:
            if makes:
                break
            if eqn.primitive.programs != ():
                makes = any(makes_refs(body) for body in eqn.primitive.bodies(eqn.params)
                            if type(body) is ClosedOlympuspr)
        flags = pr.cache["references"] = takes or makes, makes
    return flags


def written(closed: ClosedOlympuspr) -> tuple[bool, ...]:
    """Per input, whether it is a reference that the program writes."""
    lead = len(closed.consts)
    places = {e.index - lead for e in input_effects(closed.effects) if e.kind != "read"}
    return tuple([i in places for i in range(len(closed.olympuspr.invars))])


@derived
def handed_on(closed: ClosedOlympuspr) -> tuple[bool, ...]:
    """Per input, whether it is a reference that a rule of `custom_vjp` may get in a later pass."""
    variables_handed_on: set[Var] = set()
    for eqn in closed.eqns:
        flags = eqn.primitive.hands_references_on
        if flags is not None and any(v.aval.mutable for v in eqn.invars):
            variables_handed_on.update(v for v, on in zip(
                eqn.invars, flags(eqn.params, eqn.invars), strict=True) if on and type(v) is Var)
    return tuple([v.aval.mutable and v in variables_handed_on for v in closed.olympuspr.invars])


def to_hand_on(prim: Higher, ins: Sequence[Reference], params: Params) -> list[int]:
    """The indices of operands whose references a body needs beside the contents, each once."""
    if not any(is_cell(x) and x._stands_for is not None for x in ins):
        return []
    flags = prim.hands_references_on(params, ins)
    return [*{id(x): i for i, (x, on) in enumerate(zip(ins, flags, strict=True))
              if on and is_cell(x) and x._stands_for is not None}.values()]


def sources(ins: Sequence[Reference]) -> tuple[int | None, ...]:
    """Per cell among the operands, the index of the operand that is its reference; None otherwise.
    """
    places = {id(x): i for i, x in enumerate(ins)}
    return tuple([places.get(id(x._stands_for)) if is_cell(x) else None for x in ins])


def discharge(closed: ClosedOlympuspr, which: Sequence[bool] | None = None,
              returned: Sequence[bool] | None = None, sources: Sequence[int | None] = ()
              ) -> ClosedOlympuspr:
    """The program on the contents of references, which returns the written ones; kept with it.

    Args:
      closed: the program.
      which: flags of the inputs to discharge; None: all references. The others stay references,
        which the program hands on to rules that run later.
      returned: flags of the inputs whose contents are results; None: those that it writes.
      sources: per input that is a content, the index of the input that is its reference, or None.
    """
    if which is None:
        if not has_refs(closed):
            return closed
        which = [a.mutable for a in closed.in_avals]
    elif not any(which) and not makes_refs(closed):
        return closed
    returned = written(closed) if returned is None else returned
    # A reference that stays one is written where it is.
    return _discharged(closed, tuple(which), tuple(map(operator.and_, which, returned)),
                       tuple(sources) if any(x is not None for x in sources) else ())


@derived
def _discharged(closed: ClosedOlympuspr, which: tuple[bool, ...], returned: tuple[bool, ...],
                sources: tuple[int | None, ...]) -> ClosedOlympuspr:
    def body(*args: Reference) -> list[Reference]:
        trace: Any = ctx.trace
        pr = closed.olympuspr
        read = {v for atoms in (*[eqn.invars for eqn in pr.eqns], pr.outvars)
                for v in atoms if type(v) is not Literal}
        cells: list[Any] = [Ref(x, trace) if w else x for x, w in zip(args, which, strict=True)]
        for x, i in zip(cells, sources, strict=False):
            if i is not None:
                x._stands_for = args[i]

        def step(eqn: OlympusprEqn, ins: list[Reference]) -> Reference:
            trace.source = eqn.source       # of all equations that are recorded for it
            prim, outer = eqn.primitive, ctx.scope
            ctx.scope = outer.extend(*eqn.ctx.names) if eqn.ctx is not ROOT else outer
            try:
                # A write returns the old content: skip the read if no equation needs it.
                if prim.on_set is not None and eqn.outvars[0] not in read and is_cell(ins[0]):
                    return prim.on_set(*ins, **eqn.params)
                return _step(prim, ins, eqn.params)
            finally:
                ctx.scope = outer

        outs = evaluate(closed.olympuspr, closed.consts, cells, step)
        for x in outs:
            if is_cell(x):
                raise returned_reference(closed.debug_info.traced_for,
                                         closed.debug_info.func_name, x)
        return [*outs, *[x._value for x, r in zip(cells, returned, strict=True) if r]]

    info = closed.debug_info
    if info.result_paths:
        info = info._replace(result_paths=(
            *info.result_paths, *[f"the content of reference {i}" for i, r in enumerate(returned)
                                  if r]))
    return stage(body, [inner(a) if w else a for a, w in zip(closed.in_avals, which, strict=True)],
                 info)


def on_contents(what: str, role: str, closed: ClosedOlympuspr, consts: Sequence[Reference]
                ) -> tuple[ClosedOlympuspr, list[Reference]]:
    """A program of arrays and its first operands: contents in place of references that it reads.

    ValueError for one that it writes: it may run any number of times, or be differentiated.
    """
    which = [typeof(x).mutable for x in consts]
    for x, changed in zip(consts, written(closed), strict=False):
        if changed:
            raise ValueError(f"{what}: {role} writes the reference {typeof(x)}, which it closes "
                             "over; a function of arrays is required, since derivatives are taken "
                             "of it;\n  return the new content, and write it outside.")
    n = len(closed.in_avals) - len(which)
    return discharge(closed, [*which, *[False] * n]), [
        x[...] if w else x for x, w in zip(consts, which, strict=True)]


def stores_of(closed: ClosedOlympuspr) -> dict[int, int]:
    """Index of an input that is a written reference -> index of its result in `discharge`."""
    if not has_refs(closed):
        return {}
    places = [i for i, w in enumerate(written(closed)) if w]
    return {i: len(closed.outvars) + k for k, i in enumerate(places)}


def _step(prim: Primitive, ins: list[Reference], params: Params) -> Reference:
    if prim.on_cells is not None and ins and type(ins[0]) is Ref and not is_cell(ins[0]):
        raise ValueError(
            f"{prim.name}: a rule (of custom_jvp, custom_vjp, custom_vmap or a HiPrim) closes over "
            f"the reference\n  {ins[0].aval}, and runs in a body of jit, a loop, a branch or "
            "checkpoint, which knows nothing of it;\n  pass it to the function as an argument.")
    # Operations on references that stay references are recorded.
    if prim.on_cells is not None and (not ins or is_cell(ins[0]) or not is_ref(ins[0])):
        return prim.on_cells(ins, params)
    if prim.discharged is not None and (any(map(is_cell, ins)) or any(
            makes_refs(body) for body in prim.bodies(params) if type(body) is ClosedOlympuspr)):
        return prim.discharged(ins, params)
    return prim.bind(*ins, **params)


def is_cell(x: object) -> bool:
    """Whether a value is a reference that the current trace made."""
    return type(x) is Ref and (x._trace is ctx.trace or (
        x._trace is None and ctx.trace is ThreadState.trace))


def content(x: Reference) -> Reference:
    """The content of a cell; any other value itself."""
    return x._value if is_cell(x) else x


def put_back(cells: Sequence[Ref], outs: Sequence[Array]) -> list[Array]:
    """Put the last results into the cells, and return the others."""
    n = len(outs) - len(cells)
    for cell, x in zip(cells, outs[n:], strict=True):
        cell._put(x)
    return list(outs[:n])
