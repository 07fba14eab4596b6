"""Custom calls whose program on one device Python writes while XLA partitions a module."""

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from olympus._src.base.lib.arrays import HloSharding
from olympus._src.base.lib.loading import _jax

PARTITIONED_CALL = "CustomSPMDPartitioning"


class WholeArray(NamedTuple):
    """An operand or result of such a call: all of it, and how XLA would cut it, if it says."""

    shape: tuple[int, ...]
    dtype: np.dtype
    tiling: Any


Arrays = Sequence[WholeArray]
Answer = Callable[[Arrays, Arrays], tuple[bytes, list[Any], list[Any]]]
_calls: weakref.WeakValueDictionary[bytes, Answer] = weakref.WeakValueDictionary()


def partitioner_key(answer: Answer) -> str:
    """Return the `backend_config` of a call whose parts `answer(operands, results)` makes.

    It returns the module for one device as bytecode, and HloShardings of operands and of results.
    It must live until the module is compiled.
    """
    _register()
    key = str(id(answer))
    _calls[key.encode()] = answer
    return key


@functools.cache
def _register() -> None:
    _jax.register_custom_call_partitioner(
        PARTITIONED_CALL, _user_sharding, _partition, _from_operands,
        can_side_effecting_have_replicated_sharding=True,
    )


def _user_sharding(sharding: object, shape: object, key: bytes) -> object:
    return sharding  # Shardy has settled it


def _from_operands(shapes: object, shardings: object, result: object, key: bytes) -> object:
    return HloSharding.replicate()  # asked of GSPMD's propagation only


def _whole_array(shape: Any, sharding: object) -> WholeArray:
    return WholeArray(tuple(shape.dimensions()), shape.numpy_dtype(), sharding)


def _partition(shapes: Sequence[object], shardings: Sequence[object], result: Any, tiling: Any,
               key: bytes) -> tuple[bytes, list[Any], Any]:
    several = result.is_tuple()
    parts = result.tuple_shapes() if several else [result]
    tilings = tiling.tuple_elements() if several else [tiling]
    code, ins, outs = _calls[key](
        list(map(_whole_array, shapes, shardings)), list(map(_whole_array, parts, tilings))
    )
    return code, ins, HloSharding.tuple_sharding(result, outs) if several else outs[0]
