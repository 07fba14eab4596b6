"""Einstein summation: a plan of pairwise contractions, memoised per subscripts and shapes.

`opt_einsum` chooses the order. A step on one operand takes diagonals and sums; a step on two is one
`dot_general` and one transpose.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..base.config import compatible
from ..base.typing import Array, ArrayLike, DType, DTypeLike
from ..base.util import Memo, lazy_module, memoize
from ..core.trace import typeof
from ..jit.fused import fused, named
from ..lax import contract, shape as lax_shape
from ..lax.precision import PrecisionLike
from ..lax.sharding import settled
from ..types import dtypes
from ..types.avals import ShapedArray
from ..types.shape import bound_or, definitely_equal
from ..types.sharding import NamedSharding, PartitionSpec, ShardingLike
from . import reductions
from .diagonals import diagonal_of
from .promote import BOOL, array_args, broadcast_to, convert, refuse_option, result_type

Step = tuple[tuple[int, ...], str]
_plans: Memo = Memo(1024)
# Loaded by the first einsum: `import olympus` does without it.
opt_einsum = lazy_module("opt_einsum")


def _parse(subscripts: Any, operands: Sequence[ArrayLike | Sequence[int]]
           ) -> tuple[tuple[str, ...], str, list[Array]]:
    """(labels of each operand, labels of the result, operands), with every ellipsis spelled out."""
    arrays = list(operands)
    if not isinstance(subscripts, str):     # einsum(x, [0, 1], y, [1, 2], [0, 2])
        interleaved = [subscripts, *operands]
        try:
            subscripts, arrays = opt_einsum.parser.convert_interleaved_input(interleaved)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise TypeError(f"einsum: subscripts of type {type(subscripts).__name__} given; "
                            "text such as 'ij,jk->ik', or each array followed by a list of its "
                            "axes' labels, is required.") from error
    arrays = array_args("einsum", *arrays)
    return *_labels(subscripts, tuple([x.aval for x in arrays])), arrays


@memoize(1024)
def _labels(subscripts: str, avals: tuple[ShapedArray, ...]) -> tuple[tuple[str, ...], str]:
    """(labels of each operand, labels of the result), of operands that fit them."""
    shapes = [x.shape for x in avals]
    try:
        text, output, _ = opt_einsum.parser.parse_einsum_input((subscripts, *shapes), shapes=True)
    except ValueError as error:
        raise ValueError(f"einsum: subscripts {subscripts!r} and operands of shapes {shapes} "
                         f"given; {error};\n  write one term for each operand, and in the "
                         "result only labels of the operands.") from None
    inputs = tuple(text.split(","))
    _check_sizes(inputs, avals)
    return inputs, output


def _contraction_order(inputs: tuple[str, ...], output: str, shapes: tuple, optimize: bool | str
                       ) -> tuple[Step, ...]:
    """The order of contractions: (operands to take, labels of their result)."""
    key = (inputs, output, shapes, optimize)
    try:
        plan = _plans.get(key)
    except TypeError:
        raise TypeError(f"einsum: optimize {optimize!r} given; a bool, the name of a strategy or "
                        "a path is required.") from None
    if plan is None:
        plan = _plans[key] = _make_plan(inputs, output, shapes, optimize)
    return plan


def _contraction_path(equation: str, shapes: Sequence[Sequence[int]],
                      how: Sequence[Sequence[int]] | str
                      ) -> tuple[Sequence[tuple[int, ...]], object]:
    """opt_einsum's path and report. ValueError for anything but its strategies."""
    known = [tuple([bound_or(n, 8) for n in shape]) for shape in shapes]
    try:
        return opt_einsum.contract_path(equation, *known, shapes=True, optimize=how)
    except (TypeError, ValueError, KeyError, IndexError) as error:
        raise ValueError(f"einsum: {equation!r} of shapes {shapes} with optimize={how!r} given; "
                         f"{error}; a bool, the name of a strategy or a path is required."
                         ) from None


# The path of a named strategy: opt_einsum takes longer to find it than to trace a step takes.
_named_path = memoize(1024)(_contraction_path)


