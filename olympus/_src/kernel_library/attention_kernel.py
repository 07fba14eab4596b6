"""The kernel of attention, block by block, and the kernels of its cotangents.

    for each block of queries              top, total, sum = -inf, 0, 0
      for each block of keys it looks at   p = exp(logits - top)
                                           total, sum = total + p 1, sum + p v
                                           (both are rescaled where top grows)
      out = sum / total                    logsumexp = top + log(total)

Cotangents keep no weights: p = exp(logits - logsumexp) is computed again. With dp = ct v^T the
logits' cotangent is p (dp - sum(out ct)).

All work on [batch, heads, length, dim], where query heads may share the heads of keys. A
`MaskInfo` has the blocks to visit, and the keys of a block that a query looks at; without one a
query looks at all keys. Methods: Dao et al. 2022, FlashAttention; Milakov and Gimelshein 2018.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..base.typing import Array, ArrayLike, PyTree, Reference
from ..custom.vjp import custom_vjp
from ..jit.jit import jit
from ..kernels.call import pallas_call
from ..kernels.control import when
from ..kernels.grid import program_id
from ..kernels.specs import BlockSpec, MemoryRef, MemorySpace, PrefetchScalarGridSpec
from ..lax.creation import broadcasted_iota
from ..numpy.arithmetic import maximum, square
from ..numpy.creation import asarray, full, zeros
from ..numpy.elementary import exp, log
from ..numpy.products import dot
from ..numpy.selection import where
from ..numpy.trigonometry import tanh
from ..types.avals import make_aval
from ..types.dtypes import as_dtype
from ..types.shape import definitely_equal, floor_div, mod
from .logits import DEFAULT_MASK_VALUE
from .mask_info import MaskInfo

_F32 = as_dtype("float32")


class Inputs(NamedTuple):
    """The operands of the logits, and the values. None stands for an operand that is absent.

    Attributes:
      q, k, v: [batch, heads, queries, dim], [batch, kv_heads, keys, dim] twice.
      bias: added to the products, [batch, heads, queries, keys].
      q_ids, kv_ids: the segments of queries and keys, integers [batch, length].
      sinks: for each head the logit of one more key, whose value is 0.
    """

    q: Any
    k: Any
    v: Any
    bias: Any = None
    q_ids: Any = None
    kv_ids: Any = None
    sinks: Any = None


class Blocks(NamedTuple):
    """The sizes of blocks of queries and keys of one kernel."""

    q: int
    k: int


class Options(NamedTuple):
    """The options of the logits: cap tanh((q k^T + bias) scale / cap), `mask_value` where masked.

    Attributes:
      forward, for_queries, for_keys: the blocks of the three kernels; without the latter two there
        is no derivative.
      rule: computes a mask from places of queries and keys, or None.
      residuals: return also the logarithm of the sum of exponentials, and the largest logit,
        [batch, heads, queries] each; then there is no derivative.
      named: a function applied to the results that are kept for cotangents.
    """

    forward: Blocks
    for_queries: Blocks | None = None
    for_keys: Blocks | None = None
    scale: float = 1.0
    cap: float | None = None
    mask_value: float = DEFAULT_MASK_VALUE
    rule: Callable[[Array, Array], Array] | None = None
    residuals: bool = False
    named: Callable[[PyTree], PyTree] | None = None
    interpret: object = False


class Masks(NamedTuple):
    """The masks of the three kernels; the last has blocks of queries side by side, for each block
    of keys, and its partial blocks are transposed. It serves for queries if `for_queries` is None.
    """

    forward: MaskInfo | None = None
    for_queries: MaskInfo | None = None
    for_keys: MaskInfo | None = None


def causal_masks(queries: int, keys: int, options: Options) -> tuple[Masks, Options]:
    """The masks, and the options with their rule, by which query i looks at keys up to i."""
    def info(blocks: Blocks | None) -> MaskInfo | None:
        if blocks is None:
            return None
        first = np.arange(0, queries, blocks.q)[:, None], np.arange(0, keys, blocks.k)[None]
        last = first[0] + blocks.q - 1, first[1] + blocks.k - 1
        kinds = np.where(last[1] <= first[0], 2, np.where(first[1] <= last[0], 1, 0))
        return MaskInfo(None, None, kinds[None].astype(np.int8), None, np.arange(queries))

    masks = Masks(*map(info, (options.forward, options.for_queries, options.for_keys)))
    return masks, options._replace(rule=_up_to)


def _up_to(queries: Array, keys: Array) -> Array:
    return keys <= queries


def check_heads(name: str, q: Array, k: Array, v: Array) -> None:
    """ValueError for shapes [batch, heads, length, dim] that do not fit."""
    fit = q.ndim == k.ndim == v.ndim == 4 and all(map(definitely_equal, k.shape[:3], v.shape)) and (
        definitely_equal(q.shape[0], k.shape[0]) and definitely_equal(q.shape[3], k.shape[3]))
    if not fit or mod(q.shape[1], k.shape[1]):
        raise ValueError(f"{name}: q {q.aval}, k {k.aval} and v {v.aval} given; one batch, one "
                         "dimension of queries and keys, as many values as keys, and heads of keys "
                         "that divide the heads of queries are required.")


class _Plan:
    """The grid of one kernel, (batch, heads, blocks, the other blocks), and its block specs.

    by_keys: whether blocks of keys are outside, blocks of queries inside.
    """

    def __init__(self, x: Inputs, info: MaskInfo | None, blocks: Blocks, by_keys: bool,
                 transposed: bool) -> None:
        batch, self.heads, queries, self.dim = x.q.shape
        keys, self.dim_v = x.v.shape[2:]
        for what, n, by in (("queries", queries, blocks.q), ("keys", keys, blocks.k)):
            if by < 1 or mod(n, by):
                raise ValueError(f"attention: {n} {what} in blocks of {by} given; a block size "
                                 "that divides them is required.")
        rows, columns = floor_div(queries, blocks.q), floor_div(keys, blocks.k)
        self.by_keys, self.transposed, self.blocks = by_keys, transposed, blocks
        self.group = floor_div(self.heads, x.k.shape[1])
        self.info, inner = info, rows if by_keys else columns
        self.outer_axis, self.inner_axis = (2, 1) if by_keys else (1, 2)
        if info is not None:
            table, outer = info.block_mask, columns if by_keys else rows
            fits = definitely_equal(table.shape[self.outer_axis], outer)
            if table.shape[0] not in (1, self.heads) or not fits:
                raise ValueError(
                    f"attention: a mask of {table.shape[0]} heads with {outer} blocks of "
                    f"{'keys' if by_keys else 'queries'} given for {self.heads} heads and "
                    f"{table.shape[self.outer_axis]}; the mask's shape must be the operands'.")
            inner = table.shape[self.inner_axis]
        self.grid = batch, self.heads, columns if by_keys else rows, inner
        self.steps = inner

    @property
    def tables(self) -> Sequence[Array | None]:
        """The tables that index maps read."""
        info = self.info
        return () if info is None else tuple([
            None if t is None else t.astype(np.int32)
            for t in (info.block_mask, info.data_next, info.mask_next)])

    def _entry(self, tables: Sequence[Reference], k: int, h: Array, i: Array, j: Array) -> Array:
        """The entry of a table for a step: of the head's own mask, or of the only one."""
        head = 0 if definitely_equal(tables[k].shape[0], 1) else h
        return tables[k][(head, j, i) if self.by_keys else (head, i, j)]

    def kind(self, tables: Sequence[Reference]) -> Array:
        """0 for an empty block, 1 for a partial one, 2 for a full one."""
        return self._entry(tables, 0, *map(program_id, (1, 2, 3))) if tables else asarray(2)

    def place(self, h: Array, i: Array, j: Array, tables: Sequence[Reference]
              ) -> tuple[Array, Array]:
        """The numbers of the step's blocks of queries and of keys."""
        j = j if not tables or tables[1] is None else self._entry(tables, 1, h, i, j)
        return (j, i) if self.by_keys else (i, j)

    def spec(self, shape: Sequence[int | None], at: Callable[..., Sequence[ArrayLike]]
             ) -> BlockSpec:
        """The spec of a block at `at(batch, head, block of queries, block of keys)`."""
        return BlockSpec(shape, lambda b, h, i, j, tables: tuple(
            at(b, h, *self.place(h, i, j, tables))))

    @property
    def of_queries(self) -> Callable[[int], BlockSpec]:
        """The spec of an array [batch, heads, queries, n] for an n."""
        return lambda n: self.spec((None, None, self.blocks.q, n), lambda b, h, i, j: (b, h, i, 0))

    @property
    def of_rows(self) -> BlockSpec:
        """The spec of an array [batch, heads, queries]."""
        return self.spec((None, None, self.blocks.q), lambda b, h, i, j: (b, h, i))

    def of_keys(self, n: int, group: int) -> BlockSpec:
        """The spec of an array [batch, heads / group, keys, n]."""
        return self.spec((None, None, self.blocks.k, n), lambda b, h, i, j: (
            b, h if group == 1 else floor_div(h, group), j, 0))

    @property
    def of_pairs(self) -> BlockSpec:
        """The spec of an array [batch, heads, queries, keys]."""
        return self.spec((None, None, *self.blocks), lambda b, h, i, j: (b, h, i, j))

    def specs(self, x: Inputs) -> Inputs:
        """The specs of the inputs."""
        all_specs = Inputs(
            self.of_queries(self.dim), self.of_keys(self.dim, self.group),
            self.of_keys(self.dim_v, self.group), self.of_pairs,
            self.spec((None, self.blocks.q), lambda b, h, i, j: (b, i)),
            self.spec((None, self.blocks.k), lambda b, h, i, j: (b, j)),
            self.spec((None,), lambda b, h, i, j: (h,)))
        return Inputs(*[s if v is not None else None for s, v in zip(all_specs, x, strict=True)])

    @property
    def mask(self) -> tuple[PyTree, PyTree]:
        """The arrays of a mask that a kernel reads in blocks, and their specs."""
        if self.info is None:
            return (None, None), (None, None)
        partial_blocks, positions = self.info.partial_mask_blocks, self.info.q_sequence
        if partial_blocks is not None:
            partial_blocks = partial_blocks.reshape(-1, *partial_blocks.shape[-2:])
        specs = (
            None if partial_blocks is None else BlockSpec(
                (None, *partial_blocks.shape[1:]),
                lambda b, h, i, j, tables: (self._entry(tables, 2, h, i, j), 0, 0)),
            None if positions is None else self.spec((self.blocks.q,), lambda b, h, i, j: (i,)))
        return (partial_blocks, positions), specs

    def logits(self, options: Options, tables: Sequence[Reference], x: Inputs, mask: PyTree
               ) -> tuple[Array, ArrayLike]:
        """The block's logits, and their derivatives with respect to products and bias."""
        raw = dot(_floats(x.q), _floats(x.k).T)
        if x.bias is not None:
            raw = raw + _floats(x.bias)
        raw, slope = raw * options.scale, options.scale
        if options.cap is not None:
            level = tanh(raw / options.cap)
            raw, slope = options.cap * level, slope * (1 - square(level))
        seen: list[PyTree] = []
        if x.q_ids is not None:
            seen.append(x.q_ids[...][:, None] == x.kv_ids[...][None, :])
        blocks, positions = mask
        if blocks is not None:
            block = blocks[...].T if self.transposed else blocks[...]
            seen.append(block | (self.kind(tables) == 2))
        if options.rule is not None and positions is not None:
            _, column = self.place(program_id(1), program_id(2), program_id(3), tables)
            columns = broadcasted_iota(np.int32, tuple(self.blocks), 1) + column * self.blocks.k
            seen.append(options.rule(positions[...][:, None], columns))
        for which in seen:
            raw = where(which, raw, options.mask_value)
        return raw, slope

    def run(self, kernel: Callable[..., None], options: Options, x: Inputs, more: Sequence[Array],
            more_specs: Sequence[BlockSpec], outs: Sequence[tuple[Sequence[int], np.dtype]],
            out_specs: Sequence[BlockSpec], scratch: Sequence[MemoryRef], name: str
            ) -> Sequence[Array]:
        """The kernel's outputs: it gets tables, inputs, the mask's arrays, more inputs, outputs and
        float32 scratch. Outputs begin as 0 where the inner loop begins."""
        mask, mask_specs = self.mask
        spec = PrefetchScalarGridSpec(
            1, self.grid, [self.specs(x), mask_specs, *more_specs], list(out_specs), scratch)
        call = pallas_call(partial(kernel, self, options), [make_aval(tuple(shape), dtype)
                                                            for shape, dtype in outs],
                           grid_spec=spec, interpret=options.interpret, name=name)
        return call(self.tables, x, mask, *more)


