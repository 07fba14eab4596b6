"""Rematerialisation: names only."""

from ._src.base.util import publish as _publish
from ._src.control.remat import Offloadable, Recompute, Saveable, name_p
from ._src.control_flow.remat import (
    checkpoint, checkpoint_name, checkpoint_name_fwd, checkpoint_policies,
)
from ._src.control_flow.remat import checkpoint as remat
from ._src.autodiff.residuals import print_saved_residuals

__all__ = ["Offloadable", "Recompute", "Saveable", "checkpoint", "checkpoint_name",
           "checkpoint_name_fwd", "checkpoint_policies", "name_p", "print_saved_residuals", "remat"]

_publish(__name__)
