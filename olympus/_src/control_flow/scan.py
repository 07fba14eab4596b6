"""scan: a loop with a carry, per-iteration inputs and per-iteration outputs."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any

import numpy as np

from ..base.config import jit_disabled
from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, Params, PyTree, Reference, T
from ..base.util import cut, lazy_imports
from ..control.bodies import (
    Body, cast, check_aliases, check_callable, flatten, leaf_names, stage_loop_body,
)
from ..control.remat import checkpoint_p
from ..control.scan_primitive import scan_p
from ..core.ir import ClosedOlympuspr, derived
from ..core.staging import stage
from ..core.trace import literal, typeof
from ..lax.creation import iota
from ..lax.families import add
from ..lax.shape import expand_dims, reshape, rev
from ..lax.slicing import concatenate, index_in_dim, slice_in_dim
from ..types.avals import MUTABLE, ShapedArray
from ..types.shape import bound_or, extent, maximum, static_int
from ..types.tree import tree_flatten, tree_unflatten
from ..types.tree_registry import PyTreeDef

INDEX = np.dtype(np.int32)

with lazy_imports(__name__):
    from ..core import cells as _cells  # where there are references
    from ..interpreters import discharge as _discharge
    from ..lax import refs as _refs
    from . import carried_refs as _carried, progress as _progress  # in kernels; under progress=


@api_boundary
def scan(f: Callable[[PyTree, PyTree], tuple[T, PyTree]], init: PyTree, xs: PyTree = None,
         length: int | None = None, reverse: bool = False, unroll: int | bool = 1,
         _split_transpose: bool = False, *, checkpoint: int | str | None = None,
         progress: bool | str = False) -> tuple[T, PyTree]:
    """Loop with a carry over the leading axis of `xs`, compiled once whatever the length.

    Args:
      f: `(carry, x) -> (carry, y)`, where `x` is a slice of `xs`; the carry keeps its structure,
        shapes and dtypes.
      init: the first carry, a pytree.
      xs: pytree of arrays of one leading size, or None.
      length: number of iterations; required if `xs` has no leaves.
      reverse: iterate, and store the ys, from the last index to the first.
      unroll: how many iterations one round of the compiled loop does; True is all of them.
      checkpoint: how many carries reverse mode keeps; it computes the iterations between two of
        them again (Chen et al., "Training deep nets with sublinear memory cost", 2016). "sqrt"
        keeps about as many carries as there are iterations between two; None keeps the residuals of
        every iteration.
      progress: show a progress bar, under this label if it is a str; reverse mode shows a second.
    Returns: The last carry, and the ys stacked along a new leading axis.

    >>> total, sums = olympus.lax.scan(lambda c, x: (c + x, c + x), 0., olympus.numpy.arange(4.))
    >>> print(total, sums)
    6.0 [0. 1. 3. 6.]
    """
    check_callable("lax.scan", f=f)
    if MUTABLE and (carried := _carried.places_of(init)):
        f, init = _carried.closed_over("scan", f, carried, pair=True), carried.without(init)
        carry, ys = scan(f, init, xs, length, reverse, unroll, checkpoint=checkpoint,
                         progress=progress)
        return carried.joined(carry), ys
    x_leaves, x_avals, x_tree = flatten("scan: xs", xs)
    n = _length(x_avals, x_tree, length)
    leaves, avals, tree = flatten("scan: init", init)
    label = progress if isinstance(progress, str) else "scan" if progress else ""
    # With `checkpoint` the bar belongs to the loop over stretches, where nothing is repeated.
    if label and (checkpoint is None or jit_disabled.value):
        f = _progress.shown_scan(f, label, literal(n, INDEX, False))
        order = rev(iota(INDEX, n), (0,)) if reverse else iota(INDEX, n)
        x_leaves, x_avals, x_tree = flatten("scan: xs", (xs, order))
    if jit_disabled.value and n:
        n = static_int(n, "scan under disable_jit", "length")
        return _loop(f, init, x_leaves, x_tree, n, reverse)
    slices = [a.without_axis(a.leading_axis_spec(), n) for a in x_avals]
    in_tree = tree_flatten((init, x_tree.unflatten(slices)))[1]
    check_aliases("scan", f, (), [*leaves, *x_leaves], in_tree)
    body, avals = stage_loop_body("scan", f, in_tree, tree, avals, slices, _carry_of)
    check_aliases("scan", f, body.consts, [*leaves, *x_leaves], in_tree)
    leaves = [cast(x, a) for x, a in zip(leaves, avals, strict=True)]
    params = {"olympuspr": body.program, "reverse": bool(reverse), "unroll": _unroll(unroll, n),
              "num_consts": len(body.consts), "num_carry": len(leaves)}
    args = [*body.consts, *leaves, *x_leaves]
    if checkpoint is None:
        out = scan_p.bind(*args, length=n, **params)
    else:
        stretch = _size_of_stretch(checkpoint, n)
        in_stretches = functools.partial(_in_stretches, length=n, stretch=stretch, label=label)
        rows = MUTABLE and any(map(_cells.is_ref, x_leaves))
        out = _on_contents_of_rows(in_stretches, args, params) if rows else in_stretches(
            args, **params)
    return tree_unflatten(body.out_tree, out)


def _size_of_stretch(checkpoint: int | str, length: int) -> int:
    """How many iterations lie between two carries that are kept."""
    # The square root, rounded up.
    states = math.isqrt(max(length - 1, 0)) + 1 if checkpoint == "sqrt" else checkpoint
    if isinstance(states, (bool, str)) or not hasattr(states, "__index__") or states < 1:
        raise ValueError(f"scan: checkpoint is {checkpoint!r}; a positive int, \"sqrt\" or None is "
                         "required.")
    return max(-(-length // states.__index__()), 1)


@derived
def _stretch(body: ClosedOlympuspr, length: int, unroll: int, reverse: bool, num_consts: int,
             num_carry: int) -> ClosedOlympuspr:
    """The scan of some iterations as a program."""
    def run(*args: Array) -> list[Array]:
        return scan_p.bind(*args, olympuspr=body, length=length, num_consts=num_consts,
                           num_carry=num_carry, reverse=reverse,
                           unroll=min(unroll, bound_or(length, unroll)))

    shared = num_consts + num_carry
    return stage(run, [*body.in_avals[:shared],
                       *(a.with_axis(0, length) for a in body.in_avals[shared:])])


def _stretched(body: ClosedOlympuspr, length: int, unroll: int, reverse: bool, num_consts: int,
               num_carry: int) -> Callable[..., list[Array]]:
    """Its rematerialised form, as a function."""
    program = _stretch(body, length, unroll, reverse, num_consts, num_carry)
    return functools.partial(checkpoint_p.bind, olympuspr=program, prevent_cse=False,
                             differentiated=False, policy=None)


@derived
def _stretches(body: ClosedOlympuspr, avals: tuple[ShapedArray, ...], length: int, unroll: int,
               reverse: bool, num_consts: int, num_carry: int) -> ClosedOlympuspr:
    """One iteration of the scan over stretches, on values of these types."""
    return stage(_stretched(body, length, unroll, reverse, num_consts, num_carry), avals)


def _in_stretches(args: Sequence[ArrayLike], *, length: int, stretch: int, label: str,
                  olympuspr: ClosedOlympuspr, num_consts: int, num_carry: int, reverse: bool,
                  unroll: int) -> list[Array]:
    """The scan as one of rematerialised scans over `stretch` iterations; the rest comes last.

    A progress bar moves once in each: inside, a recomputation would show it again.
    """
    for aval in (*olympuspr.in_avals[num_consts + num_carry:], *olympuspr.out_avals[num_carry:]):
        if aval.is_high:
            raise TypeError(f"scan: rows of type {aval} given with checkpoint=; rows of arrays are "
                            "required, which stretches of iterations can be cut from; convert them "
                            "to arrays, or close over the value.")
    params = {"num_consts": num_consts, "num_carry": num_carry, "reverse": reverse}
    consts, carry, xs = cut(args, num_consts, num_carry)
    how = unroll, reverse, num_consts, num_carry

    #   forwards   [stretch] [stretch] … [left]
    #   reverse    [left] … [stretch] [stretch]      the iterations begin on the right
    # In either order of iterations the shorter part comes last, outside the loop over stretches.
    whole, left = divmod(length, stretch)
    first = left if reverse else 0      # where the whole stretches start
    parts = [slice_in_dim(x, first, first + whole * stretch) for x in xs]
    parts = [reshape(x, (whole, stretch, *typeof(x).shape[1:])) for x in parts]
    run, rounds, show = _stretched(olympuspr, stretch, *how), whole + bool(left), None
    if label:
        run, show = _progress.shown_stretches(run, label, rounds, stretch, length, num_carry)
        parts.append(rev(iota(INDEX, whole), (0,)) if reverse else iota(INDEX, whole))
    avals = [*map(typeof, (*consts, *carry)), *(typeof(x).without_axis(0) for x in parts)]
    # A bar is part of the program, and no two calls have the same one.
    outer = stage(run, avals) if label else _stretches(olympuspr, tuple(avals), stretch, *how)
    out = scan_p.bind(*consts, *carry, *parts, olympuspr=outer, length=whole, unroll=1, **params)
    done: Any = out.pop() if label else None
    ys = [reshape(y, (whole * stretch, *typeof(y).shape[2:])) for y in out[num_carry:]]
    if not left:
        return [*out[:num_carry], *ys]
    start = 0 if reverse else whole * stretch
    last = _stretched(olympuspr, left, *how)(*consts, *out[:num_carry],
                           *(slice_in_dim(x, start, start + left) for x in xs))
    if show is not None:
        # The number comes out of the loop, so that the bar moves after it.
        number = index_in_dim(done, 0 if reverse else whole - 1, keepdims=False)
        last = show(last, add(number, literal(1, INDEX, False)))
    pairs = [(y, z) if reverse else (z, y) for y, z in zip(last[num_carry:], ys, strict=True)]
    return [*last[:num_carry], *(concatenate(pair, 0) for pair in pairs)]


def _on_contents_of_rows(run: Callable[..., list[Array]], args: Sequence[Reference],
                         params: Params) -> list[Array]:
    """A scan over rows of references as one over rows of their contents, which are written at its
    end, once: the steps of the backward pass write nothing.
    """
    closed, shared = params["olympuspr"], params["num_consts"] + params["num_carry"]
    rows = [i >= shared and _cells.is_ref(x) for i, x in enumerate(args)]
    for i in compress(range(len(args)), map(operator.and_, rows, _discharge.handed_on(closed))):
        raise ValueError(
            f"scan: rows of the reference {typeof(args[i])} given with checkpoint=, and a rule of "
            "custom_vjp gets a row in the backward pass;\n  that works on the content; close over "
            "the reference, and pass the rule the index of the row.")
    new = list(map(operator.and_, rows, _discharge.written(closed)))
    contents = [_refs.get_p.bind(x, view=_refs.WHOLE) if row else x
                for x, row in zip(args, rows, strict=True)]
    out = run(contents, **{**params, "olympuspr": _discharge.discharge(closed, rows, new)})
    count = len(closed.outvars)
    for ref, x in zip(compress(args, new), out[count:], strict=True):
        _refs.swap_p.bind(ref, x, view=_refs.WHOLE)
    return out[:count]


def _length(avals: Sequence[ShapedArray], tree: PyTreeDef, length: int | None) -> int:
    names = leaf_names(tree, "xs")
    mapped = len(names)     # of users' types, which do not tell how many rows they have
    names = [name for name, aval in zip(names, avals, strict=True) if aval.has_axes]
    avals = [aval for aval in avals if aval.has_axes]
    for name, aval in zip(names, avals, strict=True):
        if not aval.shape:
            raise ValueError(f"scan: scan got value with no leading axis to scan over: {name} is "
                             f"{aval}; close over it, or put it into the carry.")
        if aval.tagged and aval.sharding.spec[0] is not None:
            raise ValueError(f"scan: {name} is {aval}, whose leading axis is cut. 0th dimension of "
                             "all xs should be replicated, since iterations take slices of it; use "
                             "olympus.reshard, or vmap.")
    sizes = {name: aval.shape[0] for name, aval in zip(names, avals, strict=True)}
    if length is not None:
        sizes = {"length": extent(length, "scan", "length"), **sizes}
    if not sizes:
        why = (": you must provide `length`, since values of users' types do not tell how many "
               "rows they have.") if mapped else "."
        raise ValueError("scan: scan got no values to scan over and `length` not provided; one is "
                         "required" + why)
    if len(set(sizes.values())) > 1:
        shown = ", ".join(f"{name}: {size}" for name, size in sizes.items())
        lengths = list(dict.fromkeys(aval.shape[0] for aval in avals))
        what = (f"values with different leading axis sizes: {', '.join(map(str, lengths))}"
                if len(lengths) > 1 else f"`length` argument of {length} which disagrees with "
                f"leading axis sizes {lengths}")
        raise ValueError(f"scan: scan got {what}: leading sizes differ ({shown}); they must be "
                         "equal.")
    size = next(iter(sizes.values()))
    if size < 0:
        raise ValueError(f"scan: length is {size}; a non-negative int is required.")
    return size


def _unroll(unroll: int | bool, length: int) -> int:
    if unroll is True:
        return maximum(length, 1)
    if not hasattr(unroll, "__index__") or getattr(unroll, "ndim", 0):
        raise TypeError(f"scan: `unroll` must be a `bool` or a non-negative `int`; it is "
                        f"{unroll!r}.")
    if unroll < 0:
        raise ValueError("scan: `unroll` must be a `bool` or a non-negative `int`; it is "
                         f"{unroll!r}; 0 and 1 unroll nothing.")
    return max(int(unroll), 1)


def _carry_of(body: Body) -> PyTreeDef:
    """The structure of the carry that a scan's body returns."""
    out = body.out_tree.unflatten(range(body.out_tree.num_leaves))
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        shown = tree_unflatten(body.out_tree, body.out_avals)
        raise TypeError(f"scan: scan body output must be a pair, got {shown!r:.200} from "
                        f"{body.name}; return (carry, y), with None as y if there is none.")
    return tree_flatten(out[0])[1]


def _loop(f: Callable[..., PyTree], carry: PyTree, x_leaves: Sequence[Reference],
          x_tree: PyTreeDef, length: int, reverse: bool) -> tuple[PyTree, PyTree]:
    """The scan as a Python loop, for `disable_jit`."""
    ys = []     # of one slice at least: without any, the caller stages the loop
    for i in reversed(range(length)) if reverse else range(length):
        rows = [_refs.new_ref_p.bind(x[i], memory_space=None, kind=None, pin=False)
                if _cells.is_ref(x) else index_in_dim(x, i, keepdims=False) for x in x_leaves]
        carry, y = f(carry, x_tree.unflatten(rows))
        ys.append(y)
        for x, row in zip(x_leaves, rows, strict=True):
            if _cells.is_ref(x):
                x[i] = row[...]
    # Made from the last on, but kept at the places of their xs.
    if reverse:
        ys.reverse()
    columns = zip(*[tree_flatten(y)[0] for y in ys], strict=True)
    stacked = [concatenate([expand_dims(y, (0,)) for y in column], 0) for column in columns]
    return carry, tree_unflatten(tree_flatten(ys[0])[1], stacked)
