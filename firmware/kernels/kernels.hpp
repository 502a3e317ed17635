// Every kernel of the firmware; kernels.toml says which operator each computes.
#pragma once

#include "kernels/kernel_api.hpp"

namespace ethosu_sdk::kernels {

// quantize.cpp
Status quantize_per_tensor_out(KernelContext& context, Span<Value* const> arguments);
Status dequantize_per_tensor_out(KernelContext& context, Span<Value* const> arguments);
Status cortex_m_dequantize_per_tensor_out(KernelContext& context, Span<Value* const> arguments);

// softmax.cpp
Status softmax_out(KernelContext& context, Span<Value* const> arguments);

// pooling.cpp
Status avg_pool2d_out(KernelContext& context, Span<Value* const> arguments);
Status max_pool2d_with_indices_out(KernelContext& context, Span<Value* const> arguments);

// arithmetic.cpp
Status add_out(KernelContext& context, Span<Value* const> arguments);
Status add_scalar_out(KernelContext& context, Span<Value* const> arguments);
Status sub_out(KernelContext& context, Span<Value* const> arguments);
Status sub_scalar_out(KernelContext& context, Span<Value* const> arguments);
Status mul_out(KernelContext& context, Span<Value* const> arguments);
Status mul_scalar_out(KernelContext& context, Span<Value* const> arguments);
Status div_out(KernelContext& context, Span<Value* const> arguments);
Status div_scalar_out(KernelContext& context, Span<Value* const> arguments);

// activation.cpp
Status relu_out(KernelContext& context, Span<Value* const> arguments);
Status hardtanh_out(KernelContext& context, Span<Value* const> arguments);
Status clamp_out(KernelContext& context, Span<Value* const> arguments);

// reshape.cpp
Status clone_out(KernelContext& context, Span<Value* const> arguments);
Status clone_dim_order_out(KernelContext& context, Span<Value* const> arguments);
Status to_dim_order_copy_out(KernelContext& context, Span<Value* const> arguments);
Status copy_out(KernelContext& context, Span<Value* const> arguments);
Status copy_in_place(KernelContext& context, Span<Value* const> arguments);
Status view_copy_out(KernelContext& context, Span<Value* const> arguments);
Status unsqueeze_copy_out(KernelContext& context, Span<Value* const> arguments);
Status squeeze_copy_dims_out(KernelContext& context, Span<Value* const> arguments);

// permute.cpp
Status permute_copy_out(KernelContext& context, Span<Value* const> arguments);
Status expand_copy_out(KernelContext& context, Span<Value* const> arguments);

// parts.cpp
Status slice_copy_out(KernelContext& context, Span<Value* const> arguments);
Status select_copy_out(KernelContext& context, Span<Value* const> arguments);
Status cat_out(KernelContext& context, Span<Value* const> arguments);

// reduce.cpp
Status mean_out(KernelContext& context, Span<Value* const> arguments);
Status mean_dtype_out(KernelContext& context, Span<Value* const> arguments);

// linear.cpp
Status addmm_out(KernelContext& context, Span<Value* const> arguments);
Status mm_out(KernelContext& context, Span<Value* const> arguments);

// convolution.cpp
Status convolution_out(KernelContext& context, Span<Value* const> arguments);

}  // namespace ethosu_sdk::kernels