def _make_plan(inputs: tuple[str, ...], output: str, shapes: tuple,
               optimize: bool | str | Sequence[tuple[int, ...]]) -> tuple[Step, ...]:
    if len(inputs) <= 2:
        return ((tuple(range(len(inputs))), output),)
    how = {True: "optimal", False: [tuple(range(len(inputs)))]}.get(optimize, optimize) \
        if isinstance(optimize, bool) else optimize
    equation = ",".join(inputs) + "->" + output
    path, _ = _contraction_path(equation, shapes, how)
    left, steps = list(inputs), []
    for taken in path:
        for pair in _in_pairs(tuple(sorted(taken)), len(left)):
            terms = [left[i] for i in pair]
            rest = [term for i, term in enumerate(left) if i not in pair]
            wanted = set(output).union(*rest) if rest else set(output)
            labels = "".join(sorted(set("".join(terms)) & wanted)) if rest else output
            left = [*rest, labels]
            steps.append((pair, labels))
    return tuple(steps)


def _in_pairs(taken: tuple[int, ...], count: int) -> list[tuple[int, ...]]:
    """A contraction of many operands as a chain of pairs; each result goes to the end."""
    if len(taken) <= 2:
        return [taken]
    pairs, rest = [taken[:2]], list(taken[2:])
    removed, size = 2, count - 1
    for position in rest:
        pairs.append((position - removed, size - 1))
        removed, size = removed + 1, size - 1
    return pairs


@named
def einsum(subscripts: str | ArrayLike, /, *operands: ArrayLike | Sequence[int], out: None = None,
           optimize: str | bool | list[tuple[int, ...]] = "auto", precision: PrecisionLike = None,
           preferred_element_type: DTypeLike | None = None,
           _dot_general: Callable[..., Array] = contract.dot_general,
           out_sharding: ShardingLike = None) -> Array:
    """Products of operands summed over labels: `einsum("ij,jk->ik", a, b)`.

    Args:
      subscripts: labels per operand and of the result; without `->` the labels that occur once,
        sorted. Or operands and lists of ints in turn.
      *operands: arrays, as many as there are lists of labels.
      out: None: arrays cannot be written to.
      optimize: how the order is found: "auto", "optimal", "greedy", a path, True or False.
      precision, preferred_element_type: as in `lax.dot_general`.
      out_sharding: how the result is laid out over devices.
    Returns: An array with one axis per label of the result, of the promoted dtype. Labels that do
      not fit the shapes are a ValueError. Unlike in NumPy an order of contraction is looked for by
      default, and the diagonal is no view.

    >>> onp.einsum("ij,j->i", onp.ones((2, 3)), onp.arange(3.))
    Array([3., 3.], dtype=float32)
    >>> onp.einsum("ii", onp.arange(9).reshape(3, 3))
    Array(12, dtype=int32)
    """
    refuse_option("einsum", out=out)
    inputs, output, arrays = _parse(subscripts, operands)
    if preferred_element_type is not None:
        preferred_element_type = dtypes.requested_dtype("einsum", preferred_element_type)
    how = tuple(map(_hashable, optimize)) if isinstance(optimize, list) else optimize
    dtype, weak = result_type("einsum", list(map(typeof, arrays)))

    run = functools.partial(_einsum, inputs=inputs, output=output, optimize=how,
                            precision=precision, dtype=dtype, weak=weak,
                            preferred=preferred_element_type, dot=_dot_general)
    if out_sharding is None:
        return run(tuple(arrays))
    avals = list(map(typeof, arrays))
    axes: dict[str, list[tuple[Any, int]]] = {}
    for labels, aval in zip(inputs, avals, strict=True):
        for i, label in enumerate(labels):
            axes.setdefault(label, []).append((aval, i))
    contract.check_terms("einsum", avals, out_sharding,
                         [where for label, where in axes.items() if label not in output])
    # One product is cut as a product is: it may leave terms of a sum where they are.
    if _dot_general is contract.dot_general and _is_product(inputs, output, avals):
        return run(tuple(arrays), out_sharding=out_sharding)
    return settled("einsum", lambda *arrays: run(arrays), out_sharding, *arrays)


def _is_product(inputs: tuple[str, ...], output: str, avals: Sequence[ShapedArray]) -> bool:
    """Whether one `dot_general` of the operands as they are, and a transposition, is the whole."""
    if len(inputs) != 2 or any(len(set(labels)) != len(labels) for labels in inputs):
        return False
    p, q = inputs
    return (set(p) ^ set(q)) <= set(output) and all(
        definitely_equal(avals[0].shape[i], avals[1].shape[q.index(label)])
        for i, label in enumerate(p) if label in q)


