"""Random numbers that the compiler makes: fast, and less reproducible than `olympus.random`.

`rng_bit_generator` is a function of its key on one platform and version of XLA; `rng_uniform` keeps
its state in the device. Under vmap each element gets its result of a loop.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from ..base.typing import Array, ArrayLike, DType, DTypeLike, IrValue, Shape
from ..core.primitive import Axis, Builder, Primitive
from ..core.trace import typeof
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from ..types.shape import canonical_shape, prod
from ..types.sharding import ShardingLike
from .families import operand
from .shape import align, move_axis
from .sharding import constrain

Dims = tuple[int, ...]
U32, U64 = dtypes.as_dtype("uint32"), dtypes.as_dtype("uint64")
_STATE = make_aval((2,), U64)
_BITS = tuple(map(dtypes.as_dtype, ("uint8", "uint16", "uint32", "uint64")))
_UNIFORM = tuple(map(dtypes.as_dtype, ("bfloat16", "float16", "float32", "float64", "int32",
                                       "int64", "uint32", "uint64")))


class RandomAlgorithm(enum.IntEnum):
    """The generator of `rng_bit_generator`; DEFAULT is the platform's fastest.

    >>> from olympus import lax, numpy as onp
    >>> state = onp.zeros(4, "uint32")
    >>> lax.rng_bit_generator(state, (2,), algorithm=lax.RandomAlgorithm.RNG_THREE_FRY)[1].shape
    (2,)
    """

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


def _looped(b: Builder, batch: Dims, xs: Sequence[IrValue], avals: Sequence[ShapedArray],
            outs: Sequence[ShapedArray], emit: Callable[[Sequence[IrValue]], Sequence[IrValue]]
            ) -> list[IrValue]:
    """`emit` for each row of operands with leading axes `batch`; directly if there are none."""
    if not batch:
        return list(emit(xs))
    n = prod(batch)

    def flat(x: IrValue, aval: ShapedArray, lead: Dims) -> IrValue:
        return b.op("stablehlo.reshape", [x], None,
                    aval.update(shape=(*lead, *aval.shape[len(batch):])))

    rows = [flat(x, a, (n,)) for x, a in zip(xs, avals, strict=True)]
    init = [b.full(a.update(shape=(n, *a.shape[len(batch):])), 0) for a in outs]

    def body(i: IrValue, values: Sequence[IrValue]) -> Sequence[IrValue]:
        made = emit([b.slice_at(row, i) for row in rows])
        return [b.update_at(v, i, m) for v, m in zip(values, made, strict=True)]

    return [flat(x, a, batch) for x, a in zip(b.counted_loop(n, init, body), outs, strict=True)]


class RngBitGenerator(Primitive):
    """(key[*k, w]) -> new key, bits[*k, *shape]. params: shape, dtype, algorithm, out_sharding."""

    multiple_results = True
    jvp = transpose = None      # integers have no derivative
    pace = 4.0

    def infer(self, key: ShapedArray, *, shape: Dims, dtype: DType, algorithm: RandomAlgorithm,
              out_sharding: ShardingLike) -> list[ShapedArray]:
        words = {U32: 4, U64: 2}.get(key.dtype)
        if words is None or key.shape[-1:] != (words,):
            raise TypeError(f"rng_bit_generator: key {key} given; uint32[4] or uint64[2] is "
                            "required; for keys of olympus.random use random.bits.")
        if dtype not in _BITS:
            raise TypeError(f"rng_bit_generator: dtype {dtypes.long_name(dtype)} given; uint8, "
                            "uint16, uint32 or uint64 is required; convert the bits with "
                            "lax.bitcast_convert_type.")
        return [key, make_aval((*key.shape[:-1], *shape), dtype)]

    def lower(self, b: Builder, key: IrValue, *, shape: Dims, dtype: DType,
              algorithm: RandomAlgorithm, out_sharding: ShardingLike) -> list[IrValue]:
        (aval,), outs = b.avals_in, b.avals_out
        name = algorithm.name.removeprefix("RNG_")
        attributes = {"rng_algorithm": b.attr(f"#stablehlo<rng_algorithm {name}>")}
        # Narrow bits are the low bits of 32: XLA's own narrow bits differ between platforms.
        made = make_aval(shape, U64 if dtype == U64 else U32)

        def emit(rows: Sequence[IrValue]) -> Sequence[IrValue]:
            state = rows[0] if aval.dtype == U64 else _bitcast(b, rows[0], (2, 2), _STATE)
            op = b.ops("stablehlo.rng_bit_generator", [state], attributes,
                       avals=[_STATE, made])
            state, bits = op.results
            if aval.dtype == U32:
                pairs = b.op("stablehlo.bitcast_convert", [state], None, make_aval((2, 2), U32))
                state = b.op("stablehlo.reshape", [pairs], None, make_aval((4,), U32))
            wanted = make_aval(shape, dtype)
            return [state, bits if wanted is made else b.convert(bits, wanted)]

        return _looped(b, aval.shape[:-1], [key], [aval], outs, emit)

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], **params: Hashable
             ) -> tuple[list[Array], list[int | None]]:
        return self.bind(move_axis(args[0], dims[0], 0), **params), [0, 0]


def _bitcast(b: Builder, words: IrValue, shape: Dims, aval: ShapedArray) -> IrValue:
    """uint32 words, low one first, as 64-bit ones."""
    pairs = b.op("stablehlo.reshape", [words], None, make_aval(shape, U32))
    return b.op("stablehlo.bitcast_convert", [pairs], None, aval)


class RngUniform(Primitive):
    """(a[*k], b[*k]) -> numbers[*k, *shape]. params: shape."""

    jvp = transpose = None      # the numbers differ from call to call

    def infer(self, a: ShapedArray, b: ShapedArray, *, shape: Dims) -> ShapedArray:
        if a.dtype != b.dtype or a.shape != b.shape:
            raise TypeError(f"rng_uniform: bounds {a} and {b} given; scalars of one dtype are "
                            "required; convert them with astype.")
        if a.dtype not in _UNIFORM:
            names = ", ".join(dtypes.long_name(d) for d in _UNIFORM)
            raise TypeError(f"rng_uniform: bounds {a} given; dtypes accepted are {names} (others "
                            "abort XLA's CPU compiler); convert the result with astype.")
        return make_aval((*a.shape, *shape), a.dtype, a.weak_type and b.weak_type)

    def lower(self, b: Builder, low: IrValue, high: IrValue, *, shape: Dims) -> IrValue:
        out, sizes = b.avals_out[0], np.asarray(shape, np.int64)

        def emit(rows: Sequence[IrValue]) -> list[IrValue]:
            lengths = b.constant(sizes, make_aval((len(shape),), dtypes.as_dtype("int64")))
            return [b.op("stablehlo.rng", [*rows, lengths], {
                "rng_distribution": b.attr("#stablehlo<rng_distribution UNIFORM>")},
                make_aval(shape, out.dtype))]

        return _looped(b, b.avals_in[0].shape, [low, high], b.avals_in, [out], emit)[0]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], *, shape: Dims
             ) -> tuple[Array, int | None]:
        return self.bind(*align(axis, args, dims, 0)[0], shape=shape), 0


rng_bit_generator_p = RngBitGenerator("rng_bit_generator")
rng_uniform_p = RngUniform("rng_uniform")


def rng_bit_generator(key: ArrayLike, shape: int | Shape, dtype: DTypeLike | None = np.uint32,
                      algorithm: RandomAlgorithm | str = RandomAlgorithm.RNG_DEFAULT, *,
                      out_sharding: ShardingLike = None) -> tuple[Array, Array]:
    """Random bits and the next key, by XLA's generator.

    Args:
      key: uint32[4] or uint64[2].
      shape: of the bits.
      dtype: uint8, uint16, uint32 or uint64; narrow ones are the low bits of 32.
      algorithm: a `RandomAlgorithm` or its name. The two that are named give the same bits
        everywhere; the default is free to differ between platforms.
      out_sharding: where the bits are; see `with_sharding_constraint`.
    Returns: (new key, bits). Under vmap over keys each element's bits come from its own key.

    >>> key, bits = olympus.lax.rng_bit_generator(onp.arange(4, dtype="uint32"), (2,))
    >>> bits.shape, bits.dtype
    ((2,), dtype('uint32'))
    """
    aval = typeof(key)
    if aval.ndim != 1:
        raise TypeError(f"rng_bit_generator: key {aval} given; one key, uint32[4] or uint64[2], is "
                        "required; map over several with vmap.")
    new, bits = rng_bit_generator_p.bind(
        key, shape=canonical_shape(shape, "rng_bit_generator"),
        dtype=dtypes.requested_dtype("rng_bit_generator", dtype), algorithm=_algorithm(algorithm),
        out_sharding=None)
    return new, constrain("rng_bit_generator", bits, out_sharding)


def _algorithm(value: object) -> RandomAlgorithm:
    if isinstance(value, str):
        name = value.upper()
        name = name if name.startswith("RNG_") else f"RNG_{name}"
        if name in RandomAlgorithm.__members__:
            return RandomAlgorithm[name]
    elif value in tuple(RandomAlgorithm):
        return RandomAlgorithm(value)
    names = ", ".join(RandomAlgorithm.__members__)
    raise ValueError(f"rng_bit_generator: algorithm {value!r} given; one of {names} is required.")


def rng_uniform(a: ArrayLike, b: ArrayLike, shape: int | Shape) -> Array:
    """Uniform numbers in [a, b), from a state that the device keeps: they differ from call to call.

    Args:
      a, b: scalars of one dtype: a floating one of 16 bits or more, or int32, int64, uint32,
        uint64.
      shape: of the result.
    Returns: An array of that shape and their dtype.

    Prefer `olympus.random.uniform`, which is a function of a key. Not differentiable.

    >>> x = olympus.lax.rng_uniform(0., 1., (3,))
    >>> bool((x >= 0).all() and (x < 1).all())
    True
    """
    a = operand(a, b)
    b = operand(b, a)
    for x in (a, b):
        if typeof(x).shape != ():
            raise TypeError(f"rng_uniform: bound {typeof(x)} given; scalars are required; map over "
                            "several with vmap.")
    return rng_uniform_p.bind(a, b, shape=canonical_shape(shape, "rng_uniform"))
