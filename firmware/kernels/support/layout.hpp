// Where a tensor's elements lie.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/support/kernel_api.hpp"

namespace ethosu_sdk::kernels {

// Elements between neighbours in each dimension.
struct Strides {
  std::size_t of[max_rank] = {};
};
Strides strides_of(const Tensor& tensor);

// The elements along one dimension: `count` of them, `stride` apart, for each of the outer × inner starts. In
// memory order: the dimensions before and after `dim` in dim_order are outer and inner.
struct Lanes {
  std::size_t outer = 1;
  std::size_t count = 1;
  std::size_t stride = 1;  // also the number of inner starts
};
Lanes lanes_along(const Tensor& tensor, std::size_t dim);

// Calls `function(offset of the first element)` for every lane; never for lanes without elements.
template <typename Function>
void for_each_lane(const Lanes& lanes, Function&& function) {
  if (lanes.count == 0) {
    return;
  }
  for (std::size_t outer = 0; outer < lanes.outer; ++outer) {
    for (std::size_t inner = 0; inner < lanes.stride; ++inner) {
      function(outer * lanes.count * lanes.stride + inner);
    }
  }
}

}  // namespace ethosu_sdk::kernels
