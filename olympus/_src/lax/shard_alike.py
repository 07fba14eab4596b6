"""`shard_alike`: two values that XLA spreads over devices in the same way."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.typing import Array, IrValue, T
from ..core import reuse, tags
from ..core.primitive import Axis, Builder, Cotangent, Linear, Primitive, Tangent, Zero
from ..core.trace import typeof
from ..types.avals import ShapedArray
from ..types.shape import definitely_equal
from ..types.tree import explain_mismatch, tree_flatten
from .shape import broadcast_axis, move_axis


class ShardAlike(Primitive):
    """The operands, in one group for Shardy."""

    spread = staticmethod(tags.same)
    memory = staticmethod(tags.in_memory_inferred)
    cells = staticmethod(reuse.same)
    multiple_results = True

    def infer(self, x: ShapedArray, y: ShapedArray) -> list[ShapedArray]:
        return [x, y]

    def lower(self, b: Builder, x: IrValue, y: IrValue) -> list[IrValue]:
        b.group([x, y])
        return [x, y]

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Tangent]
            ) -> tuple[Sequence[Array], Sequence[Tangent]]:
        return self.bind(*primals), _grouped(tangents)

    def transpose(self, cts: Sequence[Array], *args: Linear) -> list[Cotangent]:
        return [ct if type(x) is Linear else None
                for ct, x in zip(_grouped(cts), args, strict=True)]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None]
             ) -> tuple[Sequence[Array], Sequence[int | None]]:
        dim = dims[1] if dims[0] is None else dims[0]
        assert dim is not None      # or there would be nothing to map
        return self.bind(*[
            broadcast_axis(x, axis.size, dim) if d is None else move_axis(x, d, dim)
            for x, d in zip(args, dims, strict=True)]), [dim, dim]


def _grouped(values: Sequence[Tangent]) -> list[Tangent]:
    return list(values) if Zero in map(type, values) else shard_alike_p.bind(*values)


shard_alike_p = ShardAlike("shard_alike")


def shard_alike(x: T, y: T) -> tuple[T, T]:
    """Two pytrees of arrays whose leaves XLA spreads over devices in the same way, pair by pair.

    Args: x, y: pytrees of arrays, of one structure, with leaves of the same shapes.
    Returns: (x, y). Cotangents are spread alike, too.

    ValueError where structures or shapes differ.

    >>> from olympus.experimental.shard_alike import shard_alike
    >>> x, y = olympus.jit(lambda x: shard_alike(x, x + 1))(onp.ones(2))
    >>> print(x, y)
    [1. 1.] [2. 2.]
    """
    xs, tree = tree_flatten(x)
    ys, other = tree_flatten(y)
    if tree != other:
        raise ValueError(f"shard_alike: Trees should be equal: {'; '.join(explain_mismatch(x, y))};"
                         " give two of one structure.")
    outs = []
    for a, b in zip(xs, ys, strict=True):
        if not definitely_equal(typeof(a).shape, typeof(b).shape):
            raise ValueError("shard_alike: The leaves shapes of `x` and `y` should match: "
                             f"{typeof(a)} and {typeof(b)} given; reshape one.")
        outs.append(shard_alike_p.bind(a, b))
    return (tree.unflatten([a for a, _ in outs]), tree.unflatten([b for _, b in outs]))
