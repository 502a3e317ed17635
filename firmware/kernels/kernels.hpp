// Every kernel of the firmware; kernels.toml says which operator each computes.
#pragma once

#include "kernels/kernel_api.hpp"

namespace ethosu_sdk::kernels {

// quantize.cpp
Status quantize_per_tensor_out(KernelContext& context, Span<Value* const> arguments);
Status quantize_per_tensor_tensor_out(KernelContext& context, Span<Value* const> arguments);
Status quantize_per_channel_out(KernelContext& context, Span<Value* const> arguments);
Status quantize_per_token_out(KernelContext& context, Span<Value* const> arguments);
Status dequantize_per_tensor_out(KernelContext& context, Span<Value* const> arguments);
Status dequantize_per_tensor_tensor_out(KernelContext& context, Span<Value* const> arguments);
Status dequantize_per_channel_out(KernelContext& context, Span<Value* const> arguments);
Status dequantize_per_token_out(KernelContext& context, Span<Value* const> arguments);
Status cortex_m_dequantize_per_tensor_out(KernelContext& context, Span<Value* const> arguments);

// softmax.cpp
Status softmax_out(KernelContext& context, Span<Value* const> arguments);
Status log_softmax_out(KernelContext& context, Span<Value* const> arguments);

// pooling.cpp
Status avg_pool2d_out(KernelContext& context, Span<Value* const> arguments);
Status max_pool2d_with_indices_out(KernelContext& context, Span<Value* const> arguments);

// resampling.cpp
Status adaptive_avg_pool2d_out(KernelContext& context, Span<Value* const> arguments);
Status upsample_nearest2d_out(KernelContext& context, Span<Value* const> arguments);
Status upsample_bilinear2d_out(KernelContext& context, Span<Value* const> arguments);

// arithmetic.cpp
Status add_out(KernelContext& context, Span<Value* const> arguments);
Status add_scalar_out(KernelContext& context, Span<Value* const> arguments);
Status sub_out(KernelContext& context, Span<Value* const> arguments);
Status sub_scalar_out(KernelContext& context, Span<Value* const> arguments);
Status rsub_scalar_out(KernelContext& context, Span<Value* const> arguments);
Status mul_out(KernelContext& context, Span<Value* const> arguments);
Status mul_scalar_out(KernelContext& context, Span<Value* const> arguments);
Status div_out(KernelContext& context, Span<Value* const> arguments);
Status div_scalar_out(KernelContext& context, Span<Value* const> arguments);

// division.cpp
Status div_mode_out(KernelContext& context, Span<Value* const> arguments);
Status floor_divide_out(KernelContext& context, Span<Value* const> arguments);
Status remainder_out(KernelContext& context, Span<Value* const> arguments);
Status fmod_out(KernelContext& context, Span<Value* const> arguments);

// power.cpp
Status pow_out(KernelContext& context, Span<Value* const> arguments);
Status atan2_out(KernelContext& context, Span<Value* const> arguments);

// activation.cpp
Status relu_out(KernelContext& context, Span<Value* const> arguments);
Status hardtanh_out(KernelContext& context, Span<Value* const> arguments);
Status clamp_out(KernelContext& context, Span<Value* const> arguments);

// gates.cpp
Status gelu_out(KernelContext& context, Span<Value* const> arguments);
Status elu_out(KernelContext& context, Span<Value* const> arguments);
Status leaky_relu_out(KernelContext& context, Span<Value* const> arguments);
Status glu_out(KernelContext& context, Span<Value* const> arguments);
Status logit_out(KernelContext& context, Span<Value* const> arguments);

// functions.cpp
Status acos_out(KernelContext& context, Span<Value* const> arguments);
Status acosh_out(KernelContext& context, Span<Value* const> arguments);
Status asin_out(KernelContext& context, Span<Value* const> arguments);
Status asinh_out(KernelContext& context, Span<Value* const> arguments);
Status atan_out(KernelContext& context, Span<Value* const> arguments);
Status atanh_out(KernelContext& context, Span<Value* const> arguments);
Status cos_out(KernelContext& context, Span<Value* const> arguments);
Status cosh_out(KernelContext& context, Span<Value* const> arguments);
Status erf_out(KernelContext& context, Span<Value* const> arguments);
Status exp_out(KernelContext& context, Span<Value* const> arguments);
Status expm1_out(KernelContext& context, Span<Value* const> arguments);
Status log_out(KernelContext& context, Span<Value* const> arguments);
Status log10_out(KernelContext& context, Span<Value* const> arguments);
Status log1p_out(KernelContext& context, Span<Value* const> arguments);
Status log2_out(KernelContext& context, Span<Value* const> arguments);
Status reciprocal_out(KernelContext& context, Span<Value* const> arguments);
Status rsqrt_out(KernelContext& context, Span<Value* const> arguments);
Status sigmoid_out(KernelContext& context, Span<Value* const> arguments);
Status sin_out(KernelContext& context, Span<Value* const> arguments);
Status sinh_out(KernelContext& context, Span<Value* const> arguments);
Status sqrt_out(KernelContext& context, Span<Value* const> arguments);
Status tan_out(KernelContext& context, Span<Value* const> arguments);
Status tanh_out(KernelContext& context, Span<Value* const> arguments);

// rounding.cpp
Status abs_out(KernelContext& context, Span<Value* const> arguments);
Status ceil_out(KernelContext& context, Span<Value* const> arguments);
Status floor_out(KernelContext& context, Span<Value* const> arguments);
Status neg_out(KernelContext& context, Span<Value* const> arguments);
Status round_out(KernelContext& context, Span<Value* const> arguments);
Status sign_out(KernelContext& context, Span<Value* const> arguments);
Status trunc_out(KernelContext& context, Span<Value* const> arguments);

// comparison.cpp
Status eq_out(KernelContext& context, Span<Value* const> arguments);
Status ne_out(KernelContext& context, Span<Value* const> arguments);
Status lt_out(KernelContext& context, Span<Value* const> arguments);
Status le_out(KernelContext& context, Span<Value* const> arguments);
Status gt_out(KernelContext& context, Span<Value* const> arguments);
Status ge_out(KernelContext& context, Span<Value* const> arguments);
Status isnan_out(KernelContext& context, Span<Value* const> arguments);
Status isinf_out(KernelContext& context, Span<Value* const> arguments);

// bitwise.cpp
Status bitwise_and_out(KernelContext& context, Span<Value* const> arguments);
Status bitwise_or_out(KernelContext& context, Span<Value* const> arguments);
Status bitwise_xor_out(KernelContext& context, Span<Value* const> arguments);
Status bitwise_not_out(KernelContext& context, Span<Value* const> arguments);
Status bitwise_left_shift_out(KernelContext& context, Span<Value* const> arguments);
Status bitwise_right_shift_out(KernelContext& context, Span<Value* const> arguments);
Status logical_and_out(KernelContext& context, Span<Value* const> arguments);
Status logical_or_out(KernelContext& context, Span<Value* const> arguments);
Status logical_xor_out(KernelContext& context, Span<Value* const> arguments);
Status logical_not_out(KernelContext& context, Span<Value* const> arguments);

// selection.cpp
Status maximum_out(KernelContext& context, Span<Value* const> arguments);
Status minimum_out(KernelContext& context, Span<Value* const> arguments);
Status clamp_tensor_out(KernelContext& context, Span<Value* const> arguments);
Status where_out(KernelContext& context, Span<Value* const> arguments);
Status masked_fill_out(KernelContext& context, Span<Value* const> arguments);

// reshape.cpp
Status clone_out(KernelContext& context, Span<Value* const> arguments);
Status alias_copy_out(KernelContext& context, Span<Value* const> arguments);
Status clone_dim_order_out(KernelContext& context, Span<Value* const> arguments);
Status to_dim_order_copy_out(KernelContext& context, Span<Value* const> arguments);
Status copy_out(KernelContext& context, Span<Value* const> arguments);
Status copy_in_place(KernelContext& context, Span<Value* const> arguments);
Status view_copy_out(KernelContext& context, Span<Value* const> arguments);
Status unsqueeze_copy_out(KernelContext& context, Span<Value* const> arguments);
Status squeeze_copy_dim_out(KernelContext& context, Span<Value* const> arguments);
Status squeeze_copy_dims_out(KernelContext& context, Span<Value* const> arguments);

// permute.cpp
Status permute_copy_out(KernelContext& context, Span<Value* const> arguments);
Status expand_copy_out(KernelContext& context, Span<Value* const> arguments);

// rearrange.cpp
Status transpose_copy_out(KernelContext& context, Span<Value* const> arguments);
Status t_copy_out(KernelContext& context, Span<Value* const> arguments);
Status flip_out(KernelContext& context, Span<Value* const> arguments);
Status repeat_out(KernelContext& context, Span<Value* const> arguments);
Status as_strided_copy_out(KernelContext& context, Span<Value* const> arguments);
Status diagonal_copy_out(KernelContext& context, Span<Value* const> arguments);
Status unfold_copy_out(KernelContext& context, Span<Value* const> arguments);
Status pixel_shuffle_out(KernelContext& context, Span<Value* const> arguments);
Status pixel_unshuffle_out(KernelContext& context, Span<Value* const> arguments);

// padding.cpp
Status constant_pad_nd_out(KernelContext& context, Span<Value* const> arguments);
Status reflection_pad_out(KernelContext& context, Span<Value* const> arguments);
Status replication_pad_out(KernelContext& context, Span<Value* const> arguments);
Status roll_out(KernelContext& context, Span<Value* const> arguments);
Status tril_out(KernelContext& context, Span<Value* const> arguments);

// parts.cpp
Status slice_copy_out(KernelContext& context, Span<Value* const> arguments);
Status narrow_copy_out(KernelContext& context, Span<Value* const> arguments);
Status select_copy_out(KernelContext& context, Span<Value* const> arguments);
Status slice_scatter_out(KernelContext& context, Span<Value* const> arguments);
Status select_scatter_out(KernelContext& context, Span<Value* const> arguments);

// joints.cpp
Status cat_out(KernelContext& context, Span<Value* const> arguments);
Status stack_out(KernelContext& context, Span<Value* const> arguments);
Status split_copy_out(KernelContext& context, Span<Value* const> arguments);
Status split_with_sizes_copy_out(KernelContext& context, Span<Value* const> arguments);
Status unbind_copy_out(KernelContext& context, Span<Value* const> arguments);

// indexing.cpp
Status index_select_out(KernelContext& context, Span<Value* const> arguments);
Status embedding_out(KernelContext& context, Span<Value* const> arguments);
Status gather_out(KernelContext& context, Span<Value* const> arguments);
Status scatter_src_out(KernelContext& context, Span<Value* const> arguments);
Status scatter_value_out(KernelContext& context, Span<Value* const> arguments);
Status scatter_add_out(KernelContext& context, Span<Value* const> arguments);

// advanced_indexing.cpp
Status index_out(KernelContext& context, Span<Value* const> arguments);
Status index_put_out(KernelContext& context, Span<Value* const> arguments);
Status index_put_in_place(KernelContext& context, Span<Value* const> arguments);

// reduce.cpp
Status sum_out(KernelContext& context, Span<Value* const> arguments);
Status mean_out(KernelContext& context, Span<Value* const> arguments);
Status mean_dtype_out(KernelContext& context, Span<Value* const> arguments);
Status prod_out(KernelContext& context, Span<Value* const> arguments);
Status prod_int_out(KernelContext& context, Span<Value* const> arguments);
Status amax_out(KernelContext& context, Span<Value* const> arguments);
Status amin_out(KernelContext& context, Span<Value* const> arguments);
Status max_unary_out(KernelContext& context, Span<Value* const> arguments);
Status min_unary_out(KernelContext& context, Span<Value* const> arguments);
Status any_all_out(KernelContext& context, Span<Value* const> arguments);
Status any_out(KernelContext& context, Span<Value* const> arguments);
Status var_out(KernelContext& context, Span<Value* const> arguments);
Status var_correction_out(KernelContext& context, Span<Value* const> arguments);
Status var_mean_out(KernelContext& context, Span<Value* const> arguments);

// lanes.cpp
Status argmax_out(KernelContext& context, Span<Value* const> arguments);
Status argmin_out(KernelContext& context, Span<Value* const> arguments);
Status max_dim_out(KernelContext& context, Span<Value* const> arguments);
Status min_dim_out(KernelContext& context, Span<Value* const> arguments);
Status topk_out(KernelContext& context, Span<Value* const> arguments);
Status cumsum_out(KernelContext& context, Span<Value* const> arguments);

// linear.cpp
Status addmm_out(KernelContext& context, Span<Value* const> arguments);
Status mm_out(KernelContext& context, Span<Value* const> arguments);
Status bmm_out(KernelContext& context, Span<Value* const> arguments);
Status linear_out(KernelContext& context, Span<Value* const> arguments);

// convolution.cpp
Status convolution_out(KernelContext& context, Span<Value* const> arguments);

// normalisation.cpp
Status layer_norm_out(KernelContext& context, Span<Value* const> arguments);
Status group_norm_out(KernelContext& context, Span<Value* const> arguments);
Status batch_norm_out(KernelContext& context, Span<Value* const> arguments);

// fill.cpp
Status full_out(KernelContext& context, Span<Value* const> arguments);
Status full_like_out(KernelContext& context, Span<Value* const> arguments);
Status fill_scalar_out(KernelContext& context, Span<Value* const> arguments);
Status fill_tensor_out(KernelContext& context, Span<Value* const> arguments);
Status zeros_out(KernelContext& context, Span<Value* const> arguments);
Status ones_out(KernelContext& context, Span<Value* const> arguments);
Status empty_out(KernelContext& context, Span<Value* const> arguments);
Status scalar_tensor_out(KernelContext& context, Span<Value* const> arguments);
Status arange_out(KernelContext& context, Span<Value* const> arguments);
Status arange_start_out(KernelContext& context, Span<Value* const> arguments);

// primitives.cpp
Status prim_add(KernelContext& context, Span<Value* const> arguments);
Status prim_sub(KernelContext& context, Span<Value* const> arguments);
Status prim_mul(KernelContext& context, Span<Value* const> arguments);
Status prim_floordiv(KernelContext& context, Span<Value* const> arguments);
Status prim_mod(KernelContext& context, Span<Value* const> arguments);
Status prim_truediv(KernelContext& context, Span<Value* const> arguments);
Status prim_eq(KernelContext& context, Span<Value* const> arguments);
Status prim_gt(KernelContext& context, Span<Value* const> arguments);
Status prim_lt(KernelContext& context, Span<Value* const> arguments);
Status prim_ge(KernelContext& context, Span<Value* const> arguments);
Status prim_le(KernelContext& context, Span<Value* const> arguments);
Status prim_neg(KernelContext& context, Span<Value* const> arguments);
Status prim_ceil(KernelContext& context, Span<Value* const> arguments);
Status prim_round(KernelContext& context, Span<Value* const> arguments);
Status prim_trunc(KernelContext& context, Span<Value* const> arguments);
Status prim_sym_float(KernelContext& context, Span<Value* const> arguments);
Status prim_sym_not(KernelContext& context, Span<Value* const> arguments);
Status prim_sym_max(KernelContext& context, Span<Value* const> arguments);
Status prim_sym_min(KernelContext& context, Span<Value* const> arguments);
Status prim_view(KernelContext& context, Span<Value* const> arguments);
Status prim_copy_index(KernelContext& context, Span<Value* const> arguments);
Status sym_size_int(KernelContext& context, Span<Value* const> arguments);
Status sym_numel(KernelContext& context, Span<Value* const> arguments);
Status local_scalar_dense(KernelContext& context, Span<Value* const> arguments);

}  // namespace ethosu_sdk::kernels
