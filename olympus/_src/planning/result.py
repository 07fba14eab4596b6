"""The contents of a plan: figures of one device, as text, JSON and HTML."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from ..base import source
from ..base.util import binary_size, lazy_imports, short_number
from .hlo import Place

with lazy_imports(__name__):
    from . import picture as _picture

Json: TypeAlias = str | float | bool | None | list["Json"] | dict[str, "Json"]
_MOST = 6       # rows of a table in the text
SUFFIXES = (".html", ".json", ".txt")       # of files for reports


@dataclasses.dataclass(frozen=True, kw_only=True)
class MemoryPlan:
    """The memory of one device, in bytes, with the padding of its tiles.

    Attributes:
      arguments: of the program's arguments.
      results: of its results, without those in the place of donated arguments.
      donated: bytes that results take over from arguments.
      temporaries: bytes of intermediate values at the peak.
      code: bytes of the program itself, where the compiler reports it.
      available: bytes for a program on the device; 0 where the size is not known.

    >>> import olympus
    >>> olympus.debug.MemoryPlan(arguments=8, results=4, temporaries=2, available=10).fits
    False
    """

    arguments: int = 0
    results: int = 0
    donated: int = 0
    temporaries: int = 0
    code: int = 0
    available: int = 0

    @property
    def total(self) -> int:
        """The bytes that the program takes at its peak."""
        return self.arguments + self.results + self.temporaries + self.code

    @property
    def fits(self) -> bool:
        """Whether the device has that much memory."""
        return not self.available or self.total <= self.available


@dataclasses.dataclass(frozen=True, kw_only=True)
class ArgumentMemory:
    """An argument: its name, type, specification, and bytes on one device with padding and without.

    >>> import olympus
    >>> olympus.debug.ArgumentMemory(name="x", type="f32[8]", spec="P()", bytes=512, data=32).name
    'x'
    """

    name: str
    type: str
    spec: str
    bytes: int
    data: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class LineMemory:
    """The memory that one line holds at the peak.

    >>> import olympus
    >>> olympus.debug.LineMemory(line="f.py:1 (f)", text="x @ w", bytes=512, arrays=1).arrays
    1
    """

    line: str
    text: str
    bytes: int
    arrays: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Exchange:
    """Collectives of one kind over the same axes.

    Attributes:
      kind: "all-reduce", "all-gather", …
      axes: of the mesh.
      link: "ICI", "NVLink", "PCIe" or "network".
      count: how many run.
      bytes: that one device sends in all of them.
      line: the one that sends most.

    >>> import olympus
    >>> olympus.debug.Exchange(kind="all-gather", axes="data", link="ICI", count=2, bytes=64,
    ...                        line="f.py:1 (f)").count
    2
    """

    kind: str
    axes: str
    link: str
    count: int
    bytes: float
    line: str


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Plan:
    """The memory and time of a program on devices that need not be here, from `olympus.debug.plan`.

    Printed, it is a report; `to_json` and `to_html` give it in other forms, and notebooks show it.
    All figures describe one device.

    Attributes:
      function: its name.
      target: the devices, as "v5e:2x2".
      device: their kind.
      devices: how many the program runs on, and `given` how many the target has.
      mesh: the axes with their sizes; empty for one device.
      memory: a `MemoryPlan`.
      flops: floating-point operations of products and convolutions, by the operands' dtype.
      other_flops: of all else, an even share of the whole program's.
      bytes: that pass between the main memory and the cores.
      exchanges: collectives, those that send most first.
      seconds: the least time of each part at the device's peaks: "compute", "memory", "links";
        empty where peaks are not known.
      arguments: the largest first.
      lines: what holds most memory at the peak, without arguments.
      over_time: bytes in memory over the program, and the line of each instruction.
      advice: sentences on donating, sharding and computing again.
      notes: sentences on parts that the figures leave out.
      compile_seconds: of tracing, lowering and compiling.

    >>> import olympus
    >>> plan = olympus.debug.Plan(function="f", target="v5e:2x2", device="TPU v5 lite", devices=4,
    ...                           given=4, seconds={"compute": 1e-3, "memory": 2e-3})
    >>> plan
    Plan(f on 4 x TPU v5 lite: 0 B, at least 2 ms, bound by memory)
    """

    function: str
    target: str
    device: str
    devices: int
    given: int
    mesh: Mapping[str, int] = dataclasses.field(default_factory=dict)
    memory: MemoryPlan = MemoryPlan()
    flops: Mapping[str, float] = dataclasses.field(default_factory=dict)
    other_flops: float = 0.0
    bytes: float = 0.0
    exchanges: Sequence[Exchange] = ()
    seconds: Mapping[str, float] = dataclasses.field(default_factory=dict)
    arguments: Sequence[ArgumentMemory] = ()
    lines: Sequence[LineMemory] = ()
    over_time: Sequence[tuple[int, str]] = ()
    advice: Sequence[str] = ()
    notes: Sequence[str] = ()
    compile_seconds: float = 0.0

    @property
    def fits(self) -> bool:
        """Whether each device has the memory."""
        return self.memory.fits

    @property
    def bound(self) -> str:
        """The part that takes longest: "compute", "memory" or "links"; empty if not known."""
        return max(self.seconds, key=self.seconds.__getitem__, default="")

    @property
    def least_seconds(self) -> float:
        """The least time of a run, if all parts overlap; 0 if not known."""
        return max(self.seconds.values(), default=0.0)

    def __repr__(self) -> str:
        parts = [_of(self.memory)]
        if not self.fits:
            parts.append("does not fit")
        if self.seconds:
            parts += [f"at least {duration(self.least_seconds)}", f"bound by {self.bound}"]
        mesh = f" ({mesh_text(self.mesh)})" if self.mesh else ""
        return f"Plan({self.function} on {self.devices} x {self.device}{mesh}: {', '.join(parts)})"

    def __str__(self) -> str:
        memory = self.memory
        mesh = f", mesh {mesh_text(self.mesh)}" if self.mesh else ""
        lines = [f"{self.function} for {self.target}: {self.devices} x {self.device}{mesh}; "
                 f"compiled in {self.compile_seconds:.1f} s", "",
                 f"memory of a device: {_of(memory)}{'' if self.fits else ': DOES NOT FIT'}"]
        lines += [f"  {name:12}{binary_size(size):>10}" for name, size in (
            ("arguments", memory.arguments), ("results", memory.results),
            ("temporaries", memory.temporaries), ("code", memory.code)) if size]
        if memory.donated:
            lines.append(f"  results take the place of {binary_size(memory.donated)} of donated "
                         "arguments")
        lines += self._listed("arguments", [
            f"{binary_size(a.bytes):>10}  {a.name}: {a.type} {a.spec}".rstrip()
            for a in self.arguments])
        lines += self._listed("held at the peak", [
            f"{binary_size(row.bytes):>10}  {row.line} {row.text}".rstrip() for row in self.lines])
        lines += ["", f"work of a device: {self._work()}"]
        if self.seconds:
            parts = ", ".join(f"{name} {duration(s)}" for name, s in self.seconds.items() if s)
            lines.append(f"  at least {duration(self.least_seconds)}, bound by {self.bound} "
                         f"({parts})")
        lines += self._listed("exchanges", [
            f"{binary_size(e.bytes):>10}  {e.count} x {e.kind} over {e.axes} ({e.link}), most at "
            f"{e.line}" for e in self.exchanges])
        for title, texts in (("advice", self.advice), ("notes", self.notes)):
            lines += ["", f"{title}:", *[f"- {text}" for text in texts]] if texts else []
        return "\n".join(lines)

    def _work(self) -> str:
        products = ", ".join(f"{short_number(n, 'FLOP')} of products of {dtype}"
                             for dtype, n in self.flops.items())
        other = f"{short_number(self.other_flops, 'FLOP')} of other operations"
        return f"{products or 'no products'}, {other}; {binary_size(self.bytes)} of memory moved"

    @staticmethod
    def _listed(title: str, rows: Sequence[str]) -> list[str]:
        more = [f"  … {len(rows) - _MOST} more"] if len(rows) > _MOST else []
        return ["", f"{title}:", *[f"  {row}" for row in rows[:_MOST]], *more] if rows else []

    def to_json(self) -> str:
        """The figures as JSON: the attributes by name, with `fits`, `bound` and `least_seconds`."""
        fields: dict[str, Json] = dataclasses.asdict(self)
        memory = fields["memory"]
        assert isinstance(memory, dict)
        memory["total"] = self.memory.total
        return json.dumps({**fields, "fits": self.fits, "bound": self.bound,
                           "least_seconds": self.least_seconds}, indent=1)

    def to_html(self) -> str:
        """The report as a page with pictures of memory and of the mesh, which needs no other."""
        return _picture.page(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report to a file: JSON if its name ends with .json, HTML with .html or text."""
        _save(self, path)

    def _repr_html_(self) -> str:
        return _picture.body(self)


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Plans:
    """A program on all meshes of a target, the best first: the result of `plan(…, search=True)`.

    Meshes on which the program fits come first, those with the least bound on its time before
    others, and among those the ones that take less memory.

    Attributes:
      plans: a `Plan` for each mesh that the program compiles for.
      refused: for the other meshes, by their text, why.

    >>> import olympus
    >>> olympus.debug.Plans(plans=(), refused={"data=3": "9 is not divisible by 2"})
    Plans(0 meshes, 1 refused)
    """

    plans: Sequence[Plan]
    refused: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def best(self) -> Plan:
        """The first plan; ValueError where no mesh is possible."""
        if not self.plans:
            raise ValueError("Plans.best: no mesh is possible: " + "; ".join(
                f"{mesh}: {why}" for mesh, why in self.refused.items()))
        return self.plans[0]

    @property
    def fits(self) -> bool:
        """Whether there is a mesh on which the program fits."""
        return any(plan.fits for plan in self.plans)

    def __repr__(self) -> str:
        best = f", best {self.plans[0]!r}" if self.plans else ""
        refused = f", {len(self.refused)} refused" if self.refused else ""
        return f"Plans({len(self.plans)} meshes{best}{refused})"

    def __str__(self) -> str:
        rows = self.rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(x.ljust(w) for x, w in zip(row, widths, strict=True)).rstrip()
                 for row in rows]
        return "\n".join([*lines, *[f"{mesh}: {why}" for mesh, why in self.refused.items()],
                          *(["", str(self.plans[0])] if self.plans else [])])

    def rows(self) -> list[list[str]]:
        """The table of meshes, with its head."""
        head = ["mesh", "fits", "memory", "at least", "bound by", "compute", "moved", "sent"]
        return [head, *[[
            mesh_text(p.mesh), "yes" if p.fits else "no", binary_size(p.memory.total),
            duration(p.least_seconds), p.bound, short_number(sum(p.flops.values()), "FLOP"),
            binary_size(p.bytes), binary_size(sum(e.bytes for e in p.exchanges))]
            for p in self.plans]]

    def to_json(self) -> str:
        """The plans as JSON."""
        return json.dumps({"plans": [json.loads(p.to_json()) for p in self.plans],
                           "refused": dict(self.refused)}, indent=1)

    def to_html(self) -> str:
        """The table of meshes and the report of the best, as a page."""
        return _picture.page(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report to a file: JSON if its name ends with .json, HTML with .html or text."""
        _save(self, path)

    def _repr_html_(self) -> str:
        return _picture.body(self)


def _save(result: Plan | Plans, path: str | os.PathLike[str]) -> None:
    form = {".json": result.to_json, ".html": result.to_html}.get(Path(path).suffix,
                                                                  result.__str__)
    Path(path).write_text(form() + "\n", encoding="utf-8", errors="xmlcharrefreplace")


def _of(memory: MemoryPlan) -> str:
    available = f" of {binary_size(memory.available)}" if memory.available else ""
    return binary_size(memory.total) + available


def duration(seconds: float) -> str:
    """A time in three digits.

    >>> duration(0.00123)
    '1.23 ms'
    """
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds / 1e-9:.3g} ns" if seconds else "0 s"


def mesh_text(mesh: Mapping[str, int]) -> str:
    """A mesh as the command line takes it.

    >>> mesh_text({"data": 4, "model": 2})
    'data=4,model=2'
    """
    return ",".join(f"{name}={size}" for name, size in mesh.items())


def line_of(place: Place | None) -> str:
    """A line as reports show it."""
    if place is None:
        return "the compiler"
    file, line, function = place
    return f"{source.short_path(file)}:{line}" + (f" ({function})" if function else "")
