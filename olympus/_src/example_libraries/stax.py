"""Layers of neural networks as pairs of functions.

    init_fn(key, shape) -> (output_shape, params)    apply_fn(params, inputs, rng=…) -> outputs

A network is a layer too, made by `serial` and `parallel`. A batch of size -1 stays unknown. They
are there to be read, and for small programs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ..base.docstrings import complete_docstrings
from ..base.typing import Array, Axes, Shape
from ..control_flow.reduce_window import reduce_window
from ..jit.tracing import eval_shape
from ..lax import arithmetic, reduce
from ..lax.conv import conv_general_dilated
from ..lax.conv_variants import conv_transpose
from ..nn import activations
from ..nn.initializers import Initializer, glorot_normal, normal, ones, zeros
from ..nn.normalization import standardize
from ..numpy import arithmetic as uf, elementary as el
from ..numpy.creation import ones as full_of_ones
from ..numpy.joining import concatenate
from ..numpy.manipulation import reshape
from ..numpy.products import dot
from ..numpy.selection import where
from ..numpy.trigonometry import tanh
from ..random.discrete import bernoulli
from ..random.keys import split
from ..types.avals import ShapeDtypeStruct
from ..types.shape import definitely_equal, prod

Layer: TypeAlias = tuple[Callable[..., tuple[Any, Any]], Callable[..., Any]]

glorot, randn, logsoftmax = glorot_normal, normal, activations.log_softmax
_WEIGHTS, _BIAS, _SMALL = glorot_normal(), normal(), normal(1e-6)


def _shape_after(fun: Callable[[Any], Any], shape: Shape) -> tuple[int, ...]:
    """The shape of `fun`'s result; sizes of -1 are taken for 1 and stay -1 where they are."""
    unknown = [d for d, n in enumerate(shape) if definitely_equal(n, -1)]
    example = ShapeDtypeStruct([1 if d in unknown else n for d, n in enumerate(shape)], "float32")
    return tuple([-1 if d in unknown else n for d, n in enumerate(eval_shape(fun, example).shape)])


def Dense(out_dim: int, W_init: Initializer = _WEIGHTS,
          b_init: Initializer = _BIAS) -> Layer:
    """A fully connected layer: inputs @ W + b.

    Args:
      out_dim: how many outputs.
      W_init, b_init: initializers of W: [in, out] and b: [out].
    Returns: A layer of inputs of shape (…, in).

    >>> init, apply = stax.Dense(5)
    >>> shape, (W, b) = init(olympus.random.key(0), (-1, 3))
    >>> shape, W.shape, b.shape
    ((-1, 5), (3, 5), (5,))
    """
    def init_fn(key: Array, input_shape: Shape) -> Any:
        keys = split(key)
        return (*input_shape[:-1], out_dim), (W_init(keys[0], (input_shape[-1], out_dim)),
                                              b_init(keys[1], (out_dim,)))

    def apply_fn(params: Any, inputs: Array, **kwargs: object) -> Any:
        W, b = params
        return dot(inputs, W) + b

    return init_fn, apply_fn


# Convolutions ------------------------------------------------------------------------------------

def _convolution(convolve: Callable[..., Any], dimension_numbers: Any, out_chan: int,
                 filter_shape: Sequence[int], strides: object, padding: object, W_init: Any,
                 b_init: Any) -> Layer:
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    strides = strides or (1,) * len(filter_shape)
    W_init = W_init or glorot_normal(rhs_spec.index("I"), rhs_spec.index("O"))

    def init_fn(key: Array, input_shape: Shape) -> Any:
        sizes = iter(filter_shape)
        kernel = [out_chan if c == "O" else input_shape[lhs_spec.index("C")] if c == "I"
                  else next(sizes) for c in rhs_spec]
        bias = [out_chan if c == "C" else 1 for c in out_spec]
        keys = split(key)
        params = W_init(keys[0], kernel), b_init(keys[1], bias)
        return _shape_after(lambda x: apply_fn(params, x), input_shape), params

    def apply_fn(params: Any, inputs: Array, **kwargs: object) -> Any:
        W, b = params
        return convolve(inputs, W, strides, padding, dimension_numbers=dimension_numbers) + b

    return init_fn, apply_fn


def GeneralConv(dimension_numbers: Any, out_chan: int, filter_shape: Sequence[int],
                strides: Sequence[int] | None = None, padding: str = "VALID",
                W_init: Initializer | None = None, b_init: Initializer = _SMALL) -> Layer:
    """A convolution with a bias for each channel.

    Args:
      dimension_numbers: which axes are which, such as ("NHWC", "HWIO", "NHWC"); see
        `lax.conv_general_dilated`.
      out_chan: how many channels come out.
      filter_shape: the size of the kernel along each spatial axis.
      padding: "VALID", "SAME" or pairs.
      W_init, b_init: initializers; None is `glorot_normal` of the kernel's channels.

    >>> init, apply = stax.GeneralConv(("NCHW", "OIHW", "NCHW"), 5, (3, 3))
    >>> init(olympus.random.key(0), (-1, 3, 8, 8))[0]
    (-1, 5, 6, 6)
    """
    return _convolution(conv_general_dilated, dimension_numbers, out_chan, filter_shape, strides,
                        padding, W_init, b_init)


