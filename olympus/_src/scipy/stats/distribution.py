"""Distributions: the parts derived once for all of them, and their functions as users call them.

A distribution is a class with the formulas of its standard form (location 0, scale 1) as methods.
The base class derives the functions that it does not give from those that it gives. The public
functions are made by `published`: they bind arguments to SciPy's signature, promote them, move and
scale, and answer outside of the support. All of that happens while tracing, so that a call is one
compiled program.

Formulas are only evaluated inside of the support (elsewhere at an inner point, and the result is
replaced), so that no derivative is NaN because of the branch that was not taken.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ...base.typing import Array, ArrayLike, DType, Shape
from ...jit.fused import fused
from ...lax.convert import in_dtype
from ...nn.activations import log1mexp
from ...numpy.arithmetic import maximum
from ...numpy.conditions import where
from ...numpy.elementary import exp, expm1, floor, isnan, log, log1p, sqrt
from ...numpy.manipulation import broadcast_to
from ...numpy.promote import promote_dtypes, to_array
from ...random.arguments import draw_shape
from ...random.continuous import uniform
from ...types import dtypes
from .kernels import log_of
from .quantiles import invert, least
from .sums import series

Formula: TypeAlias = Callable[..., Array]       # of a point, unless of none, and the parameters


class formula(staticmethod):
    """A method in one line: `sf = formula(lambda x: exp(-x))`. The function gets its name."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.__func__.__name__ = name


class Distribution:
    """Formulas in standard form. `parameters` are the names of the shape parameters."""

    name = ""
    title = ""              # its description, after "of the"
    about = ""              # its definition, for every docstring
    parameters: tuple[str, ...] = ()
    words: tuple[str, ...] = ()     # of the parameters, for "Args"
    low, high = -math.inf, math.inf
    first: dict[str, str] = {}      # first arguments that are not called x, k or q
    sample: tuple[float, ...] = ()  # shape parameters of the examples
    at: float = 1.5                 # where the examples are
    shown = ""                      # the output of the examples, in the order of `_METHODS`
    drawn = ""                      # the output of the example of `rvs`
    # Formulas, where there are any.
    cdf: Formula
    ppf: Formula
    mean: Formula
    var: Formula
    logpmf: Formula

    def support(self, *params: Array) -> tuple[float, float]:
        """The smallest and the largest number that has a density, or is a limit of such."""
        return self.low, self.high

    def inner(self, *params: Array) -> float:
        """A point within the support, where all formulas are finite."""
        low, high = self.support(*params)
        if low == -math.inf:
            return 0.0 if high == math.inf else high - 1.0
        return low + 1.0 if high == math.inf else 0.5 * (low + high)

    def legal(self, *params: Array) -> ArrayLike:
        """Where there is such a distribution: all shape parameters are positive."""
        within: Any = True
        for p in params:
            within = (p > 0) & within
        return within

    def std(self, *params: Array) -> Array:
        return sqrt(self.var(*params))

    def kinds(self) -> list[str]:
        """The functions that it has, `rvs` aside."""
        width = hasattr(self, "var")
        probable = getattr(self, "cdf", None) is not None
        return [k for k in _METHODS if getattr(self, k, None) is not None
                and (k != "std" or width)
                and (probable or _METHODS[k].made not in (_probability, _quantile))]

    def example(self, kind: str) -> str:
        """An example that runs, as lines of a docstring."""
        if kind == "rvs":
            arguments = "".join(f"{p}, " for p in self.sample)
            return (f">>> from olympus import random\n    >>> from olympus.scipy.stats import "
                    f"{self.name}\n    >>> print({self.name}.rvs({arguments}size=3, "
                    f"key=random.key(0)).round(2))\n    {self.drawn}")
        first = {"ppf": (0.25,), "isf": (0.25,)}.get(kind, () if _METHODS[kind].first == "-" else
                                                     (self.at,))
        arguments = ", ".join(map(str, (*first, *self.sample)))
        return (f">>> from olympus.scipy.stats import {self.name}\n    >>> "
                f"print(f'{{{self.name}.{kind}({arguments}):.3f}}')\n    "
                f"{self.shown.split()[self.kinds().index(kind)]}")

    def draw(self, key: Array, shape: Shape, dtype: DType, *params: Array) -> Array:
        """Random numbers: quantiles of uniform ones that are neither 0 nor 1."""
        tiny = dtypes.finfo(dtype).tiny
        u = uniform(key, shape, dtype)
        return self.ppf(maximum(u, tiny), *params)