def _hashable(item: object) -> object:
    return tuple(item) if isinstance(item, list) else item


def _check_sizes(inputs: tuple[str, ...], avals: tuple[ShapedArray, ...]) -> None:
    sizes: dict[str, int] = {}
    first: dict[str, int] = {}      # by label: the operand that gave its size
    for place, (labels, x) in enumerate(zip(inputs, avals, strict=True)):
        if len(labels) != len(x.shape):
            raise ValueError(f"einsum: labels {labels!r} for operand {place}, {x}, given; one "
                             "label per axis is required; add or drop labels, or write ... for "
                             "the axes in front.")
        for label, n in set(zip(labels, x.shape)):
            if not all(definitely_equal(n, m) for other, m in zip(labels, x.shape)
                       if other == label):
                raise ValueError(f"einsum: label {label!r} names axes of several sizes of operand "
                                 f"{place}, {x}; the sizes along a diagonal must be equal; give "
                                 "the axes different labels.")
            if sizes.setdefault(label, n) != n:
                if 1 not in (n, sizes[label]):
                    other = first[label]
                    raise ValueError(
                        f"einsum: label {label!r} has sizes {sizes[label]} and {n}, in operand "
                        f"{other} ({inputs[other]!r}: {avals[other]}) and operand {place} "
                        f"({labels!r}: {x}); equal sizes are required; transpose or reshape one, "
                        "or change its labels.")
                sizes[label] = max(n, sizes[label])
            if sizes[label] == n:
                first.setdefault(label, place)


@fused(static=("inputs", "output", "optimize", "precision", "dtype", "weak", "preferred",
               "dot", "out_sharding"))
def _einsum(operands: tuple[Array, ...], *, inputs: tuple[str, ...], output: str, optimize: Any,
            precision: PrecisionLike, dtype: DType, weak: bool, preferred: DType | None,
            dot: Callable[..., Array], out_sharding: ShardingLike = None) -> Array:
    arrays = [x if x.shape else broadcast_to(convert(x, dtype, weak), ()) for x in operands]
    how = list(optimize) if isinstance(optimize, tuple) else optimize
    steps = (_contraction_order(inputs, output, tuple([x.shape for x in arrays]), how)
             if not isinstance(how, list) else
             _make_plan(inputs, output, tuple([x.shape for x in arrays]), _path(how)))
    terms = list(zip(inputs, arrays))
    for taken, labels in steps:
        parts = [terms[i] for i in taken]
        terms = [t for i, t in enumerate(terms) if i not in taken]
        rest = set("".join([t[0] for t in terms])) | set(labels)
        if len(parts) == 1:
            term = _single(*parts[0], labels, dtype)
        else:
            term = _contract_pair(parts[0], parts[1], labels, rest, precision, dtype, preferred,
                                  dot, out_sharding)
        terms.append((labels, term))
    term = terms[0][1]
    return convert(term, dtype, weak) if preferred is None else convert(term, preferred)


def _path(how: list[Any]) -> list[Any]:
    """A path as NumPy spells it (with a leading name) or as opt_einsum does."""
    return how[1:] if how and isinstance(how[0], str) else how


