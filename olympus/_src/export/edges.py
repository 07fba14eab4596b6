"""Values at the edges of formats that engines compute otherwise, written as operations of a module.

A rule replaces an operation by others: with the same values in the middle, and with XLA's values at
the edges: NaN, infinities, zeros of both signs, ties, numbers out of range. For each rule an engine
was seen to need it on a CPU (docs/export.md says which version).
"""

from __future__ import annotations

import fractions
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from ..base.lib import mlir
from ..base.typing import IrModule, IrOperation, IrValue
from ..lowering.attributes import constant_attr, i64s, module_context
from ..lowering.linking import operations
from ..types.shape import prod
from .operations import NUMPY_OF, combiner_of, direction_of, element_of, int_of, ints_of, shape_of
from .terms import Term, bits, negative, places, select, unary

#: The values that replace an operation's results; None leaves it as it is.
Rule: TypeAlias = Callable[[IrOperation], "Sequence[IrValue] | Term | None"]


def write_edges(module: IrModule, rules: Mapping[str, Rule]) -> None:
    """Replace the operations of a module that have a rule, by StableHLO's names."""
    with module_context():
        # From the last: operations in regions come before those that have the regions.
        for op in reversed(list(operations(module))):
            rule = rules.get(op.name.removeprefix("stablehlo."))
            if rule is None:
                continue
            with op.location, mlir.ir.InsertionPoint(op):
                results = rule(op)
            if results is None:
                continue
            values = [results.value] if isinstance(results, Term) else results
            for old, new in zip(op.results, values, strict=True):
                old.replace_all_uses_with(new)
            op.erase()


def _is_float(element: str) -> bool:
    return element in ("f16", "bf16", "f32", "f64")


def _floats(op: IrOperation) -> list[Term] | None:
    """The operands, if they are floats."""
    return [Term(x) for x in op.operands] if _is_float(element_of(op.operands[0])) else None


# Elementwise

def _convert(op: IrOperation) -> Term | None:
    """Floats to integers: out of range the nearest end, NaN 0."""
    x, = map(Term, op.operands)
    element = element_of(op.results[0])
    if not _is_float(x.element) or element == "i1" or element[0] not in "iu" or (
            element not in NUMPY_OF):
        return None
    x = x.to("f32") if x.element in ("f16", "bf16") else x
    ends = np.iinfo(NUMPY_OF[element])
    kind = np.dtype(NUMPY_OF[x.element]).type
    most, exact = kind(ends.max), int(kind(ends.max)) == ends.max
    if not exact:       # but the float above it: the one below has an integer
        most = np.nextafter(most, kind(0))
    near = Term(mlir.hlo.clamp(x.like(float(ends.min)).value, x.value, x.like(float(most)).value))
    converted = select((x.equal(x), near), 0).to(element)
    return converted if exact else select((x > float(most), int(ends.max)), converted)


def _power(op: IrOperation) -> Term | None:
    operands = _floats(op)
    if operands is None:
        return None
    x, y = operands
    size, infinity = abs(x), math.inf
    whole, halves = unary("floor", y).equal(y), y * 0.5
    odd = whole & unary("floor", halves).differs(halves)
    # The power of |x|. Where the engine's own is not used, its operands are 1.
    usual = unary("is_finite", y) & unary("is_finite", x) & size.differs(0)
    up = (size > 1).equal(y > 0)        # to an infinite power, or of zero or infinity
    power = select((usual, select((usual, size), 1) ** select((usual, y), 1)), (up, infinity), 0)
    power = select((odd & (negative(x)), -power), power)
    domain = whole | (x >= 0) | x.equal(-infinity)
    power = select((domain & x.equal(x) & y.equal(y), power), math.nan)
    one = y.equal(0) | x.equal(1) | (size.equal(1) & abs(y).equal(infinity))
    return select((one, 1), power)


def _atan2(op: IrOperation) -> Term | None:
    """The angle of the shorter over the longer side, mirrored as sizes and signs say."""
    operands = _floats(op)
    if operands is None:
        return None
    y, x = operands
    height, width = abs(y), abs(x)
    steep = height > width
    long, short = select((steep, height), width), select((steep, width), height)
    slope = select((long.equal(0) & short.equal(0), 0), (long.equal(short), 1), short / long)
    angle = Term(mlir.hlo.atan2(slope.value, slope.like(1).value))
    angle = select((steep, math.pi / 2 - angle), angle)
    angle = select((negative(x), math.pi - angle), angle)
    return select((negative(y), -angle), angle)


def _cbrt(op: IrOperation) -> Term:
    x, = map(Term, op.operands)
    return select((unary("is_finite", x) & x.differs(0), unary("cbrt", x)), x)


