"""Random numbers from explicit keys: the same key gives the same numbers, everywhere."""

from ._src.random.continuous import (
    bits,
    cauchy,
    double_sided_maxwell,
    exponential,
    gumbel,
    laplace,
    logistic,
    lognormal,
    maxwell,
    normal,
    pareto,
    rayleigh,
    triangular,
    truncated_normal,
    uniform,
    wald,
    weibull_min,
)
from ._src.random.discrete import (
    bernoulli,
    categorical,
    choice,
    geometric,
    permutation,
    rademacher,
    randint,
)
from ._src.random.keys import (
    PRNGKey,
    clone,
    fold_in,
    key,
    key_data,
    key_dtype,
    key_impl,
    split,
    wrap_key_data,
)

__all__ = [
    "PRNGKey", "bernoulli", "bits", "categorical", "cauchy", "choice", "clone",
    "double_sided_maxwell", "exponential", "fold_in", "geometric", "gumbel", "key", "key_data",
    "key_dtype", "key_impl", "laplace", "logistic", "lognormal", "maxwell", "normal", "pareto",
    "permutation", "rademacher", "randint", "rayleigh", "split", "triangular", "truncated_normal",
    "uniform", "wald", "weibull_min", "wrap_key_data",
]
