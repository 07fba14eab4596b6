"""`ufunc`: an elementwise function with its reductions, running results, outer products, updates.

The elementwise functions of `olympus.numpy` are plain functions, because calling an instance costs
a twentieth more than calling a function; the attributes of a ufunc stand on them, and `isinstance`
knows them. Instances are made by `frompyfunc`.

Where the operation is associative, reductions pair halves and running results are prefix sums, both
in log2(n) steps; otherwise a loop goes from the left to the right, as NumPy's does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from ..base.typing import Array, ArrayLike, Axis, DType, DTypeLike
from ..control.bodies import check_callable
from ..control_flow.associative_scan import associative_scan
from ..control_flow.scan import scan
from ..control_flow.while_loop import fori_loop
from ..core.ir import Literal
from ..core.trace import Tracer, literal, typeof
from ..jit.fused import fused, named
from ..jit.tracing import eval_shape
from ..lax import creation as lax_creation, shape as lax_shape, slicing
from ..types import dtypes
from ..types.avals import ShapedArray
from ..types.shape import canonical_axes, definitely_equal, prod, static_int
from .indexing import getitem, take, write
from .options import Loops, check_arity, mask_arg, with_options
from .promote import (
    BOOL, array_args, as_bool, broadcast_to, choose, convert, flag, refuse_inplace, refuse_option,
    to_array,
)
from .vectorize import vectorize

R_co = TypeVar("R_co", covariant=True)
Dims = tuple[int, ...]


class _Functions(type):
    """The class of `ufunc`: library functions that have its attributes are instances too."""

    def __instancecheck__(cls, instance: object) -> bool:
        own: Any = getattr(instance, "__ufunc__", None)
        return type.__instancecheck__(cls, instance) or (
            type(own) is cls and own._func is instance)


class ufunc(Generic[R_co], metaclass=_Functions):
    """A function of scalars, applied element by element to arrays that are broadcast.

    Args:
      func: a function of `nin` scalars that returns one scalar, or a tuple of `nout`.
      nin, nout: how many operands and results there are.
      name: instead of `func`'s.
      nargs: nin + nout, or None.
      identity: of a function of two operands, a neutral one, if there is one.
      call, reduce, accumulate, at, reduceat: implementations; they take arrays, the method's
        options that are not refused, and return its result.

    Every elementwise function of `olympus.numpy` takes, after its operands, these keywords:

      where: a mask that broadcasts; where it does not hold the result is 0 and nothing is computed,
        so no derivative passes. NumPy leaves the memory's old content.
      dtype: the dtype to compute in, one of `types`, as far as `casting` allows the conversion of
        the operands: "no", "equiv", "safe", "same_kind" or "unsafe".
      signature: the dtypes of operands and results, as one of `types`, or a tuple in which None
        stands for any.
      order: "K", "A" or "C", which is what all arrays have; subok has no effect, out is refused.

    >>> import olympus.numpy as onp
    >>> print(onp.add.reduce(onp.arange(4)), onp.multiply.accumulate(onp.arange(1, 5)))
    6 [ 1  2  6 24]
    >>> print(onp.sqrt(onp.array([4., -1.]), where=onp.array([True, False]), dtype="float16"))
    [2. 0.]
    """

    while_tracing: Callable[..., Any]       # of some: what operators on tracers call

    def __init__(self, func: Callable[..., object], /, nin: int, nout: int, *,
                 name: str | None = None, nargs: int | None = None,
                 identity: ArrayLike | None = None, call: Callable[..., R_co] | None = None,
                 reduce: Callable[..., Array] | None = None,
                 accumulate: Callable[..., Array] | None = None,
                 at: Callable[..., Array] | None = None,
                 reduceat: Callable[..., Array] | None = None) -> None:
        check_callable("ufunc", func=func)
        self.nin, self.nout = (static_int(n, "ufunc", what) for n, what in ((nin, "nin"),
                                                                            (nout, "nout")))
        self.nargs = self.nin + self.nout if nargs is None else nargs
        if self.nargs != self.nin + self.nout:
            raise ValueError(f"ufunc: nin {nin}, nout {nout} and nargs {nargs} given; nargs must "
                             "be their sum.")
        self.identity, self._func = identity, func
        self.__name__ = self.__qualname__ = name or getattr(func, "__name__", "ufunc")
        self.__doc__ = func.__doc__
        if call is not None:
            self._call = call
        self._own = {"reduce": reduce, "accumulate": accumulate, "at": at, "reduceat": reduceat}
        self.types: list[str] = []
        self.signature: str | None = None
        self.loops: Loops | None = None

    @functools.cached_property
    def _call(self) -> Callable[..., R_co]:
        """The function of arrays: made when first called, which few are."""
        return vectorize(self._func)

    @property
    def ntypes(self) -> int:
        """The number of `types`."""
        return len(self.types)

    def __call__(self, *args: ArrayLike, out: None = None, where: ArrayLike | None = None,
                 **options: object) -> R_co:
        """The function of each element; 0 where the mask `where` does not hold."""
        if options or out is not None or where is not None:
            return with_options(self, args, {"out": out, "where": where, **options})
        check_arity(self.__name__, args, self.nin)
        return self._call(*args)

    def resolve_dtypes(self, dtypes: tuple[DTypeLike | None, ...], *, signature: object = None,
                       casting: str | None = None, reduction: bool = False
                       ) -> tuple[np.dtype, ...]:
        """The dtypes that operands are converted to and results have.

        Args:
          dtypes: of each operand a dtype, or int, float or complex for Python's numbers; of each
            result a dtype that it must be possible to convert to, or None.
          signature, casting: as for a call.
          reduction: resolve for `reduce`: the first dtype is None, or equal to the dtype of
            the result.

        Raises TypeError where a call would refuse operands of those dtypes.

        >>> import olympus.numpy as onp
        >>> onp.add.resolve_dtypes((onp.dtype("int32"), float, None))
        (dtype('float32'), dtype('float32'), dtype('float32'))
        """
        return _resolved(self, dtypes, signature, casting or "same_kind", reduction)

    def __repr__(self) -> str:
        return f"<olympus.numpy.ufunc {self.__name__!r}>"

    def _key(self) -> tuple[object, ...]:
        return (self._func, self.nin, self.nout, self.__name__, repr(self.identity), self._call
                if self.loops else None, *self._own.values())

    def __eq__(self, other: object) -> bool:
        return type(other) is ufunc and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    # Methods -------------------------------------------------------------------------------------

    def _operand(self, method: str, a: ArrayLike, dtype: DTypeLike | None, out: None
                 ) -> Array | Literal:
        """The array that a method goes along, checked."""
        name = f"{self.__name__}.{method}"
        self._check_binary(method)
        refuse_option(name, out=out)
        x = to_array(array_args(name, a)[0])
        if dtype is None:
            return x
        dtype = dtypes.requested_dtype(name, dtype)
        if self.loops is not None:
            dtype = self.loops.chosen(name, dtype, self.loops.given(name, dtype, None))[1]
        return convert(x, dtype)

    def _along(self, method: str, a: ArrayLike, axis: Axis, dtype: DTypeLike | None, out: None
               ) -> tuple[Any, int]:
        """The array that a method goes along, and which one axis."""
        x, name = self._operand(method, a, dtype, out), f"{self.__name__}.{method}"
        if not x.ndim:
            raise TypeError(f"{name}: {typeof(x)} given; cannot {method} on a scalar; an array "
                            "with an axis is required.")
        axes = canonical_axes(axis, x.ndim, name)
        if len(axes) != 1:
            raise ValueError(f"{name}: axis {axis} given for {x.ndim} axes; the method does not "
                             "allow multiple axes; one is required.")
        return x, axes[0]

    def _check_binary(self, method: str) -> None:
        name = f"{self.__name__}.{method}"
        if self.signature is not None:
            raise (RuntimeError if method.startswith(("reduce", "acc")) else TypeError)(
                f"{name}: {self.__name__} has the signature {self.signature}; {method} is not "
                "defined for functions of vectors and matrices.")
        if self.nin != 2:
            raise ValueError(f"{name}: the function has {self.nin} operands; {method} is only "
                             "supported for binary functions.")
        if self.nout != 1:
            raise ValueError(f"{name}: the function has {self.nout} results; {method} is only "
                             "supported for functions returning a single value.")

    def _carried(self, method: str, x: Array) -> Array | Literal:
        """The operand in the dtype that the function of two of its elements has, and keeps."""
        loops = self.loops
        if loops and loops.ins == "xx" and dtypes.scalar_kind(x.dtype) in loops.kinds:
            dtype = BOOL if loops.outs == "?" else x.dtype
        else:
            dtype = eval_shape(self, *[typeof(x).update(shape=(), weak_type=False)] * 2).dtype
        if dtype == BOOL and self._associates:
            return as_bool(x)
        if not dtypes.can_cast(x.dtype, dtype, "same_kind"):
            raise TypeError(f"{self.__name__}.{method}: {typeof(x)} given; a function whose result "
                            f"of two of them is one of them is required, here it is {dtype}.")
        return convert(x, dtype)

    def reduce(self, a: ArrayLike, axis: Axis = 0, dtype: DTypeLike | None = None,
               out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
               where: ArrayLike | None = None) -> Array:
        """The elements along axes combined by the function, from the first to the last.

        Args:
          axis: an int, several if the order does not matter, or None for all.
          dtype: the dtype to compute in.
          keepdims: keep the axes with size 1.
          initial: what comes before the first element.
          where: a mask of the elements that count.

        Raises ValueError for no elements, or a mask, without an identity and without `initial`.

        >>> import olympus.numpy as onp
        >>> print(onp.subtract.reduce(onp.array([9, 3, 1])))
        5
        """
        x = self._operand("reduce", a, dtype, out)
        name = f"{self.__name__}.reduce"
        own = self._own["reduce"]
        if own is None:
            x = self._carried("reduce", x)
        if not x.ndim and axis in (0, -1):
            axis = ()
        axes, keepdims = canonical_axes(axis, x.ndim, name), flag(name, "keepdims", keepdims)
        where = mask_arg(name, where)
        if own is None and len(axes) > 1 and not self._commutes:
            raise ValueError(f"{name}: axis {axis} given; the order of the elements matters, so "
                             "the function is not reorderable and at most one axis is accepted.")
        if initial is None and self.identity is None:
            if any(definitely_equal(x.shape[i], 0) for i in axes):
                raise ValueError(f"{name}: {typeof(x)} given; zero-size array to reduction "
                                 f"operation {self.__name__} which has no identity; pass initial.")
            if where is not None:
                raise ValueError(f"{name}: where given without initial; reduction operation "
                                 f"{self.__name__} has no identity; pass initial.")
        if own is not None:
            return own(x, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)
        if initial is not None:
            initial = convert(array_args(name, initial)[0], x.dtype)
            if initial.shape:
                raise ValueError(f"{name}: initial {typeof(initial)} given; a scalar is required.")
        return _reduced(x, initial, where, function=self, axes=axes, keepdims=keepdims)

    def accumulate(self, a: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None,
                   out: None = None) -> Array:
        """The running results of `reduce` along an axis.

        >>> import olympus.numpy as onp
        >>> print(onp.maximum.accumulate(onp.array([1, 3, 2, 5])))
        [1 3 3 5]
        """
        x, axis = self._along("accumulate", a, axis, dtype, out)
        own = self._own["accumulate"]
        if own is not None:
            return own(x, axis=axis, dtype=dtype)
        x = self._carried("accumulate", x)
        return _accumulated(x, function=self, axis=axis) if x.shape[axis] else x

    def reduceat(self, a: ArrayLike, indices: ArrayLike | Sequence[int], axis: int = 0,
                 dtype: DTypeLike | None = None, out: None = None) -> Array:
        """`reduce` of slices along an axis: from each index up to the next, the last to the end.

        Where the next index is not larger it is the element at the index. Indices that are known
        must be in bounds (IndexError); traced ones are brought inside.

        >>> import olympus.numpy as onp
        >>> print(onp.add.reduceat(onp.arange(8), onp.array([0, 4, 1, 5])))
        [ 6  4 10 18]
        """
        x, axis = self._along("reduceat", a, axis, dtype, out)
        starts = _segment_starts(f"{self.__name__}.reduceat", indices, x.shape[axis])
        own = self._own["reduceat"]
        if own is not None:
            return own(x, starts, axis=axis, dtype=dtype)
        return reduced_at(self._carried("reduceat", x), starts, function=self, axis=axis)

    def at(self, a: ArrayLike, indices: object, b: ArrayLike | None = None, /, *,
           inplace: bool = True) -> Array:
        """`a` with the function applied to `a[indices]` (and `b`), once for each time it is named.

        Results are converted to the dtype of `a`, as in NumPy.
        `inplace=False` must be given, since arrays cannot be changed: the new array is returned.

        >>> import olympus.numpy as onp
        >>> print(onp.add.at(onp.zeros(3), onp.array([0, 2, 2]), 1.0, inplace=False))
        [1. 0. 2.]
        """
        name = f"{self.__name__}.at"
        if self.signature is not None or self.nout != 1 or self.nin > 2:
            self._check_binary("at")
        if (b is None) != (self.nin == 1):
            raise ValueError(f"{name}: the function has {self.nin} operands; the second one is "
                             f"{'not given' if b is None else 'given'}.")
        refuse_inplace(name, inplace)
        x = to_array(array_args(name, a)[0])
        operands = array_args(name, *([] if b is None else [b]))
        own = self._own["at"]
        if own is not None and (self.loops is None or dtypes.result_type(x, *operands) == x.dtype):
            return own(x, indices, *operands)
        if not operands:
            return x.at[indices].apply(lambda v: convert(self(v), x.dtype))
        numbers = getitem(lax_shape.reshape(
            lax_creation.iota(dtypes.default_int(), prod(x.shape)), x.shape), indices)
        return _applied_in_turn(x, numbers, *operands, function=self)

    def outer(self, A: ArrayLike, B: ArrayLike, /) -> R_co:
        """The function of all pairs of an element of `A` and one of `B`: [*A.shape, *B.shape].

        >>> import olympus.numpy as onp
        >>> print(onp.multiply.outer(onp.arange(1, 3), onp.arange(3)))
        [[0 1 2]
         [0 2 4]]
        """
        if self.signature is not None or self.nin != 2:
            self._check_binary("outer")
        x, y = array_args(f"{self.__name__}.outer", A, B)
        return self(lax_shape.reshape(x, (*x.shape, *[1] * y.ndim)) if y.ndim else x, y)

    @property
    def _associates(self) -> bool:
        """Whether neighbours may be combined first, as far as rounding does not tell."""
        return self.__name__ in _ASSOCIATIVE and self.loops is not None

    @property
    def _commutes(self) -> bool:
        """Whether `reduce` takes several axes, as NumPy has it: of users' functions, too."""
        return self.loops is None or (self._associates and self.__name__ != "lcm")


