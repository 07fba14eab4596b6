"""What the compiler changes: generated programs under `jit` beside one operation at a time.

    PYTHONPATH=.:tools python tools/faithful.py --programs 2000 [--seed 0] [--report FILE]
    PYTHONPATH=.:tools python tools/faithful.py --pairs [--dtypes float32 …] [--share .1]
    PYTHONPATH=.:tools python tools/faithful.py --platform gpu

Each program is a chain of operations over arguments and constants whose values lie at the edges of
their type. Many of them are compiled as one module. A result is compared with bounds that contain
every order of rounding (tools/intervals.py), so cancellation, and a fused multiply-add that keeps
finite what overflows step by step, are no difference. The classes:

    finite-inf, finite-nan, finite-zero   a finite result became inf, NaN or (far from it) zero
    sign, far                             its sign, or more than 1 % of it, changed
    integer                               an integer or boolean that no rounding decides changed
    nan-lost, inf-lost                    NaN or inf became a number that no evaluation gives
    slightly                              outside of the bounds, by less than 1 %; listed apart
    zero-sign                             a zero that no rounding made has the other sign; apart
    rounding                              IEEE results of steps that nothing contracts differ; apart
    kept-finite                           inf or NaN by overflow stays finite; allowed
    eager                                 an operation alone is outside of its bounds; apart

Exits with 1 if one of FAULTS is not empty. Faults are shrunk to their least programs, which
`--report` prints with values. `--unfenced` shows what XLA does without Olympus's fences
(`lowering/fences.py`). Every fourth module is compiled as users' are; of the others LLVM optimises
less, which takes a quarter of the time (`--every`), unless a fault is found in one.
"""

from __future__ import annotations

import argparse
import collections
import functools
import itertools
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import intervals
import numpy as np
from chains import (
    ARRAYS, COMPLEX, DIVISIONS, FLOATS, INTS, OPERATIONS, WRAPPERS, Leaf, Operation, Program, Step,
    numbers,
)
from intervals import Value, Walk, format_of, is_float, is_inexact

import olympus
import olympus.numpy as onp
from olympus._src.lowering.context import ModuleContext

FAULTS = ("finite-inf", "finite-nan", "finite-zero", "sign", "far", "integer", "nan-lost",
          "inf-lost")
APART = ("zero-sign", "slightly", "rounding", "kept-finite", "eager")
MODULE = 60     # programs in one module


# Values

