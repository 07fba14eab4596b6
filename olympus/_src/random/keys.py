"""Random keys: their dtype, their arrays, and the primitives that make and use them.

A typed key has dtype `key<fry>`; an array of keys of shape s is stored as uint32[*s, 2].
Programs know only the typed form: `random_wrap` and `random_unwrap` are the way in and out. Every
function takes raw uint32[2] keys too, and answers a raw key with raw keys.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NewType, NoReturn, TypeAlias, TypeGuard

import numpy as np

from ..base import config, lib, source
from ..base.typing import Array, ArrayLike, Device, DTypeLike, IrValue, Params
from ..core import reuse, tags
from ..core.ir import OlympusprEqn
from ..core.primitive import Axis, Builder, Primitive
from ..core.trace import ctx, typeof
from ..devices.array import Shard, array_from_numpy, register_wrapper
from ..lax.barriers import random_clone_p
from ..lax.convert import convert_element_type
from ..lax.families import add, to_front
from ..lax.shape import align, check_element, expand_dims, move_axis
from ..numpy import arithmetic, indexing, joining, manipulation, updates
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from ..types.shape import canonical_shape, static_int
from ..types.sharding import DeviceLike
from .generators import GENERATORS, Generator

Dims = tuple[int, ...]
# For annotations: an array of typed keys, and what `impl=` names a generator by.
Key = NewType("Key", Array)
GeneratorLike: TypeAlias = "str | Generator | KeyType | None"
U32 = dtypes.as_dtype("uint32")
_WIDTHS = (8, 16, 32, 64)


class KeyType(dtypes.ExtendedDType):
    """The dtype of keys of one generator."""

    __slots__ = ("impl", "name", "itemsize", "physical_shape")
    type = dtypes.prng_key
    physical_dtype = U32

    def __init__(self, impl: Generator) -> None:
        self.impl, self.name, self.physical_shape = impl, f"key<{impl.tag}>", impl.key_shape
        self.itemsize = 4 * int(np.prod(impl.key_shape))

    def __eq__(self, other: object) -> bool:
        return type(other) is KeyType and self.impl == other.impl

    def __hash__(self) -> int:
        return hash(self.impl)

    def __reduce__(self) -> tuple:
        return key_dtype, (_spec(self.impl),)

    def wrap(self, array: Array) -> PRNGKeyArray:
        """Key words uint32[*s, *key_shape] as keys of shape s."""
        return PRNGKeyArray(self, array)

    def of_physical(self, words: Array) -> Array:
        """`wrap` as an operation."""
        return random_wrap_p.bind(words, impl=self.impl)


def _no_numpy(name: str) -> Any:
    """A method that would give what NumPy or Python computes with."""
    def refused(self: PRNGKeyArray, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError(f"{name}: {self.aval} given; keys have no NumPy form; use "
                        "random.key_data for the integers behind them.")
    return refused


def _no_order(operator: str) -> Any:
    """A comparison by size."""
    def refused(self: PRNGKeyArray, other: object) -> NoReturn:
        raise TypeError(f"key {operator} key: {self.aval} given; keys have no order;\n  compare "
                        "keys with ==, or the integers behind them, random.key_data(key).")
    return refused


class PRNGKeyArray(lib.Array):
    """An array of typed random keys. `_base_array` holds the key words."""

    __slots__ = ("dtype", "_base_array", "_cells", "__weakref__")
    __hash__ = None
    __array_priority__ = 100
    __array__ = _no_numpy("numpy.asarray")
    item, tolist = _no_numpy("item"), _no_numpy("tolist")
    weak_type: bool = False
    dtype: KeyType

    def __init__(self, dtype: KeyType, base: Array) -> None:
        self.dtype, self._base_array = dtype, base
        self._cells: Any = None     # of `core.reuse`

    @property
    def aval(self) -> ShapedArray:
        """Logical shape and key dtype."""
        words = self._base_array.aval
        ndim = words.ndim - len(self.dtype.physical_shape)
        sharding = words.sharding.leading(ndim) if words.sharded else None
        return make_aval(words.shape[:ndim], self.dtype, False, sharding,
                         memory_space=words.memory_space)

    shape = property(lambda self: self.aval.shape, doc="Tuple of axis sizes.")
    ndim = property(lambda self: self._base_array.ndim - len(self.dtype.physical_shape),
                    doc="Number of axes.")
    size = property(lambda self: self.aval.size, doc="Number of keys.")
    itemsize = property(lambda self: self.dtype.itemsize, doc="Bytes of one key.")
    nbytes = property(lambda self: self._base_array.nbytes, doc="Bytes of all keys.")
    T = property(lambda self: self.transpose(), doc="The axes reversed.")
    at = property(updates.at, doc=updates.at.__doc__)

    def __len__(self) -> int:
        return len(self.aval)

    def __iter__(self) -> Iterator[Array]:
        if not self.shape:
            raise TypeError(f"iter(): iteration over a 0-d key array, {self.aval}; an axis is "
                            "required.")
        return (self[i] for i in range(static_int(self.shape[0], "iteration", "size")))

    def __getitem__(self, index: object) -> Array:
        return indexing.getitem(self, index)

    def __eq__(self, other: object) -> Any:
        return arithmetic.equal(self, other) if _comparable(other) else NotImplemented

    def __ne__(self, other: object) -> Any:
        return arithmetic.not_equal(self, other) if _comparable(other) else NotImplemented

    # Refused by name, as for traced keys.
    __add__, __sub__, __mul__ = arithmetic.add, arithmetic.subtract, arithmetic.multiply
    __lt__, __le__, __gt__, __ge__ = map(_no_order, ("<", "<=", ">", ">="))

    def __bool__(self) -> bool:
        raise TypeError(f"bool(): {self.aval} given; keys have no truth value.")

    def __repr__(self) -> str:
        return f"Array({self.shape}, dtype={self.dtype}) overlaying:\n{self._base_array}"

    __str__ = __repr__

    def __reduce__(self) -> tuple:
        return _rebuild, (self.dtype, lib.to_numpy(self._base_array))

    def reshape(self, *args: Any, order: str = "C") -> Array:
        """The same keys in another shape, given as ints or as a tuple."""
        return manipulation.reshape(self, args[0] if len(args) == 1 else args, order)

    def transpose(self, *axes: Any) -> Array:
        """The axes in another order; reversed if none is given."""
        if not axes or axes == (None,):
            return manipulation.transpose(self)
        return manipulation.transpose(self, axes[0] if len(axes) == 1 else axes)

    def ravel(self, order: str = "C") -> Array:
        """The keys as a vector."""
        return manipulation.ravel(self, order)

    def squeeze(self, axis: int | Sequence[int] | None = None) -> Array:
        """Without axes of size 1."""
        return manipulation.squeeze(self, axis)

    def swapaxes(self, axis1: int, axis2: int) -> Array:
        """Exchange two axes."""
        return manipulation.swapaxes(self, axis1, axis2)

    def take(self, indices: ArrayLike, axis: int | None = None, mode: str | None = None) -> Array:
        """The keys at indices along an axis; reads outside of it take the nearest key."""
        return indexing.take(self, indices, axis, mode=mode)

    def repeat(self, repeats: ArrayLike, axis: int | None = None, *,
               total_repeat_length: int | None = None) -> Array:
        """Each key repeated."""
        return joining.repeat(self, repeats, axis, total_repeat_length=total_repeat_length)

    flatten: Callable[..., Array] = ravel

    def copy(self) -> PRNGKeyArray:
        """The same keys in memory of their own."""
        return self._with(self._base_array.copy())

    def _with(self, words: Array) -> PRNGKeyArray:
        out = PRNGKeyArray(self.dtype, words)
        out._cells = self._cells
        return out

    def block_until_ready(self) -> PRNGKeyArray:
        """Wait until the keys are computed; return them."""
        self._base_array.block_until_ready()
        return self

    def is_ready(self) -> bool:
        """Whether the keys are computed."""
        return self._base_array.is_ready()

    def is_deleted(self) -> bool:
        """Whether the buffer is gone."""
        return self._base_array.is_deleted()

    def delete(self) -> None:
        """Free the buffer now."""
        self._base_array.delete()

    def devices(self) -> set[Device]:
        """The devices that hold the keys."""
        return self._base_array.devices()

    def copy_to_host_async(self) -> None:
        """Start to copy the key words to the host."""
        self._base_array.copy_to_host_async()

    def to_device(self, device: DeviceLike, *, stream: None = None) -> PRNGKeyArray:
        """The keys on a device, or cut over several by a sharding."""
        return self._with(self._base_array.to_device(device, stream=stream))

    device = property(operator.attrgetter("_base_array.device"), doc="The device or sharding.")
    sharding = property(operator.attrgetter("_base_array.sharding"), doc="Where the keys are.")
    committed = property(operator.attrgetter("_base_array.committed"), doc="Bound to its device?")
    @property
    def addressable_shards(self) -> list[Shard]:
        """The parts on the devices of this process."""
        return [Shard(part.device, self.sharding, self.shape, self.dtype.wrap(part.data))
                for part in self._base_array.addressable_shards]

    global_shards = addressable_shards

    def addressable_data(self, index: int) -> PRNGKeyArray:
        """The keys on one of the devices."""
        return self.dtype.wrap(self._base_array.addressable_data(index))

    def on_device_size_in_bytes(self) -> int:
        """Bytes that the keys take on their devices."""
        return self._base_array.on_device_size_in_bytes()

    def unsafe_buffer_pointer(self) -> int:
        """The address of the key words, on one device."""
        return self._base_array.unsafe_buffer_pointer()

    is_fully_addressable = property(lambda self: True, doc="Whether all of it is in this process.")
    is_fully_replicated = property(operator.attrgetter("_base_array.is_fully_replicated"),
                                   doc="Whether each device holds all of it.")


def _spec(impl: Generator) -> str | Generator:
    """A generator as `impl=` takes it: the name of one of ours, a user's as it is."""
    return impl.name if GENERATORS.get(impl.name) is impl else impl


