"""XLA's options of a program that is compiled by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..base.lib import get_compile_options
from ..base.typing import PyTree

# By class, a function that makes an array of a value; for others to fill. Our operations do not
# read it: they convert values by `numpy.asarray`.
canonicalize_dtype_handlers: dict[type, Callable[..., object]] = {np.ndarray: np.asarray}


def create_compile_options(computation: object, tuple_args: bool,
                           allow_prop_to_inputs: Sequence[bool],
                           allow_prop_to_outputs: Sequence[bool], backend: object,
                           np_dev: np.ndarray, compiler_options: Mapping[str, object]) -> object:
    """XLA's object of compiler options for a program that is cut over devices.

    Args:
      computation, backend: accepted.
      tuple_args: whether the program takes one tuple of its arguments.
      allow_prop_to_inputs, allow_prop_to_outputs: per argument and result, whether XLA may choose
        how it is cut.
      np_dev: a NumPy array of the devices, or of their numbers.
      compiler_options: XLA's flags, by name.

    >>> import numpy as np
    >>> from olympus.interpreters import pxla
    >>> options = pxla.create_compile_options(None, False, [False], [True], None, np.arange(2), {})
    >>> options.num_partitions
    2
    """
    flags: PyTree = {**compiler_options}
    made = get_compile_options(1, np_dev.size, np.reshape(np_dev, (1, -1)), flags,
                               flags.pop("fdo_profile", None))
    made.parameter_is_tupled_arguments = tuple_args
    build = made.executable_build_options
    build.allow_spmd_sharding_propagation_to_parameters = [*allow_prop_to_inputs]
    build.allow_spmd_sharding_propagation_to_output = [*allow_prop_to_outputs]
    return made