_ASSOCIATIVE = frozenset((
    "add", "multiply", "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or",
    "bitwise_xor", "maximum", "minimum", "fmax", "fmin", "logaddexp", "logaddexp2", "hypot", "gcd",
    "lcm"))


def _segment_starts(name: str, indices: object, size: int) -> Array | Tracer:
    """The indices of `reduceat`: a vector of integers within bounds, as far as they are known."""
    if isinstance(indices, (list, tuple)):
        indices = np.asarray(indices, None if indices else np.int32)
    starts = to_array(array_args(name, indices)[0])
    if starts.ndim != 1:
        raise ValueError(f"{name}: indices {typeof(starts)} given; a vector is required.")
    if not dtypes.is_integer(starts.dtype):
        raise TypeError(f"{name}: indices {typeof(starts)} given; an integer dtype is required.")
    if not isinstance(starts, Tracer):
        known = np.asarray(starts)
        wrong = known[(known < 0) | (known >= size)]
        if wrong.size:
            raise IndexError(f"{name}: index {wrong[0]} given; it is out of bounds; [0, {size}) is "
                             "required.")
    return starts


def _resolved(function: ufunc[object], asked: object, signature: object, casting: str,
              reduction: bool) -> tuple[np.dtype, ...]:
    """`resolve_dtypes`."""
    name, loops, nin = f"{function.__name__}.resolve_dtypes", function.loops, function.nin
    if loops is None:
        raise TypeError(f"{name}: a function of Python given, which has no loops to choose from; "
                        "call olympus.eval_shape.")
    if not isinstance(asked, tuple) or len(asked) != function.nargs:
        raise TypeError(f"{name}: dtypes {asked!r} given; a tuple of {function.nargs} is required.")
    for entry in asked:
        if not (entry is None or isinstance(entry, np.dtype) or entry in (int, float, complex)):
            raise TypeError(f"{name}: {entry!r} given; dtypes, int, float, complex or None are "
                            "required.")
    ins, outs = asked[1 if reduction else 0:nin], asked[nin:]
    if any(entry is None for entry in ins) or (reduction and outs[0] is not None):
        raise TypeError(f"{name}: dtypes {asked} given; the dtypes of all operands are required; "
                        "for a reduction only the first and last are None.")
    common = dtypes.result_type(*ins)
    if reduction:
        x = ShapedArray((1,), common)
        return (eval_shape(lambda x: function.reduce(x, dtype=asked[0]), x).dtype,) * 3
    dtypes.check_casting(name, casting)
    loop = loops.chosen(name, common, loops.given(name, None, signature), casting)
    pairs = [(a, b) for a, b in zip(ins, loop) if isinstance(a, np.dtype)]
    pairs += [(a, b) for a, b in zip(loop[nin:], outs) if b is not None]
    for a, b in pairs:
        if not dtypes.can_cast(a, b, casting):
            raise TypeError(f"{name}: dtypes {asked} given; casting of {a} to {b} is not allowed "
                            f"by the rule {casting!r}.")
    return tuple(loop)


