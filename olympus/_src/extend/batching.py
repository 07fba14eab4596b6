"""Programs and wrapped functions mapped by flags, as interpreters of others call it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..base.typing import Array, MappedAxis, PyTree
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr
from ..core.linear_util import Store, transformation_with_aux2
from ..core.primitive import Axis
from ..core.staging import stage
from ..interpreters.batching import batch_flat, to_axis
from ..mapping import vmappable


class ZeroIfMapped:
    """The class of `zero_if_mapped`: axis 0 of a result that is mapped, None of another."""

    def __repr__(self) -> str:
        return "zero_if_mapped"


zero_if_mapped = ZeroIfMapped()


def batch_olympuspr_axes(closed_olympuspr: ClosedOlympuspr, axis_data: Axis,
                         in_axes: Sequence[MappedAxis],
                         out_axes_dest: Sequence[MappedAxis | ZeroIfMapped]
                         ) -> tuple[ClosedOlympuspr, list[bool]]:
    """A program on mapped inputs.

    Args:
      closed_olympuspr: a program.
      axis_data: the mapped axis, as a rule of `batching.fancy_primitive_batchers` is given it.
      in_axes: per input, its mapped axis, or None.
      out_axes_dest: per output, where its mapped axis is to be, None for one that may not be
        mapped, or `zero_if_mapped`.
    Returns: The program, and per output, whether it is mapped.

    ValueError for an output that is mapped and may not be.

    >>> from olympus.extend.core import Primitive
    >>> from olympus.interpreters import batching
    >>> program = olympus.make_olympuspr(lambda x, y: (x + y, y))(1.0, 1.0)
    >>> p, found = Primitive("pair"), []
    >>> _ = p.def_impl(lambda x: x)
    >>> def rule(axis, args, dims):
    ...     found.append(batching.batch_olympuspr_axes(
    ...         program, axis, [0, None], [batching.zero_if_mapped] * 2))
    ...     return args[0], dims[0]
    >>> batching.fancy_primitive_batchers[p] = rule
    >>> _ = olympus.vmap(p.bind)(onp.ones(3))
    >>> print(*found[0])
    { lambda ; a:f32[3] b:f32[]. let c:f32[3] = add a b in (c, b) } [True, False]
    """
    avals = [a if d is None else a.with_axis(d, axis_data.size, axis_data.mesh_axis)
             for a, d in zip(closed_olympuspr.in_avals, in_axes, strict=True)]
    mapped: list[bool] = []

    def program(*xs: Array) -> list[Array]:
        outs, dims = batch_flat(lambda *ys: eval_closed(closed_olympuspr, *ys), axis_data, xs,
                                in_axes)
        wanted = [(None if d is None else 0) if isinstance(to, ZeroIfMapped) else to
                  for to, d in zip(out_axes_dest, dims, strict=True)]
        for i, (d, to) in enumerate(zip(dims, wanted, strict=True)):
            if to is None and d is not None:
                raise ValueError(f"batch_olympuspr_axes: out_axes_dest[{i}] is None, and output "
                                 f"{i} is mapped along axis {d}; give an axis for it.")
        mapped[:] = [to is not None for to in wanted]
        return [x if to is None else to_axis(x, d, to, axis_data.size)
                for x, d, to in zip(outs, dims, wanted, strict=True)]

    return stage(program, avals, closed_olympuspr.debug_info), mapped


@transformation_with_aux2
def batch_subtrace(f: Callable[..., Sequence[Array]], store: Store, tag: object, axis_data: Axis,
                   in_dims: Sequence[MappedAxis], *in_vals: Array) -> list[Array]:
    """A wrapped function of flat values, mapped: `batch_subtrace(fun, tag, axis_data, in_dims)`.

    Args:
      fun: a wrapped function that returns a flat list.
      tag: accepted.
      axis_data: the mapped axis, as a rule of `batching.fancy_primitive_batchers` is given it.
      in_dims: per argument, its mapped axis, or None.
    Returns: The wrapped function of mapped values, and a function that gives the mapped axes of its
      results once it has run.

    >>> from olympus.extend.core import Primitive
    >>> from olympus.extend.linear_util import wrap_init
    >>> from olympus.interpreters import batching
    >>> p = Primitive("both")
    >>> p.multiple_results = True
    >>> _ = p.def_impl(lambda x: [x + 1, x])
    >>> def rule(axis, args, dims):
    ...     fun, out_dims = batching.batch_subtrace(wrap_init(p.impl), None, axis, dims)
    ...     return fun.call_wrapped(*args), out_dims()
    >>> batching.fancy_primitive_batchers[p] = rule
    >>> print(*olympus.vmap(p.bind)(onp.arange(3)))
    [1 2 3] [0 1 2]
    """
    outs, dims = batch_flat(f, axis_data, in_vals, in_dims)
    store.store(dims)
    return outs


def register_vmappable(data_type: type, spec_type: type, axis_size_type: type,
                       to_elt: Callable[..., PyTree], from_elt: Callable[..., PyTree],
                       make_iota: Callable[..., PyTree] | None) -> None:
    """Let `vmap` map values of a class by functions of its own.

    Args:
      data_type: a class of values.
      spec_type: the class of their entries of `in_axes` and `out_axes`.
      axis_size_type: int.
      to_elt: `to_elt(cont, get_idx, value, spec)` is an element of a value; `cont(array, axis)` is
        one of an array, and `get_idx(size)` is its index.
      from_elt: `from_elt(cont, size, element, spec)` is the value; `cont(size, element, axis)` is
        the array whose elements are this one's.
      make_iota: accepted.

    NotImplementedError for another axis_size_type.

    >>> from olympus.interpreters import batching
    >>> class Named:
    ...     def __init__(self, name, data):
    ...         self.name, self.data = name, data
    >>> batching.register_vmappable(
    ...     Named, int, int, lambda cont, _, x, axis: Named(x.name, cont(x.data, axis)),
    ...     lambda cont, size, x, axis: Named(x.name, cont(size, x.data, axis)), None)
    >>> out = olympus.vmap(lambda x: Named(x.name, x.data.sum()))(Named("a", onp.ones((2, 3))))
    >>> print(out.name, out.data)
    a [3. 3.]
    >>> batching.unregister_vmappable(Named)
    """
    if axis_size_type is not int:
        raise NotImplementedError(
            f"register_vmappable: axis_size_type {axis_size_type.__name__} of class "
            f"{data_type.__name__} given; an axis has an int of elements; give int.")
    vmappable.register(data_type, vmappable.Vmappable(spec_type, to_elt, from_elt))


def unregister_vmappable(data_type: type) -> None:
    """Let `vmap` map values of a class as pytrees again; KeyError for a class without rules.

    Args: data_type: a class given to `register_vmappable`.

    >>> from olympus.interpreters import batching
    >>> batching.unregister_vmappable(dict)
    Traceback (most recent call last):
        ...
    KeyError: <class 'dict'>
    """
    vmappable.unregister(data_type)