def edges(dtype: Any) -> list[Any]:
    """Numbers at the edges of a type, and ordinary ones."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return [False, True]
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        root = int(np.sqrt(float(info.max)))
        found = [0, 1, 2, 3, 7, 8, 10, info.max, info.max - 1, info.min, info.min + 1,
                 info.max // 2, info.max // 2 + 1, root, root + 1, root * 3 // 2 + 1,
                 *((-1, -2, -3, -8, -root - 2) if dtype.kind == "i" else ())]
        return [n for n in found if info.min <= n <= info.max]
    if dtype.kind == "c":
        part = edges(np.float32 if dtype.itemsize == 8 else np.float64)
        return [complex(p, q) for p, q in itertools.product(part[:17], part[:17])
                if np.isfinite(p) and np.isfinite(q)]
    of = format_of(dtype)
    most, tiny, eps = of.most, of.tiny, of.eps
    root = np.sqrt(most)
    return [1, -1, 3, .1, 300, -2.5, .5, 2, 0., -0., most, -most, most * (1 - eps), most / 2,
            most / 3, tiny, tiny * 3, root, root * 2, 1 / root, -root / 3, most ** .75,
            most ** -.75, 1 / eps, eps, 1 + eps, np.log(most) - .01, -np.log(most) - 1, tiny / 4,
            np.inf, -np.inf, np.nan]


def powers(dtype: Any) -> list[Any]:
    """Numbers, zero among them, whose products of two or three leave the format, or do not."""
    most = format_of(np.dtype(dtype)).most
    return [0, 1, 3, -.5, *(sign * most ** k for k in (.3, .45, .6, .75, .9, -.3, -.45, -.6, -.75,
                                                       -.9) for sign in (1, -1)), most / 2]


def draw(rng: np.random.Generator, dtype: Any, shape: Sequence[int] = (), special: bool = True,
         numbers: Callable[[Any], list[Any]] = edges) -> Any:
    """Random ones of such numbers; the last three edges of floating types are inf and NaN."""
    table = TABLES.get((dtype, numbers))
    if table is None:
        table = TABLES[dtype, numbers] = np.array(numbers(dtype)).astype(dtype)
    whole = special or numbers is powers or not is_float(np.dtype(dtype))
    return table[rng.integers(0, len(table) - (0 if whole else 3), shape)]


TABLES: dict[Any, Any] = {}


# Judging

class Difference(NamedTuple):
    """A class, and where: the flat index of the lane, with the two results there."""

    kind: str
    lane: int
    eager: Any
    compiled: Any


def judge(value: Value, got: Any) -> list[Difference]:
    """The differences of a compiled result from its bounds, one of each class."""
    x = np.asarray(value.x)
    got = np.asarray(got)
    if not value.parts:
        return first("integer", value.known & (x != got), x, got)
    found: list[Difference] = []
    of = format_of(x.dtype)
    for r, e, j in zip(value.parts, intervals.split(x), intervals.split(got), strict=True):
        nan = np.isnan(j)
        outside = np.where(nan, ~r.nan, r.must | (j < r.lo) | (j > r.hi))
        lost = (r.must | np.isnan(e)) & outside
        found += first("nan-lost", lost, x, got)
        rest = outside & ~lost
        found += first("inf-lost", rest & np.isinf(e), x, got)
        rest = rest & ~np.isinf(e)
        found += first("finite-nan", rest & nan, x, got)
        found += first("finite-inf", rest & np.isinf(j), x, got)
        rest = rest & np.isfinite(j)
        zero = rest & (j == 0)
        found += first("finite-zero", zero, x, got)
        sign = rest & ~zero & (e * j < 0)
        found += first("sign", sign, x, got)
        near = np.clip(j, r.lo, r.hi)
        far = rest & ~zero & ~sign & (abs(j - near) > .01 * abs(near))
        found += first("far", far, x, got)
        found += first("slightly", rest & ~zero & ~sign & ~far, x, got)
        zeros = (r.lo == 0) & (r.hi == 0) & ~r.nan & (j == 0)
        found += first("zero-sign", zeros & (np.signbit(e) != np.signbit(j)), x, got)
        found += first("kept-finite", ~outside & ~np.isfinite(e) & np.isfinite(j), x, got)
        if value.rounds < 3:
            differs = (e != j) & ~(nan & np.isnan(e)) & ~(abs(e - j) < of.tiny)
            found += first("rounding", ~outside & np.isfinite(e) & differs, x, got)
    kinds = set()
    return [d for d in found if not (d.kind in kinds or kinds.add(d.kind))]


def first(kind: str, where: Any, x: Any, got: Any) -> list[Difference]:
    if not where.any():
        return []
    lane = int(np.argmax(np.ravel(where)))
    return [Difference(kind, lane, x.reshape(-1)[lane], got.reshape(-1)[lane])]


def evaluate(program: Program) -> tuple[Value, Walk]:
    """One operation at a time, on the CPU."""
    with olympus.default_device(olympus.devices("cpu")[0]):
        closed = olympus.make_olympuspr(program.function())(*program.args)
        walk = Walk()
        value, = walk.closed(closed, *map(intervals.leaf, program.args))
        return value, walk


@functools.cache
def quick_options() -> dict[str, Any]:
    """XLA's passes as they are, and less of LLVM's: that takes a quarter of the time.

    Its older emitter, where it has one, has half as much for LLVM to do.
    """
    options = {"xla_backend_optimization_level": 0, "xla_cpu_parallel_codegen_split_count": 1}
    older = {**options, "xla_cpu_use_fusion_emitters": False}
    try:
        olympus.jit(lambda x: x, compiler_options=older)(0)
    except ValueError:
        return options
    return older


def compiled(programs: Sequence[Program], quick: bool = False) -> list[Any]:
    """The results of programs that are compiled as one module."""
    functions = [program.function() for program in programs]

    def together(args: Any) -> Any:
        return [f(*xs) for f, xs in zip(functions, args, strict=True)]

    jitted = olympus.jit(together, compiler_options=quick_options() if quick else None)
    return [np.asarray(x) for x in jitted([p.args for p in programs])]


# Making programs

def leaf_of(rng: np.random.Generator, kind: str, dtype: Any, shape: tuple[int, ...],
            divided: bool = False, numbers: Callable[[Any], list[Any]] = edges,
            computed: bool = False) -> Leaf:
    """A leaf; where it may be a divisor, a constant integer is neither 0 nor -1. One of four
    constant arrays is `computed` from another.
    """
    if not is_inexact(np.dtype(dtype)):
        numbers = edges
    if divided and kind != "arg" and not is_inexact(np.dtype(dtype)):
        value = draw(rng, dtype, shape if kind == "array" else ())
        value = np.where((value == 0) | (value == dtype.type(0) - dtype.type(1)), 5, value)
        value = np.asarray(value).astype(dtype)
        return Leaf(kind, np.full(shape, value) if kind == "splat" else value)
    if kind == "arg":
        return Leaf("arg", draw(rng, dtype, shape, True, numbers))
    if kind == "scalar":
        return Leaf(kind if shape else "arg", np.full(shape, draw(rng, dtype, (), True, numbers)))
    special = rng.random() < .1
    by = str(rng.choice(unary(dtype))) if computed and kind != "literal" and (
        rng.random() < .25) else ""
    if kind == "array":
        return Leaf("array", draw(rng, dtype, shape, special, numbers), by)
    value = draw(rng, dtype, (), special, numbers)
    if kind == "splat":
        return Leaf("splat", np.full(shape, value), by)
    return Leaf(kind, np.asarray(value))


def kind_of(dtype: np.dtype) -> str:
    """The letter of a dtype's kind; bfloat16 is floating."""
    return "f" if is_float(dtype) else dtype.kind