# Programs ----------------------------------------------------------------------------------------

@fused(static=("function", "axes", "keepdims"))
def _reduced(x: Array, initial: Array | None, where: Array | None, *, function: Any, axes: Dims,
             keepdims: bool) -> Array:
    """`x`, in a dtype that the function keeps, combined along axes."""
    size = prod([x.shape[i] for i in axes])
    rest = tuple([n for i, n in enumerate(x.shape) if i not in axes])
    start: Any = initial    # None only where the slices have elements
    if initial is None and function.identity is not None:
        start = _identity(function, x.dtype)
    if where is not None:
        where = broadcast_to(where, x.shape)
        if function._associates:
            neutral = start if function.identity is None else _identity(function, x.dtype)
            x, where = choose(where, x, neutral), None
    order = (*axes, *[i for i in range(x.ndim) if i not in axes])
    x = lax_shape.reshape(lax_shape.transpose(x, order), (size, *rest))
    if where is not None:
        where = lax_shape.reshape(lax_shape.transpose(where, order), (size, *rest))
    if not function._associates:
        out = _folded(function, x, where, start)
    elif not size:
        out = broadcast_to(start, rest)
    else:
        out = _halved(function, x)
        if initial is None and size == 1:
            initial = start     # hypot and gcd change even a single number
        if initial is not None:
            out = function(broadcast_to(initial, rest), out)
    return lax_shape.expand_dims(to_array(out), axes) if keepdims and axes else out