class Continuous(Distribution):
    """Given are `logpdf` and `cdf`, or better also `sf` and `ppf`."""


    def pdf(self, x: Array, *params: Array) -> Array:
        return exp(self.logpdf(x, *params))

    def logpdf(self, x: Array, *params: Array) -> Array:
        raise AssertionError

    def cdf(self, x: Array, *params: Array) -> Array:
        raise AssertionError

    def sf(self, x: Array, *params: Array) -> Array:
        return 1.0 - self.cdf(x, *params)

    def logcdf(self, x: Array, *params: Array) -> Array:
        return log_of(self.cdf(x, *params), self.sf(x, *params))

    def logsf(self, x: Array, *params: Array) -> Array:
        return log_of(self.sf(x, *params), self.cdf(x, *params))

    def quantile(self, log_p: Array, log_q: Array, *params: Array) -> Array:
        """The number with probability p below and q above; both are given, as logarithms."""
        raise NotImplementedError

    def ppf(self, q: Array, *params: Array) -> Array:
        if type(self).quantile is not Continuous.quantile:
            return self.quantile(log(q), log1p(-q), *params)
        return invert(self.cdf, self.pdf, True, q, self.bounds(*params), params)

    def isf(self, q: Array, *params: Array) -> Array:
        if type(self).quantile is not Continuous.quantile:
            return self.quantile(log1p(-q), log(q), *params)
        return invert(self.sf, self.pdf, False, q, self.bounds(*params), params)

    def bounds(self, *params: Array) -> tuple[ArrayLike, ArrayLike]:
        """Between which numbers quantiles are looked for."""
        return self.support(*params)


class ByLogSf(Continuous):
    """Given are `logpdf` and `logsf`, accurate in the relative sense."""

    def sf(self, x: Array, *params: Array) -> Array:
        return exp(self.logsf(x, *params))

    def cdf(self, x: Array, *params: Array) -> Array:
        return -expm1(self.logsf(x, *params))

    def logcdf(self, x: Array, *params: Array) -> Array:
        return log1mexp(-self.logsf(x, *params))


class ByLogCdf(Continuous):
    """Given are `logpdf` and `logcdf`, accurate in the relative sense."""

    def cdf(self, x: Array, *params: Array) -> Array:
        return exp(self.logcdf(x, *params))

    def sf(self, x: Array, *params: Array) -> Array:
        return -expm1(self.logcdf(x, *params))

    def logsf(self, x: Array, *params: Array) -> Array:
        return log1mexp(-self.logcdf(x, *params))


class Mirrored(Continuous):
    """Symmetric about 0; subclasses define `logpdf` and `cdf`, and may define `logcdf`."""

    def sf(self, x: Array, *params: Array) -> Array:
        return self.cdf(-x, *params)

    def logsf(self, x: Array, *params: Array) -> Array:
        return self.logcdf(-x, *params)

    def ppf(self, q: Array, *params: Array) -> Array:
        """The quantile of the smaller tail, with its sign: next to 1 the difference is exact."""
        high = q > 0.5
        return where(high, -1.0, 1.0) * super().ppf(where(high, 1.0 - q, q), *params)

    def isf(self, q: Array, *params: Array) -> Array:
        return -self.ppf(q, *params)

    def bounds(self, *params: Array) -> tuple[ArrayLike, ArrayLike]:
        return -math.inf, 0.0

    def mean(self, *params: Array) -> float:
        return 0.0


