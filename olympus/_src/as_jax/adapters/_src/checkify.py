"""`jax._src.checkify`: Flax's nnx transforms `checkify`; Chex and others name its exceptions."""

from ....interpreters.checks import OlympusRuntimeError as JaxRuntimeError
from ....jit.checked import (
    BatchedError,
    CheckException,
    DivisionByZeroError,
    Error,
    ErrorCategory,
    FailedCheckError,
    NaNError,
    OOBError,
    all_checks,
    automatic_checks,
    check,
    check_error,
    checkify,
    debug_check,
    div_checks,
    float_checks,
    index_checks,
    init_error,
    nan_checks,
    user_checks,
)

JaxException = CheckException

__all__ = ["BatchedError", "DivisionByZeroError", "Error", "ErrorCategory", "FailedCheckError",
           "JaxException", "JaxRuntimeError", "NaNError", "OOBError", "all_checks",
           "automatic_checks", "check", "check_error", "checkify", "debug_check", "div_checks",
           "float_checks", "index_checks", "init_error", "nan_checks", "user_checks"]