def _identity(function: ufunc[object], dtype: DType) -> Array:
    value: Any = function.identity
    if isinstance(value, int) and value < 0 and dtypes.scalar_kind(dtype) == "u":
        value = int(dtypes.iinfo(dtype).max)    # all bits
    return literal(value, dtype)


def _halved(function: Callable[..., Array], x: Array) -> Array:
    """Combined along the first axis: the first half with the second, until one element is left."""
    n = static_int(x.shape[0], "ufunc.reduce", "size")
    while n > 1:
        half = n // 2
        low, high = (slicing.slice_in_dim(x, i * half, (i + 1) * half) for i in range(2))
        halves = function(low, high)
        odd = n % 2
        x = slicing.concatenate([halves, slicing.slice_in_dim(x, n - 1, n)], 0) if odd else halves
        n = half + odd
    return lax_shape.squeeze(x, (0,))


def _folded(function: Callable[..., Array], x: Array, where: Array | None,
            initial: Array | None) -> Array:
    """Combined along the first axis from the left to the right."""
    if initial is None:
        carry = slicing.index_in_dim(x, 0, 0, False)
        x = slicing.slice_in_dim(x, 1, x.shape[0])
    else:
        carry = to_array(broadcast_to(initial, x.shape[1:]))

    def step(carry: Array, element_and_mask: tuple[Array, Array | None]) -> tuple[Array, None]:
        element, mask = element_and_mask
        new = function(carry, element)
        return (new if mask is None else choose(mask, new, carry)), None

    return scan(step, carry, (x, where))[0]


