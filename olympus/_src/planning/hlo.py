"""The text of a compiled program: memory over its run, products, bytes moved, exchanges.

XLA prints an optimised program in the order in which it runs. Sizes are bytes in a device's main
memory, with the padding of its tiles; arrays in a TPU's small memories count as nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np

from ..base.util import memoize

COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute",
               "collective-broadcast", "ragged-all-to-all")
Place: TypeAlias = tuple[str, int, str]       # file, line, function
Groups: TypeAlias = Sequence[Sequence[int]]

_HEAD = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\{$")
_INSTRUCTION = re.compile(r"^\s+(ROOT )?%?([\w.\-]+) = ")
_ARRAY = re.compile(r"([a-z]\w*)\[([^\]]*)\](?:\{([^}]*)\})?")
_NAME = re.compile(r"%([\w.\-]+)")
_CALLED = re.compile(r"(calls|body|condition|to_apply|branch_computations|true_computation|"
                     r"false_computation|called_computations)=(\{[^}]*\}|%?[\w.\-]+)")
_TRIPS = re.compile(r'known_trip_count\D+(\d+)')
_ALIASED = re.compile(r"\{([\d, ]*)\}: \((\d+), \{([\d, ]*)\}")
_IOTA = re.compile(r"replica_groups=\[(\d+,\d+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_MESH = re.compile(r"replica_groups=mesh\[([^\]]*)\](?:, device_ids="
                   r"\(\[([\d,]+)\](?:T\(([\d,]+)\))?"
                   r"\))? \{([^}]*)\}")
# Calls of a TPU's programs that move nothing.
_UNMOVED = re.compile(r'custom_call_target="(AllocateBuffer|AssumeGatherIndicesInBound|'
                      r'ConcatBitcast)"')
_BITS = re.compile(r"\d+")
# Instructions whose result is an operand, or parts of one.
_SAME = {"bitcast", "get-tuple-element", "tuple", "while", "optimization-barrier", "opt-barrier",
         "domain"}
_FREE = _SAME | {"parameter", "constant", "partition-id", "replica-id", "after-all", "iota"}
_SLICES = ("dynamic-slice", "slice", "gather")
# Instructions whose every part may need all of the operands.
_WHOLE = {"broadcast", "call", "conditional", "convolution", "custom-call", "dot", "fusion", "map",
          "reduce-window", "scatter", "select-and-scatter", "sort", "tuple", "while"}


class Array(NamedTuple):
    """An array of a program: its dtype, shape, bytes of its elements, and bytes in main memory."""

    dtype: str
    shape: tuple[int, ...]
    data: int
    held: int


Type: TypeAlias = Array | tuple["Type", ...]


class Collective(NamedTuple):
    """An exchange between devices.

    Attributes:
      kind: one of `COLLECTIVES`.
      data: bytes of its operands on one device.
      groups: the devices, by their place in the mesh, that exchange with one another; empty: all.
      times: how often it runs.
      place: the user's line.
    """

    kind: str
    data: int
    groups: Groups
    times: int
    place: Place | None


class PeakMemory(NamedTuple):
    """Memory that is held at the peak: bytes, purpose, and the user's line."""

    bytes: int
    what: str
    place: Place | None


class Program(NamedTuple):
    """The instructions of a program and of those it calls, by name, and the one that is run."""

    computations: Mapping[str, Sequence[Instruction]]
    entry: str
    donated: Mapping[int, int]      # of results, by the numbers of their leaves: the argument


class Instruction(NamedTuple):
    name: str
    opcode: str
    type: Type
    operands: Sequence[str]
    attributes: str
    place: Place | None
    root: bool
    number: int     # of a parameter


class Reading(NamedTuple):
    """The figures of a program on one device.

    Attributes:
      arguments: bytes of each, by its name.
      constants: bytes of constants.
      over_time: bytes in memory at each instruction, and the instruction's line.
      peak: the arrays that are held where most memory is, the largest first, without arguments.
      products: floating-point operations of products and convolutions, by the operands' dtype.
      bytes: that pass between the main memory and the cores.
      collectives: in the order in which they run.
      unknown_loops: whether there are loops of unknown length, which count once.
    """

    arguments: Mapping[str, int]
    over_time: Sequence[tuple[int, Place | None]]
    peak: Sequence[PeakMemory]
    products: Mapping[str, float]
    bytes: float
    collectives: Sequence[Collective]
    unknown_loops: bool