def Conv(out_chan: int, filter_shape: Sequence[int], strides: Sequence[int] | None = None,
         padding: str = "VALID", W_init: Initializer | None = None,
         b_init: Initializer = _SMALL) -> Layer:
    """`GeneralConv` of images whose channels come last.

    Returns: A layer of inputs [N, H, W, C].

    >>> init, apply = stax.Conv(5, (3, 3), padding="SAME")
    >>> init(olympus.random.key(0), (-1, 8, 8, 3))[0]
    (-1, 8, 8, 5)
    """
    return GeneralConv(("NHWC", "HWIO", "NHWC"), out_chan, filter_shape, strides, padding, W_init,
                       b_init)


def GeneralConvTranspose(dimension_numbers: Any, out_chan: int, filter_shape: Sequence[int],
                         strides: Sequence[int] | None = None, padding: str = "VALID",
                         W_init: Initializer | None = None, b_init: Initializer = _SMALL
                         ) -> Layer:
    """A transposed convolution, which makes images larger, with a bias for each channel.

    Args: dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init: as for
        `GeneralConv`, with `lax.conv_transpose`.

    >>> init, apply = stax.GeneralConvTranspose(("NCHW", "OIHW", "NCHW"), 5, (3, 3), (2, 2))
    >>> init(olympus.random.key(0), (-1, 3, 8, 8))[0]
    (-1, 5, 17, 17)
    """
    return _convolution(conv_transpose, dimension_numbers, out_chan, filter_shape, strides, padding,
                        W_init, b_init)


def Conv1DTranspose(out_chan: int, filter_shape: Sequence[int],
                    strides: Sequence[int] | None = None, padding: str = "VALID",
                    W_init: Initializer | None = None, b_init: Initializer = _SMALL
                    ) -> Layer:
    """`GeneralConvTranspose` of sequences whose channels come last.

    Returns: A layer of inputs [N, H, C].

    >>> init, apply = stax.Conv1DTranspose(5, (3,), (2,))
    >>> init(olympus.random.key(0), (-1, 8, 3))[0]
    (-1, 17, 5)
    """
    return GeneralConvTranspose(("NHC", "HIO", "NHC"), out_chan, filter_shape, strides, padding,
                                W_init, b_init)


def ConvTranspose(out_chan: int, filter_shape: Sequence[int], strides: Sequence[int] | None = None,
                  padding: str = "VALID", W_init: Initializer | None = None,
                  b_init: Initializer = _SMALL) -> Layer:
    """`GeneralConvTranspose` of images whose channels come last.

    Returns: A layer of inputs [N, H, W, C].

    >>> init, apply = stax.ConvTranspose(5, (3, 3), (2, 2))
    >>> init(olympus.random.key(0), (-1, 8, 8, 3))[0]
    (-1, 17, 17, 5)
    """
    return GeneralConvTranspose(("NHWC", "HWIO", "NHWC"), out_chan, filter_shape, strides, padding,
                                W_init, b_init)