def accepts(op: Operation, dtype: Any) -> bool:
    dtype = np.dtype(dtype)
    return kind_of(dtype) in op.kinds or "g" in op.kinds and dtype in (np.float32, np.float64)


@functools.cache
def unary(dtype: Any) -> list[str]:
    """The operations on one operand that give its dtype."""
    return [name for name, op in OPERATIONS.items()
            if op.arity == 1 and not op.gives and accepts(op, dtype)]


def result(op: Operation, dtype: Any) -> np.dtype:
    dtype = np.dtype(dtype)
    if op.gives == "part":
        return np.dtype("f4" if dtype.itemsize == 8 else "f8")
    if op.gives == "whole":
        return np.dtype("c8" if dtype.itemsize == 4 else "c16")
    if op.gives:
        return np.dtype(getattr(onp, op.gives).dtype) if op.gives == "bfloat16" else np.dtype(
            op.gives)
    return dtype


def uses(arity: int, place: int, repeated: bool) -> Iterator[tuple[str, ...]]:
    """What the other operands may be."""
    others = ["arg", "literal", *(["same"] if repeated else [])]
    for kinds in itertools.product(others, repeat=arity - 1):
        if arity > 2 and kinds.count("literal") == 1:
            continue
        yield (*kinds[:place], "chain", *kinds[place:])


def pairs(dtype: str, seed: int, lanes: int, repeats: int, share: float = 1) -> Iterator[Program]:
    """Every operation after every other, in each place, over arguments and constants."""
    rng = np.random.default_rng([seed, len(dtype), sum(map(ord, dtype))])
    shape = (lanes,)
    for (n1, o1), (n2, o2) in itertools.product(OPERATIONS.items(), repeat=2):
        if not accepts(o1, dtype) or not accepts(o2, result(o1, dtype)):
            continue
        middle = result(o1, dtype)
        for inner in uses(o1.arity, 0, True):
            inners = [inner] if o1.arity < 2 else [inner, (inner[1], "chain", *inner[2:])]
            for kinds1, place in itertools.product(inners, range(o2.arity)):
                for kinds2 in uses(o2.arity, place, middle == np.dtype(dtype_of(dtype))):
                    constants = "literal" in kinds1 or "literal" in kinds2
                    for _ in range(repeats if constants else 1):
                        if rng.random() < share:
                            yield chain(rng, dtype, shape, [(n1, kinds1), (n2, kinds2)])


@functools.cache
def dtype_of(name: str) -> np.dtype:
    return np.dtype(olympus.numpy.zeros((), name).dtype)


