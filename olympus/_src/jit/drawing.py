"""Drawings of programs: one piece of HTML in which bodies collapse and edges carry types.

Boxes stand in rows by how far they are from the inputs. A browser lays the rows out, and a script
of a few lines draws each edge between the boxes where they then are, again when a body opens.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ..base import source
from ..base.markup import escape
from ..base.typing import PyTree
from ..base.util import clipped, short_number, shortened
from ..core.ir import Atom, ClosedOlympuspr, Literal, Olympuspr, OlympusprEqn, Var, variables
from ..core.primitive import programs_in
from ..core.printing import Names
from ..types.shape import static_int
from .arguments import check_callable
from .cost_table import Cost, Costs
from .stages import Stage, Wrapped
from .tracing import make_olympuspr

LIMIT = 400             # equations that are drawn if nothing else is asked for
_MOST_PILLS = 100       # inputs, and outputs, of one program
_DEEPEST = 20           # programs within one another
_FLOPS_A_BYTE = 8       # operations in the time of reading a byte, for the bars


class Drawing:
    """A picture of a program: shown by notebooks, written by `save`; `str` is the whole page.

    >>> import olympus
    >>> picture = olympus.debug.draw(olympus.numpy.sin, 1.0)
    >>> picture
    Drawing(sin: 1 equation)
    >>> str(picture).startswith("<!DOCTYPE html>")
    True
    """

    def __init__(self, title: str, equations: int, html: str) -> None:
        self.title, self.equations, self._html = title, equations, html

    def _repr_html_(self) -> str:
        return self._html

    def __str__(self) -> str:
        return ('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
                f"<title>{escape(self.title)}</title></head><body>{self._html}</body></html>\n")

    def __repr__(self) -> str:
        s = "" if self.equations == 1 else "s"
        return f"Drawing({self.title}: {self.equations} equation{s})"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, which needs no other."""
        Path(path).write_text(str(self), encoding="utf-8", errors="xmlcharrefreplace")


def draw(fun: Callable[..., PyTree] | Stage | ClosedOlympuspr | Olympuspr, /, *args: PyTree,
         limit: int = LIMIT, **kwargs: PyTree) -> Drawing:
    """Draw a program: operations as boxes with their costs, values as edges with their types.

    What carries programs (jit, scan, while, cond …) is a box that opens by a click. Under the
    pointer a box shows the user's line and the operation's parameters. Costs are XLA's estimates of
    each operation alone, of one run; a box's bar is its share of its program's.

    Args:
      fun: a function, which is traced and not run; or a `Traced`, `Lowered` or `Compiled`, or a
        program.
      *args, **kwargs: the function's arguments: arrays, or anything with a shape and a dtype.
      limit: how many equations are drawn; a note says how many are left out.
    Returns: A `Drawing`. A program that is called several times is drawn where it is called first.

    TypeError for arguments beside a program, which has its own, and for other objects than
    functions.

    >>> def layer(w, x):
    ...     return onp.tanh(w @ x)
    >>> olympus.debug.draw(layer, onp.ones((3, 2)), onp.ones(2))
    Drawing(layer: 2 equations)
    """
    most = static_int(limit, "draw", "limit")
    if isinstance(fun, (Stage, ClosedOlympuspr, Olympuspr)):
        if args or kwargs:
            raise TypeError(f"draw: {type(fun).__name__} and {len(args) + len(kwargs)} arguments "
                            "given; a program is drawn without, for it has its types.")
        return stage_drawing(fun, most) if isinstance(fun, Stage) else _drawing(fun, most)
    check_callable("draw", fun)
    if isinstance(fun, Wrapped):        # which is traced with its own options
        return stage_drawing(fun.trace(*args, **kwargs), most)
    return _drawing(make_olympuspr(fun)(*args, **kwargs), most)


def stage_drawing(stage: Stage, limit: int) -> Drawing:
    """The drawing of what `jit` traced, lowered or compiled, for the devices of that."""
    return _drawing(stage._program.closed, limit, stage._placement.platform, repr(stage))


def _drawing(program: object, limit: int, platform: str | None = None, title: str = "") -> Drawing:
    """The drawing of an open or closed program, with costs on a platform."""
    opened = _opened(program)
    name = opened.debug_info.func_name
    html = "".join(_Picture(Costs(platform), limit).program("", opened, 0))
    return Drawing(name, len(opened.eqns), (
        f'<div class="olympus-drawing"><style>{_STYLE}</style><h4>{escape(title or name)}</h4>'
        f"{html}<script>{_SCRIPT}</script></div>"))