class Discrete(Distribution):
    """On integers. Given are `logpmf` and `cdf`, or better also `sf`."""

    low = 0.0

    def pmf(self, k: Array, *params: Array) -> Array:
        return exp(self.logpmf(k, *params))

    def sf(self, k: Array, *params: Array) -> Array:
        return 1.0 - self.cdf(k, *params)

    def logcdf(self, k: Array, *params: Array) -> Array:
        return log_of(self.cdf(k, *params), self.sf(k, *params))

    def logsf(self, k: Array, *params: Array) -> Array:
        return log_of(self.sf(k, *params), self.cdf(k, *params))

    def ppf(self, q: Array, *params: Array) -> Array:
        low, high = self.support(*params)
        return least(lambda k, q, *params: self.cdf(k, *params) >= q, q, low, high, params)

    def isf(self, q: Array, *params: Array) -> Array:
        low, high = self.support(*params)
        return least(lambda k, q, *params: self.sf(k, *params) <= q, q, low, high, params)

    def entropy(self, *params: Array) -> Array:
        """The sum of -p log p, from the mean outwards; the mean is inside of the support."""
        def term(k: Array, *params: Array) -> Array:
            log_p = self.logpmf(k, *params)
            return where(log_p < _NOTHING, 0.0, -exp(log_p) * log_p)

        middle = floor(self.mean(*params))
        low, high = self.support(*params)
        return (series(term, -1.0, middle, low, high, params)
                + series(term, 1.0, middle + 1.0, low, high, params))


class Summed(Discrete):
    """Given are `logpmf` and `mean`: probabilities are summed, from the nearer end of the support.
    """

    def cdf(self, k: Array, *params: Array) -> Array:
        below, tail = self._tail(k, *params)
        return where(below, tail, 1.0 - tail)

    def sf(self, k: Array, *params: Array) -> Array:
        below, tail = self._tail(k, *params)
        return where(below, 1.0 - tail, tail)

    def logcdf(self, k: Array, *params: Array) -> Array:
        below, level = self._log_tail(k, *params)
        return where(below, level, log1p(-exp(level)))

    def logsf(self, k: Array, *params: Array) -> Array:
        below, level = self._log_tail(k, *params)
        return where(below, log1p(-exp(level)), level)

    def _tail(self, k: Array, *params: Array) -> tuple[Array, Array]:
        """Whether k is below the mean; the probability of at most k then, or of more than k."""
        below = k < self.mean(*params)
        return below, series(self.pmf, where(below, -1.0, 1.0), where(below, k, k + 1.0),
                             *self.support(*params), params)

    def _log_tail(self, k: Array, *params: Array) -> tuple[Array, Array]:
        """`_tail` with its logarithm: a sum in units of its first term, which may underflow."""
        below = k < self.mean(*params)
        start = where(below, k, k + 1.0)
        low, high = self.support(*params)
        first = where((start >= low) & (start <= high), start, self.inner(*params))
        unit = self.logpmf(first, *params)

        def term(k: Array, unit: Array, *params: Array) -> Array:
            return exp(self.logpmf(k, *params) - unit)

        return below, unit + log(series(term, where(below, -1.0, 1.0), start, low, high,
                                        (unit, *params)))


_NOTHING = -600.0       # logarithms of probabilities that add nothing to an entropy


# Public functions --------------------------------------------------------------------------------

class Values(NamedTuple):
    """The arguments of a call: the first one, if any, the shape parameters, location and scale;
    `moved` and `scaled` say whether the latter are given.
    """

    x: Any
    params: tuple[Any, ...]
    loc: Any
    scale: Any
    moved: bool
    scaled: bool

    def in_dtype(self, dtype: DType) -> Values:
        scale = in_dtype(self.scale, dtype) if self.scaled else self.scale
        x = None if self.x is None else in_dtype(self.x, dtype)
        params = tuple([in_dtype(p, dtype) for p in self.params])
        return self._replace(x=x, params=params, loc=in_dtype(self.loc, dtype), scale=scale)

    def standard(self) -> Array:
        """The first argument as the standard form takes it."""
        x = self.x - self.loc if self.moved else self.x
        return x / self.scale if self.scaled else x

    def legal(self, d: Distribution) -> ArrayLike:
        legal = d.legal(*self.params)
        return (self.scale > 0) & legal if self.scaled else legal

    def spread(self, y: Array) -> Array:
        """A number of the standard form as one of this."""
        y = y * self.scale if self.scaled else y
        return y + self.loc if self.moved else y


