"""Which devices agree on a value: branches and loops that only some of them would take.

Devices that run one program wait for one another at its collectives. A branch that some devices
take, and others do not, must have none along these devices' axes: those that take it would wait
without an end. One forward pass over the program of a device finds along which axes of the mesh
each value may differ:

    axis_index 'x'              'x'
    a part that 'x' cuts        'x'
    an operation's results      as its operands; by `Collective.told` for collectives
    results of a branch         as the results of either branch, and as what decides
    a carry                     as any iteration makes it; as the condition, after a while

It knows less than types where values come from outside, and more where types say that a gathered
array varies. So it serves programs with and without `check_vma`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Set
from typing import Any, NamedTuple, TypeAlias

from ..base import source
from ..base.util import quoted
from ..core.ir import Atom, ClosedOlympuspr, Literal, OlympusprEqn, derived
from ..lax.collectives.axes import Collective
from ..types.sharding import named_axes
from .while_primitive import While

Axes: TypeAlias = frozenset[Any]
NOWHERE: Axes = frozenset()
EVERYONE = None     # stands for an axis: all devices of the mesh, whatever the axes


class Among(NamedTuple):
    """What a pass is about.

    axes: those of the mesh along which there are several devices.
    together: whether devices wait for all of the mesh where an operation exchanges parts between
      pairs: XLA:CPU has them wait.
    """

    axes: Axes
    together: bool


class Meeting(NamedTuple):
    """An equation at which devices wait, or the part of a kernel that it stands for."""

    eqn: OlympusprEqn
    kernel: bool


def differing(closed: ClosedOlympuspr, differs: Sequence[Axes], among: Among) -> Sequence[Axes]:
    """Along which axes the results of a device's program may differ from device to device.

    `differs`: the same of its operands. Refuses branches and loops that devices decide in different
    ways, if they wait for one another inside: ValueError, in a kernel NotImplementedError.
    """
    return _walked(closed, tuple([d & among.axes for d in differs]), among, False)


def check(closed: ClosedOlympuspr, differs: Sequence[Axes], among: Among) -> None:
    """`differing`, where nobody asks for the results: most programs have nothing to refuse."""
    if among.axes and _meets_inside(closed, among.together):
        differing(closed, differs, among)


@derived
def _meets_inside(closed: ClosedOlympuspr, together: bool) -> bool:
    """Whether devices wait for one another in any branch, or in a loop of unknown length."""
    if all(prim.programs == () for prim in closed.olympuspr.primitives):
        return False
    for eqn in closed.eqns:
        prim = eqn.primitive
        bodies = [body for _, body, _ in prim.applied(eqn.params, eqn.invars)]
        if (prim.branches or prim.endless) and any(
                meetings(body, together, False) for body in bodies):
            return True
        if any(_meets_inside(body, together) for body in bodies):
            return True
    return False


@derived
def _walked(closed: ClosedOlympuspr, differs: tuple[Axes, ...], among: Among, kernel: bool
            ) -> Sequence[Axes]:
    found: dict[Atom, Axes] = {
        v: d for v, d in zip(closed.olympuspr.invars, differs, strict=True) if d}

    def axes_of(atom: Atom) -> Axes:
        return NOWHERE if type(atom) is Literal else found.get(atom, NOWHERE)

    for eqn in closed.eqns:
        outs = _of_equation(eqn, list(map(axes_of, eqn.invars)), among, kernel)
        found.update({v: d for v, d in zip(eqn.outvars, outs, strict=True) if d})
    return list(map(axes_of, closed.olympuspr.outvars))


def _of_equation(eqn: OlympusprEqn, ins: list[Axes], among: Among, kernel: bool
                 ) -> Sequence[Axes]:
    """The same of an equation's results."""
    prim, params, every = eqn.primitive, eqn.params, [NOWHERE.union(*ins)] * len(eqn.outvars)
    if isinstance(prim, Collective):
        return [prim.told(d, params) & among.axes for d in every]
    kernel = kernel or prim.exchanges

    def walked(ins: Sequence[Axes]) -> list[Sequence[Axes]]:
        return [_walked(body, tuple(its), among, kernel)
                for _, body, its in prim.applied(params, ins)]

    if prim.per_device:     # one within another, along other axes of the mesh
        specs: Any = params["in_specs"]
        outs, = walked([d | named_axes(s) & among.axes for d, s in zip(ins, specs, strict=True)])
        return [d - params["newly_manual_axes"] for d in outs]
    bodies = walked(ins)
    if not bodies:
        return every
    if prim.repeats:        # what an iteration makes of a carry decides the next one
        before, count = sum(map(len, prim.cut(params, ins)[:2])), len(prim.cut(params, ins)[2])
        while (carry := [a | b for a, b in zip(ins[before:before + count], bodies[-1], strict=False)
                         ]) != ins[before:before + count]:
            ins[before:before + count] = carry
            bodies = walked(ins)
    # The first operand of other loops of unknown length is how often they run.
    decides = ins[0] if prim.branches or prim.endless else NOWHERE
    if isinstance(prim, While):
        (decides,), *bodies = bodies
        bodies.append(ins[len(ins) - len(eqn.outvars):])    # after no iteration
    if decides:
        _check(eqn, decides, among, kernel)
    return [decides.union(*column) for column in zip(*bodies, strict=True)]