def _rebuild(dtype: KeyType, words: np.ndarray) -> Array:
    return PRNGKeyArray(dtype, array_from_numpy(words))     # also where no program can run


def _comparable(x: object) -> TypeGuard[ArrayLike]:
    """Whether `x` is an array or a number, with which keys are compared elementwise."""
    return hasattr(x, "dtype") or isinstance(x, (int, float, complex))


register_wrapper(PRNGKeyArray)


# Primitives --------------------------------------------------------------------------------------

def _generator(keys: Any) -> Generator:
    """The generator of keys, or of their aval."""
    return keys.dtype.impl


def _require_keys(name: str, aval: ShapedArray) -> ShapedArray:
    if not dtypes.is_key(aval.dtype):
        raise TypeError(f"{name}: {aval} given; typed keys are required; make them with random.key "
                        "or random.wrap_key_data.")
    return aval


class OfKeys(Primitive, abstract=True):
    """Acts on each key (or seed) alone, so a mapped axis goes in front. No derivatives."""

    jvp = transpose = None
    spread = staticmethod(tags.leading)

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], **params: Hashable
             ) -> tuple[Array, int | None]:
        check_element(self, axis, args, dims, params)
        return self.bind(*align(axis, args, dims, 0)[0], **params), 0

class Wrap(OfKeys):
    """Key words uint32[*s, *key_shape] -> keys of shape s: the same buffer."""

    pace = 0.3

    def infer(self, x: ShapedArray, *, impl: Generator) -> ShapedArray:
        n = len(impl.key_shape)
        if x.dtype != U32 or x.ndim < n or x.shape[x.ndim - n:] != impl.key_shape:
            dims = ",".join(map(str, impl.key_shape))
            raise TypeError(f"random key: {x} given; a typed key, or uint32[...,{dims}] key words, "
                            "is required;\n  make keys with random.key(seed).")
        return make_aval(x.shape[:x.ndim - n], KeyType(impl))

    def lower(self, b: Builder, x: IrValue, *, impl: Generator) -> IrValue:
        return x


