"""First-order optimisers of pytrees: three functions each, made from rules for one array.

    init_fn(params) -> state    update_fn(i, grads, state) -> state    params_fn(state) -> params

They are there to be read, and for small programs. A state is a pytree, so that steps compile.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from ..base.docstrings import complete_docstrings
from ..base.typing import Array, ArrayLike, P, PyTree
from ..core.trace import typeof
from ..numpy import arithmetic as uf, elementary as el, reductions
from ..numpy.creation import asarray, zeros, zeros_like
from ..numpy.selection import where
from ..types import dtypes
from ..types.tree import tree_flatten, tree_leaves, tree_map, tree_unflatten
from ..types.tree_registry import PyTreeDef, register_pytree_node


class OptimizerState(NamedTuple):
    """The state of an optimiser: for each array of the parameters, the leaves of its own state.

    A pytree; `unpack_optimizer_state` shows it as one of the structure of the parameters.

    >>> from olympus.example_libraries import optimizers
    >>> state = optimizers.momentum(0.1, 0.9).init_fn({"w": 2.0})
    >>> len(state.packed_state), state.tree_def
    (1, PyTreeDef({'w': *}))
    """

    packed_state: Any
    tree_def: Any
    subtree_defs: Any


register_pytree_node(
    OptimizerState, lambda s: ((s.packed_state,), (s.tree_def, s.subtree_defs)),
    lambda defs, children: OptimizerState(children[0], *defs))

Real: TypeAlias = float | Array
Step: TypeAlias = Real
Schedule: TypeAlias = Callable[[Step], ArrayLike]
Rules: TypeAlias = tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]
InitFn: TypeAlias = Callable[[PyTree], OptimizerState]
UpdateFn: TypeAlias = Callable[[Step, PyTree, OptimizerState], OptimizerState]
ParamsFn: TypeAlias = Callable[[OptimizerState], PyTree]


class Optimizer(NamedTuple):
    """The three functions of an optimiser.

    >>> from olympus.example_libraries import optimizers
    >>> init, update, params = optimizers.sgd(0.5)
    >>> print(params(update(0, 4.0, init(1.0))))
    -1.0
    """

    init_fn: InitFn
    update_fn: UpdateFn
    params_fn: ParamsFn


def optimizer(opt_maker: Callable[P, Rules]) -> Callable[P, Optimizer]:
    """Decorator: from an optimiser of one array, one of pytrees.

    Args: opt_maker: a function that returns (init, update, params) for single arrays: `init(x)` is
        a pytree, `update(i, g, state)` the next one, and `params(state)` the array.
    Returns: A function of the same arguments that returns an `Optimizer`. Its `update_fn` raises
      TypeError for gradients of another structure than the parameters.

    >>> @optimizers.optimizer
    ... def sign_descent(step):
    ...     return (lambda x: x), (lambda i, g, x: x - step * abs(g) / g), (lambda x: x)
    >>> init, update, params = sign_descent(0.25)
    >>> print(params(update(0, [8.0, -3.0], init([1.0, 1.0]))))
    [0.75, 1.25]
    """
    @functools.wraps(opt_maker)
    def make(*args: P.args, **kwargs: P.kwargs) -> Optimizer:
        init, update, read = opt_maker(*args, **kwargs)

        def pack(states: Sequence[PyTree], treedef: PyTreeDef) -> OptimizerState:
            pairs = [tree_flatten(state) for state in states]
            return OptimizerState(tuple([leaves for leaves, _ in pairs]), treedef,
                                  tuple([inner for _, inner in pairs]))

        def states(state: OptimizerState) -> list[PyTree]:
            return list(map(tree_unflatten, state.subtree_defs, state.packed_state))

        def init_fn(params: PyTree) -> OptimizerState:
            leaves, treedef = tree_flatten(params)
            return pack([init(x) for x in leaves], treedef)

        def update_fn(i: Step, grads: PyTree, state: OptimizerState) -> OptimizerState:
            leaves, treedef = tree_flatten(grads)
            if treedef != state.tree_def:
                raise TypeError(f"update_fn: gradients of structure {treedef} given; the structure "
                                f"of the parameters, {state.tree_def}, is required.")
            return pack([update(i, g, s) for g, s in zip(leaves, states(state))], treedef)

        def params_fn(state: OptimizerState) -> PyTree:
            return tree_unflatten(state.tree_def, [read(s) for s in states(state)])

        return Optimizer(init_fn, update_fn, params_fn)
    return make


# Optimisers of one array -------------------------------------------------------------------------

def _first(state: PyTree) -> object:
    return state[0]


def _inverse_root(x: Array) -> Array:
    """x**-0.5, and 0 where x is 0."""
    return where(x > 0, 1 / el.sqrt(where(x > 0, x, 1)), 0)


@optimizer
def sgd(step_size: ArrayLike | Schedule) -> Rules:
    """Gradient descent: x - step_size g.

    Returns: An `Optimizer`.

    >>> init, update, params = optimizers.sgd(0.1)
    >>> print(params(update(0, 2.0, init(1.0))))
    0.8
    """
    rate = make_schedule(step_size)
    return (lambda x: x), (lambda i, g, x: x - rate(i) * g), (lambda x: x)


@optimizer
def momentum(step_size: ArrayLike | Schedule, mass: ArrayLike) -> Rules:
    """Gradient descent with momentum: velocities v = mass v + g, steps -step_size v.

    Returns: An `Optimizer`. Polyak (1964).

    >>> init, update, params = optimizers.momentum(0.1, 0.9)
    >>> print(params(update(0, 2.0, init(1.0))))
    0.8
    """
    rate = make_schedule(step_size)

    def update(i: Step, g: Array, state: PyTree) -> Any:
        x, v = state
        v = mass * v + g
        return x - rate(i) * v, v

    return (lambda x: (x, zeros_like(x))), update, _first


@optimizer
def nesterov(step_size: ArrayLike | Schedule, mass: ArrayLike) -> Rules:
    """Momentum whose gradient counts ahead: steps -step_size (mass v + g).

    Returns: An `Optimizer`. Nesterov (1983).

    >>> init, update, params = optimizers.nesterov(0.1, 0.9)
    >>> print(params(update(0, 2.0, init(1.0))))
    0.62
    """
    rate = make_schedule(step_size)

    def update(i: Step, g: Array, state: PyTree) -> Any:
        x, v = state
        v = mass * v + g
        return x - rate(i) * (mass * v + g), v

    return (lambda x: (x, zeros_like(x))), update, _first


@optimizer
def adagrad(step_size: ArrayLike | Schedule, momentum: ArrayLike = 0.9) -> Rules:
    """Steps divided by the root of the sum of all squares of gradients, averaged.

    Returns: An `Optimizer`. Duchi et al. (2011).

    >>> init, update, params = optimizers.adagrad(0.1)
    >>> print(params(update(0, 2.0, init(1.0))))
    0.99
    """
    rate = make_schedule(step_size)

    def update(i: Step, g: Array, state: PyTree) -> Any:
        x, squares, m = state
        squares = squares + uf.square(g)
        m = (1 - momentum) * (g * _inverse_root(squares)) + momentum * m
        return x - rate(i) * m, squares, m

    return (lambda x: (x, zeros_like(x), zeros_like(x))), update, _first


@optimizer
def rmsprop(step_size: ArrayLike | Schedule, gamma: ArrayLike = 0.9,
            eps: ArrayLike = 1e-8) -> Rules:
    """Steps divided by the root of a moving average of squares of gradients.

    Args: gamma: how much of the average stays.
    Returns: An `Optimizer`. Tieleman and Hinton (2012).

    >>> init, update, params = optimizers.rmsprop(0.1)
    >>> print(params(update(0, 2.0, init(1.0))))
    0.6837722
    """
    rate = make_schedule(step_size)

    def update(i: Step, g: Array, state: PyTree) -> Any:
        x, squares = state
        squares = gamma * squares + (1 - gamma) * uf.square(g)
        return x - rate(i) * g / el.sqrt(squares + eps), squares

    return (lambda x: (x, zeros_like(x))), update, _first


@optimizer
def rmsprop_momentum(step_size: ArrayLike | Schedule, gamma: ArrayLike = 0.9,
                     eps: ArrayLike = 1e-8, momentum: ArrayLike = 0.9) -> Rules:
    """`rmsprop` whose steps add up: the last one times momentum and the next.

    Args:
      gamma: how much of the average of squares stays.
      momentum: how much of the last step stays.
    Returns: An `Optimizer`.

    >>> init, update, params = optimizers.rmsprop_momentum(0.1)
    >>> print(params(update(0, 2.0, init(1.0))))
    0.6837722
    """
    rate = make_schedule(step_size)

    def update(i: Step, g: Array, state: PyTree) -> Any:
        x, squares, step = state
        squares = gamma * squares + (1 - gamma) * uf.square(g)
        step = momentum * step + rate(i) * g / el.sqrt(squares + eps)
        return x - step, squares, step

    return (lambda x: (x, zeros_like(x), zeros_like(x))), update, _first


@optimizer
def adam(step_size: ArrayLike | Schedule, b1: ArrayLike = 0.9, b2: ArrayLike = 0.999,
         eps: ArrayLike = 1e-8) -> Rules:
    """Averages of gradients over roots of averages of squares, corrected for starting at 0.

    Args:
      b1, b2: how much of the averages of gradients and of squares stays.
      eps: added to the root.
    Returns: An `Optimizer`. Kingma and Ba (2015).

    >>> init, update, params = optimizers.adam(0.1)
    >>> print(abs(params(update(0, 2.0, init(1.0))) - 0.9) < 1e-6)
    True
    """
    rate = make_schedule(step_size)

    def update(i: Step, g: Array, state: PyTree) -> Any:
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * uf.square(g) + b2 * v
        m_hat = m / (1 - asarray(b1, m.dtype) ** (i + 1))
        v_hat = v / (1 - asarray(b2, m.dtype) ** (i + 1))
        return x - rate(i) * m_hat / (el.sqrt(v_hat) + eps), m, v

    return (lambda x: (x, zeros_like(x), zeros_like(x))), update, _first


@optimizer
def adamax(step_size: ArrayLike | Schedule, b1: ArrayLike = 0.9, b2: ArrayLike = 0.999,
           eps: ArrayLike = 1e-8) -> Rules:
    """`adam` with the largest gradient so far, decaying, instead of the root.

    Args:
      b1, b2: how much of the average and of the largest size stays.
      eps: added to the size.
    Returns: An `Optimizer`. Kingma and Ba (2015).

    >>> init, update, params = optimizers.adamax(0.1)
    >>> print(abs(params(update(0, 2.0, init(1.0))) - 0.9) < 1e-6)
    True
    """
    rate = make_schedule(step_size)

    def update(i: Step, g: Array, state: PyTree) -> Any:
        x, m, u = state
        m = (1 - b1) * g + b1 * m
        u = uf.maximum(b2 * u, uf.absolute(g))
        return x - rate(i) / (1 - asarray(b1, m.dtype) ** (i + 1)) * m / (u + eps), m, u

    return (lambda x: (x, zeros_like(x), zeros_like(x))), update, _first


@optimizer
def sm3(step_size: ArrayLike | Schedule, momentum: ArrayLike = 0.9) -> Rules:
    """`adagrad` that keeps a vector for each axis instead of an array of sums of squares.

    Returns:
      An `Optimizer`. Anil et al., "Memory-efficient adaptive
      optimization" (2019).

    >>> init, update, params = optimizers.sm3(0.1)
    >>> print(params(update(0, 2.0, init(1.0))))
    0.99
    """
    rate = make_schedule(step_size)

    def init(x: Array) -> Any:
        aval = typeof(x)
        bounds = [zeros(n, aval.dtype) for n in aval.shape]
        return x, zeros_like(x), bounds or [zeros_like(x)]

    def spread(bound: Any, axis: int, ndim: int) -> Any:
        return bound[tuple([slice(None) if d == axis else None for d in range(ndim)])]

    def update(i: Step, g: Array, state: PyTree) -> Any:
        x, m, bounds = state
        axes = range(len(bounds))
        squares = functools.reduce(uf.minimum, [
            spread(v, d, typeof(x).ndim) for d, v in zip(axes, bounds)]) + uf.square(g)
        m = (1 - momentum) * (g * _inverse_root(squares)) + momentum * m
        bounds = [reductions.max(squares, [e for e in axes if e != d]) for d in axes]
        return x - rate(i) * m, m, bounds

    return init, update, _first


# Schedules ---------------------------------------------------------------------------------------

def constant(step_size: ArrayLike) -> Schedule:
    """The same step size at all steps.

    Args: step_size: a number.
    Returns: A `Schedule`: a function of the number of the step.

    >>> optimizers.constant(0.1)(7)
    0.1
    """
    return lambda i: step_size


def exponential_decay(step_size: Real, decay_steps: Real, decay_rate: Real) -> Schedule:
    """step_size decay_rate^(i / decay_steps).

    Args:
      step_size: the first.
      decay_steps: after so many steps it is `decay_rate` times the first.
      decay_rate: a factor.

    >>> optimizers.exponential_decay(1.0, 10, 0.5)(20)
    0.25
    """
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size: Real, decay_steps: Real, decay_rate: Real,
                       staircase: bool = False) -> Schedule:
    """step_size / (1 + decay_rate i / decay_steps).

    Args:
      step_size: the first.
      decay_steps: the unit in which steps are counted.
      decay_rate: how fast it falls.
      staircase: whether only whole units count.

    >>> print(optimizers.inverse_time_decay(1.0, 10, 0.5, staircase=True)(29))
    0.5
    """
    def schedule(i: Step) -> Real:
        units = i // decay_steps if staircase else i / decay_steps
        return step_size / (1 + decay_rate * units)
    return schedule


def polynomial_decay(step_size: Real, decay_steps: Real, final_step_size: Real, power: Real = 1.0
                     ) -> Schedule:
    """From step_size to final_step_size along (1 - i / decay_steps)^power.

    Args:
      step_size: the first.
      decay_steps: from this step on it is the final one.
      final_step_size: the last.
      power: the exponent; 1 is a straight line.

    >>> print(optimizers.polynomial_decay(1.0, 10, 0.5)(5))
    0.75
    """
    def schedule(i: Step) -> Array:
        left = 1 - uf.minimum(i, decay_steps) / decay_steps
        return left**power * (step_size - final_step_size) + final_step_size
    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """values[0] up to the first boundary, then values[1] up to the second, …

    Args:
      boundaries: n steps, in order; a step at a boundary still has the value before it.
      values: n + 1 step sizes.
    Returns: A `Schedule`. ValueError unless there is one value more than boundaries.

    >>> schedule = optimizers.piecewise_constant([10, 20], [0.5, 0.25, 0.125])
    >>> print(schedule(10), schedule(11), schedule(100))
    0.5 0.25 0.125
    """
    boundaries, values = asarray(boundaries), asarray(values)
    if boundaries.ndim != 1 or values.shape != (boundaries.shape[0] + 1,):
        raise ValueError(f"piecewise_constant: boundaries {boundaries.aval} and values "
                         f"{values.aval} given; vectors are required, with one value more than "
                         "there are boundaries.")
    return lambda i: values[reductions.sum(i > boundaries)]


def make_schedule(scalar_or_schedule: ArrayLike | Schedule) -> Schedule:
    """A schedule as it is, or of a number the constant one.

    Args: scalar_or_schedule: a number, or a function of the number of the step.
    Returns: A `Schedule`. TypeError for arrays that are no number.

    >>> optimizers.make_schedule(0.5)(3)
    0.5
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if typeof(scalar_or_schedule).shape == ():
        return constant(scalar_or_schedule)
    raise TypeError(f"make_schedule: {typeof(scalar_or_schedule)} given; a number or a function of "
                    "the step is required.")


