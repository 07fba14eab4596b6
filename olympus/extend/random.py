"""Random generators: those there are, and how to define another."""

from .._src.base.util import publish as _publish
from .._src.random.ciphers import threefry2x32_p
from .._src.random.extension import define_prng_impl, random_seed, seed_with_impl, threefry_2x32
from .._src.random.generators import RBG as rbg_prng_impl
from .._src.random.generators import THREEFRY as threefry_prng_impl
from .._src.random.generators import UNSAFE_RBG as unsafe_rbg_prng_impl

__all__ = ["define_prng_impl", "random_seed", "rbg_prng_impl", "seed_with_impl", "threefry2x32_p",
           "threefry_2x32", "threefry_prng_impl", "unsafe_rbg_prng_impl"]

_publish(__name__)
