"""Splash attention by kernels: attention with a static mask, whose empty blocks are skipped."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import numpy as np

from ..base.typing import Array, PyTree
from ..control_flow.remat import checkpoint_name
from ..jit.tracing import named_scope
from ..numpy.creation import asarray
from ..types.sharding import NamedSharding, PartitionSpec
from ..types.tree import tree_map
from ..types.tree_registry import register_pytree_node_class
from .attention_kernel import Blocks, Inputs, Masks, Options, attention, check_heads
from .logits import DEFAULT_MASK_VALUE, SegmentIds
from .mask_info import (
    MaskInfo, process_dynamic_mask, process_dynamic_mask_dkv, process_mask, process_mask_dkv,
)
from .masks import BoolArray, MultiHeadMask, NumpyMask


class QKVLayout(enum.IntEnum):
    """How a kernel for TPUs keeps an operand; the arrays are [..., length, dim] in any case.

    >>> from olympus.experimental.pallas.ops.tpu import splash_attention as splash
    >>> splash.QKVLayout.SEQ_MINOR.name
    'SEQ_MINOR'
    """

    HEAD_DIM_MINOR = enum.auto()
    SEQ_MINOR = enum.auto()


@dataclasses.dataclass(frozen=True, slots=True)
class BlockSizes:
    """The sizes of the blocks of splash attention: of its kernel, and of those of its cotangents.

    A kernel for TPUs computes with parts of `…_compute` keys; here it computes with whole blocks.
    `use_fused_bwd_kernel` leaves out the sizes of `…_dq`: the sizes of `…_dkv` serve for all
    cotangents.

    >>> from olympus.experimental.pallas.ops.tpu import splash_attention as splash
    >>> splash.BlockSizes(block_q=128, block_kv=256).block_kv_compute
    256
    """

    block_q: int
    block_kv: int
    block_kv_compute: int | None = None
    block_q_dkv: int | None = None
    block_kv_dkv: int | None = None
    block_kv_dkv_compute: int | None = None
    block_q_dq: int | None = None
    block_kv_dq: int | None = None
    use_fused_bwd_kernel: bool = False
    q_layout: QKVLayout = QKVLayout.HEAD_DIM_MINOR
    k_layout: QKVLayout = QKVLayout.HEAD_DIM_MINOR
    v_layout: QKVLayout = QKVLayout.HEAD_DIM_MINOR

    def __post_init__(self) -> None:
        if self.block_kv_compute is None:
            object.__setattr__(self, "block_kv_compute", self.block_kv)
        if self.block_kv_dkv_compute is None:
            object.__setattr__(self, "block_kv_dkv_compute", self.block_kv_dkv)
        if self.use_fused_bwd_kernel and not (self.block_q_dq is self.block_kv_dq is None):
            raise ValueError("BlockSizes: block_q_dq or block_kv_dq given with a fused kernel: "
                             "Block sizes for dq kernel are not needed; leave them out.")

    @property
    def has_backward_blocks(self) -> bool:
        """Whether the sizes of the kernels of cotangents are given."""
        sizes = (self.block_q_dkv, self.block_kv_dkv, self.block_kv_dkv_compute)
        if not self.use_fused_bwd_kernel:
            sizes += (self.block_q_dq, self.block_kv_dq)
        return None not in sizes

    @classmethod
    def get_default(cls) -> BlockSizes:
        """Blocks of 128."""
        return cls(128, 128, 128, 128, 128, 128, 128, 128)


@register_pytree_node_class
class SplashAttentionKernel:
    """Attention with a mask, a function of q, k and v; a pytree of the mask's tables.

    q: [heads, queries, dim]; k, v: [kv_heads, keys, dim], where kv_heads divides heads, and [keys,
    dim] for one that `make_splash_mqa` made. `segment_ids` (`SegmentIds` of [length]) and `sinks`
    [heads] may follow. It can be passed to `jit` and `shard_map`, mapped and differentiated.

    >>> from olympus.experimental.pallas.ops.tpu import splash_attention as splash
    >>> mask = splash.MultiHeadMask([splash.CausalMask((128, 128))])
    >>> attend = splash.make_splash_mha_single_device(mask, interpret=True)
    >>> x = onp.ones((1, 128, 8))
    >>> attend(x, x, x).shape
    (1, 128, 8)
    """

    def __init__(self, fwd_mask_info: MaskInfo, dq_mask_info: MaskInfo | None,
                 dkv_mask_info: MaskInfo | None, **kwargs: PyTree) -> None:
        self.fwd_mask_info, self.dq_mask_info = fwd_mask_info, dq_mask_info
        self.dkv_mask_info, self.kwargs = dkv_mask_info, kwargs

    def __call__(self, q: Array, k: Array, v: Array, segment_ids: SegmentIds | None = None,
                 sinks: Array | None = None) -> PyTree:
        options = _options(self.kwargs)
        q, k, v = [x[None] for x in (q, k, v)]
        if self.kwargs["is_mqa"]:
            k, v = k[None], v[None]
        check_heads("splash attention", q, k, v)
        q_ids, kv_ids = (None, None) if segment_ids is None else [x[None] for x in segment_ids]
        dynamic = "dynamic" if self.fwd_mask_info.is_dynamic_mask else "static"
        with named_scope(f"{dynamic}_sparsity_splash"):
            out = attention(Inputs(q, k, v, None, q_ids, kv_ids, sinks), self._tables, options)
        return (out[0][0], (out[1][0],)) if options.residuals else out[0]

    def manual_sharding_spec(self, sharding: NamedSharding) -> SplashAttentionKernel:
        """The `PartitionSpec`s of the kernel for `shard_map`, as a kernel.

        Args:
          sharding: of (heads, queries); the mask must be made for as many shards.

        Returns:
          A kernel whose leaves are `PartitionSpec`s.

        Raises ValueError for a sharding that does not divide the mask's blocks.
        """
        spec = sharding.spec
        if len(spec) != 2:
            raise ValueError(f"manual_sharding_spec: {spec} given; axes for heads and queries, two "
                             "entries, are required.")
        info = self.fwd_mask_info
        try:
            sharding.shard_shape(info.block_mask.shape)
        except ValueError as error:
            raise ValueError(
                f"manual_sharding_spec: {spec} given for tables of {info.block_mask.shape} blocks: "
                "The sharding must divide the mask blocks evenly between devices.") from error
        every = MaskInfo(spec, spec, spec, spec if info.is_dynamic_mask else PartitionSpec(),
                         PartitionSpec(spec[1]))
        specs = MaskInfo(*[None if x is None else s for s, x in zip(every[:5], info[:5],
                                                                   strict=True)])
        return SplashAttentionKernel(
            specs, *[x and specs for x in (self.dq_mask_info, self.dkv_mask_info)], **self.kwargs)

    def tree_flatten(self) -> tuple[PyTree, PyTree]:
        """The tables; whether the mask was an array, and the options."""
        return tuple(self._tables), (self.fwd_mask_info.is_dynamic_mask, *self.kwargs.items())

    @classmethod
    def tree_unflatten(cls, aux: Sequence[PyTree],
                       values: Sequence[MaskInfo | None]) -> SplashAttentionKernel:
        """The kernel of tables and options."""
        dynamic, *options = aux
        forward, dq, dkv = [x if x is None else MaskInfo(*x[:5], dynamic) for x in values]
        assert forward is not None
        return cls(forward, dq, dkv, **dict(options))

    @property
    def _tables(self) -> Masks:
        infos = self.fwd_mask_info, self.dq_mask_info, self.dkv_mask_info
        return Masks(*[x if x is None else x._replace(is_dynamic_mask=None) for x in infos])


def _options(arguments: Mapping[str, PyTree]) -> Options:
    """The options of the attention kernel."""
    sizes, name = arguments["block_sizes"], arguments["residual_checkpoint_name"]
    dkv = dq = None
    if sizes.has_backward_blocks:
        dkv = Blocks(sizes.block_q_dkv, sizes.block_kv_dkv)
        dq = dkv if sizes.use_fused_bwd_kernel else Blocks(sizes.block_q_dq, sizes.block_kv_dq)
    return Options(
        Blocks(sizes.block_q, sizes.block_kv), dq, dkv, 1.0, arguments["attn_logits_soft_cap"],
        arguments["mask_value"], arguments["mask_function"], arguments["save_residuals"],
        None if name is None else partial(checkpoint_name, name=name), arguments["interpret"])


#: whether a mask is static -> what makes its tables, for queries and for keys
_TABLES: Mapping[bool, tuple[Callable[..., PyTree], Callable[..., PyTree]]] = MappingProxyType({
    True: (process_mask, process_mask_dkv),
    False: (process_dynamic_mask, process_dynamic_mask_dkv)})


def _make(mask: MultiHeadMask | BoolArray | Array, *, is_mqa: bool, head_shards: int,
          q_seq_shards: int, block_sizes: BlockSizes | None = None, save_residuals: bool = False,
          mask_value: float = DEFAULT_MASK_VALUE, attn_logits_soft_cap: float | None = None,
          downcast_smem_data: bool = True, residual_checkpoint_name: str | None = None,
          interpret: bool = False) -> SplashAttentionKernel:
    """The kernel of attention with a mask.

    Args:
      mask: [heads, queries, keys]: a `MultiHeadMask`, a NumPy array of bools, or an array that may
        be traced, all of whose blocks are kept.
      is_mqa: whether all heads read one head of keys and values.
      head_shards, q_seq_shards: over how many devices heads and queries will be spread.
      block_sizes: sizes of blocks, which divide queries and keys; 128 by default.
      save_residuals: return also (logsumexp,), float32[heads, queries]; then there is no
        derivative.
      mask_value: the logit of a key that a query does not look at.
      attn_logits_soft_cap: logits are cap tanh(logits / cap).
      downcast_smem_data: whether tables have the smallest integers.
      residual_checkpoint_name: the name under which policies of `checkpoint` know what is kept for
        cotangents.
      interpret: run the kernels as compiled loops; nothing else can be done with them here.

    Raises ValueError for a mask of another rank, and sizes that do not divide.

    >>> import olympus.numpy as onp
    >>> from olympus.experimental.pallas.ops.tpu import splash_attention as splash
    >>> mask = splash.MultiHeadMask([splash.LocalMask((8, 8), (2, 0), 0)] * 2)
    >>> attend = splash.make_splash_mqa_single_device(
    ...     mask, block_sizes=splash.BlockSizes(4, 4), interpret=True)
    >>> attend(onp.ones((2, 8, 4)), onp.ones((8, 4)), onp.ones((8, 4))).shape
    (2, 8, 4)
    """
    if len(mask.shape) != 3:
        raise ValueError(f"make_splash_mha: Unexpected mask shape: {mask.shape} given; [heads, "
                         "queries, keys] is required.")
    if isinstance(mask, np.ndarray):
        mask = MultiHeadMask([NumpyMask(head) for head in mask])
    sizes = BlockSizes.get_default() if block_sizes is None else block_sizes
    for_rows, for_columns = _TABLES[isinstance(mask, MultiHeadMask)]
    shared = {"downcast_smem_data": downcast_smem_data, "head_shards": head_shards,
              "q_seq_shards": q_seq_shards}
    forward, rule = for_rows(mask, (sizes.block_q, sizes.block_kv), **shared)
    dq = dkv = None
    if sizes.has_backward_blocks:
        fused = sizes.use_fused_bwd_kernel
        if not fused:
            dq, _ = for_rows(mask, (sizes.block_q_dq, sizes.block_kv_dq), **shared)
        dkv, _ = for_columns(mask, (sizes.block_q_dkv, sizes.block_kv_dkv), **shared,
                             shrink_grid=not fused)
    return SplashAttentionKernel(
        *tree_map(_array, (forward, dq, dkv)), block_sizes=sizes, is_mqa=is_mqa,
        save_residuals=save_residuals, mask_value=mask_value,
        attn_logits_soft_cap=attn_logits_soft_cap,
        residual_checkpoint_name=residual_checkpoint_name, mask_function=rule, interpret=interpret)


def _array(x: PyTree) -> PyTree:
    return x if isinstance(x, bool) else asarray(x)


make_splash_mha = partial(_make, is_mqa=False)
make_splash_mqa = partial(_make, is_mqa=True)
make_splash_mha_single_device = partial(_make, is_mqa=False, head_shards=1, q_seq_shards=1)
make_splash_mqa_single_device = partial(_make, is_mqa=True, head_shards=1, q_seq_shards=1)
