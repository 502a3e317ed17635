// Where a tensor's elements lie.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/support/kernel_api.hpp"

namespace ethosu_sdk::kernels {

// Elements of a tensor, by index: [i0, i1, …] is `first` + i0 × strides[0] + i1 × strides[1] + … A stride of
// 0 repeats an element; sums wrap, so that a stride may be negative.
struct View {
  std::int32_t sizes[max_rank] = {};
  std::size_t strides[max_rank] = {};
  std::size_t rank = 0;
  std::size_t first = 0;

  // One more dimension behind the others.
  void append(std::int32_t size, std::size_t stride);

  std::size_t at(const std::int32_t* index) const {
    std::size_t offset = first;
    for (std::size_t dim = 0; dim < rank; ++dim) {
      offset += static_cast<std::size_t>(index[dim]) * strides[dim];
    }
    return offset;
  }
  // How far an element of a plane, which is the last two dimensions, is behind the plane's first.
  std::size_t in_plane(std::size_t row, std::size_t column) const {
    return row * strides[rank - 2] + column * strides[rank - 1];
  }
};

// Whether an index of these sizes exists: none of them is 0.
bool has_indices(const std::int32_t* sizes, std::size_t rank);

// All elements of a tensor.
View view_of(const Tensor& tensor);

// The elements along a dimension: `count` of them from `start` on, `step` apart.
View part_of(const View& view, std::size_t dim, std::int64_t start, std::int64_t count,
             std::int64_t step = 1);

// Those of the view's dimensions that `dims` names, in its order; the others stay at 0.
View chosen_dims(const View& view, const std::size_t* dims, std::size_t count);

// The elements at one position of a dimension, which goes.
View slice_at(const View& view, std::size_t dim, std::size_t position);

// The tensor as what follows a result of these sizes: repeated where it has size 1, or no dimension. It must
// fit.
View broadcast_view(const Tensor& tensor, const std::int32_t* sizes, std::size_t rank);

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
