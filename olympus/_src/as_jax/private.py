"""Names that adapters have and no other module of ours: what stands for JAX's own, mostly private.

`adapters.py` says which modules of JAX have them, and which libraries ask.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from types import MappingProxyType, TracebackType
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from ..autodiff.check_grads import Tolerance, _close as close, _tolerance as tolerance
from ..base import source
from ..base.typing import Array, ArrayLike, DTypeLike, PyTree, T
from ..base.util import ByKey
from ..core.ir import ClosedOlympuspr, SourceInfo
from ..core.trace import ThreadState, Tracer, ctx, typeof
from ..devices.devices import _clients
from ..extend import state
from ..jit.signature import indices, named_twice
from ..numpy import grids, promote
from ..random import keys
from ..random.continuous import bits
from ..types import dtypes
from ..types.avals import ShapedArray, has_tangent
from ..types.refs import RefAval
from ..types.symbolic import Dimension
from ..types.tree import PyTreeDef, tree_leaves, tree_structure
from ..types.tree_paths import flatten_one_level
from ..types.tree_registry import is_tree_node, registry

DType = np.dtype
global_result_handlers = MappingProxyType({})       # results are made elsewhere
_backends = MappingProxyType(_clients)              # those that have started


def trace_state_clean() -> bool:
    """Whether operations run at once: no function is being traced or transformed."""
    return ctx.trace is ThreadState.trace


class _OfChangingType(Protocol):
    def cur_qdd(self) -> object: ...


def cur_qdd(x: _OfChangingType) -> object:
    """The type of the content of a value that may change it, by the value's own answer; no type of
    ours has values of this kind.
    """
    return x.cur_qdd()


def supports_inf(dtype: Any) -> bool:
    """Whether a floating dtype has an infinity."""
    return bool(np.isinf(np.asarray(np.inf, dtypes.as_dtype(dtype))))


def is_concrete(x: object) -> bool:
    """Whether the numbers of a value are known."""
    return not isinstance(x, Tracer) or x._known_value() is not None


def is_constant_dim(size: object) -> bool:
    """Whether a size is a number."""
    return not isinstance(size, Dimension)


class HashableFunction(ByKey):
    """A function `f` that equals others of the same code with an equal, hashable `closure`."""

    __slots__ = ("f", "closure")

    def __init__(self, f: Callable[..., object], closure: Hashable) -> None:
        self.f, self.closure = f, closure

    def _key(self) -> tuple[object, ...]:
        return self.f.__code__, self.closure

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self.f(*args, **kwargs)


class TypedNdArray:
    """A NumPy array with a weak type, as JAX's programs have them; there are none here."""


class Typed:
    """A Python number with a dtype, as JAX's programs have them; there are none here."""

    dtype: DType

    def __new__(cls, value: complex, dtype: DType) -> Self:
        make: Any = super().__new__
        number = make(cls, value)
        number.dtype = dtype
        return number


class TypedInt(Typed, int):
    """Of an integer."""


class TypedFloat(Typed, float):
    """Of a float."""


class TypedComplex(Typed, complex):
    """Of a complex number."""


def promote_dtypes(*args: object) -> list[Array]:
    """The operands at the dtype that they have together."""
    return [promote.to_array(x) for x in promote.promote_dtypes("promote_dtypes", *args)]


def promote_dtypes_inexact(*args: object) -> list[Array]:
    """The operands at a dtype of floats or complex numbers that they have together."""
    return [promote.to_array(x) for x in promote.inexact_dtypes("promote_dtypes_inexact", *args)]


def promote_dtypes_complex(*args: object) -> list[Any]:
    """The operands at a dtype of complex numbers that they have together."""
    return [promote.convert(x, dtypes.to_complex_dtype(x.dtype))
            for x in promote_dtypes_inexact(*args)]


class CClass(type(grids.c_)):
    """The class of `c_`."""

    def __init__(self) -> None:
        vars(self).update(vars(grids.c_))


class RClass(type(grids.r_)):
    """The class of `r_`."""

    def __init__(self) -> None:
        vars(self).update(vars(grids.r_))


def threefry_seed(seed: ArrayLike) -> Array:
    """The two words of a seed's key."""
    return keys.key_data(keys.key(seed, impl="threefry2x32"))


def threefry_split(key: ArrayLike, shape: Sequence[int]) -> Array:
    """The words of keys made of a key's words."""
    return keys.key_data(keys.split(keys.wrap_key_data(key, impl="threefry2x32"), shape))


def threefry_random_bits(key: ArrayLike, bit_width: int, shape: Sequence[int]) -> Array:
    """Random unsigned integers of so many bits, drawn by a key's words."""
    return bits(keys.wrap_key_data(key, impl="threefry2x32"), shape, f"uint{bit_width}")