def _diagonals(labels: str, x: Array) -> tuple[str, Array]:
    """Repeated labels of one operand become one axis."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            i = labels.index(label)
            j = labels.index(label, i + 1)
            x = diagonal_of(x, 0, i, j)
            labels = labels[:i] + labels[i + 1:j] + labels[j + 1:] + label
    return labels, x


def _summed(labels: str, x: Array, keep: set[str], dtype: DType) -> tuple[str, Array]:
    """Labels that nothing else needs are summed over, at the dtype of the whole."""
    axes = tuple([i for i, label in enumerate(labels) if label not in keep])
    if axes:
        x = x if x.dtype == dtype else convert(x, dtype)
        x = (reductions.any(x, axes) if x.dtype == BOOL else lax_shape.reduce_sum(x, axes))
        labels = "".join([label for label in labels if label in keep])
    return labels, x


def _ordered(labels: str, x: Array, wanted: str) -> Array:
    return lax_shape.transpose(x, [labels.index(label) for label in wanted])


def _single(labels: str, x: Array, wanted: str, dtype: DType) -> Array:
    labels, x = _summed(*_diagonals(labels, x), set(wanted), dtype)
    return _ordered(labels, x, wanted)


def _contract_pair(left: tuple[str, Array], right: tuple[str, Array], wanted: str, rest: set[str],
                   precision: PrecisionLike, dtype: DType, preferred: DType | None,
                   dot: Callable[..., Array], out_sharding: ShardingLike) -> Array:
    (p, x), (q, y) = _diagonals(*left), _diagonals(*right)
    p, x = _summed(p, x, set(q) | rest, dtype)
    q, y = _summed(q, y, set(p) | rest, dtype)
    p, x, q, y = _drop_ones(p, x, q, y)
    p, x = _summed(p, x, set(q) | rest, dtype)
    q, y = _summed(q, y, set(p) | rest, dtype)
    shared = [label for label in p if label in q]
    batch = [label for label in shared if label in rest]
    summed = [label for label in shared if label not in rest]
    pairs = ((tuple([p.index(i) for i in summed]), tuple([q.index(i) for i in summed])),
             (tuple([p.index(i) for i in batch]), tuple([q.index(i) for i in batch])))
    labels = "".join([*batch, *[i for i in p if i not in shared],
                      *[i for i in q if i not in shared]])
    cut = {} if out_sharding is None else {
        "out_sharding": _transposed(out_sharding, wanted, labels)}
    product = dot(x, y, pairs, precision=precision,
                  preferred_element_type=dtype if preferred is None else preferred, **cut)
    return _ordered(labels, product, wanted)


def _transposed(sharding: ShardingLike, labels: str, wanted: str) -> ShardingLike:
    """How an array is cut whose axes, in another order, are cut as `sharding` says."""
    if isinstance(sharding, NamedSharding):
        return sharding.update(spec=_transposed(sharding.spec, labels, wanted))
    if not isinstance(sharding, PartitionSpec):     # of one device
        return sharding
    by_label = dict(zip(labels, sharding))      # further axes are whole
    return sharding.update(partitions=[by_label.get(label) for label in wanted])


def _drop_ones(p: str, x: Array, q: str, y: Array) -> tuple[str, Array, str, Array]:
    """A shared axis that has size 1 in one operand only broadcasts: it is dropped there."""
    def drop(labels: str, z: Array, others: dict[str, int]) -> tuple[str, Array]:
        axes = tuple([i for i, label in enumerate(labels)
                      if definitely_equal(z.shape[i], 1) and others.get(label, 1) != 1])
        return ("".join([label for i, label in enumerate(labels) if i not in axes]),
                lax_shape.squeeze(z, axes) if axes else z)

    sizes_x, sizes_y = dict(zip(p, x.shape)), dict(zip(q, y.shape))
    p, x = drop(p, x, sizes_y)
    q, y = drop(q, y, sizes_x)
    return p, x, q, y


@named
def einsum_path(subscripts: str | ArrayLike, /, *operands: ArrayLike | Sequence[int],
                optimize: bool | str | list[tuple[int, ...]] = "auto"
               ) -> tuple[list[str | tuple[int, ...]], object]:
    """The order of contractions that `einsum` would take.

    Args:
      subscripts, *operands: as for `einsum`; only the operands' shapes count.
      optimize: how the order is found: "auto", "optimal", "greedy", a path, True or False.
    Returns: A list of "einsum_path" and the operands' positions per step, which `einsum` takes as
      `optimize` without its first item, and a report on the cost, to be printed.

    >>> x = onp.ones((9, 9))
    >>> path, report = onp.einsum_path("ij,jk,kl->il", x[:2], x, x[:, :2])
    >>> path
    ['einsum_path', (0, 1), (0, 1)]
    """
    inputs, output, arrays = _parse(subscripts, operands)
    equation = ",".join(inputs) + "->" + output
    if isinstance(optimize, bool):
        optimize = "optimal" if optimize else [tuple(range(len(inputs)))]
    find = _named_path if isinstance(optimize, str) else _contraction_path
    path, report = find(equation, tuple([x.shape for x in arrays]), optimize)
    return [*path] if compatible.value else ["einsum_path", *path], report
