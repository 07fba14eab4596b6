"""HTML for notebooks: tables and coloured boxes that need nothing from outside.

Ink and paper are always given together, so that a picture can be read on a dark page as well.
"""

from __future__ import annotations

import colorsys
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any, TypeAlias

ColorMap: TypeAlias = Callable[[float], Sequence[float]]
PAPER = "color:#1b1b1f;background:#ffffff"


def preformatted(text: str) -> str:
    """Text as it is, blanks and newlines too."""
    return f'<pre style="{PAPER};margin:0;padding:4px;line-height:1.25">{escape(text)}</pre>'


def columns(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of text: the last column is code and stands on the left, numbers on the right.

    >>> columns(["n", "line"], [["1", "x < y"]]).count("<td")
    2
    """
    style = f'style="{PAPER};border-collapse:collapse;font:13px monospace"'
    lines = [_table_row("th", head), *[_table_row("td", row) for row in rows]]
    return f"<table {style}>{''.join(lines)}</table>"


def _table_row(tag: str, cells: Sequence[str]) -> str:
    sides = ["right"] * (len(cells) - 1) + ["left"]
    columns = [f'<{tag} style="text-align:{side};padding:1px 8px;'
               f'border-bottom:1px solid #ddd{"" if side == "left" else ";white-space:nowrap"}">'
               f"{escape(cell)}</{tag}>" for cell, side in zip(cells, sides, strict=True)]
    return f"<tr>{''.join(columns)}</tr>"


def boxes(labels: dict[tuple[int, int], str], height: int, width: int,
          color_map: ColorMap | None = None) -> str:
    """Coloured boxes with labels in their middle, by row and column.

    Args:
      labels: the text of each box, by row and column.
      height, width: of a box, in lines and characters.
      color_map: from a number in [0, 1] to red, green and blue in [0, 1]; ours if None.
    """
    rows, cols = [max(where) + 1 for where in zip(*labels, strict=True)]
    lines = []
    for i in range(rows):
        cells = []
        for j in range(cols):
            color, dark = color_of((i * cols + j) / max(rows * cols - 1, 1), color_map)
            cells.append(
                f'<td style="background:rgb({",".join(map(str, color))});color:'
                f'{"black" if dark else "white"};border:1px solid #333;text-align:center;'
                f'width:{width}ch;height:{2 * height}ch">{escape(labels.get((i, j), ""))}</td>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f'<table style="border-collapse:collapse">{"".join(lines)}</table>'


def color_of(number: float, color_map: ColorMap | None) -> tuple[tuple[int, ...], bool]:
    """Red, green and blue for a number in [0, 1], and whether ink on it is black."""
    rgb: Any = colorsys.hsv_to_rgb(number * 5 / 6, 0.6, 0.9) if color_map is None else (
        color_map(number))
    red, green, blue = [round(255 * c) for c in tuple(rgb)[:3]]
    return (red, green, blue), 3 * red + 6 * green + blue > 1275
