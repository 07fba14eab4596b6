"""References that a kernel makes: for a while, without a content, or as one of several.

    run_scoped(f, *types)              f on references that are made for it
    select_ref(i, *refs)               the i-th of several references, as a copy of its content
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence

from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, DTypeLike, PyTree, R, Reference
from ..control.bodies import check_callable
from ..lax.refs import new_ref_p
from ..lax.sharding import constrain
from ..numpy.creation import asarray
from ..numpy.joining import stack
from ..numpy.manipulation import broadcast_to as numpy_broadcast_to
from ..numpy.refs import get
from ..types.sharding import ShardingLike
from ..types.tree import tree_map
from .blocks import blank
from .semaphores import check_last_content, first_content
from .specs import SemaphoreType, array_aval


def made(type: PyTree) -> Reference:
    """A reference for a type of scratch, with its first content."""
    return new_ref_p.bind(first_content(type), memory_space=None, kind=None, pin=False)


@api_boundary
def run_scoped(f: Callable[..., R], *types: PyTree, collective_axes: Hashable = (),
               **kw_types: PyTree) -> R:
    """Run a function on references that are made for it.

    Args:
      f: a function of references, in the structure of the types.
      *types, **kw_types: pytrees of `MemoryRef`s.
      collective_axes: axes of a mesh whose cores share the references; here there is one core.
    Returns: The result of `f`.

    >>> def kernel(x, o):
    ...     def sum_of_squares(acc):
    ...         acc[...] = x[...] * x[...]
    ...         return acc[...].sum()
    ...     o[...] = pl.run_scoped(sum_of_squares, pl.ANY((3,), onp.float32))
    >>> out = olympus.ShapeDtypeStruct((), onp.float32)
    >>> print(pl.pallas_call(kernel, out, interpret=True)(onp.array([1., 2., 3.])))
    14.0
    """
    check_callable("run_scoped", f=f)
    refs, named = tree_map(made, types), tree_map(made, kw_types)
    result = f(*refs, **named)
    tree_map(lambda x, ref: check_last_content("run_scoped", x, get(ref)), (types, kw_types),
             (refs, named))
    return result


@api_boundary
def with_scoped(*types: PyTree, collective_axes: Hashable = (), **kw_types: PyTree
                ) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """A decorator: the function gets references that are made for each call, behind its arguments.

    Args: *types, collective_axes, **kw_types: as for `run_scoped`.

    >>> from olympus.experimental import pallas as pl
    >>> @pl.with_scoped(pl.ANY((2,), onp.int32))
    ... def fill(value, ref):
    ...     ref[...] = value
    ...     return ref[...]
    >>> print(fill(7))
    [7 7]
    """
    def decorate(f: Callable[..., R]) -> Callable[..., R]:
        @functools.wraps(f)
        def run(*args: PyTree) -> R:
            return run_scoped(functools.partial(f, *args), *types,
                              collective_axes=collective_axes, **kw_types)

        return run

    return decorate


@api_boundary
def get_global(what: PyTree) -> Reference:
    """A reference that all calls of a kernel share; in interpret mode it is made anew.

    Args: what: a `MemoryRef`.

    >>> from olympus.experimental import pallas as pl
    >>> pl.get_global(pl.ANY((2,), onp.int32)).shape
    (2,)
    """
    return made(what)


@api_boundary
def get_barrier_semaphore() -> Reference:
    """The semaphore at which the devices of a kernel meet; in interpret mode it is made anew.

    Signal the neighbours, then wait for them: `semaphore_signal(sem, device_id=…)`,
    `semaphore_wait(sem, count)`. Interpreted devices meet wherever they communicate.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> print(pltpu.semaphore_read(pltpu.get_barrier_semaphore()))
    0
    """
    return made(SemaphoreType.BARRIER(()))


@api_boundary
def empty(shape: Sequence[int], dtype: DTypeLike, *, out_sharding: ShardingLike = None) -> Array:
    """An array whose elements are not given: NaN, or the least integer.

    Args:
      shape: ints.
      dtype: a dtype.
      out_sharding: where the result is.

    >>> from olympus.experimental import pallas as pl
    >>> print(pl.empty((2,), onp.float32))
    [nan nan]
    """
    aval = array_aval(shape, dtype)
    return constrain("empty", blank(aval.shape, aval.dtype), out_sharding)


@api_boundary
def empty_like(x: PyTree) -> PyTree:
    """Arrays like a pytree's, whose elements are not given.

    Args: x: a pytree of arrays, `ShapeDtypeStruct`s or `MemoryRef`s.

    >>> from olympus.experimental import pallas as pl
    >>> print(pl.empty_like(onp.zeros(2)))
    [nan nan]
    """
    return tree_map(lambda leaf: empty(leaf.shape, leaf.dtype), x)


@api_boundary
def empty_ref_like(x: PyTree) -> Reference:
    """A reference like a type, whose content is not given.

    Args: x: a `MemoryRef` or `ShapeDtypeStruct`.

    >>> print(pl.empty_ref_like(olympus.ShapeDtypeStruct((2,), onp.float32))[...])
    [nan nan]
    """
    return made(x)


@api_boundary
def broadcast_to(a: ArrayLike, shape: Sequence[int]) -> Array:
    """An array broadcast to a shape.

    Args:
      a: array or number.
      shape: ints.

    >>> from olympus.experimental import pallas as pl
    >>> print(pl.broadcast_to(1, (2,)))
    [1 1]
    """
    return numpy_broadcast_to(asarray(a), tuple(shape))


@api_boundary
def select_ref(idx: Array, *refs: Reference) -> Reference:
    """One of several references of one type, chosen by a scalar: a source of copies.

    Args:
      idx: an integer scalar.
      *refs: at least two references.
    Returns: A reference with a copy of the chosen one's content; writes to it reach none of them.

    >>> a, b = olympus.new_ref(onp.zeros(2)), olympus.new_ref(onp.ones(2))
    >>> print(pl.select_ref(onp.int32(1), a, b)[...])
    [1. 1.]
    """
    if len(refs) < 2:
        raise ValueError(f"select_ref: {len(refs)} references given. At least two refs are required"
                         " for pl.select_ref.")
    contents = stack([get(ref) for ref in refs])
    return new_ref_p.bind(contents[idx], memory_space=None, kind=None, pin=False)
