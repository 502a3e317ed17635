// Index tensors of int32 and int64, checked at use.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/support/arguments.hpp"

namespace ethosu_sdk::kernels {

Status expect_index_dtype(Arguments& arguments, const Tensor& index);

// Element `offset` of an index tensor, for a dimension of `size`; negative ones count from the end where
// PyTorch lets them. A failure sticks in `arguments`.
std::size_t read_index(Arguments& arguments, const Tensor& index, std::size_t offset, std::int64_t size,
                       bool allow_negative);

}  // namespace ethosu_sdk::kernels