def chain(rng: np.random.Generator, dtype: str, shape: tuple[int, ...],
          parts: Sequence[tuple[str, tuple[str, ...]]]) -> Program:
    """A program of operations, each applied to the last result ("chain") and other operands."""
    leaves = [leaf_of(rng, "arg", dtype_of(dtype), shape)]
    todo: list[tuple[str, list[int | None]]] = []
    current = dtype_of(dtype)
    for name, kinds in parts:
        operands: list[int | None] = []
        for kind in kinds:
            if kind == "chain":
                operands.append(None)
            elif kind == "same":
                operands.append(0)
            else:
                kind = "splat" if kind == "literal" and len(kinds) > 2 else kind
                leaves.append(leaf_of(rng, kind, current, shape, name in DIVISIONS))
                operands.append(len(leaves) - 1)
        todo.append((name, operands))
        current = result(OPERATIONS[name], current)
    steps = []
    for i, (name, operands) in enumerate(todo):
        last = 0 if i == 0 else len(leaves) + i - 1
        steps.append(Step(name, tuple(last if k is None else k for k in operands)))
    return Program(tuple(leaves), tuple(steps))


ARITHMETIC = ("add", "sub", "mul", "div")


def triples(dtype: str, seed: int, lanes: int, share: float) -> Iterator[Program]:
    """Trees of three arithmetic operations over four operands: (a.b).(c.d) and ((a.b).c).d."""
    rng = np.random.default_rng([seed, 3, sum(map(ord, dtype))])
    kinds = ["arg", "literal", "same"]
    for names in itertools.product(ARITHMETIC, repeat=3):
        for operands in itertools.product(kinds, repeat=4):
            if operands[:2] == ("literal", "literal") or operands.count("arg") == 0:
                continue
            for shape in "flat", "left", "right":
                if shape == "flat" and operands[2:] == ("literal", "literal"):
                    continue
                if rng.random() < share:
                    yield tree(rng, dtype, (lanes,), names, operands, shape)


def tree(rng: np.random.Generator, dtype: str, lanes: tuple[int, ...], names: Sequence[str],
         kinds: Sequence[str], shape: str) -> Program:
    leaves: list[Leaf] = []
    places: list[int] = []
    for kind in kinds:
        earlier = [i for i, each in enumerate(leaves) if each.kind == "arg"]
        if kind == "same" and earlier:
            places.append(earlier[0])
            continue
        leaves.append(leaf_of(rng, "arg" if kind == "same" else kind, dtype_of(dtype), lanes,
                              True))
        places.append(len(leaves) - 1)
    a, b, c, d = places
    n = len(leaves)
    first = Step(names[0], (a, b))
    if shape == "flat":
        steps = first, Step(names[1], (c, d)), Step(names[2], (n, n + 1))
    elif shape == "left":
        steps = first, Step(names[1], (n, c)), Step(names[2], (n + 1, d))
    else:
        steps = first, Step(names[1], (c, n)), Step(names[2], (d, n + 1))
    order = sorted(range(n), key=lambda i: leaves[i].kind != "arg")
    if leaves[0].kind != "arg":
        move = {old: new for new, old in enumerate(order)}
        leaves = [leaves[i] for i in order]
        steps = tuple(Step(s.name, tuple(move.get(k, k) for k in s.operands)) for s in steps)
    return Program(tuple(leaves), tuple(steps))


