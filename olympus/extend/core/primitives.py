"""The primitives of programs, for interpreters that tell equations apart by them.

A call of a program is one primitive, under the three names `jit_p`, `call_p` and `closed_call_p`;
`create_call_primitive` makes another.
"""

from ...lax import (
    abs_p, acos_p, acosh_p, add_p, after_all_p, all_gather_p, all_to_all_p, and_p, approx_top_k_p,
    argmax_p, argmin_p, asin_p, asinh_p, atan2_p, atan_p, atanh_p, axis_index_p, bessel_i0e_p,
    bessel_i1e_p, bitcast_convert_type_p, broadcast_in_dim_p, cbrt_p, ceil_p, clamp_p, clz_p,
    complex_p, concatenate_p, cond_p, conj_p, conv_general_dilated_p, convert_element_type_p,
    copy_p, cos_p, cosh_p, create_token_p, cumlogsumexp_p, cummax_p, cummin_p, cumprod_p, cumsum_p,
    device_put_p, digamma_p, div_p, dot_general_p, dynamic_slice_p, dynamic_update_slice_p, eq_p,
    eq_to_p, erf_inv_p, erf_p, erfc_p, exp2_p, exp_p, expm1_p, fft_p, floor_p, gather_p, ge_p, gt_p,
    igamma_grad_a_p, igamma_p, igammac_p, imag_p, integer_pow_p, iota_p, is_finite_p, le_p, le_to_p,
    lgamma_p, linear_solve_p, log1p_p, log2_p, log_p, logistic_p, lt_p, lt_to_p, max_p, min_p,
    mul_p, ne_p, neg_p, nextafter_p, not_p, one_minus_square_p, or_p, pad_p, pmax_p, pmin_p,
    polygamma_p, polynomial_p, population_count_p, pow_p, ppermute_p, psum_p, ragged_all_to_all_p,
    real_p, reduce_and_p, reduce_max_p, reduce_min_p, reduce_or_p, reduce_p, reduce_precision_p,
    reduce_prod_p, reduce_sum_p, reduce_window_max_p, reduce_window_min_p, reduce_window_p,
    reduce_window_sum_p, reduce_xor_p, regularized_incomplete_beta_p, rem_p, reshape_p, rev_p,
    rng_bit_generator_p, rng_uniform_p, round_p, rsqrt_p, scan_p, scatter_add_p, scatter_max_p,
    scatter_min_p, scatter_mul_p, scatter_p, select_and_gather_add_p, select_and_scatter_add_p,
    select_and_scatter_p, select_n_p, sharding_constraint_p, shift_left_p, shift_right_arithmetic_p,
    shift_right_logical_p, sign_p, sin_p, sinh_p, slice_p, sort_p, sqrt_p, square_p, squeeze_p,
    stop_gradient_p, sub_p, tan_p, tanh_p, top_k_p, transpose_p, while_p, xor_p, zeta_p,
)
from ...lax.linalg import (
    cholesky_p, eig_p, eigh_p, hessenberg_p, householder_product_p, lu_p, qr_p, schur_p, svd_p,
    triangular_solve_p, tridiagonal_p, tridiagonal_solve_p,
)
from ..._src.control.call import call_p
from ..._src.control.call import call_p as closed_call_p
from ..._src.control.call import call_p as jit_p
from ..._src.control.remat import checkpoint_p as remat_p
from ..._src.control.remat import name_p
from ..._src.custom.jvp import custom_jvp_call_p
from ..._src.custom.vjp import custom_lin_p, custom_vjp_call_p
from ..._src.extend.call_primitives import (
    create_call_primitive, eval_olympuspr_transpose, register_call_primitive_rules,
)
from ..._src.lax.creation import empty2_p
from ..._src.lax.families import add_p as add_olympusvals_p
from ..._src.lax.refs import get_p, swap_p
from ..._src.lax.transcendental import log10_p
from ..._src.random.ciphers import threefry2x32_p
from ..._src.random.gamma import random_gamma_p
from ..._src.random.keys import random_bits_p, random_fold_in_p, random_seed_p, random_split_p