def _logistic(op: IrOperation) -> Term:
    x, = map(Term, op.operands)
    return 1 / (1 + unary("exponential", -x))


def _quotient(op: IrOperation) -> Term | None:
    """Quotients of integers; those by 0 and -1, for which engines differ, without a division."""
    x, y = map(Term, op.operands)
    if x.element == "i1" or x.element[0] not in "iu" or _harmless(y.value):
        return None
    zero, signed = y.equal(0), x.element[0] == "i"
    if not signed:
        divisor, minus = select((zero, 1), y), None
    else:
        minus = y.equal(-1)
        divisor = select((zero | minus, 1), y)
    if op.name == "stablehlo.remainder":
        return select((zero, x), x % divisor)
    largest = int(np.iinfo(NUMPY_OF[x.element]).max)
    quotient = x / divisor
    return select((zero, largest), quotient) if minus is None else select(
        (zero, -1), (minus, 0 - x), quotient)


def _harmless(divisor: IrValue) -> bool:
    """Whether a divisor is a constant without 0 and -1."""
    owner = divisor.owner
    while not isinstance(owner, mlir.ir.Block) and owner.name == "stablehlo.broadcast_in_dim":
        owner = owner.operands[0].owner
    if isinstance(owner, mlir.ir.Block) or owner.name != "stablehlo.constant":
        return False
    divisors = np.array(mlir.ir.DenseElementsAttr(owner.attributes["value"]))
    return not np.isin(divisors.astype(np.int64), (0, -1)).any()


# sin and cos are odd and even, so |x| is taken, as m 2**(e - 150) with 24 bits of m. The fraction
# of a turn that it is, F / 2**64, is the product of m with the fraction of 2**(e - 150); a table
# has 96 bits of it for each e; multiples of 2**64 drop out. An eighth of a turn around each quarter
# is left, for which polynomials are good to a unit in the last place (the coefficients: Cephes).
_PI = fractions.Fraction(
    0x3243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89452821e638d, 2**300)
_SINE = -1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1
_COSINE = 2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2


def _turn_fractions() -> tuple[np.ndarray, np.ndarray]:
    """For each e, 2**(e - 150) as a fraction of a turn: 64 bits, and the 32 after them."""
    fraction = [int(fractions.Fraction(2)**(e - 150) / (2 * _PI) % 1 * 2**96) for e in range(256)]
    return (np.array([n >> 32 for n in fraction], np.uint64).view(np.int64),
            np.array([n % 2**32 for n in fraction], np.int64))


def _wave(op: IrOperation, quarters: int) -> Term | None:
    """sin(x + quarters * pi / 2)."""
    x, = map(Term, op.operands)
    if not _is_float(x.element) or x.element == "f64":
        return None
    x, element = x.to("f32"), x.element
    size = abs(x)
    pattern = bits(size)
    mantissa = ((pattern & 0x7fffff) | 0x800000).to("i64")
    high, low = (_looked_up(table, pattern >> 23) for table in _turn_fractions())
    turn = mantissa * high + ((mantissa * low) >> 32)
    quarter = (turn + 2**61) >> 62
    rest = turn - (quarter << 62)
    near = size < math.pi / 4
    angle = select((near, size), rest.to("f32") * (2 * math.pi / 2**64))
    quarter = select((near, 0), quarter.to("i32")) + quarters
    z = angle * angle
    a, b, c = _SINE
    sine = angle + angle * z * (c + z * (b + z * a))
    a, b, c = _COSINE
    cosine = (1 - z * 0.5) + z * z * (c + z * (b + z * a))
    wave = select(((quarter & 1).equal(1), cosine), sine)
    wave = select(((quarter & 2).equal(2), -wave), wave)
    if not quarters:
        wave = select((negative(x), -wave), wave)
    return select((unary("is_finite", x), wave), math.nan).to(element)


def _sine(op: IrOperation) -> Term | None:
    return _wave(op, 0)


def _cosine(op: IrOperation) -> Term | None:
    return _wave(op, 1)


def _complex_abs(op: IrOperation) -> Term | None:
    x, = op.operands
    if not element_of(x).startswith("complex"):
        return None
    a, b = abs(Term(mlir.hlo.real(x))), abs(Term(mlir.hlo.imag(x)))
    long, short = select((a > b, a), b), select((a > b, b), a)
    ratio = select((long.equal(short), 1), short / long)
    size = select((long.equal(0) & short.equal(0), 0), long * unary("sqrt", 1 + ratio * ratio))
    return select((a.equal(math.inf) | b.equal(math.inf), math.inf), size)


