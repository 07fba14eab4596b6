"""Generators of random numbers that keep their state."""

from .._src.base.util import publish as _publish
from .._src.random.stateful import StatefulPRNG, stateful_rng

__all__ = ["StatefulPRNG", "stateful_rng"]

_publish(__name__)
