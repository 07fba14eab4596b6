"""Operations that leave values as they are: they stop derivatives, copies or optimisations."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.typing import Array, ArrayLike, IrValue, T
from ..core import reuse, tags
from ..core.primitive import Axis, Builder, Cotangent, Linear, Primitive, Tangent, Zero, linear_jvp
from ..core.trace import typeof
from ..types.avals import ShapedArray, has_tangent
from ..types.tree import tree_flatten, tree_map, tree_unflatten


class Same(Primitive, abstract=True):
    """The operand as it is."""

    algebra = "move"
    additive = single = hands_on_nan = True
    makes_nan = False
    spread = staticmethod(tags.same)
    memory = staticmethod(tags.in_memory_inferred)
    cells = staticmethod(reuse.same)
    pace = 0.3

    def infer(self, x: ShapedArray) -> ShapedArray:
        return x

    def lower(self, b: Builder, x: IrValue) -> IrValue:
        return x

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None]
             ) -> tuple[Array, int | None]:
        return self.bind(*args), dims[0]


class Copy(Same):
    """The same values in a buffer of their own."""

    jvp = linear_jvp
    fusion = "fused"

    def transpose(self, ct: Array, x: Linear) -> list[Array | None]:
        return [ct]


class Held(Copy):
    """The same values, which one CPU computes once for all readers, by a hold."""

    fusion = ""

    def lower(self, b: Builder, x: IrValue) -> IrValue:
        may_hold = b.module.for_one_cpu and b.module.holds.hold != "off"
        return b.hold(x, b.avals_out[0]) if may_hold and b.block.sizes is None else x


class Clone(Same):
    """The same keys, which are others to `core.reuse`."""

    jvp = transpose = None
    cells = staticmethod(reuse.read)


class StopGradient(Same):
    """The same values with derivative zero; as a linear map it is the identity."""

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array]) -> tuple[Array, Tangent]:
        out = self.bind(*primals)
        return out, Zero(typeof(out).to_tangent_aval())

    def transpose(self, ct: Array, x: Linear) -> list[Array | None]:
        return [ct]


class OptimizationBarrier(Primitive):
    """The same values, none of them available to the compiler before all are computed."""

    spread = staticmethod(tags.same)
    memory = staticmethod(tags.in_memory_inferred)
    cells = staticmethod(reuse.same)
    multiple_results = True
    makes_nan = False
    pace = 0.3

    def infer(self, *avals: ShapedArray) -> list[ShapedArray]:
        return list(avals)

    def lower(self, b: Builder, *xs: IrValue) -> list[IrValue]:
        return b.awaited(xs, b.avals_in)

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Tangent]
            ) -> tuple[Sequence[Array], Sequence[Tangent]]:
        made = iter(self.bind(*(t for t in tangents if type(t) is not Zero)))
        return self.bind(*primals), [t if type(t) is Zero else next(made) for t in tangents]

    def transpose(self, cts: Sequence[Tangent], *args: Linear) -> Sequence[Cotangent]:
        made = iter(self.bind(*(ct for ct in cts if type(ct) is not Zero)))
        cts = [ct if type(ct) is Zero else next(made) for ct in cts]
        return [ct if type(x) is Linear else None for ct, x in zip(cts, args, strict=True)]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None]
             ) -> tuple[Sequence[Array], Sequence[int | None]]:
        return self.bind(*args), list(dims)


copy_p = Copy("copy")
held_p = Held("held")
random_clone_p = Clone("random_clone")
stop_gradient_p = StopGradient("stop_gradient")
optimization_barrier_p = OptimizationBarrier("optimization_barrier")


def copy(x: ArrayLike) -> Array:
    """A copy of an array."""
    return copy_p.bind(x)


def stop_gradient(x: T) -> T:
    """`x`, a pytree of arrays, with derivative zero.

    Args: x: a pytree of arrays.
    Returns: The same values; as constants to `grad`, `jvp` and their like.

    >>> olympus.grad(lambda x: x * olympus.lax.stop_gradient(x))(3.0)
    Array(3., dtype=float32, weak_type=True)
    """
    return tree_map(_stop, x)


def _stop(x: Array) -> Array:
    return stop_gradient_p.bind(x) if has_tangent(typeof(x)) else x


def optimization_barrier(operand: T) -> T:
    """Return `operand`; the compiler may not mix its computation with later ones.

    All leaves are computed before any is used; nothing moves across. On one CPU that holds when
    the program runs, too: what reads a leaf waits for all. Derivatives and vmap pass through
    barriers of their own.

    Args: operand: a pytree of arrays.
    Returns: The same values in the same structure.

    >>> f = lambda x: lax.optimization_barrier(x + 1) * 2
    >>> print(f(onp.array([1., 2.])))
    [4. 6.]
    """
    leaves, tree = tree_flatten(operand)
    return tree_unflatten(tree, optimization_barrier_p.bind(*leaves) if leaves else [])
