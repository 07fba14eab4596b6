"""Frontend attributes: notes for XLA on operations and calls, apart from their meaning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..base.lib import mlir
from ..base.typing import IrAttribute
from ..core.context import Scope

FRONTEND = "mhlo.frontend_attributes"
KEPT = {"inlineable": "false"}      # for a call that XLA must not inline
ONE_KERNEL = {**KEPT, "xla_cpu_small_call": "true"}     # XLA:CPU compiles a call as one kernel
_COMPUTE_TYPES = {"device_host": "host", "device": "dense", "tpu_sparsecore": "sparseoffload"}


def elsewhere(compute_type: str, options: str | None = None) -> dict[str, str]:
    """XLA's attributes for operations that run in the place `compute_type`."""
    if compute_type.startswith("gpu_stream:"):
        attributes = {"_xla_stream_annotation": compute_type.split(":")[1], **KEPT}
    else:
        attributes = {"_xla_compute_type": _COMPUTE_TYPES[compute_type]}
    return attributes if options is None else {**attributes, "backend_config": options}


def marks_of(scope: Scope, around: Iterable[Any] | None) -> IrAttribute | None:
    """XLA's attributes for the operations of a scope, in a program with the attributes `around`."""
    # A scope's metadata replaces outer metadata, but not the place of its operations (`_xla…`).
    given = {} if around is None else {
        a.name: a.attr.value for a in around
        if scope.metadata is None or a.name.startswith("_xla")}
    if scope.compute_type is not None:
        given = elsewhere(scope.compute_type)
    return dictionary({**given, **dict(scope.metadata or ())})


def dictionary(marks: Mapping[str, Any]) -> Any:
    ir = mlir.ir
    return ir.DictAttr.get({k: ir.StringAttr.get(v) for k, v in marks.items()}) if marks else None
