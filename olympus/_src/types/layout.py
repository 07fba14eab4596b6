"""Layouts: in which order an array's elements lie in memory, and with the sharding, its format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ..base import lib
from ..base.util import ByKey


class AutoLayout:
    """Stands for the layout that the compiler chooses."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "AUTO"

    def text(self) -> str:
        """The text for XLA."""
        return "auto"


AUTO = AutoLayout()


class Layout(ByKey):
    """The order of axes in memory, from the slowest to the fastest, and how tiles cut them.

    >>> from olympus.experimental.layout import Layout
    >>> Layout((1, 0))      # by columns
    Layout(major_to_minor=(1, 0), tiling=None, sub_byte_element_size_in_bits=0)
    """

    __slots__ = ("major_to_minor", "tiling", "sub_byte_element_size_in_bits")
    AUTO: ClassVar[AutoLayout] = AUTO

    def __init__(self, major_to_minor: tuple[int, ...],
                 tiling: tuple[tuple[int, ...], ...] | None = None,
                 sub_byte_element_size_in_bits: int = 0) -> None:
        self.major_to_minor = tuple(major_to_minor)
        self.tiling = None if tiling is None else tuple(map(tuple, tiling))
        self.sub_byte_element_size_in_bits = sub_byte_element_size_in_bits

    @staticmethod
    def from_pjrt_layout(pjrt_layout: object) -> Layout:
        """The layout that the runtime's own object describes."""
        return Layout(*lib.layout_fields(pjrt_layout))

    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        """ValueError if an array of this shape cannot have the layout."""
        if len(self.major_to_minor) != len(aval_shape):
            raise ValueError("Layout: Length of major_to_minor and the rank of the value should "
                             f"match: major_to_minor={self.major_to_minor} and shape="
                             f"{tuple(aval_shape)} given; give one entry per axis.")

    def text(self) -> str:
        """XLA's notation: axes from the fastest to the slowest, tiles, bits of an element.

        >>> Layout((1, 0), ((8, 128),)).text()
        '{0,1:T(8,128)}'
        """
        axes = ",".join(map(str, reversed(self.major_to_minor)))
        tiles = "".join([f"({','.join(map(str, tile))})" for tile in self.tiling or ()])
        bits = self.sub_byte_element_size_in_bits
        more = (tiles and f"T{tiles}") + (f"E({bits})" if tiles and bits else "")
        return f"{{{axes}:{more}}}" if more else f"{{{axes}}}"

    def under_vmap(self, dim: int) -> Layout:
        """The layout of arrays with one axis more, `dim`, which is the slowest."""
        rest = [axis + (axis >= dim) for axis in self.major_to_minor]
        return self.update(major_to_minor=(dim, *rest))

    def update(self, **kwargs: Any) -> Layout:
        """A copy with the named fields changed."""
        return Layout(**{**{name: getattr(self, name) for name in self.__slots__}, **kwargs})

    def _key(self) -> tuple:
        return self.major_to_minor, self.tiling, self.sub_byte_element_size_in_bits

    def __repr__(self) -> str:
        return (f"Layout(major_to_minor={self.major_to_minor}, tiling={self.tiling}, "
                f"sub_byte_element_size_in_bits={self.sub_byte_element_size_in_bits})")


class Format(ByKey):
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
            raise ValueError(f"Format: Sharding has to be concrete when layout is {layout}: it "
                             "says how elements lie on a device; pass the sharding too.")
        self.layout, self.sharding = layout, sharding

    def _key(self) -> tuple:
        return self.layout, self.sharding

    def __repr__(self) -> str:
        return f"Format(layout={self.layout}, sharding={self.sharding})"


def demanded_layout(layout: Layout | AutoLayout | None) -> str | None:
    """XLA's text for a demanded layout; None for the usual one, by rows."""
    if isinstance(layout, Layout) and not layout.tiling and (
            layout.major_to_minor == (*range(len(layout.major_to_minor)),)):
        return None
    return None if layout is None else layout.text()