class Unwrap(OfKeys):
    """Keys of shape s -> their words uint32[*s, *key_shape]: the same buffer."""

    cells = staticmethod(reuse.read)
    pace = 0.3

    def infer(self, keys: ShapedArray) -> ShapedArray:
        shape = _generator(_require_keys("random_unwrap", keys)).key_shape
        return make_aval((*keys.shape, *shape), U32)

    def lower(self, b: Builder, x: IrValue) -> IrValue:
        return x


class Seed(OfKeys):
    """Integers -> keys, one each."""

    pace = 20.0

    def infer(self, seeds: ShapedArray, *, impl: Generator) -> ShapedArray:
        if dtypes.scalar_kind(seeds.dtype) not in "iub":
            raise TypeError(f"random_seed: {seeds} given; integers are required; convert with "
                            "astype(int).")
        return make_aval(seeds.shape, KeyType(impl))

    def lower(self, b: Builder, x: IrValue, *, impl: Generator) -> IrValue:
        return impl.emit(b, impl.seed, x)


class Drawn(OfKeys, abstract=True):
    """Drawn by one of Threefry's two schemes: `partitionable` is the option when it was bound."""

    draw: Any       # (generator, words of keys, **params) -> draws

    def bind(self, *args: ArrayLike, partitionable: bool | None = None, **params: Hashable
             ) -> Array:
        if partitionable is None:
            partitionable = config.threefry_partitionable.value
        return ctx.trace.process(self, args, {**params, "partitionable": partitionable})

    def shown(self, eqn: OlympusprEqn) -> Params:
        return {k: v for k, v in eqn.params.items() if k != "partitionable" or not v}

    def lower(self, b: Builder, x: IrValue, *, partitionable: bool, **params: Hashable) -> IrValue:
        impl = _generator(b.avals_in[0])
        with config.threefry_partitionable(partitionable):
            return impl.emit(b, lambda k: self.draw(impl, random_unwrap_p.bind(k), **params), x)


