"""Recipes: the operation of an equation, emitted again for similar equations without their rule.

A `single` primitive emits at most one operation, which its params and its operands' types
determine. Most programs have few kinds of equations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..base.typing import IrValue
from ..core.primitive import Primitive
from .attributes import keep_recipe
from .context import ModuleContext
from .emitter import Emitter


class Recipe(NamedTuple):
    """One operation on an equation's operands; if `name` is None, the result is the operand."""

    name: str | None
    types: Sequence[Any]
    attributes: dict[str, Any] | None
    wide: Sequence[tuple[int, Any]]     # (operand of rank 0, the aval to broadcast it to)
    order: Sequence[int] | None         # the order of the operands, if it differs


def has_recipes(module: ModuleContext, prim: Primitive) -> bool:
    """Whether the primitive's own rule, and no other, lowers its equations in a module."""
    # A rule that replaced the class's is an attribute of the instance.
    return prim.single and not (module.platform is None or module.rules or prim.platform_rules
                                or "lower" in vars(prim))


def note_recipe(b: Emitter, key: object, operands: Sequence[IrValue], out: IrValue) -> None:
    """Keep the operation that a rule has just emitted for an equation, or note that there is none.

    If two operands are one value, their order is ambiguous; wait for an equation with distinct
    ones.
    """
    if len({*map(id, operands)}) == len(operands):
        keep_recipe(key, _recipe(b, operands, out))


def _recipe(b: Emitter, operands: Sequence[IrValue], out: IrValue) -> Recipe | bool:
    """The last operation's recipe, if it computes `out` and takes each operand once, or False."""
    shape, aval = b.avals_out[0].shape, b.avals_out[0]
    repeated = {i: known[0] for i, x in enumerate(operands)
                if (known := b.block.repeated.get((id(x), shape))) is not None}
    if len(operands) == 1 and (out is operands[0] or out is repeated.get(0)):
        wide = () if out is operands[0] else ((0, aval),)
        return Recipe(None, (), None, wide, None)
    if b.emitted is None or b.emitted[0] is not out:
        return False
    _, name, taken, attributes, kind = b.emitted
    # By identity: a rule that converts an operand, or makes a constant, leaves no recipe.
    places = {id(x): i for i, x in enumerate(operands)}
    places.update({id(x): i for i, x in repeated.items()})
    order = [places.get(id(x), -1) for x in taken]
    if sorted(order) != [*range(len(operands))]:
        return False
    wide = tuple([(i, b.avals_in[i].update(shape=shape)) for i, x in zip(order, taken, strict=True)
                  if x is not operands[i]])
    return Recipe(name, [kind], attributes, wide,
                  None if order == [*range(len(order))] else order)