def _floats(x: Reference) -> Array:
    return x[...].astype(_F32)


class Running(NamedTuple):
    """References to a softmax of logits that come block by block, and to the values it weighs.

    top, total: float32[rows], the largest logit so far, and the sum of exp(logits - top).
    acc: float32[rows, dim], the sum of exp(logits - top) values.
    """

    top: Reference
    total: Reference
    acc: Reference

    @staticmethod
    def types(rows: int, dim: int) -> list[MemoryRef]:
        """The types of the references."""
        return [MemoryRef(make_aval(shape, _F32), MemorySpace.ANY)
                for shape in ((rows,), (rows,), (rows, dim))]

    def start(self, top: ArrayLike, total: ArrayLike = 0) -> None:
        """Begin without a block, or (`total` 1) with one logit `top` whose value is 0."""
        self.top[...] = full(self.top.shape, top, _F32)
        self.total[...] = full(self.total.shape, total, _F32)
        self.acc[...] = zeros(self.acc.shape, _F32)

    def add(self, logits: Array, values: Array) -> None:
        """Take in a block of logits [rows, keys] and their values [keys, dim]."""
        top = maximum(self.top[...], logits.max(-1))
        weights, less = exp(logits - top[:, None]), exp(self.top[...] - top)
        self.top[...] = top
        self.total[...] = self.total[...] * less + weights.sum(-1)
        self.acc[...] = self.acc[...] * less[:, None] + dot(weights, values)

    @property
    def result(self) -> Array:
        """The weighted values; 0 for rows without a block."""
        return self.acc[...] / where(self.total[...] == 0, 1, self.total[...])[:, None]


