"""Kernel density estimates with normal kernels (Scott, "Multivariate Density Estimation", 1992)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ...base.typing import Array, ArrayLike, Shape
from ...jit.fused import fused
from ...nn.activations import logsumexp
from ...numpy.correlation import cov as covariance_of
from ...numpy.creation import ones, zeros
from ...numpy.elementary import exp, log, sqrt
from ...numpy.linalg.systems import cholesky, inv
from ...numpy.manipulation import broadcast_to, moveaxis
from ...numpy.products import diagonal
from ...numpy.promote import promote_dtypes, to_array
from ...numpy.reductions import sum as sum_of
from ...random.arguments import refuse_complex
from ...random.discrete import choice
from ...random.keys import split
from ...random.multivariate import multivariate_normal
from ...types.shape import canonical_shape, definitely_equal, less
from ...types.tree_registry import register_pytree_node_class
from ..special.normal import ndtr
from .matrices import solve_lower

# How wide the kernels are: a rule's name, a number, or a function of the estimate.
Bandwidth: TypeAlias = ArrayLike | str | Callable[..., ArrayLike] | None


@register_pytree_node_class
class gaussian_kde:
    """A density estimated from a sample: the mean of normal densities around its points.

    It is a pytree of arrays, so that it passes in and out of jit, vmap and grad.

    Args:
      dataset: real numbers[d, n], n points of d coordinates, or [n] of one.
      bw_method: the kernels' width in standard deviations of the sample: "scott" (also None),
        neff ** (-1 / (d+4)); "silverman", (neff (d+2) / 4) ** (-1 / (d+4)); a number; or a
        function of the estimate that gives one.
      weights: real numbers[n], >= 0, of the points; None are equal ones. They are scaled to sum 1.

    Attributes: `dataset` [d, n], `weights` [n], `neff` (how many points of equal weight know as
    much), `covariance` and `inv_cov` [d, d] of the kernels, `d`, `n`. SciPy's class also has
    `integrate_box` in more dimensions, `marginal` and `factor`; its `resample` takes a size first.

    >>> from olympus import numpy as onp, scipy
    >>> estimate = scipy.stats.gaussian_kde(onp.array([1.0, 2.0, 4.0]))
    >>> print(estimate(onp.array([2.0, 8.0])).round(4))
    [0.2149 0.0005]
    """

    def __init__(self, dataset: ArrayLike, bw_method: Bandwidth = None,
                 weights: ArrayLike | None = None) -> None:
        refuse_complex("gaussian_kde", dataset)
        arrays = (dataset,) if weights is None else (dataset, weights)
        x, *rest = (to_array(v) for v in promote_dtypes("gaussian_kde", *arrays, inexact=True))
        x = x.reshape(1, -1) if x.ndim < 2 else x
        if x.ndim > 2 or less(x.shape[1], 2):
            raise ValueError(f"gaussian_kde: dataset of shape {x.shape} given; [d, n] or [n] with "
                             "n >= 2 points is required.")
        n = x.shape[1]
        w = rest[0] if rest else ones(n, x.dtype)
        if w.ndim != 1 or not definitely_equal(w.shape[0], n):
            raise ValueError(f"gaussian_kde: weights of shape {w.shape} given with {n} points; one "
                             "weight a point is required.")
        self.dataset, self.weights = x, w / sum_of(w)
        self.neff = 1.0 / sum_of(self.weights * self.weights)
        self.set_bandwidth(bw_method)

    def tree_flatten(self) -> tuple[tuple[Array, ...], None]:
        """The arrays that the estimate is made of."""
        return (self.neff, self.dataset, self.weights, self.covariance, self.inv_cov), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: Sequence[Array]) -> gaussian_kde:
        """An estimate of such arrays."""
        self = object.__new__(cls)
        self.neff, self.dataset, self.weights, self.covariance, self.inv_cov = children
        return self

    @property
    def d(self) -> int:
        """How many coordinates a point has."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """How many points the sample has."""
        return self.dataset.shape[1]

    def set_bandwidth(self, bw_method: Bandwidth = None) -> None:
        """Change the kernels' width, as SciPy's method does (JAX's refuses).

        Args:
          bw_method: as of the class.
        """
        factor = _factor(self, bw_method)
        data = covariance_of(self.dataset, aweights=self.weights).reshape(self.d, self.d)
        self.covariance = data * factor ** 2
        self.inv_cov = inv(data) / factor ** 2

    def evaluate(self, points: ArrayLike) -> Array:
        """The density at points.

        Args:
          points: real numbers[d, m], or [m] for points of one coordinate.

        Returns:
          float[m].

        >>> from olympus import numpy as onp, scipy
        >>> estimate = scipy.stats.gaussian_kde(onp.array([1.0, 2.0, 4.0]))
        >>> print(estimate.evaluate(2.0).round(4))
        [0.2149]
        """
        return exp(self.logpdf(points))

    __call__ = evaluate

    def pdf(self, x: ArrayLike) -> Array:
        """The density: `evaluate(x)`."""
        return self.evaluate(x)

    def logpdf(self, x: ArrayLike) -> Array:
        """The logarithm of the density at points, without underflow far from the sample.

        Args:
          x: real numbers[d, m], or [m] for points of one coordinate.

        Returns:
          float[m].

        >>> from olympus import numpy as onp, scipy
        >>> estimate = scipy.stats.gaussian_kde(onp.array([1.0, 2.0, 4.0]))
        >>> print(estimate.logpdf(100.0).round(0))
        [-3067.]
        """
        return _log_densities(self.dataset, self.weights, self.covariance,
                              self._points("logpdf", x))

    def integrate_gaussian(self, mean: ArrayLike, cov: ArrayLike) -> Array:
        """The integral of the density times a normal density.

        Args:
          mean: real numbers[d], or a number for one coordinate.
          cov: real numbers[d, d], or a number for one coordinate.

        >>> from olympus import numpy as onp, scipy
        >>> estimate = scipy.stats.gaussian_kde(onp.array([1.0, 2.0, 4.0]))
        >>> print(f'{estimate.integrate_gaussian(2.0, 0.5):.4f}')
        0.2018
        """
        mean, cov = (to_array(v) for v in promote_dtypes("integrate_gaussian", mean, cov,
                                                         inexact=True))
        mean = mean.reshape(-1, 1) if mean.ndim < 2 else mean
        cov = cov.reshape(1, 1) if not cov.ndim else cov
        if mean.shape != (self.d, 1) or cov.shape != (self.d, self.d):
            raise ValueError(f"gaussian_kde.integrate_gaussian: mean of shape {mean.shape[:1]} and "
                             f"cov of {cov.shape} given; [{self.d}] and [{self.d}, {self.d}] are "
                             "required.")
        return exp(_log_densities(self.dataset, self.weights, self.covariance + cov, mean))[0]

    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Array:
        """The probability between two numbers, for points of one coordinate.

        Args:
          low, high: the bounds, numbers; they may be infinite.

        >>> from olympus import numpy as onp, scipy
        >>> estimate = scipy.stats.gaussian_kde(onp.array([1.0, 2.0, 4.0]))
        >>> print(f'{estimate.integrate_box_1d(0.0, 3.0):.4f}')
        0.5631
        """
        if self.d != 1:
            raise ValueError(f"gaussian_kde.integrate_box_1d: points of {self.d} coordinates given;"
                             " one is required; average over `resample` for more.")
        width = sqrt(self.covariance[0, 0])
        upper, lower = (ndtr((b - self.dataset[0]) / width) for b in (high, low))
        return sum_of(self.weights * (upper - lower))

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """The integral of the product of two estimates.

        Args:
          other: an estimate of as many coordinates.

        >>> from olympus import numpy as onp, scipy
        >>> estimate = scipy.stats.gaussian_kde(onp.array([1.0, 2.0, 4.0]))
        >>> print(f'{estimate.integrate_kde(estimate):.4f}')
        0.1577
        """
        if other.d != self.d:
            raise ValueError(f"gaussian_kde.integrate_kde: estimates of {self.d} and {other.d} "
                             "coordinates given; as many are required.")
        each = _log_densities(self.dataset, self.weights, self.covariance + other.covariance,
                              other.dataset)
        return sum_of(other.weights * exp(each))

    def integrate_box(self, low_bounds: ArrayLike, high_bounds: ArrayLike,
                      maxpts: int | None = None) -> Array:
        """The probability in a box; of one coordinate, as `integrate_box_1d`.

        Args:
          low_bounds, high_bounds: real numbers[d].
          maxpts: of SciPy's integration in more dimensions; not used.

        >>> from olympus import numpy as onp, scipy
        >>> estimate = scipy.stats.gaussian_kde(onp.array([1.0, 2.0, 4.0]))
        >>> print(f'{estimate.integrate_box([0.0], [3.0]):.4f}')
        0.5631
        """
        low, high = (to_array(v) for v in promote_dtypes("integrate_box", *(
            v[0] if isinstance(v, (list, tuple)) and len(v) == 1 else v
            for v in (low_bounds, high_bounds)), inexact=True))
        return self.integrate_box_1d(low.reshape(()), high.reshape(()))

    def resample(self, key: ArrayLike, shape: Shape = ()) -> Array:
        """Points drawn from the density.

        Args:
          key: a single key, see `olympus.random.key`.
          shape: how many.

        Returns:
          float[d, *shape].

        >>> from olympus import numpy as onp, random, scipy
        >>> estimate = scipy.stats.gaussian_kde(onp.array([1.0, 2.0, 4.0]))
        >>> estimate.resample(random.key(0), (5,)).shape
        (1, 5)
        """
        which, noise = split(key)
        shape = canonical_shape(shape, "gaussian_kde.resample")
        centres = self.dataset[:, choice(which, self.n, shape, p=self.weights)]
        apart = multivariate_normal(noise, zeros(self.d, self.dataset.dtype), self.covariance,
                                    shape, self.dataset.dtype)
        return centres + moveaxis(apart, -1, 0)

    def _points(self, name: str, points: ArrayLike) -> Array:
        refuse_complex(f"gaussian_kde.{name}", points)
        x = to_array(promote_dtypes(name, points, self.dataset, inexact=True)[0])
        if x.ndim < 2:
            x = x.reshape(1, -1) if self.d == 1 or x.ndim == 0 else x.reshape(-1, 1)
        if x.ndim > 2 or not definitely_equal(x.shape[0], self.d):
            raise ValueError(f"gaussian_kde.{name}: points of shape {x.shape} given; [{self.d}, m] "
                             "is required: the coordinates are along the first axis.")
        return x


def _factor(estimate: gaussian_kde, method: Bandwidth) -> Any:
    """The width of the kernels in standard deviations."""
    power = -1.0 / (estimate.d + 4)
    if method is None or (isinstance(method, str) and method == "scott"):
        return estimate.neff ** power
    if isinstance(method, str) and method == "silverman":
        return (estimate.neff * (estimate.d + 2) / 4.0) ** power
    if isinstance(method, (str, list, tuple, dict)):
        raise ValueError(f"gaussian_kde: bw_method={method!r} given; 'scott', 'silverman', a "
                         "number or a function of the estimate is required.")
    return method(estimate) if callable(method) else method


@fused
def _log_densities(dataset: Array, weights: Array, covariance: Array, points: Array) -> Array:
    """log Σᵢ wᵢ N(p; xᵢ, C) for each point p."""
    lower = cholesky(covariance)
    centres, whitened = (solve_lower(lower, x.T) for x in (dataset, points))      # of identity
    apart = whitened[:, None, :] - centres[None, :, :]
    exponents = -0.5 * sum_of(apart * apart, -1)
    scale = sum_of(log(diagonal(lower))) + 0.5 * math.log(2.0 * math.pi) * dataset.shape[0]
    return logsumexp(exponents, -1, broadcast_to(weights, exponents.shape)) - scale