def _complex_quotient(op: IrOperation) -> Term | None:
    """By Smith's formula, whose parts are as large as the quotient; its ends are C99's."""
    if not element_of(op.operands[0]).startswith("complex"):
        return None
    hlo = mlir.hlo
    a, b, c, d = (Term(part(x)) for x in op.operands for part in (hlo.real, hlo.imag))
    wide = abs(c) >= abs(d)
    ratio = select((wide, d), c) / select((wide, c), d)
    below = select((wide, c + d * ratio), d + c * ratio)
    real = select((wide, a + b * ratio), a * ratio + b) / below
    imag = select((wide, b - a * ratio), b * ratio - a) / below

    def infinite(x: Term) -> Term:
        return abs(x).equal(math.inf)

    def end(x: Term) -> Term:       # an infinity as 1, a number as 0, with their signs
        size = select((infinite(x), x.like(1)), 0)
        return select((negative(x), -size), size)

    def finite(x: Term, y: Term) -> Term:
        return unary("is_finite", x) & unary("is_finite", y)

    nan = real.differs(real) & imag.differs(imag)
    sign = select((negative(c), c.like(-math.inf)), math.inf)
    by_zero = nan & c.equal(0) & d.equal(0) & (a.equal(a) | b.equal(b))
    large = nan & (infinite(a) | infinite(b)) & finite(c, d)
    small = nan & (infinite(c) | infinite(d)) & finite(a, b)
    p, q, u, v = end(a), end(b), end(c), end(d)
    real = select((by_zero, sign * a), (large, (p * c + q * d) * math.inf),
                  (small, (a * u + b * v) * 0), real)
    imag = select((by_zero, sign * b), (large, (q * c - p * d) * math.inf),
                  (small, (b * u - a * v) * 0), imag)
    return Term(hlo.complex(real.value, imag.value))


def _tan(op: IrOperation) -> Term | None:
    sine, cosine = _wave(op, 0), _wave(op, 1)
    return None if sine is None or cosine is None else sine / cosine


def _looked_up(table: np.ndarray, where: Term) -> Term:
    hlo, rank = mlir.hlo, len(shape_of(where.value))
    numbers = hlo.GatherDimensionNumbers.get([], [0], [], [], [0], rank)
    return Term(hlo.gather(hlo.constant(constant_attr(table)), where.value, numbers, i64s([1])))


def _compare(op: IrOperation) -> Term | None:
    """By the total order of floats: the order of their bits, reversed for negative numbers."""
    kind = "compare_type"
    if kind not in op.attributes or "TOTALORDER" not in str(op.attributes[kind]):
        return None
    x, y = map(Term, op.operands)
    direction = direction_of(op)
    if x.element != "f64":
        x, y = _ordered(bits(x)), _ordered(bits(y))
    elif direction in ("LT", "GT"):     # every NaN is the largest, with a sign bit too
        x, y = (x, y) if direction == "LT" else (y, x)
        return (x < y) | (x.equal(x) & y.differs(y))
    return x.compare(direction, y)


def _ordered(x: Term) -> Term:
    most = int(np.iinfo(NUMPY_OF[x.element]).max)
    return select((x < 0, x ^ most), x)


# Arrays

def _sort(op: IrOperation) -> Sequence[IrValue] | None:
    """A stable sort: elements that the comparison finds equal go by their places."""
    ir, axis = mlir.ir, int_of(op, "dimension")
    if "is_stable" not in op.attributes or not ir.BoolAttr(op.attributes["is_stable"]).value:
        return None
    operands = list(op.operands)
    if shape_of(operands[0])[axis] == -1:
        raise NotImplementedError(
            "to_iree: stablehlo.sort along an axis of unknown size, which IREE does not compile; "
            "export it with that size known.")
    known = [i for i, x in enumerate(operands) if _counts(x, axis)]
    # IREE replaces a sort of integers with their places, whose first results are sliced, by its own
    # `topk`. That breaks ties otherwise, and orders unsigned integers as if they were signed.
    if not known or (len(operands) == 2 and not _is_float(element_of(operands[0]))):
        known = []
        operands.append(places(operands[0], axis))
    at = known[0] if known else -1
    made = ir.Operation.create(
        "stablehlo.sort", [x.type for x in operands], operands,
        {name: op.attributes[name] for name in ("dimension", "is_stable")}, regions=1)
    body = op.regions[0].blocks[0]
    scalars = [ir.RankedTensorType.get((), ir.RankedTensorType(x.type).element_type)
               for x in operands for _ in range(2)]
    inner = made.regions[0].blocks.append(*scalars, arg_locs=[op.location] * len(scalars))
    with ir.InsertionPoint(inner):
        sides = list(inner.arguments)
        swapped = [x for pair in zip(sides[1::2], sides[::2], strict=True) for x in pair]
        count = len(body.arguments)
        before, after = _copied(body, sides[:count]), _copied(body, swapped[:count])
        tie = ~(before | after) & (Term(sides[::2][at]) < Term(sides[1::2][at]))
        mlir.hlo.return_([(before | tie).value])
    return list(made.results)[:len(op.results)]