def _forward_kernel(plan: _Plan, options: Options, tables: Sequence[Reference], x: Inputs,
                    mask: PyTree, out: Reference, lse: Reference, top: Reference,
                    *scratch: Reference) -> None:
    running = Running(*scratch)

    @when(program_id(3) == 0)
    def _() -> None:
        if x.sinks is None:
            running.start(options.mask_value)
        else:
            running.start(x.sinks[...], 1)

    @when(plan.kind(tables) > 0)
    def _() -> None:
        running.add(plan.logits(options, tables, x, mask)[0], _floats(x.v))

    @when(program_id(3) == plan.steps - 1)
    def _() -> None:
        out[...] = running.result.astype(out.dtype)
        lse[...] = running.top[...] + log(running.total[...])
        top[...] = running.top[...]


def _cotangent(plan: _Plan, options: Options, tables: Sequence[Reference], x: Inputs, mask: PyTree,
               ct: Reference, lse: Reference, mean: Reference) -> tuple[Array, Array]:
    """The block's weights, and the cotangents of its products."""
    logits, slope = plan.logits(options, tables, x, mask)
    weights = exp(logits - lse[...][:, None])
    return weights, weights * (dot(_floats(ct), _floats(x.v).T) - mean[...][:, None]) * slope


def _queries_kernel(plan: _Plan, options: Options, tables: Sequence[Reference], x: Inputs,
                    mask: PyTree, ct: Reference, lse: Reference, mean: Reference, dq: Reference,
                    *rest: Reference) -> None:
    *dbias, acc = rest

    @when(program_id(3) == 0)
    def _() -> None:
        acc[...] = zeros(acc.shape, _F32)

    for out in dbias:       # blocks that no step visits keep these zeros
        out[...] = zeros(out.shape, out.dtype)

    @when(plan.kind(tables) > 0)
    def _() -> None:
        _, products = _cotangent(plan, options, tables, x, mask, ct, lse, mean)
        acc[...] += dot(products, _floats(x.k))
        for out in dbias:
            out[...] = products.astype(out.dtype)

    @when(program_id(3) == plan.steps - 1)
    def _() -> None:
        dq[...] = acc[...].astype(dq.dtype)