__all__ = [
    "abs_p", "acos_p", "acosh_p", "add_olympusvals_p", "add_p", "after_all_p", "all_gather_p",
    "all_to_all_p", "and_p", "approx_top_k_p", "argmax_p", "argmin_p", "asin_p", "asinh_p",
    "atan2_p", "atan_p", "atanh_p", "axis_index_p", "bessel_i0e_p", "bessel_i1e_p",
    "bitcast_convert_type_p", "broadcast_in_dim_p", "call_p", "cbrt_p", "ceil_p", "cholesky_p",
    "clamp_p", "closed_call_p", "clz_p", "complex_p", "concatenate_p", "cond_p", "conj_p",
    "conv_general_dilated_p", "convert_element_type_p", "copy_p", "cos_p", "cosh_p",
    "create_call_primitive", "create_token_p", "cumlogsumexp_p", "cummax_p", "cummin_p",
    "cumprod_p", "cumsum_p", "custom_jvp_call_p", "custom_lin_p", "custom_vjp_call_p",
    "device_put_p", "digamma_p", "div_p", "dot_general_p", "dynamic_slice_p",
    "dynamic_update_slice_p", "eig_p", "eigh_p", "empty2_p", "eq_p", "eq_to_p", "erf_inv_p",
    "erf_p", "erfc_p", "eval_olympuspr_transpose", "exp2_p", "exp_p", "expm1_p", "fft_p", "floor_p",
    "gather_p", "ge_p", "get_p", "gt_p", "hessenberg_p", "householder_product_p", "igamma_grad_a_p",
    "igamma_p", "igammac_p", "imag_p", "integer_pow_p", "iota_p", "is_finite_p", "jit_p", "le_p",
    "le_to_p", "lgamma_p", "linear_solve_p", "log10_p", "log1p_p", "log2_p", "log_p", "logistic_p",
    "lt_p", "lt_to_p", "lu_p", "max_p", "min_p", "mul_p", "name_p", "ne_p", "neg_p", "nextafter_p",
    "not_p", "one_minus_square_p", "or_p", "pad_p", "pmax_p", "pmin_p", "polygamma_p",
    "polynomial_p", "population_count_p", "pow_p", "ppermute_p", "psum_p", "qr_p",
    "ragged_all_to_all_p", "random_bits_p", "random_fold_in_p", "random_gamma_p", "random_seed_p",
    "random_split_p", "real_p", "reduce_and_p", "reduce_max_p", "reduce_min_p", "reduce_or_p",
    "reduce_p", "reduce_precision_p", "reduce_prod_p", "reduce_sum_p", "reduce_window_max_p",
    "reduce_window_min_p", "reduce_window_p", "reduce_window_sum_p", "reduce_xor_p",
    "register_call_primitive_rules", "regularized_incomplete_beta_p", "rem_p", "remat_p",
    "reshape_p", "rev_p", "rng_bit_generator_p", "rng_uniform_p", "round_p", "rsqrt_p", "scan_p",
    "scatter_add_p", "scatter_max_p", "scatter_min_p", "scatter_mul_p", "scatter_p", "schur_p",
    "select_and_gather_add_p", "select_and_scatter_add_p", "select_and_scatter_p", "select_n_p",
    "sharding_constraint_p", "shift_left_p", "shift_right_arithmetic_p", "shift_right_logical_p",
    "sign_p", "sin_p", "sinh_p", "slice_p", "sort_p", "sqrt_p", "square_p", "squeeze_p",
    "stop_gradient_p", "sub_p", "svd_p", "swap_p", "tan_p", "tanh_p", "threefry2x32_p", "top_k_p",
    "transpose_p", "triangular_solve_p", "tridiagonal_p", "tridiagonal_solve_p", "while_p", "xor_p",
    "zeta_p",
]
