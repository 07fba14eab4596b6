"""The function that libraries wrap for `odeint`, as a transformation of `linear_util`."""

from __future__ import annotations

from collections.abc import Callable

from ..base.typing import Array, PyTree
from ..core.linear_util import transformation2
from ..scipy.integrate.odeint import ravel_first_arg


@transformation2
def ravel_first_arg_(fun: Callable[..., PyTree], unravel: Callable[[Array], PyTree],
                     y_flat: Array, *args: PyTree) -> PyTree:
    """`ravel_first_arg` as a transformation of `extend.linear_util`.

    Args: fun: a WrappedFun; unravel: as for `ravel_first_arg`.
    Returns: a WrappedFun of the vector and the rest.

    >>> from olympus.experimental.ode import ravel_first_arg_
    >>> from olympus.extend import linear_util
    >>> from olympus.flatten_util import ravel_pytree
    >>> vector, unravel = ravel_pytree((1.0, 2.0))
    >>> swap = ravel_first_arg_(linear_util.wrap_init(lambda y: y[::-1]), unravel)
    >>> print(swap.call_wrapped(vector))
    [2. 1.]
    """
    return ravel_first_arg(fun, unravel)(y_flat, *args)