def _keys_kernel(plan: _Plan, options: Options, tables: Sequence[Reference], x: Inputs,
                 mask: PyTree, ct: Reference, lse: Reference, mean: Reference, dk: Reference,
                 dv: Reference) -> None:
    @when(program_id(3) == 0)
    def _() -> None:
        dk[...] = zeros(dk.shape, _F32)
        dv[...] = zeros(dv.shape, _F32)

    @when(plan.kind(tables) > 0)
    def _() -> None:
        weights, products = _cotangent(plan, options, tables, x, mask, ct, lse, mean)
        dv[...] += dot(weights.T, _floats(ct))
        dk[...] += dot(products.T, _floats(x.q))


def _forward(x: Inputs, masks: Masks, options: Options) -> Sequence[Array]:
    """The output, the logarithm of the sum of exponentials, the largest logit."""
    plan = _Plan(x, masks.forward, options.forward, False, False)
    shape = x.q.shape[:3]
    return plan.run(
        _forward_kernel, options, x, (), (),
        [((*shape, plan.dim_v), x.q.dtype), (shape, _F32), (shape, _F32)],
        [plan.of_queries(plan.dim_v), plan.of_rows, plan.of_rows],
        Running.types(plan.blocks.q, plan.dim_v), "attention")


@partial(custom_vjp, nondiff_argnums=(2,))
def _attention(x: Inputs, masks: Masks, options: Options) -> PyTree:
    results = _forward(x, masks, options)
    return results if options.residuals else results[0]


