"""Pictures, in text or HTML, of the parts of an array by device."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import ModuleType

from ..base import lib
from ..base.markup import ColorMap, boxes, color_of
from ..base.typing import Array, PyTree
from ..core.trace import typeof
from ..lax.sharding import resolve_sharding
from ..types.pictures import device_grid
from ..types.shape import Shape, canonical_shape, sequence
from ..types.sharding import NamedSharding, Sharding
from .inspection import inspect_array_sharding

_LINES = 10             # of a square array's picture
_WIDTH_OF_LINE = 2.5    # a line of a terminal is that many columns high


def visualize_sharding(shape: Sequence[int], sharding: Sharding, use_color: bool = True,
                       scale: float = 1.0, min_width: int = 9, max_width: int = 80,
                       color_map: ColorMap | None = None) -> None:
    """Print which devices hold which part of an array of one or two axes, as boxes.

    Args:
      shape: of the array; its first axis goes down, an only one to the right.
      sharding: how it is cut over devices.
      use_color: in a terminal or a notebook, give each part a colour.
      scale: how large the picture is.
      min_width: the least number of characters of a box and its border, where `max_width` leaves
        room.
      max_width: of the picture; boxes are never too narrow for their text.
      color_map: from a number in [0, 1] to red, green and blue in [0, 1], as the colour maps of
        matplotlib are; built in if None.

    ValueError for arrays of other ranks.

    >>> from olympus.sharding import NamedSharding, PartitionSpec as P
    >>> mesh = olympus.make_mesh((1,), ("x",))
    >>> olympus.debug.visualize_sharding((4,), NamedSharding(mesh, P("x")), scale=0.1)
    ┌───────┐
    │ CPU 0 │
    └───────┘
    """
    what = "visualize_sharding"
    shape = canonical_shape(sequence(shape, what, "shape"), what)
    if len(shape) not in (1, 2):
        raise ValueError(f"{what}: shape {shape} given; one or two axes are required; draw a part "
                         "of the array, with indexing or sum.")
    if color_map is not None and not callable(color_map):
        raise TypeError(f"{what}: color_map {color_map!r:.40} given; a function of a number is "
                        "required; matplotlib.colormaps[name] is one.")
    if type(sharding) is not lib.GSPMDSharding:     # that is what XLA chose
        sharding = resolve_sharding(what, sharding)
    if type(sharding) is NamedSharding:
        try:
            sharding.check_compatible_aval(shape)
        except ValueError as error:
            raise ValueError(f"{what}: {error}") from None
    labels, rows, columns = device_grid(shape, sharding)
    height, width = _box_size(shape, labels, rows, columns, scale, min_width, max_width)
    notebook = _notebook()
    if notebook is not None:
        notebook.display(notebook.HTML(boxes(labels, height, width, color_map if use_color else (
            lambda number: (1.0, 1.0, 1.0)))))
        return
    # In a file the codes of colours would be text.
    paint = painter(color_map) if use_color and sys.stdout.isatty() else None
    print(drawn(labels, height, width, paint))


def _notebook() -> ModuleType | None:
    """IPython's module that displays, if this is the process of a notebook."""
    # IPython is not imported here: a notebook has done so. In a terminal its shell has no kernel.
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return ipython.display if ipython is not None and hasattr(shell, "kernel") else None


def visualize_array_sharding(arr: Array, **kwargs: PyTree) -> None:
    """Print which devices hold which part of an array of one or two axes, as boxes.

    Args:
      arr: the array; within `jit`, it is drawn while the program is compiled.
      **kwargs: as for `visualize_sharding`.

    >>> olympus.debug.visualize_array_sharding(onp.ones((2, 2)), scale=0.1)
    ┌───────┐
    │ CPU 0 │
    └───────┘
    """
    aval = typeof(arr)
    inspect_array_sharding(arr, callback=lambda sharding: visualize_sharding(
        aval.shape, sharding, **kwargs))


def _box_size(shape: Shape, labels: dict[tuple[int, int], str], rows: int, columns: int,
              scale: float, min_width: int, max_width: int) -> tuple[int, int]:
    """The height and width within a box: as the array's proportions are, as far as there is room"""
    lines = int(_LINES * scale)
    proportion = (shape[1] if len(shape) == 2 else 1) / shape[0] if shape[0] else 1
    width = int(int(lines * proportion) * _WIDTH_OF_LINE / columns)
    room = (max_width - 1) // columns - 1       # each box has one border of its own
    height = 1 if len(shape) == 1 else max(1, lines // rows - 1)
    least = max(map(len, labels.values()))
    return height, max(least, min(max(width, min_width) - 2, room))


def drawn(labels: dict[tuple[int, int], str], height: int, width: int,
          paint: Callable[[str, float], str] | None = None) -> str:
    """Boxes with labels in their middle, by row and column.

    >>> print(drawn({(0, 0): "a", (0, 1): "b"}, 1, 3))
    ┌───┬───┐
    │ a │ b │
    └───┴───┘
    """
    rows, columns = [max(where) + 1 for where in zip(*labels, strict=True)]
    edge = "─" * width
    lines = ["┌" + "┬".join([edge] * columns) + "┐"]
    for i in range(rows):
        if i:
            lines.append("├" + "┼".join([edge] * columns) + "┤")
        for line in range(height):
            cells = []
            for j in range(columns):
                text = labels.get((i, j), "") if line == (height - 1) // 2 else ""
                cell = (" " * ((width - len(text)) // 2) + text).ljust(width)
                cells.append(cell if paint is None else
                             paint(cell, (i * columns + j) / max(rows * columns - 1, 1)))
            lines.append("│" + "│".join(cells) + "│")
    lines.append("└" + "┴".join([edge] * columns) + "┘")
    return "\n".join(lines)


def painter(color_map: ColorMap | None) -> Callable[[str, float], str]:
    """A function that gives text a background colour in a terminal, for a number in [0, 1]."""
    def paint(text: str, number: float) -> str:
        color, dark = color_of(number, color_map)
        ink = 30 if dark else 97
        # 30 and 97 are black and white ink, 48;2 begins a background of 24 bits.
        return f"\x1b[{ink};48;2;{';'.join(map(str, color))}m{text}\x1b[0m"

    return paint
