"""Inputs of the cases, the same for every system."""

from __future__ import annotations

import numpy


def random(seed: int = 0) -> numpy.random.Generator:
    return numpy.random.default_rng(seed)


def normal(*shape: int, seed: int = 0, scale: float = 1.0) -> numpy.ndarray:
    return (scale * random(seed).standard_normal(shape)).astype("float32")


def uniform(low: float, high: float, size: int, seed: int = 0) -> numpy.ndarray:
    return random(seed).uniform(low, high, size).astype("float32")


def positive_definite(n: int) -> numpy.ndarray:
    a = normal(n, n)
    return a @ a.T + n * numpy.eye(n, dtype="float32")