def random_program(rng: np.random.Generator, dtypes: Sequence[str]) -> Program:
    """A chain of two to five operations of scalars or small arrays, floating ones mostly.

    Half of them are arithmetic for the most part, on powers of the greatest number.
    """
    dtype = rng.choice([d for d in dtypes for _ in range(3 if d in FLOATS else 1)])
    shape: tuple[int, ...] = [(), (8,), (8,), (4, 2)][rng.integers(4)]
    current, leaves, steps = dtype_of(str(dtype)), [], []
    numbers = edges if not is_inexact(current) or rng.random() < .5 else powers
    leaves.append(leaf_of(rng, "arg", current, shape, numbers=numbers))
    share = .4 if numbers is edges else .8
    todo: list[tuple[str, list[int | None]]] = []
    used = [(0, current, shape)]    # leaves, and steps before the last as -1, -2 ...
    made: list[tuple[int, np.dtype, tuple[int, ...]]] = []
    for i in range(rng.integers(2, 6)):
        used += made
        made = [(-i, current, shape)] if i else []
        if rng.random() < .2:
            kind = kind_of(current)
            names = [n for n, (start, _, _, kinds) in ARRAYS.items()
                     if start == shape and kind in kinds]
            name = str(rng.choice(names))
            todo.append(("." + name, [None]))
            shape = ARRAYS[name][1]
            continue
        names = [n for n, op in OPERATIONS.items() if accepts(op, current)]
        arithmetic = [n for n in names if n in (*ARITHMETIC, "neg")]
        name = str(rng.choice(arithmetic if arithmetic and rng.random() < share else names))
        op = OPERATIONS[name]
        place = int(rng.integers(op.arity))
        operands: list[int | None] = []
        literals = 0
        for k in range(op.arity):
            again = [i for i, d, s in used if d == current and s == shape]
            if k == place:
                operands.append(None)
            elif again and rng.random() < .25:
                operands.append(int(rng.choice(again)))
            else:
                kind = str(rng.choice(["arg", "scalar", "literal", "array", "splat"],
                                      p=[.35, .1, .3, .1, .15]))
                if kind == "literal" and (literals or op.arity > 2):
                    kind = "splat"
                literals += kind == "literal"
                leaves.append(leaf_of(rng, kind, current, shape, name in DIVISIONS, numbers, True))
                operands.append(len(leaves) - 1)
                if kind != "literal":
                    used.append((len(leaves) - 1, current, shape))
        todo.append((name, operands))
        current = result(op, current)
    for i, (name, operands) in enumerate(todo):
        last = 0 if i == 0 else len(leaves) + i - 1
        steps.append(Step(name, tuple(
            last if k is None else k if k >= 0 else len(leaves) - k - 1 for k in operands)))
    program = Program(tuple(leaves), tuple(steps))
    floating = all(is_float(np.asarray(x).dtype) for x in program.args) and is_float(current)
    names = [n for n in WRAPPERS if floating or "grad" not in n and "jvp" not in n]
    if rng.random() < .5:
        return program
    given = [each._replace(kind="given") if each.kind in ("array", "splat") and rng.random() < .5
             else each for each in leaves]
    return program._replace(leaves=tuple(given), wrapper=str(rng.choice(names)))


# Shrinking

def at_lane(program: Program, lane: int) -> Program:
    """The program over the numbers of one lane, where all its values have one shape."""
    def one(each: Leaf) -> Leaf:
        x = np.asarray(each.value)
        return each._replace(value=x.reshape(-1)[lane] if x.ndim else x,
                             kind="arg" if each.kind in ("arg", "scalar") else "literal")

    return program._replace(leaves=tuple(map(one, program.leaves)))


def kinds_of(program: Program) -> dict[str, Difference]:
    value, _ = evaluate(program)
    return {d.kind: d for d in judge(value, compiled([program])[0])}


def pruned(program: Program) -> Program:
    """Without leaves and steps that nothing reads."""
    n = len(program.leaves)
    needed = {n + len(program.steps) - 1}
    for i in range(len(program.steps) - 1, -1, -1):
        if n + i in needed:
            needed |= set(program.steps[i].operands)
    kept = [i for i in range(n + len(program.steps)) if i in needed]
    move = {old: new for new, old in enumerate(kept)}
    return program._replace(
        leaves=tuple(program.leaves[i] for i in kept if i < n),
        steps=tuple(Step(s.name, tuple(move[k] for k in s.operands))
                    for i, s in enumerate(program.steps) if n + i in needed))


def smaller(program: Program) -> Iterator[Program]:
    """Programs of one step or constant less."""
    n = len(program.leaves)
    if program.wrapper:
        yield program._replace(wrapper="")
    for i in range(len(program.steps) - 1):     # results up to a step become an argument
        try:
            value, _ = evaluate(pruned(program._replace(steps=program.steps[:i + 1])))
        except Exception:
            continue
        added = Leaf("arg", value.x)

        def moved(k: int, i: int = i) -> int:
            return k if k < n else n if k == n + i else k if k > n + i else k + 1

        steps = [Step(s.name, tuple(moved(k) for k in s.operands)) for s in program.steps]
        del steps[i]
        yield pruned(program._replace(leaves=(*program.leaves, added), steps=tuple(steps)))
    if len(program.steps) > 1:
        yield pruned(program._replace(steps=program.steps[:-1]))
    for i, step in enumerate(program.steps[:-1]):   # a step is left out
        for operand in step.operands:
            steps = [Step(s.name, tuple(operand if k == n + i else k - (k > n + i)
                                        for k in s.operands))
                     for j, s in enumerate(program.steps) if j != i]
            yield pruned(program._replace(steps=tuple(steps)))
    for i, each in enumerate(program.leaves):
        if each.by:
            yield program._replace(leaves=(*program.leaves[:i], each._replace(by=""),
                                           *program.leaves[i + 1:]))
        shape = program.leaves[0].value.shape
        kinds = {"array": ("arg", "splat"), "splat": ("arg", "literal"), "literal": ("arg",),
                 "given": ("arg", "splat"), "scalar": ("arg",), "arg": ()}[each.kind]
        for kind in kinds:
            value = np.ravel(each.value)[0] if kind == "literal" else np.full(
                shape, np.ravel(each.value)[0]) if kind == "splat" or each.kind == "literal" else (
                    each.value)
            yield program._replace(leaves=(*program.leaves[:i], Leaf(kind, np.asarray(value)),
                                           *program.leaves[i + 1:]))


