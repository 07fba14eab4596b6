"""Checks in compiled programs, as errors that are returned."""

from .._src.base.util import publish as _publish
from .._src.interpreters.checks import OlympusRuntimeError
from .._src.jit.checked import (
    Error, ErrorCategory, all_checks, automatic_checks, check, check_error, checkify, debug_check,
    div_checks, float_checks, index_checks, init_error, nan_checks, user_checks,
)

__all__ = ["Error", "ErrorCategory", "OlympusRuntimeError", "all_checks", "automatic_checks",
           "check", "check_error", "checkify", "debug_check", "div_checks", "float_checks",
           "index_checks", "init_error", "nan_checks", "user_checks"]

_publish(__name__)
