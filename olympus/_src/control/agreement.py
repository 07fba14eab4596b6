"""The search for branches and loops in which devices would wait for one another without an end.

Devices that run one program wait for one another at its collectives. A branch that only some
devices take must have no collective along the axes that separate them from the others: they would
wait for ever.
One forward pass over the program of a device finds the mesh axes along which each value may differ:

    axis_index 'x'              'x'
    a part sharded along 'x'    'x'
    an operation's results      the operands' axes; `Collective.told` for collectives
    results of a branch         the axes of the results of either branch, and of the index
    a carry                     the axes after any iteration; after a while, the condition's, too

It knows less than types about values from outside, and more about gathered arrays, whose types say
that they vary. So it serves programs with and without `check_vma`.
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
EVERYONE = None     # in place of an axis: all devices of the mesh


class Among(NamedTuple):
    """The facts about a mesh that a pass reads.

    axes: the axes of the mesh along which there are several devices.
    together: whether an exchange between pairs of devices waits for all devices of the mesh, as in
      XLA:CPU.
    """

    axes: Axes
    together: bool


class Meeting(NamedTuple):
    """An equation at which devices wait; `kernel`: it stands for a copy or signal of a kernel."""

    eqn: OlympusprEqn
    kernel: bool


def differing(closed: ClosedOlympuspr, differs: Sequence[Axes], among: Among) -> Sequence[Axes]:
    """The axes along which each result of a device's program may differ between devices.

    `differs`: the axes for each operand. Raises for branches and loops that devices decide
    differently, and in which they wait for one another: ValueError, in a kernel
    NotImplementedError.
    """
    return _walked(closed, tuple([d & among.axes for d in differs]), among, False)


def check(closed: ClosedOlympuspr, differs: Sequence[Axes], among: Among) -> None:
    """`differing` without the results; most programs need no pass."""
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
    axes: dict[Atom, Axes] = {
        v: d for v, d in zip(closed.olympuspr.invars, differs, strict=True) if d}

    def axes_of(atom: Atom) -> Axes:
        return NOWHERE if type(atom) is Literal else axes.get(atom, NOWHERE)

    for eqn in closed.eqns:
        outs = _of_equation(eqn, list(map(axes_of, eqn.invars)), among, kernel)
        axes.update({v: d for v, d in zip(eqn.outvars, outs, strict=True) if d})
    return list(map(axes_of, closed.olympuspr.outvars))


def _of_equation(eqn: OlympusprEqn, ins: list[Axes], among: Among, kernel: bool
                 ) -> Sequence[Axes]:
    """The axes along which each result of an equation may differ."""
    prim, params, union = eqn.primitive, eqn.params, [NOWHERE.union(*ins)] * len(eqn.outvars)
    if isinstance(prim, Collective):
        return [prim.told(d, params) & among.axes for d in union]
    kernel = kernel or prim.exchanges

    def walked(ins: Sequence[Axes]) -> list[Sequence[Axes]]:
        return [_walked(body, tuple(its), among, kernel)
                for _, body, its in prim.applied(params, ins)]

    if prim.per_device:     # a nested shard_map, along other axes of the mesh
        specs: Any = params["in_specs"]
        outs, = walked([d | named_axes(s) & among.axes for d, s in zip(ins, specs, strict=True)])
        return [d - params["newly_manual_axes"] for d in outs]
    bodies = walked(ins)
    if not bodies:
        return union
    if prim.repeats:        # to the fixpoint: a carry may differ after any iteration
        before, count = sum(map(len, prim.cut(params, ins)[:2])), len(prim.cut(params, ins)[2])
        while (carry := [a | b for a, b in zip(ins[before:before + count], bodies[-1], strict=False)
                         ]) != ins[before:before + count]:
            ins[before:before + count] = carry
            bodies = walked(ins)
    # The first operand of other loops of unknown length is their iteration count.
    decides = ins[0] if prim.branches or prim.endless else NOWHERE
    if isinstance(prim, While):
        (decides,), *bodies = bodies
        bodies.append(ins[len(ins) - len(eqn.outvars):])    # after no iteration
    if decides:
        _check(eqn, decides, among, kernel)
    return [decides.union(*column) for column in zip(*bodies, strict=True)]


def _check(eqn: OlympusprEqn, decides: Axes, among: Among, kernel: bool) -> None:
    """Raise if devices that differ along the axes `decides` would wait for one another in a body.
    """
    for _, body, _ in eqn.primitive.applied(eqn.params, eqn.invars):
        waits = meetings(body, among.together, kernel)
        for name in sorted(decides, key=repr):
            if (meeting := waits.get(name) or waits.get(EVERYONE)) is not None:
                raise _refusal(eqn, quoted(decides), name in waits, name, meeting)


def _refusal(eqn: OlympusprEqn, decides: str, along: bool, name: Hashable, meeting: Meeting
             ) -> Exception:
    loop, prim = eqn.primitive.endless, meeting.eqn.primitive
    where, what = ("loop", "condition") if loop else ("branch", "predicate")
    reason = f"the {what} of {eqn.primitive.name} depends on the device"
    text = (f"\n  {eqn.primitive.name} at {source.summarize(eqn.source)};"
            f"\n  {{}} at {source.summarize(meeting.eqn.source)};\n  ")
    if meeting.kernel:
        return NotImplementedError(
            f"pallas_call: {reason}, and a copy or signal to another device is inside. All devices "
            f"must start it, or it would wait for the others without an end:"
            f"{text.format('the copy')}start it outside of the {where}, to the device itself "
            "where nothing is to be sent.")
    whom = f"along {name!r}" if along else "of the mesh (on this platform)"
    instead = "" if along else "use another collective along its axis, such as lax.all_gather; or "
    return ValueError(
        f"shard_map: {reason}, by a value that may differ along {decides}, and {prim.name} in the "
        f"{where} waits for all devices {whom}, of which some would never come:"
        f"{text.format(prim.name)}{instead}call {prim.name} outside of the {where}, or let all "
        f"devices have the same {what}, reduced by lax.pmax or lax.psum along {decides}.")


@derived
def meetings(closed: ClosedOlympuspr, together: bool, kernel: bool) -> Mapping[Hashable, Meeting]:
    """Axis -> the first equation of a program at which devices wait for others along it."""
    firsts: dict[Hashable, Meeting] = {}
    for eqn in closed.eqns:
        prim, params = eqn.primitive, eqn.params
        if isinstance(prim, Collective):
            names: Set[Hashable] = prim.meets(params)
            if names and together and prim.pairs:
                names = {EVERYONE}
            for name in names:
                firsts.setdefault(name, Meeting(eqn, kernel))
        for _, body, _ in prim.applied(params, eqn.invars):
            firsts = {**meetings(body, together, kernel or prim.exchanges), **firsts}
    return firsts
