"""Programs with references, for interpreters; functions of references as functions of arrays."""

from .._src.base.util import publish as _publish
from .._src.extend.state import (
    AccumEffect, ReadEffect, RefEffect, WriteEffect, discharge_state, for_loop, run_state,
)

__all__ = ["AccumEffect", "ReadEffect", "RefEffect", "WriteEffect", "discharge_state", "for_loop",
           "run_state"]

_publish(__name__)
