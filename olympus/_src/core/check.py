"""A type checker for programs: the invariants that every pass keeps.

Variables are bound once, before they are read. Literals have rank 0. Results have the types that
the primitive infers from its operands, weak types aside. Elementwise operands have the result's
shape or are literals. Bodies have the types of the operands that they are applied to.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..base import errors, source
from ..types.avals import ShapedArray
from ..types.mesh import get_abstract_mesh, mesh_of_types
from ..types.sharding import axes_of, entry_of, told_axes
from .effects import Effect
from .ir import Atom, ClosedOlympuspr, Literal, Olympuspr, OlympusprEqn, Var, effects_of_equations
from .trace import typeof


def check_olympuspr(olympuspr: Olympuspr | ClosedOlympuspr) -> None:
    """Check a program and all programs in it.

    Args: olympuspr: an open or a closed program.

    Raises:
      OlympusprTypeError: naming the equation, its fault, and the user's line.

    >>> from olympus._src.core.check import check_olympuspr
    >>> check_olympuspr(olympus.make_olympuspr(lambda x: x + 1)(2.))
    """
    if isinstance(olympuspr, ClosedOlympuspr):
        _check_consts(olympuspr)
        olympuspr = olympuspr.olympuspr
    if not isinstance(olympuspr, Olympuspr):
        raise TypeError(f"check_olympuspr: {olympuspr!r} given; an Olympuspr or ClosedOlympuspr is "
                        "required; make one with make_olympuspr.")
    # The variables of this program: bodies have their own, since they read none from outside.
    bound: set[Var] = set()
    for var in (*olympuspr.constvars, *olympuspr.invars):
        if var in bound:
            raise errors.OlympusprTypeError(
                f"check_olympuspr: the input {var} is bound twice; inputs must be distinct.")
        bound.add(var)
    for index, eqn in enumerate(olympuspr.eqns):
        _check_eqn(eqn, index, bound)
        bound.update(eqn.outvars)
    for atom in olympuspr.outvars:
        problem = _atom_problem(atom, bound)
        if problem:
            raise errors.OlympusprTypeError(f"check_olympuspr: an output is {problem}.")
    # A program may declare more effects than its equations have (that only orders more), never
    # fewer.
    effects = effects_of_equations([*olympuspr.constvars, *olympuspr.invars], olympuspr.eqns)
    if not effects <= olympuspr.effects:
        raise errors.OlympusprTypeError(
            f"check_olympuspr: equations have the effects {_effect_names(effects)}, the program "
            f"{_effect_names(olympuspr.effects)}; it must have its equations' effects.")


def _effect_names(effects: frozenset[Effect]) -> str:
    return "{" + ", ".join(sorted(map(str, effects))) + "}"


def _check_consts(closed: ClosedOlympuspr) -> None:
    for i, (var, value) in enumerate(zip(closed.olympuspr.constvars, closed.consts,
                                          strict=True)):
        if not _equal(typeof(value), var.aval):
            raise errors.OlympusprTypeError(
                f"check_olympuspr: constant {i} is {typeof(value)}; its variable is {var.aval}.")


def _atom_problem(atom: Atom, bound: set[Var]) -> str:
    """The fault of an atom that is read here, as words of a message; "" without one."""
    if isinstance(atom, Literal):
        return f"a literal {atom.aval} that is not of rank 0" if atom.aval.shape != () else ""
    if atom.dropped:
        return "a dropped variable"
    return "" if atom in bound else f"the variable {atom} that is not bound before"


def _check_eqn(eqn: OlympusprEqn, index: int, bound: set[Var]) -> None:
    """Raise the first fault of an equation."""
    problem = next(_eqn_problems(eqn, bound), None)
    if problem is None:
        return
    outs, ins = (" ".join(str(v.aval) for v in vs) for vs in (eqn.outvars, eqn.invars))
    raise errors.OlympusprTypeError(
        f"check_olympuspr: equation {index}, `{outs} = {eqn.primitive} {ins}`, {problem}; it was "
        f"recorded at {source.summarize(eqn.source)}.")


def _eqn_problems(eqn: OlympusprEqn, bound: set[Var]) -> Iterator[str]:
    for i, atom in enumerate(eqn.invars):
        problem = _atom_problem(atom, bound)
        if problem:
            yield f"reads as operand {i} {problem}"
    # An equation may not bind a variable twice, either.
    new: set[Var] = set()
    for var in eqn.outvars:
        if var in bound or var in new:
            yield f"binds the variable {var} again"
        new.add(var)
    yield from _body_problems(eqn)
    yield from _type_problems(eqn)
    if eqn.primitive.elementwise:
        yield from _shape_problems(eqn)


def _shape_problems(eqn: OlympusprEqn) -> Iterator[str]:
    shape = eqn.outvars[0].aval.shape
    for i, atom in enumerate(eqn.invars):
        if atom.aval.shape != shape and not isinstance(atom, Literal) and (
                atom.aval.shape or not eqn.primitive.scalars):
            yield (f"has as operand {i} a variable {atom.aval}; elementwise operands must have the "
                   "result's shape or be scalars")


def _type_problems(eqn: OlympusprEqn) -> Iterator[str]:
    try:
        inferred = _inferred(eqn)
    except (TypeError, ValueError) as error:
        yield f"is refused by its primitive: {errors.said(error)}"
        return
    if not eqn.primitive.multiple_results:
        inferred = [inferred]
    if len(inferred) != len(eqn.outvars):
        yield f"binds {len(eqn.outvars)} variables; the primitive gives {len(inferred)} results"
    for i, (want, var) in enumerate(zip(inferred, eqn.outvars, strict=False)):
        if not _equal(want, var.aval):
            have, want = _told_apart(var.aval, want)
            yield f"binds result {i} as {have}; the primitive gives {want}"


def _inferred(eqn: OlympusprEqn) -> Any:
    """The types that the primitive infers under the mesh that was ambient during recording.

    Results of operands without a mesh are on the ambient mesh: so the results name it. During a
    check another mesh may be ambient.
    """
    recorded = [v.aval.sharding.mesh for v in eqn.outvars if getattr(v.aval, "sharded", False)]
    outer = mesh_of_types.swap_local(recorded[0] if recorded else None)
    try:
        # Not `result_avals`, whose memo would return the recorded types.
        return eqn.primitive.inferred(tuple([a.aval for a in eqn.invars]), eqn.params)
    finally:
        mesh_of_types.set_local(outer)


def _body_problems(eqn: OlympusprEqn) -> Iterator[str]:
    prim = eqn.primitive
    for body in prim.bodies(eqn.params):
        try:
            check_olympuspr(body)
        except errors.OlympusprTypeError as error:
            yield f"has a body that fails: {errors.said(error)}"
    # A body's inputs may be parts of the equation's operands: scan passes slices.
    avals = prim.seen(eqn.params, [a.aval for a in eqn.invars])
    for what, body, operands in prim.applied(eqn.params, avals):
        if len(operands) != len(body.in_avals):
            yield f"applies {what} of {len(body.in_avals)} inputs to {len(operands)} operands"
        for i, (have, want) in enumerate(zip(operands, body.in_avals, strict=False)):
            if not _equal(have, want) and not _whole_alike(have, want):
                have, want = _told_apart(have, want)
                yield f"applies {what}, whose input {i} is {want}, to {have}"


def _told_apart(a: object, b: object) -> tuple[str, str]:
    """Two types as two different texts: with their meshes, if only those differ."""
    first, second = [str(x) if str(a) != str(b) or not isinstance(x, ShapedArray) else
                     f"{x} over {x.sharding.mesh}" for x in (a, b)]
    return first, second


def _equal(a: object, b: object) -> bool:
    """Whether two avals are equal, apart from weak types and shardings that XLA decides."""
    return a is b or _strict(a) == _strict(b)


def _whole_alike(a: object, b: object) -> bool:
    """Whether one aval has no mesh, the other is unsharded on a mesh, and all else is equal.

    Either may stand for the other.
    """
    avals = [x for x in (a, b) if isinstance(x, ShapedArray)]
    return len(avals) == 2 and any(not x.sharded for x in avals) and not any(
        any(x.sharding.spec) or any(x.sums) for x in avals) and _equal(
            *[x.update(sharding=None) for x in avals])


def _strict(aval: object) -> object:
    # XLA chose the shardings over Auto axes; only explicit ones are part of the program. An option,
    # which may have changed since, decides whether types name axes of size 1.
    if not isinstance(aval, ShapedArray):
        return aval
    if aval.vma:
        sizes = (aval.sharding.mesh if aval.sharded else get_abstract_mesh()).shape
        aval = aval.update(vma=frozenset([n for n in aval.vma if sizes.get(n) != 1]))
    if not aval.explicit:
        return aval.update(weak_type=False, sharding=None)
    sharding, strict_axes = aval.sharding, told_axes(aval.sharding.mesh, True)
    spec = sharding.spec.update(partitions=[
        entry_of([n for n in axes_of(e) if n in strict_axes]) for e in sharding.spec])
    return aval.update(weak_type=False, sharding=sharding.update(spec=spec))
