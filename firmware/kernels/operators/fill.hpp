// Tensors of one number.
#pragma once

#include "kernels/support/arguments.hpp"

namespace ethosu_sdk::kernels {

// Sets every element to `number`, converted to the tensor's dtype.
Status fill(Arguments& arguments, Tensor& output, const Scalar& number);

// Reads a list of sizes and gives them to `output`.
Status resize_to_list(Arguments& arguments, std::size_t index, Tensor& output);

}  // namespace ethosu_sdk::kernels
