"""`jax._src.distributed`: Orbax asks which process of a job this is."""

from __future__ import annotations

from ....job.state import current as global_state

__all__ = ["global_state"]
HOMES = ("olympus.distributed",)
