"""`jax._src.core`: NumPyro asks whether something is traced; Flax and others name avals."""

from __future__ import annotations

from ....core.trace import ThreadState, ctx, typeof
from ....types.avals import physical_aval
from ...foreign import pytype_aval_mappings

__all__ = ["get_aval", "physical_aval", "pytype_aval_mappings", "trace_state_clean"]
HOMES = ("olympus.core", "olympus.extend.core", "olympus.errors")

get_aval = typeof


def trace_state_clean() -> bool:
    """Whether operations run at once: no function is being traced or transformed."""
    return ctx.trace is ThreadState.trace
