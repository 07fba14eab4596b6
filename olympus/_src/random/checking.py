"""Whether a function uses random keys twice, asked without running it."""

from __future__ import annotations

from collections.abc import Callable

from ..base.config import debug_key_reuse
from ..base.typing import PyTree
from ..core.reuse import summary
from ..jit.tracing import make_olympuspr


def check_key_reuse(fun: Callable[..., PyTree], *args: PyTree) -> None:
    """Raise KeyReuseError if a call of the function would use a random key twice.

    The function is traced and not run, so it does not matter whether the keys among the arguments
    have been used. A key of `random.key` is used by a sampler, by `random.split` and by whatever
    else reads its bits; not by `fold_in`, `clone`, `key_data`, comparisons, indexing and reshaping.

    Args:
      fun: a function of pytrees.
      *args: its arguments: arrays, or ShapeDtypeStructs.

    >>> from olympus.experimental.key_reuse import check_key_reuse
    >>> check_key_reuse(random.normal, random.key(0))
    >>> check_key_reuse(lambda key: random.normal(key) + random.uniform(key), random.key(0))
    Traceback (most recent call last):
    olympus.errors.KeyReuseError: random_bits: a random key is used at ...
    """
    with debug_key_reuse(True):     # branches under vmap differ
        summary(make_olympuspr(fun)(*args).olympuspr)
