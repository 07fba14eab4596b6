"""Elementwise operations under one name: `from . import elementwise as ew`, then `ew.add`.

They live by subject in `families` (how a line of facts becomes a primitive), `arithmetic`,
`transcendental`, `choice` (comparison and selection), `bits`, `convert` and `identity`.
"""

from __future__ import annotations

from .accuracy import (
    AccuracyMode, Tolerance,
)
from .arithmetic import (
    RoundingMethod, abs, abs_p, ceil, ceil_p, complex, complex_p, conj, conj_p, div, div_p, floor,
    floor_p, imag, imag_p, integer_pow, integer_pow_p, is_finite, is_finite_p, max, max_p, min,
    min_p, mul, mul_p, neg, neg_p, nextafter, nextafter_p, one_minus_square, one_minus_square_p,
    real, real_p, reciprocal, rem, rem_p, round, round_p, sign, sign_p, square, square_p, sub,
    sub_p,
)
from .bits import (
    and_p, bitwise_and, bitwise_not, bitwise_or, bitwise_xor, clz, clz_p, not_p, or_p,
    population_count, population_count_p, shift_left, shift_left_p, shift_right_arithmetic,
    shift_right_arithmetic_p, shift_right_logical, shift_right_logical_p, xor_p,
)
from .choice import (
    clamp, clamp_p, eq, eq_p, eq_to, eq_to_p, ge, ge_p, gt, gt_p, le, le_p, le_to, le_to_p, lt,
    lt_p, lt_to, lt_to_p, ne, ne_p, select, select_n, select_n_p,
)
from .convert import (
    bitcast_convert_type, bitcast_convert_type_p, convert_element_type, convert_element_type_p,
    reduce_precision, reduce_precision_p,
)
from .families import (
    Comparison, Elementwise, add, add_p, binary, comparison, elementwise, operand, unary,
)
from .identity import (
    copy, copy_p, optimization_barrier, optimization_barrier_p, stop_gradient, stop_gradient_p,
)
from .transcendental import (
    acos, acos_p, acosh, acosh_p, asin, asin_p, asinh, asinh_p, atan, atan2, atan2_p, atan_p,
    atanh, atanh_p, cbrt, cbrt_p, cos, cos_p, cosh, cosh_p, exp, exp2, exp2_p, exp_p, expm1,
    expm1_p, log, log1p, log1p_p, log2, log2_p, log_p, logistic, logistic_p, pow, pow_p, rsqrt,
    rsqrt_p, sin, sin_p, sinh, sinh_p, sqrt, sqrt_p, tan, tan_p, tanh, tanh_p,
)

__all__ = [
    "AccuracyMode", "Comparison", "Elementwise", "RoundingMethod", "Tolerance", "abs", "abs_p",
    "acos", "acos_p", "acosh", "acosh_p", "add", "add_p", "and_p", "asin", "asin_p", "asinh",
    "asinh_p", "atan", "atan2", "atan2_p", "atan_p", "atanh", "atanh_p", "binary",
    "bitcast_convert_type", "bitcast_convert_type_p", "bitwise_and", "bitwise_not", "bitwise_or",
    "bitwise_xor", "cbrt", "cbrt_p", "ceil", "ceil_p", "clamp", "clamp_p", "clz", "clz_p",
    "comparison", "complex", "complex_p", "conj", "conj_p", "convert_element_type",
    "convert_element_type_p", "copy", "copy_p", "cos", "cos_p", "cosh", "cosh_p", "div", "div_p",
    "elementwise", "eq", "eq_p", "eq_to", "eq_to_p", "exp", "exp2", "exp2_p", "exp_p", "expm1",
    "expm1_p", "floor", "floor_p", "ge", "ge_p", "gt", "gt_p", "imag", "imag_p", "integer_pow",
    "integer_pow_p", "is_finite", "is_finite_p", "le", "le_p", "le_to", "le_to_p", "log", "log1p",
    "log1p_p", "log2", "log2_p", "log_p", "logistic", "logistic_p", "lt", "lt_p", "lt_to",
    "lt_to_p", "max", "max_p", "min", "min_p", "mul", "mul_p", "ne", "ne_p", "neg", "neg_p",
    "nextafter", "nextafter_p", "not_p", "one_minus_square", "one_minus_square_p", "operand",
    "optimization_barrier", "optimization_barrier_p", "or_p", "population_count",
    "population_count_p", "pow", "pow_p", "real", "real_p", "reciprocal", "reduce_precision",
    "reduce_precision_p", "rem", "rem_p", "round", "round_p", "rsqrt", "rsqrt_p", "select",
    "select_n", "select_n_p", "shift_left", "shift_left_p", "shift_right_arithmetic",
    "shift_right_arithmetic_p", "shift_right_logical", "shift_right_logical_p", "sign", "sign_p",
    "sin", "sin_p", "sinh", "sinh_p", "sqrt", "sqrt_p", "square", "square_p", "stop_gradient",
    "stop_gradient_p", "sub", "sub_p", "tan", "tan_p", "tanh", "tanh_p", "unary", "xor_p",
]