def shrunk(program: Program, difference: Difference) -> tuple[Program, Difference]:
    """The least program found that differs in the same way, if this one does when it is alone."""
    kind = difference.kind

    def differs(candidate: Program) -> Difference | None:
        try:
            return kinds_of(candidate).get(kind)
        except Exception:   # leaving a step out may leave no program
            return None

    found = differs(program)
    if found is None:
        return program, difference
    alone = at_lane(program, found.lane)
    if not any(step.name.startswith(".") for step in program.steps) and (one := differs(alone)):
        program, found = alone, one
    size = (len(program.steps), bool(program.wrapper), constants(program))
    while True:
        for candidate in smaller(program):
            least = len(candidate.steps), bool(candidate.wrapper), constants(candidate)
            if least < size and (one := differs(candidate)):
                program, found, size = candidate, one, least
                break
        else:
            return program, found


def constants(program: Program) -> int:
    order = "arg", "scalar", "literal", "splat", "given", "array"
    return sum(order.index(each.kind) + bool(each.by) for each in program.leaves)


# The sweep

class Found(NamedTuple):
    """A difference, with its program after shrinking."""

    program: Program
    difference: Difference

    @property
    def key(self) -> tuple[str, str, str]:
        return self.difference.kind, self.program.dtype.name, self.program.pattern()

    def text(self) -> str:
        """The values of the lane that differs, and a file that shows it."""
        program, (_, lane, eager, got) = self
        values = []
        for each in program.leaves:
            x = np.ravel(each.value)
            values.append(f"{each.kind} {x[lane % max(x.size, 1)]}")
        args = ", ".join(f"onp.array({numbers(np.asarray(x))}, '{np.asarray(x).dtype.name}')"
                         for x in program.args)
        call = "g" if "\ndef g(" in program.text() else "f"
        lines = ["  ".join(self.key), f"eager {eager}, jit {got}: {'; '.join(values)}"]
        if program.args[0].size < 20:
            lines += [program.text(), f"args = [{args}]",
                      f"print({call}(*args), olympus.jit({call})(*args))"]
        return "\n".join(lines) + "\n"


