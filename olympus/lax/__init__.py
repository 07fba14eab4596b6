"""Operations on arrays without NumPy's conveniences, one primitive each, and control flow."""

import typing as _typing

from .._src.base.util import publish as _publish
from .._src.base.util import submodules as _submodules
from .._src.base.util import when_named as _when_named
from .._src.control_flow.associative_scan import associative_scan
from .._src.control.cond import cond_p
from .._src.control_flow.branches import cond, switch
from .._src.control_flow.scan import scan
from .._src.control.scan_primitive import scan_p
from .._src.control_flow.while_loop import fori_loop, while_loop
from .._src.control.while_primitive import while_p
from .._src.lax.accuracy import AccuracyMode, Tolerance
from .._src.lax.arithmetic import (
    RoundingMethod, abs, abs_p, ceil, ceil_p, complex, complex_p, conj, conj_p, div, div_p, floor,
    floor_p, imag, imag_p, integer_pow, integer_pow_p, is_finite, is_finite_p, max, max_p, min,
    min_p, mul, mul_p, neg, neg_p, nextafter, nextafter_p, one_minus_square, one_minus_square_p,
    real, real_p, reciprocal, rem, rem_p, round, round_p, sign, sign_p, square, square_p, sub,
    sub_p,
)
from .._src.lax.collectives.axes import axis_index, axis_index_p, axis_size
from .._src.lax.bits import (
    and_p, bitwise_and, bitwise_not, bitwise_or, bitwise_xor, clz, clz_p, not_p, or_p,
    population_count, population_count_p, shift_left, shift_left_p, shift_right_arithmetic,
    shift_right_arithmetic_p, shift_right_logical, shift_right_logical_p, xor_p,
)
from .._src.lax.comparison import (
    clamp, clamp_p, eq, eq_p, eq_to_p, ge, ge_p, gt, gt_p, le, le_p, le_to_p, lt, lt_p, lt_to_p, ne,
    ne_p, select, select_n, select_n_p,
)
from .._src.lax.collectives.moves import (
    all_gather, all_gather_p, all_to_all, all_to_all_p, ppermute, ppermute_p, pshuffle,
    psum_scatter, psum_scatter_start, pswapaxes,
)
from .._src.lax.collectives.reductions import (
    pbroadcast, pcast, pmax, pmax_p, pmean, pmin, pmin_p, psum, psum_p,
)
from .._src.lax.contract import DotDimensionNumbers, batch_matmul, dot, dot_general, dot_general_p
from .._src.lax.conv import (
    ConvDimensionNumbers, ConvGeneralDilatedDimensionNumbers, conv, conv_dimension_numbers,
    conv_general_dilated, conv_general_dilated_p, conv_with_general_padding,
)
from .._src.lax.convert import (
    bitcast_convert_type, bitcast_convert_type_p, convert_element_type, convert_element_type_p,
    reduce_precision, reduce_precision_p,
)
from .._src.lax.creation import broadcasted_iota, empty, full, full_like, iota, iota_p
from .._src.lax.cumulative import (
    cumlogsumexp, cumlogsumexp_p, cummax, cummax_p, cummin, cummin_p, cumprod, cumprod_p, cumsum,
    cumsum_p,
)
from .._src.lax.queries import broadcast_like, dce_sink, dce_sink_p, dtype, shape_as_value
from .._src.lax.families import add, add_p
from .._src.lax.barriers import (
    copy_p, optimization_barrier, optimization_barrier_p, stop_gradient, stop_gradient_p,
)
from .._src.lax.indexing import (
    GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers, gather, gather_p, scatter,
    scatter_add, scatter_add_p, scatter_max, scatter_max_p, scatter_min, scatter_min_p, scatter_p,
    scatter_sub, scatter_sub_p,
)
from .._src.lax.precision import DotAlgorithm, DotAlgorithmPreset, Precision, PrecisionLike
from .._src.lax.reduce import (
    argmax, argmax_p, argmin, argmin_p, reduce_and, reduce_and_p, reduce_max, reduce_max_p,
    reduce_min, reduce_min_p, reduce_or, reduce_or_p, reduce_prod, reduce_prod_p, reduce_xor,
    reduce_xor_p,
)
from .._src.lax.scatter_product import scatter_mul, scatter_mul_p
from .._src.lax.shape import (
    broadcast, broadcast_in_dim, broadcast_in_dim_p, broadcast_to_rank, collapse, expand_dims,
    reduce_sum, reduce_sum_p, reshape, reshape_p, rev, rev_p, squeeze, squeeze_p, tile, tile_p,
    transpose, transpose_p,
)
from .._src.lax.sharding import device_put_p, sharding_constraint_p, with_sharding_constraint
from .._src.lax.slicing import (
    concatenate, concatenate_p, dynamic_index_in_dim, dynamic_slice, dynamic_slice_in_dim,
    dynamic_slice_p, dynamic_update_index_in_dim, dynamic_update_slice, dynamic_update_slice_in_dim,
    dynamic_update_slice_p, index_in_dim, index_take, pad, pad_p, slice, slice_in_dim, slice_p,
    split, split_p,
)
from .._src.lax.sort import sort, sort_key_val, sort_p, top_k, top_k_p
from .._src.lax.special.classical import (
    bessel_i0e, bessel_i0e_p, bessel_i1e, bessel_i1e_p, digamma, digamma_p, erf, erf_inv, erf_inv_p,
    erf_p, erfc, erfc_p, lgamma, lgamma_p, polygamma, polygamma_p,
)
from .._src.lax.stack import stack, stack_p, unstack, unstack_p
from .._src.lax.transcendental import (
    acos, acos_p, acosh, acosh_p, asin, asin_p, asinh, asinh_p, atan, atan2, atan2_p, atan_p, atanh,
    atanh_p, cbrt, cbrt_p, cos, cos_p, cosh, cosh_p, exp, exp2, exp2_p, exp_p, expm1, expm1_p, log,
    log1p, log1p_p, log2, log2_p, log_p, logistic, logistic_p, pow, pow_p, rsqrt, rsqrt_p, sin,
    sin_p, sinh, sinh_p, sqrt, sqrt_p, tan, tan_p, tanh, tanh_p,
)
from .._src.lax.windows import padtype_to_pads, reduce_window_shape_tuple, reduce_window_sum_p
from .._src.types.shape import broadcast_shapes
with _when_named(__name__):
    from .._src.custom.composite import composite
    from .._src.control_flow.map import map
    from .._src.control_flow.platform import platform_dependent
    from .._src.control.reduce import reduce_p
    from .._src.control_flow.reduce import reduce
    from .._src.control_flow.reduce_window import (
        reduce_window, reduce_window_p, select_and_scatter_p,
    )
    from .._src.control_flow.scatter_apply import scatter_apply
    from .._src.custom.solves import custom_linear_solve, custom_root, linear_solve_p
    from .._src.host.tokens import (
        after_all, after_all_p, create_token, create_token_p, stage, stage_p,
    )
    from .._src.lax.approx_top_k import approx_max_k, approx_min_k, approx_top_k_p
    from .._src.lax.collectives.ragged import ragged_all_to_all, ragged_all_to_all_p
    from .._src.lax.conv_variants import (
        conv_general_dilated_local, conv_general_dilated_patches, conv_general_permutations,
        conv_general_shape_tuple, conv_shape_tuple, conv_transpose, conv_transpose_shape_tuple,
    )
    from .._src.lax.fft import FftType, fft, fft_p
    from .._src.lax.ragged import RaggedDotDimensionNumbers, ragged_dot, ragged_dot_general
    from .._src.lax.rng import (
        RandomAlgorithm, rng_bit_generator, rng_bit_generator_p, rng_uniform, rng_uniform_p,
    )
    from .._src.lax.scaled_dot import scaled_dot
    from .._src.lax.window_extrema import (
        reduce_window_max_p, reduce_window_min_p, select_and_gather_add_p, select_and_scatter_add_p,
    )
    from .._src.lax.special.incomplete_gamma import (
        igamma, igamma_grad_a, igamma_grad_a_p, igamma_p, igammac, igammac_p, random_gamma_grad,
    )
    from .._src.lax.special.incomplete_beta import betainc, regularized_incomplete_beta_p
    from .._src.lax.special.zeta import mulhi, mulhi_p, polynomial, polynomial_p, zeta, zeta_p