def _nan_unless(legal: ArrayLike, y: Array) -> Array:
    return y if legal is True else where(legal, y, math.nan)


def _density(d: Any, kind: str, v: Values) -> Array:
    """pdf, logpdf, pmf, logpmf: nothing outside of the support, at infinities and NaN."""
    z = v.standard()
    low, high = d.support(*v.params)
    inside = (z >= low) & (z <= high) & (abs(z) < math.inf)
    if isinstance(d, Discrete):
        inside = inside & (z == floor(z))
    y = getattr(d, kind)(where(inside, z, d.inner(*v.params)), *v.params)
    log_of = kind.startswith("log")
    if v.scaled:
        y = y - log(v.scale) if log_of else y / v.scale
    y = where(inside, y, -math.inf if log_of else 0.0)
    return _nan_unless(v.legal(d) & ~isnan(z), y)


_ENDS = {"cdf": (0.0, 1.0), "sf": (1.0, 0.0), "logcdf": (-math.inf, 0.0), "logsf": (0.0, -math.inf)}


def _probability(d: Any, kind: str, v: Values) -> Array:
    """cdf, sf, logcdf, logsf: of floor(x) if discrete; constant outside of the support."""
    z = v.standard()
    z = floor(z) if isinstance(d, Discrete) else z
    low, high = d.support(*v.params)
    below = (z < low) | (z == -math.inf)
    above = (z >= high) if isinstance(d, Discrete) else (z > high) | (z == math.inf)
    y = getattr(d, kind)(where(below | above | isnan(z), d.inner(*v.params), z), *v.params)
    least, most = _ENDS[kind]
    return _nan_unless(v.legal(d) & ~isnan(z), where(below, least, where(above, most, y)))


def _quantile(d: Any, kind: str, v: Values) -> Array:
    """ppf, isf: the ends of the support for probabilities 0 and 1, NaN outside of [0, 1]."""
    low, high = d.support(*v.params)
    low = low - 1.0 if isinstance(d, Discrete) else low
    low, high = (low, high) if kind == "ppf" else (high, low)
    inside = (v.x > 0) & (v.x < 1)
    y = getattr(d, kind)(where(inside, v.x, 0.5), *v.params)
    y = where(inside, y, where(v.x > 0.5, high, low))
    return _nan_unless(v.legal(d) & (v.x >= 0) & (v.x <= 1), v.spread(y))


def _mean(d: Any, kind: str, v: Values) -> Array:
    return _nan_unless(v.legal(d), v.spread(d.mean(*v.params) + 0.0 * v.loc))


def _width(d: Any, kind: str, v: Values) -> Array:
    """std, var: independent of the location."""
    y = getattr(d, kind)(*v.params) + 0.0 * v.loc
    if v.scaled:
        y = y * (v.scale if kind == "std" else v.scale * v.scale)
    return _nan_unless(v.legal(d), y)


def _entropy(d: Any, kind: str, v: Values) -> Array:
    y = d.entropy(*v.params) + 0.0 * v.loc
    return _nan_unless(v.legal(d), y + log(v.scale) if v.scaled else y)


class Kind(NamedTuple):
    """A function that distributions have: how it is made of the standard form, and its words."""

    made: Callable[..., Any]
    first: str
    text: str
    result: str


