"""`jax.experimental.checkify`: Chex's and Flax's assertions name it at import."""

from __future__ import annotations

from typing import Any

from ....core.trace import Tracer
from ...stand_ins import planned

__all__ = ["JaxRuntimeError", "check", "debug_check"]

_others = planned(
    __name__, "checks inside of compiled functions (checkify)",
    "Error ErrorCategory JaxException Out all_checks automatic_checks check_error checkify "
    "div_checks float_checks index_checks init_error nan_checks traced_check user_checks")


class JaxRuntimeError(ValueError):
    """A check failed."""


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Raise an error with this message unless `pred` is true, where its value is known."""
    if isinstance(pred, Tracer):
        _others("traced_check")()
    if not bool(pred):
        raise JaxRuntimeError(msg.format(*fmt_args, **fmt_kwargs))


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """`check` outside of traced functions, nothing inside of them."""
    if not isinstance(pred, Tracer):
        check(pred, msg, *fmt_args, **fmt_kwargs)


__getattr__ = _others