def _opened(program: Any) -> Olympuspr:
    return getattr(program, "olympuspr", program)


class _Read(NamedTuple):
    """A value that a box reads: the number of the box that makes it, and where it leaves that."""

    maker: int
    out: float      # from the left corner, 0, to the right one, 1
    var: Var


class _Node(NamedTuple):
    """A box: its number, the boxes that it reads, and a function from its number to its HTML."""

    number: int
    reads: Sequence[_Read]
    write: Callable[[int], Iterator[str]]


class _Picture:
    """One drawing while it is written: variables' names, and how much may still be drawn."""

    def __init__(self, costs: Costs, limit: int) -> None:
        self.costs, self.left = costs, limit
        self.names = Names()
        self.count = 0
        self.drawn: dict[int, int] = {}         # numbers of programs, by their id

    def program(self, label: str, pr: Olympuspr, depth: int) -> Iterator[str]:
        """A program with its inputs above and its outputs below; `label` is its role in a box."""
        again = self.drawn.get(id(pr))
        if again is not None:
            yield _note(f"{label}: the same as program {again}")
            return
        if depth > _DEEPEST:
            yield _note(f"{label}: programs within {_DEEPEST} others are not drawn")
            return
        number = self.drawn[id(pr)] = len(self.drawn)
        # The outer program comes first: bodies get the rest.
        shown = pr.eqns[:max(self.left, 0)]
        self.left -= len(shown)
        nodes = self.nodes(pr, shown, depth)
        yield _note(f"{label}: program {number}") if label else ""
        yield f'<div class="program" data-program="{number}"><svg class="edges">'
        yield from _edge_lines(nodes, self.names)
        yield "</svg>"
        for row in _rows_by_depth(nodes):
            yield '<div class="row">'
            for node in row:
                yield from node.write(node.number)
            yield "</div>"
        yield "</div>"
        if len(shown) < len(pr.eqns):
            yield _note(f"{len(pr.eqns) - len(shown)} more of {len(pr.eqns)} equations are not "
                        "drawn; draw(…, limit=…) draws more")

    def nodes(self, pr: Olympuspr, eqns: Sequence[OlympusprEqn], depth: int) -> list[_Node]:
        """The boxes of inputs, equations and outputs."""
        found: list[_Node] = []
        made: dict[Var, _Read] = {}

        def add(write: Callable[[int], Iterator[str]], ins: Sequence[Atom] = (),
                outs: Sequence[Var] = ()) -> None:
            # Values without a box, such as inputs beyond the drawn ones, have no edges.
            number = self.count = self.count + 1
            found.append(_Node(number, [made[v] for v in variables(ins) if v in made], write))
            made.update({v: _Read(number, i / (len(outs) + 1), v) for i, v in enumerate(outs, 1)})

        self.names.drop_unread(pr)
        info = pr.debug_info
        # A program that a pass has made may have other inputs than its names say.
        names = info.arg_names if len(info.arg_names) == len(pr.invars) else [""] * len(pr.invars)
        inputs = [*[(v, "constant") for v in pr.constvars], *zip(pr.invars, names, strict=True)]
        for v, name in inputs[:_MOST_PILLS]:
            add(partial(self.pill, "input", v, name), outs=[v])
        costs = list(map(self.costs.total, eqns))
        whole = sum(map(_work, costs)) or 1.0
        for eqn, cost in zip(eqns, costs, strict=True):
            add(partial(self.equation, eqn, cost, _work(cost) / whole, depth), eqn.invars,
                eqn.outvars)
        for v in pr.outvars[:_MOST_PILLS]:
            add(partial(self.pill, "output", v, ""), [v])
        for what, given in (("inputs", inputs), ("outputs", pr.outvars)):
            if len(given) > _MOST_PILLS:
                add(partial(_box, "input", "", f"{len(given) - _MOST_PILLS} more {what}"))
        return found

    def pill(self, kind: str, atom: Atom, name: str, number: int) -> Iterator[str]:
        """An input or an output."""
        return _box(kind, f"{kind}: {atom.aval}", (
            f"<b>{escape(shortened(name, 40))}</b> <i>{escape(self.atom(atom))}</i>{_type(atom)}"),
            number)

    def equation(self, eqn: OlympusprEqn, cost: Cost, share: float, depth: int, number: int
                 ) -> Iterator[str]:
        """An operation, or what opens to the programs that it carries."""
        bodies = [(name.removesuffix("olympuspr").rstrip("_") or "body", _opened(body))
                  for name, value in eqn.params.items() for body in programs_in(value)]
        plain = {k: v for k, v in eqn.primitive.shown(eqn).items() if not programs_in(v)}
        hover = "\n".join([source.summarize(eqn.source),
                           *[f"{k}={clipped(v, 80)}" for k, v in plain.items()]])
        # Twenty of them, since a concatenation or a loop may have thousands.
        operands = shortened(", ".join(map(self.atom, eqn.invars[:20])), 40)
        text = (f"<b>{escape(_label_of_call(eqn))}</b> <i>{escape(operands)}</i>{_cost(cost)}"
                f"{''.join(map(_type, eqn.outvars[:20]))}"
                f'<div class="bar" style="width:{100 * share:.0f}%"></div>')
        if not bodies:
            yield from _box("operation", hover, text, number)
            return
        yield (f'<details class="node body" data-node="{number}" title="{escape(hover)}">'
               f"<summary>{text}</summary>")
        for label, body in bodies:
            yield '<div class="inner">'
            yield from self.program(label, body, depth + 1)
            yield "</div>"
        yield "</details>"

    def atom(self, atom: Atom) -> str:
        return clipped(atom.raw, 20) if isinstance(atom, Literal) else self.names.of(atom)