class Sweep:
    """Runs programs, a module of them at a time, and keeps what differs."""

    def __init__(self, shrink: int = 0, every: int = 4) -> None:
        self.shrink = shrink    # how many differences to shrink
        self.every = every      # which modules are compiled as users' are
        self.done = self.modules = 0
        self.faulty: set[int] = set()           # programs, by number
        self.counts: collections.Counter[tuple[str, str]] = collections.Counter()
        self.found: dict[tuple[str, str, str], Found] = {}
        self.refused: dict[str, str] = {}       # what cannot be recorded, by pattern
        self.eager: dict[tuple[str, str], str] = {}

    def run(self, programs: Iterator[Program], progress: bool = False) -> None:
        start = time.monotonic()
        while batch := list(itertools.islice(programs, MODULE)):
            self.module(batch)
            if progress:
                print(f"\r{self.done} programs, {time.monotonic() - start:.0f} s", end="",
                      file=sys.stderr)

    def module(self, batch: Sequence[Program]) -> None:
        values: list[Value] = []
        kept: list[Program] = []
        for program in batch:
            try:
                value, walk = evaluate(program)
            except (TypeError, ValueError, NotImplementedError) as error:
                self.refused.setdefault(program.pattern(), f"{type(error).__name__}: {error}")
                continue
            for name, dtype, operands, x in walk.outside:
                self.counts["eager", dtype] += 1
                self.eager.setdefault((name, dtype), f"{operands} gave {x}")
            values.append(value)
            kept.append(program)
        # XLA's older emitter has no conversions of rows of floats of 8 bits.
        quick = self.modules % self.every != 0 and not any(
            is_float(p.dtype) and p.dtype.itemsize == 1 for p in kept)
        found = [*map(judge, values, compiled(kept, quick))]
        if quick and any(d.kind in FAULTS for differences in found for d in differences):
            found = [*map(judge, values, compiled(kept))]   # which is how users have it
        self.modules += 1
        for program, differences in zip(kept, found, strict=True):
            self.done += 1
            for difference in differences:
                self.add(Found(program, difference))

    def add(self, found: Found) -> None:
        program, difference = found
        kind, name, _ = found.key
        self.counts[kind, name] += 1
        if kind in FAULTS:
            self.faulty.add(self.done)
        if found.key not in self.found:
            if kind in FAULTS and self.shrink > 0:
                self.shrink -= 1
                found = Found(*shrunk(program, difference))
            self.found.setdefault(found.key, found)

    @property
    def faults(self) -> int:
        return sum(n for (kind, _), n in self.counts.items() if kind in FAULTS)

    def table(self) -> str:
        """Counts by class and dtype."""
        lines = [f"{self.done} programs, {len(self.faulty)} with a fault, "
                 f"{len(self.refused)} refused"]
        for kind in (*FAULTS, *APART):
            row = {d: self.counts[kind, d] for d in (*FLOATS, *COMPLEX, *INTS)
                   if self.counts[kind, d]}
            lines.append(f"{kind:12} {sum(row.values()):6}  "
                         + " ".join(f"{d}:{n}" for d, n in row.items()))
        return "\n".join(lines)

    def report(self) -> str:
        """Every difference, faults first, by pattern."""
        order = sorted(self.found.values(), key=lambda f: (f.key[0] not in FAULTS, f.key))
        return "\n".join([*(each.text() for each in order),
                          *(f"eager {key}: {text}" for key, text in self.eager.items()),
                          *(f"refused {key}: {text}" for key, text in self.refused.items())])


def chosen(options: argparse.Namespace) -> Iterator[Program]:
    """The programs that the command line asks for."""
    if options.pairs:
        for dtype in options.dtypes:
            yield from pairs(dtype, options.seed, options.lanes, options.repeats, options.share)
    elif options.triples:
        for dtype in options.dtypes:
            yield from triples(dtype, options.seed, options.lanes, options.share)
    else:
        rng = np.random.default_rng(options.seed)
        for _ in range(options.programs):
            yield random_program(rng, options.dtypes)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--programs", type=int, default=2000, help="random chains (default)")
    parser.add_argument("--pairs", action="store_true", help="all pairs of operations instead")
    parser.add_argument("--triples", action="store_true", help="trees of three + - * / instead")
    parser.add_argument("--share", type=float, default=1, help="of the pairs or triples")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lanes", type=int, default=256, help="elements in pairs and triples")
    parser.add_argument("--repeats", type=int, default=1, help="times each pair with a constant")
    parser.add_argument("--dtypes", nargs="+", default=[*FLOATS, *COMPLEX, *INTS])
    parser.add_argument("--shrink", type=int, default=40, help="how many faults to shrink")
    parser.add_argument("--every", type=int, default=4, help="which modules to compile in full")
    parser.add_argument("--platform", help="compile for its first device; the steps run on the CPU")
    parser.add_argument("--report", metavar="FILE")
    parser.add_argument("--unfenced", action="store_true", help="what XLA does by itself")
    parser.add_argument("--quiet", action="store_true")
    options = parser.parse_args(arguments)
    np.seterr(all="ignore")
    warnings.simplefilter("ignore", olympus.errors.RetraceWarning)
    olympus.config.update("olympus_enable_x64", True)
    if options.platform:
        options.every = 1   # LLVM's options are the CPU's
        olympus.config.update("olympus_default_device", olympus.devices(options.platform)[0])
    if options.unfenced:
        unfence()
    sweep = Sweep(options.shrink, options.every)
    sweep.run(chosen(options), not options.quiet)
    print(f"\n{sweep.table()}")
    if options.report:
        with open(options.report, "w") as out:
            print(sweep.report(), file=out)
    return int(sweep.faults > 0)


def unfence() -> None:
    """Lower without fences from now on."""
    ModuleContext.fenced_from = property(   # type: ignore[assignment]
        lambda self: None, lambda self, value: None)


if __name__ == "__main__":
    sys.exit(main())