__all__ = [
    "abs", "abs_p", "AccuracyMode", "acos", "acos_p", "acosh", "acosh_p", "add", "add_p",
    "after_all", "after_all_p", "all_gather", "all_gather_p", "all_to_all", "all_to_all_p", "and_p",
    "approx_max_k", "approx_min_k", "approx_top_k_p", "argmax", "argmax_p", "argmin", "argmin_p",
    "asin", "asin_p", "asinh", "asinh_p", "associative_scan", "atan", "atan2", "atan2_p", "atan_p",
    "atanh", "atanh_p", "axis_index", "axis_index_p", "axis_size", "batch_matmul", "bessel_i0e",
    "bessel_i0e_p", "bessel_i1e", "bessel_i1e_p", "betainc", "bitcast_convert_type",
    "bitcast_convert_type_p", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor",
    "broadcast", "broadcast_in_dim", "broadcast_in_dim_p", "broadcast_like", "broadcast_shapes",
    "broadcast_to_rank", "broadcasted_iota", "cbrt", "cbrt_p", "ceil", "ceil_p", "clamp", "clamp_p",
    "clz", "clz_p", "collapse", "complex", "complex_p", "composite", "concatenate", "concatenate_p",
    "cond", "cond_p", "conj", "conj_p", "conv", "conv_dimension_numbers", "conv_general_dilated",
    "conv_general_dilated_local", "conv_general_dilated_p", "conv_general_dilated_patches",
    "conv_general_permutations", "conv_general_shape_tuple", "conv_shape_tuple", "conv_transpose",
    "conv_transpose_shape_tuple", "conv_with_general_padding", "ConvDimensionNumbers",
    "convert_element_type", "convert_element_type_p", "ConvGeneralDilatedDimensionNumbers",
    "copy_p", "cos", "cos_p", "cosh", "cosh_p", "create_token", "create_token_p", "cumlogsumexp",
    "cumlogsumexp_p", "cummax", "cummax_p", "cummin", "cummin_p", "cumprod", "cumprod_p", "cumsum",
    "cumsum_p", "custom_linear_solve", "custom_root", "dce_sink", "dce_sink_p", "device_put_p",
    "digamma", "digamma_p", "div", "div_p", "dot", "dot_general", "dot_general_p", "DotAlgorithm",
    "DotAlgorithmPreset", "DotDimensionNumbers", "dtype", "dynamic_index_in_dim", "dynamic_slice",
    "dynamic_slice_in_dim", "dynamic_slice_p", "dynamic_update_index_in_dim",
    "dynamic_update_slice", "dynamic_update_slice_in_dim", "dynamic_update_slice_p", "empty", "eq",
    "eq_p", "eq_to_p", "erf", "erf_inv", "erf_inv_p", "erf_p", "erfc", "erfc_p", "exp", "exp2",
    "exp2_p", "exp_p", "expand_dims", "expm1", "expm1_p", "fft", "fft_p", "FftType", "floor",
    "floor_p", "fori_loop", "full", "full_like", "gather", "gather_p", "GatherDimensionNumbers",
    "GatherScatterMode", "ge", "ge_p", "gt", "gt_p", "igamma", "igamma_grad_a", "igamma_grad_a_p",
    "igamma_p", "igammac", "igammac_p", "imag", "imag_p", "index_in_dim", "index_take",
    "integer_pow", "integer_pow_p", "iota", "iota_p", "is_finite", "is_finite_p", "le", "le_p",
    "le_to_p", "lgamma", "lgamma_p", "linear_solve_p", "log", "log1p", "log1p_p", "log2",
    "log2_p", "log_p", "logistic", "logistic_p", "lt", "lt_p", "lt_to_p", "map", "max", "max_p",
    "min", "min_p", "mul", "mul_p", "mulhi", "mulhi_p", "ne", "ne_p", "neg", "neg_p", "nextafter",
    "nextafter_p", "not_p", "one_minus_square", "one_minus_square_p", "optimization_barrier",
    "optimization_barrier_p", "or_p", "pad", "pad_p", "padtype_to_pads", "pbroadcast", "pcast",
    "platform_dependent", "pmax", "pmax_p", "pmean", "pmin", "pmin_p", "polygamma", "polygamma_p",
    "polynomial", "polynomial_p", "population_count", "population_count_p", "pow", "pow_p",
    "ppermute", "ppermute_p", "Precision", "PrecisionLike", "pshuffle", "psum", "psum_p",
    "psum_scatter", "psum_scatter_start", "pswapaxes", "ragged_all_to_all", "ragged_all_to_all_p",
    "ragged_dot", "ragged_dot_general", "RaggedDotDimensionNumbers", "random_gamma_grad",
    "RandomAlgorithm", "real", "real_p", "reciprocal", "reduce", "reduce_and", "reduce_and_p",
    "reduce_max", "reduce_max_p", "reduce_min", "reduce_min_p", "reduce_or", "reduce_or_p",
    "reduce_p", "reduce_precision", "reduce_precision_p", "reduce_prod", "reduce_prod_p",
    "reduce_sum", "reduce_sum_p", "reduce_window", "reduce_window_max_p", "reduce_window_min_p",
    "reduce_window_p", "reduce_window_shape_tuple", "reduce_window_sum_p", "reduce_xor",
    "reduce_xor_p", "regularized_incomplete_beta_p", "rem", "rem_p", "reshape", "reshape_p", "rev",
    "rev_p", "rng_bit_generator", "rng_bit_generator_p", "rng_uniform", "rng_uniform_p", "round",
    "round_p", "RoundingMethod", "rsqrt", "rsqrt_p", "scaled_dot", "scan", "scan_p", "scatter",
    "scatter_add", "scatter_add_p", "scatter_apply", "scatter_max", "scatter_max_p", "scatter_min",
    "scatter_min_p", "scatter_mul", "scatter_mul_p", "scatter_p", "scatter_sub", "scatter_sub_p",
    "ScatterDimensionNumbers", "select", "select_and_gather_add_p", "select_and_scatter_add_p",
    "select_and_scatter_p", "select_n", "select_n_p", "shape_as_value", "sharding_constraint_p",
    "shift_left", "shift_left_p", "shift_right_arithmetic", "shift_right_arithmetic_p",
    "shift_right_logical", "shift_right_logical_p", "sign", "sign_p", "sin", "sin_p", "sinh",
    "sinh_p", "slice", "slice_in_dim", "slice_p", "sort", "sort_key_val", "sort_p", "split",
    "split_p", "sqrt", "sqrt_p", "square", "square_p", "squeeze", "squeeze_p", "stack", "stack_p",
    "stage", "stage_p", "stop_gradient", "stop_gradient_p", "sub", "sub_p", "switch", "tan",
    "tan_p", "tanh", "tanh_p", "tile", "tile_p", "Tolerance", "top_k", "top_k_p", "transpose",
    "transpose_p", "unstack", "unstack_p", "while_loop", "while_p", "with_sharding_constraint",
    "xor_p", "zeta", "zeta_p",
]

_publish(__name__)
if _typing.TYPE_CHECKING:      # imported when they are first named
    from . import linalg as linalg
else:       # a checker would take any name for an object
    __getattr__, __dir__ = _submodules(__name__)