@fused(static=("function", "axis"))
def _accumulated(x: Array, *, function: Any, axis: int) -> Array:
    if function._associates:
        return associative_scan(function, x, axis=axis)
    x = lax_shape.move_axis(x, axis, 0)

    def step(carry: Array, element: Array) -> tuple[Array, Array]:
        new = function(carry, element)
        return new, new

    first = slicing.slice_in_dim(x, 0, 1)
    rest = scan(step, lax_shape.squeeze(first, (0,)), slicing.slice_in_dim(x, 1, x.shape[0]))[1]
    return lax_shape.move_axis(slicing.concatenate([first, rest], 0), 0, axis)


@fused(static=("function",))
def _applied_in_turn(x: Array, numbers: Array, b: Array, *, function: Callable[..., object]
                     ) -> Array:
    """The function applied at one place of the flattened array after the other."""
    values = to_array(broadcast_to(b, numbers.shape))
    flat = [lax_shape.reshape(z, (prod(z.shape),)) for z in (x, numbers, values)]

    def step(out: Array, place_and_value: tuple[Array, Array]) -> tuple[Array, None]:
        place, value = place_and_value
        return write("set", out, place, convert(function(out[place], value), out.dtype)), None

    return lax_shape.reshape(scan(step, flat[0], flat[1:])[0], x.shape)