def BatchNorm(axis: Axes = (0, 1, 2), epsilon: float = 1e-5, center: bool = True,
              scale: bool = True, beta_init: Initializer = zeros, gamma_init: Initializer = ones
              ) -> Layer:
    """Inputs standardised over axes, times gamma, plus beta.

    Args:
      axis: the axes of the statistics, which cover this batch alone.
      epsilon: added to the variance.
      center, scale: whether there is a beta, a gamma; () stands for one that is not.
      beta_init, gamma_init: their initializers, of the shape of the other axes.

    >>> init, apply = stax.BatchNorm(axis=0)
    >>> _, params = init(olympus.random.key(0), (-1, 2))
    >>> print(apply(params, onp.array([[1., 5.], [3., 5.]])).round(3))
    [[-1.  0.]
     [ 1.  0.]]
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init_fn(key: Array, input_shape: Shape) -> Any:
        shape = tuple([n for d, n in enumerate(input_shape) if d not in axes])
        keys = split(key)
        return input_shape, (beta_init(keys[0], shape) if center else (),
                             gamma_init(keys[1], shape) if scale else ())

    def apply_fn(params: Any, inputs: Array, **kwargs: object) -> Array:
        beta, gamma = params
        along = tuple([None if d in axes else slice(None) for d in range(inputs.ndim)])
        out = standardize(inputs, axes, epsilon=epsilon)
        out = out * gamma[along] if scale else out
        return out + beta[along] if center else out

    return init_fn, apply_fn


# Without parameters ------------------------------------------------------------------------------

def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """A layer that applies a function of one array, and has no parameters.

    Args:
      fun: a function that keeps the shape.
      **fun_kwargs: its further arguments.

    >>> init, apply = stax.elementwise(onp.clip, min=0.0)
    >>> print(apply((), onp.array([-1., 2.])))
    [0. 2.]
    """
    return (lambda key, input_shape: (input_shape, ()),
            lambda params, inputs, **kwargs: fun(inputs, **fun_kwargs))


Tanh = elementwise(tanh)
Relu = elementwise(activations.relu)
Exp = elementwise(el.exp)
LogSoftmax = elementwise(activations.log_softmax, axis=-1)
Softmax = elementwise(activations.softmax, axis=-1)
Softplus = elementwise(activations.softplus)
Sigmoid = elementwise(activations.sigmoid)
Elu = elementwise(activations.elu)
LeakyRelu = elementwise(activations.leaky_relu)
Selu = elementwise(activations.selu)
Gelu = elementwise(activations.gelu)
Identity = elementwise(lambda x: x)
Flatten: Layer = (lambda key, shape: ((shape[0], prod(tuple(shape[1:]))), ()),
                  lambda params, inputs, **kwargs: reshape(inputs, (inputs.shape[0], -1)))


def _pooling(reducer: Callable[..., Any], start: Callable[[Any], Any], window_shape: Sequence[int],
             strides: Any, padding: Any, spec: str | None, finish: Any = None) -> Layer:
    strides = tuple(strides or (1,) * len(window_shape))
    spec = spec or "N" + "HWD"[:len(window_shape)] + "C"

    def full(sizes: Sequence[int]) -> tuple[int, ...]:
        spatial = iter(sizes)
        return tuple([1 if c in "NC" else next(spatial) for c in spec])

    def pool(x: Any) -> Any:
        return reduce_window(x, start(x.dtype), reducer, full(window_shape), full(strides), padding)

    def apply_fn(params: Any, inputs: Any, **kwargs: Any) -> Any:
        out = pool(inputs)
        return out if finish is None else finish(out, pool(full_of_ones(inputs.shape, out.dtype)))

    return lambda key, input_shape: (_shape_after(pool, input_shape), ()), apply_fn


def MaxPool(window_shape: Sequence[int], strides: Sequence[int] | None = None,
            padding: str = "VALID", spec: str | None = None) -> Layer:
    """The largest elements in windows.

    >>> init, apply = stax.MaxPool((2,), (2,), "SAME")
    >>> print(apply((), onp.array([1., 2., 3.]).reshape(1, 3, 1)).ravel())
    [2. 3.]
    """
    return _pooling(arithmetic.max, reduce.lowest, window_shape, strides, padding, spec)


def SumPool(window_shape: Sequence[int], strides: Sequence[int] | None = None,
            padding: str = "VALID", spec: str | None = None) -> Layer:
    """Sums over windows.

    >>> init, apply = stax.SumPool((2,), (2,), "SAME")
    >>> print(apply((), onp.array([1., 2., 3.]).reshape(1, 3, 1)).ravel())
    [3. 3.]
    """
    return _pooling(arithmetic.add, lambda dtype: 0.0, window_shape, strides, padding, spec)


def AvgPool(window_shape: Sequence[int], strides: Sequence[int] | None = None,
            padding: str = "VALID", spec: str | None = None) -> Layer:
    """Means over windows; padding does not count.

    >>> init, apply = stax.AvgPool((2,), (2,), "SAME")
    >>> print(apply((), onp.array([1., 2., 3.]).reshape(1, 3, 1)).ravel())
    [1.5 3. ]
    """
    return _pooling(arithmetic.add, lambda dtype: 0.0, window_shape, strides, padding, spec,
                    uf.divide)


def FanOut(num: int) -> Layer:
    """Several copies of the input, for `parallel`.

    Args: num: how many.
    Returns: A layer whose result is a list.

    >>> stax.FanOut(2)[0](None, (-1, 3))[0]
    [(-1, 3), (-1, 3)]
    """
    return (lambda key, input_shape: ([input_shape] * num, ()),
            lambda params, inputs, **kwargs: [inputs] * num)


FanInSum: Layer = (lambda key, input_shapes: (input_shapes[0], ()),
                   lambda params, inputs, **kwargs: sum(inputs[1:], inputs[0]))


def FanInConcat(axis: int = -1) -> Layer:
    """The results of parallel layers, joined along an axis.

    Args: axis: the axis.
    Returns: A layer of a list of inputs.

    >>> stax.FanInConcat()[0](None, [(-1, 3), (-1, 4)])[0]
    (-1, 7)
    """
    def init_fn(key: Array, input_shapes: Sequence[Shape]) -> Any:
        out = list(input_shapes[0])
        out[axis] = sum(shape[axis] for shape in input_shapes)
        return tuple(out), ()

    return init_fn, lambda params, inputs, **kwargs: concatenate(inputs, axis)


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Elements kept with probability rate, and divided by it, or 0.

    Args:
      rate: the share that is kept.
      mode: "train", or another: then nothing is dropped.
    Returns: A layer, whose apply_fn takes a key, `rng=key`, to train; ValueError without.

    >>> init, apply = stax.Dropout(0.5)
    >>> out = apply((), onp.ones(1000), rng=olympus.random.key(0))
    >>> print(onp.unique(out), (out.mean() - 1).round(1))
    [0. 2.] -0.0
    """
    def apply_fn(params: object, inputs: Array, **kwargs: Any) -> Array:
        if mode != "train":
            return inputs
        if kwargs.get("rng") is None:
            raise ValueError("Dropout: no key given; one is required to train; call "
                             "apply_fn(params, inputs, rng=key).")
        keep = bernoulli(kwargs["rng"], rate, inputs.shape)
        return where(keep, inputs / rate, 0)

    return lambda key, input_shape: (input_shape, ()), apply_fn