# Text --------------------------------------------------------------------------------------------

def _parsed(text: str) -> Program:
    places = _places(text)
    computations: dict[str, list[Instruction]] = {}
    entry, into = "", None
    for line in text.splitlines():
        if into is None:
            head = _HEAD.match(line)
            if head is not None:
                into = computations[head[2]] = []
                entry = head[2] if head[1] else entry
        elif line.startswith("}"):
            into = None
        else:
            instruction = _instruction(line, places)
            if instruction is not None:
                into.append(instruction)
    head, _, _ = text.partition("\n")
    donated = head.partition("input_output_alias={")[2].partition("}, entry")[0]
    return Program(computations, entry, {
        _last(result): int(argument) for result, argument, _ in _ALIASED.findall(donated)})


def _last(index: str) -> int:
    numbers = _numbers(index)
    return numbers[-1] if numbers else 0


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in text.replace(" ", "").split(",") if n)


def _instruction(line: str, places: Mapping[str, Place]) -> Instruction | None:
    match = _INSTRUCTION.match(line)
    if match is None:
        return None
    start = match.end()
    end = _closing(line, start) if line[start] == "(" else line.find(" ", start)
    opening = line.find("(", end)
    if opening < 0:
        return None
    closing = _closing(line, opening)
    attributes = line[closing:]
    return Instruction(match[2], line[end:opening].strip(), _type(line[start:end]),
                       _NAME.findall(line, opening, closing), attributes,
                       _place(attributes, places), bool(match[1]),
                       int(line[opening + 1:closing - 1]) if " parameter(" in line else -1)


def _closing(line: str, start: int) -> int:
    """The place behind the parenthesis that closes the one at `start`."""
    depth, at = 0, start
    while at < len(line):
        opened, closed = line.find("(", at), line.find(")", at)
        if closed < 0:
            break
        if 0 <= opened < closed:
            depth, at = depth + 1, opened + 1
        else:
            depth, at = depth - 1, closed + 1
            if not depth:
                return at
    return len(line)


def _places(text: str) -> dict[str, Place]:
    """The user's lines by the numbers of stack frames, which a program lists at its head."""
    tables: dict[str, dict[str, str]] = {}
    table: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith(("ENTRY", "%")):
            break
        if line in ("FileNames", "FunctionNames", "FileLocations", "StackFrames"):
            table = tables[line] = {}
        elif line[:1].isdigit():
            number, _, rest = line.partition(" ")
            table[number] = rest
    def field(row: str, name: str) -> str:
        return row.partition(f"{name}=")[2].partition(" ")[0].rstrip("}")

    files, functions, locations = (tables.get(name, {}) for name in (
        "FileNames", "FunctionNames", "FileLocations"))
    by_number = {}
    for number, row in tables.get("StackFrames", {}).items():
        where = locations.get(field(row, "file_location_id"), "")
        file = files.get(field(where, "file_name_id"), "").strip('"')
        if file:
            by_number[number] = (file, int(field(where, "line") or 0),
                                 functions.get(field(where, "function_name_id"), "").strip('"'))
    return by_number


def _place(attributes: str, places: Mapping[str, Place]) -> Place | None:
    _, _, metadata = attributes.partition("metadata={")
    number = re.search(r"stack_frame_id=(\d+)", metadata)
    if number is not None:
        return places.get(number[1])
    file = re.search(r'source_file="([^"]*)"', metadata)
    line = re.search(r"source_line=(\d+)", metadata)
    return None if file is None or line is None else (file[1], int(line[1]), "")


@memoize(4096)
def _type(text: str) -> Type:
    # Without comments. The parentheses of tiles stand inside braces, where they close nothing.
    words = re.findall(r"[()]|[a-z]\w*\[[^\]]*\](?:\{[^}]*\})?", re.sub(r"/\*.*?\*/", "", text))
    return _types(iter(words))


def _types(words: Iterator[str]) -> Type:
    for word in words:
        if word == "(":
            return tuple(_until_closed(words))
        match = _ARRAY.fullmatch(word)
        if match is not None:
            return _array(match[1], match[2], match[3] or "")
    return ()


def _until_closed(words: Iterator[str]) -> Iterator[Type]:
    for word in words:
        if word == ")":
            return
        if word == "(":
            yield tuple(_until_closed(words))
        else:
            yield _types(iter([word]))


