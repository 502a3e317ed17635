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

}  // namespace ethosu_sdk::kernels