# Combinators -------------------------------------------------------------------------------------

def _split_keys(kwargs: dict[str, Any], count: int) -> list[None] | list[Array]:
    key = kwargs.pop("rng", None)
    return [None] * count if key is None else list(split(key, count))


def serial(*layers: Layer) -> Layer:
    """Layers one after the other.

    Args: *layers: each takes the result of the one before it.
    Returns: A layer, whose parameters are a list of theirs; a key is split into one for each.

    >>> init, apply = stax.serial(stax.Flatten, stax.Dense(10), stax.Relu)
    >>> shape, params = init(olympus.random.key(0), (-1, 2, 3))
    >>> shape, len(params)
    ((-1, 10), 3)
    """
    def init_fn(key: Array, input_shape: object) -> Any:
        params = []
        for init, _ in layers:
            key, own = split(key)
            input_shape, own_params = init(own, input_shape)
            params.append(own_params)
        return input_shape, params

    def apply_fn(params: Any, inputs: Array, **kwargs: object) -> Array:
        for (_, apply), own_params, key in zip(layers, params, _split_keys(kwargs, len(layers))):
            inputs = apply(own_params, inputs, rng=key, **kwargs)
        return inputs

    return init_fn, apply_fn


def parallel(*layers: Layer) -> Layer:
    """Layers side by side: a list of inputs, one for each, to a list of outputs.

    Args:
      *layers: see `FanOut`, which makes their inputs, and `FanInSum`, which joins their results.
    Returns: A layer, whose parameters are a list of theirs; a key is split into one for each.

    >>> block = stax.serial(stax.FanOut(2), stax.parallel(stax.Dense(3), stax.Identity),
    ...                     stax.FanInSum)
    >>> block[0](olympus.random.key(0), (-1, 3))[0]
    (-1, 3)
    """
    def init_fn(key: Array, input_shapes: Any) -> Any:
        made = [init(own, shape) for (init, _), own, shape in zip(
            layers, split(key, len(layers)), input_shapes)]
        return tuple([shape for shape, _ in made]), tuple([params for _, params in made])

    def apply_fn(params: Any, inputs: Array, **kwargs: object) -> Any:
        keys = _split_keys(kwargs, len(layers))
        return [apply(p, x, rng=key, **kwargs)
                for (_, apply), p, x, key in zip(layers, params, inputs, keys)]

    return init_fn, apply_fn


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """A layer that is made when the shape of its input is known.

    Args: make_layer: from a shape, a layer.

    >>> residual = stax.shape_dependent(lambda shape: stax.Dense(shape[-1]))
    >>> residual[0](olympus.random.key(0), (-1, 3))[0]
    (-1, 3)
    """
    return (lambda key, input_shape: make_layer(input_shape)[0](key, input_shape),
            lambda params, inputs, **kwargs: make_layer(inputs.shape)[1](params, inputs, **kwargs))


complete_docstrings(globals(), {
    "strides": "steps of the window; None is 1.",
    "padding": '"VALID" or "SAME".',
    "out_chan, filter_shape, strides, padding, W_init, b_init": "as for `GeneralConv`.",
    "window_shape": "the size of the window along each spatial axis.",
    "spec": 'which axes are of batches (N) and channels (C); None is "NHWC" of images.',
}, returns="A layer.")
