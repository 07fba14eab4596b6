"""Demands on how values lie in memory: `with_layout_constraint`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import overload

from ..base.typing import Array, ArrayLike, IrValue, P, PyTree, R, T
from ..base.util import wraps
from ..core import reuse, tags
from ..core.primitive import Axis, Builder, Cotangent, Linear, Primitive, linear_jvp
from ..core.trace import typeof
from ..types.avals import ShapedArray
from ..types.layout import Layout
from ..types.tree import flatten_axes, tree_flatten


class LayoutConstraint(Primitive):
    """params: layout. Values stay; tangents and cotangents lie alike."""

    spread = staticmethod(tags.same)
    cells = staticmethod(reuse.same)
    makes_nan = False

    def infer(self, x: ShapedArray, *, layout: Layout) -> ShapedArray:
        return x

    def lower(self, b: Builder, x: IrValue, *, layout: Layout) -> IrValue:
        order = layout.major_to_minor[::-1]
        out = b.custom_call("LayoutConstraint", [x], [x.type], {"api_version": b.attr("1 : i32")},
                            layouts=([sorted(order)], [order]))[0]
        b.module.laid_out[out] = layout.text()
        return out

    jvp = linear_jvp

    def transpose(self, ct: Array, x: Linear, *, layout: Layout) -> list[Cotangent]:
        return [self.bind(ct, layout=layout) if type(x) is Linear else None]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], *, layout: Layout
             ) -> tuple[Array, int | None]:
        (dim,) = dims
        assert dim is not None      # or there would be nothing to map
        return self.bind(*args, layout=layout.under_vmap(dim)), dim


layout_constraint_p = LayoutConstraint("layout_constraint")


def lay_out(what: str, x: ArrayLike, layout: Layout) -> Array:
    """`x`, lying in memory as demanded; ValueError for another number of axes."""
    try:
        layout.check_compatible_aval(typeof(x).shape)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None
    return layout_constraint_p.bind(x, layout=layout)


def with_layout_constraint(x: T, layouts: PyTree) -> T:
    """`x`, whose elements lie in memory in a given order.

    Args:
      x: a pytree of arrays.
      layouts: a `Layout`, or a pytree of those that is a prefix of the structure of `x`.
    Returns: A pytree like `x`.

    Within a program, the compiler copies where what computes the value, or reads it, needs another
    order. Under `vmap`, the mapped axis is the slowest. ValueError for anything but a `Layout`, and
    for one with another number of axes.

    >>> from olympus.experimental.layout import Layout, with_layout_constraint
    >>> by_columns = olympus.jit(lambda x: with_layout_constraint(x * 2, Layout((1, 0))))
    >>> by_columns(olympus.numpy.ones((2, 3))).format.layout.major_to_minor
    (1, 0)
    """
    leaves, tree = tree_flatten(x)
    what = "with_layout_constraint"
    wanted = flatten_axes(f"{what} layouts", tree, layouts)
    for layout in wanted:
        if not isinstance(layout, Layout):
            raise ValueError(f"{what}: layouts has {layout!r} of type {type(layout).__name__}; a "
                             "Layout is required; shardings are for with_sharding_constraint.")
    return tree.unflatten([lay_out(what, leaf, layout)
                           for leaf, layout in zip(leaves, wanted, strict=True)])


@overload
def explicit_layout(f: Callable[P, R], /, *, in_layouts: PyTree = None) -> Callable[P, R]: ...


@overload
def explicit_layout(f: None = None, /, *, in_layouts: PyTree = None
                    ) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def explicit_layout(f: Callable[..., PyTree] | None = None, /, *, in_layouts: PyTree = None
                    ) -> Callable[..., PyTree]:
    """The function, whose arguments lie in memory as demanded.

    Args:
      f: a function of pytrees of arrays; without it, a decorator is returned.
      in_layouts: for each positional argument a `Layout`, None for no demand, or a prefix of its
        structure; one `Layout` for the one argument, or for all; None demands nothing.
    Returns: A function of the same arguments. ValueError for a layout of another number of axes.

    >>> from olympus.experimental.layout import Layout, explicit_layout
    >>> f = explicit_layout(lambda x: x, in_layouts=Layout((1, 0)))
    >>> olympus.jit(f)(olympus.numpy.ones((2, 3))).format.layout.major_to_minor
    (1, 0)
    """
    if f is None:
        return functools.partial(explicit_layout, in_layouts=in_layouts)
    if not callable(f):
        raise TypeError(f"explicit_layout: {f!r:.60} of type {type(f).__name__} given; a function "
                        "is required.")

    @wraps(f)
    def laid_out(*args: object, **kwargs: object) -> PyTree:
        leaves, tree = tree_flatten(args)
        wanted = flatten_axes("explicit_layout in_layouts", tree, in_layouts)
        return f(*tree.unflatten([x if layout is None else with_layout_constraint(x, layout)
                                  for x, layout in zip(leaves, wanted, strict=True)]), **kwargs)

    return laid_out