_X = "the shape that the\n      arguments broadcast to; integers become floats."
_METHODS = {
    "pdf": Kind(_density, "x", "Density of the {}.", f"Densities >= 0, of {_X}"),
    "logpdf": Kind(_density, "x", "Logarithm of the density of the {}.", f"Floats, of {_X}"),
    "pmf": Kind(_density, "k", "Probability of each number under the {}.",
                f"Probabilities, 0 for what is no integer, of {_X}"),
    "logpmf": Kind(_density, "k", "Logarithm of the probability of each number under the {}.",
                   f"Floats <= 0, -inf for what is no integer, of {_X}"),
    "cdf": Kind(_probability, "", "Probability of at most {0} under the {1}.",
                f"Probabilities, of {_X}"),
    "logcdf": Kind(_probability, "", "Logarithm of the probability of at most {0} under the {1}.",
                   f"Floats <= 0, of {_X}"),
    "sf": Kind(_probability, "", "Probability of more than {0} under the {1}, small ones too.",
               f"Probabilities, of {_X}"),
    "logsf": Kind(_probability, "", "Logarithm of the probability of more than {0} under the {1}.",
                  f"Floats <= 0, of {_X}"),
    "ppf": Kind(_quantile, "q", "Quantile of the {}: the inverse of its `cdf`.",
                f"Numbers of the support, NaN where q is no probability, of {_X}"),
    "isf": Kind(_quantile, "q", "Upper quantile of the {}: the inverse of its `sf`.",
                f"Numbers of the support, NaN where q is no probability, of {_X}"),
    "mean": Kind(_mean, "-", "Mean of the {}.", f"Floats, of {_X}"),
    "var": Kind(_width, "-", "Variance of the {}.", f"Floats >= 0, of {_X}"),
    "std": Kind(_width, "-", "Standard deviation of the {}.", f"Floats >= 0, of {_X}"),
    "entropy": Kind(_entropy, "-", "Entropy of the {}, in nats: the mean of -log of its density.",
                    f"Floats, of {_X}"),
}
_FIRST = {"x": "numbers, any shape.", "k": "numbers, any shape; only integers have a probability.",
          "q": "probabilities, from 0 to 1."}


def _signature(d: Distribution, first: str | None, *more: inspect.Parameter) -> inspect.Signature:
    """SciPy's: the first argument, shape parameters, loc and, if continuous, scale."""
    names = [*([first] if first else []), *d.parameters]
    scale = () if isinstance(d, Discrete) else ("scale",)
    either_way = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature(
        [*(inspect.Parameter(n, either_way, annotation="ArrayLike") for n in names),
         *(inspect.Parameter(n, either_way, annotation="ArrayLike", default=i)
           for i, n in enumerate(("loc", *scale))), *more], return_annotation="Array")


def _arguments_by_name(name: str, signature: inspect.Signature, args: tuple,
                       kwargs: dict) -> dict[str, Any]:
    """The arguments of a call by name, with defaults; TypeError for unknown ones."""
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{name}: {error}; {name}{_bare(signature)} is required.") from None
    bound.apply_defaults()
    return bound.arguments


def _bare(signature: inspect.Signature) -> str:
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=signature.empty))


def _promoted_arguments(d: Distribution, name: str, arguments: dict[str, Any]) -> Values:
    """Arguments promoted to one float dtype, each with its own shape."""
    loc, scale = arguments["loc"], arguments.get("scale", 1)
    arrays = [to_array(x) for x in promote_dtypes(name, *arguments.values(), inexact=True)]
    if dtypes.is_complex(arrays[0].dtype):
        raise TypeError(f"{name}: complex numbers given; real ones are required; take their real "
                        "part.")
    by_name = dict(zip(arguments, arrays))
    first = next(iter(arguments))
    return Values(None if first in (*d.parameters, "loc") else by_name[first],
                  tuple(by_name[p] for p in d.parameters), by_name["loc"], by_name.get("scale", 1),
                  not (type(loc) is int and loc == 0), not (type(scale) is int and scale == 1))


