"""Buffers of a pipeline that outlive it: made once, and given to each run of a pipeline.

On a TPU a buffer has room for several blocks, so that the next one arrives while one is computed;
here copies are done at once, and the first place is always the one in use.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Sequence
from typing import Any, Self

from ..base.source import api_boundary
from ..base.typing import Array, PyTree, Reference
from ..numpy.refs import addupdate, get, set
from ..types import dtypes
from ..types.avals import make_aval
from ..types.shape import prod
from ..types.tree import tree_leaves
from ..types.tree_registry import register_dataclass
from .masked import load, store
from .pipeline import emit_pipeline, place_of
from .semaphores import semaphore_wait
from .specs import BlockSpec, Grid, MemoryRef, MemorySpace, SemaphoreType, Squeezed

_STATIC = {"static": True}      # the metadata of fields that are no leaves


class BufferType(enum.Enum):
    """What a pipeline does with a buffer: copy blocks in, out, both, or nothing.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> pltpu.BufferType.INPUT_OUTPUT.is_output
    True
    """

    INPUT = 1
    OUTPUT = 2
    INPUT_OUTPUT = 3
    MANUAL = 4

    @property
    def is_input(self) -> bool:
        """Whether blocks are copied in before a step."""
        return self in (BufferType.INPUT, BufferType.INPUT_OUTPUT)

    @property
    def is_output(self) -> bool:
        """Whether blocks are copied out after a step."""
        return self in (BufferType.OUTPUT, BufferType.INPUT_OUTPUT)


def _block_shape(spec: BlockSpec) -> tuple[int, ...]:
    """The shape of a block as the body sees it."""
    if spec.block_shape is None:
        raise ValueError(f"BufferedRef: {spec} given; a BlockSpec with a block shape is required.")
    return tuple([d if isinstance(d, int) else d.block_size
                  for d in spec.block_shape if d is not None and not isinstance(d, Squeezed)])


def _with_shape(spec: BlockSpec, shape: tuple[int, ...]) -> BlockSpec:
    """The spec, where it has no block shape with the whole reference as its block."""
    if spec.block_shape is not None:
        return spec
    return spec.replace(block_shape=shape, index_map=lambda *ids: (0,) * len(shape))


@register_dataclass
@dataclasses.dataclass(frozen=True)
class BufferedRef:
    """The buffer of one reference in a pipeline: scratch of a kernel, or of `pl.run_scoped`.

    A pytree of the types of its references, and in the kernel of the references: `window_ref`, a
    row of blocks, and the semaphores of its copies. The classmethods make one; a subclass may copy
    in another way by the methods `copy_in(src_ref, grid_indices)`, `wait_in`, `copy_out(dst_ref,
    grid_indices)` and `wait_out`, which a pipeline calls in each step.

    >>> from olympus.experimental import pallas as pl
    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> buffer = pltpu.BufferedRef.input(pl.BlockSpec((2, 4), lambda i: (i, 0)), onp.float32)
    >>> buffer.window_ref.shape, buffer.buffer_type.name
    ((2, 2, 4), 'INPUT')
    """

    _spec: BlockSpec = dataclasses.field(metadata=_STATIC)
    _buffer_type: BufferType = dataclasses.field(metadata=_STATIC)
    _buffer_count: int = dataclasses.field(metadata=_STATIC)
    _grid_rank: int | None = dataclasses.field(metadata=_STATIC)
    window_ref: Reference
    copy_in_slot: Any
    wait_in_slot: Any
    copy_out_slot: Any
    wait_out_slot: Any
    next_fetch: Any
    sem_recvs: Reference
    sem_sends: Reference
    tiling: Any = dataclasses.field(default=None, metadata=_STATIC)
    is_trivial_windowing: bool = dataclasses.field(default=False, metadata=_STATIC)
    has_allocated_buffer: bool = dataclasses.field(default=True, metadata=_STATIC)

    @classmethod
    def create(cls, spec: BlockSpec, dtype_or_type: PyTree, buffer_type: BufferType,
               buffer_count: int, grid_rank: int | None = None, use_lookahead: bool = False,
               source_memory_space: object = MemorySpace.ANY, tiling: object = None,
               is_trivial_windowing: bool = False) -> Self:
        """A buffer for blocks of a dtype, or of the dtype of a type."""
        if buffer_count < 1 or buffer_count > 2 and buffer_type.is_output:
            raise ValueError(f"BufferedRef: buffer_count={buffer_count} given; a positive number, "
                             "and for outputs 1 or 2, is required.")
        dtype = dtype_or_type if isinstance(dtype_or_type, type) else getattr(
            dtype_or_type, "dtype", dtype_or_type)
        aval = make_aval((buffer_count, *_block_shape(spec)), dtypes.as_dtype(dtype))
        own, out = buffer_type.is_input, buffer_type.is_output
        return cls(spec, buffer_type, buffer_count, grid_rank if use_lookahead else None,
                   MemoryRef(aval, spec.memory_space or MemorySpace.ANY), None, None, None, None,
                   None, SemaphoreType.DMA((buffer_count,)) if own else None,
                   SemaphoreType.DMA((buffer_count,)) if out else None,
                   tiling, is_trivial_windowing)

    @classmethod
    def input(cls, spec: BlockSpec, dtype_or_type: PyTree, buffer_count: int = 2,
              **kwargs: PyTree) -> Self:
        """A buffer of blocks that are read."""
        return cls.create(spec, dtype_or_type, BufferType.INPUT, buffer_count, **kwargs)

    @classmethod
    def output(cls, spec: BlockSpec, dtype_or_type: PyTree, buffer_count: int = 2,
               **kwargs: PyTree) -> Self:
        """A buffer of blocks that are written."""
        return cls.create(spec, dtype_or_type, BufferType.OUTPUT, buffer_count, **kwargs)

    @classmethod
    def input_output(cls, spec: BlockSpec, dtype_or_type: PyTree, buffer_count: int = 2,
                     **kwargs: PyTree) -> Self:
        """A buffer of blocks that are read and written."""
        return cls.create(spec, dtype_or_type, BufferType.INPUT_OUTPUT, buffer_count, **kwargs)

    spec = property(lambda self: self._spec, doc="The `BlockSpec`.")
    buffer_type = property(lambda self: self._buffer_type, doc="A `BufferType`.")
    buffer_count = property(lambda self: self._buffer_count, doc="For how many blocks it has room.")
    is_input = property(lambda self: self._buffer_type.is_input, doc="Whether blocks are read.")
    is_output = property(lambda self: self._buffer_type.is_output, doc="Whether they are written.")
    is_input_output = property(lambda self: self._buffer_type is BufferType.INPUT_OUTPUT,
                               doc="Whether they are both.")
    is_manual = property(lambda self: self._buffer_type is BufferType.MANUAL,
                         doc="Whether a pipeline copies nothing.")
    block_shape = property(lambda self: self._spec.block_shape, doc="The shape of a block.")
    compute_index = property(lambda self: self._spec.index_map, doc="The index map.")
    # Copies are done at once, so one slot is enough.
    current_copy_in_slot = current_wait_in_slot = property(lambda self: 0, doc="The place in use.")
    current_copy_out_slot = current_wait_out_slot = current_copy_in_slot

    @property
    def current_ref(self) -> Reference:
        """The reference to the block in use."""
        return self.window_ref.at[0]

    @property
    def _bytes(self) -> int:
        block = self.current_ref
        return prod(block.shape) * max(dtypes.itemsize_bits(block.dtype), 8) // 8

    def with_spec(self, spec: BlockSpec) -> Self:
        """The same buffer with another `BlockSpec`."""
        return dataclasses.replace(self, _spec=spec)

    def copy_in(self, src_ref: Reference, grid_indices: Sequence[Array]) -> None:
        """Copy the block of a step in."""
        set(self.current_ref, ..., load(src_ref, place_of(self.spec, src_ref, grid_indices)))
        addupdate(self.sem_recvs.at[0], ..., self._bytes)

    def wait_in(self, src_ref: Reference, grid_indices: Sequence[Array]) -> None:
        """Wait for the block that is copied in."""
        semaphore_wait(self.sem_recvs.at[0], self._bytes)

    def copy_out(self, dst_ref: Reference, grid_indices: Sequence[Array]) -> None:
        """Copy the block of a step out."""
        store(dst_ref, place_of(self.spec, dst_ref, grid_indices), get(self.current_ref))
        addupdate(self.sem_sends.at[0], ..., self._bytes)

    def wait_out(self, dst_ref: Reference, grid_indices: Sequence[Array]) -> None:
        """Wait for the block that is copied out."""
        semaphore_wait(self.sem_sends.at[0], self._bytes)


@api_boundary
def emit_pipeline_with_allocations(body: Callable[..., None], *, grid: Grid, in_specs: PyTree = (),
                                   out_specs: PyTree = ()
                                   ) -> tuple[Callable[..., None], Callable[..., PyTree]]:
    """A pipeline as `emit_pipeline` makes it, and a function that makes its buffers.

    Args: body, grid, in_specs, out_specs: as for `emit_pipeline`.
    Returns: The pipeline, and a function of the same references whose results, `BufferedRef`s, are
      types for `pl.run_scoped`. Several runs of the pipeline take these: `allocations=`.

    >>> def double(x, o):
    ...     o[...] = x[...] * 2
    >>> def kernel(x, o):
    ...     block = pl.BlockSpec((2,), lambda i: (i,))
    ...     run, make = pltpu.emit_pipeline_with_allocations(
    ...         double, grid=(2,), in_specs=[block], out_specs=[block])
    ...     pl.run_scoped(lambda buffers: run(x, o, allocations=buffers), make(x, o))
    >>> out = olympus.ShapeDtypeStruct((4,), onp.int32)
    >>> print(pl.pallas_call(kernel, out, interpret=True)(onp.arange(4)))
    [0 2 4 6]
    """
    ins, outs = tree_leaves(in_specs), tree_leaves(out_specs)

    def make(*refs: Reference) -> tuple[BufferedRef, ...]:
        if len(refs) != len(ins) + len(outs):
            raise ValueError(f"emit_pipeline_with_allocations: {len(refs)} references given for "
                             f"{len(ins) + len(outs)} specs; one for each is required.")
        kinds = [*[BufferedRef.input] * len(ins), *[BufferedRef.output] * len(outs)]
        return tuple([kind(_with_shape(spec, ref.shape), ref.dtype)
                      for kind, spec, ref in zip(kinds, [*ins, *outs], refs, strict=True)])

    return emit_pipeline(body, grid=grid, in_specs=in_specs, out_specs=out_specs), make