def _attention_fwd(x: Inputs, masks: Masks, options: Options) -> PyTree:
    if options.residuals:
        raise NotImplementedError("attention: residuals given, which have no derivative. "
                                  "Higher-order AD not supported; ask for the output alone.")
    if options.for_keys is None:
        raise NotImplementedError("attention: no block sizes for the kernels of cotangents given; "
                                  "set all of them in BlockSizes.")
    named_outs = _forward(x, masks, options)[:2]
    out, lse = named_outs if options.named is None else options.named(named_outs)
    return out, (x, masks, out, lse)


def _attention_bwd(options: Options, residuals: PyTree, ct: Array) -> PyTree:
    x, masks, out, lse = residuals
    mean = (out.astype(_F32) * ct.astype(_F32)).sum(-1)
    assert options.for_keys is not None     # the forward rule has checked it
    table, shared = masks.for_queries, False
    if table is None and masks.for_keys is not None:    # its tables have all blocks, in order
        table, shared = masks.for_keys._replace(data_next=None), True
    plan = _Plan(x, table, options.for_queries or options.for_keys, False, shared)
    bias = x.bias is not None
    dq, *dbias = plan.run(
        _queries_kernel, options, x, (ct, lse, mean),
        (plan.of_queries(plan.dim_v), plan.of_rows, plan.of_rows),
        [(x.q.shape, x.q.dtype), *([(x.bias.shape, x.bias.dtype)] if bias else ())],
        [plan.of_queries(plan.dim), *([plan.of_pairs] if bias else ())],
        Running.types(plan.blocks.q, plan.dim)[2:], "attention_for_queries")
    plan = _Plan(x, masks.for_keys, options.for_keys, True, True)
    batch, kv_heads, keys, _ = x.k.shape
    dk, dv = plan.run(
        _keys_kernel, options, x, (ct, lse, mean),
        (plan.of_queries(plan.dim_v), plan.of_rows, plan.of_rows),
        [((batch, plan.heads, keys, n), _F32) for n in (plan.dim, plan.dim_v)],
        [plan.of_keys(plan.dim, 1), plan.of_keys(plan.dim_v, 1)], (), "attention_for_keys")
    dk, dv = [d.reshape(batch, kv_heads, plan.group, *d.shape[2:]).sum(2) for d in (dk, dv)]
    dsinks = None
    if x.sinks is not None:
        share = exp(x.sinks.astype(_F32)[:, None] - lse)
        dsinks = -(share * mean).sum((0, 2)).astype(x.sinks.dtype)
    return Inputs(dq, dk.astype(x.k.dtype), dv.astype(x.v.dtype), dbias[0] if bias else None, None,
                  None, dsinks), None


_attention.defvjp(_attention_fwd, _attention_bwd)


@partial(jit, static_argnames=("options",))
def attention(x: Inputs, masks: Masks, options: Options) -> PyTree:
    """Attention by kernels, [batch, heads, queries, dim] of the queries' dtype."""
    return _attention(x, masks, options)