def _function(d: Distribution, kind: str) -> Callable[..., Array]:
    """The public function of one kind, one compiled program when called eagerly."""
    how = _METHODS[kind]
    name = f"{d.name}.{kind}"
    first = d.first.get(kind, how.first or ("k" if isinstance(d, Discrete) else "x"))
    signature = _signature(d, None if first == "-" else first)

    def run(*args: ArrayLike, **kwargs: object) -> Array:
        v = _promoted_arguments(d, name, _arguments_by_name(name, signature, args, kwargs))
        dtype = v.loc.dtype
        return in_dtype(how.made(d, kind, v.in_dtype(dtypes.wide_dtype(dtype))), dtype)

    about = _FIRST["q" if how.made is _quantile else "k" if isinstance(d, Discrete) else "x"]
    return fused(_with_docstring(run, d, kind, signature,
                                 how.text.format(first, d.title) if not how.first
                                 else how.text.format(d.title), how.result,
                                 [] if first == "-" else [f"{first}: {about}"]))


def _with_docstring(run: Any, d: Distribution, kind: str, signature: inspect.Signature, text: str,
                    result: str, lines: list[str]) -> Any:
    """A function with its name, signature and docstring."""
    run.__name__ = run.__qualname__ = kind
    run.__module__ = __name__
    run.__signature__ = signature
    if "scale" in signature.parameters:
        lines = [*lines, *d.words, "loc, scale: location, and scale > 0: the numbers are",
                 "  loc + scale * those of the standard form."]
    else:
        lines = [*lines, *d.words, "loc: the numbers are loc + those of the standard form."]
    if "key" in signature.parameters:
        lines = [*lines, "size: the result's shape; None is that of the parameters.",
                 "key: a single key, see `olympus.random.key`."]
    arguments = "\n".join(f"      {line}" for line in lines)
    run.__doc__ = (f"{text}\n\n    {d.about}\n\n    Args:\n{arguments}\n\n    Returns:\n"
                   f"      {result}\n\n    {d.example(kind)}\n    ")
    return run


_NEW = (inspect.Parameter("size", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None,
                          annotation="Shape | int | None"),
        inspect.Parameter("key", inspect.Parameter.KEYWORD_ONLY, annotation="ArrayLike"))


def _sampler(d: Distribution) -> Callable[..., Array]:
    """`rvs`: as SciPy's, with an explicit key in the place of a random state."""
    name = f"{d.name}.rvs"
    signature = _signature(d, None, *_NEW)

    def program(key: Array, *args: object, shape: Shape) -> Array:
        names = [p for p in signature.parameters if p not in ("size", "key")]
        v = _promoted_arguments(d, name, dict(zip(names, args)))
        drawn = d.draw(key, shape, v.loc.dtype, *(broadcast_to(p, shape) for p in v.params))
        if isinstance(d, Discrete):
            drawn = drawn.astype(int)
            return drawn + v.loc.astype(int) if v.moved else drawn
        return _nan_unless(v.legal(d), v.spread(drawn))

    program.__name__ = f"{d.name}_rvs"
    compiled = fused(program, static=("shape",))

    def rvs(*args: np.ndarray, **kwargs: object) -> Array:
        arguments = _arguments_by_name(name, signature, args, kwargs)
        key, size = arguments.pop("key"), arguments.pop("size")
        shape = draw_shape(name, size, *arguments.values())
        return compiled(key, *arguments.values(), shape=shape)

    return _with_docstring(rvs, d, "rvs", signature, f"Random numbers from the {d.title}.",
                           "An array of that shape" + (
                      " of integers." if isinstance(d, Discrete) else "; differentiable in the "
                      "parameters\n      where the method allows it."), [])


def published(d: Distribution) -> list[Callable[..., Array]]:
    """All functions that a distribution has, in the order of their names."""
    made = {kind: _function(d, kind) for kind in d.kinds()}
    if "ppf" in made or type(d).draw is not Distribution.draw:
        made["rvs"] = _sampler(d)
    return [made[kind] for kind in sorted(made)]