class SplitKeys(Drawn):
    """Keys of shape k -> new keys of shape [*k, *shape]."""

    fusion = "long"
    pace = 20.0

    def infer(self, keys: ShapedArray, *, shape: Dims, partitionable: bool) -> ShapedArray:
        return make_aval((*_require_keys("random_split", keys).shape, *shape), keys.dtype)

    def draw(self, impl: Generator, data: Array, *, shape: Dims) -> Array:
        return impl.split(data, shape)


class FoldIn(OfKeys):
    """Keys and uint32 numbers -> new keys. An axis of one number serves all keys along it."""

    cells = staticmethod(reuse.read)
    fusion = "long"
    pace = 20.0

    def infer(self, keys: ShapedArray, numbers: ShapedArray) -> ShapedArray:
        _require_keys("random_fold_in", keys)
        fits = numbers.ndim == keys.ndim and all(
            n in (1, k) for n, k in zip(numbers.shape, keys.shape, strict=True))
        if numbers.dtype != U32 or not fits:
            raise TypeError(f"random_fold_in: keys {keys} and numbers {numbers} given; one uint32 "
                            "per key is required; convert with astype, and map with vmap.")
        return keys

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], **params: Hashable
             ) -> tuple[Array, int | None]:
        keys, numbers = args
        keys = to_front(axis, keys, dims[0])
        numbers = (expand_dims(numbers, (0,)) if dims[1] is None
                   else move_axis(numbers, dims[1], 0))
        return self.bind(keys, numbers), 0

    def lower(self, b: Builder, x: IrValue, y: IrValue) -> IrValue:
        impl = _generator(b.avals_in[0])
        return impl.emit(b, lambda k, n: impl.fold_in(random_unwrap_p.bind(k), n), x, y)


class RandomBits(Drawn):
    """Keys of shape k -> uint{bit_width}[*k, *shape], all bits random."""

    fusion = "long"
    pace = 4.0

    def infer(self, keys: ShapedArray, *, bit_width: int, shape: Dims, partitionable: bool
              ) -> ShapedArray:
        if bit_width not in _WIDTHS:
            raise TypeError(f"random_bits: bit_width {bit_width} given; one of {_WIDTHS} is "
                            "required.")
        shape = (*_require_keys("random_bits", keys).shape, *shape)
        return make_aval(shape, dtypes.as_dtype(f"uint{bit_width}"))

    def draw(self, impl: Generator, data: Array, *, bit_width: int, shape: Dims) -> Array:
        return impl.random_bits(data, bit_width, shape)


random_wrap_p = Wrap("random_wrap")
random_unwrap_p = Unwrap("random_unwrap")
random_seed_p = Seed("random_seed")
random_split_p = SplitKeys("random_split")
random_fold_in_p = FoldIn("random_fold_in")
random_bits_p = RandomBits("random_bits")


# Making keys -------------------------------------------------------------------------------------

def generator_of(name: str, impl: GeneratorLike, dtype: DTypeLike | None = None) -> Generator:
    """The generator that `impl`, or a key dtype, names; the default one for None."""
    if impl is not None and dtype is not None:
        raise ValueError(f"{name}: impl={impl!r} and dtype={dtype!r} given; they say the same; "
                         "give one of them.")
    asked = dtype if impl is None else impl
    if isinstance(asked, KeyType):
        return asked.impl
    if isinstance(asked, Generator):
        return asked
    named = config.default_prng_impl.value if asked is None else asked
    if not isinstance(named, str):
        raise TypeError(f"{name}: impl of unrecognized type {type(named).__name__} given; the name "
                        "of a generator is required.")
    generator = GENERATORS.get(named)
    if generator is None:
        raise ValueError(f"{name}: impl {asked!r} given; one of {', '.join(map(repr, GENERATORS))} "
                         "is required.")
    return generator


