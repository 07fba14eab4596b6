"""How exactly contractions and convolutions compute: `Precision` and dot algorithms."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

import numpy as np

from ..base import config
from ..base.typing import DTypeLike, IrAttribute
from ..core.primitive import Builder
from ..types import dtypes


class Precision(enum.Enum):
    """The precision of products of float32s; more of it takes more work.

    DEFAULT is the fastest on the platform, HIGHEST is full float32; on CPU all are float32. Called
    with a string (or None) that names one as the argument `precision` does, it gives that.

    >>> from olympus import lax, numpy as onp
    >>> x = onp.ones((2, 2))
    >>> print(lax.dot(x, x, precision=lax.Precision.HIGHEST))
    [[2. 2.]
     [2. 2.]]
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value: object) -> Precision | None:
        member = _SPELLINGS.get(value) if isinstance(value, str) else None
        return cls.DEFAULT if value is None else member

    def __repr__(self) -> str:
        return f"Precision.{self.name}"

    def __str__(self) -> str:
        return self.name


class DotAlgorithm(NamedTuple):
    """An explicit dot algorithm: the types to which operands are rounded, and the type of sums.

    Args:
      lhs_precision_type, rhs_precision_type, accumulation_type: dtypes.
      lhs_component_count, rhs_component_count: into how many parts operands are split.
      num_primitive_operations: how many products of parts are added.
      allow_imprecise_accumulation: whether sums may be kept in fewer bits for a while.

    >>> from olympus import lax, numpy as onp
    >>> recipe = lax.DotAlgorithm("float32", "float32", "float32")
    >>> print(lax.dot(onp.ones(3), onp.ones(3), precision=recipe))
    3.0
    """

    lhs_precision_type: DTypeLike
    rhs_precision_type: DTypeLike
    accumulation_type: DTypeLike
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(enum.Enum):
    """Named dot algorithms: the types of lhs, rhs and accumulator, then the number of passes.

    >>> from olympus import lax, numpy as onp
    >>> preset = lax.DotAlgorithmPreset.F32_F32_F32
    >>> print(lax.dot(onp.ones(3), onp.ones(3), precision=preset))
    3.0
    """

    DEFAULT = enum.auto()
    ANY_F8_ANY_F8_F32 = enum.auto()
    ANY_F8_ANY_F8_F32_FAST_ACCUM = enum.auto()
    ANY_F8_ANY_F8_ANY = enum.auto()
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = enum.auto()
    F16_F16_F16 = enum.auto()
    F16_F16_F32 = enum.auto()
    BF16_BF16_BF16 = enum.auto()
    BF16_BF16_F32 = enum.auto()
    BF16_BF16_F32_X3 = enum.auto()
    BF16_BF16_F32_X6 = enum.auto()
    BF16_BF16_F32_X9 = enum.auto()
    TF32_TF32_F32 = enum.auto()
    TF32_TF32_F32_X3 = enum.auto()
    F32_F32_F32 = enum.auto()
    F64_F64_F64 = enum.auto()

    def __repr__(self) -> str:
        return f"DotAlgorithmPreset.{self.name}"


PrecisionLike = (None | str | Precision | tuple[str, str] | tuple[Precision, Precision]
                 | DotAlgorithm | DotAlgorithmPreset)
CanonicalPrecision = None | tuple[Precision, Precision] | DotAlgorithm | DotAlgorithmPreset

_SPELLINGS = {
    "default": Precision.DEFAULT, "fastest": Precision.DEFAULT, "bfloat16": Precision.DEFAULT,
    "high": Precision.HIGH, "bfloat16_3x": Precision.HIGH, "tensorfloat32": Precision.HIGH,
    "highest": Precision.HIGHEST, "float32": Precision.HIGHEST}
_MLIR_TYPES = {"F16": "f16", "BF16": "bf16", "TF32": "tf32", "F32": "f32", "F64": "f64"}
_PASSES = {"X3": 3, "X6": 6, "X9": 9}


def _precision_of(value: object) -> Precision | DotAlgorithm | DotAlgorithmPreset | None:
    if value is None or isinstance(value, (Precision, DotAlgorithm, DotAlgorithmPreset)):
        return value
    if isinstance(value, str):
        if value.lower() in _SPELLINGS:
            return _SPELLINGS[value.lower()]
        if value in DotAlgorithmPreset.__members__:
            return DotAlgorithmPreset[value]
    raise ValueError(f"precision: {value!r} given; a lax.Precision, a DotAlgorithm(Preset), or one "
                     f"of {', '.join(_SPELLINGS)} is required.")


def canonical_precision(precision: PrecisionLike) -> CanonicalPrecision:
    """None, a pair of `Precision`, or a dot algorithm; None takes the configured default."""
    if precision is None:
        precision = config.default_matmul_precision.value
        if precision is None:
            return None
    if isinstance(precision, (tuple, list)) and not isinstance(precision, DotAlgorithm):
        if len(precision) != 2:
            raise ValueError(f"precision: {precision!r} given; one value, or a pair for lhs and "
                             "rhs, is required.")
        pair: tuple[Any, ...] = tuple(map(_precision_of, precision))
        if any(isinstance(p, (DotAlgorithm, DotAlgorithmPreset)) for p in pair):
            raise ValueError(f"precision: {precision!r} given; an algorithm concerns both "
                             "operands: pass it alone, not in a pair.")
    else:
        value = _precision_of(precision)
        if not isinstance(value, Precision):
            return value
        pair = (value, value)
    lhs, rhs = [Precision.DEFAULT if p is None else p for p in pair]
    return lhs, rhs


def _algorithm(preset: DotAlgorithmPreset) -> str | None:
    parts = preset.name.split("_")
    if preset is DotAlgorithmPreset.DEFAULT or parts[0] == "ANY":
        return None
    lhs, rhs, acc = (_MLIR_TYPES[p] for p in parts[:3])
    passes = _PASSES[parts[3]] if len(parts) > 3 else 1
    return _spell(lhs, rhs, acc, 1, 1, passes, False)


def _spell(lhs: str, rhs: str, acc: str, n_lhs: int, n_rhs: int, passes: int, loose: bool) -> str:
    return (f"#stablehlo.dot_algorithm<lhs_precision_type = {lhs}, rhs_precision_type = {rhs}, "
            f"accumulation_type = {acc}, lhs_component_count = {n_lhs}, rhs_component_count = "
            f"{n_rhs}, num_primitive_operations = {passes}, allow_imprecise_accumulation = "
            f"{str(loose).lower()}>")


def _mlir_name(b: Builder, dtype: DTypeLike) -> str:
    return str(b.element_type(np.dtype(dtypes.as_dtype(dtype))))


def precision_attributes(b: Builder, precision: CanonicalPrecision) -> dict[str, IrAttribute]:
    """The StableHLO attributes of a canonical precision."""
    if precision is None:
        return {}
    if isinstance(precision, tuple) and not isinstance(precision, DotAlgorithm):
        names = ", ".join(f"#stablehlo<precision {p.name}>" for p in precision)
        return {"precision_config": b.attr(f"[{names}]")}
    if isinstance(precision, DotAlgorithm):
        a = precision
        text: str | None = _spell(
            _mlir_name(b, a.lhs_precision_type), _mlir_name(b, a.rhs_precision_type),
            _mlir_name(b, a.accumulation_type), a.lhs_component_count, a.rhs_component_count,
            a.num_primitive_operations, a.allow_imprecise_accumulation)
    else:
        text = _algorithm(precision)
    return {} if text is None else {"algorithm": b.attr(text)}
