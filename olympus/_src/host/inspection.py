"""Which sharding the compiler chose for a value of a program."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from ..base.typing import Array, IrValue, Params, PyTree
from ..core import effects
from ..core.primitive import Axis, Builder
from ..devices.array import stored
from ..types.avals import ShapedArray
from ..types.sharding import Sharding
from ..types.tree import tree_leaves
from .callbacks import DebugCallback


class InspectSharding(DebugCallback):
    """params: callback. No results."""

    def effects(self, avals: Sequence[ShapedArray], params: Params) -> frozenset[effects.Effect]:
        return frozenset((effects.debug_effect,))       # or it were dead code

    def impl(self, x: object, *, callback: Callable[[Sharding], None]) -> list[Array]:
        callback(stored(x).sharding)    # of a key's words, as in a program
        return []

    def lower(self, b: Builder, x: IrValue, *, callback: Callable[[Sharding], None]
              ) -> list[IrValue]:
        b.inspect(x, callback)
        return []

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], **params: Hashable
             ) -> tuple[list[Array], list[int | None]]:
        return self.bind(*args, **params), []


inspect_sharding_p = InspectSharding("inspect_sharding")


def inspect_array_sharding(value: PyTree, *, callback: Callable[[Sharding], None]) -> None:
    """Call a function with the sharding of each array of a pytree; within `jit`, when XLA chose it.

    Args:
      value: a pytree of arrays.
      callback: takes a sharding. Within a compiled program it is called while the program is
        compiled, by `lower(…).compile()`, too, and not again by further calls; its exceptions end
        the compilation.

    Under `vmap` it is the sharding of the array with the mapped axis.

    >>> from olympus.sharding import NamedSharding, PartitionSpec as P
    >>> @olympus.jit
    ... def f(x):
    ...     y = x.T * 2
    ...     olympus.debug.inspect_array_sharding(y, callback=lambda s: print(type(s).__name__))
    ...     return y.sum()
    >>> sharding = NamedSharding(olympus.make_mesh((1,), ("x",)), P("x"))
    >>> compiled = f.lower(olympus.device_put(onp.ones((2, 2)), sharding)).compile()
    NamedSharding
    """
    if not callable(callback):
        raise TypeError(f"inspect_array_sharding: callback {callback!r:.60} given; a function of a "
                        "sharding is required.")
    for x in tree_leaves(value):
        inspect_sharding_p.bind(x, callback=callback)