@fused(static=("function", "axis"))
def reduced_at(x: Array, indices: Array, *, function: Any, axis: int) -> Array:
    """The slices' results, all at once."""
    n = static_int(x.shape[axis], "ufunc.reduceat", "size")
    x, count = lax_shape.move_axis(x, axis, 0), indices.shape[0]
    starts = indices.clip(0, n - 1).astype(dtypes.default_int())
    if not count:
        return lax_shape.move_axis(slicing.slice_in_dim(x, 0, 0), 0, axis)
    last = lax_creation.full((1,), n, starts.dtype)
    ends = slicing.concatenate([slicing.slice_in_dim(starts, 1, count), last], 0)
    column = (count, *[1] * (x.ndim - 1))
    out = take(x, starts, 0, mode="clip")

    def combined(mask: ArrayLike, element: Array) -> Array:
        mask = broadcast_to(lax_shape.reshape(mask, column), out.shape)
        return choose(mask, function(out, element), out)

    if not function._associates:
        def step(i: Array, out: Array) -> Array:
            mask = lax_shape.reshape((i > starts) & (i < ends), column)
            new = function(out, take(x, i, 0, mode="clip")[None])
            return choose(broadcast_to(mask, out.shape), new, out)
        return lax_shape.move_axis(fori_loop(0, n, step, out), 0, axis)
    # The k-th round has the results of the 2**k elements from each one on; a slice takes those that
    # its length is the sum of, in their order.
    length, place, width = ends - starts - 1, starts + 1, 1
    while width < n:
        mask = (length > 0) & (length & width != 0)
        out = combined(mask, take(x, place, 0, mode="clip"))
        place = place + mask * width
        ahead = slicing.slice_in_dim(x, width, n)
        x = slicing.concatenate([function(slicing.slice_in_dim(x, 0, n - width), ahead),
                                 slicing.slice_in_dim(x, n - width, n)], 0)
        width *= 2
    return lax_shape.move_axis(out, 0, axis)


@named
def frompyfunc(func: Callable[..., Array], /, nin: int, nout: int, *,
               identity: ArrayLike | None = None) -> ufunc[Array]:
    """The `ufunc` of a Python function of scalars, which must be one that can be traced.

    Unlike NumPy's it returns arrays of the dtype that the function does, and is compiled.

    Args:
      func: takes `nin` scalars, returns one or a tuple of `nout`.
      nin: number of operands.
      nout: number of results.
      identity: what `reduce` gives of no elements.
    Returns: A `ufunc`: called with arrays, it broadcasts them.

    >>> power = onp.frompyfunc(lambda x, y: x ** y, nin=2, nout=1)
    >>> print(power.outer(onp.arange(1, 4), onp.arange(3)))
    [[1 1 1]
     [1 2 4]
     [1 3 9]]
    """
    check_callable("frompyfunc", func=func)
    return ufunc(func, nin, nout, identity=identity)