def check_close(xs: PyTree, ys: PyTree, atol: Tolerance = None, rtol: Tolerance = None,
                err_msg: str = "") -> None:
    """AssertionError unless the leaves of two pytrees agree, by default to eight roundings."""
    usual = 8 * max([float(dtypes.finfo(x.dtype).eps) for x in map(typeof, tree_leaves((xs, ys)))
                     if has_tangent(x)], default=0.0)
    close("check_close", xs, ys, usual if atol is None else tolerance(atol, xs, ys),
          usual if rtol is None else tolerance(rtol, xs, ys), err_msg, True)


def api_boundary(fun: Callable[..., Any] | None = None, **options: object) -> object:
    """Decorator of public functions: errors leave them without inner frames."""
    return source.api_boundary if fun is None else source.api_boundary(fun)


def include_frame(frame: Any) -> bool:
    """Whether tracebacks show a frame."""
    return not source.is_hidden(frame.f_code.co_filename)


def filter_traceback(tb: TracebackType | None) -> TracebackType | None:
    """The entries of a traceback that users are shown, as a new one."""
    if tb is None:
        return None
    rest = filter_traceback(tb.tb_next)
    if source.is_hidden(tb.tb_frame.f_code.co_filename):
        return rest
    return TracebackType(rest, tb.tb_frame, tb.tb_lasti, tb.tb_lineno)


class Frame(NamedTuple):
    """A place in a program: lines count from 1, columns from 0."""

    file_name: str
    function_name: str
    start_line: int
    start_column: int
    end_line: int
    end_column: int


def user_frames(traceback: SourceInfo | source.Source | None) -> list[Frame]:
    """The user's line that an equation comes from, if it is known: `eqn.source_info`, or its
    traceback."""
    known = traceback.traceback if isinstance(traceback, SourceInfo) else traceback
    return [] if known is None or known is source.CALLERS else [Frame(*source.location(known))]


def user_frame(traceback: SourceInfo | source.Source | None) -> Frame | None:
    """The user's line that an equation comes from; None if it is not known."""
    return next(iter(user_frames(traceback)), None)


def discharge_state(closed_jaxpr: ClosedOlympuspr, *,
                    should_discharge: bool | Sequence[bool] = True, lower: bool = True
                    ) -> ClosedOlympuspr:
    """`olympus.extend.state.discharge_state` of a closed program."""
    return ClosedOlympuspr(*state.discharge_state(
        closed_jaxpr.olympuspr, closed_jaxpr.consts, should_discharge=should_discharge))


def shaped_array_ref(shape: Sequence[int], dtype: DTypeLike, weak_type: bool = False) -> RefAval:
    """The type of references to arrays of a shape and dtype; none is weak."""
    return RefAval(ShapedArray(shape, dtype))


def safe_zip(*rows: Iterable[object]) -> list[tuple[object, ...]]:
    """The rows of several sequences of one length."""
    return [*zip(*rows, strict=True)]


def tuple_insert(items: tuple[T, ...], place: int, item: T) -> tuple[T, ...]:
    """The tuple with an item more at a place."""
    return (*items[:place], item, *items[place:])


def infer_argnums_and_argnames(sig: inspect.Signature, argnums: int | Sequence[int] | None,
                               argnames: str | Sequence[str] | None
                               ) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Arguments by position and by keyword; one that is None is read from the other."""
    return named_twice(
        [*sig.parameters.values()],
        None if argnums is None else indices(argnums, "infer_argnums_and_argnames", "argnums"),
        (argnames,) if isinstance(argnames, str) else argnames)


class Node(NamedTuple):
    """How values of a class are taken apart, and made of (aux, children)."""

    to_iter: Callable[[Any], tuple[Any, Any]]
    from_iter: Callable[[Any, Sequence[Any]], Any]


def node_of(kind: type, aux: object, children: Sequence[object]) -> object:
    """The value of a class that `flatten_one_level` takes apart so."""
    leaves = [tree_structure(0)] * len(children)
    return PyTreeDef.from_node_data_and_children(registry, (kind, aux), leaves).unflatten(children)


class Registry:
    """The classes that are nodes of pytrees, each with how it is one."""

    def __contains__(self, kind: object) -> bool:
        return isinstance(kind, type) and is_tree_node(kind)

    def __getitem__(self, kind: type) -> Node:
        if kind not in self:
            raise KeyError(kind)
        return Node(flatten_one_level, partial(node_of, kind))


_registry = Registry()


def cdiv(a: int, b: int) -> int:
    """The quotient, rounded up."""
    return -(-a // b)


def next_power_of_2(x: int) -> int:
    """The least power of two that is not less than a positive `x`."""
    return 1 << (x - 1).bit_length()
