"""The primitive of `compute_on2`: a program that runs on the host or on the device."""

from __future__ import annotations

from collections.abc import Hashable

from ..base.typing import IrValue
from ..core.ir import ClosedOlympuspr
from ..core.primitive import Builder
from .call import Call


class ComputeOn(Call):
    """Apply `olympuspr` in the place that `compute_type` names. params: compiler_options, too."""

    called = False
    fusion = ""

    def lower(self, b: Builder, *args: IrValue, olympuspr: ClosedOlympuspr, compute_type: str,
              compiler_options: str | None, **params: Hashable) -> list[IrValue]:
        return b.call_elsewhere(olympuspr, args, compute_type, compiler_options)


compute_on_p = ComputeOn("compute_on")