def _is_key(x: ArrayLike) -> TypeGuard[Array]:
    return isinstance(getattr(x, "dtype", None), KeyType)


def seeded(name: str, seed: ArrayLike, impl: Generator, scalar: bool = True) -> Array:
    """Keys of an integer, or of an array of them unless it must be a scalar."""
    if _is_key(seed):
        raise TypeError(f"{name}: {name} accepts a scalar seed, but was given a PRNG key: "
                        f"{seed.aval};\n  derive keys from keys with random.split or "
                        "random.fold_in.")
    if isinstance(seed, str):
        raise TypeError(f"{name}: the seed {seed!r} given; an integer is required;\n  make "
                        "one of a text with zlib.crc32(text.encode()).")
    if isinstance(seed, (int, np.integer, np.bool_)):
        seed = bool(seed) if isinstance(seed, np.bool_) else seed
        if not -2**63 <= seed < 2**64 or (isinstance(seed, int) and seed >= 2**63):
            raise OverflowError(f"{name}: seed {seed} given; an integer that fits 64 bits is "
                                "required.")
        value = np.asarray(seed, np.int64 if isinstance(seed, int) else None)
        seed = value.astype(dtypes.canonicalize_dtype(value.dtype))[()]
    seed = np.asarray(seed) if isinstance(seed, (list, tuple)) else seed
    aval = typeof(seed)
    if aval.shape and scalar:
        raise TypeError(f"{name}: {name} accepts a scalar seed, but was given an array of shape "
                        f"{aval.shape}; map the function over seeds with vmap.")
    if dtypes.scalar_kind(aval.dtype) not in "iub":
        raise TypeError(f"{name}: PRNG key seed must be an integer; got {aval}; convert it with "
                        "int.")
    offset = config.random_seed_offset.value
    if offset:
        seed = add(convert_element_type(seed, aval.dtype), offset)
    return random_seed_p.bind(seed, impl=impl)


def key(seed: int | ArrayLike, *, impl: GeneratorLike = None, dtype: DTypeLike | None = None
        ) -> Array:
    """A typed random key from an integer.

    Args:
      seed: integer of up to 64 bits (its lower 32 while x64 is off), or an integer scalar array.
      impl: name of the generator; None is the option `olympus_default_prng_impl`.
      dtype: a key dtype, instead of impl.
    Returns: key<fry>[].

    >>> olympus.random.key(7)
    Array((), dtype=key<fry>) overlaying:
    [0 7]
    """
    return seeded("key", seed, generator_of("key", impl, dtype))


def PRNGKey(seed: int | ArrayLike, *, impl: GeneratorLike = None) -> Array:
    """A raw random key, uint32[2], from an integer; `key` makes typed ones.

    It does, too, under the option `enable_custom_prng`.

    Args:
      seed: an integer, or a scalar array of one; the higher words are dropped with x64 off.
      impl: the generator's name; None is the default one, "threefry2x32".
    Returns: uint32[2]; the functions here take it where they take a typed key.

    >>> print(olympus.random.PRNGKey(7))
    [0 7]
    """
    made = seeded("PRNGKey", seed, generator_of("PRNGKey", impl))
    return made if config.enable_custom_prng.value else random_unwrap_p.bind(made)


@source.api_boundary       # here, because pickles of dtypes name it
def key_dtype(impl_spec: GeneratorLike = None) -> KeyType:
    """The dtype of keys of a generator, named or the default one.

    Args: impl_spec: a generator's name; None is the default one.
    Returns: A dtype, for `ShapeDtypeStruct` and `issubdtype`.

    >>> key_dtype()
    key<fry>
    """
    return KeyType(generator_of("key_dtype", impl_spec))


def wrap_key_data(key_bits_array: ArrayLike, *, impl: GeneratorLike = None,
                  dtype: DTypeLike | None = None) -> Array:
    """Typed keys of shape [...] from their words uint32[..., 2]; the inverse of `key_data`.

    Args:
      key_bits_array: the words, two per key.
      impl: a generator's name; None is the default one.
      dtype: the keys' dtype, in place of `impl`.

    >>> key = random.key(7)
    >>> bool(random.wrap_key_data(random.key_data(key)) == key)
    True
    """
    return random_wrap_p.bind(key_bits_array, impl=generator_of("wrap_key_data", impl, dtype))


