"""ragged_all_to_all: elements of a named axis exchange slices of rows of computed sizes.

    output of r [output_offsets of s [r] + i] = operand of s [input_offsets of s [r] + i]
    for each sender s and i < send_sizes of s [r]

With several slices for each position, `count`, [r] stands for each of [r * count + j]. Rows of the
output that nothing is sent to keep their values.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from ...base.typing import Array, ArrayLike, AxisIndexGroups, AxisName, IrValue
from ...core.primitive import Axis, Builder, Cotangent, Linear, Tangent
from ...core.trace import typeof
from ...types import dtypes
from ...types.avals import ShapedArray
from ...types.shape import floor_div, prod, static_int
from ..arithmetic import mul, sub
from ..bits import bitwise_and, bitwise_not
from ..comparison import clamp, ge, lt, select_n
from ..convert import convert_element_type
from ..creation import iota
from ..families import add
from ..reduce import argmax, reduce_or
from ..shape import align, broadcast_in_dim, expand_dims, instantiate, reshape, squeeze, zeros_of
from ..slicing import concatenate, index_in_dim
from .axes import (
    Collective, Groups, Names, axis_index, axis_names, check_groups, device_axes, group_tables,
    of_mesh, sizes_of, take_rows, varying,
)
from .moves import all_to_all_p, gathered, lookup

INDEX_OPERANDS = ("input_offsets", "send_sizes", "output_offsets", "recv_sizes")


class RaggedAllToAll(Collective):
    """(operand, output, input_offsets, send_sizes, output_offsets, recv_sizes) -> output.

    params: axis_name (a tuple of one, or of axes of a mesh), axis_sizes, axis_index_groups.
    """

    parts = True

    def infer(self, operand: ShapedArray, output: ShapedArray, *indices: ShapedArray,
              axis_sizes: tuple[int, ...], axis_index_groups: Groups | None, **params: Hashable
              ) -> ShapedArray:
        if not operand.ndim or operand.shape[1:] != output.shape[1:] or not output.ndim \
                or operand.dtype != output.dtype:
            raise TypeError(f"ragged_all_to_all: operand {operand} and output {output} given; "
                            "arrays of one dtype that differ in their first axis only are "
                            "required.")
        n = prod(axis_sizes) if axis_index_groups is None else len(axis_index_groups[0])
        for name, aval in zip(INDEX_OPERANDS, indices, strict=True):
            count = 0 if aval.ndim != 1 else static_int(aval.shape[0], "ragged_all_to_all",
                                                        f"the size of {name}")
            if not count or count % n or not dtypes.is_integer(aval.dtype):
                raise TypeError(f"ragged_all_to_all: {name} is {aval}; integers, one for each of "
                                f"{n} positions, or as many for each, are required.")
            if aval.shape != indices[0].shape:
                raise TypeError(f"ragged_all_to_all: {name} is {aval}, input_offsets {indices[0]}; "
                                "one of each for every slice is required; make them as long.")
        return output

    def lower(self, b: Builder, *xs: IrValue, axis_name: Names, axis_sizes: tuple[int, ...],
              axis_index_groups: Groups | None) -> IrValue:
        if b.platform == "cpu":     # XLA has no such operation there
            with device_axes(axis_name, axis_sizes):
                return b.inline(_by_gathering, *xs, names=axis_name, groups=axis_index_groups)
        return b.custom_call("ragged_all_to_all", xs, [b.type(b.avals_out[0])], {
            "backend_config": b.groups_config(axis_name, axis_index_groups)})[0]

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], **params: Hashable
            ) -> tuple[Array, Tangent]:
        moved = [instantiate(t) for t in tangents[:2]]
        return self.bind(*primals, **params), self.bind(*moved, *primals[2:], **params)

    def transpose(self, ct: Array, operand: Linear, output: Linear, *indices: ArrayLike,
                  **params: Any) -> Sequence[Cotangent]:
        inputs, sends, outputs, receives = indices
        axis_sizes, groups = params["axis_sizes"], params["axis_index_groups"]
        n = len(groups[0]) if groups else prod(axis_sizes)

        def exchanged(table: ArrayLike) -> Array:
            size, = typeof(table).shape
            rows = reshape(table, (n, floor_div(size, n)))
            return reshape(all_to_all_p.bind(rows, dimension=0, **params), (size,))

        starts = exchanged(outputs)     # where each sender's rows begin here
        cts: list[Any] = [None] * 6
        if type(operand) is Linear:
            cts[0] = self.bind(ct, zeros_of(operand.aval), starts, receives, exchanged(inputs),
                               sends, **params)
        if type(output) is Linear:
            hit = _hits(expand_dims(starts, (0,)), expand_dims(receives, (0,)),
                        typeof(ct).shape[0])
            untouched = squeeze(bitwise_not(reduce_or(hit, (1,))), (0,))
            cts[1] = _select(untouched, ct, zeros_of(typeof(ct)))
        return cts

    def vmap_named(self, axis: Axis, args: Sequence[ArrayLike], dims: Sequence[int | None], *,
                   axis_index_groups: Groups | None, **params: Hashable) -> tuple[Array, int]:
        groups = axis_index_groups or (tuple(range(axis.size)),)
        which, place = group_tables(groups)
        rows, _ = align(axis, args, dims, 0)
        count = _slices_per_position(rows[2], groups)
        members = np.repeat(np.array(groups, np.int32)[which], count, 1)
        return _received(rows[0], rows[1], rows[2:5], members, place, count), 0

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], **params: Hashable
             ) -> tuple[Array, int]:
        if all(d is None for d in dims[2:]):
            # The rows are exchanged whatever is in them: the mapped axis becomes part of a row.
            rows, _ = align(axis, args[:2], dims[:2], 1)
            return self.bind(*rows, *args[2:], **params), 1
        rows, _ = align(axis, args, dims, 0)
        outs = [self.bind(*[index_in_dim(x, i, 0, False) for x in rows], **params)
                for i in range(axis.size)]
        return concatenate([expand_dims(out, (0,)) for out in outs], 0), 0


def _hits(starts: Array, sizes: Array, length: int) -> Array:
    """[r, k, length]: whether a row is in the slice that sender k has for receiver r."""
    aval = typeof(starts)
    shape = (*aval.shape, length)
    row = broadcast_in_dim(iota(aval.dtype, length), shape, (2,))
    low = broadcast_in_dim(starts, shape, (0, 1))
    high = broadcast_in_dim(add(starts, sizes), shape, (0, 1))
    return bitwise_and(ge(row, low), lt(row, high))


def _select(mask: Array, x: Array, y: ArrayLike) -> Array:
    """`x` where the mask over leading axes holds, else `y`."""
    wide = broadcast_in_dim(mask, typeof(x).shape, range(typeof(mask).ndim))
    return select_n(wide, y, x)


def _slices_per_position(table: ArrayLike, groups: Groups) -> int:
    """The number of slices sent to each position, given an array with one entry for each in its
    last axis.
    """
    return floor_div(typeof(table).shape[-1], len(groups[0]))


def _at_receivers(table: ArrayLike, members: ArrayLike, place: ArrayLike, count: int) -> Array:
    """[r, k]: table[member k of receiver r, slice k for the place of r], of [senders, slices]."""
    shape = typeof(members).shape
    slot = np.arange(shape[1], dtype=np.int32) % count      # each member is there `count` times
    column = add(broadcast_in_dim(mul(place, np.int32(count)), shape, (0,)),
                 broadcast_in_dim(slot, shape, (1,)))
    size = typeof(table).shape[1]
    flat = add(mul(members, np.int32(size)), column)
    values = reshape(table, (typeof(table).size,))
    return reshape(take_rows(values, reshape(flat, (typeof(flat).size,))), shape)


def _received(operand: Array, output: Array, indices: Sequence[ArrayLike], members: ArrayLike,
              place: ArrayLike, count: int) -> Array:
    """The rows that receivers get.

    Args:
      operand: [senders, rows, ...], of all of them.
      output: [receivers, length, ...].
      indices: input offsets, send sizes, output offsets, each [senders, slices].
      members: int32[receivers, slices], who sends each slice to a receiver.
      place: int32[receivers], its own place among them.
      count: how many slices one sends to another.
    """
    first, sizes, starts = [_at_receivers(x, members, place, count) for x in indices]
    shape, length = typeof(operand).shape, typeof(output).shape[1]
    if not length or not shape[1]:
        return output
    hit = _hits(starts, sizes, length)
    sender = argmax(hit, 1, np.int32)                               # [receivers, length]
    dtype = typeof(starts).dtype
    count = typeof(sender).shape[0]
    members_of_line = typeof(members).shape[1]
    line = broadcast_in_dim(iota(np.int32, count), (count, length), (0,))
    flat = reshape(add(mul(line, np.int32(members_of_line)), sender), (count * length,))

    def chosen(table: ArrayLike) -> Array:
        return take_rows(reshape(table, (count * members_of_line,)), flat)

    row = reshape(broadcast_in_dim(iota(dtype, length), (count, length), (1,)), (count * length,))
    row = sub(add(row, chosen(first)), chosen(starts))
    row = clamp(dtype.type(0), row, dtype.type(shape[1] - 1))
    source = add(mul(chosen(members), np.int32(shape[1])),
                 convert_element_type(row, np.int32))
    rows = take_rows(reshape(operand, (shape[0] * shape[1], *shape[2:])), source)
    return _select(reduce_or(hit, (1,)), reshape(rows, typeof(output).shape), output)


def _by_gathering(operand: ArrayLike, output: ArrayLike, *indices: ArrayLike, names: Names,
                  groups: Groups | None) -> Array:
    """Gather what all have, and compute what this element gets."""
    groups = groups or (tuple(range(prod(sizes_of(names)))),)
    which, place = group_tables(groups)
    index, count = axis_index(names), _slices_per_position(indices[0], groups)
    members = expand_dims(lookup(np.repeat(np.array(groups, np.int32)[which], count, 1), index),
                          (0,))
    everyone = [gathered(x, names) for x in (operand, *indices[:3])]
    out = _received(everyone[0], expand_dims(output, (0,)), everyone[1:], members,
                    reshape(lookup(place, index), (1,)), count)
    return squeeze(out, (0,))


ragged_all_to_all_p = RaggedAllToAll("ragged_all_to_all")


def ragged_all_to_all(operand: ArrayLike, output: ArrayLike, input_offsets: ArrayLike,
                      send_sizes: ArrayLike, output_offsets: ArrayLike, recv_sizes: ArrayLike, *,
                      axis_name: AxisName, axis_index_groups: AxisIndexGroups = None) -> Array:
    """Each element sends slices of rows to each other one, and gets as many from each.

    Args:
      operand: array [rows, ...] to send from. For derivatives, the slices must not overlap.
      output: array [length, ...] to write into: the result where nothing arrives.
      input_offsets: integers[n]: where the slice for position k begins in the operand. With
        several slices for each, integers[n * count]: in all four, entries k * count + j describe
        slice j for position k.
      send_sizes: integers[n]: how many rows position k is sent.
      output_offsets: integers[n]: where they go in the output of position k.
      recv_sizes: integers[n]: the number of rows that come from position k, as many as it sends.
      axis_name: a bound axis name, or several; positions are then row-major.
      axis_index_groups: lists of positions of one size that partition the axis; n is that size.
    Returns: The new output.

    >>> x, empty, one = onp.arange(4).reshape(2, 2), onp.zeros((2, 2), int), onp.ones(2, int)
    >>> def swap(x, out, i):
    ...     at = onp.stack([i, i])
    ...     return olympus.lax.ragged_all_to_all(x, out, onp.arange(2), one, at, one, axis_name="i")
    >>> olympus.vmap(swap, axis_name="i")(x, empty, onp.arange(2))
    Array([[0, 2],
           [1, 3]], dtype=int32)
    """
    names = axis_names("ragged_all_to_all", axis_name)
    groups = check_groups("ragged_all_to_all", axis_index_groups, names)
    indices = (input_offsets, send_sizes, output_offsets, recv_sizes)
    size = prod(sizes_of(names))
    ragged_all_to_all_p.infer(*map(typeof, (operand, output, *indices)), axis_sizes=(size,),
                              axis_index_groups=groups)
    if names and (len(names) == 1 or of_mesh(names)):
        operand = varying(operand, names)
        return ragged_all_to_all_p.bind(operand, output, *indices, axis_name=names,
                                        axis_sizes=sizes_of(names), axis_index_groups=groups)
    return _by_gathering(operand, output, *indices, names=names, groups=groups)