def _box(kind: str, hover: str, html: str, number: int) -> Iterator[str]:
    yield f'<div class="node {kind}" data-node="{number}" title="{escape(hover)}">{html}</div>'


def _note(text: str) -> str:
    return f'<p class="note">{escape(text)}</p>'


def _label_of_call(eqn: OlympusprEqn) -> str:
    """The primitive, the function that is called, how often."""
    name, length = eqn.params.get("name"), eqn.params.get("length")
    return "".join([eqn.primitive.name, f" {shortened(str(name), 40)}" if name else "",
                    f" × {length}" if length else ""])


def _type(atom: Atom) -> str:
    """A value's type in the box that makes it: for who reads without the script."""
    return f'<div class="type">{escape(shortened(atom.aval.str_short(short_dtypes=True)))}</div>'


def _cost(cost: Cost) -> str:
    texts = [f"{short_number(cost.flops)} flops",
             f"{short_number(cost.transcendentals)} transcendentals", short_number(cost.bytes, "B")]
    shown = " · ".join([text for text, n in zip(texts, cost, strict=True) if n])
    return f'<div class="cost">{shown}</div>' if shown else ""


def _work(cost: Cost) -> float:
    return cost.flops + cost.transcendentals + _FLOPS_A_BYTE * cost.bytes


def _edge_lines(nodes: Sequence[_Node], names: Names) -> Iterator[str]:
    """An edge for each value that is read; its type is written where it leaves its box."""
    labelled: set[Var] = set()
    for node in nodes:
        for place, (maker, out, var) in enumerate(node.reads, 1):
            text = f"{names.of(var)}: {shortened(var.aval.str_short(short_dtypes=True))}"
            label = "" if var in labelled else f"<text>{escape(text)}</text>"
            labelled.add(var)
            yield (f'<g class="edge" data-from="{maker}" data-to="{node.number}" '
                   f'data-out="{out:.3f}" data-in="{place / (len(node.reads) + 1):.3f}">'
                   f"<title>{escape(text)}</title><path/>{label}</g>")


def _rows_by_depth(nodes: Sequence[_Node]) -> list[list[_Node]]:
    """The boxes by how far they are from the inputs, in a row as their operands are.

    What reads nothing, or only such boxes, stands one row above its first reader.
    """
    row = _distances(nodes)
    rows: dict[int, list[_Node]] = {}
    for node in nodes:
        rows.setdefault(row[node.number], []).append(node)
    found = []
    place: dict[int, float] = {}
    for i in sorted(rows):
        # By the mean place of the boxes that a box reads: few edges cross (the barycentre
        # heuristic).
        ordered = sorted(rows[i],
                         key=lambda node: _mean_place([place[r.maker] for r in node.reads]))
        place.update({node.number: (n + 0.5) / len(ordered) for n, node in enumerate(ordered)})
        found.append(ordered)
    return found


def _distances(nodes: Sequence[_Node]) -> dict[int, int]:
    row: dict[int, int] = {}
    for node in nodes:
        row[node.number] = max([row[r.maker] + 1 for r in node.reads], default=0)
    reader: dict[int, int] = {}     # the row of the first one
    starts = {node.number for node in nodes if not node.reads}
    for node in reversed(nodes):    # backwards, so that the readers of a box have their rows
        if all(r.maker in starts for r in node.reads):
            row[node.number] = max(reader.get(node.number, row[node.number] + 1) - 1, 0)
        for r in node.reads:
            reader[r.maker] = min(reader.get(r.maker, row[node.number]), row[node.number])
    return row


