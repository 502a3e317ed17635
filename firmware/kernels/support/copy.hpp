// Copying elements between layouts.
#pragma once

#include <cstddef>

#include "kernels/support/arguments.hpp"
#include "kernels/support/layout.hpp"

namespace ethosu_sdk::kernels {

// Copies to the elements of `to`, a view of `output`, those of `from`, a view of `input` that is large
// enough: without a change of their bits. Both tensors have the same dtype; the same below.
void copy_elements(const Tensor& input, const View& from, Tensor& output, const View& to);

// A row of elements of `Bytes` bytes; steps count elements.
template <std::size_t Bytes>
void copy_row(const void* source, std::size_t from_step, void* destination, std::size_t to_step,
              std::size_t count);

// One element, by offsets.
void copy_element(const Tensor& input, std::size_t from, Tensor& output, std::size_t to);

// Makes `output` the elements of `from`: checks its dtype and gives it their shape.
Status copy_view(Arguments& arguments, const Tensor& input, const View& from, Tensor& output);

// The whole of `input` into `output` of the same shape, whatever their layouts.
void copy_all(const Tensor& input, Tensor& output);

// As many bytes as `output` has.
void copy_bytes(const Tensor& input, Tensor& output);

bool same_layout(const Tensor& left, const Tensor& right);

}  // namespace ethosu_sdk::kernels
