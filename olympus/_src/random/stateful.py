"""Generators that keep their state: a key, and a reference that counts the draws."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import numpy as np

from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, DTypeLike, Reference
from ..numpy.creation import zeros
from ..numpy.refs import new_ref
from ..types.shape import broadcast_shapes, canonical_shape
from ..types.tree_registry import register_pytree_node_class
from .continuous import normal, uniform
from .discrete import randint
from .keys import PRNGKeyArray, fold_in, key, split

Size = int | Sequence[int] | None


@register_pytree_node_class
class StatefulPRNG:
    """Draws of pseudorandom numbers, each from another key: made by `stateful_rng`.

    A pytree of a key and a reference to the number of draws. Under `vmap` each element needs a
    generator of its own, see `split`.

    >>> rng = olympus.experimental.random.stateful_rng(0)
    >>> draw = olympus.jit(lambda rng: rng.uniform(size=2))
    >>> print(draw(rng), draw(rng))
    [0.8423141  0.18237865] [0.00729382 0.02089119]
    """

    __slots__ = ("_base_key", "_counter")

    def __init__(self, _base_key: Array, _counter: Reference) -> None:
        self._base_key, self._counter = _base_key, _counter

    @api_boundary
    def key(self, shape: int | Sequence[int] = ()) -> Array:
        """A key that no other draw has, or an array of them.

        Args:
          shape: of the array of keys.

        Returns:
          A key array of that shape.
        """
        if self._base_key.shape:
            raise ValueError(f"StatefulPRNG: {self._base_key.aval} given as its key: it was split; "
                             "one generator is required; map over it with olympus.vmap.")
        count = self._counter[...]
        self._counter[...] = count + 1
        drawn = fold_in(self._base_key, count)
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        return split(drawn, shape) if shape else drawn

    @api_boundary
    def random(self, size: Size = None, dtype: DTypeLike = float) -> Array:
        """Floats in [0, 1).

        Args:
          size: the shape; None is one number.
          dtype: a floating dtype.
        """
        return uniform(self.key(), _sample_shape(size), dtype)

    @api_boundary
    def uniform(self, low: ArrayLike = 0, high: ArrayLike = 1, size: Size = None, *,
                dtype: DTypeLike = float) -> Array:
        """Floats in [low, high).

        Args:
          low, high: bounds, which broadcast.
          size: the shape; None is the bounds'.
          dtype: a floating dtype.
        """
        return uniform(self.key(), _sample_shape(size, low, high), dtype, low, high)

    @api_boundary
    def normal(self, loc: ArrayLike = 0, scale: ArrayLike = 1, size: Size = None, *,
               dtype: DTypeLike = float) -> Array:
        """Normally distributed numbers.

        Args:
          loc, scale: mean and standard deviation, which broadcast.
          size: the shape; None is the parameters'.
          dtype: a floating dtype.
        """
        drawn = normal(self.key(), _sample_shape(size, loc, scale), dtype)
        return drawn * scale + loc

    @api_boundary
    def integers(self, low: ArrayLike, high: ArrayLike | None = None, size: Size = None, *,
                 dtype: DTypeLike = int) -> Array:
        """Integers in [low, high).

        Args:
          low, high: bounds, which broadcast; without `high` they are 0 and `low`.
          size: the shape; None is the bounds'.
          dtype: an integer dtype.
        """
        low, high = (0, low) if high is None else (low, high)
        return randint(self.key(), _sample_shape(size, low, high), low, high, dtype)

    @api_boundary
    def split(self, num: int | Sequence[int]) -> StatefulPRNG:
        """Independent generators as one, to be mapped over by `vmap`.

        Args:
          num: how many, or the shape of an array of them.
        """
        keys = self.key(num)
        return StatefulPRNG(keys, new_ref(zeros(keys.shape, np.int32)))

    @api_boundary
    def spawn(self, n_children: int) -> list[StatefulPRNG]:
        """A list of independent generators.

        Args:
          n_children: how many.
        """
        return [StatefulPRNG(k, new_ref(zeros((), np.int32))) for k in self.key(n_children)]

    def tree_flatten(self) -> tuple[tuple[Array, Reference], None]:
        """The key and the reference."""
        return (self._base_key, self._counter), None

    @classmethod
    def tree_unflatten(cls, metadata: None, data: Sequence[Reference]) -> StatefulPRNG:
        """The generator of a key and a reference."""
        return cls(*data)

    def __repr__(self) -> str:
        return f"StatefulPRNG({self._base_key!r}, {self._counter!r})"


def _sample_shape(size: Size, *parameters: ArrayLike) -> tuple[int, ...]:
    if size is None:
        return broadcast_shapes(*map(np.shape, parameters)) if parameters else ()
    return canonical_shape(size if isinstance(size, Sequence) else (size,))


@api_boundary
def stateful_rng(seed: int | ArrayLike | None = None, *, impl: str | None = None) -> StatefulPRNG:
    """A generator of pseudorandom numbers that keeps its state in a reference.

    Args:
      seed: an integer; None takes one from the operating system, outside of traced functions.
      impl: the algorithm, as `olympus.random.key` takes it.

    >>> rng = olympus.experimental.random.stateful_rng(7)
    >>> print(rng.integers(10, size=5))
    [9 6 7 7 5]
    """
    base = seed if isinstance(seed, PRNGKeyArray) else key(
        secrets.randbits(31) if seed is None else seed, impl=impl)
    return StatefulPRNG(base, new_ref(zeros((), np.int32)))
