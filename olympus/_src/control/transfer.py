"""Moving arrays between the memory of a device and that of its host, inside programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..backend.dispatch import argument_array
from ..base import lib
from ..core.primitive import Axis, Linear, Primitive
from ..types.memory import Space

__all__ = ["device_put_p", "move"]


class DevicePut(Primitive):
    """params: source, target, both `Space`. Values stay; the derivative moves back."""

    def impl(self, x: Any, *, source: Space, target: Space) -> Any:
        x = argument_array(x)
        return x if x.sharding.memory_kind == target.value else lib.copy_to_memory(x, target.value)

    def infer(self, x: Any, *, source: Space, target: Space) -> Any:
        return x

    def lower(self, b: Any, x: Any, *, source: Space, target: Space) -> Any:
        if b.platform == "cpu":     # programs for CPU know one memory
            return x
        placement = b.attr(f'{{_xla_buffer_placement = "{target.value}"}}')
        return b.custom_call("annotate_device_placement", [x], [x.type], {
            "has_side_effect": b.attr("true"), "mhlo.frontend_attributes": placement,
            "api_version": b.attr("1 : i32")})[0]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return self.bind(*primals, **params), self.bind(*tangents, **params)

    def transpose(self, ct: Any, x: Any, *, source: Space, target: Space) -> list[Any]:
        if type(x) is not Linear:
            return [None]
        return [self.bind(ct, source=target, target=source)]

    def vmap(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], **params: Any
             ) -> Any:
        return self.bind(*args, **params), dims[0]


device_put_p = DevicePut("device_put")


def move(x: Any, source: Space, target: Space) -> Any:
    """`x`, in the memory space `target`; programs for CPU keep it where they run."""
    return device_put_p.bind(x, source=source, target=target)
