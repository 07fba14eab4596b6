"""Ways to look into a kernel: printed values, checked conditions, estimated costs, its module."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from ..base.config import pallas_enable_debug_checks, pallas_poison_buffers
from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, PyTree
from ..base.util import clipped
from ..core.trace import typeof
from ..host.debug import print as print_values
from ..jit.checked import check
from ..jit.cost_table import cost_table
from ..jit.jit import jit
from ..jit.tracing import make_olympuspr
from ..lax.precision import PrecisionLike
from ..numpy.products import dot as numpy_dot
from ..types import dtypes
from ..types.shape import prod
from ..types.tree import tree_leaves
from .specs import CostEstimate

enable_debug_checks = pallas_enable_debug_checks
enable_poison_buffers = pallas_poison_buffers


@api_boundary
def debug_print(fmt: str, *args: ArrayLike) -> None:
    """Print values in a kernel.

    Args:
      fmt: a format string with a place for each value; without places the values follow it.
      *args: arrays.

    >>> def kernel(o):
    ...     pl.debug_print("step {}", pl.program_id(0))
    >>> out = olympus.ShapeDtypeStruct((1,), onp.float32)
    >>> _ = pl.pallas_call(kernel, out, grid=2, interpret=True)().block_until_ready()
    step 0
    step 1
    """
    if args and "{" not in fmt:
        fmt += " {}" * len(args)
    print_values(fmt, *args)


def debug_checks_enabled() -> bool:
    """Whether `debug_check` checks.

    Returns: The value of `olympus_pallas_enable_debug_checks`.

    >>> from olympus.experimental import pallas as pl
    >>> pl.debug_checks_enabled()
    False
    """
    return pallas_enable_debug_checks.value


@api_boundary
def debug_check(condition: ArrayLike, message: str) -> None:
    """A check as `checkify.check`, if `enable_debug_checks` is on.

    Args:
      condition: a boolean scalar that must hold.
      message: the error's text where it does not.

    >>> from olympus.experimental import checkify, pallas as pl
    >>> def kernel(x, o):
    ...     pl.debug_check(x[...] > 0, "not positive")
    ...     o[...] = x[...]
    >>> out = olympus.ShapeDtypeStruct((), onp.float32)
    >>> run = pl.pallas_call(kernel, out, interpret=True)
    >>> with pl.enable_debug_checks(True):
    ...     error, _ = checkify.checkify(run)(onp.float32(-1))
    >>> print(error.get().splitlines()[0])
    not positive (`check` failed)
    """
    if pallas_enable_debug_checks.value:
        check(condition, message)


@api_boundary
def estimate_cost(fun: Callable[..., PyTree], *args: PyTree, **kwargs: PyTree) -> CostEstimate:
    """The cost of a function's call: the sum over operations, as XLA estimates them before fusion.

    Args:
      fun: a function of pytrees of arrays.
      *args, **kwargs: its arguments, or `ShapeDtypeStruct`s; keyword arguments without a dtype,
        options, are given as they are.
    Returns: A `CostEstimate`; its bytes count arguments and results.

    >>> x = olympus.ShapeDtypeStruct((8, 8), onp.float32)
    >>> pl.estimate_cost(onp.dot, x, x)
    CostEstimate(flops=1024, transcendentals=0, bytes_accessed=768, remote_bytes_transferred=0)
    """
    options = {name: x for name, x in kwargs.items() if not _has_arrays(x)}
    arrays = {name: x for name, x in kwargs.items() if name not in options}
    closed = make_olympuspr(partial(fun, **options))(*args, **arrays)
    lines = cost_table(closed, "cpu")
    size = sum(prod(a.shape) * dtypes.itemsize_bits(a.dtype) // 8
               for a in (*closed.in_avals, *closed.out_avals))
    return CostEstimate(round(sum(x.flops for x in lines)),
                        round(sum(x.transcendentals for x in lines)), size)


def _has_arrays(x: PyTree) -> bool:
    return any(hasattr(leaf, "dtype") for leaf in tree_leaves(x))


@api_boundary
def lower_as_mlir(f: Callable[..., PyTree], *args: PyTree, dynamic_shapes: bool = False,
                  device: object = None, static_argnames: str | Sequence[str] = (),
                  platforms: PyTree = None, **kwargs: PyTree) -> str:
    """The module of a function, as text.

    Args:
      f: a function of pytrees of arrays.
      *args, **kwargs: its arguments.
      dynamic_shapes, device: for backends that compile kernels; no effect here.
      static_argnames: arguments that are values of the program.
      platforms: the first is the one that the module is lowered for.

    >>> from olympus.experimental import pallas as pl
    >>> "stablehlo.sine" in pl.lower_as_mlir(onp.sin, 1.0)
    True
    """
    traced = jit(f, static_argnames=static_argnames).trace(*args, **kwargs)
    return traced.lower(lowering_platforms=platforms).as_text()


@contextlib.contextmanager
def pallas_export_experimental(dynamic_shapes: bool) -> Iterator[None]:
    """A context in which kernels may be exported with symbolic sizes; nothing here depends on it.

    Args: dynamic_shapes: whether.

    >>> from olympus.experimental import pallas as pl
    >>> with pl.pallas_export_experimental(True):
    ...     pass
    """
    yield


@api_boundary
def multiple_of(x: ArrayLike, values: int | Sequence[int]) -> ArrayLike:
    """A promise to compilers of kernels: `x` is a multiple of each of `values`.

    Args:
      x: integer array.
      values: ints.

    >>> from olympus.experimental import pallas as pl
    >>> pl.multiple_of(16, 8)
    16
    """
    if not dtypes.is_integer(typeof(x).dtype):
        raise TypeError(f"multiple_of: {typeof(x)} given; integers are required.")
    for n in [values] if isinstance(values, int) else values:
        if isinstance(x, int) and x % n:
            raise ValueError(f"multiple_of: {x} given, which is no multiple of {n}.")
    return x


@api_boundary
def reciprocal(x: Array, *, approx: bool = False, full_range: bool = True) -> Array:
    """1 / x, elementwise.

    Args:
      x: array of floats.
      approx, full_range: whether a device may be less exact; nothing here is.
    Returns: An array like `x`.

    >>> from olympus.experimental import pallas as pl
    >>> print(pl.reciprocal(onp.array([2., 4.])))
    [0.5  0.25]
    """
    return 1 / x


@api_boundary
def dot(a: Array, b: Array, trans_a: bool = False, trans_b: bool = False,
        allow_tf32: bool | None = None, precision: PrecisionLike = None) -> Array:
    """The product of two matrices, either transposed; float32 for smaller floats.

    Args:
      a, b: arrays of two axes.
      trans_a, trans_b: whether one is transposed first.
      allow_tf32: whether a GPU may round operands; not both this and `precision`.
      precision: as for `numpy.dot`.
    Returns: An array of two axes: float32 for floats, int32 for small integers.

    >>> from olympus.experimental import pallas as pl
    >>> print(pl.dot(onp.ones((2, 3)), onp.ones((2, 3)), trans_b=True))
    [[3. 3.]
     [3. 3.]]
    """
    if a.ndim != 2 or b.ndim != 2:
        raise ValueError(f"dot: {typeof(a)} and {typeof(b)} given: `a` and `b` must be 2D arrays.")
    if allow_tf32 is not None and precision is not None:
        raise ValueError(f"dot: allow_tf32 {allow_tf32} and precision {clipped(precision)} given: "
                         "only one of allow_tf32 and precision can be specified.")
    wide = dtypes.as_dtype("float32" if dtypes.is_inexact(a.dtype) else "int32")
    return numpy_dot(a.T if trans_a else a, b.T if trans_b else b, precision=precision,
                     preferred_element_type=wide)