def _array(dtype: str, sizes: str, layout: str) -> Array:
    if dtype in ("token", "opaque"):
        return Array(dtype, (), 0, 0)
    shape = _numbers(sizes.replace("<=", ""))
    order, _, tiles = layout.partition(":")
    bits = _bits(dtype)
    data = -(-prod(shape) * bits // 8)
    if re.search(r"S\([1-9]\d*\)", tiles):      # another memory: a cache, semaphores, the host's
        return Array(dtype, shape, data, 0)
    tile = re.match(r"T\(([\d,]+)\)", tiles)
    if tile is None:
        return Array(dtype, shape, data, data)
    sized = re.search(r"E\((\d+)\)", tiles)
    padded = [shape[axis] for axis in _numbers(order)] or [1]
    wanted = _numbers(tile[1])[::-1]
    padded += [1] * (len(wanted) - len(padded))
    for n, multiple in enumerate(wanted):
        padded[n] = -(-padded[n] // multiple) * multiple
    return Array(dtype, shape, data, -(-prod(padded) * (int(sized[1]) if sized else bits) // 8))


def _bits(dtype: str) -> int:
    if dtype == "pred":
        return 8
    match = _BITS.search(dtype)
    return int(match[0]) if match else 8


# Walking -----------------------------------------------------------------------------------------

def _leaves(type_: Type) -> list[Array]:
    return [type_] if isinstance(type_, Array) else [x for part in type_ for x in _leaves(part)]


def _called(instruction: Instruction) -> dict[str, list[str]]:
    """The computations that an instruction names, by their part in it."""
    if "=%" not in instruction.attributes and "={%" not in instruction.attributes:
        return {}
    return {part: _NAME.findall(names if "%" in names else f"%{names}")
            for part, names in _CALLED.findall(instruction.attributes)}


class _Buffer:
    """A piece of memory: its bytes, the first and last instruction that need it, and its owner.
    """

    __slots__ = ("bytes", "first", "last", "of")

    def __init__(self, size: int, first: int, of: Instruction | None) -> None:
        self.bytes, self.first, self.last, self.of = size, first, first, of


Value: TypeAlias = _Buffer | tuple["Value", ...]


def _buffers(value: Value) -> list[_Buffer]:
    return [value] if isinstance(value, _Buffer) else [x for part in value for x in _buffers(part)]


class _Profile(NamedTuple):
    """Memory over a computation beside its caller's, and the arrays that are held at the peak."""

    over_time: Sequence[tuple[int, Place | None]]
    peak: Sequence[PeakMemory]
    most: int


class _Update(NamedTuple):
    """The number of a fusion's parameter, and the operations that write slices into it."""

    parameter: int
    slices: Sequence[Instruction]


class _Work(NamedTuple):
    """The figures of one run of a computation."""

    products: Mapping[str, float]
    bytes: float
    collectives: Sequence[Collective]


class _Reader:
    """Walks through a program; each computation is looked at once."""

    def __init__(self, program: Program, lengths: Mapping[tuple[str, int], int]) -> None:
        self.program, self.lengths = program, lengths
        self.profiles: dict[str, _Profile] = {}
        self.works: dict[tuple[str, bool], _Work] = {}
        self.channels: set[str] = set()
        self.unknown = False

    # Memory

    def profile(self, name: str) -> _Profile:
        profile = self.profiles.get(name)
        if profile is None:
            profile = self.profiles[name] = self.made_profile(name)
        return profile

    def made_profile(self, name: str) -> _Profile:
        instructions = self.program.computations[name]
        values: dict[str, Value] = {}
        made: list[_Buffer] = []
        parameters: dict[int, list[_Buffer]] = {}

        def new(type_: Type, at: int, of: Instruction | None, free: bool = False) -> Value:
            if isinstance(type_, Array):
                buffer = _Buffer(0 if free else type_.held, at, of)
                made.append(buffer)
                return buffer
            return tuple(new(part, at, of, free) for part in type_)

        root: Value = ()
        for at, instruction in enumerate(instructions):
            operands = [values.get(operand, ()) for operand in instruction.operands]
            for operand in operands:
                for buffer in _buffers(operand):
                    buffer.last = at
            if instruction.opcode == "parameter":
                value = new(instruction.type, 0, instruction, True)
                parameters[instruction.number] = _buffers(value)
            elif instruction.opcode == "constant":
                value = new(instruction.type, 0, instruction, True)
            else:
                value = self.result(instruction, operands, partial(new, at=at, of=instruction))
            values[instruction.name] = value
            if instruction.root:
                root = value
        self.end(name, len(instructions), root,
                 [b for n in sorted(parameters) for b in parameters[n]])
        return self.swept(instructions, made)

    def result(self, instruction: Instruction, operands: Sequence[Value], new: Callable) -> Value:
        """The memory of a result: an operand's, or new."""
        opcode, type_ = instruction.opcode, instruction.type
        first = operands[0] if operands else ()
        if opcode == "tuple":
            return tuple(operands)
        if opcode == "get-tuple-element":
            index = re.search(r"index=(\d+)", instruction.attributes)
            at = int(index[1]) if index else 0
            return first[at] if isinstance(first, tuple) and at < len(first) else new(type_)
        if opcode in _SAME or opcode in ("dynamic-update-slice", "scatter"):
            return first if opcode != "scatter" or isinstance(type_, Array) else new(type_)
        if opcode.endswith("-done"):
            if opcode == "all-reduce-done" or not isinstance(first, tuple):
                return first
            return first[0 if opcode == "copy-done" else min(1, len(first) - 1)]
        if opcode.endswith("-start") and isinstance(type_, tuple) and opcode != "all-reduce-start":
            # The operand and the result, which a copy has in the other order, and flags.
            copied = 1 if opcode == "copy-start" else 0
            whole = tuple(operands) if isinstance(type_[copied], tuple) else first
            return tuple(whole if n == copied else new(part) for n, part in enumerate(type_))
        aliases = self.aliases(instruction)
        if isinstance(type_, Array):
            where = aliases.get(())
            return new(type_) if where is None else _part(operands, where) or new(type_)
        return tuple(_part(operands, aliases[n,]) or new(part) if (n,) in aliases else new(part)
                     for n, part in enumerate(type_))

    def aliases(self, instruction: Instruction) -> dict[tuple[int, ...], tuple[int, ...]]:
        """By the path of a part of a result, the operand's number and the path of its part."""
        _, _, said = instruction.attributes.partition("output_to_operand_aliasing={")
        by_path = {_numbers(result): (int(operand), *_numbers(part))
                   for result, operand, part in _ALIASED.findall(said.partition("}), ")[0] + "})")}
        for body in _called(instruction).get("calls", ()) if instruction.opcode == "fusion" else ():
            for path, update in self.updates(body).items():
                by_path.setdefault(path, (update.parameter,))
        return by_path

    def updates(self, body: str) -> dict[tuple[int, ...], _Update]:
        """The parameters into which a fusion writes slices in place, by the paths of results."""
        by_name = {i.name: i for i in self.program.computations.get(body, ())}
        root = next((i for i in by_name.values() if i.root), None)
        by_path: dict[tuple[int, ...], _Update] = {}
        if root is None:
            return by_path
        parts = {(n,): by_name.get(name) for n, name in enumerate(root.operands)}
        for path, at in parts.items() if root.opcode == "tuple" else [((), root)]:
            slices = []
            while at is not None and at.opcode in ("dynamic-update-slice", "bitcast", "copy"):
                slices += [at] if at.opcode == "dynamic-update-slice" else []
                at = by_name.get(at.operands[0]) if at.operands else None
            if at is not None and at.opcode == "parameter" and slices:
                by_path[path] = _Update(at.number, slices)
        return by_path

    def end(self, name: str, last: int, root: Value, parameters: Sequence[_Buffer]) -> None:
        """Let results live to the end, in the memory of arguments whose place they take."""
        outs = _buffers(root)
        entry = name == self.program.entry
        for n, buffer in enumerate(outs):
            buffer.last = last
            donor = self.program.donated.get(n) if entry else n
            if donor is not None and donor < len(parameters) and buffer not in parameters:
                if parameters[donor].last <= buffer.first:
                    buffer.bytes = 0

    def swept(self, instructions: Sequence[Instruction], made: Sequence[_Buffer]) -> _Profile:
        starts: dict[int, int] = {}
        for buffer in made:
            if buffer.bytes:
                starts[buffer.first] = starts.get(buffer.first, 0) + buffer.bytes
                starts[buffer.last + 1] = starts.get(buffer.last + 1, 0) - buffer.bytes
        live, most, peak_at, inner = 0, 0, 0, None
        over_time: list[tuple[int, Place | None]] = []
        for at, instruction in enumerate(instructions):
            live += starts.get(at, 0)
            if instruction.opcode in _FREE and instruction.opcode != "while":
                continue
            over_time.append((live, instruction.place))
            if live > most:
                most, peak_at, inner = live, at, None
            for name in self.run(instruction):
                part = self.profile(name)
                over_time += [(live + size, place or instruction.place)
                              for size, place in part.over_time]
                if live + part.most > most:
                    most, peak_at, inner = live + part.most, at, part
        peak = [PeakMemory(b.bytes, "" if b.of is None else b.of.opcode, b.of and b.of.place)
                for b in made if b.bytes and b.first <= peak_at <= b.last]
        return _Profile(over_time, [*peak, *(inner.peak if inner else ())], most)

    def run(self, instruction: Instruction) -> list[str]:
        """The computations that an instruction runs with memory of their own."""
        if instruction.opcode not in ("while", "call", "conditional", "async-start"):
            return []
        return [name for names in _called(instruction).values() for name in names
                if name in self.program.computations]

    # Work

    def work(self, name: str, fused: bool = False) -> _Work:
        work = self.works.get((name, fused))
        if work is None:
            work = self.works[name, fused] = self.made_work(name, fused)
        return work

    def made_work(self, name: str, fused: bool) -> _Work:
        instructions = self.program.computations.get(name, ())
        types = {i.name: i.type for i in instructions}
        products: dict[str, float] = {}
        moved, collectives = 0.0, []
        for instruction in instructions:
            dtype, flops = _product(instruction, types)
            if flops:
                products[dtype] = products.get(dtype, 0.0) + flops
            kind = instruction.opcode.removesuffix("-start")
            if kind in COLLECTIVES:
                collectives += self.collective(kind, instruction, types, name, fused)
            moved += 0 if fused else self.traffic(instruction, types)
            times = self.times(instruction)
            for body, inside in self.bodies(instruction):
                part = self.work(body, inside)
                for key, flops in part.products.items():
                    products[key] = products.get(key, 0.0) + times * flops
                moved += 0 if fused else times * part.bytes
                collectives += [c._replace(times=c.times * times, place=c.place or
                                           instruction.place) for c in part.collectives]
        return _Work(products, moved, collectives)

    def bodies(self, instruction: Instruction) -> list[tuple[str, bool]]:
        called = _called(instruction)
        if instruction.opcode == "fusion":
            return [(name, True) for name in called.get("calls", ())]
        if instruction.opcode == "conditional":     # the most expensive branch
            names = [name for part in called.values() for name in part]
            return [(max(names, key=lambda n: self.work(n).bytes), False)] if names else []
        if instruction.opcode in ("while", "call", "async-start"):
            return [(name, False) for name in self.run(instruction)]
        return []

    def times(self, instruction: Instruction) -> int:
        """How often a loop runs; 1 for any other instruction."""
        if instruction.opcode != "while":
            return 1
        said = _TRIPS.search(instruction.attributes)
        if said is not None:
            return int(said[1])
        length = self.lengths.get(instruction.place[:2]) if instruction.place else None
        self.unknown |= length is None
        return length or 1

    def collective(self, kind: str, instruction: Instruction, types: Mapping[str, Type],
                   inside: str, fused: bool) -> list[Collective]:
        channel = re.search(r"channel_id=(\d+)", instruction.attributes)
        if fused and channel is not None:
            # One that runs beside others is in the fusion that starts it and in those after it.
            if channel[1] in self.channels:
                return []
            self.channels.add(channel[1])
        if fused and inside.startswith("all-reduce-scatter"):
            kind = "reduce-scatter"
        data = sum(x.data for name in instruction.operands for x in _leaves(types.get(name, ())))
        return [Collective(kind, data, _groups(instruction.attributes), 1, instruction.place)]

    def traffic(self, instruction: Instruction, types: Mapping[str, Type]) -> float:
        """The bytes that an instruction reads from and writes to the main memory."""
        opcode = instruction.opcode
        if opcode in _FREE or opcode.endswith("-done") or opcode in (
                "call", "conditional", "async-start"):
            return 0.0
        if opcode == "custom-call" and _UNMOVED.search(instruction.attributes):
            return 0.0
        sizes = [sum(x.held for x in _leaves(types.get(name, ())))
                 for name in instruction.operands]
        result = _leaves(instruction.type)
        if opcode == "copy-start" or opcode == "slice-start":
            out = result[0 if opcode == "copy-start" else -2].held
            return out + (sizes[0] if opcode == "copy-start" else result[-2].data)
        written = sum(x.held for x in result)
        if opcode in _SLICES:
            return 2.0 * written + sum(sizes[1:])
        if opcode == "dynamic-update-slice":
            return 2.0 * sum(sizes[1:2])
        if opcode == "fusion":
            for body in _called(instruction).get("calls", ()):
                reads, updates = self.reads(body)
                sizes = [min(size, reads.get(n, size)) for n, size in enumerate(sizes)]
                written = sum(min(x.held, updates.get(n, x.held)) for n, x in enumerate(result))
        return float(sum(sizes) + written)

    def reads(self, body: str) -> tuple[dict[int, int], dict[int, int]]:
        """The bytes that a fusion reads of parameters of which it needs a part only, by their
        numbers; and the bytes that it writes of results of which it writes slices, by theirs.

        A slice needs a part of its operand; so does an elementwise operation if only a part of its
        result is needed.
        """
        instructions = self.program.computations.get(body, ())
        sizes = {i.name: sum(x.data for x in _leaves(i.type)) for i in instructions}
        updates = self.updates(body)
        in_place = {i.name for update in updates.values() for i in update.slices}
        # The part of each result that all slices need together, and the part for other uses.
        sliced: dict[str, float] = {}
        direct: dict[str, float] = {}
        reads: dict[int, int] = {}
        for i in reversed(instructions):
            share = 1.0 if i.root else min(1.0, sliced.get(i.name, 0.0) + direct.get(i.name, 0.0))
            if i.opcode == "parameter" and share < 1.0:
                reads[i.number] = int(share * sizes[i.name])
            for at, operand in enumerate(i.operands):
                if at == 0 and i.opcode in _SLICES:
                    part = share * sizes[i.name] / max(sizes.get(operand, 0), 1)
                    sliced[operand] = sliced.get(operand, 0.0) + part
                elif at or i.name not in in_place:
                    part = share if i.opcode not in _WHOLE else 1.0
                    direct[operand] = max(direct.get(operand, 0.0), part)
        return reads, {path[0] if path else 0: sum(sizes.get(i.operands[1], 0)
                                                   for i in update.slices)
                       for path, update in updates.items()}


def _part(operands: Sequence[Value], path: Sequence[int]) -> Value | None:
    value: Value = tuple(operands)
    for n in path:
        if not isinstance(value, tuple) or n >= len(value):
            return None
        value = value[n]
    return value


def _product(instruction: Instruction, types: Mapping[str, Type]) -> tuple[str, float]:
    """The dtype of the operands and the operations of a product or convolution; 0 of others."""
    opcode, text = instruction.opcode, instruction.attributes
    gemm, conv = "__cublas$" in text, "__cudnn$conv" in text
    if opcode not in ("dot", "convolution") and not (opcode == "custom-call" and (gemm or conv)):
        return "", 0.0
    operands = [_leaves(types.get(name, ())) for name in instruction.operands[:2]]
    if len(operands) < 2 or not (operands[0] and operands[1]):
        return "", 0.0
    (left, *_), (right, *_) = operands
    out = _leaves(instruction.type)[0]
    if opcode == "dot" or gemm:
        said = re.search(r'lhs_contracting_dim(?:s=|ensions"?:)[{\[]([^}\]]*)', text)
        axes = _numbers(said[1].replace('"', "")) if said else ()
        return left.dtype, 2.0 * prod(out.shape) * prod(left.shape[a] for a in axes)
    labels = re.search(r"dim_labels=(\w+)_(\w+)->(\w+)", text)
    if labels is None:
        return "", 0.0
    kernel, result = right, out
    if "BackwardInput" in text:     # cuDNN's, written as the convolution that they belong to
        left, result = out, left
    elif "BackwardFilter" in text:
        kernel, result = out, right
    return left.dtype, _convolution(left, kernel, result, labels, text)


def _convolution(image: Array, kernel: Array, result: Array, labels: re.Match[str], text: str
                 ) -> float:
    """Operations on numbers, not on padding: a TPU's products have much of it, since batches are
    written as windows.
    """
    window = text.partition("window={")[2].partition("}")[0]
    fields = {name: value.split("x") for name, value in re.findall(r"(\w+)=([\d_x\-]+)", window)}
    pairs = 1.0
    for axis in range(len(labels[1]) - 2):
        def size(array: Array, of: str, at: str = str(axis)) -> int:
            return array.shape[of.index(at)]

        def field(name: str, otherwise: str, at: int = axis) -> str:
            return fields[name][at] if at < len(fields.get(name, ())) else otherwise

        # In windows that are reversed, pairs are as many.
        pairs *= _pairs(size(image, labels[1]), size(kernel, labels[2]), size(result, labels[3]),
                        int(field("stride", "1")), int(field("pad", "0_0").split("_")[0]),
                        int(field("lhs_dilate", "1")), int(field("rhs_dilate", "1")))
    plain = (result.shape[labels[3].index("b")] * result.shape[labels[3].index("f")]
             * kernel.shape[labels[2].index("i")])
    return 2.0 * plain * pairs


@memoize(1024)
def _pairs(image: int, kernel: int, result: int, stride: int, pad: int, holes: int, spread: int
           ) -> int:
    """How many pairs (place of the result, place of the kernel) meet the image, along one axis."""
    meet = np.arange(kernel, dtype=np.int64) * spread - pad
    if holes == 1:
        first = np.maximum(-(meet // stride), 0)
        last = np.minimum((image - 1 - meet) // stride, result - 1)
        return int(np.maximum(last - first + 1, 0).sum())
    whole = (image - 1) * holes
    count = 0
    for at in range(result):
        positions = meet + at * stride
        count += int(((positions >= 0) & (positions <= whole) & (positions % holes == 0)).sum())
    return count


def _groups(text: str) -> Groups:
    """The devices that exchange with one another, as a collective names them."""
    match = _IOTA.search(text)
    if match is not None:
        return _order(match[2], match[3]).reshape(_numbers(match[1])).tolist()
    match = _MESH.search(text)
    if match is not None:
        sizes = {name: int(size) for name, size in re.findall(r"'(\w+)'=(\d+)", match[1])}
        order = _order(match[2], match[3]) if match[2] else np.arange(prod(sizes.values()))
        return _along(order.reshape(tuple(sizes.values())), list(sizes), match[4])
    said = re.search(r"(?:replica_groups|source_target_pairs)=\{((?:\{[\d,]*\},?)*)\}", text)
    return [_numbers(group) for group in re.findall(r"\{([\d,]+)\}", said[1] if said else "")]


def _order(sizes: str, axes: str | None) -> np.ndarray:
    """The numbers of devices, in an order that a reshape and a transposition say."""
    ids = np.arange(prod(_numbers(sizes))).reshape(_numbers(sizes))
    return ids.transpose(_numbers(axes)) if axes else ids


def _along(ids: np.ndarray, names: Sequence[str], axes: str) -> Groups:
    """The groups along axes, or parts of axes 'name':(before)size, of devices on a mesh."""
    sizes, along = [], []
    for name, whole in zip(names, ids.shape, strict=True):
        part = re.search(rf"'{name}'(?::\((\d+)\)(\d+))?", axes)
        before, middle = (1, whole) if part is None or part[1] is None else (
            int(part[1]), int(part[2]))
        along += [len(sizes) + 1] if part is not None else []
        sizes += [before, middle, int(whole / before / middle)]
    rest = [n for n in range(len(sizes)) if n not in along]
    count = prod(sizes[n] for n in along)
    return ids.reshape(sizes).transpose(*rest, *along).reshape(-1, count).tolist()


def read(text: str, lengths: Mapping[tuple[str, int], int] | None = None) -> Reading:
    """The figures of a compiled program on one device.

    Args:
      text: the optimised program, as `Compiled.as_text` gives it.
      lengths: by file and line, the lengths of loops, for those without a length in the text.
    """
    program = _parsed(text)
    if not program.entry:
        return Reading({}, [], [], {}, 0.0, [], False)
    reader = _Reader(program, lengths or {})
    profile, work = reader.profile(program.entry), reader.work(program.entry)
    arguments = {}
    for i in program.computations[program.entry]:
        if i.opcode == "parameter":
            said = re.search(r'op_name="([^"]*)"', i.attributes)
            arguments[said[1] if said else i.name] = sum(x.held for x in _leaves(i.type))
    base = sum(arguments.values())
    return Reading(arguments, [(base + size, place) for size, place in profile.over_time],
                   sorted(profile.peak, key=lambda held: -held.bytes), work.products, work.bytes,
                   work.collectives, reader.unknown)
