"""Failures noted while programs run and raised later: NaN, divisions by zero, bad indices."""

from .._src.base.util import publish as _publish
from .._src.runtime.failures import error_checking_behavior, raise_if_error

__all__ = ["error_checking_behavior", "raise_if_error"]

_publish(__name__)
