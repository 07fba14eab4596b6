"""`jax._src.traceback_util`: Equinox, Flax and jaxtyping leave their frames out of tracebacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....base import source
from ....base.source import exclude as register_exclusion
from ....base.source import excluded as _exclude_paths

__all__ = ["_exclude_paths", "api_boundary", "include_frame", "register_exclusion"]


def api_boundary(fun: Callable[..., Any] | None = None, **options: object) -> object:
    """Decorator of public functions: errors leave them without inner frames."""
    return source.api_boundary if fun is None else source.api_boundary(fun)


def include_frame(frame: Any) -> bool:
    """Whether tracebacks show a frame."""
    return not source.is_hidden(frame.f_code.co_filename)
