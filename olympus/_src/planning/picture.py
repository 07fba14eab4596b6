"""Plans as HTML: bars of memory and time, memory over the program, and the mesh."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from math import prod

from ..base.markup import PAPER, columns, escape
from ..base.util import binary_size
from .result import Plan, Plans, duration, mesh_text

_WIDTH, _HEIGHT = 900, 220      # the size of the picture of memory over the program
_LEFT, _BOTTOM = 92, 24         # the room for its axes
_NEAR = 0.02                    # the share of the total that a picture may lack without a remark
_MOST = 16                      # devices in a row or column of the mesh
_ROWS = 12                      # the most rows of a table
# Colours that differ in lightness, too: arguments, results, temporaries, code.
_COLORS = {"arguments": "#31688e", "results": "#35b779", "temporaries": "#f59b42",
           "code": "#9a9a9a", "compute": "#31688e", "memory": "#f59b42", "links": "#8e4b8e"}
_STYLE = (".olympus-plan{" + PAPER + ";font:14px/1.45 system-ui,sans-serif;max-width:960px;"
          "padding:12px 16px}.olympus-plan h2{font-size:20px;margin:0}.olympus-plan h3{"
          "font-size:15px;margin:22px 0 6px}.olympus-plan .badge{border-radius:4px;color:#fff;"
          "padding:2px 8px;margin-left:10px;font-size:13px;vertical-align:middle}"
          ".olympus-plan p{margin:4px 0}.olympus-plan svg{display:block;font:12px system-ui,"
          "sans-serif}.olympus-plan li{margin:3px 0}")


def page(plan: Plan | Plans) -> str:
    """A whole page."""
    title = plan.function if isinstance(plan, Plan) else "meshes"
    return ('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
            f"<title>{escape(title)}</title></head><body style=\"margin:0\">{body(plan)}"
            "</body></html>\n")


def body(plan: Plan | Plans) -> str:
    """The report as one piece of HTML."""
    parts = _plan(plan) if isinstance(plan, Plan) else _plans(plan)
    return f'<div class="olympus-plan"><style>{_STYLE}</style>{"".join(parts)}</div>'


def _plans(plans: Plans) -> Iterator[str]:
    head, *rows = [[*row[1:], row[0]] for row in plans.rows()]
    about = "".join(f"{escape(p.function)} for {escape(p.target)}: " for p in plans.plans[:1])
    yield f"<h2>{about}{len(rows)} meshes, the best first</h2>"
    yield columns(head, rows)
    yield "".join(f"<p>{escape(mesh)}: {escape(why)}</p>" for mesh, why in plans.refused.items())
    if plans.plans:
        yield "<hr/>"
        yield from _plan(plans.plans[0])


def _plan(plan: Plan) -> Iterator[str]:
    word, color = ("fits", "#2a7f4f") if plan.fits else ("does not fit", "#b3261e")
    yield (f'<h2>{escape(plan.function)} for {escape(plan.target)}<span class="badge" '
           f'style="background:{color}">{word}</span></h2>')
    mesh = f", mesh {mesh_text(plan.mesh)}" if plan.mesh else ""
    yield f"<p>{plan.devices} × {escape(plan.device)}{escape(mesh)}; figures of one device</p>"
    if plan.advice:
        yield f"<h3>Advice</h3><ul>{''.join(f'<li>{escape(a)}</li>' for a in plan.advice)}</ul>"
    yield f"<h3>Memory</h3>{_memory(plan)}"
    if len(plan.over_time) > 1:
        yield f"<h3>Memory over the program</h3>{_over_time(plan)}"
        highest = max(size for size, _ in plan.over_time) + plan.memory.code
        if abs(highest - plan.memory.total) > _NEAR * plan.memory.total:
            yield (f"<p>By the order of instructions; in the compiler's own places it takes "
                   f"{binary_size(plan.memory.total)}.</p>")
    yield "<h3>Time, at least</h3>" if plan.seconds else "<h3>Work</h3>"
    yield f"{_times(plan)}<p>{escape(plan._work())}</p>"
    if plan.mesh:
        yield f"<h3>Mesh</h3>{_mesh(plan)}"
    yield from _table("Exchanges", ["sent", "number", "kind", "over", "link", "most at"], [
        [binary_size(e.bytes), str(e.count), e.kind, e.axes, e.link, e.line]
        for e in plan.exchanges])
    yield from _table("Held at the peak, without arguments", ["size", "arrays", "line"], [
        [binary_size(row.bytes), str(row.arrays), f"{row.line} {row.text}".rstrip()]
        for row in plan.lines])
    yield from _table("Arguments", ["size", "argument"], [
        [binary_size(a.bytes), f"{a.name}: {a.type} {a.spec}".rstrip()] for a in plan.arguments])
    if plan.notes:
        yield f"<h3>Notes</h3><ul>{''.join(f'<li>{escape(n)}</li>' for n in plan.notes)}</ul>"


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if rows:
        yield f"<h3>{title}</h3>{columns(head, rows[:_ROWS])}"
        if len(rows) > _ROWS:
            yield f"<p>… {len(rows) - _ROWS} more</p>"


# Pictures ----------------------------------------------------------------------------------------

def _text(x: float, y: float, text: str, anchor: str = "start", color: str = "#1b1b1f") -> str:
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}">{escape(text)}'
            "</text>")


def _svg(height: float, parts: Sequence[str], width: float = _WIDTH) -> str:
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" height="{height:.0f}" style="max-width:100%">{"".join(parts)}'
            "</svg>")


def _rect(x: float, y: float, width: float, height: float, color: str, title: str = "") -> str:
    named = f"<title>{escape(title)}</title>" if title else ""
    return (f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{height:.1f}" '
            f'fill="{color}">{named}</rect>')


def _memory(plan: Plan) -> str:
    """The program's memory as one bar, beside the device's."""
    memory = plan.memory
    whole = max(memory.total, memory.available, 1)
    parts, x, legend = [], 0.0, []
    if memory.available:
        width = _WIDTH * memory.available / whole
        parts += [_rect(0, 0, width, 30, "#ececf0", f"available {binary_size(memory.available)}")]
    for name in ("arguments", "results", "temporaries", "code"):
        size = getattr(memory, name)
        if not size:
            continue
        label = f"{name} {binary_size(size)}"
        width = _WIDTH * size / whole
        parts.append(_rect(x, 0, max(width, 1), 30, _COLORS[name], label))
        legend.append(f'<span style="margin-right:20px"><span style="color:{_COLORS[name]}">■'
                      f"</span> {label}</span>")
        x += width
    said = binary_size(memory.total)
    if memory.available:
        at = _WIDTH * memory.available / whole
        parts.append(_rect(at - 2, 0, 2, 30, "#1b1b1f"))
        said += (f" of {binary_size(memory.available)}: "
                 f"{100 * memory.total / memory.available:.3g} %")
    return f"<p>{said}</p>{_svg(30, parts)}<p>{''.join(legend)}</p>"


def _over_time(plan: Plan) -> str:
    """Memory at each instruction as an area, over the arguments, which are there all the time."""
    points, base = plan.over_time, plan.memory.arguments
    highest = max(size for size, _ in points)
    available = plan.memory.available
    shown = available and available < 1.6 * highest
    unit = _round(max(highest, available if shown else 0, 1) / 4)
    top = 1.12 * max(highest, available if shown else 0, 1)
    width, height = _WIDTH - _LEFT, _HEIGHT - _BOTTOM

    def y(size: float) -> float:
        return height - height * size / top

    step = width / len(points)
    outline = " ".join(f"{_LEFT + n * step:.1f},{y(size):.1f} {_LEFT + (n + 1) * step:.1f},"
                       f"{y(size):.1f}" for n, (size, _) in enumerate(points))
    parts = [_rect(_LEFT, 0, width, height, "#f7f7f9")]
    for n in range(int(top / unit) + 1):
        size = unit * n
        parts += [f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{y(size):.1f}" y2="{y(size):.1f}" '
                  'stroke="#dcdce2"/>',
                  _text(_LEFT - 6, max(y(size) + 4, 11), binary_size(size), "end", "#55555f")]
    parts += [f'<polygon points="{_LEFT},{height} {outline} {_WIDTH},{height}" '
              f'fill="{_COLORS["temporaries"]}"/>',
              _rect(_LEFT, y(min(base, highest)), width, height - y(min(base, highest)),
                    _COLORS["arguments"])]
    peak = max(range(len(points)), key=lambda n: points[n][0])
    x, left = _LEFT + (peak + 0.5) * step, peak > len(points) / 2
    parts += [f'<circle cx="{x:.1f}" cy="{y(highest):.1f}" r="4" fill="#1b1b1f"/>',
              _text(x + (-9 if left else 9), max(y(highest) - 7, 12),
                    f"{binary_size(highest)} at {points[peak][1]}", "end" if left else "start")]
    if shown:
        parts += [f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{y(available):.1f}" '
                  f'y2="{y(available):.1f}" stroke="#b3261e" stroke-width="2" '
                  'stroke-dasharray="6 4"/>',
                  _text(_LEFT + 6 if left else _WIDTH - 6, y(available) - 5,
                        f"available {binary_size(available)}", "start" if left else "end",
                        "#b3261e")]
    # A pointer over the area shows the line there.
    parts += [f'<rect x="{_LEFT + n * step:.1f}" y="0" width="{step:.2f}" height="{height}" '
              f'fill="transparent"><title>{escape(f"{binary_size(size)}: {line}")}</title></rect>'
              for n, (size, line) in enumerate(points)]
    parts += [_text(_LEFT, _HEIGHT - 6, "first instruction", "start", "#55555f"),
              _text(_WIDTH, _HEIGHT - 6, "last instruction", "end", "#55555f")]
    return _svg(_HEIGHT, parts)


def _round(size: float) -> float:
    """A round number of bytes near a size: 1, 2 or 5 times a power of ten of a unit."""
    scale = 1024.0 ** max(math.floor(math.log(size, 1024)), 0)
    power = 10.0 ** math.floor(math.log10(size / scale))
    return scale * power * min((1, 2, 5, 10), key=lambda n: abs(n * power - size / scale))


def _times(plan: Plan) -> str:
    longest = max(plan.seconds.values(), default=0.0)
    if not longest:
        return ""
    parts = []
    for n, (name, seconds) in enumerate(plan.seconds.items()):
        width = (_WIDTH - _LEFT - 90) * seconds / longest
        bound = " — the bound" if name == plan.bound else ""
        inside = width > _WIDTH / 2
        parts += [_text(_LEFT - 6, 26 * n + 15, name, "end"),
                  _rect(_LEFT, 26 * n, max(width, 1), 20, _COLORS[name]),
                  _text(_LEFT + width + (-8 if inside else 8), 26 * n + 15,
                        f"{duration(seconds)}{bound}", "end" if inside else "start",
                        "#fff" if inside and name != "memory" else "#1b1b1f")]
    return _svg(26 * len(plan.seconds), parts)


def _mesh(plan: Plan) -> str:
    """The devices as boxes, the last axis to the right; beside them the traffic of each axis."""
    *down, (right, across) = plan.mesh.items()
    rows = prod(size for _, size in down)
    shown_rows, shown = min(rows, _MOST), min(across, _MOST)
    side = 44 if max(shown_rows, shown) <= 8 else 26
    left, top = 20, 40 if down else 23
    parts = [_text(left, 14, f"{right}: {across} →")]
    if down:
        parts.append(_text(left, 31, " × ".join(f"{n}: {size}" for n, size in down) + " ↓"))
    for i in range(shown_rows):
        for j in range(shown):
            x, y = left + j * side, top + i * side
            hue, light = 205 + 120 * i / max(rows - 1, 1), 86 - 28 * j / max(across - 1, 1)
            parts += [_rect(x, y, side - 3, side - 3, f"hsl({hue:.0f},45%,{light:.0f}%)"),
                      _text(x + side / 2 - 1, y + side / 2 + 3, str(i * across + j), "middle")]
    more = [f"… {rows * across - shown_rows * shown} more devices"] if (
        rows * across > shown_rows * shown) else []
    x = left + shown * side + 24
    said = [f"{e.count} × {e.kind} over {e.axes}: {binary_size(e.bytes)} by {e.link}"
            for e in plan.exchanges[:8]] or ["no exchanges"]
    parts += [_text(x, top + 14 + 19 * n, text) for n, text in enumerate([*said, *more])]
    height = top + max(shown_rows * side, 19 * (len(said) + len(more)) + 8)
    return _svg(height, parts)