def _reverse(op: IrOperation) -> Sequence[IrValue] | None:
    """Reverse the bits of unsigned integers, which IREE does not reverse as integers."""
    x, = op.operands
    element, ir, hlo = element_of(x), mlir.ir, mlir.hlo
    if element[:2] != "ui":
        return None
    kind = ir.RankedTensorType(x.type)
    signed = ir.RankedTensorType.get(kind.shape, ir.IntegerType.get_signless(int(element[2:])))
    reversed_bits = hlo.reverse(hlo.bitcast_convert(signed, x), op.attributes["dimensions"])
    return [hlo.bitcast_convert(kind, reversed_bits)]


def _counts(x: IrValue, axis: int) -> bool:
    """Whether a value has the places along an axis."""
    owner = x.owner
    return not isinstance(owner, mlir.ir.Block) and (
        owner.name in ("stablehlo.iota", "stablehlo.dynamic_iota")
        and int_of(owner, "iota_dimension") == axis)


def _copied(body: mlir.ir.Block, operands: Sequence[IrValue]) -> Term:
    """The result of a block, its operations copied for other arguments."""
    known: dict[IrValue, IrValue] = dict(zip(body.arguments, operands, strict=True))
    *inside, last = body.operations
    for inner in inside:
        copy = inner.operation.clone()
        for i, x in enumerate(copy.operands):
            copy.operands[i] = known.get(x, x)
        for old, new in zip(inner.results, copy.results, strict=True):
            known[old] = new
    result: IrValue = last.operands[0]
    return Term(known.get(result, result))


# The most elements that are summed one after the other, with a rounding error of 2e-4 at most;
# longer sums are cut into parts of this length.
_LONG, _ROW = 4096, 256


def _reduce(op: IrOperation) -> Sequence[IrValue] | None:
    """A long sum as sums of sums, whose rounding grows as the logarithm of the length."""
    if len(op.results) != 1 or combiner_of(op) != "add" or element_of(op.results[0]) not in (
            "f16", "bf16", "f32"):
        return None
    (x, init), axes, shape = op.operands, ints_of(op, "dimensions"), shape_of(op.operands[0])
    if -1 in shape or prod([shape[i] for i in axes]) <= _LONG:
        return None
    hlo, ir = mlir.hlo, mlir.ir
    element = ir.RankedTensorType(x.type).element_type
    zero = Term(init).like(0).value
    for axis in sorted(axes, reverse=True):
        most = _LONG if shape_of(x)[axis] <= _LONG else _ROW
        while (size := shape_of(x)[axis]) > most:
            # In rows; the last one is filled up with zeros.
            ends = [-size % _ROW if i == axis else 0 for i in range(len(shape_of(x)))]
            none = i64s([0] * len(ends))
            x = hlo.pad(x, zero, none, i64s(ends), none) if any(ends) else x
            split = shape_of(x)
            split[axis:axis + 1] = [split[axis] // _ROW, _ROW]
            x = _sum(op, hlo.reshape(ir.RankedTensorType.get(split, element), x), zero, axis + 1)
        x = _sum(op, x, init if axis == min(axes) else zero, axis)
    return [x]


def _sum(op: IrOperation, x: IrValue, init: IrValue, axis: int) -> IrValue:
    """`op` along one axis of `x`."""
    ir, shape = mlir.ir, shape_of(x)
    kind = ir.RankedTensorType.get([*shape[:axis], *shape[axis + 1:]],
                                   ir.RankedTensorType(x.type).element_type)
    made = ir.Operation.create("stablehlo.reduce", [kind], [x, init], {"dimensions": i64s([axis])},
                               regions=1)
    body = op.regions[0].blocks[0]
    inner = made.regions[0].blocks.append(
        *[a.type for a in body.arguments], arg_locs=[op.location] * len(body.arguments))
    with ir.InsertionPoint(inner):
        mlir.hlo.return_([_copied(body, inner.arguments).value])
    return made.results[0]


IREE: Mapping[str, Rule] = {
    "convert": _convert, "power": _power, "atan2": _atan2, "cbrt": _cbrt, "sine": _sine,
    "cosine": _cosine, "tan": _tan, "compare": _compare, "sort": _sort, "reduce": _reduce,
    "reverse": _reverse, "abs": _complex_abs, "divide": _complex_quotient}
ONNX: Mapping[str, Rule] = {
    "convert": _convert, "logistic": _logistic, "divide": _quotient, "remainder": _quotient,
    "reduce": _reduce}