# Norms, and states as pytrees --------------------------------------------------------------------

def l2_norm(tree: PyTree) -> Array:
    """The root of the sum of squares over all arrays of a pytree.

    Args: tree: a pytree of real arrays.
    Returns: An array without axes; squares of 16-bit floats are taken in float32.

    >>> print(optimizers.l2_norm({"a": 3.0, "b": [4.0]}))
    5.0
    """
    squares = (uf.square(asarray(x, dtypes.wide_dtype(typeof(x).dtype))) for x in tree_leaves(tree))
    return el.sqrt(sum(map(reductions.sum, squares), asarray(0.0)))


def clip_grads(grad_tree: PyTree, max_norm: ArrayLike) -> PyTree:
    """Gradients scaled down, all by one factor, so that their `l2_norm` is at most max_norm.

    Args:
      grad_tree: a pytree of real arrays.
      max_norm: the largest norm.
    Returns: A pytree of the same structure.

    >>> print(optimizers.clip_grads(onp.array([3., 4.]), 1.0))
    [0.6 0.8]
    """
    norm = l2_norm(grad_tree)
    return tree_map(lambda g: where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


class JoinPoint:
    """A leaf that holds a pytree: where two pytrees are joined.

    >>> from olympus.example_libraries import optimizers
    >>> optimizers.JoinPoint((1, 2)).subtree
    (1, 2)
    """

    def __init__(self, subtree: PyTree) -> None:
        self.subtree = subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> PyTree:
    """A state as a pytree of the parameters' structure, for saving.

    Args: opt_state: what `init_fn` and `update_fn` return.
    Returns: A pytree with a `JoinPoint` for each array, which holds that array's own state.

    >>> state = optimizers.momentum(0.1, 0.9).init_fn({"w": 2.0})
    >>> optimizers.unpack_optimizer_state(state)["w"].subtree[0]
    2.0
    """
    packed, treedef, inner = opt_state
    return tree_unflatten(treedef, [JoinPoint(tree_unflatten(d, leaves))
                                    for d, leaves in zip(inner, packed)])


def pack_optimizer_state(marked_pytree: PyTree) -> OptimizerState:
    """The state that `unpack_optimizer_state` made a pytree of.

    Args: marked_pytree: a pytree whose leaves are `JoinPoint`s.
    Returns: An `OptimizerState`. TypeError for other leaves.

    >>> init, _, params = optimizers.sgd(0.1)
    >>> tree = optimizers.unpack_optimizer_state(init({"w": 2.0}))
    >>> params(optimizers.pack_optimizer_state(tree))
    {'w': 2.0}
    """
    points, treedef = tree_flatten(marked_pytree)
    if not all(isinstance(p, JoinPoint) for p in points):
        raise TypeError("pack_optimizer_state: leaves that are no JoinPoint given; what "
                        "unpack_optimizer_state returns is required.")
    pairs = [tree_flatten(p.subtree) for p in points]
    return OptimizerState(tuple([leaves for leaves, _ in pairs]), treedef,
                          tuple([inner for _, inner in pairs]))


complete_docstrings(globals(), {
    "step_size": "a number, or a `Schedule`.",
    "mass": "how much of the velocity stays.",
    "momentum": "how much of the average of steps stays.",
    "eps": "added under the root.",
}, returns="A `Schedule`.")
