// Copying elements between layouts.
#pragma once

#include <cstddef>

#include "kernels/support/arguments.hpp"
#include "kernels/support/layout.hpp"

namespace ethosu_sdk::kernels {

// Copies the elements at every index tuple of `sizes`, without a change of their bits. Both tensors have the
// same dtype; `from` and `to` are the first elements' offsets.
void copy_elements(const Tensor& input, std::size_t from, const Strides& from_strides, Tensor& output,
                   std::size_t to, const Strides& to_strides, const std::int32_t* sizes, std::size_t rank);

// The same for the whole of `output`, whose sizes the input has at `strides`.
void copy_to_all(const Tensor& input, std::size_t from, const Strides& strides, Tensor& output);

// The whole of `input` into `output` of the same shape and dtype, whatever their layouts.
void copy_all(const Tensor& input, Tensor& output);

// As many bytes as `output` has.
void copy_bytes(const Tensor& input, Tensor& output);

bool same_layout(const Tensor& left, const Tensor& right);

}  // namespace ethosu_sdk::kernels