def _check(eqn: OlympusprEqn, decides: Axes, among: Among, kernel: bool) -> None:
    """Refuse an equation whose bodies devices run apart along these axes, and meet in."""
    for _, body, _ in eqn.primitive.applied(eqn.params, eqn.invars):
        its = meetings(body, among.together, kernel)
        for name in sorted(decides, key=repr):
            if (found := its.get(name) or its.get(EVERYONE)) is not None:
                raise _refusal(eqn, quoted(decides), name in its, name, found)


def _refusal(eqn: OlympusprEqn, decides: str, along: bool, name: Hashable, meeting: Meeting
             ) -> Exception:
    loop, prim = eqn.primitive.endless, meeting.eqn.primitive
    where, what = ("loop", "condition") if loop else ("branch", "predicate")
    here = f"the {what} of {eqn.primitive.name} depends on the device"
    places = (f"\n  {eqn.primitive.name} at {source.summarize(eqn.source)};"
              f"\n  {{}} at {source.summarize(meeting.eqn.source)};\n  ")
    if meeting.kernel:
        return NotImplementedError(
            f"pallas_call: {here}, and a copy or signal to another device is inside. All devices "
            f"must start it, or it would wait for the others without an end:"
            f"{places.format('the copy')}start it outside of the {where}, to the device itself "
            "where nothing is to be sent.")
    whom = f"along {name!r}" if along else "of the mesh (on this platform)"
    instead = "" if along else "use another collective along its axis, such as lax.all_gather; or "
    return ValueError(
        f"shard_map: {here}, by a value that may differ along {decides}, and {prim.name} in the "
        f"{where} waits for all devices {whom}, of which some would never come:"
        f"{places.format(prim.name)}{instead}call {prim.name} outside of the {where}, or let all "
        f"devices have the same {what}, reduced by lax.pmax or lax.psum along {decides}.")


@derived
def meetings(closed: ClosedOlympuspr, together: bool, kernel: bool) -> Mapping[Hashable, Meeting]:
    """For each axis along which devices wait for one another in a program, where they first do."""
    found: dict[Hashable, Meeting] = {}
    for eqn in closed.eqns:
        prim, params = eqn.primitive, eqn.params
        if isinstance(prim, Collective):
            names: Set[Hashable] = prim.meets(params)
            if names and together and prim.pairs:
                names = {EVERYONE}
            for name in names:
                found.setdefault(name, Meeting(eqn, kernel))
        for _, body, _ in prim.applied(params, eqn.invars):
            found = {**meetings(body, together, kernel or prim.exchanges), **found}
    return found