def _mean_place(places: Sequence[float]) -> float:
    return sum(places) / len(places) if places else 1.0     # to the right of all others


_STYLE = """
.olympus-drawing{color:#1b1b1f;background:#ffffff;font:13px sans-serif;padding:8px;overflow:auto}
.olympus-drawing h4{margin:4px;text-align:center;font:bold 15px monospace}
.olympus-drawing .program{position:relative;min-width:max-content;padding:4px 48px}
.olympus-drawing .edges{position:absolute;left:0;top:0;width:100%;height:100%;overflow:visible;
 display:none}
.olympus-drawing .row{display:flex;justify-content:center;align-items:flex-end;gap:40px;
 margin:0 0 8px}
.olympus-drawing.live .row{margin-bottom:44px}
.olympus-drawing.live .row:last-child{margin-bottom:4px}
.olympus-drawing.live .program .edges{display:block}
.olympus-drawing .node{position:relative;color:#1b1b1f;background:#ffffff;border:1px solid #55555f;
 border-radius:5px;padding:4px 9px 6px;text-align:center;min-width:50px}
.olympus-drawing .node:hover{border-color:#b02a00;box-shadow:0 0 0 1px #b02a00}
.olympus-drawing .input{background:#e3eefb;border-radius:14px}
.olympus-drawing .output{background:#e2f4e2;border-radius:14px}
.olympus-drawing .body{background:#f6f1fc;border-width:2px}
.olympus-drawing summary{cursor:pointer}
.olympus-drawing b{font-family:monospace}
.olympus-drawing i{color:#4a4a55;font:12px monospace}
.olympus-drawing .cost{color:#4a4a55;font-size:11px}
.olympus-drawing .type{color:#1f4f8f;font:11px monospace}
.olympus-drawing.live .type{display:none}
.olympus-drawing .output .type{display:block !important}
.olympus-drawing .bar{position:absolute;left:0;bottom:0;height:3px;background:#d2691e}
.olympus-drawing details .bar{bottom:auto;top:0}
.olympus-drawing .inner{border-top:1px dashed #9a8fb0;margin-top:6px}
.olympus-drawing .note{color:#4a4a55;font-size:12px;margin:4px;text-align:center}
.olympus-drawing path{fill:none;stroke:#8a8a96;stroke-width:1.3}
.olympus-drawing .lit path{stroke:#b02a00;stroke-width:2.2}
.olympus-drawing text{fill:#1f4f8f;font:11px monospace;paint-order:stroke;stroke:#ffffff;
 stroke-width:4px}
"""

# No "<" and no "&": the drawing is XML as well, for whoever puts it into such a document.
_SCRIPT = """
(root => {
  const nodes = {};
  root.querySelectorAll('[data-node]').forEach(n => { nodes[n.dataset.node] = n; });
  const line = (edge, origin) => {
    const d = edge.dataset, from = nodes[d.from].getBoundingClientRect(),
      to = nodes[d.to].getBoundingClientRect();
    const x = from.left + from.width * d.out - origin.left, y = from.bottom - origin.top,
      u = to.left + to.width * d.in - origin.left, v = to.top - origin.top,
      bend = Math.max(14, (v - y) / 2);
    edge.querySelector('path').setAttribute(
      'd', `M${x} ${y}C${x} ${y + bend} ${u} ${v - bend} ${u} ${v}`);
    const text = edge.querySelector('text');
    if (text) { text.setAttribute('x', x + 4); text.setAttribute('y', y + 13); }
  };
  const draw = () => root.querySelectorAll('.program').forEach(program => {
    const origin = program.getBoundingClientRect();
    if (origin.width) {
      program.querySelectorAll(':scope > .edges > .edge').forEach(edge => line(edge, origin));
    }
  });
  root.classList.add('live');
  root.addEventListener('toggle', draw, true);
  root.addEventListener('mouseover', event => {
    const node = event.target.closest('.node'), number = node ? node.dataset.node : '';
    root.querySelectorAll('.edge').forEach(edge => edge.classList.toggle(
      'lit', [edge.dataset.from, edge.dataset.to].includes(number)));
  });
  new ResizeObserver(draw).observe(root);
  draw();
})(document.currentScript.parentElement);
"""