def typed(keys: ArrayLike) -> Array:
    """Keys in typed form; raw key words are taken to be of the default generator."""
    if _is_key(keys):
        return keys
    if not hasattr(keys, "shape") or not hasattr(keys, "dtype"):
        raise TypeError(f"random key: a value of type {type(keys).__name__} given; a typed key, or "
                        "uint32[2] key words, is required;\n  make keys with random.key(seed).")
    wrapped = random_wrap_p.bind(keys, impl=generator_of("random key", None))
    if config.legacy_prng_key.value != "allow":
        message = (f"random key: raw key words {typeof(keys)} given, and the option "
                   f"olympus_legacy_prng_key is {config.legacy_prng_key.value!r}; make typed keys "
                   "with random.key(seed), or of these with random.wrap_key_data.")
        if config.legacy_prng_key.value == "error":
            raise ValueError(message)
        source.warn(message)
    return wrapped


def typed_scalar(name: str, key: ArrayLike) -> Array:
    """One key in typed form. ValueError for arrays of keys."""
    keys: Any = key if _is_key(key) else typed(key)
    shape = keys.aval.shape
    if shape:
        raise ValueError(f"{name} accepts a single key, but was given a key array of shape "
                         f"{shape};\n  map the function over keys with vmap.")
    return keys


def key_data(keys: ArrayLike) -> Array:
    """The words of typed keys of shape [...], as uint32[..., 2].

    Args: keys: typed keys, or raw ones, which stay.
    Returns: uint32[..., 2]; for storing keys, and `wrap_key_data`.

    >>> print(olympus.random.key_data(olympus.random.key(7)))
    [0 7]
    """
    return random_unwrap_p.bind(typed(keys))


def key_impl(keys: ArrayLike) -> str | Generator:
    """The name of the keys' generator, which `key` and `wrap_key_data` take as `impl`.

    Args: keys: typed or raw keys, any shape; raw ones are the default generator's.
    Returns: A str; a generator that is not one of ours as it is.

    >>> random.key_impl(random.key(0))
    'threefry2x32'
    """
    return _spec(_generator(typed(keys)))


def _as_given(like: ArrayLike, keys: Array) -> Array:
    return keys if _is_key(like) else random_unwrap_p.bind(keys)


def clone(key: ArrayLike) -> Array:
    """The same key, which counts as a new one for the check of key reuse.

    Args: key: typed or raw keys, any shape.
    Returns: Keys with the same words, in the form in which they were given.

    >>> key = random.key(0)
    >>> bool(random.clone(key) == key)
    True
    """
    return _as_given(key, random_clone_p.bind(typed(key)))


def split(key: ArrayLike, num: int | Sequence[int] = 2) -> Array:
    """Make new keys from a key, which must not be used again.

    Args:
      key: a single key.
      num: how many, or the shape of the array of keys.
    Returns: Keys of that shape, in the form of the given one: typed, or raw with the words last.

    >>> first, second = random.split(random.key(0))
    >>> print(random.randint(first, (3,), 0, 99), random.randint(second, (3,), 0, 99))
    [10 71 37] [26 61 79]
    """
    keys = typed_scalar("split", key)
    shape = canonical_shape((num,) if type(num) is int else num, "split")
    return _as_given(key, random_split_p.bind(keys, shape=shape))


def fold_in(key: ArrayLike, data: ArrayLike) -> Array:
    """A new key from a key and an integer below 2**32, such as a step or a position.

    Args:
      key: a single key.
      data: the integer, a scalar, which may be traced.
    Returns: A key, typed or raw as the given one.

    Raises OverflowError for Python numbers outside of uint32, ValueError for NaN and infinity;
    arrays are converted.

    >>> key = olympus.random.key(0)
    >>> bool(olympus.random.fold_in(key, 1) == olympus.random.fold_in(key, 2))
    False
    """
    keys = typed_scalar("fold_in", key)
    if isinstance(data, float):
        if not math.isfinite(data):
            raise ValueError(f"fold_in: {data} given; an integer is required.")
        data = int(data)
    if isinstance(data, int):
        if not 0 <= data < 2**32:
            raise OverflowError(f"fold_in: {data} given; an integer from 0 to 2**32 - 1 is "
                                "required; fold in the parts of a larger one in turn.")
        number: Any = np.uint32(data)
    else:
        aval = typeof(data)
        if aval.shape or _is_key(data):
            raise TypeError(f"fold_in: {aval} given; a scalar is required; map the function over "
                            "numbers with vmap.")
        number = convert_element_type(data, U32)
    return _as_given(key, random_fold_in_p.bind(keys, number))
