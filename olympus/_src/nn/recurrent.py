"""Long short-term memory (Hochreiter and Schmidhuber 1997) over sequences of several lengths.

Weights are one vector, as cuDNN takes it: for each layer and direction W_ih and W_hh, then for each
of them b_ih and b_hh. The rows of each belong to four gates: input, forget, cell, output. A layer
and direction has one number; the second layer's follow the first's.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

from ..autodiff.derivatives import vjp
from ..base.typing import Array, ArrayLike
from ..control_flow.scan import scan
from ..core.trace import typeof
from ..lax.precision import PrecisionLike
from ..numpy.grids import arange
from ..numpy.joining import concatenate, split, stack
from ..numpy.manipulation import reshape, swapaxes
from ..numpy.products import matmul
from ..numpy.promote import to_array
from ..numpy.selection import where
from ..numpy.trigonometry import tanh
from ..random.continuous import uniform
from ..types.shape import prod, static_int
from .activations import sigmoid

Shapes = list[tuple[int, ...]]
Parts = tuple[dict[int, Array], dict[int, Array], dict[int, Array], dict[int, Array]]


def _shapes(input_size: object, hidden_size: object, num_layers: object, bidirectional: bool
            ) -> Shapes:
    """The shapes of the weights in the vector, in their order."""
    sizes = [static_int(n, "lstm", name) for n, name in (
        (input_size, "input_size"), (hidden_size, "hidden_size"), (num_layers, "num_layers"))]
    if min(sizes) < 1:
        raise ValueError(f"lstm: input_size, hidden_size, num_layers {sizes} given; positive "
                         "numbers are required.")
    width, hidden, layers = sizes
    directions = 2 if bidirectional else 1
    widths = [width if layer == 0 else hidden * directions for layer in range(layers)]
    matrices = [shape for n in widths for _ in range(directions)
                for shape in ((4 * hidden, n), (4 * hidden, hidden))]
    return [*matrices, *[(4 * hidden,)] * len(matrices)]


def get_num_params_in_lstm(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
                           ) -> int:
    """The number of weights.

    Args:
      input_size: of an element of the sequence.
      hidden_size: of the state.
      num_layers: each reads the sequence that the one below gives.
      bidirectional: whether each layer reads it in both directions.

    >>> rnn.get_num_params_in_lstm(3, 4, num_layers=2, bidirectional=True)
    736
    """
    return sum(map(prod, _shapes(input_size, hidden_size, num_layers, bidirectional)))


def init_lstm_weight(rng: ArrayLike, input_size: int, hidden_size: int, num_layers: int,
                     bidirectional: bool) -> Array:
    """Weights, uniform between plus and minus 1 / sqrt(hidden_size).

    Args:
      rng: a key.
      input_size, hidden_size, num_layers, bidirectional: as for `get_num_params_in_lstm`.
    Returns: A vector.

    >>> rnn.init_lstm_weight(olympus.random.key(0), 3, 4, 1, False).shape
    (144,)
    """
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    bound = 1.0 / math.sqrt(hidden_size)
    return uniform(rng, (count,), minval=-bound, maxval=bound)


def _taken_apart(weights: ArrayLike, shapes: Shapes) -> list[Array]:
    vector, count = to_array(weights), sum(map(prod, shapes))
    if typeof(vector).shape != (count,):
        raise ValueError(f"lstm: weights {typeof(vector)} given; a vector of {count} is required; "
                         "see get_num_params_in_lstm.")
    parts, start = [], 0
    for shape in shapes:
        parts.append(reshape(vector[start:start + prod(shape)], shape))
        start += prod(shape)
    return parts


def unpack_lstm_weights(weights: ArrayLike, input_size: int, hidden_size: int, num_layers: int,
                        bidirectional: bool) -> Parts:
    """The matrices and vectors that the vector of weights consists of.

    Args:
      weights: the vector.
      input_size, hidden_size, num_layers, bidirectional: as for `get_num_params_in_lstm`.
    Returns: (W_ih, W_hh, b_ih, b_hh): of each a dict by the number of layer and direction.

    >>> W_ih, *_ = rnn.unpack_lstm_weights(onp.zeros(736), 3, 4, 2, True)
    >>> [w.shape for w in W_ih.values()]
    [(16, 3), (16, 3), (16, 8), (16, 8)]
    """
    parts = _taken_apart(weights, _shapes(input_size, hidden_size, num_layers, bidirectional))
    half = len(parts) // 2
    groups = parts[:half:2], parts[1:half:2], parts[half::2], parts[half + 1::2]
    w_ih, w_hh, b_ih, b_hh = (dict(enumerate(group)) for group in groups)
    return w_ih, w_hh, b_ih, b_hh


def swap_lstm_gates(weights: ArrayLike, input_size: int, hidden_size: int, num_layers: int,
                    bidirectional: bool) -> Array:
    """The vector of weights with the gates of cell and output exchanged, as other libraries order
    them.

    Args:
      weights: the vector.
      input_size, hidden_size, num_layers, bidirectional: as for `get_num_params_in_lstm`.

    >>> print(rnn.swap_lstm_gates(onp.arange(16.), 1, 1, 1, False))
    [ 0.  1.  3.  2.  4.  5.  7.  6.  8.  9. 11. 10. 12. 13. 15. 14.]
    """
    swapped = []
    for part in _taken_apart(weights, _shapes(input_size, hidden_size, num_layers, bidirectional)):
        first, forget, cell, output = split(part, 4)
        swapped += [x.ravel() for x in (first, forget, output, cell)]
    return concatenate(swapped)


class _Layer(NamedTuple):
    """The weights of one layer and direction."""

    w_ih: Array
    w_hh: Array
    b_ih: Array
    b_hh: Array


def _run_layer(x: Array, h: Array, c: Array, layer: _Layer, lengths: Array, backward: bool,
               precision: PrecisionLike) -> tuple[Array, Array, Array]:
    """(outputs [batch, time, hidden], last h, last c) of one layer in one direction."""
    times = matmul(x, layer.w_ih.T, precision=precision) + layer.b_ih + layer.b_hh

    def step(state: tuple[Array, Array], at: tuple[Array, Array]
             ) -> tuple[tuple[Array, Array], Array]:
        (h, c), (t, from_input) = state, at
        gates = from_input + matmul(h, layer.w_hh.T, precision=precision)
        first, forget, cell, output = split(gates, 4, axis=-1)
        c_new = sigmoid(forget) * c + sigmoid(first) * tanh(cell)
        h_new = sigmoid(output) * tanh(c_new)
        inside = (t < lengths)[:, None]     # behind the end the state stays
        return (where(inside, h_new, h), where(inside, c_new, c)), where(inside, h_new, 0.0)

    (h, c), y = scan(step, (h, c), (arange(typeof(x).shape[1]), swapaxes(times, 0, 1)),
                     reverse=backward)
    return swapaxes(y, 0, 1), h, c


def _check_arguments(x: Array, h_0: Array, c_0: Array, lengths: Array, sizes: tuple[Any, ...],
                     dropout: float) -> None:
    input_size, hidden_size, num_layers, directions = sizes
    if dropout:
        raise ValueError(f"lstm: dropout {dropout} given, for which there is no key; 0 is "
                         "required; drop between calls of one layer each.")
    if typeof(x).ndim != 3:
        raise ValueError(f"lstm: x {typeof(x)} given; an array of batch, time and input_size is "
                         "required.")
    batch = typeof(x).shape[0]
    required = {"x": (batch, typeof(x).shape[1], input_size), "seq_lengths": (batch,),
                "h_0": (num_layers * directions, batch, hidden_size)}
    required["c_0"] = required["h_0"]
    for (name, shape), value in zip(required.items(), (x, lengths, h_0, c_0), strict=True):
        if typeof(value).shape != shape:
            raise ValueError(f"lstm: {name} {typeof(value)} given; shape {shape} is required, of "
                             "batch, time and input_size.")


def lstm_ref(x: ArrayLike, h_0: ArrayLike, c_0: ArrayLike, W_ih: dict[int, Array],
             W_hh: dict[int, Array], b_ih: dict[int, Array], b_hh: dict[int, Array],
             seq_lengths: ArrayLike, input_size: int, hidden_size: int, num_layers: int,
             dropout: float, bidirectional: bool) -> tuple[Array, Array, Array]:
    """`lstm` of weights that are taken apart.

    Args:
      x, h_0, c_0, seq_lengths, input_size, hidden_size, num_layers, dropout, bidirectional: as for
        `lstm`.
      W_ih, W_hh, b_ih, b_hh: what `unpack_lstm_weights` gives.
    Returns: (y, h_n, c_n), as for `lstm`.

    >>> weights = rnn.unpack_lstm_weights(onp.ones(16), 1, 1, 1, False)
    >>> y, h, c = rnn.lstm_ref(onp.ones((1, 2, 1)), *onp.zeros((2, 1, 1, 1)), *weights,
    ...                        onp.array([2]), 1, 1, 1, 0.0, False)
    >>> print(y.shape, h[0, 0] == y[0, -1])
    (1, 2, 1) [ True]
    """
    return _layers(x, h_0, c_0, (W_ih, W_hh, b_ih, b_hh), seq_lengths, input_size, hidden_size,
                   num_layers, dropout, bidirectional, None)


def _layers(x: ArrayLike, h_0: ArrayLike, c_0: ArrayLike, parts: Parts, seq_lengths: ArrayLike,
            input_size: int, hidden_size: int, num_layers: int, dropout: float, bidirectional: bool,
            precision: PrecisionLike) -> tuple[Array, Array, Array]:
    y, h, c, lengths = map(to_array, (x, h_0, c_0, seq_lengths))
    directions = 2 if bidirectional else 1
    _check_arguments(y, h, c, lengths, (input_size, hidden_size, num_layers, directions), dropout)
    h_n, c_n = [], []
    for layer in range(num_layers):
        outs = []
        for direction in range(directions):
            i = layer * directions + direction
            out, h_i, c_i = _run_layer(y, h[i], c[i], _Layer(*[part[i] for part in parts]), lengths,
                                       direction == 1, precision)
            outs.append(out)
            h_n.append(h_i)
            c_n.append(c_i)
        y = concatenate(outs, axis=-1)
    return y, stack(h_n), stack(c_n)


def lstm(x: ArrayLike, h_0: ArrayLike, c_0: ArrayLike, weights: ArrayLike, seq_lengths: ArrayLike,
         input_size: int, hidden_size: int, num_layers: int, dropout: float, bidirectional: bool,
         precision: PrecisionLike = None) -> tuple[Array, Array, Array]:
    """Long short-term memory over a batch of sequences, as a loop of XLA's on every platform.

    Args:
      x: the sequences, of shape (batch, time, input_size).
      h_0, c_0: state and cell in the beginning, (num_layers * directions, batch, hidden_size).
      weights: the vector of weights; see `init_lstm_weight`.
      seq_lengths: the length of each sequence; elements behind it are not read.
      input_size, hidden_size, num_layers, bidirectional: as for `get_num_params_in_lstm`.
      dropout: must be 0.
      precision: of the products of matrices; see `lax.Precision`.
    Returns: (y, h_n, c_n): the states of the last layer, (batch, time, directions * hidden_size),
      zeros behind the ends; state and cell of each layer and direction at its last element.

    >>> weights = rnn.init_lstm_weight(olympus.random.key(0), 3, 4, 2, True)
    >>> start = onp.zeros((4, 2, 4))
    >>> y, h, c = rnn.lstm(onp.ones((2, 5, 3)), start, start, weights, onp.array([5, 2]), 3, 4, 2,
    ...                    0.0, True)
    >>> print(y.shape, onp.abs(y[1, 2:]).max())
    (2, 5, 8) 0.0
    """
    parts = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)
    return _layers(x, h_0, c_0, parts, seq_lengths, input_size, hidden_size, num_layers, dropout,
                   bidirectional, precision)


def lstm_fwd(x: ArrayLike, h_0: ArrayLike, c_0: ArrayLike, w: ArrayLike, seq_lengths: ArrayLike,
             input_size: int, hidden_size: int, num_layers: int, dropout: float,
             bidirectional: bool, precision: PrecisionLike) -> tuple[Any, Any]:
    """`lstm`, and what `lstm_bwd` needs.

    Args:
      x, h_0, c_0, seq_lengths, input_size, hidden_size, num_layers, dropout, bidirectional,
        precision: as for `lstm`.
      w: the vector of weights.
    Returns: ((y, h_n, c_n), residuals).

    >>> (y, h, c), residuals = rnn.lstm_fwd(onp.ones((1, 2, 1)), *onp.zeros((2, 1, 1, 1)),
    ...                                     onp.ones(16), onp.array([2]), 1, 1, 1, 0.0, False, None)
    >>> print(y.shape)
    (1, 2, 1)
    """
    run = functools.partial(
        lstm, seq_lengths=seq_lengths, input_size=input_size, hidden_size=hidden_size,
        num_layers=num_layers, dropout=dropout, bidirectional=bidirectional, precision=precision)
    return vjp(run, x, h_0, c_0, w)


def lstm_bwd(input_size: int, hidden_size: int, num_layers: int, dropout: float,
             bidirectional: bool, precision: PrecisionLike, residuals: Any, gradients: Any
             ) -> tuple[Any, ...]:
    """The cotangents of `lstm`.

    Args:
      input_size, hidden_size, num_layers, dropout, bidirectional, precision: as for `lstm`.
      residuals: what `lstm_fwd` gave.
      gradients: the cotangents of (y, h_n, c_n).
    Returns: The cotangents of x, h_0, c_0 and the weights, and None for the lengths.

    >>> out, residuals = rnn.lstm_fwd(onp.ones((1, 2, 1)), *onp.zeros((2, 1, 1, 1)), onp.ones(16),
    ...                               onp.array([2]), 1, 1, 1, 0.0, False, None)
    >>> x, h, c, w, _ = rnn.lstm_bwd(1, 1, 1, 0.0, False, None, residuals, out)
    >>> print(w.shape)
    (16,)
    """
    return *residuals(tuple(gradients)), None
