"""Layouts: in which order an array's elements lie in memory, and with the sharding, its format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ..base import lib

__all__ = ["Format", "Layout"]


class AutoLayout:
    """Stands for the layout that the compiler chooses."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "AUTO"


class Layout:
    """The order of axes in memory, from the slowest to the fastest, and how tiles cut them.

    >>> from olympus.experimental.layout import Layout
    >>> Layout((1, 0))      # by columns
    Layout(major_to_minor=(1, 0), tiling=None, sub_byte_element_size_in_bits=0)
    """

    __slots__ = ("major_to_minor", "tiling", "sub_byte_element_size_in_bits")
    AUTO: ClassVar[AutoLayout] = AutoLayout()

    def __init__(self, major_to_minor: tuple[int, ...],
                 tiling: tuple[tuple[int, ...], ...] | None = None,
                 sub_byte_element_size_in_bits: int = 0) -> None:
        self.major_to_minor = tuple(major_to_minor)
        self.tiling = None if tiling is None else tuple(map(tuple, tiling))
        self.sub_byte_element_size_in_bits = sub_byte_element_size_in_bits

    @staticmethod
    def from_pjrt_layout(pjrt_layout: Any) -> Layout:
        """The layout that the runtime's own object describes."""
        return Layout(*lib.layout_fields(pjrt_layout))

    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        """ValueError if an array of this shape cannot have the layout."""
        if len(self.major_to_minor) != len(aval_shape):
            raise ValueError(f"Layout: major_to_minor={self.major_to_minor} and shape "
                             f"{tuple(aval_shape)} given; one entry per axis is required.")

    def update(self, **kwargs: Any) -> Layout:
        """A copy with the named fields changed."""
        return Layout(**{**{name: getattr(self, name) for name in self.__slots__}, **kwargs})

    def _key(self) -> tuple:
        return self.major_to_minor, self.tiling, self.sub_byte_element_size_in_bits

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return (f"Layout(major_to_minor={self.major_to_minor}, tiling={self.tiling}, "
                f"sub_byte_element_size_in_bits={self.sub_byte_element_size_in_bits})")


class Format:
    """How an array lies on devices: its layout (None: the default one) and its sharding.

    >>> import olympus
    >>> x = olympus.numpy.ones((2, 3))
    >>> x.format.layout.major_to_minor
    (0, 1)
    """

    __slots__ = ("layout", "sharding")

    def __init__(self, layout: Layout | AutoLayout | None = None, sharding: Any = None) -> None:
        if layout is not None and not isinstance(layout, (Layout, AutoLayout)):
            raise TypeError(f"Format: layout {layout!r} of type {type(layout).__name__} given; "
                            "a Layout, Layout.AUTO or None is required.")
        if sharding is not None and not isinstance(sharding, lib.Sharding):
            raise TypeError(f"Format: sharding {sharding!r} of type {type(sharding).__name__} "
                            "given; a sharding or None is required.")
        if isinstance(layout, Layout) and sharding is None:
            raise ValueError(f"Format: {layout} given without a sharding; a layout says how the "
                             "elements lie on a device; pass the sharding too.")
        self.layout, self.sharding = layout, sharding

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Format) and (self.layout, self.sharding) == (other.layout,
                                                                             other.sharding)

    def __hash__(self) -> int:
        return hash((self.layout, self.sharding))

    def __repr__(self) -> str:
        return f"Format(layout={self.layout}, sharding={self.sharding})"
