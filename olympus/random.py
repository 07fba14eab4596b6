"""Random numbers from explicit keys: the same key gives the same numbers, everywhere."""

from ._src.base.util import publish_bounded as _publish
from ._src.random.continuous import (
    bits, cauchy, double_sided_maxwell, exponential, gumbel, laplace, logistic, lognormal, maxwell,
    normal, pareto, power, rayleigh, triangular, truncated_normal, uniform, wald, weibull_min,
)
from ._src.random.discrete import (
    bernoulli, categorical, choice, geometric, permutation, rademacher, randint,
)
from ._src.random.keys import (
    Key, PRNGKey, clone, fold_in, key, key_data, key_dtype, key_impl, split, wrap_key_data,
)
from ._src.random.gamma import gamma, loggamma, random_gamma_p
from ._src.random.from_gamma import ball, beta, chisquare, dirichlet, f, generalized_normal, t
from ._src.random.poisson import negative_binomial, poisson
from ._src.random.vonmises import vonmises
from ._src.random.multivariate import multivariate_normal, orthogonal
from ._src.random.noncentral import noncentral_chisquare, noncentral_f
from ._src.random.binomial import binomial, multinomial
from ._src.random.hypergeometric import hypergeometric, multivariate_hypergeometric
from ._src.random.zipf import logseries, zipf

__all__ = [
    "Key", "PRNGKey", "ball", "bernoulli", "beta", "binomial", "bits", "categorical", "cauchy",
    "chisquare", "choice", "clone", "dirichlet", "double_sided_maxwell", "exponential", "f",
    "fold_in", "gamma", "generalized_normal", "geometric", "gumbel", "hypergeometric", "key",
    "key_data", "key_dtype", "key_impl", "laplace", "loggamma", "logistic", "lognormal",
    "logseries", "maxwell", "multinomial", "multivariate_hypergeometric", "multivariate_normal",
    "negative_binomial", "noncentral_chisquare", "noncentral_f", "normal", "orthogonal", "pareto",
    "permutation", "poisson", "power", "rademacher", "randint", "random_gamma_p", "rayleigh",
    "split", "t", "triangular", "truncated_normal", "uniform", "vonmises", "wald", "weibull_min",
    "wrap_key_data", "zipf",
]

_publish(__name__)
